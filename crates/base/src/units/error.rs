//! The one error of this module.

use std::fmt;

/// A text that is not a size, duration, percentage or list.
///
/// The message quotes the text, names the column and lists what is accepted there, so a caller
/// only adds which option or key the text came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitError {
    /// The whole text as given.
    pub input: String,
    /// Byte offset in `input` of the first character that does not fit, from 0.
    /// Equal to `input.len()` where the text ends too early.
    pub at: usize,
    /// The accepted form, in words and with an example.
    pub expected: &'static str,
}

impl UnitError {
    pub(crate) fn new(input: &str, at: usize, expected: &'static str) -> Self {
        Self { input: input.to_owned(), at, expected }
    }
}

impl fmt::Display for UnitError {
    /// Columns are printed from 1, as editors count them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { input, at, expected } = self;
        if input.is_empty() {
            write!(f, "the value is empty: expected {expected}")
        } else if *at >= input.len() {
            write!(f, "{input:?} ends too early: expected {expected}")
        } else {
            write!(f, "{input:?} cannot be read at column {}: expected {expected}", at + 1)
        }
    }
}

impl std::error::Error for UnitError {}
