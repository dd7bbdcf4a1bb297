//! Fields of a record's file that records do not have: reading skips them, so no check sees them.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use gpuio_record::{Record, SCHEMA_VERSION};
use serde_json::Value;

/// Fields that are named at most.
const MOST: usize = 20;

static SCHEMA: LazyLock<Value> = LazyLock::new(|| schemars::schema_for!(Record).to_value());

/// A sentence for each field of a record's text that its schema does not have, and on what was not
/// looked for. A field of several entries of a list is one.
#[must_use]
pub fn unknown_fields(text: &str) -> Vec<String> {
    let Ok(value) = serde_json::from_str::<Value>(text) else { return Vec::new() };
    let version = &value["schema_version"];
    if *version != SCHEMA_VERSION {
        // The schema has only the present names.
        return vec![format!("schema version {version}: unknown fields were NOT looked for")];
    }
    let mut found = BTreeSet::new();
    walk(&[&*SCHEMA], &value, "", &mut found);
    let more = found.len().saturating_sub(MOST);
    let named = found.into_iter().take(MOST);
    let mut said: Vec<String> =
        named.map(|place| format!("unknown field {place}: NOT checked")).collect();
    said.extend((more > 0).then(|| format!("unknown fields: {more} more, NOT checked")));
    said
}

/// Adds the places of fields that no schema of `schemas` has, of a value that one of them fits.
fn walk(schemas: &[&'static Value], value: &Value, place: &str, found: &mut BTreeSet<String>) {
    let all = parts(schemas);
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let place = if place.is_empty() { key.clone() } else { format!("{place}.{key}") };
                let of = |schema: &&'static Value| {
                    let own = schema["properties"].get(key);
                    own.or_else(|| schema.get("additionalProperties").filter(|it| it.is_object()))
                };
                let below: Vec<&'static Value> = all.iter().filter_map(of).collect();
                match below.is_empty() {
                    true => drop(found.insert(place)),
                    false => walk(&below, value, &place, found),
                }
            }
        }
        Value::Array(values) if values.iter().any(|one| one.is_object() || one.is_array()) => {
            let items: Vec<&'static Value> =
                all.iter().filter_map(|schema| schema.get("items")).collect();
            let place = format!("{place}[]");
            values.iter().for_each(|one| walk(&items, one, &place, found));
        }
        _ => {}
    }
}

/// The schemas with those that they refer to and are combined of.
fn parts(schemas: &[&'static Value]) -> Vec<&'static Value> {
    let mut all = schemas.to_vec();
    let mut nth = 0;
    while let Some(schema) = all.get(nth).copied() {
        let target = schema["$ref"].as_str().and_then(|at| SCHEMA.pointer(at.strip_prefix('#')?));
        all.extend(target);
        for kind in ["oneOf", "anyOf", "allOf"] {
            all.extend(schema[kind].as_array().into_iter().flatten());
        }
        nth += 1;
    }
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_that_no_reader_knows_are_named() {
        let text = include_str!("../../tests/report/compare/fixtures/staged_on_software_gpu.json");
        let whole = serde_json::to_value(crate::format::json::parse(text).unwrap()).unwrap();
        let mut record = whole.clone();
        assert_eq!(unknown_fields(&record.to_string()), [""; 0]);
        record["note"] = json!("fastest ever");
        record["jobs"][0]["read"]["latency"]["total"]["p42_ns"] = json!(1);
        record["plan"]["jobs"][0]["stop"]["never"] = json!(null);
        for point in record["jobs"][0]["series"].as_array_mut().unwrap() {
            point["smoothed"] = json!(true);
        }
        assert_eq!(
            unknown_fields(&record.to_string()),
            [
                "unknown field jobs[].read.latency.total.p42_ns: NOT checked",
                "unknown field jobs[].series[].smoothed: NOT checked",
                "unknown field note: NOT checked",
                "unknown field plan.jobs[].stop.never: NOT checked",
            ]
        );
        // Keys of a map are data.
        let mut record = whole.clone();
        record["plan"]["cufile"] = json!({"any.key": "1"});
        assert_eq!(unknown_fields(&record.to_string()), [""; 0]);
        (0..30).for_each(|nth| record[format!("note{nth}")] = json!(nth));
        let said = unknown_fields(&record.to_string());
        assert_eq!(
            (said.len(), said.last().unwrap().as_str()),
            (MOST + 1, "unknown fields: 10 more, NOT checked")
        );
        record["schema_version"] = json!(2);
        let said = unknown_fields(&record.to_string());
        assert_eq!(said, ["schema version 2: unknown fields were NOT looked for"]);
    }
}
