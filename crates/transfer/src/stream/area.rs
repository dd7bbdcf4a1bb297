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
const LEAST: usize = 64 << 10;
/// Bytes of room that an area beyond the bound has at most.
const BEYOND: usize = 256 << 10;
/// Areas are made of as many bytes at once, where they are smaller.
const SLAB: usize = 2 << 20;
/// Where parts begin, in bytes, and what lies before and behind each for the edges of direct I/O.
pub(super) const PAGE: usize = 4096;
/// The least length of pieces for the kernel, in bytes: what lists have room for.
const PIECE_LEAST: u64 = 4096;
/// Where the second word lies: not on the first one's cache lines.
const EMPTY_AT: usize = 128;
/// Where the third word lies: on neither's, for threads look at it again and again.
const REACHED_AT: usize = 256;

/// One piece of page-locked memory, of one transfer at a time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Area {
    start: *mut u8,
    seen: DevPtr,
    /// Bytes of room: 0, or a power of two.
    room: usize,
    /// What its words hold when it is free, or later.
    value: u32,
}

// SAFETY: it only names memory, which lives as long as the process.
unsafe impl Send for Area {}
// SAFETY: as for Send; words are used atomically, and the rest as the module tells.
unsafe impl Sync for Area {}

impl Area {
    fn list_len(room: usize) -> usize {
        (room / PAGE + 4) * size_of::<Piece>()
    }

    /// Where the bytes begin.
    fn header(room: usize) -> usize {
        PAGE + Self::list_len(room).next_multiple_of(PAGE)
    }

    /// Bytes in all.
    fn size(room: usize) -> usize {
        if room == 0 { PAGE } else { Self::header(room) + room + 4 * PAGE }
    }

    fn word(&self, at: usize) -> &'static AtomicU32 {
        let word = self.start.wrapping_add(at).cast::<u32>();
        // SAFETY: aligned, in memory that lives as long as the process, and used only atomically.
        unsafe { AtomicU32::from_ptr(word) }
    }

    /// The word that the stream waits for: rounds that are served.
    pub(super) fn served(&self) -> &'static AtomicU32 {
        self.word(0)
    }

    pub(super) fn served_seen(&self) -> DevPtr {
        self.seen
    }

    /// The word that the stream stores when it needs the area no more.
    fn empty(&self) -> &'static AtomicU32 {
        self.word(EMPTY_AT)
    }

    pub(super) fn empty_seen(&self) -> DevPtr {
        self.seen.byte_add(EMPTY_AT as u64)
    }

    /// The word that the stream stores when it comes to rounds: how many it has come to.
    pub(super) fn reached(&self) -> &'static AtomicU32 {
        self.word(REACHED_AT)
    }

    pub(super) fn reached_seen(&self) -> DevPtr {
        self.seen.byte_add(REACHED_AT as u64)
    }

    /// Rounds of this transfer that the stream has come to, by that word.
    pub(super) fn rounds_reached(&self) -> u64 {
        // Acquire: what the stream did before is seen. A word that is behind is still that of the
        // transfer before this one.
        let by = self.reached().load(Ordering::Acquire).wrapping_sub(self.value).cast_signed();
        u64::try_from(by).unwrap_or(0)
    }

    /// With words that hold this. No stream has work for it.
    pub(super) fn starting_at(self, value: u32) -> Self {
        for at in [0, EMPTY_AT, REACHED_AT] {
            self.word(at).store(value, Ordering::Release);
        }
        Self { value, ..self }
    }

    /// What the words hold after so many rounds of this transfer.
    pub(super) fn value(&self, rounds: u64) -> u32 {
        // They go round.
        #[expect(clippy::cast_possible_truncation, reason = "modulo 2^32 is meant")]
        let rounds = rounds as u32;
        self.value.wrapping_add(rounds)
    }

    /// Bytes of a part, for transfers of at most `most` bytes: all the room, or half of it.
    pub(super) fn part_len(&self, most: u64) -> u64 {
        let room = self.room as u64;
        if most <= room { room } else { room / 2 }
    }

    /// Where a part begins, as host and device see it: at a multiple of a page, with as much room
    /// of a page before the next.
    pub(super) fn part(&self, part: usize, part_len: u64) -> (*mut u8, DevPtr) {
        let by = Self::header(self.room) as u64 + part as u64 * (part_len + 2 * PAGE as u64);
        // Inside the area, so below its length.
        let host = self.start.wrapping_add(usize::try_from(by).unwrap_or(0));
        (host, self.seen.byte_add(by))
    }

    /// The list of a part.
    pub(super) fn list(&self, part: usize, part_len: u64) -> (*mut Piece, DevPtr) {
        let entries = most_pieces(part_len, PIECE_LEAST);
        let by = PAGE as u64 + part as u64 * entries * size_of::<Piece>() as u64;
        let host = self.start.wrapping_add(usize::try_from(by).unwrap_or(0));
        (host.cast::<Piece>(), self.seen.byte_add(by))
    }
}

/// The areas of a device.
#[derive(Debug)]
pub(super) struct Areas {
    bytes_most: u64,
    /// Room of the largest.
    largest: usize,
    pool: Mutex<Pool>,
}

#[derive(Debug, Default)]
struct Pool {
    made: u64,
    /// By room, as [`class`] counts.
    free: Vec<Vec<Area>>,
    /// Given back by those who put the stream's last store behind their work, with its value.
    leaving: Vec<(Area, u32)>,
}

/// 0 for words alone, then one for each power of two.
fn class(room: usize) -> usize {
    if room == 0 { 0 } else { (room / LEAST).trailing_zeros() as usize + 1 }
}

impl Pool {
    fn give(&mut self, area: Area) {
        let class = class(area.room);
        if self.free.len() <= class {
            self.free.resize_with(class + 1, Vec::new);
        }
        self.free[class].push(area);
    }

    fn collect(&mut self) {
        let mut at = 0;
        while let Some((area, value)) = self.leaving.get(at) {
            let passed = area.empty().load(Ordering::Acquire).wrapping_sub(*value);
            if passed.cast_signed() >= 0 {
                let (area, value) = self.leaving.swap_remove(at);
                self.give(Area { value, ..area });
            } else {
                at += 1;
            }
        }
    }

    /// One of this class, or of another that is better than none.
    fn pop(&mut self, class: usize) -> Option<Area> {
        self.free.get_mut(class).and_then(Vec::pop)
    }

    fn pop_other(&mut self, class: usize) -> Option<Area> {
        let count = self.free.len();
        let larger = class + 1..count;
        let smaller = (1..class.min(count)).rev();
        larger.chain(smaller).find_map(|class| self.pop(class))
    }
}

impl Areas {
    pub(super) fn new(bytes_most: u64, chunk: usize) -> Self {
        Self { bytes_most, largest: (4 * chunk).max(LEAST), pool: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An area for transfers of at most `most` bytes, or words alone for `None`. Never waits for
    /// one to be given back: beyond the bound, which a program comes to that fills its streams with
    /// large transfers, the areas are small, and their number is bound by what streams hold.
    pub(super) fn take(&self, context: &Context, most: Option<u64>) -> Result<Area, GpuError> {
        let room = most.map_or(0, |most| {
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            most.clamp(LEAST, self.largest).next_power_of_two()
        });
        let mut pool = self.lock();
        pool.collect();
        if let Some(area) = pool.pop(class(room)) {
            return Ok(area);
        }
        let within = pool.made.saturating_add(Area::size(room) as u64) <= self.bytes_most;
        if !within
            && room > 0
            && let Some(area) = pool.pop_other(class(room))
        {
            return Ok(area);
        }
        // Locking memory takes its time, and others may give areas back meanwhile.
        drop(pool);
        let room = if within { room } else { room.min(BEYOND).min(self.largest) };
        match self.make(context, room) {
            Ok(area) => Ok(area),
            Err(error) if room == 0 => Err(error),
            Err(error) => self.lock().pop_other(class(room)).ok_or(error),
        }
    }

    /// Makes some areas, keeps all but one.
    fn make(&self, context: &Context, room: usize) -> Result<Area, GpuError> {
        let size = Area::size(room);
        let count = if room == 0 { 16 } else { (SLAB / size).max(1) };
        let slab: Leaked = Locked::new(context, size * count, PageSize::Plain)?.leak();
        let area = |at: usize| Area {
            start: slab.as_ptr().as_ptr().wrapping_add(at * size),
            seen: slab.ptr().byte_add((at * size) as u64),
            room,
            value: 0,
        };
        let mut pool = self.lock();
        pool.made += (size * count) as u64;
        (1..count).for_each(|at| pool.give(area(at)));
        Ok(area(0))
    }

    /// Takes back an area that no stream has work for; `rounds` were served.
    pub(super) fn give(&self, area: Area, rounds: u64) {
        // Not every transfer has a store for each word, and one that stays behind for 2^31 rounds
        // would be ahead.
        self.lock().give(area.starting_at(area.value(rounds)));
    }

    /// Takes back an area that is free once the stream has stored that value.
    pub(super) fn give_later(&self, area: Area, value: u32) {
        self.lock().leaving.push((area, value));
    }
}

#[cfg(test)]
mod tests;
