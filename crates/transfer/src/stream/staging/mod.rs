//! Page-locked staging buffers for transfers in streams.
//!
//! A buffer has three semaphores between host and stream, lists of pieces for the kernel, and space
//! for bytes: one range, or two halves that alternate. Semaphore values only increase (modulo
//! 2^32), across transfers too. So a wait for an earlier value is never held up by a later one, and
//! a buffer may be used again while a stream has yet to look at a value. Between transfers all
//! three hold the same value.

use std::sync::PoisonError;

use gpuio_gpu::{Context, DevPtr, GpuError, Leaked, Locked, PageSize, Piece, most_pieces};

use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{Mutex, MutexGuard};

/// Bytes of the smallest buffer.
const MIN_CAPACITY: usize = 64 << 10;
/// Most bytes of a buffer beyond the memory limit.
const MAX_CAPACITY_BEYOND_LIMIT: usize = 256 << 10;
/// Smaller buffers are made several at a time, of so many bytes in all.
const SLAB_BYTES: usize = 2 << 20;
/// Alignment of halves, in bytes, and the space before and after each for the edges of direct I/O.
pub(super) const PAGE: usize = 4096;
/// Shortest piece for the kernel, in bytes: lists have space for so many.
const MIN_PIECE: u64 = 4096;
/// Offset of the second semaphore: on a cache line of its own.
const RELEASED_AT: usize = 128;
/// Offset of the third semaphore: on a cache line of its own, because threads poll it.
const REACHED_AT: usize = 256;

/// A page-locked buffer, used by one transfer at a time.
#[derive(Debug, Clone, Copy)]
pub(super) struct StagingBuffer {
    start: *mut u8,
    device_ptr: DevPtr,
    /// In bytes: 0, or a power of two.
    capacity: usize,
    /// The value of its semaphores while it is free, or a later one.
    value: u32,
}

// SAFETY: it only names memory, which lives as long as the process.
unsafe impl Send for StagingBuffer {}
// SAFETY: as for Send; semaphores are used atomically, and the rest as the module says.
unsafe impl Sync for StagingBuffer {}

impl StagingBuffer {
    fn list_len(capacity: usize) -> usize {
        (capacity / PAGE + 4) * size_of::<Piece>()
    }

    /// The offset of the bytes.
    fn header(capacity: usize) -> usize {
        PAGE + Self::list_len(capacity).next_multiple_of(PAGE)
    }

    /// Bytes in all.
    fn size(capacity: usize) -> usize {
        if capacity == 0 { PAGE } else { Self::header(capacity) + capacity + 4 * PAGE }
    }

    fn semaphore(&self, at: usize) -> &'static AtomicU32 {
        let word = self.start.wrapping_add(at).cast::<u32>();
        // SAFETY: aligned, in memory that lives as long as the process, and used only atomically.
        unsafe { AtomicU32::from_ptr(word) }
    }

    /// The semaphore that the stream waits for: chunks completed by the host.
    pub(super) fn completed(&self) -> &'static AtomicU32 {
        self.semaphore(0)
    }

    pub(super) fn completed_device_ptr(&self) -> DevPtr {
        self.device_ptr
    }

    /// The semaphore that the stream stores when it no longer needs the buffer.
    pub(super) fn released(&self) -> &'static AtomicU32 {
        self.semaphore(RELEASED_AT)
    }

    pub(super) fn released_device_ptr(&self) -> DevPtr {
        self.device_ptr.byte_add(RELEASED_AT as u64)
    }

    /// The semaphore that the stream stores when it reaches chunks: how many it has reached.
    pub(super) fn reached(&self) -> &'static AtomicU32 {
        self.semaphore(REACHED_AT)
    }

    pub(super) fn reached_device_ptr(&self) -> DevPtr {
        self.device_ptr.byte_add(REACHED_AT as u64)
    }

    /// Chunks of this transfer that the stream has reached, by that semaphore.
    pub(super) fn chunks_reached(&self) -> u64 {
        // Acquire: what the stream did before is seen. A smaller value is still that of the
        // previous transfer.
        let by = self.reached().load(Ordering::Acquire).wrapping_sub(self.value).cast_signed();
        u64::try_from(by).unwrap_or(0)
    }

    /// Sets all semaphores to this value. No stream has work for the buffer.
    pub(super) fn starting_at(self, value: u32) -> Self {
        for at in [0, RELEASED_AT, REACHED_AT] {
            self.semaphore(at).store(value, Ordering::Release);
        }
        Self { value, ..self }
    }

    /// The value of the semaphores after so many chunks of this transfer.
    pub(super) fn value(&self, chunks: u64) -> u32 {
        // Values wrap around.
        #[expect(clippy::cast_possible_truncation, reason = "modulo 2^32 is meant")]
        let chunks = chunks as u32;
        self.value.wrapping_add(chunks)
    }

    /// Bytes of a chunk, for transfers of at most `most` bytes: the whole capacity, or half of it.
    pub(super) fn chunk_len(&self, most: u64) -> u64 {
        let capacity = self.capacity as u64;
        if most <= capacity { capacity } else { capacity / 2 }
    }

    /// The start of a half, for host and device: page-aligned, with a page of space before the
    /// next.
    pub(super) fn half(&self, half: usize, chunk_len: u64) -> (*mut u8, DevPtr) {
        let by = Self::header(self.capacity) as u64 + half as u64 * (chunk_len + 2 * PAGE as u64);
        // Inside the buffer, so below its length.
        let host = self.start.wrapping_add(usize::try_from(by).unwrap_or(0));
        (host, self.device_ptr.byte_add(by))
    }

    pub(super) fn list(&self, half: usize, chunk_len: u64) -> (*mut Piece, DevPtr) {
        let entries = most_pieces(chunk_len, MIN_PIECE);
        let by = PAGE as u64 + half as u64 * entries * size_of::<Piece>() as u64;
        let host = self.start.wrapping_add(usize::try_from(by).unwrap_or(0));
        (host.cast::<Piece>(), self.device_ptr.byte_add(by))
    }
}

#[derive(Debug)]
pub(super) struct StagingBuffers {
    max_bytes: u64,
    /// Capacity of the largest.
    largest: usize,
    pool: Mutex<FreeBuffers>,
}

#[derive(Debug, Default)]
struct FreeBuffers {
    created: u64,
    /// By capacity, as [`class`] counts.
    free: Vec<Vec<StagingBuffer>>,
    /// Returned with the stream's last store still pending, and its value.
    leaving: Vec<(StagingBuffer, u32)>,
}

/// 0 for semaphores alone, then one for each power of two.
fn class(capacity: usize) -> usize {
    if capacity == 0 { 0 } else { (capacity / MIN_CAPACITY).trailing_zeros() as usize + 1 }
}

impl FreeBuffers {
    fn give_back(&mut self, buffer: StagingBuffer) {
        let class = class(buffer.capacity);
        if self.free.len() <= class {
            self.free.resize_with(class + 1, Vec::new);
        }
        self.free[class].push(buffer);
    }

    fn collect(&mut self) {
        let mut at = 0;
        while let Some((buffer, value)) = self.leaving.get(at) {
            let passed = buffer.released().load(Ordering::Acquire).wrapping_sub(*value);
            if passed.cast_signed() >= 0 {
                let (buffer, value) = self.leaving.swap_remove(at);
                self.give_back(StagingBuffer { value, ..buffer });
            } else {
                at += 1;
            }
        }
    }

    fn pop(&mut self, class: usize) -> Option<StagingBuffer> {
        self.free.get_mut(class).and_then(Vec::pop)
    }

    fn pop_other(&mut self, class: usize) -> Option<StagingBuffer> {
        let count = self.free.len();
        let larger = class + 1..count;
        let smaller = (1..class.min(count)).rev();
        larger.chain(smaller).find_map(|class| self.pop(class))
    }
}

impl StagingBuffers {
    pub(super) fn new(max_bytes: u64, piece_len: usize) -> Self {
        Self { max_bytes, largest: (4 * piece_len).max(MIN_CAPACITY), pool: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, FreeBuffers> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a buffer for transfers of at most `most` bytes, or semaphores alone for `None`. Never
    /// waits for one to be returned. A program that fills its streams with large transfers reaches
    /// the memory limit; beyond it buffers are small, and their number is limited by what streams
    /// hold.
    pub(super) fn take(
        &self,
        context: &Context,
        most: Option<u64>,
    ) -> Result<StagingBuffer, GpuError> {
        let capacity = most.map_or(0, |most| {
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            most.clamp(MIN_CAPACITY, self.largest).next_power_of_two()
        });
        let mut pool = self.lock();
        pool.collect();
        if let Some(buffer) = pool.pop(class(capacity)) {
            return Ok(buffer);
        }
        let within =
            pool.created.saturating_add(StagingBuffer::size(capacity) as u64) <= self.max_bytes;
        if !within
            && capacity > 0
            && let Some(buffer) = pool.pop_other(class(capacity))
        {
            return Ok(buffer);
        }
        // Page-locking memory takes time, and other threads may return buffers meanwhile.
        drop(pool);
        let capacity = if within {
            capacity
        } else {
            capacity.min(MAX_CAPACITY_BEYOND_LIMIT).min(self.largest)
        };
        match self.make(context, capacity) {
            Ok(buffer) => Ok(buffer),
            Err(error) if capacity == 0 => Err(error),
            Err(error) => self.lock().pop_other(class(capacity)).ok_or(error),
        }
    }

    /// Makes some buffers and keeps all but one.
    fn make(&self, context: &Context, capacity: usize) -> Result<StagingBuffer, GpuError> {
        let size = StagingBuffer::size(capacity);
        let count = if capacity == 0 { 16 } else { (SLAB_BYTES / size).max(1) };
        let slab: Leaked = Locked::new(context, size * count, PageSize::Plain)?.leak();
        let buffer = |at: usize| StagingBuffer {
            start: slab.as_ptr().as_ptr().wrapping_add(at * size),
            device_ptr: slab.ptr().byte_add((at * size) as u64),
            capacity,
            value: 0,
        };
        let mut pool = self.lock();
        pool.created += (size * count) as u64;
        (1..count).for_each(|at| pool.give_back(buffer(at)));
        Ok(buffer(0))
    }

    /// Takes back a buffer for which no stream has work; `chunks` were served.
    pub(super) fn give_back(&self, buffer: StagingBuffer, chunks: u64) {
        // Not every transfer stores to each semaphore, and one that stays behind for 2^31 chunks
        // would be ahead.
        self.lock().give_back(buffer.starting_at(buffer.value(chunks)));
    }

    /// Takes back a buffer that becomes free when the stream has stored `value`.
    pub(super) fn give_back_later(&self, buffer: StagingBuffer, value: u32) {
        self.lock().leaving.push((buffer, value));
    }
}

#[cfg(test)]
mod tests;
