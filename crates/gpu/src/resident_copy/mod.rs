//! The resident copy kernel: copies for many threads, without a driver call for each.
//!
//! Each thread, or each staging ring, has a [`Submitter`], which writes a command (source,
//! destination, length) into a slot in page-locked memory. A kernel that stays on the device
//! (`kernels/resident_copy.cu`) polls the slots, copies, and writes the number of the command that
//! it completed. A [`CommandQueue`] owns the slots of one device and keeps the kernel running. More
//! threads than slots share them: a thread that finds no free slot gets [`Outcome::Busy`] and
//! copies in another way.
//!
//! The kernel exits when no command came for [`Timing::idle`], and when it has run for
//! [`Timing::lifetime`]. So whoever waits for the whole device (the driver's free of memory, a
//! program's synchronisation) waits no longer than that. While commands keep coming, the next
//! launch is made shortly before, in a second stream, and takes the slots over. Its blocks enter
//! the slots at once, which takes some accesses to host memory, and then wait in device memory for
//! the blocks before them.
//!
//! The program's own kernels have priority. Each launch has probe blocks, which only record when
//! they began. If these begin late, or a launch does not begin within [`Timing::start_timeout`],
//! other kernels fill the device: the kernel exits, and all commands are [`Outcome::Busy`] until a
//! launch finds room again ([`Timing::backoff`]). The streams have the lowest priority, and the
//! blocks take at most one of eight multiprocessors.
//!
//! One thread makes a launch for all. The others wait for it where they need it at once; no call
//! waits for another thread otherwise.

mod launch;
mod mailbox;
mod slots;
mod submitter;

use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use self::launch::{Launching, Service};
use self::mailbox::Mailbox;
use self::slots::CommandSlots;
pub use self::submitter::Submitter;
use crate::MemoryKind;
use crate::code;
use crate::context::Context;
use crate::error::GpuError;
use crate::locked::{Locked, PageSize};
use crate::memory::DeviceBuf;
use crate::module::{Kernel, Module};
use crate::stream::Stream;

/// The most slots of a queue. Small devices have fewer.
pub const MAX_SLOTS: u32 = 64;

/// The most slots that one thread block polls.
const SLOTS_PER_BLOCK: u32 = 8;
/// The kernel has at most one block for so many multiprocessors.
const SM_SHARE: u32 = 8;
/// Bytes of the memory that the blocks share (`resident_copy.cu`).
const SHARED_LEN: usize = 64 + MAX_SLOTS as usize * 16;
/// When a launch leaves a slot, the block that takes it over is there after so long at the latest.
const HAND_OVER: Duration = Duration::from_micros(10);
/// If a command takes longer, the driver is asked whether the kernel failed, once per interval.
const QUERY_INTERVAL: Duration = Duration::from_millis(5);

/// When the kernel exits, and how long the host waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// The kernel exits after so long without a command. The next command then costs a launch,
    /// about ten microseconds.
    pub idle: Duration,
    /// The kernel exits after so long in any case. The next launch takes over.
    pub lifetime: Duration,
    /// The next launch is made so long before the end of `lifetime`.
    pub relaunch_lead: Duration,
    /// A launch that has not begun after so long has no room on the device: commands are cancelled.
    pub start_timeout: Duration,
    /// For so long no launch is made then. The time doubles while there is still no room.
    pub backoff: Duration,
    /// While commands keep coming, the kernel stays away for a moment at least so often, and then
    /// probes whether others fill the device without it. Commands are [`Outcome::Busy`] meanwhile.
    /// 0: never.
    pub probe_interval: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            idle: Duration::from_micros(100),
            // Whoever waits for the device waits half of it on average, and all of it at most. With
            // half as much sixteen threads copied 0 to 5 % fewer pages; with twice as much 3 %
            // more.
            lifetime: Duration::from_micros(200),
            // A block announces its end between two commands, and one of 512 KiB takes 0.1 ms where
            // sixteen threads share the link. With half as much most launches came too late to
            // take over: 8 % less with 1 MiB, 13 % with 4 MiB; no difference up to 64 KiB.
            relaunch_lead: Duration::from_micros(100),
            // Longer than `relaunch_lead` and the last command of the previous launch.
            start_timeout: Duration::from_micros(200),
            backoff: Duration::from_millis(4),
            // A probe takes 0.15 ms.
            probe_interval: Duration::from_millis(16),
        }
    }
}

impl Timing {
    /// The default. The software GPU gets more time, because its blocks are threads that wait for a
    /// processor.
    pub fn of(context: &Context) -> Self {
        if !context.driver().is_software() {
            return Self::default();
        }
        Self {
            idle: Duration::from_micros(200),
            lifetime: Duration::from_millis(1),
            relaunch_lead: Duration::from_micros(200),
            start_timeout: Duration::from_millis(20),
            ..Self::default()
        }
    }
}

/// The state of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "bytes that are not there yet, or never will be, may be taken for moved"]
pub enum Outcome {
    /// The copy is complete: visible to the host, and to every kernel and copy that is enqueued
    /// from now on.
    Copied,
    /// The copy is in flight: the device uses both ranges.
    Pending,
    /// Nothing was copied and nothing will be: the device has no room for the kernel now, all slots
    /// are taken, or an address has more than 48 bits. The caller copies in another way.
    Busy,
}

/// The command slots of one device, and the kernel that polls them. Cloning is cheap. Dropping the
/// last clone or submitter waits for the kernel's end; a process that must not call the driver at
/// its end leaks one (`std::mem::forget`).
///
/// A child of `fork(2)` must neither use it nor make a submitter.
#[derive(Debug, Clone)]
pub struct CommandQueue(Arc<QueueState>);

#[derive(Debug)]
struct QueueState {
    context: Context,
    kernel: Kernel,
    /// Two: one for the running launch, one for the launch that takes over.
    streams: [Stream; 2],
    mailbox: ManuallyDrop<Mailbox>,
    /// Memory that the blocks share.
    shared: ManuallyDrop<DeviceBuf>,
    timing: Timing,
    multiprocessors: u32,
    slots: CommandSlots,
    /// The latest launch and its slots. Changed only with `launching` locked.
    latest: AtomicU64,
    launching: Mutex<Launching>,
    /// When it was launched, in nanoseconds since `began`.
    launched_at: AtomicU64,
    began: Instant,
    /// No command is submitted before this time (as `launched_at`). 0: no backoff.
    backoff_until: AtomicU64,
    /// The length of the next backoff, nanoseconds.
    backoff_len: AtomicU64,
    /// When the driver was last asked for the state of the launches (as `launched_at`).
    queried_at: AtomicU64,
    /// The highest launch that the driver reports complete, even if its blocks never wrote their
    /// exit word.
    ended: AtomicU64,
    /// Why the device is lost.
    lost: OnceLock<GpuError>,
}

impl CommandQueue {
    /// Loads the kernel and makes the slots. The kernel is launched with the first command.
    ///
    /// # Errors
    /// The driver's refusal: no memory, or a device of compute capability below 7.0.
    pub fn new(context: &Context, timing: Timing) -> Result<Self, GpuError> {
        let kernel =
            Module::built_in(context, &code::RESIDENT_COPY)?.kernel(c"gpuio_resident_copy")?;
        // The default priority is the lowest one.
        let streams = [Stream::new(context)?, Stream::new(context)?];
        let multiprocessors = context.driver().multiprocessors(context.device())?;
        let shared = DeviceBuf::alloc(context, MemoryKind::Device, SHARED_LEN)?;
        let page = Locked::new(context, mailbox::LEN, PageSize::Plain)?;
        let zeroed = context.entered(|| {
            // SAFETY: both are live, the page holds zeros, and nothing else uses them yet.
            unsafe { streams[0].h2d(shared.ptr(), page.as_ptr().as_ptr(), SHARED_LEN) }?;
            streams[0].sync()
        });
        zeroed??;
        let slots = MAX_SLOTS.min(max_blocks(multiprocessors) * SLOTS_PER_BLOCK);
        Ok(Self(Arc::new(QueueState {
            context: context.clone(),
            kernel,
            streams,
            mailbox: ManuallyDrop::new(Mailbox::new(page)),
            shared: ManuallyDrop::new(shared),
            timing,
            multiprocessors,
            slots: CommandSlots::new(slots),
            latest: AtomicU64::new(0),
            launching: Mutex::default(),
            launched_at: AtomicU64::new(0),
            began: Instant::now(),
            backoff_until: AtomicU64::new(0),
            backoff_len: AtomicU64::new(nanoseconds(timing.backoff)),
            queried_at: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            lost: OnceLock::new(),
        })))
    }

    /// A submitter for one thread, with a dedicated slot while there are free ones. No driver call.
    #[must_use]
    pub fn submitter(&self) -> Submitter {
        let own = self.0.slots.dedicate();
        Submitter::new(Arc::clone(&self.0), own.unwrap_or(0), own.is_some())
    }

    /// A submitter without a dedicated slot. Its commands take the first free slot, so that few
    /// concurrent commands need few blocks. For long copies, whose time hides the search.
    #[must_use]
    pub fn shared_submitter(&self) -> Submitter {
        Submitter::new(Arc::clone(&self.0), 0, false)
    }

    /// How many slots are dedicated to a submitter.
    pub fn dedicated_slots(&self) -> u32 {
        self.0.slots.dedicated()
    }

    /// How many commands can be in flight.
    pub fn slots(&self) -> usize {
        self.0.slots.count()
    }

    /// How often the kernel was launched.
    pub fn launches(&self) -> u64 {
        self.0.latest().number
    }

    /// Whether submitters get [`Outcome::Busy`] now because other kernels fill the device.
    pub fn is_backing_off(&self) -> bool {
        self.0.is_backing_off()
    }
}

/// How many blocks of the kernel are on a device at most.
fn max_blocks(multiprocessors: u32) -> u32 {
    (multiprocessors / SM_SHARE).max(1)
}

impl QueueState {
    /// The last launch that has left the slot or has ended.
    fn last_exited(&self, slot: u32) -> u64 {
        self.mailbox.exit(slot as usize).launch.max(self.ended.load(Ordering::Acquire))
    }

    /// Whether a block polls the slot, and so may have read its command.
    fn has_block(&self, slot: u32) -> bool {
        // In this order: a block that enters and exits in between counts as present.
        let exited = self.last_exited(slot);
        self.mailbox.entered(slot as usize) > exited
    }

    /// Whether the launch that serves the slot has waited too long for room on the device.
    fn is_start_overdue(&self, slot: u32) -> bool {
        // First, since it reads no clock: all commands come here.
        if !self.waits_for_start(slot) {
            return false;
        }
        let since = self.launched_at.load(Ordering::Relaxed);
        if self.now().saturating_sub(since) <= nanoseconds(self.timing.start_timeout) {
            return false;
        }
        // After a long command the previous launch leaves the slot late, perhaps just now.
        let looked = Instant::now();
        while looked.elapsed() < HAND_OVER {
            if !self.waits_for_start(slot) {
                return false;
            }
            std::hint::spin_loop();
        }
        true
    }

    /// Whether no block polls the slot and the latest launch serves it, but has not begun there.
    fn waits_for_start(&self, slot: u32) -> bool {
        let latest = self.latest();
        // In this order, and each once: a block that exits in between counts as present.
        let exited = self.last_exited(slot);
        let has_block = self.mailbox.entered(slot as usize) > exited;
        slot < latest.slots && exited < latest.number && !has_block
    }

    fn now(&self) -> u64 {
        nanoseconds(self.began.elapsed())
    }
}

impl Drop for QueueState {
    fn drop(&mut self) {
        // The blocks use both memories until they exit. If that can't be waited for, these stay.
        let over = self.context.entered(|| self.streams.iter().try_for_each(Stream::sync));
        if matches!(over, Ok(Ok(()))) {
            // SAFETY: dropped once, and not used again. All launches have ended, and only this
            // value makes more.
            unsafe { ManuallyDrop::drop(&mut self.mailbox) };
            // SAFETY: as above.
            unsafe { ManuallyDrop::drop(&mut self.shared) };
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::{Driver, Which};

    /// Where the first slot's last completed command stands in `shared`.
    const NUMBER_OF_SLOT_0: u64 = 72;

    #[test]
    fn command_numbers_wrap_around() {
        let driver = Driver::load(&Which::Software).unwrap();
        let context = Context::new(&driver, 0).unwrap();
        let timing = Timing {
            start_timeout: Duration::from_secs(20),
            probe_interval: Duration::ZERO,
            ..Timing::default()
        };
        let queue = CommandQueue::new(&context, timing).unwrap();
        let host = Locked::new(&context, 4096, PageSize::Plain).unwrap();
        let number: u64 = 0xffff - 20;
        let in_shared = queue.0.shared.ptr().byte_add(NUMBER_OF_SLOT_0);
        let written = context.entered(|| {
            // SAFETY: inside `shared`, before the first launch; the wait follows.
            unsafe { queue.0.streams[0].h2d(in_shared, (&raw const number).cast(), 8) }?;
            queue.0.streams[0].sync()
        });
        written.flatten().unwrap();
        queue.0.slots.set_submitted(0, number);
        let mut submitter = queue.submitter();
        for round in 0..40_u8 {
            // SAFETY: memory of the test's own, which nobody else uses.
            unsafe { host.as_ptr().write(round) };
            let (src, dst) = (host.ptr(), host.ptr().byte_add(1 + u64::from(round)));
            // SAFETY: as above; the ranges do not overlap.
            assert_eq!(unsafe { submitter.copy(src, dst, 1) }.unwrap(), Outcome::Copied);
            // SAFETY: inside the memory.
            let there = unsafe { host.as_ptr().add(1 + usize::from(round)) };
            // SAFETY: nobody writes it now.
            assert_eq!(unsafe { there.read() }, round);
        }
    }
}
