//! One line: nothing, a header, or a setting. Positions are byte offsets in the line.

use super::JobFileFault;
use crate::spec::keys::{KeyError, full_width};
use crate::spec::value::shown;

/// A line without its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// Blank or a comment.
    Nothing,
    /// `[name]`
    Section(&'a str),
    /// `key=value` or a bare key.
    Setting(Setting<'a>),
}

/// A key, and its value if the line has a `=`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Setting<'a> {
    pub(super) key_at: usize,
    pub(super) key: &'a str,
    pub(super) value: Option<(usize, &'a str)>,
}

/// ASCII blanks only: a full-width or no-break space is a typing mistake that should be reported,
/// not a separator.
pub(super) fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\u{b}' | '\u{c}')
}

fn is_comment(c: char) -> bool {
    matches!(c, '#' | ';')
}

/// Reads a line.
pub(super) fn read(line: &str) -> Result<Line<'_>, (usize, JobFileFault)> {
    let start = line.find(|c| !is_blank(c)).unwrap_or(line.len());
    let body = &line[start..];
    if body.is_empty() || body.starts_with(is_comment) {
        return Ok(Line::Nothing);
    }
    let body = without_comment(body).trim_end_matches(is_blank);
    if let Some(header) = body.strip_prefix('[') {
        return section(header, start);
    }
    let Some(equals) = body.find('=') else {
        return Ok(Line::Setting(Setting { key_at: start, key: body, value: None }));
    };
    let key = body[..equals].trim_end_matches(is_blank);
    if key.is_empty() {
        return Err((start, JobFileFault::KeyMissing));
    }
    let after = &body[equals + 1..];
    let value = after.trim_start_matches(is_blank);
    Ok(Line::Setting(Setting {
        key_at: start,
        key,
        value: Some((start + body.len() - value.len(), value)),
    }))
}

fn section(header: &str, start: usize) -> Result<Line<'_>, (usize, JobFileFault)> {
    let Some((name, rest)) = header.split_once(']') else {
        return Err(unclosed(header, start));
    };
    let trailing = rest.trim_start_matches(is_blank);
    if !trailing.is_empty() && !trailing.starts_with(is_comment) {
        let at = start + 1 + header.len() - trailing.len();
        let text = shown(trailing);
        return Err((at, JobFileFault::SectionTrailing { text }));
    }
    match name.trim_matches(is_blank) {
        "" => Err((start, JobFileFault::SectionUnnamed)),
        name => Ok(Line::Section(name)),
    }
}

/// A header without `]`, or with a character that only looks like it.
fn unclosed(header: &str, start: usize) -> (usize, JobFileFault) {
    match full_width(header) {
        Some((at, found, plain)) => {
            let error =
                KeyError::FullWidth { text: shown(header), in_value: false, at, found, plain };
            (start + 1 + at, JobFileFault::Key(error))
        }
        None => (start, JobFileFault::SectionUnclosed),
    }
}

/// Removes a trailing comment: `#` or `;` after a blank. Without the blank it is part of the value,
/// as in `filename=/data/run#3`.
fn without_comment(body: &str) -> &str {
    let mut before_is_blank = false;
    for (at, c) in body.char_indices() {
        if before_is_blank && is_comment(c) {
            return &body[..at];
        }
        before_is_blank = is_blank(c);
    }
    body
}
