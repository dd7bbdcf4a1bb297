//! The command slots: words in page-locked memory that host and device share.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use super::MAX_SLOTS;
use crate::DevPtr;
use crate::locked::Locked;

/// Bytes of a slot: 128 that the host writes, and 128 that the device writes.
pub(super) const SLOT_LEN: usize = 256;
/// Offset: the number of the last completed command.
const COMPLETED: usize = 128;
/// Offset: the last launch that has left the slot, times four, plus the reason.
const EXITED: usize = 136;
/// Offset: the last launch that has a block for the slot on the device.
const ENTERED: usize = 144;
/// Offset: the last launch that exits soon.
const ANNOUNCED: usize = 152;
/// Offset: launches up to this number must exit.
const EXIT_UP_TO: usize = 24;
/// Bytes of all slots.
pub(super) const LEN: usize = MAX_SLOTS as usize * SLOT_LEN;
/// Flag in a command's length: the length counts the entries of a list at the source.
const LISTED: u64 = 1 << (BITS - 1);
/// Bits of a value in a command's word. The bits above hold the command's number.
const BITS: u32 = 48;

/// All slots of a device. It may be dropped once no launch of the kernel is on the device.
#[derive(Debug)]
pub(super) struct Mailbox(Locked);

/// One copy, or a list of copies.
#[derive(Debug, Clone, Copy)]
pub(super) struct Command {
    pub(super) number: u64,
    pub(super) src: DevPtr,
    pub(super) dst: DevPtr,
    pub(super) len: u64,
}

impl Command {
    /// Whether addresses and length fit their words.
    fn fits(self) -> bool {
        (self.src.0 | self.dst.0) >> BITS == 0 && self.len < LISTED
    }

    /// The command of this number for `len` bytes. `None`: an address or the length is too long.
    pub(super) fn bytes(number: u64, src: DevPtr, dst: DevPtr, len: usize) -> Option<Self> {
        let command = Self { number, src, dst, len: len as u64 };
        command.fits().then_some(command)
    }

    /// The command of this number for the pieces of a list.
    pub(super) fn list(number: u64, list: DevPtr, count: u32) -> Option<Self> {
        let command = Self { number, src: list, dst: DevPtr(0), len: u64::from(count) };
        command.fits().then_some(Self { len: command.len | LISTED, ..command })
    }
}

/// The last launch that has left a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exit {
    pub(super) launch: u64,
    /// It exited because other kernels fill the device.
    pub(super) gpu_was_full: bool,
}

/// Reason of an exit, in the lowest bits of the word: other kernels fill the device.
const GPU_FULL: u64 = 2;

impl Mailbox {
    /// Takes zeroed memory at a multiple of [`SLOT_LEN`].
    pub(super) fn new(memory: Locked) -> Self {
        assert!(memory.as_ptr().addr().get().is_multiple_of(SLOT_LEN), "slots are aligned");
        Self(memory)
    }

    /// Its address on the device.
    pub(super) fn ptr(&self) -> DevPtr {
        self.0.ptr()
    }

    /// Writes a command. Word 0 is written last: a reader that acquires it sees the other words and
    /// all that the host wrote before.
    pub(super) fn submit(&self, slot: usize, command: Command) {
        let Command { number, src, dst, len } = command;
        for (at, value) in [(1, dst.0), (2, len), (0, src.0)] {
            self.word(slot, at * 8).store(marked(number, value), Ordering::Release);
        }
    }

    /// Cancels a command unless `has_block` returns true, which it does while a block polls the
    /// slot: then the command stays, and the result is false.
    ///
    /// A block writes its entry, then reads the command. The host changes the command, then reads
    /// the entry. Each has a full fence between its two steps, so at least one sees the other
    /// (`resident_copy.cu`).
    pub(super) fn cancel(
        &self,
        slot: usize,
        command: Command,
        has_block: impl FnOnce() -> bool,
    ) -> bool {
        let before = command.number.wrapping_sub(1);
        self.word(slot, 0).store(marked(before, 0), Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if has_block() {
            self.word(slot, 0).store(marked(command.number, command.src.0), Ordering::Release);
            return false;
        }
        // The next command has the same number: no word of this one may remain.
        self.word(slot, 8).store(marked(before, 0), Ordering::Release);
        self.word(slot, 16).store(marked(before, 0), Ordering::Release);
        true
    }

    /// The number of the last completed command.
    #[inline]
    pub(super) fn completed(&self, slot: usize) -> u64 {
        self.word(slot, COMPLETED).load(Ordering::Acquire)
    }

    /// The last launch that has left the slot.
    #[inline]
    pub(super) fn exit(&self, slot: usize) -> Exit {
        let word = self.word(slot, EXITED).load(Ordering::Acquire);
        Exit { launch: word >> 2, gpu_was_full: word & 3 == GPU_FULL }
    }

    /// The last launch that has a block for the slot on the device. The block may still wait for
    /// that of the previous launch.
    #[inline]
    pub(super) fn entered(&self, slot: usize) -> u64 {
        self.word(slot, ENTERED).load(Ordering::SeqCst)
    }

    /// The last launch that exits soon, and all of whose blocks are on the device.
    #[inline]
    pub(super) fn announced(&self, slot: usize) -> u64 {
        self.word(slot, ANNOUNCED).load(Ordering::Acquire)
    }

    /// Makes all launches up to this one exit at once, also those that have not begun.
    pub(super) fn request_exit(&self, launch: u64) {
        for slot in 0..MAX_SLOTS as usize {
            self.word(slot, EXIT_UP_TO).fetch_max(launch, Ordering::AcqRel);
        }
    }

    #[inline]
    fn word(&self, slot: usize, at: usize) -> &AtomicU64 {
        let at = slot * SLOT_LEN + at;
        assert!(at + size_of::<u64>() <= self.0.len(), "byte {at} of the mailbox");
        // SAFETY: inside the memory by the assertion.
        let ptr = unsafe { self.0.as_ptr().add(at) };
        // SAFETY: a multiple of 8 in memory that lives as long as `self`; on this side every
        // access is atomic, and the kernel's are single words with acquire and release.
        unsafe { AtomicU64::from_ptr(ptr.as_ptr().cast()) }
    }
}

/// A value as a word of the command of this number.
fn marked(number: u64, value: u64) -> u64 {
    number << BITS | value
}
