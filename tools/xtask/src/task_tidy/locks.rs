//! `tools/fuzz/` is a workspace of its own, so a crate's new dependency does not reach its lock
//! file by itself, and a build with `--locked` refuses it.

use std::collections::BTreeSet;

use super::arrows::Package;
use super::{File, Finding};

const RULE: &str = "lock file";
const FUZZ: &str = "tools/fuzz/Cargo.lock";

/// Our crates in the lock file of `tools/fuzz/` whose dependencies are not those of their manifest.
pub(super) fn check(files: &[File], packages: &[Package]) -> Vec<Finding> {
    let lock = files.iter().find(|file| file.path == FUZZ);
    let locked = lock.map(|file| read(&file.text)).unwrap_or_default();
    let finding = |one: Locked| {
        let package = packages.iter().find(|package| package.full_name == one.name)?;
        let needs: BTreeSet<&str> = package.needs.iter().map(String::as_str).collect();
        let what = || {
            format!(
                "the dependencies of `{}` have changed: run `cargo metadata` in tools/fuzz/ and \
                 commit the lock file",
                one.name
            )
        };
        (needs != one.needs).then(|| Finding::new(FUZZ, one.line, RULE, what()))
    };
    locked.into_iter().filter_map(finding).collect()
}

/// A `[[package]]` of a lock file.
struct Locked<'a> {
    name: &'a str,
    line: usize,
    /// Names alone, without versions.
    needs: BTreeSet<&'a str>,
}

fn read(text: &str) -> Vec<Locked<'_>> {
    let mut packages: Vec<Locked> = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        if let Some(name) = line.strip_prefix("name = ") {
            let name = name.trim_matches('"');
            packages.push(Locked { name, line: number, needs: BTreeSet::new() });
        } else if let Some(need) = line.strip_prefix(" \"")
            && let Some(package) = packages.last_mut()
        {
            package.needs.extend(need.split([' ', '"']).next());
        }
    }
    packages
}
