//! The whole record as JSON.

use gpuio_record::{OLDEST_SCHEMA, Record, SCHEMA_VERSION};
use serde_json::Value;

/// Why a text is not a record that this gpuio can read.
#[derive(Debug, thiserror::Error)]
pub enum ParseError {
    /// It is not JSON, or not the JSON of a record.
    #[error("this is not a gpuio record: {0}")]
    Shape(#[from] serde_json::Error),
    /// It has another schema version.
    #[error(
        "this record has schema version {found}, but this gpuio reads {OLDEST_SCHEMA} to \
         {SCHEMA_VERSION}; use the gpuio that wrote it (tool.version in the record)"
    )]
    Schema {
        /// The version in the record.
        found: u64,
    },
}

/// Reads what [`render`] wrote, including older schemas from [`OLDEST_SCHEMA`] on. The returned
/// record has the schema version of this program, because it is written in that version.
///
/// # Errors [`ParseError`]: other text, or a record of another schema.
pub fn parse(text: &str) -> Result<Record, ParseError> {
    let value: Value = serde_json::from_str(text)?;
    let known = u64::from(OLDEST_SCHEMA)..=u64::from(SCHEMA_VERSION);
    match value.get("schema_version").and_then(Value::as_u64) {
        Some(found) if !known.contains(&found) => Err(ParseError::Schema { found }),
        _ => {
            let record: Record = serde_json::from_value(value)?;
            Ok(Record { schema_version: SCHEMA_VERSION, ..record })
        }
    }
}

/// The record as indented JSON, ending in a line feed; lists of numbers are in a line. Fields and
/// units are those of the types in crate `gpuio-record`; the schema is
/// `docs/schema/record-v3.schema.json`. A number that is not finite becomes `null`, as JSON has no
/// word for it.
pub fn render(record: &Record) -> String {
    let mut text = serde_json::to_string_pretty(record)
        .expect("a record holds no map and no foreign Serialize, and a String takes every write");
    text.push('\n');
    narrow(&text)
}

/// Indented JSON with each list of numbers, and of such lists, in a line: three quarters of a
/// record were the line feeds and blanks of its histograms.
fn narrow(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['"', '[']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let end = match from.as_bytes() {
            [b'"', ..] => string(from),
            _ => numbers(from),
        };
        let (part, after) = from.split_at(end.unwrap_or(1));
        match from.starts_with('[') && end.is_some() {
            true => part.split_ascii_whitespace().for_each(|word| {
                out.push_str(word);
                out.push_str(if word.ends_with(',') { " " } else { "" });
            }),
            false => out.push_str(part),
        }
        rest = after;
    }
    out + rest
}

/// The length of the string that a text begins with.
fn string(text: &str) -> Option<usize> {
    let mut escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    end.map(|at| at + 2)
}

/// The length of the list that a text begins with, if it holds numbers and lists of them only.
fn numbers(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' if depth == 1 => return Some(at + 1),
            b']' => depth -= 1,
            b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E' | b',' => {}
            _ if byte.is_ascii_whitespace() => {}
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_numbers_are_in_a_line_and_nothing_else_changes() {
        let value = serde_json::json!({
            "buckets": [[1, 2], [3, -4.5e-7]], "empty": [], "names": ["[1,\n 2]", "\"[", "\\"],
            "mixed": [1, null, {"of": [7, 8]}],
        });
        let text = serde_json::to_string_pretty(&value).unwrap();
        let narrow = narrow(&text);
        assert_eq!(serde_json::from_str::<Value>(&narrow).unwrap(), value);
        assert!(narrow.contains("\"buckets\": [[1, 2], [3, -4.5e-7]],\n"), "{narrow}");
        assert!(narrow.contains("\"of\": [7, 8]\n"), "{narrow}");
    }
}
