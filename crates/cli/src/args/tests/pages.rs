//! The command lines of gpuio in README and docs: for the tests that parse them and that run them.

use std::path::{Path, PathBuf};

/// Markdown files for users.
pub(crate) fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let docs = docs.filter(|path| path.extension().is_some_and(|it| it == "md"));
    [root.join("README.md"), root.join("BENCHMARKS.md")].into_iter().chain(docs).collect()
}

/// The lines that run gpuio, continued lines joined: those of a shell's blocks, and those with a
/// prompt in blocks of output.
pub(crate) fn commands(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut shell = None;
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let line = line.trim_start();
        if let Some(language) = line.strip_prefix("```") {
            shell = if shell.is_some() { None } else { Some(language == "sh") };
            continue;
        }
        let command = match (shell, line.strip_prefix("$ ")) {
            (None, _) => continue,
            (Some(_), Some(command)) => command,
            (Some(true), None) => line,
            (Some(false), None) => continue,
        };
        if !command.starts_with("gpuio ") {
            continue;
        }
        let mut command = command.to_owned();
        while let Some(first) = command.strip_suffix('\\') {
            command = format!("{first} {}", lines.next().unwrap_or_default().trim());
        }
        found.push(command);
    }
    found
}

/// The words of a line as a shell splits them, up to a comment, a pipe or a redirection.
pub(crate) fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = None::<String>;
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '#' | '|' | '>' | '&' | ';') if word.is_none() => return words,
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}
