//! The work of a thread for a call: it takes and moves pieces until none is left.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use gpuio_gpu::GpuError;

use super::deferred::{DeferredCompletion, InFlight};
use super::{Call, Piece};
use crate::Op;
use crate::clock::Clock;
use crate::device::staging::{StagingRing, StagingSlot};
use crate::device::{Device, Devices};
use crate::fault::Fault;
use crate::file::{FileBytes, OpenFile, ReadBuffer};
use crate::memory::LocationKind;
use crate::pool::Work;
use crate::transferred::RouteBytes;

/// Pieces that a write copies out of the GPU ahead of the file.
const AHEAD: usize = 2;

/// Runs work that others wait for. A panic becomes a fault, so that nobody waits forever.
pub(crate) fn catch_panic<T>(work: impl FnOnce() -> T) -> Result<T, Fault> {
    // The receiver of the fault counts unfinished work as failed, and locks are taken even if they
    // are poisoned.
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| Fault::Panicked)
}

impl Call {
    /// Moves pieces until none is left. Copies to the GPU that are then in flight go to `deferred`;
    /// their pieces count when it completes.
    pub(super) fn move_pieces(
        self: &Arc<Self>,
        devices: &'static Devices,
        deferred: &mut DeferredCompletion,
    ) {
        if !self.has_more() {
            return;
        }
        let LocationKind::Gpu { device, .. } = self.request.location.kind else {
            deferred.complete();
            return self.work_in_host();
        };
        deferred.complete_unless_same_file(self.file());
        let tried = devices.device(device).and_then(|device| {
            device.context().entered(|| {
                let (ring, mut before) = deferred.take_ring(device)?;
                self.work_with_ring(device, ring, &mut before, deferred);
                Ok::<(), GpuError>(())
            })?
        });
        if let Err(error) = tried {
            self.give_up(&Fault::Gpu(error));
        }
    }

    fn work_in_host(&self) {
        let (mut counted, mut route) = (0, RouteBytes::default());
        let worked = catch_panic(|| self.pieces_in_host(&mut counted, &mut route));
        let Err(fault) = worked else {
            return self.finish(counted, &route);
        };
        self.fail(0, fault.clone());
        self.finish(counted, &route);
        // No other thread may come for the remaining pieces.
        self.give_up(&fault);
    }

    fn pieces_in_host(&self, counted: &mut u64, route: &mut RouteBytes) {
        while let Some(piece) = self.take(counted) {
            let Ok(address) = usize::try_from(self.request.address + piece.start) else {
                unreachable!("addresses have 64 bits")
            };
            let at = std::ptr::with_exposed_provenance_mut::<u8>(address);
            let moved = match self.request.op {
                // SAFETY: the caller of the transfer promises that memory, and no other thread has
                // this piece of it.
                Op::Read => unsafe { self.read(ReadBuffer { at, slack: false }, piece) },
                // SAFETY: as above.
                Op::Write => unsafe { self.write(at, piece) },
            };
            if let Some(file_bytes) = moved {
                route.file(file_bytes);
                route.by_host += file_bytes.total() as u64;
            }
        }
    }

    fn work_with_ring(
        self: &Arc<Self>,
        device: &'static Device,
        ring: &'static mut StagingRing,
        before: &mut Option<InFlight>,
        deferred: &mut DeferredCompletion,
    ) {
        let (mut counted, mut route) = (0, RouteBytes::default());
        let in_gpu = |(start, error)| (start, Fault::Gpu(error));
        let worked = catch_panic(|| match self.request.op {
            Op::Read => self.read_to_gpu(ring, before, (&mut counted, &mut route)),
            Op::Write => self.write_from_gpu(ring, before, (&mut counted, &mut route)),
        });
        let worked = worked.map_or_else(|fault| Err((0, fault)), |worked| worked.map_err(in_gpu));
        // If there was no first piece.
        let completed = before.take().map_or(Ok(()), |before| before.complete(ring));
        let worked = worked.and(completed.map_err(|error| in_gpu((0, error))));
        let mut in_flight = InFlight { call: Arc::clone(self), counted, route };
        match worked {
            Ok(()) => deferred.defer(in_flight, device, ring),
            Err((start, fault)) => {
                self.fail(start, fault.clone());
                // Copies in flight must end before their pieces count and another thread gets the
                // ring.
                let synchronized = ring.synchronize();
                in_flight.settle(ring);
                if synchronized.is_ok() {
                    device.give_back(ring)
                } else {
                    device.abandon(ring)
                }
                self.finish(in_flight.counted, &in_flight.route);
                // The remaining pieces come after the failed one, and no other thread may take
                // them.
                self.give_up(&fault);
            }
        }
    }

    /// File to slot to GPU. Copies of some slots run while the next slot is filled.
    fn read_to_gpu(
        &self,
        ring: &mut StagingRing,
        before: &mut Option<InFlight>,
        (counted, route): (&mut u64, &mut RouteBytes),
    ) -> Result<(), (u64, GpuError)> {
        while let Some(piece) = self.take(counted) {
            let at = |error| (piece.start, error);
            let slot = ring.next_slot();
            ring.wait_for_slot(slot).map_err(at)?;
            let skip = self.skip(piece);
            let buffer = ReadBuffer { at: slot.memory.at.wrapping_add(skip), slack: true };
            let clock = Clock::start();
            // SAFETY: the slot is this thread's and holds the piece with its slack, see `skip`.
            let read = unsafe { self.read(buffer, piece) };
            let read_took = clock.now();
            if let Some(before) = before.take() {
                // It has completed by now, most likely, and its caller waits.
                before.complete(ring).map_err(at)?;
            }
            let Some(file_bytes) = read else {
                continue;
            };
            if file_bytes.total() == 0 {
                continue;
            }
            let address = self.request.address + piece.start;
            let location = self.request.location;
            let len = file_bytes.total();
            let copied = if file_bytes.direct > 0 {
                // SAFETY: the bytes are there; the caller of the transfer promises its memory until
                // the call is done, which is after the ring was waited for.
                unsafe { ring.copy_dma_to_gpu(slot, skip, location, address, len, read_took) }
            } else {
                // SAFETY: as above.
                unsafe { ring.copy(Op::Read, slot, skip, location, address, len) }
            };
            copied.map_err(at)?;
            route.file(file_bytes);
            route.by_copy += len as u64;
        }
        Ok(())
    }

    /// GPU to slot to file. The next piece is copied while one is written.
    fn write_from_gpu(
        &self,
        ring: &mut StagingRing,
        before: &mut Option<InFlight>,
        (counted, route): (&mut u64, &mut RouteBytes),
    ) -> Result<(), (u64, GpuError)> {
        if let Some(before) = before.take() {
            before.complete(ring).map_err(|error| (0, error))?;
        }
        let mut ahead: VecDeque<(StagingSlot, Piece)> = VecDeque::with_capacity(AHEAD);
        loop {
            while ahead.len() < AHEAD
                && let Some(piece) = self.take(counted)
            {
                let slot = ring.next_slot();
                let (skip, address) = (self.skip(piece), self.request.address + piece.start);
                // SAFETY: fewer slots are in flight than there are, so this one is free; the caller
                // of the transfer promises its memory until the call is done.
                unsafe {
                    let location = self.request.location;
                    ring.copy(Op::Write, slot, skip, location, address, piece.len)
                }
                .map_err(|error| (piece.start, error))?;
                ahead.push_back((slot, piece));
            }
            let Some((slot, piece)) = ahead.pop_front() else {
                return Ok(());
            };
            ring.wait_for_slot(slot).map_err(|error| (piece.start, error))?;
            let at = slot.memory.at.wrapping_add(self.skip(piece));
            // SAFETY: the piece's bytes, which are in the slot.
            if let Some(file_bytes) = unsafe { self.write(at, piece) } {
                route.file(file_bytes);
                route.by_copy += file_bytes.total() as u64;
            }
        }
    }

    /// Reads a piece; `None` if that failed, which is recorded.
    ///
    /// # Safety
    /// As [`OpenFile::read`].
    unsafe fn read(&self, buffer: ReadBuffer, piece: Piece) -> Option<FileBytes> {
        let offset = self.request.offset + piece.start;
        // SAFETY: the caller's promise.
        match unsafe { self.file().read(buffer, piece.len, offset, self.large()) } {
            Ok(file_bytes) => {
                if file_bytes.total() < piece.len {
                    self.ends(piece.start + file_bytes.total() as u64);
                }
                Some(file_bytes)
            }
            Err(failed) => {
                self.fail(piece.start, self.file().fault(failed));
                None
            }
        }
    }

    /// Writes a piece; `None` if that failed, which is recorded.
    ///
    /// # Safety
    /// As [`OpenFile::write`].
    unsafe fn write(&self, at: *const u8, piece: Piece) -> Option<FileBytes> {
        // SAFETY: the caller's promise.
        match unsafe { self.file().write(at, piece.len, self.request.offset + piece.start) } {
            Ok(file_bytes) => Some(file_bytes),
            Err(failed) => {
                self.fail(piece.start, self.file().fault(failed));
                None
            }
        }
    }

    pub(super) fn file(&self) -> &OpenFile {
        &self.request.file.0
    }

    /// Where a piece begins in its slot. Pieces end at multiples of `piece_len`, which is a
    /// multiple of the alignment, so a piece and its slack fit into a slot.
    fn skip(&self, piece: Piece) -> usize {
        self.file().skip(self.request.offset + piece.start)
    }
}
