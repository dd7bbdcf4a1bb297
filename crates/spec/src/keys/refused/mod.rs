//! Keys that are known and refused, because the run would measure something else without them. Each
//! has a reason, and the nearest alternative.

mod data;
mod load;
mod others;
mod process;

use super::{Dialect, Key, Status};

/// Every refused key, in groups.
pub(super) const KEYS: [&[Key]; 20] = [
    load::PACE,
    load::REGION,
    load::QUEUE,
    data::WRITES,
    data::CHECKS,
    data::LOGS,
    process::PROCESS,
    process::GDSIO,
    others::ZONES,
    others::TRIM,
    others::FLOWS,
    others::REPLAY,
    others::PRIORITIES,
    others::NETWORK,
    others::HTTP,
    others::CLIENTS,
    others::PASSTHROUGH,
    others::NO_DATA,
    others::CONTENTS,
    others::MACHINE,
];

/// Keys about what is written and how: without effect on a job that only reads.
const FOR_WRITES: [&str; 15] = [
    "atomic",
    "buffer_pattern",
    "buffer_pattern_offset",
    "dedupe_global",
    "dedupe_mode",
    "dedupe_percentage",
    "dedupe_working_set_percentage",
    "file_append",
    "fsync_on_close",
    "sync_file_range",
    "trim_backlog",
    "trim_percentage",
    "write_barrier",
    "write_hint",
    "zero_buffers",
];

pub(super) fn is_for_writes(key: &str) -> bool {
    FOR_WRITES.contains(&key)
}

/// Values of refused keys that say what happens anyway.
const HARMLESS: [(&str, &[&str]); 14] = [
    ("atomic", &["0"]),
    ("create_only", &["0"]),
    ("dedupe_percentage", &["0"]),
    ("exitall", &["0"]),
    ("fsync_on_close", &["0"]),
    ("latency_target", &["0"]),
    ("lockmem", &["0"]),
    ("max_latency", &["0"]),
    ("numa_mem_policy", &["default", "local"]),
    ("readonly", &["0"]),
    ("trim_percentage", &["0"]),
    ("verify_only", &["0"]),
    ("write_barrier", &["0"]),
    ("zero_buffers", &["0"]),
];

pub(super) fn is_harmless(key: &str, value: &str) -> bool {
    HARMLESS.iter().any(|(name, values)| *name == key && values.contains(&value))
}

const fn refused(
    name: &'static str,
    aliases: &'static [&'static str],
    dialect: Dialect,
    why: &'static str,
    instead: &'static str,
) -> Key {
    Key::new(name, dialect, Status::Known { why, instead }).or(aliases)
}
