//! The committed JSON Schema is that of the types, and records keep to it.

use crate::records;

use std::path::PathBuf;

use gpuio_record::Record;
use gpuio_report::find;
use serde_json::{Value, json};

fn committed() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema/record-v2.schema.json")
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
    serde_json::from_str(&(format.render)(record)).expect("what the format wrote is JSON")
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
        "docs/schema/record-v2.schema.json is not that of the types in crate gpuio-record.\n\
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
        let back: Record = serde_json::from_value(value).unwrap();
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
    let now = records::host_quick();
    let mut old = as_json(&now);
    old["schema_version"] = json!(1);
    let read = |value: &Value| gpuio_report::format::json::parse(&value.to_string());
    assert_eq!(read(&old).unwrap(), now);
    for unknown in [0, 3] {
        old["schema_version"] = json!(unknown);
        let error = read(&old).unwrap_err().to_string();
        assert!(
            error.contains(&format!("schema {unknown}")) && error.contains("1 to 2"),
            "{error}"
        );
    }
    // Why the version was raised: what a reader of version 1 can't take.
    let total = &generated()["$defs"]["DirectionTotal"]["properties"]["bytes_per_s"]["type"];
    assert_eq!(*total, json!(["number", "null"]));
}
