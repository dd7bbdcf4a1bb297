//! From what workers brought home to a job's result.

use gpuio_record::{
    CacheReading, CpuScope, DirectMode, DirectionResult, EndedHow, EngineGot, FileLegCounters,
    GpuResult, JobPlan, JobResult, Latency, Point, RunTotals, Steady, ViaResult, WorkerResult,
};
use gpuio_stat::{Histogram, Tally};

use super::failures::Failures;
use super::gate::FirstDone;
use super::rusage::Usage;
use super::verify::Findings;
use super::worker::{Outcome, Ready};

/// Everything known of a job that ran.
pub(super) struct JobParts<'a> {
    pub(super) job: &'a JobPlan,
    pub(super) ready: Vec<Ready>,
    pub(super) outcomes: Vec<Outcome>,
    pub(super) series: Vec<Point>,
    pub(super) steady: Option<Steady>,
    pub(super) cache: CacheReading,
    pub(super) first: &'a FirstDone,
    /// Whether a worker came home without an outcome.
    pub(super) lost: bool,
}

pub(super) fn job(parts: JobParts<'_>) -> JobResult {
    let JobParts { job, ready, outcomes, series, steady, cache, first, lost } = parts;
    let last_done_ns = outcomes.iter().map(|outcome| outcome.done_ns).max().unwrap_or(0);
    let first_done_ns = outcomes.iter().map(|outcome| outcome.done_ns).min().unwrap_or(0);
    let ended = ended(&outcomes, lost);
    let mut reads = Tally::default();
    let mut writes = Tally::default();
    let mut usage = Usage::default();
    let mut failures = Failures::default();
    let mut findings: Option<Findings> = None;
    let mut file_leg = FileLegCounters::default();
    let mut between_ios_ns = 0;
    let mut workers = Vec::with_capacity(outcomes.len());
    let mut via: Option<ViaResult> = None;
    for outcome in outcomes {
        add_via(&mut via, outcome.via.as_ref());
        workers.push(WorkerResult {
            thread: outcome.thread,
            bytes: outcome.reads.bytes + outcome.writes.bytes,
            ios: outcome.reads.ios + outcome.writes.ios,
            done_ns: outcome.done_ns,
        });
        reads.merge(&outcome.reads);
        writes.merge(&outcome.writes);
        usage.add(&outcome.usage);
        count_leg(&mut file_leg, &outcome.file_leg);
        failures.merge(outcome.failures);
        between_ios_ns += outcome.between_ns;
        match (&mut findings, outcome.findings) {
            (Some(all), Some(more)) => all.merge(more),
            (none, more) => *none = none.take().or(more),
        }
    }
    let bytes = reads.bytes + writes.bytes;
    let failed = failures.total;
    JobResult {
        name: job.name.clone(),
        group: job.group,
        ended,
        read: direction(&reads, last_done_ns),
        write: direction(&writes, last_done_ns),
        first_done_ns,
        first_done_bytes: first.get().map_or(bytes, |(_, bytes)| bytes),
        last_done_ns,
        cpu: usage.cost(CpuScope::Threads, last_done_ns, bytes),
        engine: engines(&ready),
        file_leg,
        direct_got: direct(&ready),
        cache,
        proof: None,
        failures: failures.into_record(job),
        failed,
        verify: findings.map(|findings| findings.into_record(job)),
        between_ios_ns,
        steady,
        series,
        gpus: gpus(job, &workers),
        workers,
        via,
    }
}

fn ended(outcomes: &[Outcome], lost: bool) -> EndedHow {
    if lost || outcomes.iter().any(|outcome| outcome.gave_up) {
        EndedHow::Failed
    } else if outcomes.iter().any(|outcome| outcome.interrupted) {
        EndedHow::Interrupted
    } else {
        EndedHow::Complete
    }
}

/// What the workers of each GPU moved, in the plan's order, each GPU once.
fn gpus(job: &JobPlan, workers: &[WorkerResult]) -> Vec<GpuResult> {
    let mut all: Vec<GpuResult> = Vec::new();
    for gpu in &job.gpus {
        if all.iter().all(|one| one.index != gpu.index) {
            all.push(GpuResult { index: gpu.index, bytes: 0, ios: 0 });
        }
    }
    for worker in workers {
        let plan = job.workers.iter().find(|plan| plan.thread == worker.thread);
        let gpu = plan.and_then(|plan| job.gpus.get(plan.gpu? as usize));
        let mine = gpu.and_then(|gpu| all.iter_mut().find(|one| one.index == gpu.index));
        if let Some(mine) = mine {
            mine.bytes += worker.bytes;
            mine.ios += worker.ios;
        }
    }
    all
}

fn add_via(sum: &mut Option<ViaResult>, from: Option<&ViaResult>) {
    let Some(from) = from else { return };
    let Some(sum) = sum else {
        *sum = Some(from.clone());
        return;
    };
    sum.through_host |= from.through_host;
    for (sum, from) in [(&mut sum.read, &from.read), (&mut sum.write, &from.write)] {
        sum.host_near_bytes += from.host_near_bytes;
        sum.near_far_bytes += from.near_far_bytes;
    }
}

fn count_leg(sum: &mut FileLegCounters, from: &FileLegCounters) {
    sum.read_ios += from.read_ios;
    sum.read_bytes += from.read_bytes;
    sum.write_ios += from.write_ios;
    sum.write_bytes += from.write_bytes;
    sum.short_ios += from.short_ios;
    sum.faults += from.faults;
}

#[expect(clippy::cast_precision_loss, reason = "a rate needs no 64 bits")]
fn per_second(count: u64, elapsed_ns: u64) -> f64 {
    if elapsed_ns == 0 { 0.0 } else { count as f64 * 1e9 / elapsed_ns as f64 }
}

fn direction(tally: &Tally, elapsed_ns: u64) -> DirectionResult {
    DirectionResult {
        ios: tally.ios,
        bytes: tally.bytes,
        failed: tally.failed,
        bytes_per_s: per_second(tally.bytes, elapsed_ns),
        iops: per_second(tally.ios, elapsed_ns),
        latency: tally.legs.total.summary().map(|total| Latency {
            queue: tally.legs.queue.summary(),
            file: tally.legs.file.summary(),
            gpu: tally.legs.gpu.summary(),
            total,
        }),
        of_ceiling: None,
    }
}

fn engines(ready: &[Ready]) -> Vec<EngineGot> {
    let mut all: Vec<EngineGot> = Vec::new();
    for one in ready {
        let same =
            |got: &&mut EngineGot| got.got == one.engine_got && got.steps_down == one.steps_down;
        match all.iter_mut().find(same) {
            Some(got) => got.workers += 1,
            None => all.push(EngineGot {
                got: one.engine_got.clone(),
                steps_down: one.steps_down.clone(),
                workers: 1,
            }),
        }
    }
    all
}

fn direct(ready: &[Ready]) -> DirectMode {
    let all = !ready.is_empty() && ready.iter().all(|one| one.direct == DirectMode::Direct);
    if all { DirectMode::Direct } else { DirectMode::Buffered }
}

/// All jobs of a group. Rates are over the time of its slowest job; latencies are those of all
/// I/Os together.
pub(super) fn total(jobs: &[JobPlan], results: &[JobResult], usage: &Usage) -> RunTotals {
    let last_done_ns = results.iter().map(|job| job.last_done_ns).max().unwrap_or(0);
    let first_done_ns = results.iter().map(|job| job.first_done_ns).min().unwrap_or(0);
    let read = sum(results.iter().map(|job| &job.read), last_done_ns);
    let write = sum(results.iter().map(|job| &job.write), last_done_ns);
    // The process was also busy during ramps and start delays, whose bytes do not count.
    let before = jobs.iter().map(|job| job.ramp_ns + job.start_delay_ns).max().unwrap_or(0);
    let mut cpu = usage.cost(CpuScope::Process, last_done_ns + before, read.bytes + write.bytes);
    if before > 0 {
        cpu.us_per_mib = None;
    }
    RunTotals {
        group: jobs.first().map_or(0, |job| job.group),
        read,
        write,
        first_done_ns,
        last_done_ns,
        cpu,
    }
}

fn sum<'a>(
    parts: impl Iterator<Item = &'a DirectionResult> + Clone,
    elapsed_ns: u64,
) -> DirectionResult {
    let add = |of: fn(&DirectionResult) -> u64| parts.clone().map(of).sum::<u64>();
    let (ios, bytes, failed) = (add(|d| d.ios), add(|d| d.bytes), add(|d| d.failed));
    let mut legs: [Histogram; 4] = Default::default();
    for latency in parts.clone().filter_map(|part| part.latency.as_ref()) {
        let all = [&latency.queue, &latency.file, &latency.gpu, &Some(latency.total.clone())];
        for (leg, summary) in legs.iter_mut().zip(all) {
            if let Some(summary) = summary {
                leg.merge(&Histogram::from_summary(summary));
            }
        }
    }
    let [queue, file, gpu, total] = legs;
    DirectionResult {
        ios,
        bytes,
        failed,
        bytes_per_s: per_second(bytes, elapsed_ns),
        iops: per_second(ios, elapsed_ns),
        latency: total.summary().map(|total| Latency {
            queue: queue.summary(),
            file: file.summary(),
            gpu: gpu.summary(),
            total,
        }),
        of_ceiling: None,
    }
}
