//! What differs between paths with a ring: how a slot's bytes cross between host memory and where
//! they were asked for.

use gpuio_gpu::{GpuError, Stream};

use super::Request;
use super::ends::Ends;
use super::judge::Place;
use crate::engine::{Area, Io, Op};

/// Work that the driver did not take.
pub(super) struct Refused {
    pub(super) error: GpuError,
    /// Whether a part of it is under way all the same.
    pub(super) begun: bool,
}

/// The memory of a ring's slots, and the GPU leg over it.
pub(super) trait Crossing {
    /// The host memory of all slots, if an engine may keep it registered.
    fn area(&self) -> Option<Area>;

    /// The file I/O of a request.
    fn io(&self, request: &Request) -> Io;

    /// The first `len` bytes of a slot where they were asked for.
    ///
    /// # Panics
    /// If they are more than the slot holds.
    fn place(&self, slot: u32, len: u32) -> Place;

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
    /// Nobody else uses the slot, and `self` lives, until the stream has passed it.
    unsafe fn cross(&self, stream: &Stream, op: Op, slot: u32, len: u32) -> Result<(), Refused>;

    /// Makes the judge's kernels run on this thread, until [`Crossing::judged`].
    ///
    /// # Errors
    /// The driver's refusal.
    fn judge(&self) -> Result<(), GpuError> {
        Ok(())
    }

    /// Makes an idle slot's place one that a kernel may fill, waiting for it. A place in which a
    /// read has landed is one that a kernel may look at without.
    ///
    /// # Errors
    /// The driver's refusal.
    fn fillable(&self, _slot: u32, _len: u32) -> Result<(), GpuError> {
        Ok(())
    }

    /// Ends what [`Crossing::judge`] began.
    ///
    /// # Errors
    /// The driver's refusal.
    fn judged(&self) -> Result<(), GpuError> {
        Ok(())
    }

    /// What came from the file into a slot whose read has landed, if it still stands there.
    fn held_from_file(&self, slot: u32, len: u32) -> Option<&[u8]>;
}

/// One copy between a pinned slot and its place.
impl Crossing for Ends {
    fn area(&self) -> Option<Area> {
        Some(Ends::area(self))
    }

    fn io(&self, request: &Request) -> Io {
        Ends::io(self, request)
    }

    fn place(&self, slot: u32, len: u32) -> Place {
        Ends::place(self, slot, len)
    }

    unsafe fn cross(&self, stream: &Stream, op: Op, slot: u32, len: u32) -> Result<(), Refused> {
        let len = Ends::place(self, slot, len).len as usize;
        // SAFETY: `place` checked the length; the rest is the caller's promise.
        let copied = unsafe { self.copy(stream, op, slot, len) };
        copied.map_err(|error| Refused { error, begun: false })
    }

    fn held_from_file(&self, slot: u32, len: u32) -> Option<&[u8]> {
        Some(self.bytes_of(slot, len))
    }
}
