//! From what workers returned to a job's result.

use gpuio_base::stat::{Histogram, Tally};
use gpuio_base::units::per_second;
use gpuio_io::{engine as io_engine, path as io_path};
use gpuio_record::{
    ActualEngine, CacheReading, CpuScope, DirectMode, DirectionResult, DrawnSizes, EndedHow,
    FanOutResult, FileLegCounters, FlushResult, GpuResult, InitiatedResult, JobPlan, JobResult,
    Latency, LibraryResult, MappedResult, NeverStarted, Point, Steady, TimeSpan, ViaResult,
    WorkerResult,
};

use super::failures::IoFaults;
use super::gate::FirstDone;
use super::rusage::Usage;
use super::task::Ready;
use super::verify::Findings;
use super::worker::{MappedMoved, Outcome};

/// Everything known of a job that ran.
pub(super) struct JobParts<'a> {
    pub(super) job: &'a JobPlan,
    pub(super) ready: Vec<Ready>,
    pub(super) outcomes: Vec<Outcome>,
    pub(super) series: Vec<Point>,
    pub(super) steady: Option<Steady>,
    pub(super) cache: CacheReading,
    pub(super) first: &'a FirstDone,
    /// Whether a worker returned without an outcome.
    pub(super) lost: bool,
    /// The memory mapped for it and the cost of that, on paths that map.
    pub(super) mapped: Option<MappedResult>,
    /// Whether no other job ran at the same time, so that what the process used was used for it.
    pub(super) alone: bool,
}

pub(super) fn job(parts: JobParts<'_>) -> JobResult {
    let JobParts { job, ready, outcomes, series, steady, cache, first, lost, mapped, alone } =
        parts;
    let measured = measured(&outcomes).filter(|_| !lost);
    let last_done_ns = outcomes.iter().map(done_ns).max().unwrap_or(0);
    let first_done_ns = outcomes.iter().map(done_ns).min().unwrap_or(0);
    let lacks = mapped.as_ref().is_some_and(|mapped| mapped.lost_bytes > Some(0));
    let ended = if lacks { EndedHow::Failed } else { ended(&outcomes, lost) };
    let never_started = never_started(&outcomes);
    let whole =
        outcomes.iter().all(|outcome| outcome.timed.usage_whole) && !has_unseen_threads(job);
    let process = first.process_used().filter(|_| alone && !lost);
    let mut sums = Sums::default();
    for outcome in outcomes {
        sums.add(outcome);
    }
    let cpu = whose(sums.usage, whole, process);
    let bytes = sums.reads.bytes + sums.writes.bytes;
    JobResult {
        name: job.name.clone(),
        group: job.group,
        ended,
        read: direction(&sums.reads, last_done_ns),
        write: direction(&sums.writes, last_done_ns),
        first_done_ns,
        first_done_bytes: first.get().map_or(bytes, |(_, bytes)| bytes),
        last_done_ns,
        measured,
        never_started,
        drawn_sizes: sums.drawn_sizes,
        cpu: cpu.0.cost(cpu.1, last_done_ns, bytes),
        others: None,
        others_cpu_unknown: None,
        engine: engines(&ready),
        file_leg: sums.file_leg,
        direct_actual: direct(&ready),
        cache,
        proof: None,
        failed: sums.failures.total,
        failures: sums.failures.into_record(job),
        verify: sums.findings.map(|findings| findings.into_record(job, sums.file_leg.write_bytes)),
        between_ios_ns: sums.between_ios_ns,
        flushes: job.flush.map(|_| flushes(&sums.flushed)),
        steady,
        stonewall: measured.and_then(|span| first.wall.result(span.begin_ns)),
        series,
        gpus: gpus(job, &sums.workers),
        workers: sums.workers,
        via: sums.via,
        fan_out: sums.fan_out.map(|sum| fan_out(sum, &sums.reads, last_done_ns)),
        library: sums.library,
        mapped: mapped.map(|mapped| MappedResult {
            by_kernel_bytes: sums.mapped[0].0,
            by_copy_bytes: sums.mapped[0].1,
            written_by_kernel_bytes: sums.mapped[1].0,
            written_by_copy_bytes: sums.mapped[1].1,
            ..mapped
        }),
        initiated: sums.initiated,
        beside: None,
        feed: None,
        replay: None,
    }
}

/// The sums over the workers of a job.
#[derive(Default)]
struct Sums {
    reads: Tally,
    writes: Tally,
    usage: Usage,
    failures: IoFaults,
    drawn_sizes: Option<DrawnSizes>,
    findings: Option<Findings>,
    file_leg: FileLegCounters,
    between_ios_ns: u64,
    flushed: Histogram,
    workers: Vec<WorkerResult>,
    via: Option<ViaResult>,
    fan_out: Option<FanOutResult>,
    library: Option<LibraryResult>,
    /// Bytes that the GPU read out of mappings and wrote into them.
    mapped: [MappedMoved; 2],
    initiated: Option<InitiatedResult>,
}

impl Sums {
    fn add(&mut self, outcome: Outcome) {
        self.workers.push(WorkerResult {
            thread: outcome.thread,
            bytes: outcome.timed.reads.bytes + outcome.timed.writes.bytes,
            ios: outcome.timed.reads.ios + outcome.timed.writes.ios,
            done_ns: done_ns(&outcome),
        });
        add_via(&mut self.via, outcome.legs.via.as_ref());
        add_fan_out(&mut self.fan_out, outcome.legs.fan_out);
        if let Some(library) = outcome.legs.library {
            *self.library.get_or_insert_default() += library;
        }
        for (sum, one) in self.mapped.iter_mut().zip(outcome.legs.mapped) {
            (sum.0, sum.1) = (sum.0 + one.0, sum.1 + one.1);
        }
        if let Some(one) = outcome.legs.initiated {
            let all = self.initiated.get_or_insert_default();
            all.entries += one.entries;
            all.commands += one.commands;
            all.rings += one.rings;
        }
        self.file_leg += outcome.legs.file;
        self.reads.merge(&outcome.timed.reads);
        self.writes.merge(&outcome.timed.writes);
        self.usage.add(&outcome.timed.usage);
        self.failures.merge(outcome.timed.failures);
        self.between_ios_ns += outcome.timed.between_ns;
        self.flushed.merge(&outcome.timed.flushed);
        if let Some(one) = outcome.timed.drawn_sizes {
            *self.drawn_sizes.get_or_insert_default() += one;
        }
        match (&mut self.findings, outcome.findings) {
            (Some(all), Some(more)) => all.merge(more),
            (none, more) => *none = none.take().or(more),
        }
    }
}

/// From the end of the ramp until the worker's last I/O was back, in nanoseconds.
fn done_ns(outcome: &Outcome) -> u64 {
    outcome.timed.counted.1.saturating_sub(outcome.timed.counted.0)
}

/// From the end of the ramp until the last I/O was back. Workers of a job share its ramp.
fn measured(outcomes: &[Outcome]) -> Option<TimeSpan> {
    let begin_ns = outcomes.iter().map(|outcome| outcome.timed.counted.0).min()?;
    let end_ns = outcomes.iter().map(|outcome| outcome.timed.counted.1).max()?;
    Some(TimeSpan { begin_ns, end_ns })
}

fn never_started(outcomes: &[Outcome]) -> Option<NeverStarted> {
    let all = outcomes.iter().filter_map(|outcome| outcome.timed.never_started);
    all.reduce(|sum, one| NeverStarted {
        ios: sum.ios.saturating_add(one.ios),
        longest_wait_ns: sum.longest_wait_ns.max(one.longest_wait_ns),
    })
}

/// The reported CPU time and its scope: all of its own threads, the process's, or a part.
fn whose(own: Usage, whole: bool, process: Option<Usage>) -> (Usage, CpuScope) {
    match (whole, process) {
        (true, _) => (own, CpuScope::AllThreads),
        (false, Some(process)) => (process, CpuScope::Process),
        (false, None) => (own, CpuScope::Threads),
    }
}

/// Whether threads may work for the job that are neither its workers nor its engine's: those of the
/// kernel's io_uring, of the CUDA driver, of the software GPU, of cuFile, and of gpuio's library
/// core, which all of the process share.
fn has_unseen_threads(job: &JobPlan) -> bool {
    let path = io_path::find(&job.path.choice.actual);
    let engine = io_engine::find(&job.engine.actual);
    path.is_none_or(|path| path.info.needs_gpu || !path.info.uses_engine())
        || engine.is_none_or(|engine| engine.info.unseen_threads)
}

fn ended(outcomes: &[Outcome], lost: bool) -> EndedHow {
    if lost || outcomes.iter().any(|outcome| outcome.timed.gave_up) {
        EndedHow::Failed
    } else if outcomes.iter().any(|outcome| outcome.timed.interrupted) {
        EndedHow::Interrupted
    } else {
        EndedHow::Complete
    }
}

/// The bytes that the workers of each GPU moved, in the plan's order, each GPU once.
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
    *sum += from;
}

fn add_fan_out(sum: &mut Option<FanOutResult>, from: Option<FanOutResult>) {
    let Some(from) = from else { return };
    let sum = sum.get_or_insert_default();
    sum.gpus = from.gpus;
    sum.through_host |= from.through_host;
    sum.from_host_bytes += from.from_host_bytes;
    sum.between_gpus_bytes += from.between_gpus_bytes;
}

/// With what was placed: each block that was read, in each of the GPUs.
fn fan_out(sum: FanOutResult, reads: &Tally, elapsed_ns: u64) -> FanOutResult {
    let placed_bytes = reads.bytes * u64::from(sum.gpus);
    let placed_bytes_per_s = per_second(placed_bytes, elapsed_ns);
    FanOutResult { placed_bytes, placed_bytes_per_s, ..sum }
}

pub(super) fn direction(tally: &Tally, elapsed_ns: u64) -> DirectionResult {
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

fn flushes(flushed: &Histogram) -> FlushResult {
    FlushResult { calls: flushed.count(), ns: flushed.sum(), latency: flushed.summary() }
}

pub(super) fn engines(ready: &[Ready]) -> Vec<ActualEngine> {
    let mut all: Vec<ActualEngine> = Vec::new();
    for one in ready {
        let same = |other: &&mut ActualEngine| {
            other.actual == one.actual_engine && other.steps_down == one.steps_down
        };
        match all.iter_mut().find(same) {
            Some(other) => other.workers += 1,
            None => all.push(ActualEngine {
                actual: one.actual_engine.clone(),
                steps_down: one.steps_down.clone(),
                workers: 1,
            }),
        }
    }
    all
}

pub(super) fn direct(ready: &[Ready]) -> DirectMode {
    let all = !ready.is_empty() && ready.iter().all(|one| one.direct == DirectMode::Direct);
    if all { DirectMode::Direct } else { DirectMode::Buffered }
}
