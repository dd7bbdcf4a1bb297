//! Copies out of a GPU into registered pages of files, in a context of our own.
//!
//! Pages that are read stay registered: unregistering waits for all work of the program's context,
//! and has other threads wait (`mapper`). Pages that are written must be let go of, since programs
//! remove such files. So they are registered in a context beside the primary one, in which only
//! copies of ours run: there the driver waits for these, and holds up no other thread
//! (docs/lab-book/library-mapped.md). Such a context takes GPU memory, so it is made with the first
//! file that is hot.

use std::sync::{Arc, Mutex, PoisonError};

use gpuio_gpu::{Context, GpuError};

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
        Ok(Some(Self { context, pace: Arc::new(CopyPace::new()), lanes: Mutex::default() }))
    }

    fn lane(&self) -> Result<StagingRing, GpuError> {
        let kept = self.lanes.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some(lane) = kept {
            return Ok(lane);
        }
        let memory = PinnedMemory::new(&self.context, SLOT)?;
        StagingRing::new(&self.context, memory, SLOT, 1, &self.pace)
    }

    /// Copies and waits; then `write` gets the number of each end, 0 and 1, and where its bytes
    /// are.
    ///
    /// # Errors
    /// The driver's refusal. No copy is in flight any more, unless the context is lost.
    ///
    /// # Safety
    /// The pages stay registered in this context, and the range's memory stays live and unwritten,
    /// until this returns.
    pub(super) unsafe fn copy<E>(
        &self,
        copy: &FillCopy<'_>,
        write: impl FnMut(usize, *const u8) -> Result<(), E>,
    ) -> Result<Result<(), E>, GpuError> {
        let copied = self.context.entered(|| {
            let mut lane = self.lane()?;
            // SAFETY: the caller's promise.
            match unsafe { enqueue(&mut lane, copy) } {
                Ok(()) => Ok(lane),
                Err(error) => {
                    // Copies in flight must not meet the next user of slot and pages. A lane whose
                    // copies may never end is never used again.
                    match lane.synchronize() {
                        Ok(()) => self.give_back(lane),
                        Err(_) => std::mem::forget(lane),
                    }
                    Err(error)
                }
            }
        });
        let lane = copied??;
        let at = lane.slot(0).memory.at;
        let places = copy.ends.iter().enumerate();
        let places = places.filter(|(_, (_, _, len))| *len > 0);
        let written = places
            .map(|(end, (_, skip, _))| (end, at.wrapping_add(end * SIDE + skip).cast_const()))
            .try_for_each({
                let mut write = write;
                move |(end, at)| write(end, at)
            });
        self.give_back(lane);
        Ok(written)
    }

    fn give_back(&self, lane: StagingRing) {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner).push(lane);
    }
}

/// Enqueues all copies and waits for them. The context is current.
///
/// # Safety
/// As [`Filler::copy`].
unsafe fn enqueue(lane: &mut StagingRing, copy: &FillCopy<'_>) -> Result<(), GpuError> {
    let slot = lane.slot(0);
    for &(before, to, len) in copy.parts {
        // SAFETY: the caller's promise, until the wait below or that of the caller.
        unsafe { lane.copy_out(slot, to, copy.address + before, len) }?;
    }
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
