//! Page-locked memory for transfers in streams.
//!
//! An area has three words that host and stream tell each other by, lists of pieces for the kernel,
//! and room for bytes in one part, or in two that take turns. Words only ever grow (going round),
//! from one transfer to the next too, so whoever waits for an earlier value is never held by a
//! later one, and an area may be used again while a stream has still to look at a word. Between
//! transfers all three hold the same value.

use std::sync::PoisonError;

use gpuio_gpu::{Context, DevPtr, GpuError, Leaked, Locked, PageSize, Piece, most_pieces};

use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{Mutex, MutexGuard};

/// Bytes of the smallest area's room.
const MIN_CAPACITY: usize = 64 << 10;
/// Bytes of room that an area beyond the bound has at most.
const MAX_CAPACITY_BEYOND_LIMIT: usize = 256 << 10;
/// StagingBuffers are made of as many bytes at once, where they are smaller.
const SLAB_BYTES: usize = 2 << 20;
/// Where parts begin, in bytes, and what lies before and behind each for the edges of direct I/O.
pub(super) const PAGE: usize = 4096;
/// The least length of pieces for the kernel, in bytes: what lists have room for.
const MIN_PIECE: u64 = 4096;
/// Where the second word lies: not on the first one's cache lines.
const RELEASED_AT: usize = 128;
/// Where the third word lies: on neither's, for threads look at it again and again.
const REACHED_AT: usize = 256;

/// One piece of page-locked memory, of one transfer at a time.
#[derive(Debug, Clone, Copy)]
pub(super) struct StagingBuffer {
    start: *mut u8,
    device_ptr: DevPtr,
    /// Bytes of room: 0, or a power of two.
    capacity: usize,
    /// What its words hold when it is free, or later.
    value: u32,
}

// SAFETY: it only names memory, which lives as long as the process.
unsafe impl Send for StagingBuffer {}
// SAFETY: as for Send; words are used atomically, and the rest as the module tells.
unsafe impl Sync for StagingBuffer {}

impl StagingBuffer {
    fn list_len(capacity: usize) -> usize {
        (capacity / PAGE + 4) * size_of::<Piece>()
    }

    /// Where the bytes begin.
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

    /// The word that the stream waits for: rounds that are served.
    pub(super) fn completed(&self) -> &'static AtomicU32 {
        self.semaphore(0)
    }

    pub(super) fn completed_device_ptr(&self) -> DevPtr {
        self.device_ptr
    }

    /// The word that the stream stores when it needs the area no more.
    fn released(&self) -> &'static AtomicU32 {
        self.semaphore(RELEASED_AT)
    }

    pub(super) fn released_device_ptr(&self) -> DevPtr {
        self.device_ptr.byte_add(RELEASED_AT as u64)
    }

    /// The word that the stream stores when it comes to rounds: how many it has come to.
    pub(super) fn reached(&self) -> &'static AtomicU32 {
        self.semaphore(REACHED_AT)
    }

    pub(super) fn reached_device_ptr(&self) -> DevPtr {
        self.device_ptr.byte_add(REACHED_AT as u64)
    }

    /// Rounds of this transfer that the stream has come to, by that word.
    pub(super) fn chunks_reached(&self) -> u64 {
        // Acquire: what the stream did before is seen. A word that is behind is still that of the
        // transfer before this one.
        let by = self.reached().load(Ordering::Acquire).wrapping_sub(self.value).cast_signed();
        u64::try_from(by).unwrap_or(0)
    }

    /// With words that hold this. No stream has work for it.
    pub(super) fn starting_at(self, value: u32) -> Self {
        for at in [0, RELEASED_AT, REACHED_AT] {
            self.semaphore(at).store(value, Ordering::Release);
        }
        Self { value, ..self }
    }

    /// What the words hold after so many rounds of this transfer.
    pub(super) fn value(&self, chunks: u64) -> u32 {
        // They go round.
        #[expect(clippy::cast_possible_truncation, reason = "modulo 2^32 is meant")]
        let chunks = chunks as u32;
        self.value.wrapping_add(chunks)
    }

    /// Bytes of a part, for transfers of at most `most` bytes: all the room, or half of it.
    pub(super) fn chunk_len(&self, most: u64) -> u64 {
        let capacity = self.capacity as u64;
        if most <= capacity { capacity } else { capacity / 2 }
    }

    /// Where a part begins, as host and device see it: at a multiple of a page, with as much room
    /// of a page before the next.
    pub(super) fn half(&self, half: usize, chunk_len: u64) -> (*mut u8, DevPtr) {
        let by = Self::header(self.capacity) as u64 + half as u64 * (chunk_len + 2 * PAGE as u64);
        // Inside the area, so below its length.
        let host = self.start.wrapping_add(usize::try_from(by).unwrap_or(0));
        (host, self.device_ptr.byte_add(by))
    }

    /// The list of a part.
    pub(super) fn list(&self, half: usize, chunk_len: u64) -> (*mut Piece, DevPtr) {
        let entries = most_pieces(chunk_len, MIN_PIECE);
        let by = PAGE as u64 + half as u64 * entries * size_of::<Piece>() as u64;
        let host = self.start.wrapping_add(usize::try_from(by).unwrap_or(0));
        (host.cast::<Piece>(), self.device_ptr.byte_add(by))
    }
}

/// The areas of a device.
#[derive(Debug)]
pub(super) struct StagingBuffers {
    max_bytes: u64,
    /// Room of the largest.
    largest: usize,
    pool: Mutex<FreeBuffers>,
}

#[derive(Debug, Default)]
struct FreeBuffers {
    created: u64,
    /// By room, as [`class`] counts.
    free: Vec<Vec<StagingBuffer>>,
    /// Given back by those who put the stream's last store behind their work, with its value.
    leaving: Vec<(StagingBuffer, u32)>,
}

/// 0 for words alone, then one for each power of two.
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

    /// One of this class, or of another that is better than none.
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

    /// An area for transfers of at most `most` bytes, or words alone for `None`. Never waits for
    /// one to be given back: beyond the bound, which a program comes to that fills its streams with
    /// large transfers, the areas are small, and their number is bound by what streams hold.
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
        // Locking memory takes its time, and others may give areas back meanwhile.
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

    /// Makes some areas, keeps all but one.
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

    /// Takes back an area that no stream has work for; `rounds` were served.
    pub(super) fn give_back(&self, buffer: StagingBuffer, chunks: u64) {
        // Not every transfer has a store for each word, and one that stays behind for 2^31 rounds
        // would be ahead.
        self.lock().give_back(buffer.starting_at(buffer.value(chunks)));
    }

    /// Takes back an area that is free once the stream has stored that value.
    pub(super) fn give_back_later(&self, buffer: StagingBuffer, value: u32) {
        self.lock().leaving.push((buffer, value));
    }
}

#[cfg(test)]
mod tests;
