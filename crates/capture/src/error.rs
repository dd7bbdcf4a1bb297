//! Errors in a text.

use thiserror::Error;

/// A position in a text where it differs from what its tool prints.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "line {line}, column {column}: {wanted} was expected, and {text:?} stands there; if the text \
     was cut or changed, send it as the tool printed it"
)]
pub struct CaptureError {
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// The text there, cut to 60 characters.
    pub text: String,
    pub wanted: &'static str,
}

/// The limit on a text's length.
const TOO_LONG: &str =
    "a text of 1 MiB at most (4 MiB of logs, 32 MiB of lspci -vv and of lstopo's XML)";

impl CaptureError {
    /// At byte `at` of the line at `index`, counted from 0.
    pub(crate) fn new(index: usize, line: &str, at: usize, wanted: &'static str) -> Self {
        let before = line.char_indices().take_while(|(byte, _)| *byte < at).count();
        CaptureError {
            line: index + 1,
            column: before + 1,
            text: line.chars().skip(before).take(60).collect(),
            wanted,
        }
    }

    /// Where `part`, a slice of `line`, begins.
    pub(crate) fn at(index: usize, line: &str, part: &str, wanted: &'static str) -> Self {
        let start = (part.as_ptr() as usize).saturating_sub(line.as_ptr() as usize);
        let inside = start <= line.len();
        CaptureError::new(index, line, if inside { start } else { 0 }, wanted)
    }

    /// The line, counted from 0.
    pub(crate) fn index(&self) -> usize {
        self.line.saturating_sub(1)
    }

    pub(crate) fn too_long(bytes: usize) -> Self {
        CaptureError { line: 1, column: 1, text: format!("{bytes} bytes"), wanted: TOO_LONG }
    }

    /// Whether it is about a text that is too large, not about its words.
    pub(crate) fn is_too_much(&self) -> bool {
        self.wanted == TOO_LONG || self.wanted.starts_with("fewer ")
    }
}
