//! Brings the parts of a batch across: one plain copy, or a launch of the gather kernel.

use gpuio_catalog::GATHER_PLAIN_BYTES;
use gpuio_gpu::{Context, GatherKernel, GpuError, Piece, PieceList, Pinned, Stream, most_pieces};

use super::batch::{Batch, Part};
use crate::engine::Op;
use crate::path::slot_buffers::SlotBuffers;
use crate::path::stream_queues::Refused;

/// The shortest piece that [`GatherKernel::piece_len`] asks for: what lists must have space for.
const PIECE_LEAST: u64 = 4 << 10;

/// The kernel and its lists, one list for each batch.
struct Launcher {
    kernel: GatherKernel,
    lists: Pinned,
    /// Pieces that a list has space for.
    room: usize,
}

pub(super) struct BatchCopy {
    /// None where a kernel can't reach the destination: each block then gets a plain copy.
    launcher: Option<Launcher>,
    /// Whether neighbouring slots are neighbours in the destination.
    in_order: bool,
}

/// How many batches there are, of how many parts, of at most how many bytes each.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    pub(super) batches: u32,
    pub(super) parts: u32,
    pub(super) block_max: u32,
}

impl BatchCopy {
    /// Loads the kernel and makes space for lists, where they will be needed.
    pub(super) fn new(
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
        let each = most_pieces(longest, PIECE_LEAST);
        let room = usize::try_from(each * u64::from(sizes.parts)).unwrap_or(usize::MAX);
        let bytes = room.saturating_mul(size_of::<Piece>()).saturating_mul(sizes.batches as usize);
        let lists = Pinned::alloc(context, bytes)?;
        let kernel = GatherKernel::load(context)?;
        Ok(BatchCopy { launcher: Some(Launcher { kernel, lists, room }), in_order })
    }

    /// Bytes of host memory that the lists take.
    pub(super) fn bytes(&self) -> u64 {
        self.launcher.as_ref().map_or(0, |launcher| launcher.lists.len() as u64)
    }

    /// Puts a batch into the stream.
    ///
    /// # Errors
    /// The driver's refusal; what is in flight then is for the caller to wait for.
    ///
    /// # Safety
    /// Nothing else uses the parts' slots and positions, nor list `number`, and all of them live,
    /// until the stream has passed the batch.
    pub(super) unsafe fn enqueue(
        &self,
        stream: &Stream,
        buffers: &SlotBuffers,
        batch: &Batch,
        number: u32,
    ) -> Result<(), Refused> {
        if self.in_order
            && let Some(run) = batch.run()
        {
            // SAFETY: the caller's promise; the run's slots and positions lie side by side.
            let copied = unsafe { buffers.copy(stream, run.op, run.first, run.bytes) };
            return copied.map_err(|error| Refused { error, begun: false });
        }
        let plain = |part: &&Part| u64::from(part.len) >= GATHER_PLAIN_BYTES;
        let short = batch.parts().iter().filter(|part| !plain(part)).count();
        let launcher = self.launcher.as_ref().filter(|_| short > 1);
        let mut begun = false;
        for part in batch.parts().iter().filter(|part| launcher.is_none() || plain(part)) {
            // SAFETY: the caller's promise; a part is no longer than its slot.
            let copied = unsafe { buffers.copy(stream, part.op, part.slot, part.len as usize) };
            copied.map_err(|error| Refused { error, begun })?;
            begun = true;
        }
        let Some(launcher) = launcher else {
            return Ok(());
        };
        let parts = batch.parts().iter().filter(|part| !plain(part));
        // SAFETY: the caller's promise.
        let launched = unsafe { launcher.launch(stream, buffers, parts, number) };
        launched.map_err(|error| Refused { error, begun })
    }
}

impl Launcher {
    /// Writes list `number` and launches the kernel on it.
    ///
    /// # Safety
    /// As for [`BatchCopy::enqueue`].
    unsafe fn launch<'a>(
        &self,
        stream: &Stream,
        buffers: &SlotBuffers,
        parts: impl Iterator<Item = &'a Part> + Clone,
        number: u32,
    ) -> Result<(), GpuError> {
        let lens = parts.clone().map(|part| u64::from(part.len));
        let total = lens.clone().sum();
        let piece_max = self.kernel.piece_len(total);
        let longest = lens.max().unwrap_or(0).min(piece_max);
        let mut list = self.list(number);
        for part in parts {
            let (host, device) = (buffers.host(part.slot), buffers.device(part.slot));
            let (src, dst) = match part.op {
                Op::Read => (host, device),
                Op::Write => (device, host),
            };
            list.push(src, dst, u64::from(part.len), piece_max);
        }
        let shape = self.kernel.shape(list.count(), longest);
        // SAFETY: the list has just been written and is this batch's alone until the stream has
        // passed it; slots and positions are the caller's promise. Both begin at whole pages, so
        // that the rest of a word in which a block ends is live too.
        unsafe { self.kernel.launch(stream, list.ptr(), list.count(), shape) }
    }

    /// List `number`, empty. It is idle: no launch reads it.
    fn list(&self, number: u32) -> PieceList {
        let (first, bytes) = (number as usize * self.room, size_of::<Piece>());
        assert!((first + self.room) * bytes <= self.lists.len(), "list {number} is not there");
        let at = self.lists.as_ptr().as_ptr().cast::<Piece>().wrapping_add(first);
        let ptr = self.lists.ptr().byte_add((first * bytes) as u64);
        // SAFETY: inside the lists by the assertion, which begin at a page, and this batch's alone.
        unsafe { PieceList::new(at, ptr, self.room) }
    }
}
