//! Reads that never reached storage.

use gpuio_record::{DirectMode, WarningKind};

use super::{Flow, Seen};

/// The process's counter covers all jobs of the group, so it is held against all of their bytes.
/// Less than half from storage is a finding: below that, the rate is more memory's than storage's.
pub(super) fn find(seen: &Seen<'_>) -> Vec<(Option<usize>, WarningKind)> {
    let of_group: u64 = seen.results.iter().map(|job| job.file_leg.read_bytes).sum();
    let mut found = Vec::new();
    for (at, (job, result)) in seen.jobs.iter().zip(seen.results).enumerate() {
        let (bytes, _) = Flow::Read.of(result);
        if let Some(from_storage) = result.cache.process_read_bytes
            && job.engine.got != "null"
            && bytes > 0
            && from_storage < of_group / 2
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
