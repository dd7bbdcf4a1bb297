//! Keys of job files that make another load: each that a plan is printed with, unless an aspect has
//! it or it is listed here as none. So a new key is part of the load from its first day.

use std::collections::{BTreeMap, BTreeSet};

use gpuio_job::spec::{self, Dialect, JobSpec, Key, Origin};
use gpuio_record::JobPlan;

use crate::compare::run::Run;
use crate::foreign::Reading;

/// Keys with their values; `None` where a value is unknown. An absent key has its usual value.
pub(crate) type Keys = BTreeMap<&'static str, Option<String>>;

/// Keys that an aspect has, in its own words or joined with others.
const OF_ASPECTS: &str = "\
    accelerators batch_samples beside bs bssplit buffer_compress_chunk \
    buffer_compress_percentage cache_memory chain columns compute compute_time depth direct \
    do_verify engine epochs files full_threads gather_batch gpu inject io_size loops memory \
    norandommap path percentage_random prefetch ramp_time random_distribution rate rate_iops \
    rate_process ratio readers refill rings runtime rw rw_sequencer rwmixread sample_group \
    sample_order sample_size samples_per_file scale size skip_bufregister steadystate \
    steadystate_check_interval steadystate_duration steadystate_ramp_time streams sync \
    threads time_based unaligned verify wear_out";

/// Keys that do not change what a job does while it is measured: names of files, where in them and
/// on which part of the machine it runs, what is done before and after, what is written about it,
/// and what only some paths have.
const NO_LOAD: &str = "\
    blockalign ceilings cpus_allowed cpus_allowed_policy directory exitall file_prefix filename \
    filename_format fsync_on_close gather_scatter invalidate keep log_avg_msec log_offset \
    max_latency numa offset per_job_logs percentiles pre_read require_path seed slo utilisation \
    verify_time via_gpu via_peer write_bw_log write_iops_log write_lat_log";

fn listed() -> impl Iterator<Item = &'static str> {
    OF_ASPECTS.split(' ').chain(NO_LOAD.split(' '))
}

/// The value of a key that is not set.
const NONE: &str = "none";

/// Whether a key is part of the load that no aspect has.
pub(crate) fn is_load(name: &str) -> bool {
    spec::find(name).is_some_and(|key| {
        key.name == name && key.is_printed() && !listed().any(|other| other == key.name)
    })
}

/// All of them, in the order of the tables.
pub fn names() -> impl Iterator<Item = &'static str> {
    spec::keys().map(|key| key.name).filter(|name| is_load(name))
}

/// A key in words.
pub(crate) fn what(name: &str) -> String {
    let about = spec::find(name).map(spec::Key::about).unwrap_or_default();
    format!("{name} ({about})")
}

/// The keys of a plan's load.
pub(crate) fn of(plan: &JobPlan) -> Keys {
    let lines = spec::plan_lines(plan).into_iter().map(|(key, value)| (key.name, value));
    let lines = lines.filter(|(name, value)| is_load(name) && !is_default(name, value));
    lines.map(|(name, value)| (name, Some(value))).collect()
}

/// The keys of another tool's load: all are unknown where its options are, else gpuio's own.
pub(crate) fn of_reading(reading: &Reading) -> Keys {
    let unknown = |key: &&Key| reading.given.is_none() || key.dialect == Dialect::Native;
    let unknown = spec::keys().filter(|key| is_load(key.name)).filter(unknown);
    let given = reading.given.iter().flatten().filter(|(name, value)| {
        // Without `size` it is the size of the region.
        let is_size = **name == "filesize" && reading.size_bytes.is_none();
        is_load(name) && !is_size && !is_default(name, value)
    });
    let given = given.map(|(name, value)| (*name, Some(value.clone())));
    unknown.map(|key| (key.name, None)).chain(given).collect()
}

/// Whether a value says what happens without the key.
fn is_default(name: &str, value: &str) -> bool {
    let nothing = value.trim_end_matches(|c: char| c.is_ascii_alphabetic()) == "0";
    nothing
        || [("thinktime_blocks", "1"), ("nrfiles", "1"), ("fill", "pattern")]
            .contains(&(name, value))
}

/// The keys of which both runs have a value, and not the same one, with both values.
pub(crate) fn differing<'a>(a: &'a Run, b: &'a Run) -> Vec<(&'static str, [&'a str; 2])> {
    let names: BTreeSet<&'static str> = a.keys.keys().chain(b.keys.keys()).copied().collect();
    let known = names.into_iter().filter_map(|name| {
        let value = |run: &'a Run| match run.keys.get(name) {
            None => Some(NONE),
            Some(value) => value.as_deref(),
        };
        Some((name, [value(a)?, value(b)?]))
    });
    known.filter(|(name, [a, b])| !same(name, a, b)).collect()
}

/// The keys that only one of the runs is known to have.
pub(crate) fn one_sided(a: &Run, b: &Run) -> Vec<&'static str> {
    let set = |run: &'_ Run, other: &Run| {
        let mut names: Vec<&'static str> = run.keys.keys().copied().collect();
        names.retain(|name| run.keys[name].is_some() && other.keys.get(name) == Some(&None));
        names
    };
    [set(a, b), set(b, a)].concat()
}

/// Whether two texts are the same value: `1000` and `1ms` of `thinktime` are.
fn same(name: &str, a: &str, b: &str) -> bool {
    let read = |text: &str| {
        let mut job = JobSpec::new("");
        spec::apply(&mut job, name, text, Origin::Flag("")).ok()?;
        job.requested.clear();
        Some(job)
    };
    a == b || read(a).is_some_and(|job| read(b) == Some(job))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_keys_are_printed_ones_and_in_one_list() {
        for (nth, name) in listed().enumerate() {
            assert!(spec::find(name).is_some_and(|key| key.is_printed()), "{name}");
            assert!(listed().skip(nth + 1).all(|other| other != name), "{name}");
        }
        assert!(["fsync", "thinktime", "offset_increment"].into_iter().all(is_load));
        assert!(same("thinktime", "1000", "1ms") && !same("thinktime", "1000", "2ms"));
    }
}
