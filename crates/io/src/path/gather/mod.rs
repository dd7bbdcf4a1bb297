//! `gather`: many blocks cross to or from GPU memory in one launch.
//!
//! A read runs file → pinned slot and then joins the open batch; a write joins it at once. A full
//! batch is one launch of a kernel with a list of (slot, destination, length), and one event;
//! blocks of `GATHER_PLAIN_BYTES` and more get a plain copy each. The driver takes some 0.5 million
//! calls a second from a whole process, so that paths with a copy per block end there; a launch of
//! 128 blocks takes the calls of one. Slots stay few, so that the ring stays in the thread's share
//! of cache: a block is read by the GPU from where the CPU just wrote it.
//!
//! A batch that is not full is launched when it would wait for nothing but itself: when the GPU
//! leg is idle and the worker has looked at the files, or is about to sleep for them. A lone block
//! is one plain copy, as on `staged`.
//!
//! **Destinations.** With [`GpuSide::scatter`] slot `n` has a location in the destination that is
//! not behind that of slot `n − 1`: random blocks of an application have destinations of their own,
//! and a path that let them lie as they lie in its ring could move a batch of them by one copy that
//! no application could use. Without it positions follow slots, as for a file that is read from
//! front to back into one buffer, and a batch whose slots lie side by side is one plain copy. The
//! plan scatters random loads and not sequential ones, and says so.
//!
//! [`GpuSide::scatter`]: super::GpuSide::scatter

mod batch;
mod batch_copy;
mod scatter;

use gpuio_gpu::GpuError;

use super::slot_buffers::{self, SlotBuffers};
use super::stream_queues::{Ended, StreamQueues};
use super::two_legs::{self, GpuStage};
use super::verifier::Verifier;
use super::{ANY_MEMORY, Backend, OpenedPath, PathConfig, PathEntry, PathError, PathInfo, Request};
use batch::Batch;
use batch_copy::{BatchCopy, Sizes};

const NAME: &str = "gather";

pub(super) const ENTRY: PathEntry = PathEntry {
    info: PathInfo {
        name: NAME,
        gdsio: None,
        gdsio_name: "GATHER",
        summary: "file to a pinned ring, then one launch for many blocks to GPU memory; both \
                  overlap",
        needs_gpu: true,
        via_gpu: false,
        buffered_only: false,
        buffered_because: None,
        backend: Backend::Engine,
        batches: true,
        streams: true,
        memory: ANY_MEMORY,
    },
    open,
};

struct Batches {
    // Drop order: the streams are waited for before kernel and lists go.
    queues: StreamQueues,
    batch_copy: BatchCopy,
    /// By number; the number is also that of the batch's list and event.
    all: Vec<Batch>,
    /// Parts at which a batch is launched.
    full: usize,
    /// The batch that requests join.
    open: u32,
    /// Batches that are neither open nor in flight.
    idle: Vec<u32>,
    /// The stream of the next launch.
    next: usize,
}

fn open(config: PathConfig) -> Result<OpenedPath, PathError> {
    let gpu = slot_buffers::gpu(NAME, &config)?;
    gpu.context.make_current().map_err(gpu_error)?;
    let positions = gpu.scatter.then(|| scatter::positions(config.slots));
    let buffers = SlotBuffers::new(NAME, &config, gpu, positions)?;
    let parts = gpu.batch.clamp(1, config.slots);
    // Full batches hold all slots at most; in addition there are the open one and one that was
    // launched before it was full, which happens only while no other is in flight.
    let batches = config.slots / parts + 2;
    let sizes = Sizes { batches, parts, block_max: config.block_max };
    let reachable = gpu.memory.is_reachable_by_kernels();
    let batch_copy =
        BatchCopy::new(&gpu.context, sizes, reachable, !gpu.scatter).map_err(gpu_error)?;
    let gpu_stage = Batches {
        queues: StreamQueues::new(&gpu.context, gpu.streams, batches).map_err(gpu_error)?,
        batch_copy,
        all: (0..batches).map(|_| Batch::new(parts, buffers.stride())).collect(),
        full: parts as usize,
        open: 0,
        idle: (1..batches).rev().collect(),
        next: 0,
    };
    let verifier = Verifier::new(gpu, buffers.destination()).map_err(gpu_error)?;
    two_legs::open(NAME, &config, verifier, buffers, gpu_stage)
}

fn gpu_error(source: GpuError) -> PathError {
    PathError::Gpu { path: NAME, source }
}

impl Batches {
    fn has_open(&self) -> bool {
        !self.all[self.open as usize].parts().is_empty()
    }

    /// Launches the open batch, or gives its requests back with the driver's refusal.
    fn launch(&mut self, buffers: &SlotBuffers, ended: &mut Vec<Ended>) {
        let number = self.open;
        let at = self.next;
        self.next = (at + 1) % self.queues.count();
        let batch = &self.all[number as usize];
        // SAFETY: slots are their requests' alone until these come back, the list is the batch's
        // until its event is reached, and all of it is dropped after the streams were waited for.
        let enqueued =
            unsafe { self.batch_copy.enqueue(self.queues.stream(at), buffers, batch, number) };
        // It stays without memory of its own unless something was refused.
        let mut over = Vec::new();
        self.queues.mark(at, number, enqueued, &mut over);
        for one in over {
            self.done(one, ended);
        }
        self.open = self.next_open(ended);
    }

    /// A batch to be filled while others are in flight.
    fn next_open(&mut self, ended: &mut Vec<Ended>) -> u32 {
        loop {
            if let Some(number) = self.idle.pop() {
                return number;
            }
            // There are more batches than can be in flight (see `open`), so one is idle; if ever
            // none were, the oldest in flight would be the next to be.
            if let Some(one) = self.queues.any() {
                self.done(one, ended);
            }
        }
    }

    /// A batch ended, or was refused.
    fn done(&mut self, (number, result): Ended, ended: &mut Vec<Ended>) {
        let batch = &mut self.all[number as usize];
        // A worker takes the slot first that it got back last, so it goes through them in the
        // order in which they came to this batch, and neighbours stay neighbours.
        ended.extend(batch.parts().iter().rev().map(|part| (part.slot, result.clone())));
        batch.clear();
        self.idle.push(number);
    }
}

impl GpuStage for Batches {
    type Slots = SlotBuffers;

    fn enqueue(&mut self, buffers: &SlotBuffers, request: &Request, ended: &mut Vec<Ended>) {
        assert!(request.len as usize <= buffers.stride(), "a block does not fit its slot");
        let batch = &mut self.all[self.open as usize];
        batch.push(request);
        if batch.parts().len() >= self.full {
            self.launch(buffers, ended);
        }
    }

    fn poll(&mut self, ended: &mut Vec<Ended>) {
        for at in 0..self.queues.count() {
            while let Some(one) = self.queues.poll(at) {
                self.done(one, ended);
            }
        }
    }

    fn flush(&mut self, buffers: &SlotBuffers, ended: &mut Vec<Ended>) {
        if self.queues.is_idle() && self.has_open() {
            self.launch(buffers, ended);
        }
    }

    fn wait(&mut self, ended: &mut Vec<Ended>) -> bool {
        let one = self.queues.any();
        let some = one.is_some();
        if let Some(one) = one {
            self.done(one, ended);
        }
        some
    }

    fn is_idle(&self) -> bool {
        self.queues.is_idle() && !self.has_open()
    }

    fn bytes(&self) -> u64 {
        self.batch_copy.bytes()
    }
}
