//! Warnings about a group's numbers.

use crate::evidence::warn as evidence;
use gpuio_base::stat::enough_for;
use gpuio_io::clock::stops::Stops;
use gpuio_io::path;
use gpuio_record::facts::HostFacts;
use gpuio_record::{
    DirectMode, DirectionResult, JobPlan, JobResult, Order, Region, SHORT_NS, ThreadsOf,
    VerifyMode, Warning, WarningKind,
};

use gpuio_job::plan::REFUSES_DIRECT;

/// The warnings of a group's jobs; `found` is where counters disagree with what they moved, each
/// with the index of its job or none.
pub(super) fn group(
    jobs: &[JobPlan],
    results: &[JobResult],
    host: &HostFacts,
    found: Vec<(Option<usize>, WarningKind)>,
) -> Vec<Warning> {
    let mut all = Vec::new();
    for (at, (job, result)) in jobs.iter().zip(results).enumerate() {
        let of_job = |(about, kind): &(Option<usize>, WarningKind)| {
            (*about == Some(at)).then(|| kind.clone())
        };
        let kinds = found.iter().filter_map(of_job).chain(one(job, result, host));
        all.extend(kinds.map(|kind| named(Some(&job.name), kind)));
    }
    let of_all = found.into_iter().filter(|(about, _)| about.is_none());
    // Alone in its group, a job is what the devices' counts are about.
    let alone = if let [job] = jobs { Some(job.name.as_str()) } else { None };
    all.extend(of_all.map(|(_, kind)| named(alone, kind)));
    let threads: u32 = jobs.iter().map(|job| job.threads).sum();
    let cpus = host.cpu.allowed.as_ref().map(Vec::len).and_then(|n| u32::try_from(n).ok());
    if let Some(cpus) = cpus.filter(|cpus| threads > *cpus) {
        let of = if jobs.iter().all(|job| job.feed.is_some()) {
            ThreadsOf::Feed
        } else if jobs.iter().all(|job| job.replay.is_some()) {
            ThreadsOf::Trace
        } else {
            ThreadsOf::Job
        };
        all.push(named(None, WarningKind::MoreThreadsThanCpus { threads, cpus, of }));
    }
    if jobs.iter().any(|job| job.gpus.iter().any(|gpu| gpu.software)) {
        all.push(named(None, WarningKind::SoftwareGpu));
    }
    all
}

/// The warning about stops of the process while a group ran.
pub(super) fn stops(stops: Stops, left_out_ios: u64) -> Option<Warning> {
    let Stops { count, stopped_ns, suspended_ns } = stops;
    (count > 0).then(|| {
        named(None, WarningKind::Stopped { stopped_ns, suspended_ns, times: count, left_out_ios })
    })
}

fn named(job: Option<&str>, kind: WarningKind) -> Warning {
    let text = kind.to_string();
    Warning { job: job.map(str::to_owned), kind, text }
}

fn one(job: &JobPlan, result: &JobResult, host: &HostFacts) -> Vec<WarningKind> {
    let mut kinds = Vec::new();
    cache((job, result), host, &mut kinds);
    kinds.extend(evidence::of_storage(job, result));
    engine(job, result, &mut kinds);
    load(job, result, &mut kinds);
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

/// Warnings about caches between the job and storage.
fn cache((job, result): (&JobPlan, &JobResult), host: &HostFacts, kinds: &mut Vec<WarningKind>) {
    if job.engine.actual == "null" {
        return;
    }
    let refused = job.direct_why.as_deref().and_then(|why| why.strip_suffix(REFUSES_DIRECT));
    if let Some(filesystem) = refused {
        kinds.push(WarningKind::DirectRefused { filesystem: filesystem.to_owned() });
    }
    let data_bytes: u64 = job.targets.iter().map(|target| target.length_bytes).sum();
    if let Some(memory_bytes) = host.memory.usable_bytes
        && job.direct == DirectMode::Buffered
        && job.read_percent > 0
        && !path::find(&job.path.choice.actual).is_some_and(|row| row.info.uses_mapping())
        && data_bytes < memory_bytes
        && !reads_once(job, result)
    {
        let of_files = job.of_files();
        kinds.push(WarningKind::DataSetFitsMemory { data_bytes, memory_bytes, of_files });
    }
}

/// Whether no byte was read twice, so that the job itself put nothing into the page cache that it
/// read again. Pages that were there before are counted (`page_cache_served_reads`).
fn reads_once(job: &JobPlan, result: &JobResult) -> bool {
    if let Some(ranges) = &job.ranges {
        return ranges.passes == 1;
    }
    if let Some(feed) = &job.feed {
        return feed.epochs == 1 && !feed.order.draws();
    }
    let in_turn = match job.order {
        Order::Sequential => job.follow.is_none(),
        Order::Random { coverage, .. } => coverage,
    };
    let mut regions: Vec<&Region> = job.workers.iter().flat_map(|one| &one.regions).collect();
    regions.sort_unstable_by_key(|region| (region.target, region.offset));
    let overlap = regions
        .windows(2)
        .any(|pair| pair[0].target == pair[1].target && pair[1].offset < pair[0].end());
    let each = job.workers.iter().map(|one| one.regions.iter().map(|region| region.length).sum());
    let least: u64 = each.min().unwrap_or(0);
    let most = job.stop.bytes_per_thread.unwrap_or(u64::MAX).min(result.read.bytes);
    let only_reads = job.read_percent == 100 && job.replay.is_none() && job.ramp_ns == 0;
    only_reads && in_turn && !overlap && most <= least
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
        kinds.push(WarningKind::FaultsInjected { inject: inject.clone() });
    }
}

fn load(job: &JobPlan, result: &JobResult, kinds: &mut Vec<WarningKind>) {
    let ios = result.read.ios + result.write.ios;
    let elapsed_ns = result.last_done_ns;
    // A feed is as long as its epochs are, and its steps stand in its rules. So is a replay.
    let of_files = job.ranges.is_some();
    let has_length = job.feed.is_none() && job.replay.is_none();
    let has_failed = result.failed > 0;
    if has_length && !has_failed && ios > 0 && (elapsed_ns < SHORT_NS || !enough_for(0.99, ios)) {
        let of_bytes = !of_files && job.stop.bytes_per_thread.is_some();
        kinds.push(WarningKind::RunTooShort { elapsed_ns, ios, of_files, of_bytes });
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
        let completed = result.read.ios + result.write.ios;
        let sides = [&result.read, &result.write];
        let largest = |side: &&DirectionResult| Some(side.latency.as_ref()?.total.max_ns);
        let max_ns = sides.iter().filter_map(largest).max();
        kinds.push(WarningKind::NeverStarted { ios, completed, longest_wait_ns, max_ns });
    }
    let feed = job.feed.as_ref().zip(result.feed.as_ref());
    let overran = feed.and_then(|(plan, found)| found.overran_percent(plan));
    kinds.extend(overran.map(|percent| WarningKind::ComputeOverran { percent }));
    if result.between_ios_ns > 0 {
        let time = elapsed_ns as f64 * f64::from(job.threads);
        let share = result.between_ios_ns as f64 / time.max(1.0);
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
        } else if job.works_between_ios() {
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

/// A share of the workers' time above which it is said what gpuio's own verification costs.
const OWN_SHARE: f64 = 0.01;

/// The cost of verification that was not requested: the rate without it lies between the one shown
/// and one that is higher by so much, since I/Os are in flight meanwhile.
fn own_verification(share: f64) -> Option<String> {
    let more = share / (1.0 - share.min(0.99)) * 100.0;
    (share >= OWN_SHARE).then(|| {
        format!(
            "to verify the writes, gpuio generated their data between the I/Os: outside their \
             latencies, inside the time of the rate, which would be up to {more:.0} % higher \
             without (--verify=off)"
        )
    })
}

#[cfg(test)]
mod tests;
