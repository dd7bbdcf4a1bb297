//! What a thread does for a job: takes pieces until there are none.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use gpuio_gpu::GpuError;
use gpuio_io::engine::Op;

use super::behind::{Behind, Flying};
use super::{Job, Piece};
use crate::crew::Work;
use crate::fault::Fault;
use crate::file::{Got, Inner, Spot};
use crate::gpus::{Device, Gpus};
use crate::lane::{Lane, Slot};
use crate::moved::Route;
use crate::place::Kind;

/// Pieces that a write has copied out of the GPU, or is copying, before they go to the file.
const AHEAD: usize = 2;

/// Does work that others wait for: a panic becomes a fault, so that nobody waits for ever.
pub(crate) fn unpanicked<T>(work: impl FnOnce() -> T) -> Result<T, Fault> {
    // What the work leaves half done is counted as failed by whoever gets the fault, and locks are
    // taken whether or not they are poisoned.
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| Fault::Panicked)
}

impl Job {
    /// Moves pieces until none is left to take. Those whose bytes are under way to the GPU then are
    /// left behind, and count when that is settled.
    pub(super) fn move_pieces(self: &Arc<Self>, gpus: &'static Gpus, behind: &mut Behind) {
        if !self.has_more() {
            return;
        }
        let Kind::Gpu { device, .. } = self.asked.place.kind else {
            behind.settle();
            return self.work_in_host();
        };
        behind.settle_but_of(self.file());
        let tried = gpus.device(device).and_then(|device| {
            device.context().entered(|| {
                let (lane, mut before) = behind.lane(device)?;
                self.work_in_lane(device, lane, &mut before, behind);
                Ok::<(), GpuError>(())
            })?
        });
        if let Err(error) = tried {
            self.give_up(&Fault::Gpu(error));
        }
    }

    fn work_in_host(&self) {
        let (mut counted, mut route) = (0, Route::default());
        let worked = unpanicked(|| self.pieces_in_host(&mut counted, &mut route));
        if let Err(fault) = worked {
            self.fail(0, fault);
        }
        self.finish(counted, &route);
    }

    fn pieces_in_host(&self, counted: &mut u64, route: &mut Route) {
        while let Some(piece) = self.take(counted) {
            let Ok(address) = usize::try_from(self.asked.address + piece.start) else {
                unreachable!("addresses have 64 bits")
            };
            let at = std::ptr::with_exposed_provenance_mut::<u8>(address);
            let moved = match self.asked.op {
                // SAFETY: the caller of the transfer promises that memory, and nobody else has
                // this piece of it.
                Op::Read => unsafe { self.read(Spot { at, slack: false }, piece) },
                // SAFETY: as above.
                Op::Write => unsafe { self.write(at, piece) },
            };
            if let Some(got) = moved {
                route.file(got);
                route.by_host += got.bytes() as u64;
            }
        }
    }

    fn work_in_lane(
        self: &Arc<Self>,
        device: &'static Device,
        lane: &'static mut Lane,
        before: &mut Option<Flying>,
        behind: &mut Behind,
    ) {
        let (mut counted, mut route) = (0, Route::default());
        let in_gpu = |(start, error)| (start, Fault::Gpu(error));
        let worked = unpanicked(|| match self.asked.op {
            Op::Read => self.read_to_gpu(lane, before, (&mut counted, &mut route)),
            Op::Write => self.write_from_gpu(lane, before, (&mut counted, &mut route)),
        });
        let worked = worked.map_or_else(|fault| Err((0, fault)), |worked| worked.map_err(in_gpu));
        // Where the first piece was not to be had.
        let landed = before.take().map_or(Ok(()), |before| before.land(lane));
        let worked = worked.and(landed.map_err(|error| in_gpu((0, error))));
        let flying = Flying { job: Arc::clone(self), counted, route };
        match worked {
            Ok(()) => behind.keep(flying, device, lane),
            Err((start, fault)) => {
                self.fail(start, fault.clone());
                // What is under way must land before its pieces count and the lane is another's.
                let settled = lane.settle();
                if settled.is_ok() {
                    device.give(lane)
                } else {
                    device.lose(lane)
                }
                self.finish(flying.counted, &flying.route);
                // What is left to take lies behind the piece that failed, and nobody else may come.
                self.give_up(&fault);
            }
        }
    }

    /// File to slot to GPU, the copies of some slots running while the next is filled.
    fn read_to_gpu(
        &self,
        lane: &mut Lane,
        before: &mut Option<Flying>,
        (counted, route): (&mut u64, &mut Route),
    ) -> Result<(), (u64, GpuError)> {
        while let Some(piece) = self.take(counted) {
            let at = |error| (piece.start, error);
            let slot = lane.next();
            lane.free(slot).map_err(at)?;
            let skip = self.skip(piece);
            let spot = Spot { at: slot.memory.at.wrapping_add(skip), slack: true };
            // SAFETY: the slot is this thread's and holds the piece with its slack, see `skip`.
            let read = unsafe { self.read(spot, piece) };
            if let Some(before) = before.take() {
                // By now it has landed, most likely, and somebody waits for it.
                before.land(lane).map_err(at)?;
            }
            let Some(got) = read else {
                continue;
            };
            if got.bytes() == 0 {
                continue;
            }
            let address = self.asked.address + piece.start;
            let place = self.asked.place;
            let put = if got.direct > 0 {
                // The kernel that takes letters has left during so long a wait, most likely.
                // SAFETY: the bytes are there; the caller of the transfer promises its memory until
                // the job is done, which is after the lane was drained.
                unsafe { lane.bring_by_copy(slot, skip, place, address, got.bytes()) }
            } else {
                // SAFETY: as above.
                unsafe { lane.bring(slot, skip, place, address, got.bytes()) }
            };
            put.map_err(at)?;
            route.file(got);
            route.by_copy += got.bytes() as u64;
        }
        Ok(())
    }

    /// GPU to slot to file, the copy of the next piece running while one is written.
    fn write_from_gpu(
        &self,
        lane: &mut Lane,
        before: &mut Option<Flying>,
        (counted, route): (&mut u64, &mut Route),
    ) -> Result<(), (u64, GpuError)> {
        if let Some(before) = before.take() {
            before.land(lane).map_err(|error| (0, error))?;
        }
        let mut ahead: VecDeque<(Slot, Piece)> = VecDeque::with_capacity(AHEAD);
        loop {
            while ahead.len() < AHEAD
                && let Some(piece) = self.take(counted)
            {
                let slot = lane.next();
                let (skip, address) = (self.skip(piece), self.asked.address + piece.start);
                // SAFETY: of the slots fewer are under way than there are, so this one is free;
                // the caller of the transfer promises its memory until the job is done.
                unsafe { lane.fetch(slot, skip, self.asked.place, address, piece.len) }
                    .map_err(|error| (piece.start, error))?;
                ahead.push_back((slot, piece));
            }
            let Some((slot, piece)) = ahead.pop_front() else {
                return Ok(());
            };
            lane.free(slot).map_err(|error| (piece.start, error))?;
            let at = slot.memory.at.wrapping_add(self.skip(piece));
            // SAFETY: the piece's bytes, which have landed in the slot.
            if let Some(got) = unsafe { self.write(at, piece) } {
                route.file(got);
                route.by_copy += got.bytes() as u64;
            }
        }
    }

    /// Reads a piece; `None` where that failed, which is noted.
    ///
    /// # Safety
    ///
    /// As [`Inner::read`].
    unsafe fn read(&self, spot: Spot, piece: Piece) -> Option<Got> {
        let offset = self.asked.offset + piece.start;
        // SAFETY: the caller's promise.
        match unsafe { self.file().read(spot, piece.len, offset, self.large()) } {
            Ok(got) => {
                if got.bytes() < piece.len {
                    self.ends(piece.start + got.bytes() as u64);
                }
                Some(got)
            }
            Err(failed) => {
                self.fail(piece.start, self.file().fault(failed));
                None
            }
        }
    }

    /// Writes a piece; `None` where that failed, which is noted.
    ///
    /// # Safety
    ///
    /// As [`Inner::write`].
    unsafe fn write(&self, at: *const u8, piece: Piece) -> Option<Got> {
        // SAFETY: the caller's promise.
        match unsafe { self.file().write(at, piece.len, self.asked.offset + piece.start) } {
            Ok(got) => Some(got),
            Err(failed) => {
                self.fail(piece.start, self.file().fault(failed));
                None
            }
        }
    }

    pub(super) fn file(&self) -> &Inner {
        &self.asked.file.0
    }

    /// Where in a slot a piece begins. Pieces end at multiples of a chunk, which is a multiple of
    /// the alignment, so the piece and its slack fit into a slot of a chunk's length.
    fn skip(&self, piece: Piece) -> usize {
        self.file().skip(self.asked.offset + piece.start)
    }
}
