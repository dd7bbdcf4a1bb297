//! Small moves for many threads, between any addresses, without a call of the driver for each.
//!
//! Each thread has a [`Desk`], where it writes a letter: from, to, how many bytes. A kernel that
//! stays on the device (`kernels/errand.cu`), one thread block for each desk, moves the bytes and
//! answers. An [`Office`] has the desks of one device and sees that the kernel is there.
//!
//! The kernel leaves by itself when no desk had a letter for [`Timing::idle`], or when it has
//! stayed for [`Timing::stay`], so that whoever waits for the whole device (the driver's free of
//! memory, a program's synchronisation) waits no longer than twice that; while there is work it is
//! launched again, one launch ahead. A GPU that is full with other kernels may not let it in:
//! letters are then taken back, and the answer is [`Reply::Busy`], for the caller to copy in
//! another way.
//!
//! No call blocks on another thread's, but for the rare launch, which one thread does for all.

mod desk;
mod mailbox;

use std::ffi::CString;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

pub use self::desk::Desk;
use self::mailbox::{DESK, Mailbox};
use crate::context::Context;
use crate::error::GpuError;
use crate::locked::{Locked, PageSize};
use crate::memory::{DeviceBuf, MemKind};
use crate::module::{Arg, Kernel, Module};
use crate::stream::Stream;
use crate::table;

const PTX: &str = include_str!("../../kernels/errand.ptx");

/// The most desks of an office.
pub const DESKS_MOST: u32 = 64;

/// The fewest thread blocks of a launch: desks that come soon after need no larger one.
const BLOCKS_LEAST: u32 = 8;
/// Threads of a block: a page takes one load of 16 bytes in each. Twice as many move 1 MiB no
/// sooner, and 64 KiB of sixteen desks 8 % later.
const THREADS: u32 = 256;
/// Without an answer for so long the driver is asked whether the kernel failed; no more often.
const ASK_AFTER: Duration = Duration::from_millis(5);

/// When the kernel leaves, and how long it is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Without a letter at any desk for so long, it leaves. The next one costs a launch then, some
    /// ten microseconds.
    pub idle: Duration,
    /// After so long it leaves in any case, and the launch behind it takes over.
    pub stay: Duration,
    /// A launch that did not begin for so long has no room on the device: letters are taken back.
    pub patience: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            idle: Duration::from_micros(200),
            stay: Duration::from_millis(1),
            patience: Duration::from_micros(300),
        }
    }
}

/// What became of a letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "bytes that are not there yet, or never will be, may be taken for moved"]
pub enum Reply {
    /// The bytes are there: visible to the host, and to every kernel and copy that is put into a
    /// stream from now on.
    Moved,
    /// It is under way: both ranges are the device's.
    Waiting,
    /// Nothing was moved and nothing will be: the device has no room for the kernel now, or an
    /// address has more than 48 bits. The caller moves the bytes in another way.
    Busy,
}

/// The desks of one device. Cloning is cheap; the last clone or desk waits for the kernel's end
/// when it is dropped. Whoever must not call the driver at the process's end keeps one for ever
/// (`std::mem::forget`).
///
/// A child of `fork(2)` has no desks: it must use none, nor make one.
#[derive(Debug, Clone)]
pub struct Office(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    context: Context,
    kernel: Kernel,
    stream: Stream,
    mailbox: Mailbox,
    /// Two words for the blocks among themselves.
    shared: DeviceBuf,
    timing: Timing,
    /// One bit for each desk that is in use.
    taken: AtomicU64,
    /// The launch put last, and its blocks; changed by whoever holds `launching`.
    latest: AtomicU64,
    launching: Mutex<()>,
    /// When that was, in nanoseconds since `began`.
    put_at: AtomicU64,
    began: Instant,
    /// When the driver was asked last what became of the launches, as `put_at`.
    asked_at: AtomicU64,
    /// The driver said that all launches up to this one are over, whether or not their blocks did.
    ended: AtomicU64,
    /// Why the device is lost.
    broken: OnceLock<GpuError>,
}

/// A launch: its number, 1 or more, and how many blocks it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Launch {
    number: u64,
    blocks: u32,
}

impl Launch {
    fn packed(self) -> u64 {
        self.number << 8 | u64::from(self.blocks)
    }

    fn unpacked(word: u64) -> Self {
        Self { number: word >> 8, blocks: u32::from(word.to_le_bytes()[0]) }
    }
}

impl Office {
    /// Loads the kernel and makes the desks. The kernel is launched with the first letter.
    ///
    /// # Errors
    ///
    /// The driver's refusal: no memory, or a device of compute capability below 7.0.
    pub fn new(context: &Context, timing: Timing) -> Result<Self, GpuError> {
        let Ok(ptx) = CString::new(PTX) else {
            let error = context.table().error("cuModuleLoadData", table::INVALID_VALUE);
            return Err(error.on(context.device()).with("the PTX in this program holds a NUL"));
        };
        let kernel = Module::load(context, &ptx)?.kernel(c"gpuio_errand")?;
        let stream = Stream::first(context)?;
        let shared = DeviceBuf::alloc(context, MemKind::Device, DESK)?;
        let page = Locked::new(context, DESKS_MOST as usize * DESK, PageSize::Plain)?.leak();
        let zeroed = context.entered(|| {
            // SAFETY: both live, the page holds zeros, and nobody else knows them yet.
            unsafe { stream.h2d(shared.ptr(), page.as_ptr().as_ptr(), DESK) }?;
            stream.sync()
        });
        zeroed??;
        Ok(Self(Arc::new(Inner {
            context: context.clone(),
            kernel,
            stream,
            mailbox: Mailbox::new(page),
            shared,
            timing,
            taken: AtomicU64::new(0),
            latest: AtomicU64::new(0),
            launching: Mutex::new(()),
            put_at: AtomicU64::new(0),
            began: Instant::now(),
            asked_at: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            broken: OnceLock::new(),
        })))
    }

    /// A desk for one thread; `None` if all [`DESKS_MOST`] are in use. Calls no driver.
    #[must_use]
    pub fn desk(&self) -> Option<Desk> {
        let lowest_free = |taken: u64| (taken != u64::MAX).then(|| taken | (taken + 1));
        let update =
            self.0.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, lowest_free).ok()?;
        let number = update.trailing_ones();
        Some(Desk::new(Arc::clone(&self.0), number))
    }

    /// How many desks are in use.
    #[must_use]
    pub fn desks(&self) -> u32 {
        self.0.taken.load(Ordering::Relaxed).count_ones()
    }

    /// How often the kernel was launched.
    #[must_use]
    pub fn launches(&self) -> u64 {
        self.0.latest().number
    }

    /// The context whose memory the kernel reaches.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.0.context
    }
}

impl Inner {
    fn latest(&self) -> Launch {
        Launch::unpacked(self.latest.load(Ordering::Acquire))
    }

    /// The last launch that the desk's block has left, or that is over.
    fn left(&self, desk: u32) -> u64 {
        self.mailbox.gone(desk as usize).launch.max(self.ended.load(Ordering::Acquire))
    }

    /// Whether the desk's block is on the device and may have read its letter.
    fn is_here(&self, desk: u32) -> bool {
        // In this order: a block that comes and goes meanwhile counts as here.
        let left = self.left(desk);
        self.mailbox.here(desk as usize) > left
    }

    /// Whether the launch that would serve the desk waits for room on the device for long.
    fn is_stuck(&self, desk: u32) -> bool {
        let latest = self.latest();
        if desk >= latest.blocks || self.left(desk) >= latest.number || self.is_here(desk) {
            return false;
        }
        let since = self.put_at.load(Ordering::Relaxed);
        self.now().saturating_sub(since) > nanoseconds(self.timing.patience)
    }

    fn now(&self) -> u64 {
        nanoseconds(self.began.elapsed())
    }

    /// Sees that a launch is on its way that serves the desk.
    #[inline]
    fn tend(&self, desk: u32) -> Result<(), GpuError> {
        let latest = self.latest();
        let gone = self.mailbox.gone(desk as usize);
        if desk >= latest.blocks || gone.launch >= latest.number || self.is_over(latest) {
            let _held = self.launching.lock().unwrap_or_else(PoisonError::into_inner);
            // Somebody else may have done it meanwhile; the next look tells.
            return if self.latest() == latest { self.launch(desk, latest) } else { Ok(()) };
        }
        if gone.was_old && gone.launch + 1 == latest.number {
            // The one behind the last has begun: another behind it, so that no letter waits between
            // two. If it fails, whoever needs it finds out.
            if let Ok(_held) = self.launching.try_lock()
                && self.latest() == latest
            {
                let _ = self.launch(desk, latest);
            }
        }
        Ok(())
    }

    fn is_over(&self, launch: Launch) -> bool {
        self.ended.load(Ordering::Acquire) >= launch.number
    }

    /// Launches the kernel for all desks in use; `launching` is held.
    #[cold]
    fn launch(&self, desk: u32, before: Launch) -> Result<(), GpuError> {
        if let Some(error) = self.broken.get() {
            return Err(error.clone());
        }
        let used = u64::BITS - self.taken.load(Ordering::Acquire).leading_zeros();
        let blocks = used.max(desk + 1).next_power_of_two().clamp(BLOCKS_LEAST, DESKS_MOST);
        let next = Launch { number: before.number + 1, blocks };
        let time = |time| Arg::U64(nanoseconds(time));
        let args = [
            Arg::Ptr(self.mailbox.ptr()),
            Arg::Ptr(self.shared.ptr()),
            Arg::U64(u64::from(blocks)),
            Arg::U64(next.number),
            time(self.timing.idle),
            time(self.timing.stay),
        ];
        let put = self.context.entered(|| {
            // SAFETY: the types are the kernel's. The mailbox is never given back, and `shared`
            // only after the stream was waited for; what letters name is the promise of those who
            // post.
            unsafe { self.stream.launch(&self.kernel, blocks, THREADS, &args) }
        });
        put.flatten().inspect_err(|error| self.note(error))?;
        self.put_at.store(self.now(), Ordering::Relaxed);
        self.latest.store(next.packed(), Ordering::Release);
        Ok(())
    }

    /// Asks the driver what became of the launches, if nobody did so lately.
    #[cold]
    fn ask(&self) -> Result<(), GpuError> {
        let (before, now) = (self.asked_at.load(Ordering::Relaxed), self.now());
        let is_late = now.saturating_sub(before) > nanoseconds(ASK_AFTER);
        let order = Ordering::Relaxed;
        if !is_late || self.asked_at.compare_exchange(before, now, order, order).is_err() {
            return Ok(());
        }
        let latest = self.latest();
        let over = self.context.entered(|| self.stream.query()).flatten();
        // Other refusals say nothing of the launches.
        let is_lost = |error: &GpuError| error.is_sticky() || error.is_reset();
        if over.as_ref().map_or_else(is_lost, |over| *over) {
            self.ended.fetch_max(latest.number, Ordering::AcqRel);
        }
        over.map(|_| ()).inspect_err(|error| self.note(error))
    }

    /// Keeps an error after which nothing works any more.
    fn note(&self, error: &GpuError) {
        if error.is_sticky() {
            let _ = self.broken.set(error.clone());
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The blocks use `shared` until they leave; a device that is lost runs none.
        let _ = self.context.entered(|| self.stream.sync());
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::{Driver, Which};

    #[test]
    fn the_numbers_of_letters_go_round() {
        let driver = Driver::load(&Which::Software).unwrap();
        let context = Context::new(&driver, 0).unwrap();
        let timing = Timing { patience: Duration::from_secs(20), ..Timing::default() };
        let office = Office::new(&context, timing).unwrap();
        let host = Locked::new(&context, 4096, PageSize::Plain).unwrap();
        office.0.mailbox.begin_behind(0, 0xffff - 20);
        let mut desk = office.desk().unwrap();
        for round in 0..40_u8 {
            // SAFETY: memory of the test's own, which nobody else uses.
            unsafe { host.as_ptr().write(round) };
            let (src, dst) = (host.ptr(), host.ptr().byte_add(1 + u64::from(round)));
            // SAFETY: as above; the ranges do not overlap.
            assert_eq!(unsafe { desk.run(src, dst, 1) }.unwrap(), Reply::Moved);
            // SAFETY: inside the memory.
            let there = unsafe { host.as_ptr().add(1 + usize::from(round)) };
            // SAFETY: nobody writes it now.
            assert_eq!(unsafe { there.read() }, round);
        }
    }

    #[test]
    fn a_launch_keeps_its_number_and_its_blocks() {
        for (number, blocks) in [(0, 0), (1, 8), (1 << 40, 64)] {
            let launch = Launch { number, blocks };
            assert_eq!(Launch::unpacked(launch.packed()), launch);
        }
    }
}
