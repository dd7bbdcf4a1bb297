//! The resident kernel of `bench`: it stays on the device and copies a block for each command.
//!
//! For one small block, a kernel launch or a driver's copy takes longer than the bytes. Here the
//! host stores a word in pinned memory; the kernel sees it, copies the block and writes its
//! completion to pinned memory. No driver call is needed in between. The kernel is
//! `kernels/resident.cu`.
//!
//! It is not the resident copy kernel ([`crate::resident_copy`]). That one serves all threads of a
//! process by 64 command slots, gives way to the program's own kernels, and exits after 200 µs,
//! because programs compute and wait for their device. This one belongs to one worker, executes its
//! commands in their order, has as many as the worker's depth, and stays beside other kernels, as
//! `--beside` needs. It is also faster, since a command is one word: path `resident` with a command
//! queue for each worker moved 0.93 to 0.97 as many blocks at depth 1 (`docs/lab-book/paths.md`).
//!
//! The kernel exits when no command came for `IDLE`, or after `LIFETIME`, and is launched again
//! with the next command: whoever waits for the whole device (the driver's free of memory does)
//! waits no longer than that.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::DevPtr;
use crate::code;
use crate::context::Context;
use crate::error::GpuError;
use crate::module::{Arg, Kernel, Module};
use crate::pinned::Pinned;
use crate::stream::Stream;
use crate::table;

/// The kernel exits after so long without a command. Its next launch costs about ten microseconds.
const IDLE: Duration = Duration::from_millis(2);
/// The kernel exits after so long in any case: a GPU that drives a display ends kernels after some
/// seconds.
pub const LIFETIME: Duration = Duration::from_millis(500);
/// The most slots: a command has 15 bits for one, and the mailbox, of at most 2^15 commands, has
/// one command more than slots.
pub const MAX_SLOTS: u32 = (1 << 15) - 1;

/// Threads of the kernel's one block: a page takes one load of 16 bytes in each.
const THREADS: u32 = 256;
/// Bytes between the two completion words, so that each has cache lines of its own.
const APART: usize = 128;
/// How often, and with what pauses, the exit word is polled when the driver does not report whether
/// the kernel ended: for more than three times [`LIFETIME`].
const EXIT_POLLS: u32 = 30_000;
const EXIT_PAUSE: Duration = Duration::from_micros(50);
/// Polls without a completion before the driver is asked whether the kernel failed. A poll takes
/// nanoseconds, a driver call about a microsecond.
const POLLS_PER_QUERY: u32 = 20_000;

/// The direction of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From host memory to the device.
    In,
    /// From the device to host memory.
    Out,
}

/// The slots on both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sides {
    /// Slot 0 in pinned host memory: a multiple of 16.
    pub host: DevPtr,
    /// Slot 0 in memory that a kernel reaches: a multiple of 16.
    pub device: DevPtr,
    /// Bytes from one slot to the next, on both sides: a multiple of 16.
    pub stride: u64,
    /// How many there are: 1 to [`MAX_SLOTS`].
    pub slots: u32,
}

/// The kernel and its mailbox. One thread owns it; the context must be current there.
///
/// Commands are executed in the order of [`Resident::submit`]. Dropping it waits for all of them.
#[derive(Debug)]
pub struct Resident {
    kernel: Kernel,
    stream: Stream,
    /// Commands, then, from offset `completions`, the two completion words.
    page: Pinned,
    /// Commands in the page, less one; a power of two less one.
    mask: u64,
    completions: usize,
    sides: Sides,
    /// The numbers of the last submitted command, and of the last whose completion was taken.
    submitted: u64,
    taken: u64,
    /// How often the kernel was launched, and whether the last launch may still run.
    launches: u64,
    is_running: bool,
    /// Polls without a completion since the last one.
    polls: u32,
}

impl Resident {
    /// Loads the kernel and makes the mailbox. The kernel is launched with the first command.
    ///
    /// # Errors
    /// Sides that are not aligned or have too many slots; the driver's refusal (the kernel needs
    /// compute capability 7.0).
    pub fn new(context: &Context, sides: Sides) -> Result<Self, GpuError> {
        let aligned = (sides.host.0 | sides.device.0 | sides.stride).is_multiple_of(16);
        if !aligned || sides.slots == 0 || sides.slots > MAX_SLOTS {
            let error = context.table().error("cuLaunchKernel", table::INVALID_VALUE);
            return Err(error.on(context.device()).with(format!(
                "{} slots at {} and {}, {} bytes apart: a resident kernel takes 1 to {MAX_SLOTS} \
                 slots at multiples of 16",
                sides.slots, sides.host, sides.device, sides.stride
            )));
        }
        let kernel = Module::built_in(context, &code::RESIDENT)?.kernel(c"gpuio_resident")?;
        // One more than can be in flight, for the command that ends the kernel.
        let commands = (sides.slots + 1).next_power_of_two() as usize;
        let completions = (commands * size_of::<u64>()).next_multiple_of(APART);
        let page = Pinned::alloc(context, completions + 2 * APART)?;
        // SAFETY: the page's own bytes, which nothing else uses yet.
        unsafe { page.as_ptr().write_bytes(0, page.len()) };
        Ok(Self {
            kernel,
            stream: Stream::new(context)?,
            page,
            mask: commands as u64 - 1,
            completions,
            sides,
            submitted: 0,
            taken: 0,
            launches: 0,
            is_running: false,
            polls: 0,
        })
    }

    /// Bytes of pinned host memory that the mailbox takes.
    pub fn bytes(&self) -> u64 {
        self.page.len() as u64
    }

    /// How often the kernel was launched.
    pub fn launches(&self) -> u64 {
        self.launches
    }

    /// Submitted commands whose completions were not taken yet.
    pub fn in_flight(&self) -> u64 {
        self.submitted - self.taken
    }

    /// Submits a copy of the first `len` bytes of a slot.
    ///
    /// # Errors
    /// The driver refused to launch the kernel: the command is withdrawn.
    ///
    /// # Panics
    /// More commands in flight than slots, a slot that is not there, or a block that is empty or
    /// longer than the slot.
    ///
    /// # Safety
    /// Both sides must be as [`Sides`] says, and live until this value is dropped. Until the
    /// completion was taken, nothing else writes the slot's bytes on the source side or uses those
    /// on the destination side.
    pub unsafe fn submit(
        &mut self,
        slot: u32,
        len: u32,
        direction: Direction,
    ) -> Result<(), GpuError> {
        assert!(self.in_flight() <= self.mask, "more commands than the mailbox holds");
        assert!(slot < self.sides.slots, "slot {slot} of {}", self.sides.slots);
        let fits = len > 0 && u64::from(len) <= self.sides.stride;
        assert!(fits, "{len} bytes do not fit slot {slot}");
        let number = self.submitted + 1;
        let out = u64::from(direction == Direction::Out);
        let command = number << 48 | out << 47 | u64::from(slot) << 32 | u64::from(len);
        self.command(number).store(command, Ordering::Release);
        if !self.is_running {
            self.launch(number)?;
        }
        self.submitted = number;
        Ok(())
    }

    /// How many commands completed since the last call, in their order. Never blocks.
    ///
    /// # Errors
    /// The kernel failed, or could not be launched again: no command in flight will be completed,
    /// and none is in flight any more.
    #[inline]
    pub fn take(&mut self) -> Result<u64, GpuError> {
        let completed = self.completion(0).load(Ordering::Acquire);
        let count = completed - self.taken;
        self.taken = completed;
        if count > 0 || self.in_flight() == 0 {
            self.polls = 0;
            return Ok(count);
        }
        self.check_kernel()
    }

    /// Without a completion: checks whether the kernel exited or failed.
    fn check_kernel(&mut self) -> Result<u64, GpuError> {
        self.polls += 1;
        let exited = self.completion(1).load(Ordering::Acquire) == self.launches;
        if !exited && self.polls < POLLS_PER_QUERY {
            return Ok(0);
        }
        self.polls = 0;
        // After its exit word it reads no command. Commands that it did not complete are for the
        // next launch.
        let over = if exited { self.stream.sync().map(|()| true) } else { self.stream.query() };
        let outcome = match over {
            Ok(false) => return Ok(0),
            Ok(true) => self.restart(),
            Err(error) => Err(error),
        };
        outcome.inspect_err(|_| {
            self.stop();
            self.taken = self.submitted;
            // The next completions are counted from here.
            self.completion(0).store(self.submitted, Ordering::Release);
        })
    }

    /// The kernel has exited: counts its last completions, and launches it for the remaining
    /// commands.
    fn restart(&mut self) -> Result<u64, GpuError> {
        self.is_running = false;
        let completed = self.completion(0).load(Ordering::Acquire);
        let count = completed - self.taken;
        self.taken = completed;
        if self.in_flight() > 0 {
            self.launch(self.taken + 1)?;
        }
        Ok(count)
    }

    /// Ends the kernel after it has executed all commands, and waits for its end.
    fn stop(&mut self) {
        if !self.is_running {
            return;
        }
        self.is_running = false;
        let number = self.submitted + 1;
        self.command(number).store(number << 48, Ordering::Release);
        if self.stream.sync().is_ok() {
            return;
        }
        // The error may be the kernel's failure, which is its end, or a refusal to wait: then the
        // exit word decides. A lost device writes none.
        for _ in 0..EXIT_POLLS {
            if self.completion(1).load(Ordering::Acquire) == self.launches {
                return;
            }
            std::thread::sleep(EXIT_PAUSE);
        }
    }

    fn launch(&mut self, first: u64) -> Result<(), GpuError> {
        let base = DevPtr(self.page.ptr().0);
        let args = [
            Arg::Ptr(base),
            Arg::U64(self.mask),
            Arg::Ptr(base.byte_add(self.completions as u64)),
            Arg::Ptr(self.sides.host),
            Arg::Ptr(self.sides.device),
            Arg::U64(self.sides.stride),
            Arg::U64(first),
            Arg::U64(self.launches + 1),
            Arg::nanoseconds(IDLE),
            Arg::nanoseconds(LIFETIME),
        ];
        // SAFETY: the types are the kernel's. The mailbox lives until `drop` has seen the kernel's
        // end, and the sides by the promise to `submit`.
        unsafe { self.stream.launch(&self.kernel, 1, THREADS, &args) }?;
        self.launches += 1;
        self.is_running = true;
        Ok(())
    }

    fn command(&self, number: u64) -> &AtomicU64 {
        // At most the mask, which is below 2^15.
        let at = usize::try_from(number & self.mask).unwrap_or(0);
        self.word(at * size_of::<u64>())
    }

    fn completion(&self, which: usize) -> &AtomicU64 {
        self.word(self.completions + which * APART)
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
        self.stop();
    }
}
