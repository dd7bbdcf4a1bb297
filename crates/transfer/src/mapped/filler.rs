//! Copies out of a GPU into registered pages of files, in a context of our own.
//!
//! Pages that are read stay registered: unregistering waits for all work of the program's context,
//! and has other threads wait (`mapper`). Pages that are written must be let go of, since programs
//! remove such files. So they are registered in a context beside the primary one, in which only
//! copies of ours run: there the driver waits for these, and holds up no other thread
//! (docs/lab-book/library-mapped.md). Such a context takes GPU memory, so it is made with the first
//! file that is hot.

use std::sync::{Arc, Mutex, PoisonError};

use gpuio_gpu::{Context, GpuError, Stream};

use crate::device::pace::CopyPace;
use crate::device::staging::{PinnedMemory, StagingRing};

/// Bytes of a lane's slot: the head and the tail of a range, with their slack.
const SLOT: usize = 2 * SIDE;
/// The longest head or tail with its slack.
const SIDE: usize = 256 << 10;
/// The context is made only where one part in so many of the GPU's memory is free.
const FREE_SHARE: u64 = 8;

/// The context of one device and its lanes. Never freed.
#[derive(Debug)]
pub(super) struct Filler {
    pub(super) context: Context,
    /// In the program's context, and always empty: it says whether that is lost.
    program: Stream,
    pace: Arc<CopyPace>,
    /// A ring of one slot for each thread that copies at once.
    lanes: Mutex<Vec<StagingRing>>,
}

/// A copy of a range: into pages, and of its ends into a slot.
pub(super) struct FillCopy<'a> {
    /// Where the memory of the range begins.
    pub(super) address: u64,
    /// Bytes before it in the range, where it goes, and how many: each at least
    /// [`gpuio_gpu::COPIED_BY_DEVICE`].
    pub(super) parts: &'a [(u64, *mut u8, usize)],
    /// Head and tail: bytes before it in the range, its distance from a block of the file, and its
    /// bytes; these and the distance fit into [`SIDE`].
    pub(super) ends: [(u64, usize, usize); 2],
}

impl Filler {
    /// The context beside that of `primary`, in which `primary` memory stays reachable.
    pub(super) fn new(primary: &Context) -> Result<Option<Self>, GpuError> {
        let (free, total) = primary.memory()?;
        if free < total / FREE_SHARE {
            return Ok(None);
        }
        let context = Context::own(primary.driver(), primary.device())?;
        let (program, pace) = (Stream::new(primary)?, Arc::new(CopyPace::new()));
        Ok(Some(Self { context, program, pace, lanes: Mutex::default() }))
    }

    fn lane(&self) -> Result<StagingRing, GpuError> {
        let kept = self.lanes.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some(lane) = kept {
            return Ok(lane);
        }
        let memory = PinnedMemory::new(&self.context, SLOT)?;
        StagingRing::new(&self.context, memory, SLOT, 1, &self.pace)
    }

    /// Copies the ends and waits; `write` gets the number of the tail, 1, and where its bytes are;
    /// then copies the parts and waits; then `write` gets head and tail, 0 and 1. After an error of
    /// the first call nothing else is done.
    ///
    /// # Errors
    /// The driver's refusal, also of a question to the program's context: that is lost. No copy is
    /// in flight any more, unless ours is lost.
    ///
    /// # Safety
    /// The pages stay registered in this context, and the range's memory stays live and unwritten,
    /// until this returns.
    pub(super) unsafe fn copy<E>(
        &self,
        copy: &FillCopy<'_>,
        mut write: impl FnMut(usize, *const u8) -> Result<(), E>,
    ) -> Result<Result<(), E>, GpuError> {
        self.context.entered(|| {
            let mut lane = self.lane()?;
            let at = lane.slot(0).memory.at;
            let mut write_end = |end: usize| match copy.ends[end] {
                (_, _, 0) => Ok(()),
                (_, skip, _) => write(end, at.wrapping_add(end * SIDE + skip).cast_const()),
            };
            // SAFETY: the caller's promise.
            let copied = unsafe { copy_ends(&mut lane, copy) }.and_then(|()| {
                if let Err(error) = write_end(1) {
                    return Ok(Err(error));
                }
                // SAFETY: as above.
                unsafe { copy_parts(&mut lane, copy) }?;
                // A copy in the program's context would have failed.
                self.program.context().entered(|| self.program.query())??;
                Ok(write_end(0).and_then(|()| write_end(1)))
            });
            // Copies in flight must not meet the next user of slot and pages. A lane whose copies
            // may never end is never used again.
            if copied.is_err() && lane.synchronize().is_err() {
                std::mem::forget(lane);
            } else {
                self.give_back(lane);
            }
            copied
        })?
    }

    fn give_back(&self, lane: StagingRing) {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner).push(lane);
    }
}

/// Copies the parts and waits. The context is current.
///
/// # Safety
/// As [`Filler::copy`].
unsafe fn copy_parts(lane: &mut StagingRing, copy: &FillCopy<'_>) -> Result<(), GpuError> {
    let slot = lane.slot(0);
    for &(before, to, len) in copy.parts {
        // SAFETY: the caller's promise, until the wait below or that of the caller.
        unsafe { lane.copy_out(slot, to, copy.address + before, len) }?;
    }
    lane.wait_for_slot(slot)
}

/// The same of the ends.
///
/// # Safety
/// As [`Filler::copy`].
unsafe fn copy_ends(lane: &mut StagingRing, copy: &FillCopy<'_>) -> Result<(), GpuError> {
    let slot = lane.slot(0);
    for (end, &(before, skip, len)) in copy.ends.iter().enumerate() {
        if len == 0 {
            continue;
        }
        debug_assert!(skip + len <= SIDE);
        let to = slot.memory.at.wrapping_add(end * SIDE + skip);
        // SAFETY: bytes of the lane's slot, which is this thread's; else as above.
        unsafe { lane.copy_out(slot, to, copy.address + before, len) }?;
    }
    lane.wait_for_slot(slot)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    use gpuio_gpu::{COPIED_BY_DEVICE, DeviceBuf, Driver, FilePages, MemoryKind, Which};

    use super::*;

    #[test]
    fn the_tail_is_written_before_anything_is_filled_and_again_after() {
        const LEN: usize = 1 << 20;
        let primary = Context::new(&Driver::load(&Which::Software).unwrap(), 0).unwrap();
        let filler = Filler::new(&primary).unwrap().unwrap();
        let fd = rustix::fs::memfd_create(c"filled", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let file = std::fs::File::from(fd);
        file.write_all_at(&[1; LEN], 0).unwrap();
        let pages = FilePages::map_to_write(file.as_fd(), 0..LEN as u64).unwrap();
        let pages = pages.register(&filler.context, false).unwrap();
        let memory = DeviceBuf::alloc(&primary, MemoryKind::Device, LEN).unwrap();
        let put = primary.entered(|| {
            let stream = Stream::new(&primary)?;
            // SAFETY: both are as long as this, and the stream is waited for.
            unsafe { stream.h2d(memory.ptr(), [2; LEN].as_ptr(), LEN) }?;
            stream.sync()
        });
        put.unwrap().unwrap();
        let filled = COPIED_BY_DEVICE;
        let parts = [(4096, pages.as_ptr().wrapping_add(4096).cast_mut(), filled)];
        let ends = [(0, 0, 4096), (4096 + filled as u64, 0, 100)];
        let copy = FillCopy { address: memory.ptr().0, parts: &parts, ends };
        let is_filled = || {
            let mut byte = [0];
            file.read_exact_at(&mut byte, 4096).unwrap();
            byte == [2]
        };
        let mut calls = Vec::new();
        let mut write = |fails: bool| {
            let write = |end, at: *const u8| {
                // SAFETY: the first byte of an end.
                assert_eq!(unsafe { at.read() }, 2);
                calls.push((end, is_filled()));
                if fails { Err(()) } else { Ok(()) }
            };
            // SAFETY: the pages stay registered, and no one else has the memory.
            unsafe { filler.copy(&copy, write) }.unwrap()
        };
        assert_eq!((write(true), write(false)), (Err(()), Ok(())));
        assert_eq!(calls, [(1, false), (1, false), (0, true), (1, true)]);
        pages.close().unwrap();
    }
}
