//! How threads share the pieces of a call, and how its caller learns that all have completed.

use rustix::thread::futex;

use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::sync::size;

/// The counters of a call in progress.
///
/// Who takes a piece (`next`, one atomic addition) is the only one to move it, and subtracts it
/// from `remaining` when its bytes have arrived. That subtraction releases and the caller's load of
/// `state` acquires, through every subtraction between them, so all work on the pieces happens
/// before the call returns. No thread touches the caller's memory without a piece, so a thread that
/// arrives late does no harm.
#[derive(Debug)]
pub(super) struct Counters {
    pieces: u64,
    next: AtomicU64,
    remaining: AtomicU64,
    /// Where the file ended, in bytes from the start of the call.
    end: AtomicU64,
    /// Where the first failed piece begins.
    failed_at: AtomicU64,
    /// The word that the caller waits on: see [`Counters::wait`].
    state: AtomicU32,
}

/// All pieces have completed.
const DONE: u32 = 1;
/// The caller holds a permit: see [`crate::pool`].
const PERMIT: u32 = 2;
/// The caller sleeps, or is about to.
const ASLEEP: u32 = 4;
/// The caller waits for a permit.
const WAITING: u32 = 8;

impl Counters {
    pub(super) fn new(pieces: u64) -> Self {
        Self {
            pieces,
            next: AtomicU64::new(0),
            remaining: AtomicU64::new(pieces),
            end: AtomicU64::new(u64::MAX),
            failed_at: AtomicU64::new(u64::MAX),
            state: AtomicU32::new(0),
        }
    }

    pub(super) fn pieces(&self) -> u64 {
        self.pieces
    }

    /// Whether pieces are left that no thread has taken.
    pub(super) fn has_more(&self) -> bool {
        self.next.load(Ordering::Relaxed) < self.pieces
    }

    /// Whether no thread has taken a piece.
    pub(super) fn is_unstarted(&self) -> bool {
        self.next.load(Ordering::Relaxed) == 0
    }

    /// The index of the next piece to move. Adds to `counted` the pieces that it took, including
    /// those that it skipped: pieces beyond the end of the file or after a failed one. `start`
    /// returns where a piece begins.
    pub(super) fn take(&self, counted: &mut u64, start: impl Fn(u64) -> u64) -> Option<u64> {
        loop {
            if !self.has_more() {
                return None;
            }
            // AcqRel is not needed: `remaining` orders memory.
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            if index >= self.pieces {
                return None;
            }
            *counted += 1;
            let stop = self.end.load(Ordering::Relaxed).min(self.failed_at.load(Ordering::Relaxed));
            if start(index) < stop {
                return Some(index);
            }
        }
    }

    /// Records that the file ended after so many bytes of the call.
    pub(super) fn ends(&self, bytes: u64) {
        self.end.fetch_min(bytes, Ordering::Relaxed);
    }

    /// Where the file ended, as recorded so far. Final once all pieces have completed.
    pub(super) fn end(&self) -> u64 {
        self.end.load(Ordering::Relaxed)
    }

    /// Records that the piece at `start` failed.
    pub(super) fn fails(&self, start: u64) {
        self.failed_at.fetch_min(start, Ordering::Relaxed);
    }

    /// Counts completed pieces.
    pub(super) fn finish(&self, count: u64) {
        // AcqRel: the last one sees what the others did, and passes all of it to the caller.
        if self.remaining.fetch_sub(count, Ordering::AcqRel) == count {
            self.signal(DONE);
        }
    }

    /// Sets a bit that the caller waits for, and wakes the caller if it sleeps.
    fn signal(&self, bit: u32) {
        // AcqRel: the caller's load acquires what came before.
        if self.state.fetch_or(bit, Ordering::AcqRel) & ASLEEP != 0 {
            let _ = futex::wake(&self.state, futex::Flags::PRIVATE, 1);
        }
    }

    /// Records that the caller has no permit and wants one.
    pub(super) fn set_waiting(&self) {
        self.state.fetch_or(WAITING, Ordering::AcqRel);
    }

    pub(super) fn has_permit(&self) -> bool {
        self.state.load(Ordering::Acquire) & PERMIT != 0
    }

    /// Whether the caller waits for a permit that it has not been granted.
    pub(super) fn wants_permit(&self) -> bool {
        self.state.load(Ordering::Acquire) & (WAITING | PERMIT) == WAITING
    }

    pub(super) fn grant_permit(&self) {
        self.signal(PERMIT);
    }

    /// Waits until all pieces have completed.
    pub(super) fn wait(&self) {
        /// Checks before it sleeps, some 10 ns each: the last pieces of other threads end soon.
        const LOOKS: u32 = size(2000, 1);
        self.wait_for(DONE, LOOKS);
    }

    /// Sleeps, without spinning first, until all pieces have completed.
    pub(super) fn sleep(&self) {
        self.wait_for(DONE, 0);
    }

    /// Sleeps until the caller has a permit or all pieces have completed.
    pub(super) fn sleep_until_permit(&self) {
        self.wait_for(DONE | PERMIT, 0);
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
            // Returns at once if the state has changed, so no wake-up is lost.
            let _ = futex::wait(&self.state, futex::Flags::PRIVATE, state, None);
            state = self.state.load(Ordering::Acquire);
        }
    }
}
