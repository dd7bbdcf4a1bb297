//! Rules for Rust files.

use super::architecture::{Rules, is_test_file};
use super::calls::BANS;
use super::functions::{functions, test_lines};
use super::mask::{Masked, is_name, mask};
use super::{File, Finding};

const MAX_COLUMNS: usize = 100;
const MAX_FUNCTION_LINES: usize = 70;
const MAX_FILE_LINES: usize = 500;
/// Where a file may say that it is a table and long: the lines its own docs may take.
const TOP_LINES: usize = 20;
const NAMELESS: [&str; 5] = ["common", "util", "utils", "misc", "helpers"];
const UNFINISHED: [&str; 5] = ["TODO", "FIXME", "XXX", "todo!", "unimplemented!"];

pub(super) fn check(rules: &Rules, file: &File) -> Vec<Finding> {
    let Masked { code, comments } = mask(&file.text);
    let test_file = is_test_file(&file.path);
    let mut source = Source { rules, file, findings: Vec::new() };
    source.name();
    source.lengths(test_file);
    for function in functions(&code).iter().filter(|f| f.lines > MAX_FUNCTION_LINES) {
        let (name, lines) = (&function.name, function.lines);
        source.found(
            function.line,
            "function length",
            format!("`{name}` has {lines} lines, more than {MAX_FUNCTION_LINES}: split it"),
        );
    }
    let tests = test_lines(&code);
    let mut previous_comment = "";
    for (index, (code, comment)) in code.lines().zip(comments.lines()).enumerate() {
        source.words(index + 1, code, comment);
        if !test_file && !tests[index] {
            source.calls(index + 1, code);
            source.unwrap(index + 1, code, comment, previous_comment);
        }
        previous_comment = comment;
    }
    source.findings
}

struct Source<'a> {
    rules: &'a Rules,
    file: &'a File,
    findings: Vec<Finding>,
}

impl Source<'_> {
    fn found(&mut self, line: usize, rule: &'static str, what: impl Into<String>) {
        self.findings.push(Finding::new(&self.file.path, line, rule, what));
    }

    fn name(&mut self) {
        let path = self.file.path.trim_end_matches(".rs");
        let bad = path.split('/').find(|part| {
            NAMELESS.contains(part)
                || part
                    .strip_prefix("util")
                    .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_lowercase()))
        });
        if let Some(part) = bad {
            let what = format!("`{part}` says nothing about what is inside, name it after that");
            self.found(1, "file name", what);
        }
    }

    fn lengths(&mut self, test_file: bool) {
        let mut previous = "";
        for (index, line) in self.file.text.lines().enumerate() {
            let columns = line.chars().count();
            if columns > MAX_COLUMNS && !gives_reason(previous, "// tidy: long line, ") {
                let what = format!(
                    "{columns} columns, more than {MAX_COLUMNS}: break it, or write \
                     `// tidy: long line, REASON` above it"
                );
                self.found(index + 1, "line length", what);
            }
            if line.contains('\t') {
                self.found(index + 1, "tab", "a tab, use spaces (or `\\t` in a string)");
            }
            previous = line;
        }
        let lines = self.file.text.lines().count();
        let table = |line: &str| gives_reason(line, "// tidy: table, ");
        if lines > MAX_FILE_LINES
            && !test_file
            && !self.file.text.lines().take(TOP_LINES).any(table)
        {
            let what = format!(
                "{lines} lines, more than {MAX_FILE_LINES}: split it, or write \
                 `// tidy: table, REASON` at its top"
            );
            self.found(1, "file length", what);
        }
    }

    fn words(&mut self, line: usize, code: &str, comment: &str) {
        let path = self.file.path.as_str();
        for word in UNFINISHED {
            if has_word(code, word) || has_word(comment, word) {
                let what = format!("`{word}`: finish it now or leave it out");
                self.found(line, "unfinished", what);
            }
        }
        let allowed = self.rules.unsafe_paths.iter().any(|prefix| path.starts_with(prefix));
        if !allowed && has_word(code, "unsafe") {
            let what = format!(
                "`unsafe` outside the places ARCHITECTURE.md names ({}): use a safe owner there",
                self.rules.unsafe_paths.join(", ")
            );
            self.found(line, "unsafe", what);
        }
    }

    fn calls(&mut self, line: usize, code: &str) {
        for ban in &BANS {
            if let Some(needle) = ban.find(&self.file.path, code) {
                self.found(line, ban.rule, format!("`{needle}` here: {}", ban.instead));
            }
        }
    }

    fn unwrap(&mut self, line: usize, code: &str, comment: &str, previous: &str) {
        if code.contains(".unwrap()") && comment.trim().is_empty() && previous.trim().is_empty() {
            let what = "`.unwrap()` without a reason: return an error, or say in a comment on this \
                        line or the one above why it cannot fail";
            self.found(line, "unwrap", what);
        }
    }
}

fn gives_reason(line: &str, marker: &str) -> bool {
    line.trim().strip_prefix(marker).is_some_and(|reason| !reason.trim().is_empty())
}

/// Whether `word` stands in `text` with no letter, digit or `_` on either side.
pub(super) fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        !text[..at].ends_with(is_name) && !text[at + word.len()..].starts_with(is_name)
    })
}
