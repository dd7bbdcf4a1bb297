//! Small moves for many threads, between any addresses, without a call of the driver for each.
//!
//! Each thread has a [`Desk`], where it writes a letter: from, to, how many bytes. A kernel that
//! stays on the device (`kernels/errand.cu`), one thread block for each desk, moves the bytes and
//! answers. An [`Office`] has the desks of one device and sees that the kernel is there.
//!
//! The kernel leaves by itself when no desk had a letter for [`Timing::idle`], or when it has stayed
//! for [`Timing::stay`], so that whoever waits for the whole device (the driver's free of memory, a
//! program's synchronisation) waits no longer than twice that; while there is work it is launched
//! again, one launch ahead. A GPU that is full with other kernels may not let it in: letters are then
//! taken back, and the answer is [`Reply::Busy`], for the caller to copy in another way.
//!
//! No call blocks on another thread's, but for the rare launch, which one thread does for all.

mod mailbox;

use std::ffi::CString;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use self::mailbox::{BITS, DESK, Letter, Mailbox};
use crate::DevPtr;
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
/// Threads of a block: a page takes one load of 16 bytes in each.
const THREADS: u32 = 256;
/// Looks in vain before the clock is read, and each time after so many more.
const LOOKS: u32 = 64;
/// Looks in vain before a waiting thread lets others run: about 200 microseconds on real hardware.
/// The software GPU needs the processor itself.
const SPINS: u32 = 20_000;
const SPINS_SOFTWARE: u32 = 16;
/// Without an answer for so long the driver is asked whether the kernel failed; no more often.
const ASK_AFTER: Duration = Duration::from_millis(5);
/// How long a desk that is given up waits for an answer still under way.
const LAST_WAIT: Duration = Duration::from_millis(5);

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

/// The desks of one device. Cloning is cheap; the last clone or desk waits for the kernel's end when
/// it is dropped. Whoever must not call the driver at the process's end keeps one for ever
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
        let stream = Stream::new(context)?;
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
        let posted = self.0.mailbox.answer(number as usize);
        Some(Desk { office: Arc::clone(&self.0), number, posted, letter: None, wait: Wait::none() })
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
            // SAFETY: the types are the kernel's. The mailbox is never given back, and `shared` only
            // after the stream was waited for; what letters name is the promise of those who post.
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
        if !matches!(over, Ok(false)) {
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

/// One thread's place at an [`Office`]. Dropping it gives the place back and calls no driver, unless
/// it is the last of its office.
#[derive(Debug)]
pub struct Desk {
    office: Arc<Inner>,
    number: u32,
    /// The number of the last letter that was posted and not taken back.
    posted: u64,
    /// The one under way.
    letter: Option<Letter>,
    wait: Wait,
}

/// How long the letter under way has been waited for.
#[derive(Debug)]
struct Wait {
    looks: u32,
    since: Option<Instant>,
}

impl Wait {
    fn none() -> Self {
        Self { looks: 0, since: None }
    }
}

impl Desk {
    /// Moves `len` bytes from `src` to `dst` and waits, without sleeping. For up to about 64 KiB;
    /// more is moved too, by the same few threads of the device. No context need be current, and the
    /// thread's own stays.
    ///
    /// The answer is [`Reply::Moved`] or [`Reply::Busy`].
    ///
    /// # Errors
    ///
    /// The kernel could not be launched, or failed: nothing is under way any more. An address that
    /// the device cannot reach loses the context (`CUDA_ERROR_ILLEGAL_ADDRESS`), for all desks.
    ///
    /// # Panics
    ///
    /// A letter is under way.
    ///
    /// # Safety
    ///
    /// Both ranges must be live memory that kernels of the office's context reach: of that context,
    /// of a pool or a mapping of its device, page-locked, or managed. Nobody may write the source or
    /// use the destination during the call. The other bytes of the 16-byte words that the source
    /// begins and ends in are read too, and do not matter.
    pub unsafe fn run(&mut self, src: DevPtr, dst: DevPtr, len: usize) -> Result<Reply, GpuError> {
        // SAFETY: the caller's promise is the same, until the loop below has seen the end.
        let mut reply = unsafe { self.post(src, dst, len) }?;
        let is_software = self.office.context.driver().is_software();
        let spins = if is_software { SPINS_SOFTWARE } else { SPINS };
        while reply == Reply::Waiting {
            if self.wait.looks < spins {
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
            reply = self.poll()?;
        }
        Ok(reply)
    }

    /// Posts a letter, for [`Desk::poll`] to see its end. The answer is [`Reply::Waiting`] or
    /// [`Reply::Busy`], and [`Reply::Moved`] for a length of 0.
    ///
    /// # Errors
    ///
    /// As [`Desk::run`].
    ///
    /// # Panics
    ///
    /// A letter is under way.
    ///
    /// # Safety
    ///
    /// As [`Desk::run`], until [`Desk::poll`] or [`Desk::take_back`] has answered that nothing is
    /// under way, or an error.
    pub unsafe fn post(&mut self, src: DevPtr, dst: DevPtr, len: usize) -> Result<Reply, GpuError> {
        assert!(self.letter.is_none(), "a letter is under way at this desk");
        if len == 0 {
            return Ok(Reply::Moved);
        }
        if let Some(error) = self.office.broken.get() {
            return Err(error.clone());
        }
        let len = len as u64;
        if (src.0 | dst.0 | len) >> BITS != 0 {
            return Ok(Reply::Busy);
        }
        if self.office.is_stuck(self.number) {
            // It may have failed: then the next letter is for another launch.
            return self.office.ask().map(|()| Reply::Busy);
        }
        let letter = Letter { number: self.posted + 1, src, dst, len };
        self.office.mailbox.put(self.number as usize, letter);
        self.posted = letter.number;
        self.letter = Some(letter);
        self.wait = Wait::none();
        if let Err(error) = self.office.tend(self.number) {
            return self.give_up(error);
        }
        Ok(Reply::Waiting)
    }

    /// What became of the letter; never blocks for it. [`Reply::Moved`] if there is none.
    ///
    /// # Errors
    ///
    /// As [`Desk::run`].
    #[inline]
    pub fn poll(&mut self) -> Result<Reply, GpuError> {
        let desk = self.number;
        if self.office.mailbox.answer(desk as usize) == self.posted {
            self.letter = None;
            return Ok(Reply::Moved);
        }
        if let Err(error) = self.office.tend(desk) {
            return self.give_up(error);
        }
        self.wait.looks = self.wait.looks.saturating_add(1);
        if self.wait.looks.is_multiple_of(LOOKS) { self.consider() } else { Ok(Reply::Waiting) }
    }

    /// Looks at the clock: has it taken too long?
    #[cold]
    fn consider(&mut self) -> Result<Reply, GpuError> {
        if let Some(error) = self.office.broken.get() {
            let error = error.clone();
            return self.give_up(error);
        }
        let waited = self.wait.since.get_or_insert_with(Instant::now).elapsed();
        if waited > ASK_AFTER
            && let Err(error) = self.office.ask()
        {
            return self.give_up(error);
        }
        if self.office.is_stuck(self.number) && self.take_back() {
            return Ok(Reply::Busy);
        }
        Ok(Reply::Waiting)
    }

    /// Takes the letter back, if no block can have read it. True if nothing is under way then: it
    /// was not moved, and will not be. False if it is being moved or was moved, which
    /// [`Desk::poll`] tells. Calls no driver.
    pub fn take_back(&mut self) -> bool {
        let Some(letter) = self.letter else {
            return true;
        };
        let (office, desk) = (&self.office, self.number as usize);
        let is_here =
            || office.is_here(self.number) || office.mailbox.answer(desk) == letter.number;
        if !office.mailbox.take_back(desk, letter, is_here) {
            return false;
        }
        self.posted = letter.number - 1;
        self.letter = None;
        true
    }

    /// Ends with an error: nothing is under way then.
    #[cold]
    fn give_up(&mut self, error: GpuError) -> Result<Reply, GpuError> {
        let lost = self.office.broken.get().is_some();
        if !self.take_back() && lost {
            // A lost device runs nothing any more, and answers nothing.
            self.letter = None;
        }
        // A block that is still there will answer, whatever failed.
        if self.letter.is_some() { Ok(Reply::Waiting) } else { Err(error) }
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        let began = Instant::now();
        while self.letter.is_some() {
            let answered = self.office.mailbox.answer(self.number as usize) == self.posted;
            if answered || self.take_back() || self.office.broken.get().is_some() {
                self.letter = None;
            } else if began.elapsed() > LAST_WAIT {
                // The place stays taken: a block may still answer there.
                return;
            } else {
                std::thread::yield_now();
            }
        }
        self.office.taken.fetch_and(!(1 << self.number), Ordering::AcqRel);
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_keeps_its_number_and_its_blocks() {
        for (number, blocks) in [(0, 0), (1, 8), (1 << 40, 64)] {
            let launch = Launch { number, blocks };
            assert_eq!(Launch::unpacked(launch.packed()), launch);
        }
    }
}
