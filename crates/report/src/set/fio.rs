//! Jobs in the format of `fio --output-format=json`, for tools that plot fio's results.
//!
//! Written from fio's documentation (HOWTO.rst, "JSON output") and from what such tools read. A job
//! of several threads is one entry, as with `group_reporting`. Fields for figures that gpuio does
//! not measure (submission latency, completion latency) are absent.

use gpuio_base::document::unique;
use gpuio_base::stat::{Percentile, Summary};
use gpuio_record::{DirectionResult, Point, StorageReading, Towards, WatchedGroup};
use serde_json::{Map, Value, json};

use super::Set;
use super::rows::{Row, rows};
use crate::doubts::{self, Held};
use crate::number::float;
use crate::workload::{actual_engine, block_bounds, rw, sizes_short};

/// The percentiles that fio prints unless a job lists its own.
const PERCENTILES: [Percentile; 17] = {
    let mut all = [Percentile::MEDIAN; 17];
    let hundredths = [
        1_00, 5_00, 10_00, 20_00, 30_00, 40_00, 50_00, 60_00, 70_00, 80_00, 90_00, 95_00, 99_00,
        99_50, 99_90, 99_95, 99_99,
    ];
    let mut nth = 0;
    while nth < all.len() {
        all[nth] = Percentile::hundredths(hundredths[nth]);
        nth += 1;
    }
    all
};

/// How every document begins.
pub(super) const MARK: &str = "\"fio version\": \"gpuio";

/// All jobs of all records in one document.
pub(super) fn render(set: &Set) -> String {
    document(set, &jobs_of(&rows(set)))
}

/// A document per job, each with its path: `staged-64K/randread-8-2.json` (data path and block
/// size, then load, depth and threads). fio-plot reads a directory of files that differ only in
/// load, depth and threads, and adds up the results of one file, so repeats get directories of
/// their own.
pub fn files(set: &Set) -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = Vec::new();
    for row in jobs_of(&rows(set)) {
        let plan = row.plan;
        let directory = format!("{}-{}", plan.path.choice.actual, sizes_short(plan));
        let file = format!("{}-{}-{}.json", rw(plan), plan.depth, plan.threads);
        let run = |nth: usize| match nth {
            1 => format!("{directory}/{file}"),
            _ => format!("{directory}-run{nth}/{file}"),
        };
        let free = (1..).map(run).find(|name| files.iter().all(|(taken, _)| taken != name));
        files.extend(free.map(|name| (name, document(set, &[row]))));
    }
    files
}

/// One row for each job, whatever its directions.
fn jobs_of<'a>(rows: &[Row<'a>]) -> Vec<Row<'a>> {
    let first = |row: &&Row<'a>| row.plan.directions().first() == Some(&row.direction);
    rows.iter().filter(first).copied().collect()
}

fn document(set: &Set, jobs: &[Row<'_>]) -> String {
    let record = jobs.first().map(|row| row.record).or(set.members.first().map(|one| &one.record));
    let tool = record.map_or_else(String::new, |record| {
        let software = if record.plan.software_gpu { ", software GPU" } else { "" };
        format!("{} {}{software}", record.tool.name, record.tool.version)
    });
    let lacks = set.not_here();
    let value = json!({
        "fio version": tool,
        "time": record.map(|record| record.started_at.clone()),
        "global options": {},
        "jobs": jobs.iter().map(|row| job(row, &lacks)).collect::<Vec<Value>>(),
        "disk_util": disk_util(jobs),
    });
    let mut text = serde_json::to_string_pretty(&value).unwrap_or_default();
    text.push('\n');
    text
}

/// Requests of each drive, whoever made them, over the time of these jobs, and its share of time at
/// work, where that was sampled. Jobs of one group share what was counted.
fn disk_util(jobs: &[Row<'_>]) -> Vec<Value> {
    let groups = jobs.iter().map(|row| (row.nth, row.plan.group));
    let mut drives: Vec<Drive> = Vec::new();
    for group in unique(groups) {
        let first = jobs.iter().find(|row| (row.nth, row.plan.group) == group);
        let Some(row) = first else { continue };
        let mut watched = row.record.watched.iter().flat_map(|all| &all.groups);
        let watched = watched.rfind(|one| one.group == group.1);
        for reading in &row.result.cache.storage {
            let nth = drives.iter().position(|drive| drive.name == reading.device);
            let nth = nth.unwrap_or_else(|| {
                drives.push(Drive { name: reading.device.clone(), ..Drive::default() });
                drives.len() - 1
            });
            drives[nth].add(reading, watched);
        }
    }
    drives.iter().map(Drive::json).collect()
}

/// The counts of a drive.
#[derive(Default)]
struct Drive {
    name: String,
    reads: u64,
    writes: u64,
    read_bytes: u64,
    write_bytes: u64,
    /// Nanoseconds at work, and those in which that was sampled.
    busy: f64,
    of: f64,
}

impl Drive {
    fn add(&mut self, reading: &StorageReading, watched: Option<&WatchedGroup>) {
        self.reads += reading.reads;
        self.writes += reading.writes;
        self.read_bytes += reading.read_bytes;
        self.write_bytes += reading.write_bytes;
        let Some(watched) = watched else { return };
        let series = watched.devices.iter().find(|one| one.device == self.name);
        let busy = series.and_then(|one| one.figures.iter().find(|one| one.key == "busy_percent"));
        if let Some(percent) = busy.and_then(|figure| figure.whole) {
            self.busy += percent.min(100.0) / 100.0 * float(watched.length_ns());
            self.of += float(watched.length_ns());
        }
    }

    fn json(&self) -> Value {
        let mut drive = json!({
            "name": self.name,
            "read_ios": self.reads,
            "write_ios": self.writes,
            "read_sectors": self.read_bytes / 512,
            "write_sectors": self.write_bytes / 512,
        });
        if self.of > 0.0 {
            drive["util"] = json!(100.0 * self.busy / self.of);
        }
        drive
    }
}

fn job(row: &Row<'_>, lacks: &[String]) -> Value {
    let (plan, result) = (row.plan, row.result);
    let seconds = float(result.last_done_ns) / 1e9;
    // fio divides by the run time of all threads together.
    let share = |cpu_s: f64| match seconds > 0.0 && plan.threads > 0 {
        true => 100.0 * cpu_s / (seconds * f64::from(plan.threads)),
        false => 0.0,
    };
    let (ns, us, ms) = spread(row);
    let held = Held { recheck: &row.member.recheck, lacks };
    json!({
        "jobname": plan.name,
        "groupid": plan.group,
        "error": i32::from(result.failed > 0),
        "elapsed": result.last_done_ns.div_ceil(1_000_000_000),
        "job options": options(row),
        "read": side(row, Towards::Read),
        "write": side(row, Towards::Write),
        "trim": side_of(&DirectionResult::default(), 0, &[], &[]),
        "job_runtime": result.last_done_ns / 1_000_000 * u64::from(plan.threads),
        "usr_cpu": share(result.cpu.user_s),
        "sys_cpu": share(result.cpu.system_s),
        "ctx": result.cpu.voluntary_switches + result.cpu.involuntary_switches,
        "latency_ns": ns,
        "latency_us": us,
        "latency_ms": ms,
        "total_err": result.failed,
        "gpuio": {
            "record": row.member.name,
            "path": plan.path.choice.actual,
            "verdict": result.proof.as_ref().map(|proof| proof.verdict.words.clone()),
            "software_gpu": plan.uses_software_gpu(),
            "latency": "from due to completed",
            "doubts": doubts::of(&held, row.record, plan, result)
                .into_iter()
                .map(|(doubt, why)| json!({ "doubt": doubt, "why": why }))
                .collect::<Vec<Value>>(),
        },
    })
}

/// Options by fio's names, as strings, as fio prints them.
fn options(row: &Row<'_>) -> Value {
    let plan = row.plan;
    let (min, max) = block_bounds(plan.sizes());
    let block = if min == max { min.to_string() } else { format!("{min}-{max}") };
    let mut options = Map::new();
    let mut put = |key: &str, value: String| options.insert(key.to_owned(), Value::from(value));
    put("name", plan.name.clone());
    put("rw", rw(plan).to_owned());
    put("bs", block);
    put("iodepth", plan.depth.to_string());
    put("numjobs", plan.threads.to_string());
    // Names of fio's engines say nothing of their set-up.
    let engine = actual_engine(plan, row.result);
    let names = engine.split('+').map(|name| name.split(" (").next().unwrap_or(name));
    put("ioengine", names.collect::<Vec<_>>().join("+"));
    let direct = row.result.direct_actual == gpuio_record::DirectMode::Direct;
    put("direct", u8::from(direct).to_string());
    put("size", plan.size_bytes.to_string());
    if plan.read_percent > 0 && plan.read_percent < 100 {
        put("rwmixread", plan.read_percent.to_string());
    }
    if let Some(runtime) = plan.stop.runtime_ns {
        put("runtime", (runtime.div_ceil(1_000_000_000)).to_string());
    }
    Value::Object(options)
}

fn side(row: &Row<'_>, direction: Towards) -> Value {
    let samples: Vec<(f64, f64)> = row
        .result
        .series
        .iter()
        .filter(|point| point.at_ns > 0 && point.span_ns > 0)
        .map(|point| rates(point, direction))
        .collect();
    let percentiles = match row.plan.percentiles.is_empty() {
        true => Percentile::joined(&PERCENTILES),
        false => row.plan.percentiles.clone(),
    };
    side_of(direction.of(row.result), row.result.last_done_ns, &samples, &percentiles)
}

/// KiB and I/Os per second in one interval.
fn rates(point: &Point, direction: Towards) -> (f64, f64) {
    let seconds = float(point.span_ns) / 1e9;
    let (bytes, ios) = (point.bytes(direction), point.ios(direction));
    (float(bytes) / 1024.0 / seconds, float(ios) / seconds)
}

fn side_of(
    side: &DirectionResult,
    runtime_ns: u64,
    samples: &[(f64, f64)],
    percentiles: &[Percentile],
) -> Value {
    let bandwidth = Spread::of(samples.iter().map(|sample| sample.0));
    let iops = Spread::of(samples.iter().map(|sample| sample.1));
    let total = side.latency.as_ref().map(|legs| &legs.total);
    json!({
        "io_bytes": side.bytes,
        "io_kbytes": side.bytes / 1024,
        "bw_bytes": side.bytes_per_s.round(),
        "bw": (side.bytes_per_s / 1024.0).floor(),
        "iops": side.iops,
        "runtime": if side.ios > 0 { runtime_ns / 1_000_000 } else { 0 },
        "total_ios": side.ios,
        "short_ios": 0,
        "drop_ios": 0,
        "lat_ns": latency(total, percentiles),
        "clat_ns": latency(total, percentiles),
        "bw_min": bandwidth.min,
        "bw_max": bandwidth.max,
        "bw_agg": if side.ios > 0 { 100.0 } else { 0.0 },
        "bw_mean": bandwidth.mean,
        "bw_dev": bandwidth.deviation,
        "bw_samples": samples.len(),
        "iops_min": iops.min,
        "iops_max": iops.max,
        "iops_mean": iops.mean,
        "iops_stddev": iops.deviation,
        "iops_samples": samples.len(),
    })
}

fn latency(total: Option<&Summary>, percentiles: &[Percentile]) -> Value {
    let one = |at: &Percentile| {
        let ns = total?.percentile(*at)?;
        Some((format!("{:.6}", at.quantile() * 100.0), Value::from(ns)))
    };
    let Some(summary) = total else {
        return json!({ "min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0 });
    };
    json!({
        "min": summary.min_ns,
        "max": summary.max_ns,
        "mean": summary.mean_ns,
        "stddev": summary.stddev_ns,
        "N": summary.count,
        "percentile": percentiles.iter().filter_map(one).collect::<Map<_, _>>(),
    })
}

/// Mean, population deviation and limits of samples; zeros without any, as in fio.
#[derive(Default)]
struct Spread {
    min: f64,
    max: f64,
    mean: f64,
    deviation: f64,
}

impl Spread {
    fn of(samples: impl Iterator<Item = f64> + Clone) -> Spread {
        let number = samples.clone().map(|_| 1.0).sum::<f64>();
        if number == 0.0 {
            return Spread::default();
        }
        let mean = samples.clone().sum::<f64>() / number;
        let squares = samples.clone().map(|sample| (sample - mean).powi(2)).sum::<f64>();
        Spread {
            min: samples.clone().fold(f64::INFINITY, f64::min),
            max: samples.fold(0.0, f64::max),
            mean,
            deviation: (squares / number).sqrt(),
        }
    }
}

/// Upper bounds of fio's classes of latency within each unit.
const CLASSES: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];

/// Per cent of the I/Os of both directions in each of fio's classes: ns, µs, ms.
fn spread(row: &Row<'_>) -> (Value, Value, Value) {
    let sides = [&row.result.read, &row.result.write];
    let totals = sides.iter().filter_map(|side| side.latency.as_ref()).map(|legs| &legs.total);
    let buckets: Vec<(u64, u64)> =
        totals.flat_map(|summary| summary.buckets.iter().copied()).collect();
    let all: u64 = buckets.iter().map(|(_, count)| count).sum();
    let between = |low: u64, high: u64| {
        let within = |(value, _): &&(u64, u64)| (low..high).contains(value);
        let count: u64 = buckets.iter().filter(within).map(|(_, count)| count).sum();
        if all == 0 { 0.0 } else { 100.0 * float(count) / float(all) }
    };
    let unit = |scale: u64| {
        let mut classes = Map::new();
        let mut low = if scale == 1 { 0 } else { scale };
        for class in CLASSES {
            classes.insert(class.to_string(), json!(between(low, class * scale)));
            low = class * scale;
        }
        classes
    };
    let mut ms = unit(1_000_000);
    ms.insert("2000".to_owned(), json!(between(1_000_000_000, 2_000_000_000)));
    ms.insert(">=2000".to_owned(), json!(between(2_000_000_000, u64::MAX)));
    (Value::Object(unit(1)), Value::Object(unit(1000)), Value::Object(ms))
}
