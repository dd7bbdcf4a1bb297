//! Reads that never reached storage.

use gpuio_record::{DirectMode, WarningKind};

use super::{Flow, GroupContext, float, whole};

/// The process's counter covers all jobs of the group, so it is held against all of their bytes.
/// What lies in holes is not storage's to deliver. Less than half from storage is a finding: below
/// that, the rate is more memory's than storage's.
pub(super) fn find(seen: &GroupContext<'_>) -> Vec<(Option<usize>, WarningKind)> {
    let mut found = Vec::new();
    for (at, (job, result)) in seen.jobs.iter().zip(seen.results).enumerate() {
        let (bytes, _) = Flow::Read.of(result);
        if let Some(from_storage) = result.cache.process_read_bytes
            && job.engine.actual != "null"
            && bytes > 0
            && from_storage < at_devices(seen) / 2
        {
            let kind = match job.direct {
                DirectMode::Direct => WarningKind::DirectButCached { bytes, from_storage },
                DirectMode::Buffered => WarningKind::PageCacheServedReads { bytes, from_storage },
            };
            found.push((Some(at), kind));
        }
    }
    found
}

/// Bytes that the group's jobs read and that some device holds: a job's reads are taken to be
/// spread over its files.
fn at_devices(seen: &GroupContext<'_>) -> u64 {
    let of_job = |result: &gpuio_record::JobResult| {
        let (bytes, _) = Flow::Read.of(result);
        let share = result
            .cache
            .holes
            .as_ref()
            .map_or(0.0, |holes| float(holes.absent_bytes()) / float(holes.range_bytes.max(1)));
        whole(float(bytes) * (1.0 - share).max(0.0))
    };
    seen.results.iter().map(of_job).sum()
}
