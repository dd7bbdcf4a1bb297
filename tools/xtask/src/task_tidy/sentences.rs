//! A sentence starts with the thing, not with its relation: `The size of a block`, not a clause
//! that leaves the reader waiting for its noun.

use super::prose::{self, Paragraph};
use super::{File, Finding, has_extension};

const RULE: &str = "sentence";
/// Words that begin no sentence.
const OPENERS: [&str; 3] = ["Of", "What", "Whose"];
/// Whether the rule holds for pages too: README, ARCHITECTURE, CONTRIBUTING and `docs/*.md`.
const PAGES: bool = true;

pub(super) fn check(file: &File) -> Vec<Finding> {
    if has_extension(&file.path, "rs") {
        find(file, &prose::of_rust(&file.text), false)
    } else if PAGES && is_page(&file.path) {
        of_page(file)
    } else {
        Vec::new()
    }
}

/// A page may ask questions.
pub(super) fn of_page(file: &File) -> Vec<Finding> {
    find(file, &prose::of_markdown(&file.text), true)
}

pub(super) fn is_page(path: &str) -> bool {
    let name = path.strip_prefix("docs/").unwrap_or(path);
    let top = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"];
    has_extension(path, "md") && !name.contains('/') && (name != path || top.contains(&path))
}

fn find(file: &File, paragraphs: &[Paragraph], may_ask: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    for paragraph in paragraphs {
        let words: Vec<(usize, &str)> = paragraph
            .iter()
            .flat_map(|(line, text)| text.split_whitespace().map(move |word| (*line, word)))
            .collect();
        let mut begins = true;
        for (at, (line, word)) in words.iter().enumerate() {
            let opener = opener(word).filter(|_| begins && !is_label(&words[at + 1..]));
            if let Some(opener) = opener.filter(|_| !(may_ask && is_question(&words[at..]))) {
                let what =
                    format!("a sentence begins with `{opener}`: start with the thing itself");
                findings.push(Finding::new(&file.path, *line, RULE, what));
            }
            begins = is_mark(word) || ends(word);
        }
    }
    findings
}

/// The word of [`OPENERS`] that this one is, without quotes and other signs around it. A name of
/// code is none.
fn opener(word: &str) -> Option<&'static str> {
    let word = word.trim_start_matches(['(', '[', '"', '“', '*', '_']);
    OPENERS.into_iter().find(|opener| {
        word.strip_prefix(opener).is_some_and(|rest| {
            rest.starts_with(['\'', '’'])
                || (!rest.starts_with("::") && !rest.contains(|c: char| c.is_alphanumeric()))
        })
    })
}

/// Whether nothing follows, or the next cell of a table: one word alone is no sentence.
fn is_label(rest: &[(usize, &str)]) -> bool {
    rest.first().is_none_or(|(_, word)| *word == "|")
}

/// Whether the sentence that begins here is a question.
fn is_question(rest: &[(usize, &str)]) -> bool {
    rest.iter().find(|(_, word)| ends(word)).is_some_and(|(_, word)| stripped(word).ends_with('?'))
}

/// A sign of Markdown before a sentence.
fn is_mark(word: &str) -> bool {
    ["-", "*", ">", "|"].contains(&word) || word.chars().all(|c| c == '#')
}

fn ends(word: &str) -> bool {
    stripped(word).ends_with(['.', '!', '?', ':'])
}

fn stripped(word: &str) -> &str {
    word.trim_end_matches([')', ']', '"', '”', '`', '*', '_'])
}
