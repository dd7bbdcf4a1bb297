//! The whole record as JSON.

use gpuio_record::Record;

/// The record as indented JSON, ending in a line feed. Fields and units are those of the types in
/// crate `gpuio-record`; the schema is `docs/schema/record-v1.schema.json`. A number that is not
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
