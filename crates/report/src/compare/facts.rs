//! Every fact of a record beside a job's result: what was planned, the machine, the storage. They
//! are found by walking the record as it is serialised, so that a fact which is new in records is
//! compared from the day it is there.

use std::collections::{BTreeMap, BTreeSet};

use gpuio_base::units::{format_bytes, format_duration_ns};
use serde::Serialize;
use serde_json::Value;

use crate::compare::job::Job;

/// Facts by their place in the record: `storage.device.read_ahead_bytes`.
pub(crate) type Facts = BTreeMap<String, String>;

/// Values that differ from run to run of one thing, or only repeat others: names, reasons, what was
/// free at that moment, numbers that are drawn or derived.
const NOT_COMPARED: &[&str] = &[
    "host.kernel.aio_used_events",
    "host.memory.available_bytes",
    "host.memory.cgroup",
    "host.memory.dirty_bytes",
    "host.memory.huge_pages.free",
    "host.numa.nodes.free_bytes",
    "host.problems",
    "plan.bytes_of",
    "plan.defaulted",
    "plan.direct_why",
    "plan.engine.why",
    "plan.fan_out",
    "plan.gpus.pci",
    "plan.gpus.uuid",
    "plan.group",
    "plan.name",
    "plan.notes",
    "plan.path.choice.why",
    "plan.percentiles",
    "plan.repeat",
    "plan.require_path",
    "plan.targets.file_number",
    "plan.targets.guard",
    "plan.targets.holes",
    "plan.via.why",
    "plan.workers.placed_by",
    "plan.workers.regions",
    "plan.workers.seed",
    "plan.workers.thread",
    "storage.device.device",
    "storage.examined",
    "storage.file",
    "storage.mount.device",
    "storage.path",
];

/// Facts that an aspect or a key of the load has, in its own words.
const OF_ASPECTS: &[&str] = &[
    "host.cpu.allowed",
    "host.cpu.model",
    "host.cpu.online",
    "host.kernel.containment.container",
    "host.kernel.release",
    "host.memory.usable_bytes",
    "plan.beside",
    "plan.blocks",
    "plan.chain",
    "plan.compressible",
    "plan.depth",
    "plan.direct",
    "plan.engine",
    "plan.fadvise_hint",
    "plan.feed",
    "plan.file_bytes",
    "plan.file_bytes_most",
    "plan.files_in_turn",
    "plan.files_per_thread",
    "plan.fill",
    "plan.flush.at_end",
    "plan.flush.data_only",
    "plan.flush.every_ios",
    "plan.follow",
    "plan.gather_batch",
    "plan.gpus",
    "plan.inject",
    "plan.layout",
    "plan.memory",
    "plan.offset_increment",
    "plan.order",
    "plan.pacing",
    "plan.part",
    "plan.path",
    "plan.ramp_ns",
    "plan.ranges.kind",
    "plan.read_percent",
    "plan.refill",
    "plan.register_buffer",
    "plan.replay",
    "plan.rings",
    "plan.shared_fd",
    "plan.shared_files",
    "plan.size_bytes",
    "plan.skew_bytes",
    "plan.start_delay_ns",
    "plan.steady",
    "plan.stop",
    "plan.streams",
    "plan.sync",
    "plan.think",
    "plan.threads",
    "plan.verify",
    "plan.write_blocks",
    "plan.write_pacing",
    "storage.device.detail",
    "storage.device.kind",
    "storage.device.members",
    "storage.device.model",
    "storage.device.name",
    "storage.device.rotational",
    "storage.device.transport",
    "storage.mount.fs_type",
];

/// The facts of a job and of what it ran on.
pub(crate) fn of(job: &Job<'_>) -> Facts {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    walk("host", &json(&job.record.host), &mut found);
    walk("plan", &json(job.plan), &mut found);
    for location in job.locations() {
        walk("storage", &json(location), &mut found);
    }
    if job.plan.directory.is_some() {
        // Files are named after their directory.
        found.remove("plan.targets.path");
    }
    found.into_iter().map(|(key, values)| (key, words(&values))).collect()
}

fn json(of: &impl Serialize) -> Value {
    serde_json::to_value(of).unwrap_or_default()
}

fn is_left_out(place: &str) -> bool {
    let below = |prefix: &&str| {
        place.strip_prefix(*prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    NOT_COMPARED.iter().chain(OF_ASPECTS).any(below)
}

/// Adds what is not an object, by its place. Objects of one list share their places; a value that
/// is absent is no fact.
fn walk(place: &str, value: &Value, found: &mut BTreeMap<String, BTreeSet<String>>) {
    if is_left_out(place) {
        return;
    }
    match value {
        Value::Null => {}
        Value::Object(fields) => {
            fields.iter().for_each(|(key, value)| walk(&format!("{place}.{key}"), value, found));
        }
        Value::Array(all) if all.iter().any(Value::is_object) => {
            all.iter().for_each(|one| walk(place, one, found));
        }
        Value::Array(all) => {
            let all: Vec<String> = all.iter().map(|one| scalar(place, one)).collect();
            let text = if all.is_empty() { "none".to_owned() } else { all.join(",") };
            found.entry(place.to_owned()).or_default().insert(text);
        }
        one => {
            found.entry(place.to_owned()).or_default().insert(scalar(place, one));
        }
    }
}

fn scalar(place: &str, value: &Value) -> String {
    let ends = |unit: &str| place.ends_with(unit) && !place.ends_with("_per_s");
    match (value, value.as_u64()) {
        (Value::String(text), _) => text.clone(),
        (_, Some(bytes)) if ends("_bytes") => format_bytes(bytes),
        (_, Some(time)) if ends("_ns") => format_duration_ns(time),
        _ => value.to_string(),
    }
}

fn words(values: &BTreeSet<String>) -> String {
    values.iter().map(String::as_str).collect::<Vec<_>>().join(" + ")
}
