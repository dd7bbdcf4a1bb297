//! `staged`: file → pinned ring → GPU memory, the legs overlapping. gdsio's `-x 2`.
//!
//! Its GPU stage is that of `cached`, `managed` and `routed` as well: each slot crosses by itself,
//! in stream `n mod streams`, with an event of its own.

use std::marker::PhantomData;

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
        via_gpu: false,
        buffered_only: false,
        buffered_because: None,
        backend: Backend::Engine,
        batches: false,
        streams: true,
        memory: ANY_MEMORY,
    },
    open: |config| open(NAME, &config),
};

/// Puts each slot's GPU leg ([`Slots::transfer`]) into a stream.
pub(super) struct CopyStage<C> {
    queues: StreamQueues,
    slots: PhantomData<C>,
}

/// Opens a ring with one copy per block. Called on the worker's thread, which from then on has the
/// GPU's context current.
pub(super) fn open(name: &'static str, config: &PathConfig) -> Result<OpenedPath, PathError> {
    let gpu = slot_buffers::gpu(name, config)?;
    let driver = |source| PathError::Gpu { path: name, source };
    gpu.context.make_current().map_err(driver)?;
    let buffers = SlotBuffers::new(name, config, gpu, None)?;
    let verifier = Verifier::new(gpu, buffers.destination()).map_err(driver)?;
    let queues = StreamQueues::new(&gpu.context, gpu.streams, config.slots).map_err(driver)?;
    two_legs::open(name, config, verifier, buffers, CopyStage::over(queues))
}

impl<C: Slots> CopyStage<C> {
    /// Over streams that have an event for each slot.
    pub(super) fn over(queues: StreamQueues) -> CopyStage<C> {
        CopyStage { queues, slots: PhantomData }
    }

    fn stream(&self, slot: u32) -> usize {
        slot as usize % self.queues.count()
    }
}

impl<C: Slots> GpuStage for CopyStage<C> {
    type Slots = C;

    fn ready(&mut self, slots: &C, request: &Request, ended: &mut Vec<Ended>) -> bool {
        let Request { slot, len, .. } = *request;
        let at = self.stream(slot);
        let enqueued = slots.ready(self.queues.stream(at), slot, len);
        let any = !matches!(enqueued, Ok(false));
        if any {
            self.queues.mark(at, slot, enqueued.map(|_| ()), ended);
        }
        any
    }

    fn enqueue(&mut self, slots: &C, request: &Request, ended: &mut Vec<Ended>) {
        let Request { op, slot, len, .. } = *request;
        let at = self.stream(slot);
        // SAFETY: the slot is this request's alone until the event behind is done, and its memory
        // is dropped after the streams were waited for.
        let enqueued = unsafe { slots.transfer(self.queues.stream(at), op, slot, len) };
        self.queues.mark(at, slot, enqueued, ended);
    }

    fn poll(&mut self, ended: &mut Vec<Ended>) {
        for at in 0..self.queues.count() {
            while let Some(one) = self.queues.poll(at) {
                ended.push(one);
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.queues.is_idle()
    }

    fn wait(&mut self, ended: &mut Vec<Ended>) -> bool {
        let one = self.queues.any();
        let some = one.is_some();
        ended.extend(one);
        some
    }
}
