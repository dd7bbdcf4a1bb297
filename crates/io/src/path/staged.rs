//! `staged`: file → pinned ring → GPU memory, the legs overlapping. gdsio's `-x 2`.
//!
//! Its GPU stage is that of `cached`, `managed` and `routed` as well: each slot crosses by itself,
//! in stream `n mod streams`, with an event of its own.

use super::slot_buffers::{self, SlotBuffers};
use super::stream_queues::{Ended, StreamQueues};
use super::two_legs::{self, GpuStage, Slots};
use super::verifier::Verifier;
use super::{ANY_MEMORY, Backend, OpenedPath, PathConfig, PathEntry, PathError, PathInfo, Request};

const NAME: &str = "staged";

pub(super) const ENTRY: PathEntry = PathEntry {
    info: PathInfo {
        name: NAME,
        gdsio: Some(2),
        gdsio_name: "CPU_GPU",
        summary: "file to a pinned ring, then asynchronous copies to GPU memory; both overlap",
        needs_gpu: true,
        backend: Backend::Engine,
        streams: true,
        memory: ANY_MEMORY,
        has_tier: true,
        ..PathInfo::PLAIN
    },
    open: |config| open(NAME, &config),
};

/// Opens a ring with one copy per block. Called on the worker's thread, which from then on has the
/// GPU's context current.
pub(super) fn open(name: &'static str, config: &PathConfig) -> Result<OpenedPath, PathError> {
    let gpu = slot_buffers::gpu(name, config)?;
    let driver = |source| PathError::Gpu { path: name, source };
    gpu.context.make_current().map_err(driver)?;
    let buffers = SlotBuffers::new(name, config, gpu, None)?;
    let verifier = Verifier::new(gpu, buffers.destination()).map_err(driver)?;
    let queues = StreamQueues::new(&gpu.context, gpu.streams, config.slots).map_err(driver)?;
    two_legs::open(name, config, verifier, buffers, queues)
}

/// The GPU stage of streams alone: each slot's GPU leg ([`Slots::transfer`]) goes into the slot's
/// stream, with an event of its own.
impl<S: Slots> GpuStage<S> for StreamQueues {
    fn ready(&mut self, slots: &S, request: &Request, ended: &mut Vec<Ended>) -> bool {
        let at = stream_of(self, request.slot);
        let enqueued = slots.ready(self.stream(at), request);
        let any = !matches!(enqueued, Ok(false));
        if any {
            self.record(at, request.slot, enqueued.map(|_| ()), ended);
        }
        any
    }

    fn enqueue(&mut self, slots: &S, request: &Request, ended: &mut Vec<Ended>) {
        let at = stream_of(self, request.slot);
        // SAFETY: the slot is this request's alone until the event behind is done, and its memory
        // is dropped after the streams were waited for.
        let enqueued = unsafe { slots.transfer(self.stream(at), request) };
        self.record(at, request.slot, enqueued, ended);
    }

    fn poll(&mut self, ended: &mut Vec<Ended>) {
        for at in 0..self.count() {
            while let Some(one) = self.poll_stream(at) {
                ended.push(one);
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.none_in_flight()
    }

    fn wait(&mut self, ended: &mut Vec<Ended>) -> bool {
        let one = self.any();
        let some = one.is_some();
        ended.extend(one);
        some
    }
}

fn stream_of(queues: &StreamQueues, slot: u32) -> usize {
    slot as usize % queues.count()
}
