//! Brings the parts of a batch across: one plain copy, or a launch of the gather kernel.

use gpuio_catalog::GATHER_PLAIN_BYTES;
use gpuio_gpu::{Context, GpuError, Stream};

use super::batch::{Batch, Part};
use crate::engine::Op;
use crate::path::launcher::Launcher;
use crate::path::slot_buffers::SlotBuffers;
use crate::path::stream_queues::Refused;

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
        let launcher = Launcher::new(context, (sizes.batches, sizes.parts), longest)?;
        Ok(BatchCopy { launcher: Some(launcher), in_order })
    }

    /// Bytes of host memory that the lists take.
    pub(super) fn bytes(&self) -> u64 {
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
        let launched = unsafe { launcher.launch(stream, number, blocks) };
        launched.map_err(|error| Refused { error, begun })
    }
}
