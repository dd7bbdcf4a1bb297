//! Launches that keep a share of the device busy, to be measured beside a load.
//!
//! The kernels are `kernels/busy.cu`. A launch has one block for each multiprocessor that is to be
//! busy, and does a number of equal pieces of work that its blocks share. The amount of work in a
//! piece is known here, so the number of launches gives the rate of the computation.

use std::ffi::CStr;

use crate::MemoryKind;
use crate::code;
use crate::context::Context;
use crate::error::GpuError;
use crate::memory::DeviceBuf;
use crate::module::{Arg, Kernel, Module};
use crate::pinned::Pinned;
use crate::stream::Stream;

/// Threads of a block: with the kernels' 64 registers they have all of a multiprocessor's.
const THREADS: u32 = 1024;
/// Two operations for each of a thread's multiply-adds: 64 trips of 52.
const FLOP_OF_PIECE: u64 = THREADS as u64 * 64 * 52 * 2;
/// Words of 16 bytes of each thread in a piece of memory.
const PIECE_LEN: u64 = THREADS as u64 * 16 * 16;
/// Device memory that the stream passes over: several times the largest cache between it and the
/// multiprocessors (50 MB on an H100, 126 MB on a B200).
const MEMORY_LEN: u64 = 256 << 20;
/// The kernels' `State`: two counters 128 bytes apart, and from 256 on a bit for each
/// multiprocessor.
const STATE_LEN: usize = 384;
const SEEN_AT: usize = 256;
const SEEN_LEN: usize = STATE_LEN - SEEN_AT;

/// The work that keeps the device busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BusyWith {
    /// Fused multiply-adds of single precision in registers; touches no memory.
    Compute,
    /// Reads, changes and writes back device memory, far more of it than caches hold.
    Memory,
}

/// A kernel with a stream of its own, of normal priority. For one thread at a time, whose current
/// context must be the kernel's.
#[derive(Debug)]
pub struct Busy {
    kernel: Kernel,
    // Before the memory that its work uses: it is waited for first.
    stream: Stream,
    state: DeviceBuf,
    /// Zeros for the state, then what was seen.
    staged: Pinned,
    memory: Option<DeviceBuf>,
    blocks: u32,
    /// Pieces that all launches so far have.
    done: u64,
}

impl Busy {
    /// Loads the kernel for launches of `blocks` blocks, 1 at least, and takes the memory that it
    /// needs.
    ///
    /// # Errors
    /// The driver's refusal: the kernels need compute capability 7.0, `Memory` an eighth of the
    /// device's memory or 256 MiB.
    pub fn load(context: &Context, with: BusyWith, blocks: u32) -> Result<Self, GpuError> {
        let name: &CStr = match with {
            BusyWith::Compute => c"gpuio_busy_compute",
            BusyWith::Memory => c"gpuio_busy_memory",
        };
        let kernel = Module::built_in(context, &code::BUSY)?.kernel(name)?;
        let memory = match with {
            BusyWith::Compute => None,
            BusyWith::Memory => {
                let pieces = MEMORY_LEN.min(context.memory()?.1 / 8) / PIECE_LEN;
                let len = usize::try_from(pieces.max(1) * PIECE_LEN).unwrap_or(usize::MAX);
                Some(DeviceBuf::alloc(context, MemoryKind::Device, len)?)
            }
        };
        let staged = Pinned::alloc(context, 2 * STATE_LEN)?;
        // SAFETY: the memory's own bytes, which nothing else uses yet.
        unsafe { staged.as_ptr().write_bytes(0, staged.len()) };
        let state = DeviceBuf::alloc(context, MemoryKind::Device, STATE_LEN)?;
        let stream = Stream::new(context)?;
        let blocks = blocks.max(1);
        let busy = Self { kernel, stream, state, staged, memory, blocks, done: 0 };
        busy.clear()?;
        Ok(busy)
    }

    /// The amount of work in a piece: floating-point operations, or bytes read and written.
    pub fn of_piece(&self) -> u64 {
        if self.memory.is_some() { 2 * PIECE_LEN } else { FLOP_OF_PIECE }
    }

    /// Blocks of a launch.
    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    /// The stream that launches go into.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Puts a launch of so many pieces into the stream.
    ///
    /// # Errors
    /// The driver's refusal. A failure of the kernel itself comes with the next wait.
    pub fn launch(&mut self, pieces: u64) -> Result<(), GpuError> {
        let mut args =
            vec![Arg::Ptr(self.state.ptr()), Arg::U64(pieces), Arg::U64(u64::from(self.blocks))];
        if let Some(memory) = &self.memory {
            let held = memory.len() as u64 / PIECE_LEN;
            let first = self.done % held;
            args.extend([Arg::Ptr(memory.ptr()), Arg::U64(held), Arg::U64(first)]);
        }
        // SAFETY: the types are the kernel's. State and memory are our own, used by this stream
        // alone, and live until it was waited for when this is dropped.
        unsafe { self.stream.launch(&self.kernel, self.blocks, THREADS, &args)? };
        self.done += pieces;
        Ok(())
    }

    /// Launches once, waits, and returns how many multiprocessors had blocks.
    ///
    /// # Errors
    /// The driver's refusal, or a failure of the kernel.
    pub fn occupied(&mut self, pieces: u64) -> Result<u32, GpuError> {
        self.clear()?;
        self.launch(pieces)?;
        // SAFETY: within the memory of twice the state.
        let to = unsafe { self.staged.as_ptr().add(STATE_LEN) };
        let from = self.state.ptr().byte_add(SEEN_AT as u64);
        // SAFETY: both ranges are our own and live until the wait below.
        unsafe { self.stream.d2h(to.as_ptr(), from, SEEN_LEN)? };
        self.stream.sync()?;
        // SAFETY: the bytes that were just written; the address is a multiple of 128.
        let seen = unsafe { to.cast::<[u64; SEEN_LEN / 8]>().read() };
        Ok(seen.iter().map(|word| word.count_ones()).sum())
    }

    /// Puts zeros into the state, behind what the stream holds, and waits.
    fn clear(&self) -> Result<(), GpuError> {
        let (to, from) = (self.state.ptr(), self.staged.as_ptr());
        // SAFETY: both ranges are our own and live until the wait; the first half of the staged
        // memory stays zeros.
        unsafe { self.stream.h2d(to, from.as_ptr(), STATE_LEN)? };
        self.stream.sync()
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        // Memory that launches under way use must outlive them; a failure has ended them.
        let Ok(_entered) = self.kernel.context().enter() else {
            return;
        };
        let _ = self.stream.sync();
    }
}
