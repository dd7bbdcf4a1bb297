//! A worker's entry of the live page: its name, and what is counted there.

use gpuio_io::engine::Op;
use gpuio_io::path::{self, Completion};
use gpuio_watch::page::{Direction, Key, SOFTWARE, WorkerSlot};

use super::task::Task;

/// Offsets and lengths that are multiples of this suit O_DIRECT and cuFile everywhere.
const GRID: u64 = 4096;

/// The slot in the live page of a worker that has opened its files; none without a page, or where
/// all are taken.
pub(super) fn take(task: &Task<'_>, engine: &str, files: usize) -> Option<WorkerSlot> {
    let job = task.job;
    let row = path::find(&job.path.choice.actual);
    let gpu = task.plan.gpu.and_then(|gpu| job.gpus.get(gpu as usize));
    let gpu =
        gpu.filter(|_| row.is_some_and(|row| !row.info.uses_engine() || row.info.times_gpu_leg()));
    let worker_slot = task.live_page?.worker_slot(&Key {
        gpu: gpu.map(|gpu| gpu.index),
        pci: match gpu {
            None => String::new(),
            // Results of the software GPU must never pass for hardware's.
            Some(gpu) if gpu.software => SOFTWARE.to_owned(),
            Some(gpu) => gpu.pci.clone(),
        },
        path: job.path.choice.actual.clone(),
        // Without what it was opened with: `io_uring (fixed buffers)`.
        engine: engine.split(" (").next().unwrap_or(engine).to_owned(),
        // Registrations in NVIDIA's library are known to it and the path alone.
        registrations_unknown: job.register_buffer == Some(true),
    })?;
    worker_slot.opened(files as u64);
    Some(worker_slot)
}

/// Counts one I/O that came back. Its latency is that of the record: due until completed.
#[inline]
pub(super) fn count(worker_slot: &WorkerSlot, completed: &Completion) {
    let request = &completed.request;
    let direction = match request.op {
        Op::Read => Direction::Read,
        Op::Write => Direction::Write,
    };
    let bytes = u64::from(request.len);
    if completed.result.is_err() {
        worker_slot.fail(direction);
        return;
    }
    let latency_ns = completed.ended.saturating_sub(request.due);
    worker_slot.add(direction, bytes, latency_ns, !(request.offset | bytes).is_multiple_of(GRID));
}
