//! Warnings about a group's numbers.

use crate::evidence::warn as evidence;
use gpuio_io::clock::stops::Stops;
use gpuio_io::path;
use gpuio_record::facts::HostFacts;
use gpuio_record::{
    DirectMode, JobPlan, JobResult, Order, Region, ThreadsOf, Warning, WarningKind,
};

use gpuio_job::plan::REFUSES_DIRECT;
use gpuio_job::spec::TakenKeys;

/// The warnings of a group's jobs; `found` is where counters disagree with what they moved, each
/// with the index of its job or none.
pub(super) fn group(
    jobs: &[JobPlan],
    results: &[JobResult],
    (host, keys): (&HostFacts, &TakenKeys),
    found: Vec<(Option<usize>, WarningKind)>,
) -> Vec<Warning> {
    let mut all = Vec::new();
    for (at, (job, result)) in jobs.iter().zip(results).enumerate() {
        let of_job = |(about, kind): &(Option<usize>, WarningKind)| {
            (*about == Some(at)).then(|| kind.clone())
        };
        let kinds = found.iter().filter_map(of_job).chain(one(job, result, host));
        all.extend(kinds.map(|kind| named(Some(&job.name), kind, keys)));
    }
    let of_all = found.into_iter().filter(|(about, _)| about.is_none());
    // Alone in its group, a job is what the devices' counts are about.
    let alone = if let [job] = jobs { Some(job.name.as_str()) } else { None };
    all.extend(of_all.map(|(_, kind)| named(alone, kind, keys)));
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
        all.push(named(None, WarningKind::MoreThreadsThanCpus { threads, cpus, of }, keys));
    }
    let software = jobs.iter().filter(|job| job.uses_software_gpu());
    all.extend(software.map(|job| named(Some(&job.name), WarningKind::SoftwareGpu, keys)));
    all
}

/// The warning about stops of the process while a group ran.
pub(super) fn stops(stops: Stops, left_out_ios: u64, keys: &TakenKeys) -> Option<Warning> {
    let Stops { count, stopped_ns, suspended_ns } = stops;
    (count > 0).then(|| {
        let times = count;
        let kind = WarningKind::Stopped { stopped_ns, suspended_ns, times, left_out_ios };
        named(None, kind, keys)
    })
}

fn named(job: Option<&str>, kind: WarningKind, keys: &TakenKeys) -> Warning {
    let text = kind.text(&|key| keys.spelled(key));
    Warning { job: job.map(str::to_owned), kind, text }
}

fn one(job: &JobPlan, result: &JobResult, host: &HostFacts) -> Vec<WarningKind> {
    let mut kinds = Vec::new();
    cache((job, result), host, &mut kinds);
    kinds.extend(evidence::of_storage(job, result));
    kinds.extend(WarningKind::due(job, result));
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

#[cfg(test)]
mod tests;
