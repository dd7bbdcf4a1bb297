//! One call, split into pieces that any number of threads work on.

mod counters;
mod deferred;
mod work;

use std::sync::{Arc, Mutex, PoisonError};

use crate::Op;
use crate::clock::Clock;
use crate::device::Devices;
use crate::fault::Fault;
use crate::file::File;
use crate::memory::MemoryLocation;
use crate::pool::{Work, WorkOwner};
use crate::transferred::{RouteBytes, Transferred};
use counters::Counters;
pub(crate) use deferred::DeferredCompletion;
pub(crate) use work::catch_panic;

/// From this length on, in bytes, a call is large: it reads with `O_DIRECT` what the page cache
/// does not hold.
pub(crate) const LARGE: u64 = 256 << 10;

/// Who moves the pieces of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Executors {
    /// Its caller, helped by workers.
    CallerAndWorkers,
    /// Its caller alone: the kernel lets only one thread into the file anyway.
    CallerOnly,
    /// Workers: each takes whole calls, one after another. The caller sleeps.
    WorkersOnly,
}

#[derive(Debug, Clone)]
pub(crate) struct CallRequest {
    pub(crate) op: Op,
    pub(crate) file: File,
    pub(crate) location: MemoryLocation,
    pub(crate) address: u64,
    pub(crate) len: u64,
    pub(crate) offset: u64,
}

/// A call in progress. Threads that arrive late keep it alive by their `Arc`; [`Counters`] explains
/// why they do no harm.
#[derive(Debug)]
pub(crate) struct Call {
    request: CallRequest,
    executors: Executors,
    began: Clock,
    /// Bytes of a piece: a power of two. In the file, pieces begin and end at its multiples.
    piece_len: u64,
    counters: Counters,
    failed: Mutex<Option<(u64, Fault)>>,
    totals: Mutex<RouteBytes>,
}

/// A piece: a range in bytes from the start of the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) start: u64,
    pub(crate) len: usize,
}

impl Call {
    /// Splits a call into pieces of `piece_len` bytes. The call is not empty and ends below 2^63.
    pub(crate) fn new(request: CallRequest, executors: Executors, piece_len: u64) -> Self {
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

    pub(crate) fn request(&self) -> &CallRequest {
        &self.request
    }

    pub(crate) fn executors(&self) -> Executors {
        self.executors
    }

    fn large(&self) -> bool {
        self.request.len >= LARGE
    }

    /// Takes the next piece to move. Adds to `counted` the pieces that it took, including those
    /// that it skipped: pieces beyond the end of the file or after a failed one.
    fn take(&self, counted: &mut u64) -> Option<Piece> {
        let index = self.counters.take(counted, |index| self.piece(index).start)?;
        Some(self.piece(index))
    }

    fn piece(&self, index: u64) -> Piece {
        let before = self.request.offset % self.piece_len;
        let start = (index * self.piece_len).saturating_sub(before);
        let end = ((index + 1) * self.piece_len - before).min(self.request.len);
        // At most the length of a piece, which is below 2^32.
        Piece { start, len: usize::try_from(end - start).unwrap_or(0) }
    }

    /// Records that the file ended after so many bytes of the call.
    fn ends(&self, bytes: u64) {
        self.counters.ends(bytes);
    }

    /// Records that the piece at `start` failed. The first failure by offset is the call's result.
    fn fail(&self, start: u64, fault: Fault) {
        self.counters.fails(start);
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if failed.as_ref().is_none_or(|(first, _)| start < *first) {
            *failed = Some((start, fault));
        }
    }

    /// Takes all remaining pieces and fails them.
    pub(crate) fn give_up(&self, fault: &Fault) {
        let mut counted = 0;
        while let Some(piece) = self.take(&mut counted) {
            self.fail(piece.start, fault.clone());
        }
        self.finish(counted, &RouteBytes::default());
    }

    /// Counts completed pieces and the route of their bytes.
    fn finish(&self, count: u64, route: &RouteBytes) {
        if count == 0 {
            return;
        }
        self.totals.lock().unwrap_or_else(PoisonError::into_inner).add(route);
        self.counters.finish(count);
    }

    /// Records that the caller has no permit and wants one.
    pub(crate) fn set_waiting(&self) {
        self.counters.set_waiting();
    }

    pub(crate) fn has_permit(&self) -> bool {
        self.counters.has_permit()
    }

    /// Waits until all pieces have completed.
    pub(crate) fn wait(&self) {
        self.counters.wait();
    }

    /// Sleeps, without spinning first, until all pieces have completed.
    pub(crate) fn sleep(&self) {
        self.counters.sleep();
    }

    /// Sleeps until the caller has a permit or all pieces have completed.
    pub(crate) fn sleep_until_permit(&self) {
        self.counters.sleep_until_permit();
    }

    /// The call's result. All pieces have completed.
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

impl Work for Call {
    fn has_more(&self) -> bool {
        self.counters.has_more()
    }

    fn device(&self) -> Option<u32> {
        self.request.location.device()
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
        /// Nanoseconds: about as long as a worker needs to wake up and take a call.
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
