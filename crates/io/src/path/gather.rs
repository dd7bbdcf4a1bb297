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

use gpuio_base::catalog::GATHER_PLAIN_BYTES;
use gpuio_gpu::{Context, GpuError, Stream};

use super::launcher::Launcher;
use super::slot_buffers::{self, SlotBuffers};
use super::stream_queues::{Ended, StreamQueues};
use super::two_legs::{self, GpuStage};
use super::verifier::Verifier;
use super::{ANY_MEMORY, Backend, OpenedPath, PathConfig, PathEntry, PathError, PathInfo, Request};
use crate::engine::Op;

const NAME: &str = "gather";

pub(super) const ENTRY: PathEntry = PathEntry {
    info: PathInfo {
        name: NAME,
        gdsio_name: "GATHER",
        summary: "file to a pinned ring, then one launch for many blocks to GPU memory; both \
                  overlap",
        needs_gpu: true,
        backend: Backend::Engine,
        batches: true,
        streams: true,
        memory: ANY_MEMORY,
        ..PathInfo::PLAIN
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
    let positions = gpu.scatter.then(|| positions(config.slots));
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
        let mut refused = Vec::new();
        self.queues.record(at, number, enqueued, &mut refused);
        for one in refused {
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

impl GpuStage<SlotBuffers> for Batches {
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
            while let Some(one) = self.queues.poll_stream(at) {
                self.done(one, ended);
            }
        }
    }

    fn flush(&mut self, buffers: &SlotBuffers, ended: &mut Vec<Ended>) {
        if self.queues.none_in_flight() && self.has_open() {
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
        self.queues.none_in_flight() && !self.has_open()
    }

    fn bytes(&self) -> u64 {
        self.batch_copy.bytes()
    }
}

/// The part of a request that a launch has to know.
#[derive(Debug, Clone, Copy)]
struct Part {
    op: Op,
    slot: u32,
    len: u32,
}

/// Parts in the order in which they came.
struct Batch {
    parts: Vec<Part>,
    /// Lowest and highest slot.
    bounds: (u32, u32),
    /// Whether all have the same direction and fill their slots.
    even: bool,
    stride: usize,
}

/// Slots that one plain copy moves: from the first on, without a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    op: Op,
    first: u32,
    bytes: usize,
}

impl Batch {
    /// An empty batch with space for `most` parts of slots that are `stride` bytes apart.
    fn new(most: u32, stride: usize) -> Batch {
        let parts = Vec::with_capacity(most as usize);
        Batch { parts, bounds: (u32::MAX, 0), even: true, stride }
    }

    fn push(&mut self, request: &Request) {
        let Request { op, slot, len, .. } = *request;
        let same = self.parts.first().is_none_or(|first| first.op == op);
        self.even &= same && len as usize == self.stride;
        self.bounds = (self.bounds.0.min(slot), self.bounds.1.max(slot));
        self.parts.push(Part { op, slot, len });
    }

    fn clear(&mut self) {
        self.parts.clear();
        (self.bounds, self.even) = ((u32::MAX, 0), true);
    }

    fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The batch as one run of slots, if it is one. The order in which its slots came does not
    /// matter: no slot comes twice, so as many slots as lie between the bounds are all of them.
    fn run(&self) -> Option<Run> {
        let (first, last) = self.bounds;
        let count = self.parts.len();
        let op = self.parts.first()?.op;
        let whole = self.even && (last - first) as usize + 1 == count;
        whole.then_some(Run { op, first, bytes: count * self.stride })
    }
}

/// Brings the parts of a batch across: one plain copy, or a launch of the gather kernel.
struct BatchCopy {
    /// None where a kernel can't reach the destination: each block then gets a plain copy.
    launcher: Option<Launcher>,
    /// Whether neighbouring slots are neighbours in the destination.
    in_order: bool,
}

/// How many batches there are, of how many parts, of at most how many bytes each.
#[derive(Clone, Copy)]
struct Sizes {
    batches: u32,
    parts: u32,
    block_max: u32,
}

impl BatchCopy {
    /// Loads the kernel and makes space for lists, where they will be needed.
    fn new(
        context: &Context,
        sizes: Sizes,
        reachable: bool,
        in_order: bool,
    ) -> Result<BatchCopy, GpuError> {
        if !reachable || sizes.parts < 2 {
            return Ok(BatchCopy { launcher: None, in_order });
        }
        // Longer blocks do not get into a list.
        let longest = u64::from(sizes.block_max).min(GATHER_PLAIN_BYTES);
        let launcher = Launcher::new(context, (sizes.batches, sizes.parts), longest)?;
        Ok(BatchCopy { launcher: Some(launcher), in_order })
    }

    /// Bytes of host memory that the lists take.
    fn bytes(&self) -> u64 {
        self.launcher.as_ref().map_or(0, Launcher::bytes)
    }

    /// Puts a batch into the stream.
    ///
    /// # Errors
    /// The driver's refusal; what is in flight then is for the caller to wait for.
    ///
    /// # Safety
    /// Nothing else uses the parts' slots and positions, nor list `number`, and all of them live,
    /// until the stream has passed the batch.
    unsafe fn enqueue(
        &self,
        stream: &Stream,
        buffers: &SlotBuffers,
        batch: &Batch,
        number: u32,
    ) -> Result<(), GpuError> {
        if self.in_order
            && let Some(run) = batch.run()
        {
            // SAFETY: the caller's promise; the run's slots and positions lie side by side.
            return unsafe { buffers.copy(stream, run.op, run.first, run.bytes) };
        }
        let plain = |part: &&Part| u64::from(part.len) >= GATHER_PLAIN_BYTES;
        let short = batch.parts().iter().filter(|part| !plain(part)).count();
        let launcher = self.launcher.as_ref().filter(|_| short > 1);
        for part in batch.parts().iter().filter(|part| launcher.is_none() || plain(part)) {
            // SAFETY: the caller's promise; a part is no longer than its slot.
            unsafe { buffers.copy(stream, part.op, part.slot, part.len as usize) }?;
        }
        let Some(launcher) = launcher else {
            return Ok(());
        };
        let blocks = batch.parts().iter().filter(|part| !plain(part)).map(|part| {
            let (host, device) = (buffers.host(part.slot), buffers.device(part.slot));
            let (from, to) = match part.op {
                Op::Read => (host, device),
                Op::Write => (device, host),
            };
            (from, to, u64::from(part.len))
        });
        // SAFETY: the caller's promise. Slots and positions begin at whole pages, so that the rest
        // of a word in which a block ends is live too.
        unsafe { launcher.launch(stream, number, blocks) }
    }
}

/// A permutation of `slots` positions in which, from three slots on, no slot's position follows
/// that of the slot before it: steps of about the golden section, which keep neighbours far apart.
fn positions(slots: u32) -> Vec<u32> {
    let total = u64::from(slots.max(1));
    // 0.618 of all, then the next without a common divisor: multiples of such a step meet every
    // place once. A step of 1 would leave all as it is.
    let golden = (total * 618 / 1000).max(2);
    let step = (golden..golden + total).find(|&step| divisor(step, total) == 1).unwrap_or(1);
    let place = |slot: u32| u64::from(slot) * step % total;
    // Below `slots`, a u32.
    (0..slots).map(|slot| u32::try_from(place(slot)).unwrap_or(slot)).collect()
}

/// The greatest common divisor.
fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::super::Place;
    use super::*;

    fn batch(parts: &[(Op, u32, u32)]) -> Batch {
        let mut batch = Batch::new(8, 4096);
        for &(op, slot, len) in parts {
            batch.push(&Request {
                op,
                file: 0,
                offset: 0,
                len,
                slot,
                started: 0,
                due: 0,
                place: Place::Slot,
            });
        }
        batch
    }

    #[test]
    fn full_slots_side_by_side_are_a_run_in_any_order() {
        let parts = [(Op::Read, 7, 4096), (Op::Read, 5, 4096), (Op::Read, 6, 4096)];
        let mut batch = batch(&parts);
        let run = Run { op: Op::Read, first: 5, bytes: 3 * 4096 };
        assert_eq!(batch.run(), Some(run));
        batch.clear();
        assert_eq!(batch.run(), None);
        let write = Request {
            op: Op::Write,
            slot: 1,
            len: 4096,
            file: 0,
            offset: 0,
            started: 0,
            due: 0,
            place: Place::Slot,
        };
        batch.push(&write);
        assert_eq!(batch.run(), Some(Run { op: Op::Write, first: 1, bytes: 4096 }));
    }

    #[test]
    fn gaps_short_blocks_and_two_directions_are_none() {
        assert_eq!(batch(&[(Op::Read, 1, 4096), (Op::Read, 3, 4096)]).run(), None);
        assert_eq!(batch(&[(Op::Read, 1, 4096), (Op::Read, 2, 4095)]).run(), None);
        assert_eq!(batch(&[(Op::Read, 1, 4096), (Op::Write, 2, 4096)]).run(), None);
    }

    #[test]
    fn every_position_is_taken_once_and_none_follows_its_neighbour() {
        for slots in 1..700 {
            let positions = positions(slots);
            let follows = positions.windows(2).filter(|pair| pair[0] + 1 == pair[1]).count();
            let mut sorted = positions.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..slots).collect::<Vec<_>>());
            assert!(slots < 3 || follows == 0, "{positions:?}");
        }
    }
}
