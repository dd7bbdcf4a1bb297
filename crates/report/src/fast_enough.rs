//! Whether storage is fast enough for the accelerators of a training feed.

use gpuio_base::units::{float, per_second, whole};
use gpuio_record::metric::percent;
use gpuio_record::{
    FeedCompute, FeedPlan, FeedResult, FeedTime, JobPlan, JobResult, Record, Source, StorageReading,
};

use crate::number::{NONE, count, many, throughput};
use crate::others::{self, Others};

/// A share of the readers' time: where gpuio's own checks of data take more, they may be the reason
/// that accelerators waited.
pub(crate) const CHECKS_MOST: f64 = 0.2;

/// The answer, by the utilisation that was to be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FastEnough {
    Yes,
    /// With the reason where that holds whatever others did.
    No(Option<String>),
    /// With the reason.
    Unknown(String),
}

impl FastEnough {
    /// The answer alone.
    pub fn word(&self) -> &'static str {
        match self {
            FastEnough::Yes => "yes",
            FastEnough::No(_) => "no",
            FastEnough::Unknown(_) => "unknown",
        }
    }
}

/// The answer of a job; nothing where nothing is computed.
pub fn fast_enough(record: &Record, of: &JobPlan, job: &JobResult) -> Option<FastEnough> {
    let (plan, found) = of.feed.as_ref().zip(job.feed.as_ref())?;
    plan.needed_samples_per_s()?;
    Some(judge(plan, found, seen(of, found, job), &Beside::of(record, of, job)))
}

/// The work of others beside a job, and what the job shows whatever they did.
#[derive(Debug, Clone, Default)]
pub(crate) struct Beside {
    pub(crate) others: Option<Others>,
    /// Why a low rate may not be the storage's ([`others::doubt`]).
    pub(crate) doubt: Option<String>,
    /// The drive's share of time at work, where its bytes were this job's; per cent.
    pub(crate) own_busy_percent: Option<f64>,
    /// Bytes of samples a second, from the job's first read or write to its last.
    pub(crate) rate: Option<f64>,
}

impl Beside {
    pub(crate) fn of(record: &Record, plan: &JobPlan, job: &JobResult) -> Beside {
        let others = others::of(record, plan, job);
        let doubt = others::doubt(others.as_ref(), job);
        let rate = sample_rate(job);
        Beside { others, doubt, own_busy_percent: own_busy_percent(record, job), rate }
    }
}

/// Bytes of samples over the time of the job's reads or writes, which is shorter than that of the
/// steps.
fn sample_rate(job: &JobResult) -> Option<f64> {
    let side = [&job.read, &job.write].into_iter().max_by_key(|side| side.bytes)?;
    let samples = job.feed.as_ref()?.epochs.iter().map(|epoch| epoch.read_bytes);
    let samples = samples.fold(0, u64::saturating_add);
    (side.bytes > 0).then(|| side.bytes_per_s * float(samples) / float(side.bytes))
}

/// Why a utilisation that was reached says nothing of storage: so many of its batches were read
/// while the accelerators waited for the first, and the rest came too slowly. A storage that is
/// always late by one share of a step's time stalls only the steps that are not ahead.
fn was_ahead(
    plan: &FeedPlan,
    found: &FeedResult,
    (percent, least): (f64, f64),
    rate: Option<f64>,
) -> Option<String> {
    let steps = found.steps.div_ceil(u64::from(plan.accelerators.max(1))).max(1);
    let ahead = plan.ahead().min(steps);
    let needed = found.needed_bytes_per_s(plan)? * least / 100.0;
    let is_long = percent * float(steps - ahead) >= least * float(steps);
    let is_fast = rate.is_some_and(|rate| rate >= needed);
    (!is_long && !is_fast).then(|| {
        let (done, when) = match plan.writes {
            false => ("read", "ahead of the steps"),
            true => ("written", "behind the steps"),
        };
        let rate = rate.map_or_else(String::new, |rate| {
            format!(", and all of them at {} of {}", throughput(rate), throughput(needed))
        });
        format!(
            "{} of an accelerator's {} may be {done} {when}{rate} (use more epochs or more files)",
            count(ahead),
            many(steps, "batch|batches"),
        )
    })
}

/// A drive's bytes are this run's from this share of them on.
const OWN_LEAST: f64 = 0.9;
/// A drive that always has something to do: its counter has milliseconds.
const BUSY_LEAST: f64 = 95.0;
/// That counter says little of shorter runs.
const BUSY_LEAST_NS: u64 = 1_000_000_000;
/// A drive that always works and gives less than this share of what is needed is too slow.
const FAR_TOO_SLOW: f64 = 0.5;

/// The time of the only drive below the files with requests in flight, per cent, where its bytes
/// were nearly all of this process.
fn own_busy_percent(record: &Record, job: &JobResult) -> Option<f64> {
    let [StorageReading { device, read_bytes, write_bytes, .. }] = job.cache.storage.as_slice()
    else {
        return None;
    };
    let own = job.cache.process_read_bytes?.saturating_add(job.cache.process_write_bytes?);
    let all = read_bytes.saturating_add(*write_bytes);
    let groups = record.watched.iter().flat_map(|watched| &watched.groups);
    let group = groups.into_iter().find(|group| group.group == job.group)?;
    let mut devices = group.devices.iter();
    let drive = devices.find(|one| one.probe == "block" && one.device == *device)?;
    let busy = drive.figures.iter().find(|figure| figure.key == "busy_percent")?.whole?;
    let is_own = all > 0 && float(own.min(all)) >= float(all) * OWN_LEAST;
    (is_own && job.last_done_ns >= BUSY_LEAST_NS && busy >= BUSY_LEAST).then_some(busy)
}

/// A drive that had requests of this run all the time and gave far less than was needed: work of
/// others on the processors leaves it idle, and does not slow it.
fn bound(plan: &FeedPlan, found: &FeedResult, beside: &Beside) -> Option<String> {
    let busy = beside.own_busy_percent?;
    let needed = found.needed_bytes_per_s(plan)? * plan.least_utilisation_percent? / 100.0;
    let moved = found.epochs.iter().map(|epoch| epoch.moved_bytes).fold(0, u64::saturating_add);
    let got = per_second(moved, found.span_ns);
    (moved > 0 && got < needed * FAR_TOO_SLOW).then(|| {
        format!(
            "the drive was busy for {} % of the time, with at least {} % of its bytes this run's, \
             and gave {} % of the rate that is needed",
            percent(busy),
            percent(OWN_LEAST * 100.0),
            percent(got * 100.0 / needed)
        )
    })
}

/// Parts of accelerators' time that add up to 100 %: `3.7 % computation, 12.0 % stalls, …`.
/// Rounding changes the largest part.
pub(crate) fn parts_of(plan: &FeedPlan, of: FeedTime) -> String {
    let FeedTime { computed_ns, stall_ns, first_batch_ns, rest_ns } = of;
    let rest = match (first_batch_ns, plan.accelerators) {
        (_, 1) => "the rest",
        (Some(_), _) => "waits for other accelerators",
        (None, _) => "the wait for the first batch and for other accelerators",
    };
    let parts = [
        ("computation", computed_ns),
        ("stalls", stall_ns),
        ("the wait for the first batch", first_batch_ns.unwrap_or(0)),
        (rest, rest_ns),
    ];
    let all = parts.iter().fold(0, |sum: u64, part| sum.saturating_add(part.1));
    let tenths = |ns: u64| whole((float(ns) * 1000.0 / float(all)).round());
    let mut shown: Vec<(&str, u64)> =
        parts.iter().filter(|part| part.1 > 0).map(|(name, ns)| (*name, tenths(*ns))).collect();
    let largest = shown.iter().enumerate().max_by_key(|(_, part)| part.1);
    let Some((largest, _)) = largest else { return NONE.to_owned() };
    let others = shown.iter().enumerate().filter(|(nth, _)| *nth != largest);
    shown[largest].1 = 1000_u64.saturating_sub(others.map(|(_, part)| part.1).sum());
    let words = |(name, tenths): &(&str, u64)| format!("{}.{} % {name}", tenths / 10, tenths % 10);
    shown.iter().filter(|part| part.1 > 0).map(words).collect::<Vec<_>>().join(", ")
}

/// Where a job's bytes came from, and the share of its readers' time in which gpuio checked or made
/// data.
pub(crate) fn seen(of: &JobPlan, found: &FeedResult, job: &JobResult) -> (Option<Source>, f64) {
    let source = job.proof.as_ref().map(|proof| proof.verdict.source);
    let readers_ns = found.span_ns as f64 * f64::from(of.threads);
    (source, job.between_ios_ns as f64 / readers_ns.max(1.0))
}

/// Computations that took longer or shorter than asked, in words.
pub(crate) fn computed_off(plan: &FeedPlan, found: &FeedResult) -> Option<String> {
    let what = match plan.compute {
        FeedCompute::Sleep => "sleeps",
        _ => "computations",
    };
    let more = found.computed_off_percent(plan)?;
    let than = if more > 0.0 { "longer" } else { "shorter" };
    Some(format!("the {what} took {:.0} % {than} than asked", more.abs()))
}

/// The answer by what was [`seen`]. Where most of the work was others', or nobody saw how much was,
/// storage has not shown what it can do; unless its drive was at work for this run all the time.
pub(crate) fn judge(
    plan: &FeedPlan,
    found: &FeedResult,
    (source, checked): (Option<Source>, f64),
    beside: &Beside,
) -> FastEnough {
    let from_storage =
        matches!(source, Some(Source::Storage | Source::StorageThroughPageCache)) || plan.writes;
    let unknown = |why: String| FastEnough::Unknown(why);
    if let Some(ahead) = plan.all_ahead() {
        let more = match plan.scale < 1.0 {
            true => "use a larger --scale, or more --epochs",
            false => "use more epochs or more files",
        };
        return unknown(format!(
            "all batches of an accelerator fit into the {ahead} that are read ahead ({more})"
        ));
    }
    let Some(percent) = found.utilisation_percent else {
        let why = found.utilisation_unknown.as_deref();
        return unknown(why.unwrap_or("utilisation is not known").to_owned());
    };
    let Some(least) = plan.least_utilisation_percent else {
        let why = "no utilisation to reach was given; utilisation=90 asks for 90 %";
        return unknown(why.to_owned());
    };
    if percent >= least {
        return match (from_storage, was_ahead(plan, found, (percent, least), beside.rate)) {
            (false, _) => unknown("not all bytes came from storage".to_owned()),
            (true, Some(ahead)) => unknown(ahead),
            (true, None) => FastEnough::Yes,
        };
    }
    let waited = found.stall_percent(plan).is_none_or(|stall| stall > 100.0 - least);
    let bound = bound(plan, found, beside);
    // Shorter ones need batches more often than those that were asked for.
    let is_short = found.computed_off_percent(plan).is_some_and(|off| off < 0.0);
    match (computed_off(plan, found), &beside.doubt) {
        (Some(off), _) if !waited || is_short => unknown(off),
        _ if checked > CHECKS_MOST => unknown(format!(
            "gpuio checked or made data for {:.0} % of the readers' time (--verify {} checks \
             after the run)",
            checked * 100.0,
            gpuio_record::VerifyMode::after_the_run(false).word()
        )),
        (_, Some(doubt)) if bound.is_none() => unknown(doubt.clone()),
        _ => FastEnough::No(bound),
    }
}

#[cfg(test)]
mod tests {
    use gpuio_record::{AcceleratorResult, EpochResult};
    use gpuio_testkit::jobs;
    use serde_json::{Value, json};

    use super::*;

    const LINES: &str = "path=host\nfiles=100\nsample_size=100000\nbatch_samples=10\n\
                         accelerators=2\ncompute=sleep\ncompute_time=10ms\nutilisation=90\n\
                         readers=1\nprefetch=1\n";

    /// 100 MB/s for each of two accelerators, of which one waited 80 ms for its first batch.
    fn feed(moved_bytes: u64, change: impl Fn(&mut Value)) -> FeedResult {
        let mut feed = json!({
            "span_ns": 100_000_000, "samples": 20, "samples_per_s": 200.0, "steps": 2,
            "complete": true, "utilisation_percent": 5.0, "stall_ns": 6_000_000,
            "first_batch_ns": 80_000_000, "wait": null, "batch_read": null, "rules": [],
            "accelerators": [], "epochs": [],
        });
        let one = |number, stall_ns, first| {
            let one = AcceleratorResult {
                number,
                steps: 1,
                stall_ns,
                first_batch_ns: Some(first),
                compute_ns: Some(10_000_000),
                ..AcceleratorResult::default()
            };
            serde_json::to_value(one).unwrap()
        };
        feed["accelerators"] = json!([one(0, 0, 80_000_000), one(1, 6_000_000, 50_000_000)]);
        let epoch = EpochResult { moved_bytes, ..EpochResult::default() };
        feed["epochs"] = json!([epoch]);
        change(&mut feed);
        serde_json::from_value(feed).unwrap()
    }

    #[test]
    fn parts_of_the_accelerators_time_are_all_of_it() {
        let plan = jobs::job(LINES).feed.unwrap();
        let of = |found: &FeedResult| parts_of(&plan, found.time());
        let whole = "10.0 % computation, 3.0 % stalls, 65.0 % the wait for the first batch, 22.0 % \
                     waits for other accelerators";
        assert_eq!(of(&feed(0, |_| ())), whole);
        let one = feed(0, |_| ());
        let first = "10.0 % computation, 80.0 % the wait for the first batch, 10.0 % waits for \
                     other accelerators";
        assert_eq!(parts_of(&plan, one.time_of(&one.accelerators[0])), first);
        // Records of before had the longest wait for a first batch alone.
        let old = feed(0, |feed| {
            for nth in 0..2 {
                feed["accelerators"][nth].as_object_mut().unwrap().remove("first_batch_ns");
            }
        });
        let rest = "10.0 % computation, 3.0 % stalls, 87.0 % the wait for the first batch and for \
                    other accelerators";
        assert_eq!(of(&old), rest);
        // Three thirds are 100 %.
        let thirds = feed(0, |feed| {
            feed["span_ns"] = json!(30_000_000);
            feed["accelerators"][0]["first_batch_ns"] = json!(10_000_000);
            feed["accelerators"][0]["stall_ns"] = json!(10_000_000);
        });
        let words = parts_of(&plan, thirds.time_of(&thirds.accelerators[0]));
        assert!(words.contains("33.3 % ") && words.contains("33.4 % "), "{words}");
    }

    /// Accelerators that were faster than asked have no storage that is too slow for slower ones;
    /// one that is fast enough for them is.
    #[test]
    fn shorter_computations_prove_no_slow_storage() {
        let plan = jobs::job(LINES).feed.unwrap();
        let judged = |compute_ns: u64, utilisation: f64| {
            let found = feed(0, |feed| {
                feed["steps"] = json!(200);
                feed["utilisation_percent"] = json!(utilisation);
                feed["stall_ns"] = json!(60_000_000);
                for nth in 0..2 {
                    feed["accelerators"][nth]["compute_ns"] = json!(compute_ns);
                }
            });
            judge(&plan, &found, (Some(Source::Storage), 0.0), &Beside::default())
        };
        assert_eq!(judged(9_100_000, 60.0), FastEnough::No(None));
        let why = "the sleeps took 27 % shorter than asked".to_owned();
        assert_eq!(judged(7_300_000, 60.0), FastEnough::Unknown(why));
        assert_eq!(judged(7_300_000, 95.0), FastEnough::Yes);
    }

    /// A drive that is busy with this run alone, and far too slow, is too slow whoever took the
    /// processors; one that is nearly fast enough may have waited for them.
    #[test]
    fn a_busy_drive_that_is_far_too_slow_needs_no_idle_processors() {
        let plan = jobs::job(LINES).feed.unwrap();
        let judged = |moved, own_busy_percent| {
            let doubt = Some("others took the CPUs".to_owned());
            let beside = Beside { doubt, own_busy_percent, ..Beside::default() };
            judge(&plan, &feed(moved, |_| ()), (Some(Source::Storage), 0.0), &beside)
        };
        let unknown = FastEnough::Unknown("others took the CPUs".to_owned());
        assert_eq!(judged(8_000_000, None), unknown);
        assert_eq!(judged(12_000_000, Some(99.0)), unknown);
        let why = "the drive was busy for 99.0 % of the time, with at least 90 % of its bytes \
                   this run's, and gave 44 % of the rate that is needed";
        assert_eq!(judged(8_000_000, Some(99.0)), FastEnough::No(Some(why.to_owned())));
    }

    /// Six steps, of which four were read ahead, hide a storage of half the rate; as many more show
    /// it, and a rate that is enough needs none.
    #[test]
    fn batches_that_were_read_ahead_are_no_proof_of_storage() {
        let mut plan = jobs::job(LINES).feed.unwrap();
        (plan.readers, plan.prefetch) = (4, 1);
        let judged = |steps: u64, rate| {
            let found = feed(0, |feed| {
                feed["steps"] = json!(2 * steps);
                feed["utilisation_percent"] = json!(99.7);
            });
            let beside = Beside { rate, ..Beside::default() };
            judge(&plan, &found, (Some(Source::Storage), 0.0), &beside)
        };
        let FastEnough::Unknown(why) = judged(6, Some(100e6)) else { panic!() };
        let words = "4 of an accelerator's 6 batches may be read ahead of the steps, and all of \
                     them at ";
        assert!(why.starts_with(words), "{why}");
        assert!(matches!(judged(6, None), FastEnough::Unknown(_)));
        assert_eq!(judged(6, Some(181e6)), FastEnough::Yes);
        assert_eq!(judged(42, Some(100e6)), FastEnough::Yes);
    }

    /// The mean of few samples is not that of their distribution.
    #[test]
    fn what_is_needed_is_of_the_samples_that_were_read() {
        let plan = jobs::job(LINES).feed.unwrap();
        let needed = |once| {
            let found = feed(0, |feed| {
                feed["epochs"][0]["once"] = json!(once);
                feed["epochs"][0]["read_bytes"] = json!(2_400_000);
            });
            found.needed_bytes_per_s(&plan).unwrap()
        };
        assert!((needed(20) - 240e6).abs() < 1.0 && (needed(0) - 200e6).abs() < 1.0);
    }

    #[test]
    fn a_drive_is_this_runs_where_its_bytes_are() {
        let text = include_str!("../tests/report/compare/fixtures/staged_on_software_gpu.json");
        let mut record: Value = serde_json::from_str(text).unwrap();
        let storage = json!([{
            "device": "vda", "volatile_cache": null, "reads": 1, "read_bytes": 1000, "writes": 0,
            "write_bytes": 0,
        }]);
        record["jobs"][0]["cache"]["storage"] = storage;
        record["jobs"][0]["cache"]["process_write_bytes"] = json!(0);
        record["jobs"][0]["last_done_ns"] = json!(2_000_000_000_u64);
        let busy = json!({"key": "busy_percent", "whole": 99.0, "values": [99.0]});
        let device = json!({"probe": "block", "device": "vda", "figures": [busy]});
        let group = json!({"group": 0, "ends_ns": [2_000_000_000_u64], "devices": [device]});
        record["watched"] =
            json!({"interval_ns": 1_000_000_000, "samples": 2, "cpu_ns": 0, "groups": [group]});
        let percent = |place: &str, value: Value| {
            let mut record = record.clone();
            record["jobs"][0]["cache"]["process_read_bytes"] = json!(950);
            *record.pointer_mut(place).unwrap_or_else(|| panic!("no {place}")) = value;
            let record: Record = serde_json::from_value(record).unwrap();
            own_busy_percent(&record, &record.jobs[0])
        };
        assert_eq!(percent("/jobs/0/cache/process_read_bytes", json!(950)), Some(99.0));
        for (place, value) in [
            ("/jobs/0/cache/process_read_bytes", json!(890)),
            ("/jobs/0/cache/process_read_bytes", Value::Null),
            ("/jobs/0/last_done_ns", json!(999_999_999)),
            ("/watched/groups/0/devices/0/figures/0/whole", json!(94.0)),
            ("/watched/groups/0/devices/0/device", json!("vdb")),
        ] {
            assert_eq!(percent(place, value), None, "{place}");
        }
    }
}
