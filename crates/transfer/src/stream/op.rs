//! One stream operation: its parameters, and what of them is resolved.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use gpuio_gpu::{Piece, Shape, most_pieces, pieces};

use super::chunks::Progress;
use super::latency::{StreamKey, StreamLatency};
use super::staging::{PAGE, StagingBuffer};
use super::workers::StreamWorkers;
use super::{OnCompletion, Param, Params, ResolvedParams, StreamDevice};
use crate::Op;
use crate::clock::Nanos;
use crate::fault::Fault;
use crate::file::File;
use crate::memory::MemoryLocation;
use crate::state::State;

/// How many pieces a chunk is split into, unless they would be too short or too long.
const PIECES: u64 = 4;
/// Shortest piece of one thread, in bytes: a shorter one is done before a woken thread arrives.
const MIN_PIECE: u64 = 128 << 10;
/// The most pieces: a chunk's ticket has 32 bits for those taken.
const MAX_PIECES: u64 = 1 << 30;

/// How the bytes move.
#[derive(Debug, Clone, Copy)]
pub(super) enum Method {
    /// By the kernel in the program's stream, up to `reach` bytes from the base.
    Kernel {
        /// Bytes.
        reach: u64,
        /// Managed memory to prefetch to the GPU: address and bytes.
        prefetch: Option<(u64, usize)>,
    },
    /// To and from host memory.
    Host,
    /// By a call of ours, while the stream waits.
    BlockingCall(MemoryLocation),
}

pub(super) struct StreamOp {
    pub(super) state: &'static State,
    pub(super) stream_device: &'static StreamDevice,
    workers: &'static StreamWorkers,
    /// Its stream, and how fast that reaches transfers.
    pub(super) key: StreamKey,
    pub(super) latency: Arc<StreamLatency>,
    /// When it was made, on the clock of `latency`.
    created: Nanos,
    pub(super) op: Op,
    pub(super) file: File,
    pub(super) method: Method,
    base: u64,
    params: Params,
    pub(super) buffer: StagingBuffer,
    pub(super) chunks: u64,
    /// Bytes of a chunk.
    pub(super) chunk_len: u64,
    /// Bytes of a kernel's piece.
    pub(super) kernel_piece_len: u64,
    /// Bytes that one thread reads or writes at once.
    pub(super) piece_len: u64,
    /// Whether any part of it is in the stream.
    is_enqueued: AtomicBool,
    resolved: OnceLock<Resolved>,
    pub(super) progress: Progress,
}

impl std::fmt::Debug for StreamOp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { op, method, base, chunks, .. } = self;
        write!(f, "StreamOp({op:?}, {method:?}, {base:#x}, {chunks} chunks)")
    }
}

pub(super) struct Resolved {
    pub(super) read: ResolvedParams,
    /// The parameters are invalid; nothing is transferred.
    pub(super) refused: Option<Fault>,
    /// In bytes, 0 if refused.
    pub(super) len: u64,
    pub(super) offset: u64,
    pub(super) address: u64,
}

impl StreamOp {
    pub(super) fn new(
        (state, stream_device): (&'static State, &'static StreamDevice),
        (workers, key): (&'static StreamWorkers, StreamKey),
        (op, file): (Op, File),
        (method, base): (Method, u64),
        params: Params,
        on_completion: OnCompletion,
    ) -> Result<Arc<Self>, Fault> {
        let most = params.max_size as u64;
        let uses_kernel = matches!(method, Method::Kernel { .. });
        let buffer = stream_device
            .buffers
            .take(stream_device.device.context(), uses_kernel.then_some(most))?;
        let chunk_len = if uses_kernel { buffer.chunk_len(most) } else { u64::MAX };
        let kernel = stream_device.kernel();
        let kernel_piece_len = kernel.map_or(1, |kernel| kernel.piece_len(most.min(chunk_len)));
        let longest = state.settings.max_piece() as u64;
        let piece_len = match method {
            Method::BlockingCall(_) => u64::MAX,
            _ => {
                let chunk = most.min(chunk_len);
                let fair = (chunk / PIECES).next_power_of_two().max(MIN_PIECE).min(longest);
                fair.max((chunk / MAX_PIECES).next_power_of_two())
            }
        };
        let latency = workers.pending.latency(key);
        Ok(Arc::new(Self {
            state,
            stream_device,
            workers,
            key,
            created: latency.now(),
            latency,
            op,
            file,
            method,
            base,
            params,
            buffer,
            chunks: most.div_ceil(chunk_len).max(1),
            chunk_len,
            kernel_piece_len,
            piece_len,
            is_enqueued: AtomicBool::new(false),
            resolved: OnceLock::new(),
            progress: Progress::new(on_completion),
        }))
    }

    /// Nanoseconds since it was made.
    pub(super) fn age(&self) -> Nanos {
        self.latency.now().saturating_sub(self.created)
    }

    /// Records that the stream has reached it.
    pub(super) fn note_reached(&self) {
        self.latency.record_reached(self.created);
    }

    pub(super) fn uses_kernel(&self) -> bool {
        matches!(self.method, Method::Kernel { .. })
    }

    pub(super) fn workers(&self) -> &'static StreamWorkers {
        self.workers
    }

    /// Whether all parameters are known before the stream reaches the transfer.
    pub(super) fn is_fixed(&self) -> bool {
        let Params { size, file_offset, buffer_offset, .. } = self.params;
        matches!(size, Param::Immediate(_))
            && matches!(file_offset, Param::Immediate(_))
            && matches!(buffer_offset, Param::Immediate(_))
    }

    /// The most entries of a chunk's list, and the shape of its launch.
    pub(super) fn launch(&self, chunk: u64) -> (u32, Shape) {
        let left = (self.params.max_size as u64).saturating_sub(chunk * self.chunk_len);
        let most = left.min(self.chunk_len);
        // Half a buffer has space for far fewer than 2^32 pages.
        let count = u32::try_from(most_pieces(most, self.kernel_piece_len)).unwrap_or(u32::MAX);
        let shape = |kernel: &gpuio_gpu::GatherKernel| kernel.shape(count, self.kernel_piece_len);
        let kernel = self.stream_device.kernel();
        (count, kernel.map_or(Shape { grid: 1, block: 64 }, shape))
    }

    /// The half of the buffer that a chunk uses.
    pub(super) fn half(&self, chunk: u64) -> usize {
        usize::from(chunk % 2 == 1)
    }

    /// The position of the first byte in its half: its distance from a page boundary is the same as
    /// in the file, so that direct I/O works at any offset. None if the alignment is more than a
    /// page.
    pub(super) fn skip(&self, offset: u64) -> Option<u64> {
        (self.file.0.skip(PAGE as u64) == 0).then_some(offset % PAGE as u64)
    }

    /// The parameters, which are read on the first call: when the stream has reached the transfer,
    /// or they are fixed.
    pub(super) fn resolve(&self) -> &Resolved {
        self.resolved.get_or_init(|| {
            let Params { size, file_offset, buffer_offset, .. } = self.params;
            // SAFETY: the stream has reached the transfer, or the parameter is fixed; the caller of
            // the transfer keeps it valid until the stream has passed.
            let size = unsafe { value(size) };
            // SAFETY: as above.
            let file_offset = unsafe { value(file_offset) };
            // SAFETY: as above.
            let buffer_offset = unsafe { value(buffer_offset) };
            let read = ResolvedParams { size, file_offset, buffer_offset };
            let (refused, (len, offset, address)) = match self.check(&read) {
                Ok(range) => (None, range),
                Err(fault) => (Some(fault), (0, 0, 0)),
            };
            Resolved { read, refused, len, offset, address }
        })
    }

    fn check(&self, read: &ResolvedParams) -> Result<(u64, u64, u64), Fault> {
        let wrong = |name, value| Fault::Parameter { name, value };
        let (size, skip) = (read.size as u64, read.buffer_offset);
        let size_wrong = || wrong("the size", size.cast_signed());
        if read.size > self.params.max_size {
            return Err(size_wrong());
        }
        let file_wrong = |_| wrong("the file's offset", read.file_offset);
        let offset = u64::try_from(read.file_offset).map_err(file_wrong)?;
        let skip = u64::try_from(skip).map_err(|_| wrong("the memory's offset", skip))?;
        let address = self.base.checked_add(skip).ok_or_else(size_wrong)?;
        if let Method::Kernel { reach, .. } = self.method
            && size > 0
            && skip.checked_add(size).is_none_or(|end| end > reach)
        {
            return Err(Fault::Outside { address, len: size });
        }
        // No file has bytes beyond the largest offset.
        let room = i64::MAX.cast_unsigned() - offset;
        if self.op == Op::Write && size > room {
            return Err(size_wrong());
        }
        Ok((size.min(room), offset, address))
    }

    /// Writes the list of a chunk, of its bytes up to `end`, between the staging buffer and memory.
    pub(super) fn list(&self, chunk: u64, end: u64) {
        let resolved = self.resolve();
        let start = chunk * self.chunk_len;
        let bytes = end.saturating_sub(start).min(self.chunk_len);
        let half = self.half(chunk);
        let (_, seen) = self.buffer.half(half, self.chunk_len);
        let seen = seen.byte_add(self.skip(resolved.offset).unwrap_or(0));
        let memory = gpuio_gpu::DevPtr(resolved.address + start);
        let (from, to) = if self.op == Op::Read { (seen, memory) } else { (memory, seen) };
        self.write_list(chunk, pieces(from, to, bytes, self.kernel_piece_len));
    }

    /// Writes the list of a chunk. Not by a `PieceList`: the launch was enqueued before, for the
    /// most entries that there can be, so the others must copy nothing.
    pub(super) fn write_list(&self, chunk: u64, mut entries: impl Iterator<Item = Piece>) {
        let (first, _) = self.buffer.list(self.half(chunk), self.chunk_len);
        let (count, _) = self.launch(chunk);
        for at in 0..count as usize {
            let piece = entries.next().unwrap_or_default();
            // SAFETY: the list has space for the most pieces of a half, and the stream reads it
            // only after the semaphore value that is stored later, or the function that runs now.
            unsafe { first.wrapping_add(at).write_volatile(piece) };
        }
        debug_assert!(entries.next().is_none(), "a launch is for the most entries");
    }

    pub(super) fn is_enqueued(&self) -> bool {
        self.is_enqueued.load(Ordering::Relaxed)
    }

    pub(super) fn note_enqueued(&self) {
        self.is_enqueued.store(true, Ordering::Relaxed);
    }
}

/// A parameter's current value.
///
/// # Safety
/// The address of a deferred one is valid for a read.
unsafe fn value<T: Copy>(param: Param<T>) -> T {
    match param {
        Param::Immediate(value) => value,
        // SAFETY: the caller's promise. Volatile: work of the stream may have written it.
        Param::Deferred(at) => unsafe { at.read_volatile() },
    }
}
