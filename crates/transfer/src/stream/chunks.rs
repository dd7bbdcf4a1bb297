//! Which chunks of a stream operation the stream has reached, and which are in progress or done.
//!
//! Chunks are served one after the other, each in pieces. Who takes a piece, by one atomic
//! addition, is the only one to move it, and counts it by another when it is done. Who counts the
//! last one ends the chunk, signals the stream, and opens the next chunk if the stream has reached
//! it. Opening and ending happen under the lock, so each happens once. A chunk is opened with its
//! number, which does not change while one of its pieces is not counted, so whoever has a piece may
//! read the chunk's data without the lock.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};

use gpuio_gpu::Piece;

use super::OnCompletion;
use super::op::{Method, StreamOp};
use crate::Op;
use crate::call::{LARGE, catch_panic};
use crate::fault::Fault;
use crate::mapped::MappedRange;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Condvar, Mutex, MutexGuard};
use crate::transferred::{RouteBytes, Transferred};

/// The upper half of a ticket holds the number of pieces; the lower half counts those taken.
const PIECES_SHIFT: u32 = 32;

pub(super) struct Progress {
    /// Chunks that the stream has reached.
    reached: AtomicU64,
    /// The chunk in progress, or the next one.
    chunk: AtomicU64,
    /// The state of the chunk opened last: its number of pieces, and how many were taken (or more,
    /// by threads that came late).
    ticket: AtomicU64,
    /// Pieces of that chunk that are not done.
    left: AtomicU64,
    /// Where the file ended, in bytes from the start.
    end: AtomicU64,
    /// Where the first failed piece begins.
    failed_at: AtomicU64,
    totals: Mutex<Totals>,
    chunk_state: Mutex<ChunkState>,
    /// A chunk ended, or no thread works any more on an abandoned operation.
    changed: Condvar,
}

/// The sums over all pieces.
#[derive(Default)]
struct Totals {
    route: RouteBytes,
    failed: Option<(u64, Fault)>,
}

struct ChunkState {
    /// The chunk is open: some thread will end it.
    open: bool,
    /// The last chunk is being ended, without the lock.
    ending: bool,
    /// The operation was not enqueued in full and is given up.
    abandoned: bool,
    /// A thread waits for a change. Notifying without a waiter would still be a system call.
    waited_for: bool,
    on_completion: Option<OnCompletion>,
}

/// The range that one thread moves.
#[derive(Debug, Clone, Copy)]
pub(super) struct PieceRange {
    pub(super) chunk: u64,
    /// From the start of the operation.
    pub(super) start: u64,
    pub(super) len: usize,
    pub(super) offset: u64,
    /// The address of the operation's first byte.
    pub(super) address: u64,
    /// Whether the whole operation is large.
    pub(super) large: bool,
}

impl Progress {
    pub(super) fn new(on_completion: OnCompletion) -> Self {
        let (zero, never) = (|| AtomicU64::new(0), || AtomicU64::new(u64::MAX));
        let chunk_state = ChunkState {
            open: false,
            ending: false,
            abandoned: false,
            waited_for: false,
            on_completion: Some(on_completion),
        };
        Self {
            reached: zero(),
            chunk: zero(),
            ticket: zero(),
            left: zero(),
            end: never(),
            failed_at: never(),
            totals: Mutex::default(),
            chunk_state: Mutex::new(chunk_state),
            changed: Condvar::new(),
        }
    }

    /// Pieces that no thread has taken.
    fn untaken(ticket: u64) -> u64 {
        (ticket >> PIECES_SHIFT).saturating_sub(ticket & u64::from(u32::MAX))
    }

    /// The bytes from the start that are worth moving: up to the end of the file, or a failure.
    fn stop(&self) -> u64 {
        // These were stored before the piece was counted, or are seen a little late.
        self.end.load(Ordering::Relaxed).min(self.failed_at.load(Ordering::Relaxed))
    }

    /// Waits while the condition holds.
    fn wait_while<'a>(
        &'a self,
        mut chunk_state: MutexGuard<'a, ChunkState>,
        holds: impl FnMut(&mut ChunkState) -> bool,
    ) -> MutexGuard<'a, ChunkState> {
        chunk_state.waited_for = true;
        self.changed.wait_while(chunk_state, holds).unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the threads that wait for a change.
    fn notify(&self, chunk_state: &ChunkState) {
        if chunk_state.waited_for {
            self.changed.notify_all();
        }
    }

    fn totals(&self) -> MutexGuard<'_, Totals> {
        self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the route of a piece's bytes.
    pub(super) fn count(&self, route: &RouteBytes) {
        self.totals().route.add(route);
    }

    /// Records that the piece at `start` failed. The first fault by offset is the operation's.
    pub(super) fn fail(&self, start: u64, fault: Fault) {
        self.failed_at.fetch_min(start, Ordering::Relaxed);
        let mut totals = self.totals();
        if totals.failed.as_ref().is_none_or(|(first, _)| start < *first) {
            totals.failed = Some((start, fault));
        }
    }

    /// Records that the file ended after so many bytes of the operation.
    pub(super) fn ends(&self, bytes: u64) {
        self.end.fetch_min(bytes, Ordering::Relaxed);
    }
}

impl StreamOp {
    fn lock_chunk_state(&self) -> MutexGuard<'_, ChunkState> {
        self.progress.chunk_state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bytes that have been moved, or can be.
    fn bytes(&self) -> u64 {
        self.resolve().len.min(self.progress.stop())
    }

    /// Reads the parameters and writes the lists of a write's first chunks.
    pub(super) fn begin(&self) {
        let chunk_state = self.lock_chunk_state();
        if chunk_state.abandoned {
            return;
        }
        for chunk in 0..self.chunks.min(2) {
            self.list(chunk, self.resolve().len);
        }
    }

    /// Reads from the semaphore how far the stream is; true if this is news.
    pub(super) fn poll_reached(&self) -> bool {
        let chunks = self.buffer.chunks_reached().min(self.chunks);
        self.reach(chunks)
    }

    /// Records that the stream has reached so many chunks; true if this is news.
    pub(super) fn reach(&self, chunks: u64) -> bool {
        let before = self.progress.reached.fetch_max(chunks, Ordering::AcqRel);
        if before == 0 {
            self.note_reached();
        }
        before < chunks
    }

    /// Whether the stream has reached all chunks.
    pub(super) fn is_reached(&self) -> bool {
        self.progress.reached.load(Ordering::Acquire) >= self.chunks
    }

    /// Opens the next chunk if the stream has reached it and none is in progress. Returns its
    /// pieces, which can be taken now.
    pub(super) fn open(&self) -> Option<u32> {
        let chunk_state = self.lock_chunk_state();
        if chunk_state.open || chunk_state.ending { None } else { self.open_next(chunk_state) }
    }

    /// Who reports a reached chunk and finds another in progress may leave: whoever ends that one
    /// checks here, under the lock, how far the stream is by then.
    fn open_next<'a>(&'a self, mut chunk_state: MutexGuard<'a, ChunkState>) -> Option<u32> {
        let progress = &self.progress;
        loop {
            let chunk = progress.chunk.load(Ordering::Relaxed);
            let reached = progress.reached.load(Ordering::Acquire).min(self.chunks);
            if chunk >= reached || chunk_state.abandoned {
                return None;
            }
            let pieces = self.pieces(chunk);
            // Only now that the stream is there: the file may have changed until then.
            let mapped = if pieces > 0 { self.find_mapped(chunk) } else { None };
            if pieces > 0 && mapped.is_none() {
                chunk_state.open = true;
                progress.left.store(u64::from(pieces), Ordering::Relaxed);
                // Release: who takes a piece sees the chunk's number and what is left.
                progress.ticket.store(u64::from(pieces) << PIECES_SHIFT, Ordering::Release);
                return Some(pieces);
            }
            chunk_state = self.end_chunk(chunk_state, mapped);
        }
    }

    /// Bytes of a chunk, and how many bytes of its first piece precede it.
    fn cut_at(&self, chunk: u64, until: u64) -> (u64, u64) {
        let start = chunk * self.chunk_len;
        let bytes = until.saturating_sub(start).min(self.chunk_len);
        let before = (self.resolve().offset + start) % self.piece_len;
        // A range that one thread moves at once is not split, wherever it begins.
        if bytes <= self.piece_len { (bytes, 0) } else { (bytes, before) }
    }

    fn pieces(&self, chunk: u64) -> u32 {
        let (bytes, before) = self.cut_at(chunk, self.bytes());
        let pieces = if bytes == 0 { 0 } else { (before + bytes).div_ceil(self.piece_len) };
        // `piece_len` is chosen for far fewer.
        u32::try_from(pieces).unwrap_or(u32::MAX)
    }

    /// Pieces of the open chunk that no thread has taken.
    pub(super) fn untaken(&self) -> u64 {
        Progress::untaken(self.progress.ticket.load(Ordering::Relaxed))
    }

    fn take_piece(&self) -> Option<PieceRange> {
        // So the count below grows by at most one per thread.
        if self.untaken() == 0 {
            return None;
        }
        let ticket = self.progress.ticket.fetch_add(1, Ordering::Acquire);
        let index = ticket & u64::from(u32::MAX);
        (Progress::untaken(ticket) > 0).then(|| self.piece_range(ticket >> PIECES_SHIFT, index))
    }

    /// Piece `index` of `pieces`. It ends at a multiple of `piece_len` in the file, unless it is
    /// the only one.
    fn piece_range(&self, pieces: u64, index: u64) -> PieceRange {
        let resolved = self.resolve();
        let chunk = self.progress.chunk.load(Ordering::Relaxed);
        let first = chunk * self.chunk_len;
        let bytes = resolved.len.saturating_sub(first).min(self.chunk_len);
        let (start, end) = if pieces == 1 {
            (0, bytes.min(self.piece_len))
        } else {
            let before = (resolved.offset + first) % self.piece_len;
            let start = (index * self.piece_len).saturating_sub(before);
            (start, ((index + 1) * self.piece_len - before).min(bytes))
        };
        PieceRange {
            chunk,
            start: first + start,
            len: usize::try_from(end - start).unwrap_or(usize::MAX),
            offset: resolved.offset + first + start,
            address: resolved.address,
            large: resolved.len >= LARGE,
        }
    }

    /// Lets stream workers serve the next chunk if the stream has reached it and none is in
    /// progress. Without workers, this thread does it.
    pub(super) fn dispatch(self: &Arc<Self>) {
        let Some(pieces) = self.open() else {
            return;
        };
        if self.workers().submit(self, pieces) {
            return;
        }
        if let Method::BlockingCall(_) = self.method {
            // A function that a stream calls must not call the driver.
            while let Some(piece) = self.take_piece() {
                self.progress.fail(piece.start, Fault::Cancelled);
                self.complete_piece();
            }
        }
        self.work();
    }

    /// Moves pieces until none is left; false if there was none.
    pub(super) fn work(self: &Arc<Self>) -> bool {
        let mut worked = false;
        while let Some(piece) = self.take_piece() {
            worked = true;
            if piece.start < self.progress.stop()
                && let Err(fault) = catch_panic(|| self.move_piece(piece))
            {
                self.progress.fail(piece.start, fault);
            }
            if let Some(pieces) = self.complete_piece()
                && pieces > 1
            {
                // This thread does those for which no worker comes.
                self.workers().submit(self, pieces - 1);
            }
        }
        worked
    }

    /// Counts a piece. Returns the pieces of the next chunk if that was opened.
    fn complete_piece(&self) -> Option<u32> {
        // AcqRel: the last one sees what the others did, and passes all of it to the stream.
        if self.progress.left.fetch_sub(1, Ordering::AcqRel) > 1 {
            return None;
        }
        let mut chunk_state = self.lock_chunk_state();
        chunk_state.open = false;
        if chunk_state.abandoned {
            self.progress.notify(&chunk_state);
            return None;
        }
        let chunk_state = self.end_chunk(chunk_state, None);
        self.open_next(chunk_state)
    }

    /// Ends a chunk whose pieces are all done, or whose bytes are mapped, and signals the stream.
    fn end_chunk<'a>(
        &'a self,
        mut chunk_state: MutexGuard<'a, ChunkState>,
        mapped: Option<MappedRange>,
    ) -> MutexGuard<'a, ChunkState> {
        let chunk = self.progress.chunk.load(Ordering::Relaxed);
        let is_last = chunk + 1 == self.chunks;
        match mapped {
            Some(range) => self.copy_mapped(chunk, range),
            None if self.uses_kernel() && self.op == Op::Read => self.list(chunk, self.bytes()),
            None => {}
        }
        if self.uses_kernel() && self.op == Op::Write && chunk + 2 < self.chunks {
            self.list(chunk + 2, self.bytes());
        }
        if is_last {
            chunk_state.ending = true;
            let on_completion = chunk_state.on_completion.take();
            drop(chunk_state);
            if let Some(on_completion) = on_completion {
                let outcome = self.outcome();
                // The panic hook has reported it; the stream must not be held up for it.
                let _ =
                    catch_unwind(AssertUnwindSafe(|| on_completion(self.resolve().read, outcome)));
            }
            chunk_state = self.lock_chunk_state();
            chunk_state.ending = false;
        }
        self.progress.chunk.store(chunk + 1, Ordering::Relaxed);
        // Release, with the driver's guarantee for the wait: the stream sees the bytes and the
        // list.
        self.latency.record_completed();
        self.buffer.completed().store(self.buffer.value(chunk + 1), Ordering::Release);
        if is_last && !(self.uses_kernel() && self.op == Op::Read) {
            self.stream_device.buffers.give_back(self.buffer, self.chunks);
        }
        self.progress.notify(&chunk_state);
        chunk_state
    }

    fn outcome(&self) -> Result<Transferred, Fault> {
        let resolved = self.resolve();
        if let Some(fault) = &resolved.refused {
            return Err(fault.clone());
        }
        let end = resolved.len.min(self.progress.end.load(Ordering::Relaxed));
        let mut totals = self.progress.totals();
        if let Some((start, fault)) = totals.failed.take()
            && start < end
        {
            return Err(fault);
        }
        Ok(Transferred { bytes: usize::try_from(end).unwrap_or(usize::MAX), route: totals.route })
    }

    /// Waits until so many chunks have ended.
    pub(super) fn wait(&self, chunks: u64) {
        let progress = &self.progress;
        let goes_on = |chunk_state: &mut ChunkState| {
            progress.chunk.load(Ordering::Relaxed) < chunks && !chunk_state.abandoned
        };
        drop(progress.wait_while(self.lock_chunk_state(), goes_on));
    }

    /// Gives up an operation that could not be enqueued in full. Returns when no thread touches the
    /// caller's memory or parameters any more, and no stream waits for it. Its page-locked memory
    /// is never used again, unless the stream has no part of the operation.
    pub(super) fn abandon(&self) {
        self.workers().pending.remove(self);
        let progress = &self.progress;
        let mut chunk_state = self.lock_chunk_state();
        chunk_state.abandoned = true;
        // From here on no thread takes a piece; untaken ones are counted here.
        let untaken = Progress::untaken(progress.ticket.swap(0, Ordering::AcqRel));
        if untaken > 0 && progress.left.fetch_sub(untaken, Ordering::AcqRel) == untaken {
            chunk_state.open = false;
        }
        let busy = |chunk_state: &mut ChunkState| chunk_state.open || chunk_state.ending;
        chunk_state = progress.wait_while(chunk_state, busy);
        if progress.chunk.load(Ordering::Relaxed) == self.chunks {
            // It ran in full. The buffer belongs to another operation by now, or is lost with the
            // last store.
            return;
        }
        drop(chunk_state.on_completion.take());
        if !self.is_enqueued() {
            self.stream_device.buffers.give_back(self.buffer, 0);
            return;
        }
        if self.uses_kernel() {
            for half in 0..2.min(self.chunks) {
                let (first, _) = self.buffer.list(self.half(half), self.chunk_len);
                for at in 0..self.launch(half).0 as usize {
                    // SAFETY: as in `list`; a kernel that reads it now finds an entry or none.
                    unsafe { first.wrapping_add(at).write_volatile(Piece::default()) };
                }
            }
        }
        self.buffer.completed().store(self.buffer.value(self.chunks), Ordering::Release);
    }
}
