//! Crates that may be linked: of crates.io, with licences that `deny.toml` lists.
//!
//! By the manifests, within a second. `cargo xtask deny` runs cargo-deny, which reads the texts of
//! licences and the list of known vulnerabilities too, and takes minutes to build.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{File, Finding};

const RULE: &str = "dependency";
const LIST: &str = "deny.toml";
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Findings in all that `cargo metadata` reports as built into the members of the workspace, or by
/// their build. Dev-dependencies are not shipped and not counted.
pub(super) fn check(metadata: &Value, files: &[File]) -> Vec<Finding> {
    let list = files.iter().find(|file| file.path == LIST).map_or("", |file| &file.text);
    let allowed = allowed(list);
    let mut findings = Vec::new();
    let mut find = |what: String| findings.push(Finding::new(LIST, 1, RULE, what));
    let built = built(metadata);
    for package in
        array(&metadata["packages"]).iter().filter(|one| built.contains(text(&one["id"])))
    {
        let (name, version) = (text(&package["name"]), text(&package["version"]));
        let licence = package["license"].as_str();
        if !licence.is_some_and(|licence| is_allowed(licence, &allowed)) {
            let licence = licence.unwrap_or("named by no expression");
            find(format!("the licence of {name} {version}, {licence}, is not in [licenses] allow"));
        }
        let Some(source) = package["source"].as_str() else {
            let own = array(&package["dependencies"]).iter();
            let open = own.filter(|one| one["req"] == "*" && one["path"].is_null());
            open.for_each(|one| {
                find(format!("{name} takes any version of {}: name one", text(&one["name"])));
            });
            continue;
        };
        if source != CRATES_IO {
            find(format!("{name} {version} comes from {source} and not from crates.io"));
        }
    }
    findings
}

/// The identities of the members and of all that they are built with.
fn built(metadata: &Value) -> HashSet<&str> {
    let nodes = array(&metadata["resolve"]["nodes"]);
    let nodes: HashMap<&str, &Value> = nodes.iter().map(|node| (text(&node["id"]), node)).collect();
    let mut open: Vec<&str> = array(&metadata["workspace_members"]).iter().map(text).collect();
    let mut seen = HashSet::new();
    while let Some(id) = open.pop() {
        if !seen.insert(id) {
            continue;
        }
        let needs = nodes.get(id).map_or(&[][..], |node| array(&node["deps"]));
        let is_built =
            |need: &&Value| array(&need["dep_kinds"]).iter().any(|one| one["kind"] != "dev");
        open.extend(needs.iter().filter(is_built).map(|need| text(&need["pkg"])));
    }
    seen
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The strings of `allow` in `[licenses]`.
fn allowed(list: &str) -> HashSet<&str> {
    let after = list.split_once("[licenses]").map_or("", |(_, after)| after);
    let after = after.split_once("allow = [").map_or("", |(_, after)| after);
    let inside = after.split_once("\n]").map_or("", |(inside, _)| inside);
    inside.lines().filter_map(|line| line.trim().strip_prefix('"')?.split('"').next()).collect()
}

/// Whether an expression of SPDX (2.3, annex D) can be met with licences that are allowed. A `/`
/// stands for `OR`, as in older manifests.
fn is_allowed(expression: &str, allowed: &HashSet<&str>) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = spaced.split_whitespace().peekable();
    any(&mut words, allowed) == Some(true) && words.next().is_none()
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

/// `AND` binds closer than `OR`. None: it is no expression.
fn any(words: &mut Words<'_>, allowed: &HashSet<&str>) -> Option<bool> {
    let mut met = all(words, allowed)?;
    while words.next_if_eq(&"OR").is_some() {
        met |= all(words, allowed)?;
    }
    Some(met)
}

fn all(words: &mut Words<'_>, allowed: &HashSet<&str>) -> Option<bool> {
    let mut met = one(words, allowed)?;
    while words.next_if_eq(&"AND").is_some() {
        met &= one(words, allowed)?;
    }
    Some(met)
}

fn one(words: &mut Words<'_>, allowed: &HashSet<&str>) -> Option<bool> {
    let word = words.next()?;
    if word == "(" {
        let met = any(words, allowed)?;
        return (words.next()? == ")").then_some(met);
    }
    let name = match words.next_if_eq(&"WITH") {
        Some(_) => format!("{word} WITH {}", words.next()?),
        None => word.to_owned(),
    };
    Some(allowed.contains(&*name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOWED: &str = "[graph]\nallow = [\n\"No\",\n]\n[licenses]\n# text\nallow = [\n    \
                           \"MIT\", # most\n    \"Apache-2.0 WITH LLVM-exception\",\n]\n[bans]\n";

    #[test]
    fn expressions() {
        let allowed = allowed(ALLOWED);
        assert_eq!(allowed.len(), 2);
        for good in [
            "MIT",
            "GPL-2.0/MIT",
            "GPL-2.0 OR MIT",
            "(X OR MIT) AND MIT",
            "Apache-2.0 WITH LLVM-exception OR Apache-2.0",
            "X AND Y OR MIT",
        ] {
            assert!(is_allowed(good, &allowed), "{good}");
        }
        for bad in ["", "GPL-2.0", "MIT AND X", "(MIT", "MIT MIT", "Apache-2.0", "X OR MIT AND Y"] {
            assert!(!is_allowed(bad, &allowed), "{bad}");
        }
    }

    #[test]
    fn what_is_built_is_checked_and_what_tests_use_is_not() {
        let package = |name: &str, licence: Option<&str>, source: Option<&str>| {
            serde_json::json!({ "id": name, "name": name, "version": "1", "license": licence,
                "source": source, "dependencies": [{ "name": "y", "req": "*", "path": null }] })
        };
        let need = |pkg: &str, kind: Option<&str>| {
            let kinds = [serde_json::json!({ "kind": kind })];
            serde_json::json!({ "pkg": pkg, "dep_kinds": kinds })
        };
        let metadata = serde_json::json!({
            "workspace_members": ["own"],
            "packages": [
                package("own", Some("MIT"), None),
                package("good", Some("MIT"), Some(CRATES_IO)),
                package("bad", Some("X"), Some(CRATES_IO)),
                package("none", None, Some("git+https://example.org/none")),
                package("test", Some("X"), Some(CRATES_IO)),
            ],
            "resolve": { "nodes": [
                { "id": "own", "deps": [need("good", None), need("test", Some("dev"))] },
                { "id": "good", "deps": [need("bad", Some("build")), need("none", None)] },
            ] },
        });
        let list = File { path: LIST.to_owned(), text: ALLOWED.to_owned() };
        let found: Vec<String> =
            check(&metadata, &[list]).into_iter().map(|one| one.what).collect();
        assert_eq!(
            found,
            [
                "own takes any version of y: name one",
                "the licence of bad 1, X, is not in [licenses] allow",
                "the licence of none 1, named by no expression, is not in [licenses] allow",
                "none 1 comes from git+https://example.org/none and not from crates.io",
            ]
        );
    }
}
