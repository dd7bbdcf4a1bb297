//! The whole record as JSON.

use gpuio_record::{ContentDigest, OLDEST_SCHEMA, Record, SCHEMA_VERSION, Sweep};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::format::text;
use crate::printable;

/// The field with the digest of all others.
const DIGEST: &str = "content_sha256";

/// The field that is derived from the others.
const ANSWERS: &str = "answers";

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
            let content_sha256 = state(&value);
            let record: Record = serde_json::from_value(value)?;
            let answers = Vec::new();
            Ok(Record { schema_version: SCHEMA_VERSION, content_sha256, answers, ..record })
        }
    }
}

/// Whether a document is as it was when its digest was made.
fn state(value: &Value) -> ContentDigest {
    match value.get(DIGEST) {
        None => ContentDigest::NoDigest,
        Some(found) if *found == digest(value) => ContentDigest::Intact,
        Some(found) => {
            ContentDigest::Changed(found.as_str().map_or_else(|| found.to_string(), str::to_owned))
        }
    }
}

/// Puts the digest of all other fields behind the first, as the types have it.
fn seal(value: &mut Value) {
    let digest = digest(value).into();
    if let Value::Object(fields) = value {
        fields.shift_insert(1.min(fields.len()), DIGEST.to_owned(), digest);
    }
}

/// Reads the list of a sweep, with whether it is as gpuio left it.
///
/// # Errors
/// Other text.
pub fn parse_sweep(text: &str) -> Result<Sweep, serde_json::Error> {
    let value: Value = serde_json::from_str(text)?;
    let content_sha256 = state(&value);
    Ok(Sweep { content_sha256, ..serde_json::from_value(value)? })
}

/// A sweep's list as indented JSON, with its digest; one that others changed keeps the digest of
/// before, so that going on with the sweep does not hide it.
pub fn render_sweep(sweep: &Sweep) -> String {
    let mut value = serde_json::to_value(sweep)
        .expect("a sweep's maps have texts as keys, and no Serialize of others");
    if sweep.content_sha256 == ContentDigest::Intact {
        seal(&mut value);
    }
    serde_json::to_string_pretty(&value).expect("a Value holds no foreign Serialize")
}

/// The record as indented JSON, ending in a line feed; lists of numbers are in a line. Fields and
/// units are those of the types in crate `gpuio-record`; the schema is
/// `docs/schema/record-v3.schema.json`. A number that is not finite becomes `null`, as JSON has no
/// word for it.
pub fn render(record: &Record) -> String {
    let mut text = serde_json::to_string_pretty(&value(record))
        .expect("a Value holds no foreign Serialize, and a String takes every write");
    text.push('\n');
    narrow(&text)
}

/// The record as values, with the answers that follow from it, and with the digest of all unless
/// [`ContentDigest`] forbids one.
pub(crate) fn value(record: &Record) -> Value {
    let text = serde_json::to_string(record)
        .expect("a record holds no map and no foreign Serialize, and a String takes every write");
    // By the text: a number is digested as it is read again, not as it was in memory.
    let mut value: Value = serde_json::from_str(&text).expect("serde_json wrote this text");
    let answers = text::answers_in_words(&printable::record(record), false);
    if let Value::Object(fields) = &mut value
        && !answers.is_empty()
    {
        fields.shift_insert(1.min(fields.len()), ANSWERS.to_owned(), answers.into());
    }
    if record.content_sha256 == ContentDigest::Intact {
        seal(&mut value);
    }
    value
}

/// SHA-256 of a record's fields but the digest, in hexadecimal: of compact JSON with sorted names,
/// whole numbers without a fraction. Blanks, order and spelling of numbers make no difference.
fn digest(record: &Value) -> String {
    let mut sum = Sha256::new();
    match record {
        Value::Object(fields) => {
            object(fields.iter().filter(|(name, _)| *name != DIGEST), &mut sum)
        }
        other => add(other, &mut sum),
    }
    sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn object<'a>(fields: impl Iterator<Item = (&'a String, &'a Value)>, sum: &mut Sha256) {
    let mut fields: Vec<_> = fields.collect();
    fields.sort_unstable_by_key(|(name, _)| *name);
    sum.update("{");
    for (nth, (name, value)) in fields.into_iter().enumerate() {
        sum.update(if nth > 0 { "," } else { "" });
        sum.update(Value::from(name.as_str()).to_string());
        sum.update(":");
        add(value, sum);
    }
    sum.update("}");
}

fn add(value: &Value, sum: &mut Sha256) {
    /// Below it each whole number is exact as a double (IEEE 754).
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Object(fields) => object(fields.iter(), sum),
        Value::Array(values) => {
            sum.update("[");
            for (nth, value) in values.iter().enumerate() {
                sum.update(if nth > 0 { "," } else { "" });
                add(value, sum);
            }
            sum.update("]");
        }
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            Some(whole) if whole.fract() == 0.0 && whole.abs() < EXACT => {
                sum.update(format!("{whole:.0}"));
            }
            _ => sum.update(number.to_string()),
        },
        Value::Null | Value::Bool(_) | Value::String(_) => sum.update(value.to_string()),
    }
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
