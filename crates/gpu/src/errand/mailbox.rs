//! The words that host and device share: one desk beside another in page-locked memory.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use super::DESKS_MOST;
use crate::DevPtr;
use crate::locked::Leaked;

/// Bytes of a desk: one cache line, or pair of them, that the host writes, and one that the device
/// writes.
pub(super) const DESK: usize = 256;
/// Where the number of the last letter that was worked off stands.
const ANSWER: usize = 128;
/// Where the launch stands that has left the desk last, times four, and why.
const GONE: usize = 136;
/// Where the launch stands that has come to the desk last, times two; the lowest bit says that it
/// leaves soon.
const HERE: usize = 144;
/// Launches up to the number that stands there leave at once.
const LEAVE: usize = 24;
/// Bytes of all.
pub(super) const LEN: usize = DESKS_MOST as usize * DESK;
/// In a letter's length: it counts the entries of a list, at the letter's source.
const LISTED: u64 = 1 << (BITS - 1);
/// A word of a letter has so many bits; above them is the letter's number.
const BITS: u32 = 48;

/// All desks. Nothing of it is ever given back, since a kernel may outlive whoever launched it.
#[derive(Debug)]
pub(super) struct Mailbox(Leaked);

/// What one letter asks for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Letter {
    pub(super) number: u64,
    pub(super) src: DevPtr,
    pub(super) dst: DevPtr,
    pub(super) len: u64,
}

impl Letter {
    /// Whether its words are short enough for a letter.
    fn fits(self) -> bool {
        (self.src.0 | self.dst.0) >> BITS == 0 && self.len < LISTED
    }

    /// The letter of this number for `len` bytes, if its words are not too long.
    pub(super) fn bytes(number: u64, src: DevPtr, dst: DevPtr, len: usize) -> Option<Self> {
        let letter = Self { number, src, dst, len: len as u64 };
        letter.fits().then_some(letter)
    }

    /// The letter of this number for the pieces of a list.
    pub(super) fn list(number: u64, list: DevPtr, count: u32) -> Option<Self> {
        let letter = Self { number, src: list, dst: DevPtr(0), len: u64::from(count) };
        letter.fits().then_some(Self { len: letter.len | LISTED, ..letter })
    }
}

/// The last launch that has left a desk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gone {
    pub(super) launch: u64,
    /// It left because other kernels fill the device.
    pub(super) was_crowded: bool,
}

/// Why a launch left, in the lowest bits of its word: other kernels fill the device.
const CROWDED: u64 = 2;

/// The last launch that has come to a desk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Here {
    pub(super) launch: u64,
    /// It leaves soon, and all of its blocks are on the device.
    pub(super) is_leaving: bool,
}

impl Mailbox {
    /// Takes zeroed memory at a multiple of [`DESK`].
    pub(super) fn new(memory: Leaked) -> Self {
        assert!(memory.as_ptr().addr().get().is_multiple_of(DESK), "desks are aligned");
        Self(memory)
    }

    /// As the device sees it.
    pub(super) fn ptr(&self) -> DevPtr {
        self.0.ptr()
    }

    /// Puts a letter there. Word 0 comes last: whoever sees it sees the others and all that the
    /// host wrote before.
    pub(super) fn put(&self, desk: usize, letter: Letter) {
        let Letter { number, src, dst, len } = letter;
        for (at, value) in [(1, dst.0), (2, len), (0, src.0)] {
            self.word(desk, at * 8).store(marked(number, value), Ordering::Release);
        }
    }

    /// Takes a letter back that `is_here` may say nobody can have read: it tells whether a block is
    /// at the desk. If one is, the letter stays and the answer is false.
    ///
    /// A block says that it is here, then reads; here the letter is changed, then it is looked
    /// whether one is here. With a full fence between the two steps on either side one of them sees
    /// the other (`errand.cu`).
    pub(super) fn take_back(
        &self,
        desk: usize,
        letter: Letter,
        is_here: impl FnOnce() -> bool,
    ) -> bool {
        let before = letter.number.wrapping_sub(1);
        self.word(desk, 0).store(marked(before, 0), Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if is_here() {
            self.word(desk, 0).store(marked(letter.number, letter.src.0), Ordering::Release);
            return false;
        }
        // The next letter has this number again: no word of this one may be left.
        self.word(desk, 8).store(marked(before, 0), Ordering::Release);
        self.word(desk, 16).store(marked(before, 0), Ordering::Release);
        true
    }

    /// The number of the last letter that was worked off.
    #[inline]
    pub(super) fn answer(&self, desk: usize) -> u64 {
        self.word(desk, ANSWER).load(Ordering::Acquire)
    }

    #[inline]
    pub(super) fn gone(&self, desk: usize) -> Gone {
        let word = self.word(desk, GONE).load(Ordering::Acquire);
        Gone { launch: word >> 2, was_crowded: word & 3 == CROWDED }
    }

    /// The last launch that has come to the desk.
    #[inline]
    pub(super) fn here(&self, desk: usize) -> Here {
        let word = self.word(desk, HERE).load(Ordering::SeqCst);
        Here { launch: word >> 1, is_leaving: word & 1 == 1 }
    }

    /// Has all launches up to this one leave at once, also those that have not begun.
    pub(super) fn send_away(&self, launch: u64) {
        for desk in 0..DESKS_MOST as usize {
            self.word(desk, LEAVE).fetch_max(launch, Ordering::AcqRel);
        }
    }

    /// Has the desk's letters begin behind this number.
    #[cfg(test)]
    pub(super) fn begin_behind(&self, desk: usize, number: u64) {
        self.word(desk, ANSWER).store(number, Ordering::Release);
    }

    #[inline]
    fn word(&self, desk: usize, at: usize) -> &AtomicU64 {
        let at = desk * DESK + at;
        assert!(at + size_of::<u64>() <= self.0.len(), "byte {at} of the mailbox");
        // SAFETY: inside the memory by the assertion.
        let ptr = unsafe { self.0.as_ptr().add(at) };
        // SAFETY: a multiple of 8 in memory that lives as long as the process; on this side every
        // access is atomic, and the kernel's are single words with acquire and release.
        unsafe { AtomicU64::from_ptr(ptr.as_ptr().cast()) }
    }
}

/// A word of the letter of this number.
fn marked(number: u64, value: u64) -> u64 {
    number << BITS | value
}
