//! One call, cut into pieces that any number of threads work on.

mod behind;
mod counters;
mod work;

use std::sync::{Arc, Mutex, PoisonError};

use gpuio_io::clock::Clock;
use gpuio_io::engine::Op;

use crate::crew::{Owner, Work};
use crate::fault::Fault;
use crate::file::File;
use crate::gpus::Gpus;
use crate::moved::{Moved, Route};
use crate::place::Place;
pub(crate) use behind::Behind;
use counters::Counters;
pub(crate) use work::unpanicked;

/// A call is large from here on, bytes: what it does not find in the page cache it reads past it.
pub(crate) const LARGE: u64 = 256 << 10;

/// Who moves the pieces of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// Its caller, and threads of ours that help.
    All,
    /// Its caller, who is let into the file one at a time in any case.
    Caller,
    /// Threads of ours, each a call at a time. The caller sleeps.
    Us,
}

/// What a caller asked for.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) op: Op,
    pub(crate) file: File,
    pub(crate) place: Place,
    pub(crate) address: u64,
    pub(crate) len: u64,
    pub(crate) offset: u64,
}

/// A call under way. Threads that come to it late hold it by its `Arc`; [`Counters`] tells why they
/// do no harm.
#[derive(Debug)]
pub(crate) struct Job {
    asked: Asked,
    by: By,
    began: Clock,
    /// Bytes of a piece: a power of two. Pieces begin and end at its multiples in the file.
    chunk: u64,
    counters: Counters,
    failed: Mutex<Option<(u64, Fault)>>,
    tally: Mutex<Route>,
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
    pub(crate) fn new(asked: Asked, by: By, chunk: u64) -> Self {
        let pieces = (asked.offset % chunk + asked.len).div_ceil(chunk);
        Self {
            asked,
            by,
            began: Clock::start(),
            chunk,
            counters: Counters::new(pieces),
            failed: Mutex::new(None),
            tally: Mutex::default(),
        }
    }

    pub(crate) fn pieces(&self) -> u64 {
        self.counters.pieces()
    }

    pub(crate) fn by(&self) -> By {
        self.by
    }

    fn large(&self) -> bool {
        self.asked.len >= LARGE
    }

    /// The next piece that has to be moved, counting in `counted` what is passed over: pieces
    /// behind the end of the file, or behind one that failed.
    fn take(&self, counted: &mut u64) -> Option<Piece> {
        let index = self.counters.take(counted, |index| self.piece(index).start)?;
        Some(self.piece(index))
    }

    fn piece(&self, index: u64) -> Piece {
        let before = self.asked.offset % self.chunk;
        let start = (index * self.chunk).saturating_sub(before);
        let end = ((index + 1) * self.chunk - before).min(self.asked.len);
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
        self.finish(counted, &Route::default());
    }

    /// Counts off pieces that have landed, and the way that their bytes went.
    fn finish(&self, count: u64, route: &Route) {
        if count == 0 {
            return;
        }
        self.tally.lock().unwrap_or_else(PoisonError::into_inner).add(route);
        self.counters.finish(count);
    }

    /// Says that the caller has no turn and wants one.
    pub(crate) fn set_waiting(&self) {
        self.counters.set_waiting();
    }

    pub(crate) fn has_turn(&self) -> bool {
        self.counters.has_turn()
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
    pub(crate) fn sleep_for_turn(&self) {
        self.counters.sleep_for_turn();
    }

    /// What became of the call. All pieces have landed.
    pub(crate) fn outcome(&self) -> Result<Moved, Fault> {
        let end = self.counters.end().min(self.asked.len);
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((start, fault)) = failed
            && start < end
        {
            return Err(fault);
        }
        let route = *self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Moved { bytes: usize::try_from(end).unwrap_or(usize::MAX), route })
    }
}

impl Work for Job {
    fn has_more(&self) -> bool {
        self.counters.has_more()
    }

    fn work(self: Arc<Self>, gpus: &'static Gpus, behind: &mut Behind) {
        self.move_pieces(gpus, behind);
    }

    fn owner(&self) -> Owner {
        if self.by == By::Us { Owner::Us } else { Owner::Caller }
    }

    fn is_left(&self) -> bool {
        /// Nanoseconds: about as long as a thread of ours takes to wake up and take a call.
        const SOON: u64 = 200_000;
        self.is_fresh() && self.began.now() > SOON
    }

    fn is_fresh(&self) -> bool {
        self.counters.is_fresh()
    }

    fn wants_turn(&self) -> bool {
        self.counters.wants_turn() && self.has_more()
    }

    fn give_turn(&self) {
        self.counters.give_turn();
    }

    fn is_over(&self) -> bool {
        self.by == By::Us && !self.has_more()
    }
}

#[cfg(test)]
mod tests;
