//! A crate may use only the crates that ARCHITECTURE.md lists for it.

use super::architecture::{Rules, crate_of};
use super::{File, Finding};

const RULE: &str = "arrow";

pub(super) fn check(rules: &Rules, files: &[File]) -> Vec<Finding> {
    let manifests = files.iter().filter(|file| {
        file.path.starts_with("crates/")
            && file.path.matches('/').count() == 2
            && file.path.ends_with("/Cargo.toml")
    });
    manifests.flat_map(|manifest| check_one(rules, manifest)).collect()
}

fn check_one(rules: &Rules, manifest: &File) -> Vec<Finding> {
    let user = crate_of(&manifest.path).unwrap_or_default();
    let Some(allowed) = rules.arrows.get(user) else {
        let what = format!(
            "`{user}` is not in the table of crates in ARCHITECTURE.md, add a row \
             \"| `{user}` | … | … |\""
        );
        return vec![Finding::new(&manifest.path, 1, RULE, what)];
    };
    let ours = dependencies(&manifest.text);
    let wrong = ours.iter().filter(|(_, used)| !allowed.contains(used));
    wrong
        .map(|(line, used)| {
            let may = if allowed.is_empty() { "nothing".to_owned() } else { allowed.join(", ") };
            let what = format!(
                "`{user}` may not use `{used}`, only {may} (ARCHITECTURE.md): move the code to a \
                 crate that may, or pass a value in"
            );
            Finding::new(&manifest.path, *line, RULE, what)
        })
        .collect()
}

/// Line and name of each of our crates that a manifest builds with. Dev-dependencies are free:
/// tests may look anywhere.
fn dependencies(manifest: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut counts = false;
    for (index, line) in manifest.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']');
            counts = builds_with(section);
            // `[dependencies.gpuio-io]`
            if counts && let Some((_, used)) = section.rsplit_once("dependencies.gpuio-") {
                found.push((index + 1, used.to_owned()));
            }
            continue;
        }
        if !counts {
            continue;
        }
        let renamed =
            line.split("package = \"gpuio-").nth(1).and_then(|rest| rest.split('"').next());
        let direct = line.strip_prefix("gpuio-").map(|rest| rest.trim_start_matches('"'));
        let direct = direct.and_then(|rest| rest.split(['.', ' ', '=', '"']).next());
        if let Some(used) = renamed.or(direct) {
            found.push((index + 1, used.to_owned()));
        }
    }
    found
}

/// Whether a section of a manifest names what the crate itself is built with: `dependencies`,
/// `build-dependencies`, `target.….dependencies`, and `dependencies.NAME` under any of them.
fn builds_with(section: &str) -> bool {
    let table = section
        .rsplit_once("dependencies.")
        .map_or(section, |(before, _)| &section[..before.len() + "dependencies".len()]);
    table.ends_with("dependencies") && !table.ends_with("dev-dependencies")
}
