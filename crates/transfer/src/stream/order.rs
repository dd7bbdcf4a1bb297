//! One transfer in a stream: what of it is known, allowed, under way and done.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use gpuio_gpu::{Piece, Shape, most_pieces, pieces};
use gpuio_io::engine::Op;

use super::area::{Area, PAGE};
use super::threads::Threads;
use super::{Ended, Param, Params, Read, Served};
use crate::fault::Fault;
use crate::file::File;
use crate::moved::{Moved, Route};
use crate::place::Place;
use crate::transfer::State;

/// How the bytes go.
#[derive(Debug, Clone, Copy)]
pub(super) enum Way {
    /// By the kernel in the program's stream, as far as `reach` bytes from the base.
    Gather {
        /// Bytes.
        reach: u64,
        /// Managed memory to have on the GPU before, address and bytes.
        bring: Option<(u64, usize)>,
    },
    /// To and from memory of the host.
    Host,
    /// By a call of ours, while the stream waits.
    Call(Place),
}

/// A transfer in a stream.
pub(super) struct Order {
    pub(super) state: &'static State,
    pub(super) served: &'static Served,
    pub(super) op: Op,
    pub(super) file: File,
    pub(super) way: Way,
    base: u64,
    params: Params,
    pub(super) area: Area,
    pub(super) rounds: u64,
    /// Bytes of a round.
    pub(super) part_len: u64,
    /// Bytes of a kernel's piece.
    piece_len: u64,
    /// Bytes that one thread reads or writes at once.
    chunk: u64,
    /// Whether the stream has something of it.
    is_put: AtomicBool,
    progress: Mutex<Progress>,
    /// A round ended, or it was abandoned and nobody works on it.
    changed: Condvar,
}

impl std::fmt::Debug for Order {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { op, way, base, rounds, .. } = self;
        write!(f, "Order({op:?}, {way:?}, {base:#x}, {rounds} rounds)")
    }
}

/// What changes. All of it is behind one lock: pieces are long.
#[derive(Default)]
pub(super) struct Progress {
    read: Option<Read>,
    /// The transfer is nothing: bad parameters.
    refused: Option<Fault>,
    /// In bytes, 0 where it is refused.
    pub(super) len: u64,
    pub(super) offset: u64,
    pub(super) address: u64,
    /// Rounds that the stream has come to.
    allowed: u64,
    /// The round under way, or the next.
    round: u64,
    begun: bool,
    /// Pieces of the round: all, taken, taken and not done.
    pieces: u64,
    taken: u64,
    flying: u64,
    /// The last round is being ended.
    ending: bool,
    /// It was not put into the stream in full, and is given up.
    abandoned: bool,
    /// Where the file ended, in bytes from the start.
    end: Option<u64>,
    failed: Option<(u64, Fault)>,
    route: Route,
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
    /// As far as bytes have come, or can.
    fn reached(&self) -> u64 {
        let failed = self.failed.as_ref().map_or(u64::MAX, |(start, _)| *start);
        self.len.min(self.end.unwrap_or(u64::MAX)).min(failed)
    }

    fn outcome(&mut self) -> Result<Moved, Fault> {
        if let Some(fault) = self.refused.take() {
            return Err(fault);
        }
        let end = self.len.min(self.end.unwrap_or(u64::MAX));
        if let Some((start, fault)) = self.failed.take()
            && start < end
        {
            return Err(fault);
        }
        Ok(Moved { bytes: usize::try_from(end).unwrap_or(usize::MAX), route: self.route })
    }

    pub(super) fn fail(&mut self, start: u64, fault: Fault) {
        if self.failed.as_ref().is_none_or(|(first, _)| start < *first) {
            self.failed = Some((start, fault));
        }
    }

    pub(super) fn ends(&mut self, bytes: u64) {
        self.end = Some(self.end.map_or(bytes, |end| end.min(bytes)));
    }
}

impl Order {
    pub(super) fn new(
        (state, served): (&'static State, &'static Served),
        (op, file): (Op, File),
        (way, base): (Way, u64),
        params: Params,
        ended: Ended,
    ) -> Result<Arc<Self>, Fault> {
        let most = params.size_most as u64;
        let gathers = matches!(way, Way::Gather { .. });
        let area = served.areas.take(served.device.context(), gathers.then_some(most))?;
        let part_len = if gathers { area.part_len(most) } else { u64::MAX };
        let kernel = served.kernel();
        let piece_len = kernel.map_or(1, |kernel| kernel.piece_len(most.min(part_len)));
        let longest = state.settings.chunk() as u64;
        let chunk = match way {
            Way::Call(_) => u64::MAX,
            _ => {
                (most.min(part_len) / 4).next_power_of_two().clamp(128 << 10, 1 << 30).min(longest)
            }
        };
        let progress = Progress { ended: Some(ended), ..Progress::default() };
        Ok(Arc::new(Self {
            state,
            served,
            op,
            file,
            way,
            base,
            params,
            area,
            rounds: most.div_ceil(part_len).max(1),
            part_len,
            piece_len,
            chunk,
            is_put: AtomicBool::new(false),
            progress: Mutex::new(progress),
            changed: Condvar::new(),
        }))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn gathers(&self) -> bool {
        matches!(self.way, Way::Gather { .. })
    }

    pub(super) fn threads(&self) -> &'static Threads {
        super::threads(self.state, &self.way)
    }

    /// Whether all parameters are known before the stream comes to the transfer.
    pub(super) fn is_fixed(&self) -> bool {
        let Params { size, file_offset, buffer_offset, .. } = self.params;
        matches!(size, Param::Now(_))
            && matches!(file_offset, Param::Now(_))
            && matches!(buffer_offset, Param::Now(_))
    }

    /// The most entries of a round's list, and the shape of its launch.
    pub(super) fn launch(&self, round: u64) -> (u32, Shape) {
        let left = (self.params.size_most as u64).saturating_sub(round * self.part_len);
        let most = left.min(self.part_len);
        // A part has room for far fewer than 2^32 pages.
        let count = u32::try_from(most_pieces(most, self.piece_len)).unwrap_or(u32::MAX);
        let shape = |kernel: &gpuio_gpu::GatherKernel| kernel.shape(count, self.piece_len);
        let kernel = self.served.kernel();
        (count, kernel.map_or(Shape { grid: 1, block: 64 }, shape))
    }

    /// Which part of the area a round takes.
    pub(super) fn part(&self, round: u64) -> usize {
        usize::from(round % 2 == 1)
    }

    /// Where in a part the first byte stands: as far from a page as in the file, so that direct I/O
    /// can be had whatever the offset; none where that needs more than a page.
    pub(super) fn skip(&self, offset: u64) -> Option<u64> {
        (self.file.0.skip(PAGE as u64) == 0).then_some(offset % PAGE as u64)
    }

    /// Reads the parameters, if that was not done.
    fn know(&self, progress: &mut Progress) {
        if progress.read.is_some() {
            return;
        }
        let Params { size, file_offset, buffer_offset, .. } = self.params;
        // SAFETY: the stream has come to the transfer, or the parameter is known; the caller of the
        // transfer keeps it until the stream has passed.
        let size = unsafe { value(size) };
        // SAFETY: as above.
        let file_offset = unsafe { value(file_offset) };
        // SAFETY: as above.
        let buffer_offset = unsafe { value(buffer_offset) };
        let read = Read { size, file_offset, buffer_offset };
        progress.read = Some(read);
        match self.checked(&read) {
            Ok((len, offset, address)) => {
                (progress.len, progress.offset, progress.address) = (len, offset, address);
            }
            Err(fault) => progress.refused = Some(fault),
        }
    }

    fn checked(&self, read: &Read) -> Result<(u64, u64, u64), Fault> {
        let wrong = |name, value| Fault::Parameter { name, value };
        let (size, skip) = (read.size as u64, read.buffer_offset);
        let size_wrong = || wrong("the size", size.cast_signed());
        if read.size > self.params.size_most {
            return Err(size_wrong());
        }
        let file_wrong = |_| wrong("the file's offset", read.file_offset);
        let offset = u64::try_from(read.file_offset).map_err(file_wrong)?;
        let skip = u64::try_from(skip).map_err(|_| wrong("the memory's offset", skip))?;
        let address = self.base.checked_add(skip).ok_or_else(size_wrong)?;
        if let Way::Gather { reach, .. } = self.way
            && size > 0
            && skip.checked_add(size).is_none_or(|end| end > reach)
        {
            return Err(Fault::Outside { address, len: size });
        }
        // What is beyond the largest offset can't be in a file.
        let room = i64::MAX.cast_unsigned() - offset;
        if self.op == Op::Write && size > room {
            return Err(size_wrong());
        }
        Ok((size.min(room), offset, address))
    }

    /// Reads the parameters and makes the lists of the first rounds of a write.
    pub(super) fn begin(&self) {
        let mut progress = self.lock();
        if progress.abandoned {
            return;
        }
        self.know(&mut progress);
        for round in 0..self.rounds.min(2) {
            self.list(&progress, round, progress.len);
        }
    }

    /// Makes the list of a round, of the bytes up to `end`.
    fn list(&self, progress: &Progress, round: u64, end: u64) {
        let start = round * self.part_len;
        let bytes = end.saturating_sub(start).min(self.part_len);
        let part = self.part(round);
        let (first, _) = self.area.list(part, self.part_len);
        let (_, seen) = self.area.part(part, self.part_len);
        let seen = seen.byte_add(self.skip(progress.offset).unwrap_or(0));
        let memory = gpuio_gpu::DevPtr(progress.address + start);
        let (from, to) = if self.op == Op::Read { (seen, memory) } else { (memory, seen) };
        let (count, _) = self.launch(round);
        let mut cut = pieces(from, to, bytes, self.piece_len);
        for at in 0..count as usize {
            let piece = cut.next().unwrap_or_default();
            // SAFETY: the list has room for the most pieces of a part, and the stream reads it only
            // after the word that is stored later, or the function that is called now.
            unsafe { first.wrapping_add(at).write_volatile(piece) };
        }
    }

    /// Lets so many more rounds begin; how many that are in all.
    pub(super) fn allow(&self, rounds: u64) -> u64 {
        let mut progress = self.lock();
        progress.allowed += rounds;
        progress.allowed
    }

    /// Has threads of ours go on with it. Where there are none, this one does.
    pub(super) fn hand_over(self: &Arc<Self>) {
        if self.threads().push(self) {
            return;
        }
        if let Way::Call(_) = self.way {
            // A function that a stream calls must not call the driver.
            let mut progress = self.lock();
            self.know(&mut progress);
            (progress.refused, progress.len) = (Some(Fault::Cancelled), 0);
        }
        self.work();
    }

    /// Waits until so many rounds have ended.
    pub(super) fn wait(&self, rounds: u64) {
        let progress = self.lock();
        let goes_on = |progress: &mut Progress| progress.round < rounds && !progress.abandoned;
        drop(self.changed.wait_while(progress, goes_on).unwrap_or_else(PoisonError::into_inner));
    }

    /// Moves pieces until there are none to take.
    pub(super) fn work(self: &Arc<Self>) {
        while let Some((part, more)) = self.take() {
            if more {
                self.threads().push(self);
            }
            let progress = self.serve(part);
            self.done(progress);
        }
    }

    /// The next piece, and whether there are more.
    fn take(&self) -> Option<(Part, bool)> {
        let mut progress = self.lock();
        loop {
            let idle = progress.round >= progress.allowed.min(self.rounds);
            if idle || progress.abandoned || progress.ending {
                return None;
            }
            if !progress.begun {
                self.know(&mut progress);
                self.begin_round(&mut progress);
            }
            if progress.taken < progress.pieces {
                let part = self.cut(&progress);
                progress.taken += 1;
                progress.flying += 1;
                return Some((part, progress.taken < progress.pieces));
            }
            if progress.flying > 0 {
                return None;
            }
            progress = self.end_round(progress);
        }
    }

    fn begin_round(&self, progress: &mut Progress) {
        let start = progress.round * self.part_len;
        let bytes = progress.reached().saturating_sub(start).min(self.part_len);
        let before = (progress.offset + start) % self.chunk;
        progress.pieces = if bytes == 0 { 0 } else { (before + bytes).div_ceil(self.chunk) };
        (progress.taken, progress.begun) = (0, true);
    }

    /// The piece that is to be taken next: it ends at a multiple of a chunk in the file.
    fn cut(&self, progress: &Progress) -> Part {
        let first = progress.round * self.part_len;
        let last = progress.len.min(first.saturating_add(self.part_len));
        let before = (progress.offset + first) % self.chunk;
        let start = (progress.taken * self.chunk).saturating_sub(before);
        let end = ((progress.taken + 1).saturating_mul(self.chunk) - before).min(last - first);
        Part {
            round: progress.round,
            start: first + start,
            len: usize::try_from(end - start).unwrap_or(usize::MAX),
            offset: progress.offset + first + start,
            address: progress.address,
            large: progress.len >= 256 << 10,
        }
    }

    /// Counts a piece off.
    fn done(&self, mut progress: MutexGuard<'_, Progress>) {
        progress.flying -= 1;
        if progress.abandoned {
            self.changed.notify_all();
        } else if progress.flying == 0 && progress.taken == progress.pieces {
            drop(self.end_round(progress));
        }
    }

    /// Ends a round, all of whose pieces are done, and tells the stream.
    fn end_round<'a>(&'a self, mut progress: MutexGuard<'a, Progress>) -> MutexGuard<'a, Progress> {
        let round = progress.round;
        let is_last = round + 1 == self.rounds;
        if self.gathers() && self.op == Op::Read {
            self.list(&progress, round, progress.reached());
        }
        if self.gathers() && self.op == Op::Write && round + 2 < self.rounds {
            self.list(&progress, round + 2, progress.reached());
        }
        if is_last {
            progress.ending = true;
            let (read, outcome) = (progress.read.unwrap_or_default(), progress.outcome());
            let ended = progress.ended.take();
            drop(progress);
            if let Some(ended) = ended {
                let told = std::panic::AssertUnwindSafe(|| ended(read, outcome));
                // The panic hook has told of it; the stream must not be held for it.
                let _ = std::panic::catch_unwind(told);
            }
            progress = self.lock();
        }
        progress.round += 1;
        progress.begun = false;
        // Release, and the driver's promise of the wait: the stream sees the bytes and the list.
        self.area.served().store(self.area.value(round + 1), Ordering::Release);
        if is_last && !(self.gathers() && self.op == Op::Read) {
            self.served.areas.give(self.area, self.rounds);
        }
        self.changed.notify_all();
        progress
    }

    pub(super) fn note_put(&self) {
        self.is_put.store(true, Ordering::Relaxed);
    }

    /// Gives up what could not be put into the stream in full: returns when nobody touches memory
    /// or parameters of the caller any more, and no stream waits for it. Its page-locked memory is
    /// never used again, unless the stream knows nothing of it.
    pub(super) fn abandon(&self) {
        let mut progress = self.lock();
        progress.abandoned = true;
        let busy = |progress: &mut Progress| progress.flying > 0 || progress.ending;
        progress = self.changed.wait_while(progress, busy).unwrap_or_else(PoisonError::into_inner);
        if progress.round == self.rounds {
            // It happened in full, and the area is another's by now, or lost with the last store.
            return;
        }
        drop(progress.ended.take());
        if !self.is_put.load(Ordering::Relaxed) {
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

/// A parameter's value now.
///
/// # Safety
///
/// The address of a later one is valid for a read.
unsafe fn value<T: Copy>(param: Param<T>) -> T {
    match param {
        Param::Now(value) => value,
        // SAFETY: the caller's promise. Volatile: work of the stream may have written it.
        Param::Later(at) => unsafe { at.read_volatile() },
    }
}

impl Route {
    /// Counts bytes of the file's side.
    pub(super) fn of_file(&mut self, cached: usize, direct: usize) {
        self.cached += cached as u64;
        self.direct += direct as u64;
    }
}

impl Progress {
    pub(super) fn route(&mut self) -> &mut Route {
        &mut self.route
    }
}
