//! Warnings from the evidence: what storage and its counters mean for a job's numbers.

use gpuio_record::{DeviceTraffic, DirectMode, JobPlan, JobResult, WarningKind};

use crate::evidence::reconcile::{self, Counted, GroupContext};
use crate::evidence::snapshot::Readings;

impl Readings {
    /// Where counters disagree with what the jobs moved: warnings with the index of the job they
    /// are about, or none for the whole group. The results have the
    /// [`caches`](Readings::caches) of these readings.
    pub fn disagreements(
        &self,
        jobs: &[JobPlan],
        results: &[JobResult],
    ) -> Vec<(Option<usize>, WarningKind)> {
        reconcile::find(&GroupContext { jobs, results, counted: &self.counted })
    }

    /// Writes into the results of a group what others did meanwhile. They have the
    /// [`caches`](Readings::caches) of these readings.
    pub fn count_others(&self, jobs: &[JobPlan], results: &mut [JobResult]) {
        let counts = GroupContext { jobs, results, counted: &self.counted }.others();
        for result in results {
            result.others_cpu_unknown = counts.processors_unknown();
            result.others = Some(counts.clone());
        }
    }
}

/// The same by a group's plan and results alone, without what was sampled of devices: no finding
/// is more than the run's own.
pub(crate) fn recorded(
    jobs: &[JobPlan],
    results: &[JobResult],
) -> Vec<(Option<usize>, WarningKind)> {
    reconcile::find(&GroupContext { jobs, results, counted: &Counted::default() })
}

/// The least that others did on drives, by a group's plan and results alone.
pub(crate) fn recorded_traffic(jobs: &[JobPlan], results: &[JobResult]) -> Vec<DeviceTraffic> {
    GroupContext { jobs, results, counted: &Counted::default() }.others().traffic
}

/// The effect of a job's holes, of the memory that it read from instead of files, and of its way of
/// writing on its numbers.
pub fn of_storage(job: &JobPlan, result: &JobResult) -> Vec<WarningKind> {
    let memory = lost(result).into_iter().chain(mapped(job, result)).chain(tier(result));
    holes(job, result).into_iter().chain(memory).chain(writes(job, result)).collect()
}

/// Bytes that no device holds.
fn holes(job: &JobPlan, result: &JobResult) -> Option<WarningKind> {
    let found = result.cache.holes.as_ref().filter(|found| found.absent_bytes() > 0)?;
    Some(WarningKind::Holes {
        hole_bytes: found.hole_bytes.unwrap_or(0),
        unwritten_bytes: found.unwritten_bytes.unwrap_or(0),
        range_bytes: found.range_bytes,
        reads: job.read_percent > 0,
    })
}

/// The warning about bytes that the GPU read or wrote in the page cache by itself.
fn mapped(job: &JobPlan, result: &JobResult) -> Option<WarningKind> {
    let bytes = result.read.bytes + result.write.bytes;
    let mapped = result.mapped.as_ref().filter(|_| bytes > 0)?;
    let set_up_ns = mapped.map_ns + mapped.register_ns;
    let from_storage = Some(job.read_percent > 0 && mapped.resident_before != Some(1.0));
    Some(WarningKind::MappedMemory { bytes, set_up_ns, from_storage })
}

/// The warning about bytes that it wrote into pages that are no longer the file's.
fn lost(result: &JobResult) -> Option<WarningKind> {
    let mapped = result.mapped.as_ref()?;
    let lost_bytes = mapped.lost_bytes.filter(|lost| *lost > 0)?;
    Some(WarningKind::WrittenPagesLost { lost_bytes, mapped_bytes: mapped.mapped_bytes })
}

/// The warning about bytes from a feed's tier in host memory.
fn tier(result: &JobResult) -> Option<WarningKind> {
    let tier = result.feed.as_ref()?.tier.filter(|tier| tier.memory_bytes > 0)?;
    let (from_memory, from_storage) = (tier.memory_bytes, tier.storage_bytes);
    Some(WarningKind::TierServedReads { from_memory, from_storage })
}

fn writes(job: &JobPlan, result: &JobResult) -> Option<WarningKind> {
    let bytes = result.file_leg.write_bytes;
    if bytes == 0 || job.engine.actual == "null" || result.mapped.is_some() {
        return None;
    }
    let device = if let [device] = result.cache.storage.as_slice() { Some(device) } else { None };
    match (job.sync, job.direct, device) {
        (true, ..) => Some(WarningKind::SyncWrites),
        // A flush empties the caches of the kernel and of the device, and its time is counted.
        _ if is_flushed(job, result) => None,
        (_, DirectMode::Buffered, device) => {
            let to_storage = device.map(|device| device.write_bytes);
            Some(WarningKind::BufferedWrites { bytes, to_storage })
        }
        (_, DirectMode::Direct, Some(device)) if device.volatile_cache != Some(false) => {
            let (known, device) = (device.volatile_cache.is_some(), device.device.clone());
            Some(WarningKind::DirectWritesInDeviceCache { device, known })
        }
        _ => None,
    }
}

/// Whether all but a twentieth of a job's writes is flushed inside the measured time.
fn is_flushed(job: &JobPlan, result: &JobResult) -> bool {
    let Some(flush) = &job.flush else { return false };
    let write = &result.write;
    // Each thread may end before its next flush.
    let left = flush.every_ios.map(|every| every.saturating_sub(1) * u64::from(job.threads));
    flush.at_end || left.is_some_and(|left| left < write.ios / 20)
}

#[cfg(test)]
mod tests;
