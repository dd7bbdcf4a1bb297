//! A queue at the device that is shorter than what was requested.

use gpuio_record::{JobPlan, JobResult, WarningKind};

use super::{Flow, GroupContext, cached, float};

/// Half of the request is a finding. Between two I/Os of a slot lie the tool, the kernel and,
/// on GPU paths, a copy; a device that is the slowest of these has most of the slots.
const SHARE: f64 = 0.5;

/// Checked where the device alone should hold the load back: one device, O_DIRECT, no rate, nothing
/// between I/Os, and all jobs at work all of the time.
pub(super) fn find(seen: &GroupContext<'_>) -> Vec<(Option<usize>, WarningKind)> {
    let [device] = seen.storage() else { return Vec::new() };
    // Where most of the bytes are not counted there (older kernels count NVMe's multipath at its
    // ways only), its queue is not the whole queue either.
    let ours = seen.bytes(Flow::Read) + seen.bytes(Flow::Write);
    if device.read_bytes + device.write_bytes < ours / 10 * 9 {
        return Vec::new();
    }
    let whole_time = float(seen.results.iter().map(|job| job.last_done_ns).min().unwrap_or(0));
    if whole_time / 1e9 < seen.counted.seconds * 0.9 || !seen.moving().all(plain) {
        return Vec::new();
    }
    let requested: u64 = seen.moving().map(|(job, _)| at_once(job)).sum();
    let queue = seen.counted.block(&device.device).and_then(|block| block.queue);
    match queue {
        Some(queue) if requested > 1 && queue < float(requested) * SHARE => {
            let device = device.device.clone();
            vec![(None, WarningKind::DepthNotReached { device, requested, observed: queue })]
        }
        _ => Vec::new(),
    }
}

fn plain((job, result): (&JobPlan, &JobResult)) -> bool {
    let at_ease = job.pacing.is_none() && job.start_delay_ns == 0 && job.inject.is_none();
    at_ease && !job.works_between_ios() && !cached(job, result)
}

/// I/Os that a job can have at storage at once.
fn at_once(job: &JobPlan) -> u64 {
    let path = gpuio_io::path::find(&job.path.choice.actual);
    let engine = gpuio_io::engine::find(&job.engine.actual);
    let many = match path {
        Some(path) if !path.info.uses_engine() => path.info.overlaps(),
        _ => engine.is_some_and(|row| row.info.asynchronous),
    };
    u64::from(job.threads) * if many { u64::from(job.depth) } else { 1 }
}
