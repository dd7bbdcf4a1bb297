//! Runs made from a real record by changing what a test is about.

use gpuio_record::Record;
use gpuio_report::compare::{Run, Side, of_record};
use serde_json::Value;

/// A record of path host, one job of random reads of 64 KiB, made with `gpuio bench`; the buckets
/// of its histograms and its witnesses were left out.
const HOST: &str = include_str!("fixtures/host.json");
/// The same job on path staged with the software GPU.
const SOFTWARE: &str = include_str!("fixtures/staged_on_software_gpu.json");

pub(crate) fn host() -> Value {
    serde_json::from_str(HOST).unwrap()
}

pub(crate) fn software() -> Value {
    serde_json::from_str(SOFTWARE).unwrap()
}

/// The runs of a record, after a change.
pub(crate) fn runs(mut record: Value, from: &str, change: impl FnOnce(&mut Value)) -> Vec<Run> {
    change(&mut record);
    let record: Record = serde_json::from_value(record).unwrap();
    of_record::runs(&record, from, &[])
}

pub(crate) fn side(name: &str, runs: Vec<Run>) -> Side {
    Side { name: name.to_owned(), runs, ..Side::default() }
}

/// Repeats of the host record whose rates and latencies are those of the record times these.
pub(crate) fn repeats(name: &str, factors: &[f64]) -> Side {
    let one = |(nth, factor): (usize, &f64)| {
        runs(host(), &format!("{name}/{nth}.json"), |record| scale(record, *factor))
    };
    side(name, factors.iter().enumerate().flat_map(one).collect())
}

/// Makes a run so much faster: more bytes and I/Os a second, shorter latencies. Its values are set
/// first, so that no page hangs on what the machine did on that day.
pub(crate) fn scale(record: &mut Value, factor: f64) {
    let read = &mut record["jobs"][0]["read"];
    read["bytes_per_s"] = (1e9 * factor).into();
    read["iops"] = (1e9 / 65_536.0 * factor).into();
    let total = &mut read["latency"]["total"];
    for (key, ns) in [("p50_ns", 240_000.0), ("p99_ns", 900_000.0), ("p99_9_ns", 2_000_000.0)] {
        total[key] = ((ns / factor) as u64).into();
    }
    total["mean_ns"] = (262_144.0 / factor).into();
    total["count"] = 100_000.into();
    record["jobs"][0]["cpu"]["us_per_mib"] = (100.0 / factor).into();
    record["jobs"][0]["cpu"]["scope"] = "all_threads".into();
    let points = record["jobs"][0]["series"].as_array_mut().unwrap();
    for (nth, point) in points.iter_mut().enumerate() {
        // One high, one low: 5 % to either side.
        let swing = if nth % 2 == 0 { 1.05 } else { 0.95 };
        let span = point["span_ns"].as_u64().unwrap() as f64;
        let bytes = factor * swing * span;
        point["read_bytes"] = (bytes as u64).into();
        point["read_ios"] = ((bytes / 65_536.0) as u64).into();
    }
}
