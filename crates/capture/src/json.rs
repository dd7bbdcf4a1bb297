//! JSON that a tool printed, with prompts or a title above it and other text below.

use serde_json::{Deserializer, Value};

use crate::{CaptureError, Captured};

/// A document in a text, and the lines that it stands on, from the first to the one behind it.
pub(crate) struct Found {
    pub(crate) value: Value,
    lines: (usize, usize),
}

impl Found {
    /// The lines that it stands on, from the first to the one behind it.
    pub(crate) fn lines(&self) -> (usize, usize) {
        self.lines
    }
}

/// The first document that begins a line and that `is_ours`.
pub(crate) fn find(text: &str, is_ours: fn(&Value) -> bool) -> Option<Found> {
    const MOST_TRIES: usize = 20;
    let mut at = 0;
    let mut tried = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let begin = at + line.len() - line.trim_start().len();
        at += line.len();
        // A web page may have joined title and document to one line.
        let Some(inside) = text[begin..at]
            .find(['{', '['])
            .filter(|inside| *inside == 0 || text[begin..begin + inside].ends_with(' '))
        else {
            continue;
        };
        let begin = begin + inside;
        tried += 1;
        if tried > MOST_TRIES {
            return None;
        }
        let mut documents = Deserializer::from_str(&text[begin..]).into_iter::<Value>();
        let Some(Ok(value)) = documents.next() else { continue };
        if is_ours(&value) {
            let end = begin + documents.byte_offset();
            let count = text[begin..end].matches('\n').count();
            return Some(Found { value, lines: (index, index + count + 1) });
        }
    }
    None
}

/// Passes over the lines that are not of the document.
pub(crate) fn skip_others(text: &str, found: &Found, captured: &mut Captured) {
    for (index, line) in crate::lines(text) {
        if index < found.lines.0 || index >= found.lines.1 {
            captured.skip(CaptureError::new(index, line, 0, "JSON, as the tool prints it"));
        }
    }
}

/// A text of an object, also one that was printed as a number or a truth value.
pub(crate) fn word(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        _ => None,
    }
    .filter(|text| !text.is_empty())
}
