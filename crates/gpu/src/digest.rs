//! Digests of ranges of memory, taken by the device: [`pattern::digest`](crate::pattern::digest).

use crate::DevPtr;
use crate::code;
use crate::context::Context;
use crate::error::GpuError;
use crate::event::{Event, Wait};
use crate::module::{Arg, Kernel, Module};
use crate::pinned::Pinned;
use crate::stream::Stream;
use crate::table;

/// Threads of a block: a multiple of the warp that fills a multiprocessor with eight blocks.
const BLOCK: u32 = 256;
/// Blocks for each multiprocessor: what is resident.
const BLOCKS_EACH: u32 = 8;
/// Bytes of an entry of the kernel's list, and of a sum.
const ENTRY: usize = 32;
const SUM: usize = 8;
/// The bounds of a range that one block takes, in bytes: below them its start costs more than it.
const PART: (u64, u64) = (64 << 10, 4 << 20);

/// Bytes whose digest is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// The first byte: memory that the device reads, at any address.
    pub start: DevPtr,
    /// Bytes.
    pub len: u64,
    /// The number of the first word, as in [`pattern::digest`](crate::pattern::digest).
    pub first: u64,
}

/// The kernel, loaded on one device. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct DigestKernel {
    kernel: Kernel,
    most_blocks: u32,
}

impl DigestKernel {
    /// Loads it. The driver compiles it the first time, which takes some ten milliseconds.
    ///
    /// # Errors
    /// The driver's refusal: the kernel needs compute capability 7.0.
    pub fn load(context: &Context) -> Result<Self, GpuError> {
        let kernel = Module::built_in(context, &code::PATTERN)?.kernel(c"gpuio_digest")?;
        let multiprocessors = context.driver().multiprocessors(context.device())?;
        Ok(Self { kernel, most_blocks: multiprocessors.saturating_mul(BLOCKS_EACH) })
    }

    /// Starts to take the digests of these ranges, in a stream of its own: what wrote them must
    /// have ended. The context is current.
    ///
    /// # Errors
    /// The driver's refusal.
    ///
    /// # Safety
    /// The ranges are live memory that the device reads and no thread writes until the result was
    /// taken or dropped.
    pub unsafe fn start(&self, ranges: &[Range]) -> Result<Digests, GpuError> {
        let context = self.kernel.context();
        let part = ranges.iter().map(|range| range.len).sum::<u64>() / u64::from(self.most_blocks);
        let part = part.next_power_of_two().clamp(PART.0, PART.1);
        let parts = ranges.iter().map(|range| range.len.div_ceil(part)).sum::<u64>();
        let sums = (ranges.len() * SUM).next_multiple_of(ENTRY);
        let bytes = usize::try_from(parts).ok().and_then(|parts| parts.checked_mul(ENTRY));
        let Some(bytes) = bytes.and_then(|list| list.checked_add(sums)) else {
            let error = context.table().error("cuMemHostAlloc", table::OUT_OF_MEMORY);
            return Err(error.on(context.device()).with(format!("a list of {parts} ranges")));
        };
        // Pinned memory, none of the device's: a program may have taken all of that.
        let started = Digests {
            event: Event::new(context, Wait::Block)?,
            host: Pinned::zeroed(context, bytes.max(ENTRY))?,
            count: ranges.len(),
            stream: Stream::new(context)?,
        };
        let mut entry = started.host.as_ptr().as_ptr().wrapping_add(sums).cast::<[u64; 4]>();
        for (nth, range) in ranges.iter().enumerate() {
            let sum = started.host.ptr().byte_add((nth * SUM) as u64);
            let mut done = 0;
            while done < range.len {
                let len = part.min(range.len - done);
                let at = range.start.byte_add(done).0;
                // SAFETY: one of the entries that the memory was made for; page-aligned, plus a
                // multiple of an entry's size.
                unsafe { entry.write([at, len, range.first.wrapping_add(done / 8), sum.0]) };
                entry = entry.wrapping_add(1);
                done += len;
            }
        }
        let stream = &started.stream;
        let blocks = u32::try_from(parts).unwrap_or(u32::MAX).min(self.most_blocks);
        if blocks > 0 {
            let list = started.host.ptr().byte_add(sums as u64);
            let args = [Arg::Ptr(list), Arg::U64(parts)];
            // SAFETY: the types are the kernel's; the list is the result's, which waits before it
            // frees it; the ranges are the caller's promise.
            unsafe { stream.launch(&self.kernel, blocks, BLOCK, &args) }?;
        }
        started.event.record(stream)?;
        Ok(started)
    }
}

/// Digests that the device is taking. Dropped, it waits for the device.
#[derive(Debug)]
pub struct Digests {
    event: Event,
    host: Pinned,
    count: usize,
    stream: Stream,
}

impl Digests {
    /// Waits, asleep, and returns the digest of each range. The context is current.
    ///
    /// # Errors
    /// A failure of the work, or the driver's refusal.
    pub fn wait(self) -> Result<Vec<u64>, GpuError> {
        self.event.sync()?;
        let first = self.host.as_ptr().cast::<u64>();
        // SAFETY: `start` made room for so many sums; the device has written them and is done.
        Ok(unsafe { std::slice::from_raw_parts(first.as_ptr(), self.count) }.to_vec())
    }
}

impl Drop for Digests {
    fn drop(&mut self) {
        // The stream uses the memory until then. A context that failed uses nothing.
        let _ = self.stream.sync();
    }
}
