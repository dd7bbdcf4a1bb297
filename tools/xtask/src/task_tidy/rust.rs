//! Rules for Rust files.
//!
//! They read lines of text. Clippy has the rules that need the syntax: lengths of functions,
//! `unwrap`, printing, `unsafe` outside the modules that allow it.

use super::architecture::{Rules, is_test_file};
use super::calls::{self, BANS, OF_TESTS};
use super::words::FORBIDDEN;
use super::{File, Finding};

const MAX_COLUMNS: usize = 100;
const MAX_FILE_LINES: usize = 800;
/// A file may declare in its first lines that it is a long table.
const TOP_LINES: usize = 20;
const NAMELESS: [&str; 5] = ["common", "util", "utils", "misc", "helpers"];

pub(super) fn check(rules: &Rules, file: &File) -> Vec<Finding> {
    let test_file = is_test_file(&file.path);
    let mut source = Source { rules, file, findings: Vec::new() };
    source.name();
    source.lengths(test_file);
    let tests = tests_from(&file.text);
    let lines: Vec<&str> = file.text.lines().collect();
    for (index, line) in lines.iter().copied().enumerate() {
        let code = code(line);
        source.unsafe_code(index + 1, &code);
        source.included(index + 1, line);
        source.words(index + 1, &code);
        if test_file {
            source.calls_of_tests(index + 1, &code);
        } else if index < tests {
            source.calls(index + 1, &code);
            source.debug_forms(index + 1, line);
            source.pasted(index + 1, line, lines.get(index + 1).copied().unwrap_or_default());
        }
    }
    source.findings
}

/// The line without its comment and without what is between quotes. Lines inside a string of
/// several lines count as code.
fn code(line: &str) -> String {
    let outside: Vec<&str> = line.split('"').step_by(2).collect();
    let outside = outside.join("\"\"");
    outside.split("//").next().unwrap_or_default().to_owned()
}

/// The index of the line where the tests at the end of a file begin.
fn tests_from(text: &str) -> usize {
    let mut marked = false;
    for (index, line) in text.lines().enumerate() {
        if marked && line.starts_with("mod ") && line.ends_with('{') {
            return index;
        }
        marked = line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(all(test,");
    }
    usize::MAX
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
            let what = format!("`{part}` does not describe the content, use a name that does");
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

    /// The compiler denies `unsafe` where no attribute allows it, so the attribute is enough.
    fn unsafe_code(&mut self, line: usize, code: &str) {
        let path = self.file.path.as_str();
        let allows = ["allow(unsafe_code", "expect(unsafe_code", "warn(unsafe_code"];
        let allowed = self.rules.unsafe_paths.iter().any(|prefix| path.starts_with(prefix));
        if !allowed && allows.iter().any(|attribute| code.contains(attribute)) {
            let what = format!(
                "`unsafe` outside the paths that ARCHITECTURE.md names ({}): use a safe owner \
                 there",
                self.rules.unsafe_paths.join(", ")
            );
            self.found(line, "unsafe", what);
        }
    }

    /// `{:?}` in a text for people: `Some(3)` and `ThroughPageCache` are Rust's, and what a person
    /// reads has words of its own.
    fn debug_forms(&mut self, line: usize, text: &str) {
        let is_text = self.file.path.starts_with("crates/report/src/");
        let code = text.trim_start();
        if is_text && (code.contains(":?}") || code.contains(":#?}")) && !code.starts_with("//") {
            let what = "`{:?}` in a text for people: print a word, a figure or a name";
            self.found(line, "debug form", what);
        }
    }

    /// `#[path = "…"]` of a file outside the crate: it would be compiled into both, and the table
    /// of crates would not show that one needs the other.
    fn included(&mut self, line: usize, text: &str) {
        let Some(inside) = self.file.path.strip_prefix("crates/") else { return };
        let Some(target) = text.trim_start().strip_prefix("#[path = \"") else { return };
        let folders = inside.split('/').count() - 2;
        if target.split('/').take_while(|part| *part == "..").count() > folders {
            let what = "a file of another crate: move what both use to a crate that both may use \
                        (`testkit`, if only tests do)";
            self.found(line, "foreign file", what);
        }
    }

    fn words(&mut self, line: usize, code: &str) {
        for name in code.split(|c: char| !is_name(c)) {
            let forbidden = parts(name).find_map(|part| {
                FORBIDDEN.iter().find(|(word, _)| part.eq_ignore_ascii_case(word))
            });
            if let Some((word, instead)) = forbidden {
                let what = format!("`{name}` has the word `{word}`: use {instead}");
                self.found(line, "word", what);
            }
        }
    }

    fn calls(&mut self, line: usize, code: &str) {
        for ban in &BANS {
            if let Some(needle) = ban.find(&self.file.path, code) {
                self.found(line, ban.rule, format!("`{needle}` here: {}", ban.instead));
            }
        }
    }

    fn pasted(&mut self, line: usize, text: &str, next: &str) {
        let of_crates = self.file.path.starts_with("crates/");
        if let Some(command) = calls::pasted(text, next).filter(|_| of_crates) {
            let what = format!(
                "`{command}` with a word that is not quoted: `gpuio_base::units::ShellLine` \
                 quotes each"
            );
            self.found(line, "pasted command", what);
        }
    }

    fn calls_of_tests(&mut self, line: usize, code: &str) {
        for rule in &OF_TESTS {
            if let Some(needle) = rule.find(&self.file.path, code) {
                self.found(line, rule.rule, format!("`{needle}` here: {}", rule.instead));
            }
        }
    }
}

/// The words of a name: `two_legs`, `TwoLegs` and `TWO_LEGS` have `two` and `legs`.
fn parts(name: &str) -> impl Iterator<Item = &str> {
    name.split('_').flat_map(|part| {
        let upper = |(at, c): (usize, char)| (at > 0 && c.is_uppercase()).then_some(at);
        let camel = part.contains(|c: char| c.is_lowercase());
        let mut starts: Vec<usize> =
            if camel { part.char_indices().filter_map(upper).collect() } else { Vec::new() };
        starts.insert(0, 0);
        let ends: Vec<usize> = starts.iter().skip(1).copied().chain([part.len()]).collect();
        starts.into_iter().zip(ends).map(move |(start, end)| &part[start..end])
    })
}

fn gives_reason(line: &str, marker: &str) -> bool {
    line.trim().strip_prefix(marker).is_some_and(|reason| !reason.trim().is_empty())
}

/// Whether a character can be part of a name.
pub(super) fn is_name(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// Whether `text` contains `word` with no letter, digit or `_` on either side.
pub(super) fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        !text[..at].ends_with(is_name) && !text[at + word.len()..].starts_with(is_name)
    })
}
