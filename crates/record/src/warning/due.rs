//! Warnings that follow from a job's plan and its result alone.

use gpuio_base::stat::enough_for;
use gpuio_base::units::float;

use super::{SHORT_NS, WarningKind};
use crate::direction::DirectionResult;
use crate::order::Order;
use crate::plan::{DirectMode, GuardNote, JobPlan, VerifyMode};
use crate::result::{DrawnSizes, JobResult};
use crate::verification::{VerifyOutcome, VerifySubject};

impl WarningKind {
    /// Those that a job must have.
    pub fn due(job: &JobPlan, result: &JobResult) -> Vec<WarningKind> {
        let mut kinds = Vec::new();
        engine(job, result, &mut kinds);
        load(job, result, &mut kinds);
        kinds.extend(remade(job, result));
        for worker in &job.workers {
            // Near is to be what the bytes meet first.
            let own = || worker.gpu.and_then(|at| job.gpus.get(at as usize));
            let gpu = job.via.as_ref().map(|via| &via.gpu).or_else(own);
            if let (Some(gpu), Some(worker_node)) = (gpu, worker.numa_node)
                && let Some(gpu_node) = gpu.numa_node.filter(|node| *node != worker_node)
            {
                kinds.push(WarningKind::FarFromGpu { gpu: gpu.index, worker_node, gpu_node });
                break;
            }
        }
        kinds.extend(job.notes.iter().map(|note| WarningKind::Note { note: note.clone() }));
        kinds
    }
}

/// Files that reads verify, though this run wrote them anew before.
fn remade(job: &JobPlan, result: &JobResult) -> Option<WarningKind> {
    let files = job.targets.iter().filter(|one| one.guard == GuardNote::Remake).count() as u64;
    let of_reads = |found: &VerifyOutcome| {
        matches!(found.subject, VerifySubject::Reads | VerifySubject::ReadsAndWrites)
    };
    let verifies = result.verify.as_ref().is_some_and(of_reads);
    (files > 0 && verifies).then_some(WarningKind::RemadeBeforeVerification { files })
}

fn engine(job: &JobPlan, result: &JobResult, kinds: &mut Vec<WarningKind>) {
    // A pool's threads block on buffered files by design, and are counted as such.
    let queues = matches!(job.engine.actual.as_str(), "libaio" | "io_uring");
    if queues && job.direct == DirectMode::Buffered {
        let engine = job.engine.actual.clone();
        kinds.push(WarningKind::AsyncEngineOnBufferedFile { engine });
    }
    for engine in result.engine.iter().filter(|engine| !engine.steps_down.is_empty()) {
        kinds.push(WarningKind::EngineSteppedDown {
            requested: job.engine.actual.clone(),
            actual: engine.actual.clone(),
            why: engine.steps_down.clone(),
        });
    }
    if let Some(inject) = &job.inject {
        let made = result.file_leg.injected;
        let after = result.verify.as_ref().map(|found| found.injected).unwrap_or_default();
        let missing = (made + after).missing(inject);
        kinds.push(WarningKind::FaultsInjected { inject: inject.clone(), made, after, missing });
    }
}

/// Whether more time alone would not make the job longer. Beside a time, bytes end it only where
/// all of them were moved.
fn ended_by_bytes(job: &JobPlan, result: &JobResult) -> bool {
    job.stop.bytes_per_thread.is_some_and(|most| {
        let all = most.saturating_mul(job.threads.into());
        job.stop.runtime_ns.is_none() || result.read.bytes + result.write.bytes >= all
    })
}

fn load(job: &JobPlan, result: &JobResult, kinds: &mut Vec<WarningKind>) {
    let ios = result.read.ios.saturating_add(result.write.ios);
    let elapsed_ns = result.last_done_ns;
    // A feed is as long as its epochs are, and its steps stand in its rules. So is a replay.
    let of_files = job.ranges.is_some();
    let has_length = job.feed.is_none() && job.replay.is_none();
    let has_failed = result.failed > 0;
    if has_length && !has_failed && ios > 0 && (elapsed_ns < SHORT_NS || !enough_for(0.99, ios)) {
        let of_bytes = !of_files && ended_by_bytes(job, result);
        let bytes_of = job.bytes_of.filter(|_| of_bytes);
        kinds.push(WarningKind::RunTooShort { elapsed_ns, ios, of_files, of_bytes, bytes_of });
    }
    if let Some(drawn) = result.drawn_sizes.filter(|drawn| drawn.cut_ios > 0) {
        let DrawnSizes { ios, cut_ios, drawn_bytes, bytes } = drawn;
        let random = matches!(job.order, Order::Random { .. });
        kinds.push(WarningKind::BlocksCut { ios, cut_ios, drawn_bytes, bytes, random });
    }
    // Readers of a feed end as their last batch is taken, recorded threads as they did.
    if has_length && elapsed_ns > SHORT_NS && result.first_done_ns < elapsed_ns / 10 * 9 {
        let (first_done_ns, last_done_ns) = (result.first_done_ns, elapsed_ns);
        kinds.push(WarningKind::UnevenFinish { first_done_ns, last_done_ns, of_files });
    }
    if let Some((requested, steady)) = job.steady.as_ref().zip(result.steady)
        && steady.attained_at_ns.is_none()
    {
        kinds.push(WarningKind::NotSteady {
            requested: requested.requested.clone(),
            observed: steady.observed,
        });
    }
    let reached = job.share_of_due(result).filter(|share| elapsed_ns > 0 && *share < 0.95);
    // I/Os that failed are no queue, and their errors say what to do.
    let reached = reached.filter(|_| !has_failed);
    kinds.extend(reached.map(|reached| WarningKind::RateNotReached { reached }));
    if let Some(never) = result.never_started.filter(|never| never.matters(job.threads)) {
        let (ios, longest_wait_ns) = (never.ios, never.longest_wait_ns);
        let completed = result.read.ios.saturating_add(result.write.ios);
        let sides = [&result.read, &result.write];
        let largest = |side: &&DirectionResult| Some(side.latency.as_ref()?.total.max_ns);
        let max_ns = sides.iter().filter_map(largest).max();
        kinds.push(WarningKind::NeverStarted { ios, completed, longest_wait_ns, max_ns });
    }
    let feed = job.feed.as_ref().zip(result.feed.as_ref());
    let off = feed.and_then(|(plan, found)| found.computed_off_percent(plan));
    kinds.extend(off.map(|percent| match percent > 0.0 {
        true => WarningKind::ComputeOverran { percent },
        false => WarningKind::ComputeFellShort { percent: -percent },
    }));
    if result.between_ios_ns > 0 {
        let time = float(elapsed_ns) * worked(job, result);
        let share = (float(result.between_ios_ns) / time.max(1.0)).min(1.0);
        let between_ns = result.between_ios_ns;
        if job.own_verification && !job.refill {
            let note = own_verification(share);
            kinds.extend(note.map(|note| WarningKind::Note { note }));
        } else if job.replay.is_some() {
            let note = format!(
                "the replay generated or checked data between the I/Os for {:.1} % of its threads' \
                 time: outside their latencies, inside the rates' time; no flag leaves it out",
                share * 100.0
            );
            kinds.push(WarningKind::Note { note });
        } else if job.works_between_ios() && share >= LEAST_SHARE {
            let inline = job.verify == VerifyMode::Inline;
            kinds.push(WarningKind::WorkBetweenIos {
                between_ns,
                share,
                fio_headers: job.fio_headers,
                reads: inline && job.read_percent > 0,
                writes: (inline && job.read_percent < 100) || job.reads_writes_back(),
                refill: job.refill,
            });
        }
    }
}

/// Workers that did I/O: those without had nothing to work on between I/Os. All of them where no
/// I/O completed.
fn worked(job: &JobPlan, result: &JobResult) -> f64 {
    let worked = result.workers.iter().filter(|worker| worker.ios > 0).count();
    float(if worked > 0 { worked as u64 } else { u64::from(job.threads) })
}

/// A share of the workers' time from which on it is said what work between I/Os costs.
const LEAST_SHARE: f64 = 0.01;

/// The cost of verification that was not requested: the rate without it lies between the one shown
/// and one that is higher by so much, since I/Os are in flight meanwhile.
fn own_verification(share: f64) -> Option<String> {
    let more = share / (1.0 - share.min(0.99)) * 100.0;
    (share >= LEAST_SHARE).then(|| {
        format!(
            "to verify the writes, gpuio generated their data between the I/Os: outside their \
             latencies, inside the time of the rate, which would be up to {more:.0} % higher \
             without (--verify=off)"
        )
    })
}
