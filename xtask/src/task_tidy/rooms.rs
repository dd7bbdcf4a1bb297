//! Reads the machine-checked lines of ARCHITECTURE.md, so that the page and the check cannot
//! drift apart.

use std::collections::BTreeMap;

use anyhow::ensure;

/// What ARCHITECTURE.md allows.
#[derive(Debug)]
pub(super) struct Rules {
    /// Room → the rooms it may use, without the `gpuio-` of the package name.
    pub(super) arrows: BTreeMap<String, Vec<String>>,
    /// Path prefixes where `unsafe` may be written: `crates/io/`, `crates/load/src/affinity.rs`.
    pub(super) unsafe_paths: Vec<String>,
}

impl Rules {
    /// Reads the arrows (``- `a → b, c` `` and ``- `x`, `y` → none of ours``) and the paragraph
    /// that begins with `` `unsafe` is allowed in``.
    pub(super) fn read(page: &str) -> anyhow::Result<Self> {
        let mut arrows = BTreeMap::new();
        for line in page.lines().filter_map(|line| line.strip_prefix("- `")) {
            let Some((left, right)) = line.split_once('→') else {
                continue;
            };
            let users = names(left);
            let used = if right.contains("none") { Vec::new() } else { names(right) };
            arrows.extend(users.into_iter().map(|user| (user, used.clone())));
        }
        let unsafe_paths: Vec<String> = page
            .split("\n\n")
            .filter_map(|part| part.trim_start().strip_prefix("`unsafe` is allowed in"))
            .flat_map(|part| part.split('`').skip(1).step_by(2))
            .map(|name| match name.split_once('/') {
                // A folder beside `crates`.
                Some((_, "")) => name.to_owned(),
                Some(_) => format!("crates/{name}"),
                None => format!("crates/{name}/"),
            })
            .collect();
        ensure!(!arrows.is_empty(), "ARCHITECTURE.md has no line like \"- `a → b, c`\"");
        ensure!(
            !unsafe_paths.is_empty(),
            "ARCHITECTURE.md has no paragraph that begins with \"`unsafe` is allowed in\""
        );
        Ok(Self { arrows, unsafe_paths })
    }
}

fn names(part: &str) -> Vec<String> {
    let words = part.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-'));
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// The room a path belongs to: `io` for `crates/io/src/lib.rs`.
pub(super) fn room(path: &str) -> Option<&str> {
    path.strip_prefix("crates/")?.split_once('/').map(|(room, _)| room)
}

/// Whether a whole Rust file is no part of the program: in a `tests/` or `examples/` folder (the
/// measuring programs), or `tests.rs`, `test.rs`, `NAME_tests.rs`, `NAME_test.rs`.
pub(super) fn is_test_file(path: &str) -> bool {
    let stem = path.rsplit('/').next().and_then(|name| name.strip_suffix(".rs")).unwrap_or("");
    let named = |word: &str| stem == word || stem.ends_with(&format!("_{word}"));
    let aside = |folder: &str| folder == "tests" || folder == "examples";
    path.split('/').rev().skip(1).any(aside) || named("tests") || named("test")
}
