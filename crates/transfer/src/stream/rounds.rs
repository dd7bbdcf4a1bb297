//! What of a transfer in a stream the stream has come to, and what of it is under way and done.
//!
//! Rounds are served one after the other, each in pieces. Who takes a piece, by one atomic
//! addition, is the only one to move it, and counts it off by another when that is done; who counts
//! off the last one ends the round, tells the stream, and opens the next where the stream has come
//! to it. Opening and ending are done with the progress locked, so each happens once. A round is
//! opened with its number, which nobody changes while a piece of it is not counted off, so whoever
//! has a piece may read what belongs to the round without the lock.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};

use gpuio_gpu::Piece;
use gpuio_io::engine::Op;

use super::Ended;
use super::order::{Order, Way};
use crate::fault::Fault;
use crate::job::{LARGE, unpanicked};
use crate::moved::{Moved, Route};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Condvar, Mutex, MutexGuard};

/// Where the number of pieces stands in a ticket; below is how many were taken.
const PIECES_SHIFT: u32 = 32;

/// How far a transfer is.
pub(super) struct Progress {
    /// Rounds that the stream has come to.
    reached: AtomicU64,
    /// The round under way, or the next.
    round: AtomicU64,
    /// Of the round that was opened last: its pieces, and how many of them were taken or more, by
    /// those who came late.
    ticket: AtomicU64,
    /// Pieces of that round that are not done.
    left: AtomicU64,
    /// Where the file ended, in bytes from the start.
    end: AtomicU64,
    /// Where the first piece that failed begins.
    failed_at: AtomicU64,
    tally: Mutex<Tally>,
    turn: Mutex<Turn>,
    /// A round ended, or nobody works any more on a transfer that was abandoned.
    changed: Condvar,
}

/// What pieces add to.
#[derive(Default)]
struct Tally {
    route: Route,
    failed: Option<(u64, Fault)>,
}

/// Whose turn it is.
struct Turn {
    /// A round is open: somebody will end it.
    open: bool,
    /// The last round is being ended, without the lock.
    ending: bool,
    /// It was not put into the stream in full, and is given up.
    abandoned: bool,
    /// Somebody waits for a change: telling nobody is a system call too.
    waited_for: bool,
    ended: Option<Ended>,
}

/// Bytes that one thread moves.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub(super) round: u64,
    /// From the start of the transfer on.
    pub(super) start: u64,
    pub(super) len: usize,
    /// Where in the file.
    pub(super) offset: u64,
    /// The address of the transfer's first byte.
    pub(super) address: u64,
    /// Whether the whole transfer is large.
    pub(super) large: bool,
}

impl Progress {
    pub(super) fn new(ended: Ended) -> Self {
        let (zero, never) = (|| AtomicU64::new(0), || AtomicU64::new(u64::MAX));
        let turn = Turn {
            open: false,
            ending: false,
            abandoned: false,
            waited_for: false,
            ended: Some(ended),
        };
        Self {
            reached: zero(),
            round: zero(),
            ticket: zero(),
            left: zero(),
            end: never(),
            failed_at: never(),
            tally: Mutex::default(),
            turn: Mutex::new(turn),
            changed: Condvar::new(),
        }
    }

    /// Pieces that nobody has taken.
    fn untaken(ticket: u64) -> u64 {
        (ticket >> PIECES_SHIFT).saturating_sub(ticket & u64::from(u32::MAX))
    }

    /// The bytes from the start that are worth moving: up to the file's end, or a failure.
    fn stop(&self) -> u64 {
        // Whoever told of it earlier did so before a piece was counted off, or a little late.
        self.end.load(Ordering::Relaxed).min(self.failed_at.load(Ordering::Relaxed))
    }

    /// Waits while that holds.
    fn wait_while<'a>(
        &'a self,
        mut turn: MutexGuard<'a, Turn>,
        holds: impl FnMut(&mut Turn) -> bool,
    ) -> MutexGuard<'a, Turn> {
        turn.waited_for = true;
        self.changed.wait_while(turn, holds).unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells of a change those who wait.
    fn tell(&self, turn: &Turn) {
        if turn.waited_for {
            self.changed.notify_all();
        }
    }

    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes which way bytes of a piece went.
    pub(super) fn count(&self, route: &Route) {
        self.tally().route.add(route);
    }

    /// Notes that the piece that begins there failed. The first one's fault is the transfer's.
    pub(super) fn fail(&self, start: u64, fault: Fault) {
        self.failed_at.fetch_min(start, Ordering::Relaxed);
        let mut tally = self.tally();
        if tally.failed.as_ref().is_none_or(|(first, _)| start < *first) {
            tally.failed = Some((start, fault));
        }
    }

    /// Notes that the file ended after so many bytes of the transfer.
    pub(super) fn ends(&self, bytes: u64) {
        self.end.fetch_min(bytes, Ordering::Relaxed);
    }
}

impl Order {
    fn turn(&self) -> MutexGuard<'_, Turn> {
        self.progress.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As far as bytes have come, or can.
    fn bytes(&self) -> u64 {
        self.know().len.min(self.progress.stop())
    }

    /// Reads the parameters and makes the lists of the first rounds of a write.
    pub(super) fn begin(&self) {
        let turn = self.turn();
        if turn.abandoned {
            return;
        }
        for round in 0..self.rounds.min(2) {
            self.list(round, self.know().len);
        }
    }

    /// Notes how far the stream tells by its word that it has come; true if nobody has before.
    pub(super) fn look(&self) -> bool {
        let rounds = self.area.rounds_reached().min(self.rounds);
        self.reach(rounds)
    }

    /// Notes that the stream has come to so many rounds; true if nobody has before.
    pub(super) fn reach(&self, rounds: u64) -> bool {
        let before = self.progress.reached.fetch_max(rounds, Ordering::AcqRel);
        if before == 0 {
            self.note_reached();
        }
        before < rounds
    }

    /// Whether the stream has come to all of it.
    pub(super) fn is_reached(&self) -> bool {
        self.progress.reached.load(Ordering::Acquire) >= self.rounds
    }

    /// Opens the next round if the stream has come to it and none is under way. Its pieces, which
    /// are to be taken now.
    pub(super) fn open(&self) -> Option<u32> {
        let turn = self.turn();
        if turn.open || turn.ending { None } else { self.open_next(turn) }
    }

    /// Who has come to a round and finds another under way may leave: whoever ends that one looks
    /// here, with the lock, how far the stream has come since.
    fn open_next<'a>(&'a self, mut turn: MutexGuard<'a, Turn>) -> Option<u32> {
        let progress = &self.progress;
        loop {
            let round = progress.round.load(Ordering::Relaxed);
            let reached = progress.reached.load(Ordering::Acquire).min(self.rounds);
            if round >= reached || turn.abandoned {
                return None;
            }
            let pieces = self.pieces(round);
            if pieces > 0 {
                turn.open = true;
                progress.left.store(u64::from(pieces), Ordering::Relaxed);
                // Release: who takes a piece sees the round's number and what is left.
                progress.ticket.store(u64::from(pieces) << PIECES_SHIFT, Ordering::Release);
                return Some(pieces);
            }
            turn = self.end_round(turn);
        }
    }

    /// Bytes of a round, and how many of them stand in its first chunk before the round begins.
    fn cut_at(&self, round: u64, until: u64) -> (u64, u64) {
        let start = round * self.part_len;
        let bytes = until.saturating_sub(start).min(self.part_len);
        let before = (self.know().offset + start) % self.chunk;
        // What one thread moves at once is not cut, wherever it begins.
        if bytes <= self.chunk { (bytes, 0) } else { (bytes, before) }
    }

    fn pieces(&self, round: u64) -> u32 {
        let (bytes, before) = self.cut_at(round, self.bytes());
        let pieces = if bytes == 0 { 0 } else { (before + bytes).div_ceil(self.chunk) };
        // `chunk` is made for far fewer.
        u32::try_from(pieces).unwrap_or(u32::MAX)
    }

    /// Pieces of the open round that nobody has taken.
    pub(super) fn untaken(&self) -> u64 {
        Progress::untaken(self.progress.ticket.load(Ordering::Relaxed))
    }

    fn take(&self) -> Option<Part> {
        // So the number below grows by one for each thread at most.
        if self.untaken() == 0 {
            return None;
        }
        let ticket = self.progress.ticket.fetch_add(1, Ordering::Acquire);
        let index = ticket & u64::from(u32::MAX);
        (Progress::untaken(ticket) > 0).then(|| self.part_of(ticket >> PIECES_SHIFT, index))
    }

    /// The piece of that number, of so many: it ends at a multiple of a chunk in the file, unless
    /// it is the only one.
    fn part_of(&self, pieces: u64, index: u64) -> Part {
        let known = self.know();
        let round = self.progress.round.load(Ordering::Relaxed);
        let first = round * self.part_len;
        let bytes = known.len.saturating_sub(first).min(self.part_len);
        let (start, end) = if pieces == 1 {
            (0, bytes.min(self.chunk))
        } else {
            let before = (known.offset + first) % self.chunk;
            let start = (index * self.chunk).saturating_sub(before);
            (start, ((index + 1) * self.chunk - before).min(bytes))
        };
        Part {
            round,
            start: first + start,
            len: usize::try_from(end - start).unwrap_or(usize::MAX),
            offset: known.offset + first + start,
            address: known.address,
            large: known.len >= LARGE,
        }
    }

    /// Has threads of ours serve the next round, if the stream has come to it and none is under
    /// way. Where there are no threads, this one does.
    pub(super) fn hand_over(self: &Arc<Self>) {
        let Some(pieces) = self.open() else {
            return;
        };
        if self.threads().push(self, pieces) {
            return;
        }
        if let Way::Call(_) = self.way {
            // A function that a stream calls must not call the driver.
            while let Some(part) = self.take() {
                self.progress.fail(part.start, Fault::Cancelled);
                self.count_off();
            }
        }
        self.work();
    }

    /// Moves pieces until there are none to take; false if there was none.
    pub(super) fn work(self: &Arc<Self>) -> bool {
        let mut worked = false;
        while let Some(part) = self.take() {
            worked = true;
            if part.start < self.progress.stop()
                && let Err(fault) = unpanicked(|| self.serve(part))
            {
                self.progress.fail(part.start, fault);
            }
            if let Some(pieces) = self.count_off()
                && pieces > 1
            {
                // What nobody comes for this thread does.
                self.threads().push(self, pieces - 1);
            }
        }
        worked
    }

    /// Counts a piece off. The pieces of the next round, if that was opened.
    fn count_off(&self) -> Option<u32> {
        // AcqRel: the last one sees what the others did, and tells the stream of all of it.
        if self.progress.left.fetch_sub(1, Ordering::AcqRel) > 1 {
            return None;
        }
        let mut turn = self.turn();
        turn.open = false;
        if turn.abandoned {
            self.progress.tell(&turn);
            return None;
        }
        let turn = self.end_round(turn);
        self.open_next(turn)
    }

    /// Ends a round, all of whose pieces are done, and tells the stream.
    fn end_round<'a>(&'a self, mut turn: MutexGuard<'a, Turn>) -> MutexGuard<'a, Turn> {
        let round = self.progress.round.load(Ordering::Relaxed);
        let is_last = round + 1 == self.rounds;
        if self.gathers() && self.op == Op::Read {
            self.list(round, self.bytes());
        }
        if self.gathers() && self.op == Op::Write && round + 2 < self.rounds {
            self.list(round + 2, self.bytes());
        }
        if is_last {
            turn.ending = true;
            let ended = turn.ended.take();
            drop(turn);
            if let Some(ended) = ended {
                let outcome = self.outcome();
                // The panic hook has told of it; the stream must not be held for it.
                let _ = catch_unwind(AssertUnwindSafe(|| ended(self.know().read, outcome)));
            }
            turn = self.turn();
            turn.ending = false;
        }
        self.progress.round.store(round + 1, Ordering::Relaxed);
        // Release, and the driver's promise of the wait: the stream sees the bytes and the list.
        self.pace.served();
        self.area.served().store(self.area.value(round + 1), Ordering::Release);
        if is_last && !(self.gathers() && self.op == Op::Read) {
            self.served.areas.give(self.area, self.rounds);
        }
        self.progress.tell(&turn);
        turn
    }

    fn outcome(&self) -> Result<Moved, Fault> {
        let known = self.know();
        if let Some(fault) = &known.refused {
            return Err(fault.clone());
        }
        let end = known.len.min(self.progress.end.load(Ordering::Relaxed));
        let mut tally = self.progress.tally();
        if let Some((start, fault)) = tally.failed.take()
            && start < end
        {
            return Err(fault);
        }
        Ok(Moved { bytes: usize::try_from(end).unwrap_or(usize::MAX), route: tally.route })
    }

    /// Waits until so many rounds have ended.
    pub(super) fn wait(&self, rounds: u64) {
        let progress = &self.progress;
        let goes_on =
            |turn: &mut Turn| progress.round.load(Ordering::Relaxed) < rounds && !turn.abandoned;
        drop(progress.wait_while(self.turn(), goes_on));
    }

    /// Gives up what could not be put into the stream in full: returns when nobody touches memory
    /// or parameters of the caller any more, and no stream waits for it. Its page-locked memory is
    /// never used again, unless the stream knows nothing of it.
    pub(super) fn abandon(&self) {
        self.threads().watch.forget(self);
        let progress = &self.progress;
        let mut turn = self.turn();
        turn.abandoned = true;
        // Nobody takes a piece from here on, and what nobody took is counted off.
        let untaken = Progress::untaken(progress.ticket.swap(0, Ordering::AcqRel));
        if untaken > 0 && progress.left.fetch_sub(untaken, Ordering::AcqRel) == untaken {
            turn.open = false;
        }
        let busy = |turn: &mut Turn| turn.open || turn.ending;
        turn = progress.wait_while(turn, busy);
        if progress.round.load(Ordering::Relaxed) == self.rounds {
            // It happened in full, and the area is another's by now, or lost with the last store.
            return;
        }
        drop(turn.ended.take());
        if !self.is_put() {
            self.served.areas.give(self.area, 0);
            return;
        }
        if self.gathers() {
            for part in 0..2.min(self.rounds) {
                let (first, _) = self.area.list(self.part(part), self.part_len);
                for at in 0..self.launch(part).0 as usize {
                    // SAFETY: as in `list`; a kernel that reads it now finds an entry or none.
                    unsafe { first.wrapping_add(at).write_volatile(Piece::default()) };
                }
            }
        }
        self.area.served().store(self.area.value(self.rounds), Ordering::Release);
    }
}
