//! Crates without examples in their documentation have `doctest = false`, which saves a run of
//! rustdoc each. An example in such a crate would not be tested.

use super::{File, Finding};

const RULE: &str = "example";

/// Examples that no test runs.
pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let untested = files.iter().filter_map(|file| {
        let folder = file.path.strip_suffix("Cargo.toml")?;
        file.text.lines().any(|line| line == "doctest = false").then_some(folder)
    });
    let sources = untested.flat_map(|folder| {
        let source = format!("{folder}src/");
        files.iter().filter(move |file| file.path.starts_with(&source))
    });
    sources
        .filter_map(|file| {
            let line = first_example(&file.text)?;
            let what = "nothing runs this example: remove `doctest = false` from Cargo.toml, or \
                        write ```text";
            Some(Finding::new(&file.path, line, RULE, what))
        })
        .collect()
}

/// The line of the first code block in documentation that rustdoc would compile.
fn first_example(text: &str) -> Option<usize> {
    let mut inside = false;
    for (line, number) in text.lines().zip(1..) {
        let line = line.trim_start();
        let documentation = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        let Some(language) = documentation.and_then(|line| line.trim().strip_prefix("```")) else {
            continue;
        };
        if !inside && (language.is_empty() || language.starts_with("rust")) {
            return Some(number);
        }
        inside = !inside;
    }
    None
}
