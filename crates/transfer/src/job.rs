//! One call, cut into pieces that any number of threads work on.

mod counters;
mod deferred;
mod work;

use std::sync::{Arc, Mutex, PoisonError};

use gpuio_io::clock::Clock;
use gpuio_io::engine::Op;

use crate::device::Devices;
use crate::fault::Fault;
use crate::file::File;
use crate::memory::MemoryLocation;
use crate::pool::{Work, WorkOwner};
use crate::transferred::{RouteBytes, Transferred};
use counters::Counters;
pub(crate) use deferred::DeferredCompletion;
pub(crate) use work::catch_panic;

/// A call is large from here on, bytes: what it does not find in the page cache it reads past it.
pub(crate) const LARGE: u64 = 256 << 10;

/// Who moves the pieces of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Executors {
    /// Its caller, and threads of ours that help.
    CallerAndWorkers,
    /// Its caller, who is let into the file one at a time in any case.
    CallerOnly,
    /// Threads of ours, each a call at a time. The caller sleeps.
    WorkersOnly,
}

/// What a caller asked for.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) op: Op,
    pub(crate) file: File,
    pub(crate) location: MemoryLocation,
    pub(crate) address: u64,
    pub(crate) len: u64,
    pub(crate) offset: u64,
}

/// A call under way. Threads that come to it late hold it by its `Arc`; [`Counters`] tells why they
/// do no harm.
#[derive(Debug)]
pub(crate) struct Job {
    request: Request,
    executors: Executors,
    began: Clock,
    /// Bytes of a piece: a power of two. Pieces begin and end at its multiples in the file.
    piece_len: u64,
    counters: Counters,
    failed: Mutex<Option<(u64, Fault)>>,
    totals: Mutex<RouteBytes>,
}

/// A piece: bytes from the start of the call on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) start: u64,
    pub(crate) len: usize,
}

impl Job {
    /// Cuts a call, which is not empty and ends below 2^63 in the file, into pieces of `chunk`
    /// bytes.
    pub(crate) fn new(request: Request, executors: Executors, piece_len: u64) -> Self {
        let pieces = (request.offset % piece_len + request.len).div_ceil(piece_len);
        Self {
            request,
            executors,
            began: Clock::start(),
            piece_len,
            counters: Counters::new(pieces),
            failed: Mutex::new(None),
            totals: Mutex::default(),
        }
    }

    pub(crate) fn pieces(&self) -> u64 {
        self.counters.pieces()
    }

    pub(crate) fn executors(&self) -> Executors {
        self.executors
    }

    fn large(&self) -> bool {
        self.request.len >= LARGE
    }

    /// The next piece that has to be moved, counting in `counted` what is passed over: pieces
    /// behind the end of the file, or behind one that failed.
    fn take(&self, counted: &mut u64) -> Option<Piece> {
        let index = self.counters.take(counted, |index| self.piece(index).start)?;
        Some(self.piece(index))
    }

    fn piece(&self, index: u64) -> Piece {
        let before = self.request.offset % self.piece_len;
        let start = (index * self.piece_len).saturating_sub(before);
        let end = ((index + 1) * self.piece_len - before).min(self.request.len);
        // At most a chunk, which is below 2^32.
        Piece { start, len: usize::try_from(end - start).unwrap_or(0) }
    }

    /// Tells that the file ended after so many bytes of the call.
    fn ends(&self, bytes: u64) {
        self.counters.ends(bytes);
    }

    /// Tells that the piece that begins there failed. The first by offset is the call's answer.
    fn fail(&self, start: u64, fault: Fault) {
        self.counters.fails(start);
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if failed.as_ref().is_none_or(|(first, _)| start < *first) {
            *failed = Some((start, fault));
        }
    }

    /// Takes all pieces that are left and fails them.
    pub(crate) fn give_up(&self, fault: &Fault) {
        let mut counted = 0;
        while let Some(piece) = self.take(&mut counted) {
            self.fail(piece.start, fault.clone());
        }
        self.finish(counted, &RouteBytes::default());
    }

    /// Counts off pieces that have landed, and the way that their bytes went.
    fn finish(&self, count: u64, route: &RouteBytes) {
        if count == 0 {
            return;
        }
        self.totals.lock().unwrap_or_else(PoisonError::into_inner).add(route);
        self.counters.finish(count);
    }

    /// Says that the caller has no turn and wants one.
    pub(crate) fn set_waiting(&self) {
        self.counters.set_waiting();
    }

    pub(crate) fn has_permit(&self) -> bool {
        self.counters.has_permit()
    }

    /// Waits until all pieces have landed.
    pub(crate) fn wait(&self) {
        self.counters.wait();
    }

    /// Sleeps until all pieces have landed, for a caller who knows that this takes its time.
    pub(crate) fn sleep(&self) {
        self.counters.sleep();
    }

    /// Sleeps until the caller has a turn or all pieces have landed.
    pub(crate) fn sleep_until_permit(&self) {
        self.counters.sleep_until_permit();
    }

    /// What became of the call. All pieces have landed.
    pub(crate) fn outcome(&self) -> Result<Transferred, Fault> {
        let end = self.counters.end().min(self.request.len);
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((start, fault)) = failed
            && start < end
        {
            return Err(fault);
        }
        let route = *self.totals.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Transferred { bytes: usize::try_from(end).unwrap_or(usize::MAX), route })
    }
}

impl Work for Job {
    fn has_more(&self) -> bool {
        self.counters.has_more()
    }

    fn work(self: Arc<Self>, devices: &'static Devices, deferred: &mut DeferredCompletion) {
        self.move_pieces(devices, deferred);
    }

    fn owner(&self) -> WorkOwner {
        if self.executors == Executors::WorkersOnly {
            WorkOwner::Workers
        } else {
            WorkOwner::Caller
        }
    }

    fn is_starved(&self) -> bool {
        /// Nanoseconds: about as long as a thread of ours takes to wake up and take a call.
        const SOON: u64 = 200_000;
        self.is_unstarted() && self.began.now() > SOON
    }

    fn is_unstarted(&self) -> bool {
        self.counters.is_unstarted()
    }

    fn wants_permit(&self) -> bool {
        self.counters.wants_permit() && self.has_more()
    }

    fn grant_permit(&self) {
        self.counters.grant_permit();
    }

    fn may_leave_queue(&self) -> bool {
        self.executors == Executors::WorkersOnly && !self.has_more()
    }
}

#[cfg(test)]
mod tests;
