//! The data rule on the device.

use std::ffi::CStr;

use crate::DevPtr;
use crate::MemoryKind;
use crate::code;
use crate::context::Context;
use crate::error::GpuError;
use crate::memory::DeviceBuf;
use crate::module::{Arg, Kernel, Module};
use crate::pattern::{self, Key, PatternMismatch};
use crate::pinned::Pinned;
use crate::stream::Stream;
use crate::table;

/// The length in bytes of the report that the check kernel writes: the number of words that
/// differ, then the least byte offset of one, both `u64`.
pub const REPORT_LEN: usize = 16;

/// Threads of a block: a multiple of the warp that fills a multiprocessor with eight blocks.
const BLOCK: u32 = 256;
/// Blocks for each multiprocessor: twice what is resident, to even out the end.
const BLOCKS_EACH: u32 = 16;
/// Bytes that a thread handles at the least before more blocks are worth their start.
const BYTES_EACH: u64 = 64;

/// The kernels of the data rule (see [`pattern`]), loaded on one device.
#[derive(Debug, Clone)]
pub struct PatternKernels {
    fill: Kernel,
    check: Kernel,
    most_blocks: u32,
}

impl PatternKernels {
    /// Loads them. The driver compiles them the first time, which takes some ten milliseconds.
    ///
    /// # Errors
    /// The driver's refusal: the kernels need compute capability 7.0.
    pub fn load(context: &Context) -> Result<Self, GpuError> {
        let module = Module::built_in(context, &code::PATTERN)?;
        let kernel = |name: &CStr| module.kernel(name);
        let sms = context.driver().multiprocessors(context.device())?;
        Ok(Self {
            fill: kernel(c"gpuio_fill")?,
            check: kernel(c"gpuio_check")?,
            most_blocks: sms.saturating_mul(BLOCKS_EACH),
        })
    }

    /// Puts into the stream: write the bytes of the file with this key from byte `offset` on to
    /// `len` bytes at `dst`. Any address, length and offset will do; an address that is as far from
    /// a multiple of 16 as the offset is fastest.
    ///
    /// # Errors
    /// The driver's refusal, or a range past the end of 64 bits.
    ///
    /// # Safety
    /// `dst` must be `len` bytes of memory that the device can write, live and used by no one else
    /// until the stream has passed the launch.
    pub unsafe fn fill(
        &self,
        stream: &Stream,
        dst: DevPtr,
        len: u64,
        key: impl Into<Key>,
        offset: u64,
    ) -> Result<(), GpuError> {
        let Some(blocks) = self.blocks(dst, len, offset)? else {
            return Ok(());
        };
        let Key { seed, repeats } = key.into();
        let (seed, repeats) = (Arg::U64(seed), Arg::U64(repeats.bits()));
        let args = [Arg::Ptr(dst), Arg::U64(len), seed, repeats, Arg::U64(offset)];
        // SAFETY: the types are the kernel's; the memory is the caller's promise.
        unsafe { stream.launch(&self.fill, blocks, BLOCK, &args) }
    }

    /// Puts into the stream: compare `len` bytes at `src` with the file with this key from byte
    /// `offset` on, adding to the [`REPORT_LEN`] bytes at `report` the number of words that differ
    /// and lowering its second word to the least byte offset of such a word. The caller starts the
    /// report at `0, u64::MAX`.
    ///
    /// # Errors
    /// As [`PatternKernels::fill`].
    ///
    /// # Safety
    /// `src` must be `len` bytes that the device can read and no one writes, and `report` memory
    /// that the device can write, aligned to 8 bytes and read by no one else, until the stream has
    /// passed the launch.
    pub unsafe fn check(
        &self,
        stream: &Stream,
        src: DevPtr,
        len: u64,
        key: impl Into<Key>,
        offset: u64,
        report: DevPtr,
    ) -> Result<(), GpuError> {
        let Some(blocks) = self.blocks(src, len, offset)? else {
            return Ok(());
        };
        let Key { seed, repeats } = key.into();
        let (seed, repeats) = (Arg::U64(seed), Arg::U64(repeats.bits()));
        let args =
            [Arg::Ptr(src), Arg::U64(len), seed, repeats, Arg::U64(offset), Arg::Ptr(report)];
        // SAFETY: the types are the kernel's; the memory is the caller's promise.
        unsafe { stream.launch(&self.check, blocks, BLOCK, &args) }
    }

    /// The grid for a range, or `None` if it is empty.
    fn blocks(&self, at: DevPtr, len: u64, offset: u64) -> Result<Option<u32>, GpuError> {
        if len == 0 {
            return Ok(None);
        }
        // The kernels round the end up to a pair of words.
        let end = offset.checked_add(len).and_then(|end| end.checked_add(16));
        if end.is_none() || at.0.checked_add(len).is_none() {
            let context = self.fill.context();
            let error = context.table().error("cuLaunchKernel", table::INVALID_VALUE);
            let what = format!("{len} bytes at {at}, byte {offset} of the file, pass 2^64");
            return Err(error.on(context.device()).with(what));
        }
        let wanted = len.div_ceil(u64::from(BLOCK) * BYTES_EACH);
        Ok(Some(u32::try_from(wanted).unwrap_or(u32::MAX).min(self.most_blocks)))
    }
}

/// Checks ranges one after another and reports what it found: owns the report on the device and its
/// way back. For one thread at a time.
#[derive(Debug)]
pub struct Checker {
    kernels: PatternKernels,
    report: DeviceBuf,
    /// The report's start value, then space for the result, then space for the first bad word.
    staged: Pinned,
}

impl Checker {
    /// Makes the report's memory.
    ///
    /// # Errors
    /// The driver's refusal.
    pub fn new(context: &Context, kernels: &PatternKernels) -> Result<Self, GpuError> {
        let report = DeviceBuf::alloc(context, MemoryKind::Device, REPORT_LEN)?;
        let staged = Pinned::alloc(context, 4096)?;
        let start = staged.as_ptr().cast::<[u64; 5]>();
        // SAFETY: the memory is 4096 bytes, aligned to 4096, and no one else has its address.
        unsafe { start.write([0, u64::MAX, 0, 0, 0]) };
        Ok(Self { kernels: kernels.clone(), report, staged })
    }

    /// Compares `len` bytes at `src` with the file with this key from byte `offset` on, behind what
    /// the stream holds, and waits for the result. `None` means that all are right.
    ///
    /// # Errors
    /// The driver's refusal, or a failure of earlier work in the stream.
    ///
    /// # Safety
    /// `src` must be `len` bytes that the device can read, live and written by no one but the
    /// stream, during the call. After an error, until the stream has been waited for.
    pub unsafe fn check(
        &mut self,
        stream: &Stream,
        src: DevPtr,
        len: u64,
        key: impl Into<Key>,
        offset: u64,
    ) -> Result<Option<PatternMismatch>, GpuError> {
        let key = key.into();
        let staged = self.staged.as_ptr();
        // SAFETY: the offset is within the 4096 bytes.
        let result = unsafe { staged.add(REPORT_LEN) };
        // SAFETY: both ranges are the checker's own and live until the sync below.
        unsafe { stream.h2d(self.report.ptr(), staged.as_ptr(), REPORT_LEN)? };
        // SAFETY: `src` is the caller's promise; the report is the checker's own, and aligned.
        unsafe { self.kernels.check(stream, src, len, key, offset, self.report.ptr())? };
        // SAFETY: both ranges are the checker's own and live until the sync below.
        unsafe { stream.d2h(result.as_ptr(), self.report.ptr(), REPORT_LEN)? };
        stream.sync()?;
        // SAFETY: 16 bytes at a multiple of 16 within the memory, which the stream has written.
        let [bad_words, first_offset] = unsafe { result.cast::<[u64; 2]>().read() };
        if bad_words == 0 {
            return Ok(None);
        }
        // SAFETY: the caller's promise holds on.
        let (expected, found) = unsafe { self.found(stream, src, len, key, offset, first_offset)? };
        Ok(Some(PatternMismatch { first_offset, expected, found, bad_words }))
    }

    /// The word at `first` by the rule and as it is on the device.
    ///
    /// # Safety
    /// As [`Checker::check`].
    unsafe fn found(
        &self,
        stream: &Stream,
        src: DevPtr,
        len: u64,
        key: Key,
        offset: u64,
        first: u64,
    ) -> Result<(u64, u64), GpuError> {
        let expected = pattern::word(key, first / 8);
        // The part of the word that lies in the range; a report that lies outside it, which only a
        // broken device makes, leaves nothing to copy.
        let begin = first.max(offset);
        let end = first.saturating_add(8).min(offset + len);
        if begin >= end {
            return Ok((expected, expected));
        }
        let (skip, count) = (usize::from((begin - first).to_le_bytes()[0]), end - begin);
        let count = usize::from(count.to_le_bytes()[0]);
        // SAFETY: 32 is within the 4096 bytes.
        let place = unsafe { self.staged.as_ptr().add(2 * REPORT_LEN) };
        // SAFETY: `place` has room for the at most 8 bytes, which lie in the caller's range.
        unsafe { stream.d2h(place.as_ptr(), src.byte_add(begin - offset), count)? };
        stream.sync()?;
        // SAFETY: 8 bytes within the memory, initialised when the checker was made.
        let copied = unsafe { place.cast::<[u8; 8]>().read() };
        let mut bytes = expected.to_le_bytes();
        bytes[skip..skip + count].copy_from_slice(&copied[..count]);
        Ok((expected, u64::from_le_bytes(bytes)))
    }
}
