//! A kernel that stays on the device and moves blocks as the host writes letters to it.
//!
//! For one small block at a time, the launch of a kernel or a copy by the driver takes longer than
//! the bytes. Here the host stores a word in pinned memory, the kernel sees it, moves the block and
//! answers in pinned memory: no call of the driver in between. The kernel is
//! `kernels/resident.cu`.
//!
//! The kernel goes by itself when no letter has come for [`IDLE`] or when it has stayed for
//! [`STAY`], and is launched again with the next letter: whatever waits for the whole device (the
//! driver's free of memory does) waits no longer than that.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::DevPtr;
use crate::context::Context;
use crate::error::GpuError;
use crate::module::{Arg, Kernel, Module};
use crate::pinned::Pinned;
use crate::stream::Stream;
use crate::table;

const PTX: &str = include_str!("../kernels/resident.ptx");

/// Without a letter for so long, the kernel goes. Its next launch costs some ten microseconds.
pub const IDLE: Duration = Duration::from_millis(2);
/// After so long the kernel goes in any case: a GPU that drives a display ends kernels after some
/// seconds.
pub const STAY: Duration = Duration::from_millis(500);
/// The most slots: a letter has 15 bits for one, and the mailbox, of at most 2^15 letters, has one
/// letter more than slots.
pub const SLOTS_MOST: u32 = (1 << 15) - 1;

/// Threads of the kernel's one block: a page takes one load of 16 bytes in each.
const THREADS: u32 = 256;
/// Bytes between the two answers, so that each has cache lines of its own.
const APART: usize = 128;
/// How often, and with what pauses, a kernel's last word is looked for when the driver does not
/// tell whether it ended: three times [`STAY`] and more.
const LAST_LOOKS: u32 = 30_000;
const LAST_PAUSE: Duration = Duration::from_micros(50);
/// Answers that did not come, after which the driver is asked whether the kernel failed. A look at
/// memory takes nanoseconds, a question to the driver about a microsecond.
const PATIENCE: u32 = 20_000;

/// Which way a block goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From host memory to the device.
    In,
    /// From the device to host memory.
    Out,
}

/// Where the slots lie on both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sides {
    /// Slot 0 in pinned host memory: a multiple of 16.
    pub host: DevPtr,
    /// Slot 0 in memory that a kernel reaches: a multiple of 16.
    pub device: DevPtr,
    /// Bytes from one slot to the next, on both sides: a multiple of 16.
    pub stride: u64,
    /// How many there are: 1 to [`SLOTS_MOST`].
    pub slots: u32,
}

/// The kernel and its mailbox. One thread owns it; the context must be current there.
///
/// Letters are worked off in the order of [`Resident::post`]. Dropping it waits for all of them.
#[derive(Debug)]
pub struct Resident {
    kernel: Kernel,
    stream: Stream,
    /// Letters, then from `answers` on the two answers.
    page: Pinned,
    /// Letters in the page, less one; a power of two less one.
    mask: u64,
    answers: usize,
    sides: Sides,
    /// The number of the last letter posted, and of the last one whose answer was taken.
    posted: u64,
    taken: u64,
    /// How often the kernel was launched, and whether the last one may still be there.
    launches: u64,
    there: bool,
    /// Looks in vain since the last answer.
    looks: u32,
}

impl Resident {
    /// Loads the kernel and makes the mailbox. The kernel is launched with the first letter.
    ///
    /// # Errors
    ///
    /// Sides that are not aligned or have too many slots; the driver's refusal (the kernel needs
    /// compute capability 7.0).
    pub fn new(context: &Context, sides: Sides) -> Result<Self, GpuError> {
        let aligned = (sides.host.0 | sides.device.0 | sides.stride).is_multiple_of(16);
        if !aligned || sides.slots == 0 || sides.slots > SLOTS_MOST {
            let error = context.table().error("cuLaunchKernel", table::INVALID_VALUE);
            return Err(error.on(context.device()).with(format!(
                "{} slots at {} and {}, {} bytes apart: a resident kernel takes 1 to {SLOTS_MOST} \
                 slots at multiples of 16",
                sides.slots, sides.host, sides.device, sides.stride
            )));
        }
        let kernel = Module::built_in(context, PTX)?.kernel(c"gpuio_resident")?;
        // One more than can be under way, for the letter that ends the kernel.
        let letters = (sides.slots + 1).next_power_of_two() as usize;
        let answers = (letters * size_of::<u64>()).next_multiple_of(APART);
        let page = Pinned::alloc(context, answers + 2 * APART)?;
        // SAFETY: the page's own bytes, which nobody else knows yet.
        unsafe { page.as_ptr().write_bytes(0, page.len()) };
        Ok(Self {
            kernel,
            stream: Stream::new(context)?,
            page,
            mask: letters as u64 - 1,
            answers,
            sides,
            posted: 0,
            taken: 0,
            launches: 0,
            there: false,
            looks: 0,
        })
    }

    /// Bytes of pinned host memory that the mailbox takes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.page.len() as u64
    }

    /// How often the kernel was launched.
    #[must_use]
    pub fn launches(&self) -> u64 {
        self.launches
    }

    /// Letters posted whose answers were not taken yet.
    #[must_use]
    pub fn under_way(&self) -> u64 {
        self.posted - self.taken
    }

    /// Has the first `len` bytes of a slot moved.
    ///
    /// # Errors
    ///
    /// The driver refused to launch the kernel: the letter is withdrawn.
    ///
    /// # Panics
    ///
    /// More letters under way than slots, a slot that is not there, or a block that is empty or
    /// longer than the slot.
    ///
    /// # Safety
    ///
    /// Both sides must be as [`Sides`] told, and live until this value is dropped. Until its answer
    /// was taken nobody else writes the slot's bytes on the side they come from, nor uses those on
    /// the side they go to.
    pub unsafe fn post(
        &mut self,
        slot: u32,
        len: u32,
        direction: Direction,
    ) -> Result<(), GpuError> {
        assert!(self.under_way() <= self.mask, "more letters than the mailbox holds");
        assert!(slot < self.sides.slots, "slot {slot} of {}", self.sides.slots);
        let fits = len > 0 && u64::from(len) <= self.sides.stride;
        assert!(fits, "{len} bytes do not fit slot {slot}");
        let number = self.posted + 1;
        let out = u64::from(direction == Direction::Out);
        let letter = number << 48 | out << 47 | u64::from(slot) << 32 | u64::from(len);
        self.letter(number).store(letter, Ordering::Release);
        if !self.there {
            self.launch(number)?;
        }
        self.posted = number;
        Ok(())
    }

    /// How many letters were answered since the last call, in their order; never blocks for them.
    ///
    /// # Errors
    ///
    /// The kernel failed, or could not be launched again: no letter under way will be answered, and
    /// none is under way any more.
    #[inline]
    pub fn take(&mut self) -> Result<u64, GpuError> {
        let answered = self.answer(0).load(Ordering::Acquire);
        let count = answered - self.taken;
        self.taken = answered;
        if count > 0 || self.under_way() == 0 {
            self.looks = 0;
            return Ok(count);
        }
        self.look_after()
    }

    /// Without an answer: sees whether the kernel went or failed.
    fn look_after(&mut self) -> Result<u64, GpuError> {
        self.looks += 1;
        let gone = self.answer(1).load(Ordering::Acquire) == self.launches;
        if !gone && self.looks < PATIENCE {
            return Ok(0);
        }
        self.looks = 0;
        // After it said that it goes it reads no letter; once it is gone, what it did not answer is
        // for the next.
        let over = if gone { self.stream.sync().map(|()| true) } else { self.stream.query() };
        let outcome = match over {
            Ok(false) => return Ok(0),
            Ok(true) => self.revive(),
            Err(error) => Err(error),
        };
        outcome.inspect_err(|_| {
            self.see_off();
            self.taken = self.posted;
            // The next answers are counted from here.
            self.answer(0).store(self.posted, Ordering::Release);
        })
    }

    /// The kernel is gone: counts its last answers, and launches it for what it left.
    fn revive(&mut self) -> Result<u64, GpuError> {
        self.there = false;
        let answered = self.answer(0).load(Ordering::Acquire);
        let count = answered - self.taken;
        self.taken = answered;
        if self.under_way() > 0 {
            self.launch(self.taken + 1)?;
        }
        Ok(count)
    }

    /// Ends the kernel when it has worked off all letters, and waits for that.
    fn see_off(&mut self) {
        if !self.there {
            return;
        }
        self.there = false;
        let number = self.posted + 1;
        self.letter(number).store(number << 48, Ordering::Release);
        if self.stream.sync().is_ok() {
            return;
        }
        // The answer may be the kernel's failure, which is its end, or a refusal to wait: then the
        // kernel's last word tells. A device that is lost says no more.
        for _ in 0..LAST_LOOKS {
            if self.answer(1).load(Ordering::Acquire) == self.launches {
                return;
            }
            std::thread::sleep(LAST_PAUSE);
        }
    }

    fn launch(&mut self, first: u64) -> Result<(), GpuError> {
        let base = DevPtr(self.page.ptr().0);
        let nanoseconds = |time: Duration| Arg::U64(u64::try_from(time.as_nanos()).unwrap_or(0));
        let args = [
            Arg::Ptr(base),
            Arg::U64(self.mask),
            Arg::Ptr(base.byte_add(self.answers as u64)),
            Arg::Ptr(self.sides.host),
            Arg::Ptr(self.sides.device),
            Arg::U64(self.sides.stride),
            Arg::U64(first),
            Arg::U64(self.launches + 1),
            nanoseconds(IDLE),
            nanoseconds(STAY),
        ];
        // SAFETY: the types are the kernel's. The mailbox lives until `drop` has seen the kernel's
        // end, and the sides by the promise to `post`.
        unsafe { self.stream.launch(&self.kernel, 1, THREADS, &args) }?;
        self.launches += 1;
        self.there = true;
        Ok(())
    }

    fn letter(&self, number: u64) -> &AtomicU64 {
        // At most the mask, which is below 2^15.
        let at = usize::try_from(number & self.mask).unwrap_or(0);
        self.word(at * size_of::<u64>())
    }

    fn answer(&self, which: usize) -> &AtomicU64 {
        self.word(self.answers + which * APART)
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at + size_of::<u64>() <= self.page.len(), "byte {at} of the mailbox");
        // SAFETY: inside the page by the assertion.
        let ptr = unsafe { self.page.as_ptr().add(at) };
        // SAFETY: a multiple of 8 from a page's start, live as long as `self`; on this side every
        // access is atomic, and the kernel's are single words with acquire and release.
        unsafe { AtomicU64::from_ptr(ptr.as_ptr().cast()) }
    }
}

impl Drop for Resident {
    fn drop(&mut self) {
        self.see_off();
    }
}
