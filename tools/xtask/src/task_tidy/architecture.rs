//! Reads the machine-checked lines of ARCHITECTURE.md, so that the page and the check cannot
//! drift apart.

use anyhow::ensure;

const HEAD: &str = "| Layer | Crates |";

/// The permissions of ARCHITECTURE.md.
pub(super) struct Rules {
    /// The crates, without the `gpuio-` of the package name. Each may use those before it.
    pub(super) crates: Vec<String>,
    /// Path prefixes where `unsafe` may be written: `crates/io/`, `crates/load/src/affinity.rs`.
    pub(super) unsafe_paths: Vec<String>,
}

impl Rules {
    /// Reads the table of crates (``| layer | `a`: what it is. `b`, `c` |``) and the paragraph
    /// that begins with `` `unsafe` is allowed in``. A name with a dot or a slash is no crate.
    pub(super) fn read(page: &str) -> anyhow::Result<Self> {
        let table = page.lines().skip_while(|line| *line != HEAD).skip(2);
        let rows = table.map_while(|line| line.strip_prefix("| "));
        let crates: Vec<String> =
            rows.flat_map(names).filter(|name| !name.contains(['.', '/'])).collect();
        let unsafe_paths: Vec<String> = page
            .split("\n\n")
            .filter_map(|part| part.trim_start().strip_prefix("`unsafe` is allowed in"))
            .flat_map(|part| part.split('`').skip(1).step_by(2))
            .map(|name| match name.split_once('/') {
                Some(("tools", _)) => name.to_owned(),
                Some(_) => format!("crates/{name}"),
                None => format!("crates/{name}/"),
            })
            .collect();
        ensure!(!crates.is_empty(), "ARCHITECTURE.md has no table with the head {HEAD:?}");
        ensure!(
            !unsafe_paths.is_empty(),
            "ARCHITECTURE.md has no paragraph that begins with \"`unsafe` is allowed in\""
        );
        Ok(Self { crates, unsafe_paths })
    }
}

/// The names between backticks.
fn names(part: &str) -> Vec<String> {
    part.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Whether a whole Rust file is not part of the program: in a `tests/` or `examples/` folder (the
/// measuring programs) or in the crate that only tests use, or `tests.rs`, `test.rs`,
/// `NAME_tests.rs`, `NAME_test.rs`.
pub(super) fn is_test_file(path: &str) -> bool {
    let stem = path.rsplit('/').next().and_then(|name| name.strip_suffix(".rs")).unwrap_or("");
    let named = |word: &str| stem == word || stem.ends_with(&format!("_{word}"));
    let outside = |folder: &str| folder == "tests" || folder == "examples";
    path.starts_with("crates/testkit/")
        || path.split('/').rev().skip(1).any(outside)
        || named("tests")
        || named("test")
}
