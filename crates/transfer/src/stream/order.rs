//! One transfer in a stream: what was asked for, and what of it is known.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use gpuio_gpu::{Shape, most_pieces, pieces};
use gpuio_io::clock::Nanos;
use gpuio_io::engine::Op;

use super::area::{Area, PAGE};
use super::rounds::Progress;
use super::threads::Threads;
use super::watch::{Key, Pace};
use super::{Ended, Param, Params, Read, Served};
use crate::fault::Fault;
use crate::file::File;
use crate::place::Place;
use crate::transfer::State;

/// How many pieces a round is cut into, where they are not too short or too long then.
const PIECES: u64 = 4;
/// Bytes that one thread moves at once, the least: a shorter piece is done before a thread that
/// has to be woken for it comes.
const PIECE_LEAST: u64 = 128 << 10;
/// The most pieces: a round's ticket has 32 bits for those taken.
const PIECES_MOST: u64 = 1 << 30;

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
    /// Which stream it is in, and how that comes to transfers.
    pub(super) key: Key,
    pub(super) pace: Arc<Pace>,
    /// When it was made, as the pace has it.
    made: Nanos,
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
    pub(super) chunk: u64,
    /// Whether the stream has something of it.
    is_put: AtomicBool,
    known: OnceLock<Known>,
    pub(super) progress: Progress,
}

impl std::fmt::Debug for Order {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { op, way, base, rounds, .. } = self;
        write!(f, "Order({op:?}, {way:?}, {base:#x}, {rounds} rounds)")
    }
}

/// What is known once the parameters were read.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) read: Read,
    /// The transfer is nothing: bad parameters.
    pub(super) refused: Option<Fault>,
    /// In bytes, 0 where it is refused.
    pub(super) len: u64,
    pub(super) offset: u64,
    pub(super) address: u64,
}

impl Order {
    pub(super) fn new(
        (state, served, key): (&'static State, &'static Served, Key),
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
                let round = most.min(part_len);
                let fair = (round / PIECES).next_power_of_two().max(PIECE_LEAST).min(longest);
                fair.max((round / PIECES_MOST).next_power_of_two())
            }
        };
        let pace = super::threads(state, &way).watch.pace(key);
        Ok(Arc::new(Self {
            state,
            served,
            key,
            made: pace.now(),
            pace,
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
            known: OnceLock::new(),
            progress: Progress::new(ended),
        }))
    }

    /// How long ago it was made, in nanoseconds.
    pub(super) fn age(&self) -> Nanos {
        self.pace.now().saturating_sub(self.made)
    }

    /// The stream has come to it.
    pub(super) fn note_reached(&self) {
        self.pace.reached(self.made);
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

    /// What the parameters are, which are read the first time: when the stream has come to the
    /// transfer, or they are fixed.
    pub(super) fn know(&self) -> &Known {
        self.known.get_or_init(|| {
            let Params { size, file_offset, buffer_offset, .. } = self.params;
            // SAFETY: the stream has come to the transfer, or the parameter is known; the caller of
            // the transfer keeps it until the stream has passed.
            let size = unsafe { value(size) };
            // SAFETY: as above.
            let file_offset = unsafe { value(file_offset) };
            // SAFETY: as above.
            let buffer_offset = unsafe { value(buffer_offset) };
            let read = Read { size, file_offset, buffer_offset };
            let (refused, (len, offset, address)) = match self.checked(&read) {
                Ok(range) => (None, range),
                Err(fault) => (Some(fault), (0, 0, 0)),
            };
            Known { read, refused, len, offset, address }
        })
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

    /// Makes the list of a round, of the bytes up to `end`.
    pub(super) fn list(&self, round: u64, end: u64) {
        let known = self.know();
        let start = round * self.part_len;
        let bytes = end.saturating_sub(start).min(self.part_len);
        let part = self.part(round);
        let (first, _) = self.area.list(part, self.part_len);
        let (_, seen) = self.area.part(part, self.part_len);
        let seen = seen.byte_add(self.skip(known.offset).unwrap_or(0));
        let memory = gpuio_gpu::DevPtr(known.address + start);
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

    pub(super) fn is_put(&self) -> bool {
        self.is_put.load(Ordering::Relaxed)
    }

    pub(super) fn note_put(&self) {
        self.is_put.store(true, Ordering::Relaxed);
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
