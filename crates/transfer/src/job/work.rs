//! What a thread does for a job: takes pieces until there are none.

use std::collections::VecDeque;

use gpuio_gpu::GpuError;
use gpuio_io::engine::Op;

use super::{Job, Piece};
use crate::crew::{Turn, Work};
use crate::fault::Fault;
use crate::file::{Got, Inner, Spot};
use crate::gpus::{Device, Gpus};
use crate::lane::{Lane, Slot};
use crate::moved::Route;
use crate::place::Kind;

/// Pieces that a write has copied out of the GPU, or is copying, before they go to the file.
const AHEAD: usize = 2;

impl Job {
    /// Moves pieces until none is left to take, and returns when those it took have landed.
    pub(super) fn move_pieces(&self, gpus: &'static Gpus, turn: &mut Turn<'_>) {
        if !self.has_more() {
            return;
        }
        let Kind::Gpu { device, .. } = self.asked.place.kind else {
            return self.work_in_host();
        };
        let tried = gpus.device(device).and_then(|device| {
            device.context().entered(|| {
                let lane = device.lane()?;
                self.work_in_lane(device, lane, turn);
                Ok::<(), GpuError>(())
            })?
        });
        if let Err(error) = tried {
            self.give_up(&Fault::Gpu(error));
        }
    }

    fn work_in_host(&self) {
        let (mut counted, mut route) = (0, Route::default());
        while let Some(piece) = self.take(&mut counted) {
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
        self.finish(counted, &route);
    }

    fn work_in_lane(&self, device: &Device, lane: &'static mut Lane, turn: &mut Turn<'_>) {
        let (mut counted, mut route) = (0, Route::default());
        let worked = match self.asked.op {
            Op::Read => self.read_to_gpu(lane, &mut counted, &mut route),
            Op::Write => self.write_from_gpu(lane, &mut counted, &mut route),
        };
        if self.asked.op == Op::Read {
            // What is left is to wait for the GPU, which takes no more of the memory's bandwidth
            // than it must: who waits for a turn may wake up meanwhile.
            turn.end();
        }
        // What is under way must land before its pieces count and the lane is another's.
        let drained = if worked.is_ok() { lane.drain() } else { lane.settle() };
        let by_letters = lane.take_by_letters();
        route.by_kernel += by_letters;
        route.by_copy = route.by_copy.saturating_sub(by_letters);
        let drained_at = drained.as_ref().err().map(|error| (0, error.clone()));
        for (start, error) in worked.err().into_iter().chain(drained_at) {
            let fault = Fault::Gpu(error);
            self.fail(start, fault.clone());
            // What is left to take lies behind the piece that failed, and nobody else may come.
            while let Some(piece) = self.take(&mut counted) {
                self.fail(piece.start, fault.clone());
            }
        }
        match drained {
            Ok(()) => device.give(lane),
            Err(_) => device.lose(lane),
        }
        self.finish(counted, &route);
    }

    /// File to slot to GPU, the copies of some slots running while the next is filled.
    fn read_to_gpu(
        &self,
        lane: &mut Lane,
        counted: &mut u64,
        route: &mut Route,
    ) -> Result<(), (u64, GpuError)> {
        let mut turn = 0;
        while let Some(piece) = self.take(counted) {
            let at = |error| (piece.start, error);
            let slot = lane.slot(turn);
            lane.free(slot).map_err(at)?;
            let skip = self.skip(piece);
            let spot = Spot { at: slot.memory.at.wrapping_add(skip), slack: true };
            // SAFETY: the slot is this thread's and holds the piece with its slack, see `skip`.
            let Some(got) = (unsafe { self.read(spot, piece) }) else {
                continue;
            };
            if got.bytes() == 0 {
                continue;
            }
            let address = self.asked.address + piece.start;
            let place = self.asked.place;
            let put = if got.direct > 0 {
                // SAFETY: the bytes are there; the caller of the transfer promises its memory until
                // the job is done, which is after the lane was drained.
                unsafe { lane.bring_asleep(slot, skip, place, address, got.bytes()) }
            } else {
                // SAFETY: as above.
                unsafe { lane.bring(slot, skip, place, address, got.bytes()) }
            };
            put.map_err(at)?;
            route.file(got);
            route.by_copy += got.bytes() as u64;
            turn += 1;
        }
        Ok(())
    }

    /// GPU to slot to file, the copy of the next piece running while one is written.
    fn write_from_gpu(
        &self,
        lane: &mut Lane,
        counted: &mut u64,
        route: &mut Route,
    ) -> Result<(), (u64, GpuError)> {
        let mut ahead: VecDeque<(Slot, Piece)> = VecDeque::with_capacity(AHEAD);
        let mut turn = 0;
        loop {
            while ahead.len() < AHEAD
                && let Some(piece) = self.take(counted)
            {
                let slot = lane.slot(turn);
                turn += 1;
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

    fn file(&self) -> &Inner {
        &self.asked.file.0
    }

    /// Where in a slot a piece begins. Pieces end at multiples of a chunk, which is a multiple of
    /// the alignment, so the piece and its slack fit into a slot of a chunk's length.
    fn skip(&self, piece: Piece) -> usize {
        self.file().skip(self.asked.offset + piece.start)
    }
}
