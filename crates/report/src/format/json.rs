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

/// The record as indented JSON, ending in a line feed. Fields and units are those of the types in
/// crate `gpuio-record`; the schema is `docs/schema/record-v3.schema.json`. A number that is not
/// finite becomes `null`, as JSON has no word for it.
#[must_use]
#[expect(
    clippy::expect_used,
    reason = "no value of a Record can fail to serialize: see the message"
)]
pub fn render(record: &Record) -> String {
    let mut text = serde_json::to_string_pretty(record)
        .expect("a record holds no map and no foreign Serialize, and a String takes every write");
    text.push('\n');
    text
}
