//! How threads share the pieces of a call, and how its caller learns that all have landed.

use rustix::thread::futex;

use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::sync::size;

/// The counters of a call under way.
///
/// Who takes a piece (`next`, one atomic addition) is the only one to move it, and counts it off in
/// `left` when its bytes have landed. That subtraction releases and the caller's load of `state`
/// acquires, through every subtraction between them, so all that was done for the pieces happened
/// before the call returns; and nobody touches the caller's memory without a piece, so a thread
/// that comes to the job late does no harm.
#[derive(Debug)]
pub(super) struct Counters {
    pieces: u64,
    next: AtomicU64,
    left: AtomicU64,
    /// Where the file ended, in bytes from the start of the call.
    end: AtomicU64,
    /// Where the first piece that failed begins.
    failed_at: AtomicU64,
    /// What the caller waits for: see [`Counters::wait`].
    state: AtomicU32,
}

/// All pieces have landed.
const DONE: u32 = 1;
/// The caller may work: see [`crate::crew`].
const TURN: u32 = 2;
/// The caller sleeps, or is about to.
const ASLEEP: u32 = 4;
/// The caller waits for a turn.
const WAITING: u32 = 8;

impl Counters {
    pub(super) fn new(pieces: u64) -> Self {
        Self {
            pieces,
            next: AtomicU64::new(0),
            left: AtomicU64::new(pieces),
            end: AtomicU64::new(u64::MAX),
            failed_at: AtomicU64::new(u64::MAX),
            state: AtomicU32::new(0),
        }
    }

    pub(super) fn pieces(&self) -> u64 {
        self.pieces
    }

    /// Whether there are pieces that nobody has taken.
    pub(super) fn has_more(&self) -> bool {
        self.next.load(Ordering::Relaxed) < self.pieces
    }

    /// Whether nobody has taken a piece.
    pub(super) fn is_fresh(&self) -> bool {
        self.next.load(Ordering::Relaxed) == 0
    }

    /// The number of the next piece that has to be moved, counting in `counted` what is passed
    /// over: pieces that begin behind the end of the file, or behind one that failed. `start` tells
    /// where a piece begins.
    pub(super) fn take(&self, counted: &mut u64, start: impl Fn(u64) -> u64) -> Option<u64> {
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
            let stop = self.end.load(Ordering::Relaxed).min(self.failed_at.load(Ordering::Relaxed));
            if start(index) < stop {
                return Some(index);
            }
        }
    }

    /// Tells that the file ended after so many bytes of the call.
    pub(super) fn ends(&self, bytes: u64) {
        self.end.fetch_min(bytes, Ordering::Relaxed);
    }

    /// Where the file ended, as far as that was told. Final once all pieces have landed.
    pub(super) fn end(&self) -> u64 {
        self.end.load(Ordering::Relaxed)
    }

    /// Tells that the piece that begins there failed.
    pub(super) fn fails(&self, start: u64) {
        self.failed_at.fetch_min(start, Ordering::Relaxed);
    }

    /// Counts off pieces that have landed.
    pub(super) fn finish(&self, count: u64) {
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
    pub(super) fn set_waiting(&self) {
        self.state.fetch_or(WAITING, Ordering::AcqRel);
    }

    pub(super) fn has_turn(&self) -> bool {
        self.state.load(Ordering::Acquire) & TURN != 0
    }

    /// Whether the caller waits for a turn that nobody has given it.
    pub(super) fn wants_turn(&self) -> bool {
        self.state.load(Ordering::Acquire) & (WAITING | TURN) == WAITING
    }

    pub(super) fn give_turn(&self) {
        self.tell(TURN);
    }

    /// Waits until all pieces have landed.
    pub(super) fn wait(&self) {
        /// Looks before sleep, some 10 ns each: the last pieces of others end soon.
        const LOOKS: u32 = size(2000, 1);
        self.wait_for(DONE, LOOKS);
    }

    /// Sleeps until all pieces have landed, for a caller who knows that this takes its time.
    pub(super) fn sleep(&self) {
        self.wait_for(DONE, 0);
    }

    /// Sleeps until the caller has a turn or all pieces have landed.
    pub(super) fn sleep_for_turn(&self) {
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
}
