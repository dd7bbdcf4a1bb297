//! Many blocks in one launch: a list of pieces, each copied from one address to another.
//!
//! A copy by the driver costs the host a call and the device a command of its own for each block.
//! Here a batch of blocks costs one launch. The kernel is `kernels/gather.cu`; sources and
//! destinations may be device memory or pinned host memory in any mix, so the same launch serves
//! reads (host to device) and writes (device to host).

use crate::DevPtr;
use crate::code;
use crate::context::Context;
use crate::error::GpuError;
use crate::module::{Arg, Kernel, Module};
use crate::stream::Stream;
use crate::table::{self, CUstream};
use crate::user::UserStream;

/// The list's address must be a multiple of this, for the kernel's 16-byte loads.
const LIST_ALIGN: u64 = 16;
/// Where the destinations of cut pieces begin: the width of a memory transaction between L2 cache
/// and a multiprocessor, and of one PCIe request.
const CUT_ALIGN: u64 = 128;
/// Bytes that one thread asks for at once: four loads of 16.
const BYTES_EACH: u64 = 64;
/// The fewest and most threads of a block. The kernel is compiled for the latter.
const BLOCKS: (u32, u32) = (64, 256);
/// Threads for each multiprocessor: 64 KiB are then on their way to each. PCIe 5.0 x16 needs about
/// 100 KiB on their way to all of them, copies within the device's memory some MiB.
const THREADS_EACH: u32 = 1024;
/// [`GatherKernel::modest_shape`] has at most one thread block for so many multiprocessors.
const MODEST_SHARE: u32 = 8;
/// The least and the greatest result of [`GatherKernel::piece_len`], in bytes.
const PIECES: (u64, u64) = (4 << 10, 64 << 10);

/// An entry of the list that [`GatherKernel::launch`] takes, as the kernel reads it.
///
/// It has 32 bytes, though 24 would hold it, for the GPU reads memory in sectors of 32 and loads at
/// most 16 bytes at once: each entry is one sector and two loads.
#[repr(C, align(32))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Piece {
    /// Address of the first byte to read: device memory or pinned host memory.
    pub src: u64,
    /// Address of the first byte to write: device memory or pinned host memory.
    pub dst: u64,
    /// Length in bytes; 0 copies nothing.
    pub len: u64,
    /// Not read.
    unused: u64,
}

impl Piece {
    /// The piece of `len` bytes from `src` to `dst`.
    pub fn new(src: DevPtr, dst: DevPtr, len: u64) -> Self {
        Self { src: src.0, dst: dst.0, len, unused: 0 }
    }
}

/// Cuts `len` bytes from `src` to `dst` into pieces of at most `piece_max` bytes, in order and
/// without gaps; none for a length of 0.
///
/// Every piece but the first begins at a destination that is a multiple of 128 bytes, so that only
/// the ends of the whole are copied byte by byte. For that `piece_max` is rounded down to such a
/// multiple, and to no less than 128.
pub fn pieces(src: DevPtr, dst: DevPtr, len: u64, piece_max: u64) -> Pieces {
    Pieces { src, dst, left: len, piece_max: whole(piece_max) }
}

/// The most entries that [`pieces`] makes of `len` bytes, whatever their addresses: what a list
/// needs space for.
pub fn most_pieces(len: u64, piece_max: u64) -> u64 {
    match len {
        0 => 0,
        _ => len.div_ceil(whole(piece_max)).saturating_add(1).min(len),
    }
}

fn whole(piece_max: u64) -> u64 {
    (piece_max / CUT_ALIGN).max(1) * CUT_ALIGN
}

/// The iterator of [`pieces`].
#[derive(Debug, Clone)]
pub struct Pieces {
    src: DevPtr,
    dst: DevPtr,
    left: u64,
    piece_max: u64,
}

impl Iterator for Pieces {
    type Item = Piece;

    #[inline]
    fn next(&mut self) -> Option<Piece> {
        if self.left == 0 {
            return None;
        }
        let len = (self.piece_max - self.dst.0 % CUT_ALIGN).min(self.left);
        let piece = Piece::new(self.src, self.dst, len);
        self.src = self.src.byte_add(len);
        self.dst = self.dst.byte_add(len);
        self.left -= len;
        Some(piece)
    }
}

impl std::iter::FusedIterator for Pieces {}

/// A list of pieces that is being written, in memory that the kernel reads: for
/// [`GatherKernel::launch`], or for a command of the resident copy kernel.
#[derive(Debug)]
pub struct PieceList {
    first: *mut Piece,
    ptr: DevPtr,
    capacity: usize,
    count: u32,
}

impl PieceList {
    /// An empty list with space for `capacity` pieces at `first`, which the device knows as `ptr`.
    ///
    /// # Safety
    /// So many pieces at `first` are live memory, aligned for them, and nothing else uses it while
    /// this value is written to.
    pub unsafe fn new(first: *mut Piece, ptr: DevPtr, capacity: usize) -> Self {
        Self { first, ptr, capacity, count: 0 }
    }

    /// Adds the pieces of `len` bytes from `src` to `dst`, as [`pieces`] cuts them.
    ///
    /// # Panics
    /// The list has no space for them: see [`most_pieces`].
    #[inline]
    pub fn push(&mut self, src: DevPtr, dst: DevPtr, len: u64, piece_max: u64) {
        for piece in pieces(src, dst, len, piece_max) {
            let at = self.count as usize;
            assert!(at < self.capacity, "a list of {} pieces is full", self.capacity);
            // SAFETY: below the capacity, and this value's alone, by the promise to `new`.
            unsafe { self.first.wrapping_add(at).write(piece) };
            self.count += 1;
        }
    }

    /// Removes all pieces.
    pub fn clear(&mut self) {
        self.count = 0;
    }

    /// Its address on the device.
    pub fn ptr(&self) -> DevPtr {
        self.ptr
    }

    /// How many pieces it has.
    pub fn count(&self) -> u32 {
        self.count
    }
}

/// How a launch is spread over the device. It changes the time that the launch takes and never
/// what it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Blocks, 1 or more. Each takes a piece, then the one that stands as many further on as there
    /// are blocks.
    pub grid: u32,
    /// Threads of a block: a multiple of 32, from 32 to 256.
    pub block: u32,
}

/// The kernel, loaded on one device. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct GatherKernel {
    kernel: Kernel,
    multiprocessors: u32,
}

impl GatherKernel {
    /// Loads it. The driver compiles it the first time, which takes some ten milliseconds.
    ///
    /// # Errors
    /// The driver's refusal: the kernel needs compute capability 7.0.
    pub fn load(context: &Context) -> Result<Self, GpuError> {
        let kernel = Module::built_in(context, &code::GATHER)?.kernel(c"gpuio_gather")?;
        let multiprocessors = context.driver().multiprocessors(context.device())?;
        Ok(Self { kernel, multiprocessors })
    }

    /// The best length, in bytes, of the pieces to cut a batch of `total` bytes into: a power of
    /// two from 4 KiB to 64 KiB. A small batch is cut fine, so that every multiprocessor asks for a
    /// part of it at once, a large one coarsely, so that the list stays short.
    pub fn piece_len(&self, total: u64) -> u64 {
        let each = total.div_ceil(u64::from(self.multiprocessors));
        // Before the rounding up, which would overflow close to 2^64.
        each.clamp(PIECES.0, PIECES.1).next_power_of_two()
    }

    /// The shape for a list of `count` pieces, the longest of which has `longest` bytes (for blocks
    /// that were cut, the lesser of block and [`GatherKernel::piece_len`]): as many threads in a
    /// thread block as move that piece in one round of loads, and as many thread blocks as there
    /// are pieces, up to what keeps every multiprocessor busy.
    pub fn shape(&self, count: u32, longest: u64) -> Shape {
        let threads = longest.div_ceil(BYTES_EACH).min(u64::from(BLOCKS.1));
        // At most BLOCKS.1 after the line above.
        let threads = u32::try_from(threads).unwrap_or(BLOCKS.1);
        let block = threads.next_multiple_of(32).max(BLOCKS.0);
        let most = self.multiprocessors.saturating_mul(THREADS_EACH / block);
        Shape { grid: count.clamp(1, most), block }
    }

    /// As [`GatherKernel::shape`], with few thread blocks: for launches beside a program's own
    /// kernels, and beside others of their kind. Sixteen of them then fill no device: batches of
    /// 64 KiB whose launches did made the resident copy kernel stay away
    /// (`docs/lab-book/library-compute.md`).
    pub fn modest_shape(&self, count: u32, longest: u64) -> Shape {
        let Shape { grid, block } = self.shape(count, longest);
        Shape { grid: grid.min((self.multiprocessors / MODEST_SHARE).max(1)), block }
    }

    /// Puts into the stream: copy each of the `count` pieces whose entries stand from `list` on.
    /// The order of the pieces is not defined. A count of 0 puts nothing there.
    ///
    /// `list` is a multiple of 16 (better 32) in device or pinned host memory. Addresses and
    /// lengths of pieces may be any; those where source and destination are equally far from a
    /// multiple of 128 are fastest.
    ///
    /// # Errors
    /// A list that is not aligned or a shape outside its limits, reported before anything is
    /// launched; the driver's refusal. A failure of the kernel itself comes with the next sync or
    /// query: an address that the device cannot reach loses the context
    /// (`CUDA_ERROR_ILLEGAL_ADDRESS`).
    ///
    /// # Safety
    /// Until the stream has passed the launch: `list` must be `count` live [`Piece`]s that no one
    /// writes. Every source must be live memory that the device can read and no one writes, and so
    /// must the other bytes of the 16-byte words that it begins and ends in be live, which are read
    /// too and do not matter. Every destination must be live memory that the device can write, used
    /// by no one else, and overlapping neither the list nor a source nor another destination.
    pub unsafe fn launch(
        &self,
        stream: &Stream,
        list: DevPtr,
        count: u32,
        shape: Shape,
    ) -> Result<(), GpuError> {
        // SAFETY: the stream lives; the memory is the caller's promise.
        unsafe { self.put(stream.handle(), list, count, shape) }
    }

    /// As [`GatherKernel::launch`], into a stream of the program. The stream's context must be
    /// current ([`UserStream::entered`]).
    ///
    /// # Errors
    /// As there; also a stream of another context than the one that the kernel was loaded in.
    ///
    /// # Safety
    /// As there, and the stream must live.
    pub unsafe fn launch_in(
        &self,
        stream: &UserStream,
        list: DevPtr,
        count: u32,
        shape: Shape,
    ) -> Result<(), GpuError> {
        if stream.context() != self.kernel.context().raw() {
            return Err(self.refused("the stream is of another context than the kernel".into()));
        }
        // SAFETY: the stream lives by the caller's promise, as does the memory.
        unsafe { self.put(stream.raw().0, list, count, shape) }
    }

    /// Puts the launch into a stream by its handle.
    ///
    /// # Safety
    /// As [`GatherKernel::launch`], and the stream must live and be of the kernel's context.
    unsafe fn put(
        &self,
        stream: CUstream,
        list: DevPtr,
        count: u32,
        shape: Shape,
    ) -> Result<(), GpuError> {
        if !list.0.is_multiple_of(LIST_ALIGN) {
            return Err(self.refused(format!(
                "the list of pieces at {list} is not at a multiple of {LIST_ALIGN} bytes"
            )));
        }
        let Shape { grid, block } = shape;
        if grid == 0 || block == 0 || !block.is_multiple_of(32) || block > BLOCKS.1 {
            return Err(self.refused(format!(
                "{grid} blocks of {block} threads: a gather takes 1 block or more of 32 to {} \
                 threads, a multiple of 32",
                BLOCKS.1
            )));
        }
        if count == 0 {
            return Ok(());
        }
        let args = [Arg::Ptr(list), Arg::U64(u64::from(count))];
        // SAFETY: the types are the kernel's; the memory is the caller's promise.
        unsafe { self.kernel.launch_in(stream, grid, block, &args) }
    }

    fn refused(&self, what: String) -> GpuError {
        let context = self.kernel.context();
        let error = context.table().error("cuLaunchKernel", table::INVALID_VALUE);
        error.on(context.device()).with(what)
    }
}
