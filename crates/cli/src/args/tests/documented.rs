//! Every command line of gpuio in README and docs is one that this program accepts.

use std::path::{Path, PathBuf};

use clap::Parser as _;
use clap::error::ErrorKind;

use crate::args::Cli;

/// Markdown files for users.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let docs = docs.filter(|path| path.extension().is_some_and(|it| it == "md"));
    [root.join("README.md"), root.join("BENCHMARKS.md")].into_iter().chain(docs).collect()
}

/// The lines that run gpuio, continued lines joined: those of a shell's blocks, and those with a
/// prompt in blocks of output.
fn commands(page: &str) -> Vec<String> {
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
fn words(line: &str) -> Vec<String> {
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

#[test]
fn documented_commands_are_accepted() {
    let mut found = 0;
    for path in pages() {
        let page = std::fs::read_to_string(&path).unwrap();
        for line in commands(&page) {
            let mut words = words(&line);
            words.iter_mut().filter(|word| *word == "PID").for_each(|word| *word = "1".to_owned());
            // `…` and `[…]` stand for more words of the reader's own.
            if words.iter().any(|word| word.contains(['…', '[', '<'])) {
                continue;
            }
            found += 1;
            if let Err(error) = Cli::try_parse_from(&words) {
                let shown =
                    matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
                assert!(shown, "{}: {line}\n{error}", path.display());
            }
        }
    }
    assert!(found > 0, "no page has a command");
}

#[test]
fn lines_are_split_as_by_a_shell() {
    assert_eq!(
        words("gpuio sweep --vary 'bs=4k, 8k' # why"),
        ["gpuio", "sweep", "--vary", "bs=4k, 8k"]
    );
    assert_eq!(words("gpuio show a.json | less"), ["gpuio", "show", "a.json"]);
    assert_eq!(words("gpuio bench a#b"), ["gpuio", "bench", "a#b"]);
    let page = "gpuio no\n```sh\n$ gpuio bench \\\n  --bs 4k\nother\n```\n\
                gpuio no\n```text\ngpuio no\n$ gpuio top\n```\n";
    assert_eq!(commands(page), ["gpuio bench  --bs 4k", "gpuio top"]);
}
