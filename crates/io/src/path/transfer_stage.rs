//! What differs between paths with a ring: how a slot's bytes cross between host memory and where
//! they were requested.

use gpuio_gpu::Stream;

use super::slot_buffers::SlotBuffers;
use super::stream_queues::Refused;
use super::two_legs::Slots;
use crate::engine::Op;

/// The slots of a ring, and the GPU leg over them.
pub(super) trait TransferStage: Slots {
    /// Puts into the stream what must be over before a file may be read into the slot. Answers
    /// whether there was anything.
    ///
    /// # Errors
    /// The driver's refusal.
    fn ready(&self, _stream: &Stream, _slot: u32, _len: u32) -> Result<bool, Refused> {
        Ok(false)
    }

    /// Puts the GPU leg of a slot's first `len` bytes into the stream.
    ///
    /// # Errors
    /// The driver's refusal.
    ///
    /// # Safety
    /// Nothing else uses the slot, and `self` lives, until the stream has passed it.
    unsafe fn transfer(&self, stream: &Stream, op: Op, slot: u32, len: u32) -> Result<(), Refused>;
}

/// One copy between a pinned slot and its location.
impl TransferStage for SlotBuffers {
    unsafe fn transfer(&self, stream: &Stream, op: Op, slot: u32, len: u32) -> Result<(), Refused> {
        let len = self.location(slot, len).len as usize;
        // SAFETY: `location` checked the length; the rest is the caller's promise.
        let copied = unsafe { self.copy(stream, op, slot, len) };
        copied.map_err(|error| Refused { error, begun: false })
    }
}
