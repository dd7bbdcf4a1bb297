//! The committed JSON Schema is that of the types, and records keep to it.

use crate::records;

use std::collections::BTreeMap;
use std::path::PathBuf;

use gpuio_record::{ContentDigest, Record};
use gpuio_report::find;
use gpuio_report::format::TEXT_WIDTH;
use gpuio_report::format::text::Show;
use serde_json::{Value, json};

fn committed() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema/record-v3.schema.json")
}

/// The schema of the types as they are now.
fn generated() -> Value {
    let mut schema = schemars::schema_for!(Record).to_value();
    let title = format!("gpuio record, version {}", gpuio_record::SCHEMA_VERSION);
    schema["title"] = json!(title);
    schema
}

fn as_json(record: &Record) -> Value {
    let format = find("json").expect("a row of FORMATS");
    serde_json::from_str(&(format.render)(record, TEXT_WIDTH, Show::default()))
        .expect("what the format wrote is JSON")
}

#[test]
fn the_committed_schema_is_that_of_the_types() {
    let mut now = serde_json::to_string_pretty(&generated()).unwrap();
    now.push('\n');
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(committed(), &now).unwrap();
    }
    let file = std::fs::read_to_string(committed()).unwrap_or_default();
    assert!(
        file == now,
        "docs/schema/record-v3.schema.json is not that of the types in crate gpuio-record.\n\
         Fields added: run UPDATE_SCHEMA=1 cargo test -p gpuio-report schema and commit.\n\
         A field that changed meaning or went: raise SCHEMA_VERSION first, and name a new file."
    );
}

#[test]
fn records_are_valid_and_read_back_to_themselves() {
    let validator = jsonschema::validator_for(&generated()).unwrap();
    for record in [
        records::host_quick(),
        records::staged_in_trouble(),
        records::software(),
        records::many_jobs(),
        records::ceilings(),
    ] {
        let value = as_json(&record);
        let errors: Vec<String> =
            validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:#?}");
        let back = gpuio_report::format::json::parse(&value.to_string()).unwrap();
        assert_eq!(back, record);
    }
}

#[test]
fn broken_records_are_not_valid() {
    let validator = jsonschema::validator_for(&generated()).unwrap();
    let good = as_json(&records::staged_in_trouble());
    assert!(validator.is_valid(&good));
    let broken = |change: fn(&mut Value)| {
        let mut value = good.clone();
        change(&mut value);
        assert_ne!(value, good, "the change changed nothing");
        assert!(!validator.is_valid(&value), "still valid");
    };
    broken(|v| {
        v.as_object_mut().unwrap().remove("schema_version");
    });
    broken(|v| v["plan"]["jobs"][0]["direct"] = json!("sometimes"));
    broken(|v| v["jobs"][0]["read"]["ios"] = json!(-1));
    broken(|v| v["jobs"][0]["read"]["latency"]["total"]["p50_ns"] = json!("374µs"));
    broken(|v| v["warnings"][0]["warning"] = json!("no_such_warning"));
    broken(|v| v["plan"]["jobs"][0]["order"]["kind"] = json!("backwards"));
    broken(|v| v["driver_version"] = json!([13]));
}

/// Records of version 1 had a figure wherever there may be none now.
#[test]
fn records_of_version_1_are_read_and_are_of_this_one_then() {
    let now = Record { content_sha256: ContentDigest::NoDigest, ..records::host_quick() };
    let mut old = as_json(&now);
    old["schema_version"] = json!(1);
    let read = |value: &Value| gpuio_report::format::json::parse(&value.to_string());
    assert_eq!(read(&old).unwrap(), now);
    for unknown in [0, 4] {
        old["schema_version"] = json!(unknown);
        let error = read(&old).unwrap_err().to_string();
        assert!(
            error.contains(&format!("schema version {unknown}")) && error.contains("1 to 3"),
            "{error}"
        );
    }
    // Why the version was raised: what a reader of version 1 can't take.
    let total = &generated()["$defs"]["DirectionTotal"]["properties"]["bytes_per_s"]["type"];
    assert_eq!(*total, json!(["number", "null"]));
}

/// Fields that version 3 renamed, the old name first.
const RENAMED: [(&str, &str); 12] = [
    ("asked", "requested"),
    ("got", "actual"),
    ("as_asked", "as_requested"),
    ("direct_got", "direct_actual"),
    ("direct_grain_bytes", "direct_alignment_bytes"),
    ("witnesses", "evidence"),
    ("moved", "observed_bytes"),
    ("of", "expected_bytes"),
    ("says", "assessment"),
    ("seen", "observed"),
    ("landed", "completed"),
    ("subject", "subject"),
];

/// Values of `says` and `subject` that version 3 renamed.
const RENAMED_VALUES: [(&str, &str); 4] = [
    ("for", "supports"),
    ("against", "contradicts"),
    ("cant_tell", "inconclusive"),
    ("unsaid", "unspecified"),
];

/// `value` with the names of version 3; `found` counts the old names.
fn renamed(value: &Value, found: &mut BTreeMap<&'static str, u32>) -> Value {
    match value {
        Value::Array(values) => values.iter().map(|value| renamed(value, found)).collect(),
        Value::Object(fields) => {
            // `of` of a steady-state criterion is another field.
            let criterion = fields.contains_key("window_ns");
            let rename = |(key, value): (&String, &Value)| {
                let known =
                    RENAMED.iter().find(|(old, _)| old == key && !(criterion && *old == "of"));
                let Some((old, new)) = known else {
                    return (key.clone(), renamed(value, found));
                };
                *found.entry(old).or_default() += 1;
                let word = RENAMED_VALUES.iter().find(|(old, _)| value == old);
                let Some((old, word)) = word else {
                    return ((*new).to_owned(), renamed(value, found));
                };
                *found.entry(old).or_default() += 1;
                ((*new).to_owned(), json!(word))
            };
            fields.iter().map(rename).collect()
        }
        other => other.clone(),
    }
}

/// The file was written by a program of version 2.
#[test]
fn a_record_of_version_2_reads_to_the_same_values() {
    let text = include_str!("fixtures/record-version-2.json");
    let mut found = BTreeMap::new();
    let mut expected = renamed(&serde_json::from_str(text).unwrap(), &mut found);
    expected["schema_version"] = json!(3);
    let read = gpuio_report::format::json::parse(text).unwrap();
    assert_eq!(as_json(&read), expected);
    let old = RENAMED.iter().chain(&RENAMED_VALUES).map(|(old, _)| old);
    let missing: Vec<_> = old.filter(|old| !found.contains_key(*old)).collect();
    assert!(missing.is_empty(), "the file has none of {missing:?}");
}
