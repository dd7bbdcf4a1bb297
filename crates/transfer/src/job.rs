//! One call, cut into pieces that any number of threads work on.

mod behind;
mod work;

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use gpuio_io::clock::Clock;
use gpuio_io::engine::Op;
use rustix::thread::futex;

use crate::crew::{Owner, Work};
use crate::fault::Fault;
use crate::file::File;
use crate::gpus::Gpus;
use crate::moved::{Moved, Route};
use crate::place::Place;
pub(crate) use behind::Behind;
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

/// A call under way.
///
/// Who takes a piece (`next`, one atomic addition) is the only one to move it, and counts it off in
/// `left` when its bytes have landed. That subtraction releases and the caller's load of 0
/// acquires, through every subtraction between them, so all that was done for the pieces happened
/// before the call returns; and nobody touches the caller's memory without a piece, so a thread
/// that comes to the job late, and holds it by its `Arc`, does no harm.
#[derive(Debug)]
pub(crate) struct Job {
    asked: Asked,
    by: By,
    began: Clock,
    /// Bytes of a piece: a power of two. Pieces begin and end at its multiples in the file.
    chunk: u64,
    pieces: u64,
    next: AtomicU64,
    left: AtomicU64,
    /// Where the file ended, in bytes from the start of the call.
    end: AtomicU64,
    /// Where the first piece that failed begins.
    failed_at: AtomicU64,
    failed: Mutex<Option<(u64, Fault)>>,
    tally: Mutex<Route>,
    /// What the caller waits for: see [`Job::wait`].
    state: AtomicU32,
}

/// A piece: bytes from the start of the call on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) start: u64,
    pub(crate) len: usize,
}

/// All pieces have landed.
const DONE: u32 = 1;
/// The caller may work: see [`crate::crew`].
const TURN: u32 = 2;
/// The caller sleeps, or is about to.
const ASLEEP: u32 = 4;
/// The caller waits for a turn.
const WAITING: u32 = 8;

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
            pieces,
            next: AtomicU64::new(0),
            left: AtomicU64::new(pieces),
            end: AtomicU64::new(u64::MAX),
            failed_at: AtomicU64::new(u64::MAX),
            failed: Mutex::new(None),
            tally: Mutex::default(),
            state: AtomicU32::new(0),
        }
    }

    pub(crate) fn pieces(&self) -> u64 {
        self.pieces
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
        loop {
            if !self.has_more() {
                return None;
            }
            // AcqRel is not needed: what orders memory is `left`.
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            if index >= self.pieces {
                return None;
            }
            *counted += 1;
            let piece = self.piece(index);
            let stop = self.end.load(Ordering::Relaxed).min(self.failed_at.load(Ordering::Relaxed));
            if piece.start < stop {
                return Some(piece);
            }
        }
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
        self.end.fetch_min(bytes, Ordering::Relaxed);
    }

    /// Tells that the piece that begins there failed. The first by offset is the call's answer.
    fn fail(&self, start: u64, fault: Fault) {
        self.failed_at.fetch_min(start, Ordering::Relaxed);
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
        // AcqRel: the last one sees what the others did, and tells the caller of all of it.
        if self.left.fetch_sub(count, Ordering::AcqRel) == count {
            self.tell(DONE);
        }
    }

    /// Sets a bit that the caller waits for, and wakes it if it sleeps.
    fn tell(&self, bit: u32) {
        // AcqRel: the caller's load acquires what came before.
        if self.state.fetch_or(bit, Ordering::AcqRel) & ASLEEP != 0 {
            let _ = futex::wake(&self.state, futex::Flags::PRIVATE, 1);
        }
    }

    /// Says that the caller has no turn and wants one.
    pub(crate) fn set_waiting(&self) {
        self.state.fetch_or(WAITING, Ordering::AcqRel);
    }

    pub(crate) fn has_turn(&self) -> bool {
        self.state.load(Ordering::Acquire) & TURN != 0
    }

    /// Waits until all pieces have landed.
    pub(crate) fn wait(&self) {
        /// Looks before sleep, some 10 ns each: the last pieces of others end soon.
        const LOOKS: u32 = 2000;
        self.wait_for(DONE, LOOKS);
    }

    /// Sleeps until all pieces have landed, for a caller who knows that this takes its time.
    pub(crate) fn sleep(&self) {
        self.wait_for(DONE, 0);
    }

    /// Sleeps until the caller has a turn or all pieces have landed.
    pub(crate) fn sleep_for_turn(&self) {
        self.wait_for(DONE | TURN, 0);
        self.state.fetch_and(!ASLEEP, Ordering::AcqRel);
    }

    fn wait_for(&self, bits: u32, looks: u32) {
        for _ in 0..looks {
            if self.state.load(Ordering::Acquire) & bits != 0 {
                return;
            }
            std::hint::spin_loop();
        }
        let mut state = self.state.fetch_or(ASLEEP, Ordering::AcqRel) | ASLEEP;
        while state & bits == 0 {
            // Returns at once where the state is another by now, so no wake is lost.
            let _ = futex::wait(&self.state, futex::Flags::PRIVATE, state, None);
            state = self.state.load(Ordering::Acquire);
        }
    }

    /// What became of the call. All pieces have landed.
    pub(crate) fn outcome(&self) -> Result<Moved, Fault> {
        let end = self.end.load(Ordering::Relaxed).min(self.asked.len);
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
        self.next.load(Ordering::Relaxed) < self.pieces
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
        self.next.load(Ordering::Relaxed) == 0
    }

    fn wants_turn(&self) -> bool {
        self.state.load(Ordering::Acquire) & (WAITING | TURN) == WAITING && self.has_more()
    }

    fn give_turn(&self) {
        self.tell(TURN);
    }

    fn is_over(&self) -> bool {
        self.by == By::Us && !self.has_more()
    }
}

#[cfg(test)]
mod tests;
