//! `library-batch`: gpuio's own library core moves the bytes, as in our `libcufile.so.0`, in
//! batches.
//!
//! [`GpuSide::batch`] requests are submitted at once, and each completes by itself, in any order.
//! The thread that waits for them works on the batch too. A batch that is not full goes when
//! nothing else is in flight.
//!
//! [`GpuSide::batch`]: super::GpuSide::batch

use std::time::Duration;

use gpuio_transfer::{Ahead, Batch, Entry};

use super::grouped::{self, Groups, Queue};
use super::library::MEMORY;
use super::library::core::{LibraryBuffers, Rest};
use super::{Backend, Calls, OpenedPath, PathConfig, PathEntry, PathError, PathInfo};
use crate::clock::Clock;

const NAME: &str = "library-batch";

pub(super) const ENTRY: PathEntry = PathEntry {
    info: PathInfo {
        name: NAME,
        gdsio_name: "LIBRARY_BATCH",
        summary: "gpuio's library core: batches, many blocks in one submit, an event for each",
        needs_gpu: true,
        backend: Backend::Library(Calls::Batch),
        batches: true,
        memory: MEMORY,
        ..PathInfo::PLAIN
    },
    open,
};

struct Batches {
    /// Dropped, it cancels what has not begun and waits for the rest.
    batch: Batch,
    in_flight: usize,
}

fn open(config: PathConfig) -> Result<OpenedPath, PathError> {
    let buffers = LibraryBuffers::open(NAME, &config, Ahead::Batches)?;
    let full = config.gpu.as_ref().map_or(1, |gpu| gpu.batch).clamp(1, config.slots);
    let batches = Batches { batch: buffers.transfer.batch(config.slots), in_flight: 0 };
    let limits = (full, Duration::MAX);
    Ok(buffers.opened(|buffers| grouped::assemble(NAME, &config, limits, buffers, batches)))
}

impl Groups for Batches {
    type Buffers = LibraryBuffers;

    fn submit(&mut self, queue: &mut Queue<LibraryBuffers>, _clock: &Clock) -> bool {
        let (count, buffers) = (queue.open.len().min(queue.full()), &queue.buffers);
        let progress = &queue.progress;
        let entry = |slot: u32| {
            let (request, done) = progress.of(slot)?;
            let Rest { address, len, offset } = buffers.rest(&request, done);
            let (file, location) = (buffers.file(&request).clone(), buffers.location);
            Some(Entry {
                op: request.op,
                file,
                location,
                address,
                len,
                offset,
                cookie: slot.into(),
            })
        };
        let entries: Vec<Entry> = queue.open.drain(..count).filter_map(entry).collect();
        let submitted = entries.len();
        // SAFETY: each slot's part of the destination is its request's alone until it completes,
        // what filled it was waited for, and the memory lives until the batch is gone.
        match unsafe { self.batch.submit(entries) } {
            Ok(()) => self.in_flight += submitted,
            // Never: it has space for all slots.
            Err(full) => {
                queue.broken = Some(PathError::Broken { path: NAME, what: full.to_string() });
            }
        }
        true
    }

    fn is_idle(&self) -> bool {
        self.in_flight == 0
    }

    fn look(&mut self, queue: &mut Queue<LibraryBuffers>, clock: &Clock, wait: bool) {
        let (least, timeout) = if wait { (1, None) } else { (0, Some(Duration::ZERO)) };
        let events = self.batch.events(least, u32::MAX, timeout);
        self.in_flight -= events.len();
        let now = clock.now();
        for event in events {
            // A cookie is a slot.
            let slot = u32::try_from(event.cookie).unwrap_or(u32::MAX);
            let Some((request, _)) = queue.progress.of(slot) else { continue };
            let moved = queue.buffers.counters.outcome(request.op, event.outcome);
            if queue.progress.moved(slot, now, moved) {
                queue.open.push(slot);
            }
        }
    }
}
