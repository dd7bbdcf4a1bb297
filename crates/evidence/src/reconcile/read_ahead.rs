//! Storage delivered more to the process than its jobs read.

use gpuio_record::{Order, WarningKind};

use super::{Flow, GroupContext, NOISE_BYTES, cached};

/// A tenth over is no finding: each stream ends inside a window of read-ahead (`read_ahead_kb`,
/// doubled for sequential reads), and pages are read whole. The process's own counter is used,
/// since a device's contains what others read.
pub(super) fn find(seen: &GroupContext<'_>) -> Vec<(Option<usize>, WarningKind)> {
    let bytes = seen.bytes(Flow::Read);
    let through_cache =
        seen.moving().any(|(job, result)| cached(job, result) && Flow::Read.of(result).0 > 0);
    let Some(from_storage) = seen.caused(Flow::Read).filter(|_| through_cache) else {
        return Vec::new();
    };
    if bytes == 0 || from_storage <= bytes + (bytes / 10).max(NOISE_BYTES) {
        return Vec::new();
    }
    let sequential = seen.moving().all(|(job, _)| job.order == Order::Sequential);
    let at = (seen.jobs.len() == 1).then_some(0);
    vec![(at, WarningKind::ReadAhead { bytes, from_storage, sequential })]
}
