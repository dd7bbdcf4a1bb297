//! Files, bytes and time of a whole plan.

use std::borrow::Cow;
use std::collections::BTreeMap;

use gpuio_job::workload::cover::lays_itself;
use gpuio_record::{Column, GuardNote, JobPlan, Plan, VerifyMode};

use super::comment;
use crate::number::{bytes, many, time};

/// A rate that makes a time of bytes easy to work out for another.
const EXAMPLE: u64 = 1 << 30;

/// The files of jobs. Those that follow each other use the same: a later group finds what an
/// earlier one left.
#[derive(Debug, Default)]
pub struct Files<'p>(BTreeMap<Cow<'p, str>, FileUse>);

/// A file of a plan.
#[derive(Debug)]
struct FileUse {
    length: u64,
    /// The first group that uses it.
    group: u32,
    /// Whether it is written before the clock of a group.
    made: bool,
}

impl<'p> Files<'p> {
    /// Adds those of a job, by their paths.
    pub fn add<'j>(&mut self, job: &'j JobPlan, path: impl Fn(&'j str) -> Cow<'p, str>) {
        let laid_out = job.engine.actual != "null" && !lays_itself(job);
        for target in &job.targets {
            let (length, group) = (target.length_bytes, job.group);
            let made = laid_out && matches!(target.guard, GuardNote::Make | GuardNote::Remake);
            let file = self.0.entry(path(&target.path));
            let file = file.or_insert(FileUse { length, group, made });
            file.made |= made && (group == file.group || length > file.length);
            file.length = length.max(file.length);
        }
    }

    /// Bytes of the files that are written before a clock starts.
    pub fn made(&self) -> u64 {
        self.sum(|file| file.made)
    }

    /// Bytes of all of them.
    pub fn bytes(&self) -> u64 {
        self.sum(|_| true)
    }

    fn sum(&self, of: impl Fn(&FileUse) -> bool) -> u64 {
        self.0.values().filter(|file| of(file)).map(|file| file.length).fold(0, u64::saturating_add)
    }
}

/// Comments: the files and what is written before the clock starts; how long it runs; and what
/// takes time before and after it.
pub(super) fn write(out: &mut String, plan: &Plan) {
    let mut files = Files::default();
    plan.jobs.iter().for_each(|job| files.add(job, Cow::Borrowed));
    if !files.0.is_empty() {
        out.push('\n');
        let made = match files.made() {
            0 => "none is written before the clock starts".to_owned(),
            made => format!("{} before the clock starts, {}", written(made), at_example(made)),
        };
        let count = many(files.0.len() as u64, "file");
        comment(out, &format!("in all: {count}, {}; {made}", bytes(files.bytes())));
    }
    comment(out, &format!("time: {}", duration(plan)));
    let all = plan.jobs.iter().map(verified).fold(0, u64::saturating_add);
    if all > 0 {
        let time = at_example(all);
        comment(out, &format!("after the clocks: {}, {time}", verified_words(all)));
    }
}

/// `2.00 GiB are written`.
pub fn written(made: u64) -> String {
    format!("{} are written", bytes(made))
}

/// `2.00 GiB at most are verified`.
pub fn verified_words(all: u64) -> String {
    format!("{} at most are verified", bytes(all))
}

/// Bytes that are verified after the clock at most, and written anew for it.
pub fn verified(job: &JobPlan) -> u64 {
    let passes = match job.verify {
        VerifyMode::Off | VerifyMode::Inline => 0,
        VerifyMode::Rewrite if job.read_percent < 100 => 2,
        VerifyMode::Pass | VerifyMode::Rewrite => 1,
    };
    let all = job.targets.iter().map(|target| target.length_bytes);
    all.fold(0, u64::saturating_add).saturating_mul(passes)
}

/// `2.00 s at 1.00 GiB/s`.
pub fn at_example(moved: u64) -> String {
    format!("{} at {}/s", time(example_of(moved)), bytes(EXAMPLE))
}

/// Nanoseconds that so many bytes take at 1 GiB/s.
pub fn example_of(moved: u64) -> u64 {
    let ns = u128::from(moved) * 1_000_000_000 / u128::from(EXAMPLE);
    u64::try_from(ns).unwrap_or(u64::MAX)
}

/// The time of a plan's jobs at 1 GiB/s, in nanoseconds; `None` where their bytes are not known.
#[must_use]
pub fn example_ns(plan: &Plan) -> Option<u64> {
    Some(known_ns(plan).saturating_add(example_of(moved_without_limit(plan)?)))
}

/// Bytes of the jobs that have no limit of time.
fn moved_without_limit(plan: &Plan) -> Option<u64> {
    let open = plan.jobs.iter().filter(|job| job.stop.runtime_ns.is_none());
    open.map(moved).try_fold(0, |sum: u64, moved| Some(sum.saturating_add(moved?)))
}

/// The sum over the groups, which run one after the other, of the longest time of a job.
fn sum_of_groups(plan: &Plan, of: impl Fn(&JobPlan) -> u64) -> u64 {
    let mut groups: BTreeMap<u32, u64> = BTreeMap::new();
    for job in &plan.jobs {
        let longest = groups.entry(job.group).or_default();
        *longest = of(job).max(*longest);
    }
    groups.values().copied().fold(0, u64::saturating_add)
}

/// The longest time of the clocks of a plan's jobs, in nanoseconds; `None` where a job has no limit
/// of time.
pub fn limited_ns(plan: &Plan) -> Option<u64> {
    let is_limited = |job: &JobPlan| job.stop.runtime_ns.is_some();
    plan.jobs.iter().all(is_limited).then(|| known_ns(plan))
}

/// The same without the time of the jobs that have no limit of time.
fn known_ns(plan: &Plan) -> u64 {
    sum_of_groups(plan, clock_ns)
}

/// The same of one job.
pub fn clock_ns(job: &JobPlan) -> u64 {
    let before = job.start_delay_ns.saturating_add(job.ramp_ns);
    before.saturating_add(job.stop.runtime_ns.unwrap_or(0))
}

/// Time of an accelerator's steps.
fn computing_ns(job: &JobPlan) -> u64 {
    let Some(feed) = &job.feed else { return 0 };
    let samples = feed.files.saturating_mul(feed.samples_per_file);
    let steps =
        samples.div_ceil(feed.batch_samples.max(1)).div_ceil(u64::from(feed.accelerators.max(1)));
    steps.saturating_mul(feed.epochs).saturating_mul(feed.compute_ns)
}

/// Bytes that a job moves until it ends by itself; nothing where that is not known.
fn moved(job: &JobPlan) -> Option<u64> {
    let Some(feed) = &job.feed else {
        let bytes = match job.ranges {
            Some(ranges) => ranges.bytes.checked_mul(ranges.passes),
            None => job.stop.bytes_per_thread?.checked_mul(u64::from(job.threads)),
        };
        return bytes.filter(|bytes| *bytes > 0);
    };
    let files = job.targets.iter().map(|file| file.length_bytes).fold(0, u64::saturating_add);
    let sum = |of: fn(&Column) -> bool| {
        let columns = feed.columns.iter().filter(|column| of(column));
        columns.map(|column| u64::from(column.bytes)).sum::<u64>()
    };
    let (read, all) = (sum(|column| column.read), sum(|_| true));
    let epoch = if all == 0 {
        u128::from(files)
    } else {
        u128::from(files) * u128::from(read) / u128::from(all)
    };
    u64::try_from(epoch * u128::from(feed.epochs)).ok()
}

/// The time of the groups, one after the other, in words: a limit, or what it depends on.
#[must_use]
pub fn duration(plan: &Plan) -> String {
    let known = known_ns(plan);
    if limited_ns(plan).is_some() {
        return format!("the clocks of the jobs run for {} at most", time(known));
    }
    let least = if known == 0 { String::new() } else { format!("{} and ", time(known)) };
    let computes = match sum_of_groups(plan, computing_ns) {
        0 => String::new(),
        long => format!(", or {} of computation", time(long)),
    };
    match moved_without_limit(plan) {
        Some(moved) => format!(
            "{least}as long as {} take, {}{computes}; runtime= sets a limit",
            bytes(moved),
            at_example(moved)
        ),
        None => format!("{least}as long as the data takes; runtime= sets a limit"),
    }
}
