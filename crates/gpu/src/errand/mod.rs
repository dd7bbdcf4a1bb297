//! Small moves for many threads, between any addresses, without a call of the driver for each.
//!
//! Each thread has a [`Desk`], where it writes a letter: from, to, how many bytes. A kernel that
//! stays on the device (`kernels/errand.cu`), whose thread blocks have some places for letters
//! each, moves the bytes and answers. An [`Office`] has the places of one device and sees that
//! the kernel is there. Letters of more threads than there are places find none now and then: the
//! answer is [`Reply::Busy`], for the caller to copy in another way.
//!
//! The kernel leaves by itself when no letter came for [`Timing::idle`], or when it has stayed for
//! [`Timing::stay`], so that whoever waits for the whole device (the driver's free of memory, a
//! program's synchronisation) waits no longer than that and a bit. While there is work it is
//! launched again shortly before, in another stream, and its blocks wait for those before them.
//!
//! A program's own kernels come first. Each launch has blocks that do nothing but tell that there
//! was room for them. Where these come late, or a launch does not begin for [`Timing::patience`],
//! other kernels fill the device: the kernel leaves, and the answer to all letters is
//! [`Reply::Busy`] until one launch finds room again ([`Timing::rest`]). Its streams have the
//! lowest priority, and its blocks never take more than an eighth of the multiprocessors.
//!
//! No call blocks on another thread's, but for the rare launch, which one thread does for all.

mod desk;
mod launch;
mod mailbox;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

pub use self::desk::Desk;
use self::launch::{Launching, Tended};
use self::mailbox::Mailbox;
use crate::context::Context;
use crate::error::GpuError;
use crate::locked::{Locked, PageSize};
use crate::memory::{DeviceBuf, MemKind};
use crate::module::{Kernel, Module};
use crate::stream::Stream;

const PTX: &str = include_str!("../../kernels/errand.ptx");

/// The most places for letters of an office; small devices have fewer.
pub const DESKS_MOST: u32 = 64;

/// The most places of a thread block.
const DESKS_OF_BLOCK: u32 = 8;
/// Of so many multiprocessors the kernel's blocks take one at most.
const SHARE: u32 = 8;
/// Bytes of the words that the blocks have among themselves: `errand.cu`.
const SHARED: usize = 64 + DESKS_MOST as usize * 8;
/// Without an answer for so long the driver is asked whether the kernel failed; no more often.
const ASK_AFTER: Duration = Duration::from_millis(5);

/// When the kernel leaves, and how long it is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Without a letter for so long, it leaves. The next one costs a launch then, some ten
    /// microseconds.
    pub idle: Duration,
    /// After so long it leaves in any case, and the next launch takes over.
    pub stay: Duration,
    /// So long before that the next launch is made.
    pub lead: Duration,
    /// A launch that did not begin for so long has no room on the device: letters are taken back.
    pub patience: Duration,
    /// For so long no launch is made after that, and longer if there is no room again.
    pub rest: Duration,
    /// So often at least, while letters keep coming, the kernel stays away for a moment and looks
    /// whether others would fill the device without it: their letters are [`Reply::Busy`] then. 0
    /// for never.
    pub looks: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            idle: Duration::from_micros(100),
            // Whoever waits for the device waits half as long, and as long at most. With half of it
            // sixteen threads moved 0 to 5 % fewer pages, with twice as much no more.
            stay: Duration::from_micros(200),
            // A block tells of it between two letters, of which a long one takes 40 microseconds,
            // and a launch takes ten.
            lead: Duration::from_micros(50),
            // Longer than `lead` and the last letter of the launch before.
            patience: Duration::from_micros(200),
            rest: Duration::from_millis(4),
            // A look takes 0.15 ms.
            looks: Duration::from_millis(16),
        }
    }
}

impl Timing {
    /// The default; for the software GPU, whose blocks are threads that wait for a processor, one
    /// with more time.
    #[must_use]
    pub fn of(context: &Context) -> Self {
        if !context.driver().is_software() {
            return Self::default();
        }
        Self {
            idle: Duration::from_micros(200),
            stay: Duration::from_millis(1),
            lead: Duration::from_micros(200),
            patience: Duration::from_millis(20),
            ..Self::default()
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
    /// Nothing was moved and nothing will be: the device has no room for the kernel now, all places
    /// are taken, or an address has more than 48 bits. The caller moves the bytes in another way.
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
    /// Two, for a launch and the one that takes over.
    streams: [Stream; 2],
    mailbox: Mailbox,
    /// Words for the blocks among themselves.
    shared: DeviceBuf,
    timing: Timing,
    multiprocessors: u32,
    places: Box<[Place]>,
    /// One bit for each place that a desk keeps for itself.
    taken: AtomicU64,
    /// One bit for each place that had a letter lately.
    active: AtomicU64,
    /// The launch put last, and its places; changed by whoever holds `launching`.
    latest: AtomicU64,
    launching: Mutex<Launching>,
    /// When that was, in nanoseconds since `began`.
    put_at: AtomicU64,
    began: Instant,
    /// Until when no letter is posted, as `put_at`; 0 for letters that are.
    rest_until: AtomicU64,
    /// How long the next rest takes, in nanoseconds.
    rest_len: AtomicU64,
    /// When the driver was asked last what became of the launches, as `put_at`.
    asked_at: AtomicU64,
    /// The driver said that all launches up to this one are over, whether or not their blocks did.
    ended: AtomicU64,
    /// Why the device is lost.
    broken: OnceLock<GpuError>,
}

/// A place for one letter at a time. A cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Place {
    /// Some desk uses it.
    claimed: AtomicBool,
    /// The number of the last letter that was posted and not taken back; that desk's.
    posted: AtomicU64,
}

impl Office {
    /// Loads the kernel and makes the places. The kernel is launched with the first letter.
    ///
    /// # Errors
    ///
    /// The driver's refusal: no memory, or a device of compute capability below 7.0.
    pub fn new(context: &Context, timing: Timing) -> Result<Self, GpuError> {
        let kernel = Module::built_in(context, PTX)?.kernel(c"gpuio_errand")?;
        // Of the lowest priority, as all are that do not ask for another.
        let streams = [Stream::new(context)?, Stream::new(context)?];
        let multiprocessors = context.driver().multiprocessors(context.device())?;
        let shared = DeviceBuf::alloc(context, MemKind::Device, SHARED)?;
        let page = Locked::new(context, mailbox::LEN, PageSize::Plain)?.leak();
        let zeroed = context.entered(|| {
            // SAFETY: both live, the page holds zeros, and nobody else knows them yet.
            unsafe { streams[0].h2d(shared.ptr(), page.as_ptr().as_ptr(), SHARED) }?;
            streams[0].sync()
        });
        zeroed??;
        let places = DESKS_MOST.min(most_blocks(multiprocessors) * DESKS_OF_BLOCK);
        Ok(Self(Arc::new(Inner {
            context: context.clone(),
            kernel,
            streams,
            mailbox: Mailbox::new(page),
            shared,
            timing,
            multiprocessors,
            places: (0..places).map(|_| Place::default()).collect(),
            taken: AtomicU64::new(0),
            active: AtomicU64::new(0),
            latest: AtomicU64::new(0),
            launching: Mutex::default(),
            put_at: AtomicU64::new(0),
            began: Instant::now(),
            rest_until: AtomicU64::new(0),
            rest_len: AtomicU64::new(nanoseconds(timing.rest)),
            asked_at: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            broken: OnceLock::new(),
        })))
    }

    /// A desk for one thread, with a place of its own as long as there are such. Calls no driver.
    #[must_use]
    pub fn desk(&self) -> Desk {
        let places = self.0.places.len();
        let lowest_free =
            |taken: u64| ((taken.trailing_ones() as usize) < places).then(|| taken | (taken + 1));
        let update = self.0.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, lowest_free);
        let preferred = update.map_or(0, u64::trailing_ones);
        Desk::new(Arc::clone(&self.0), preferred, update.is_ok())
    }

    /// A desk without a place of its own: its letters take the first that is free, so that few
    /// letters at once have few blocks. For long moves, beside which the search is nothing.
    #[must_use]
    pub fn shared_desk(&self) -> Desk {
        Desk::new(Arc::clone(&self.0), 0, false)
    }

    /// How many desks have a place of their own.
    #[must_use]
    pub fn desks(&self) -> u32 {
        self.0.taken.load(Ordering::Relaxed).count_ones()
    }

    /// How many letters may be under way at once.
    #[must_use]
    pub fn places(&self) -> usize {
        self.0.places.len()
    }

    /// How often the kernel was launched.
    #[must_use]
    pub fn launches(&self) -> u64 {
        self.0.latest().number
    }

    /// Whether letters are not posted now, as other kernels fill the device.
    #[must_use]
    pub fn is_resting(&self) -> bool {
        self.0.is_resting()
    }

    /// The context whose memory the kernel reaches.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.0.context
    }
}

fn most_blocks(multiprocessors: u32) -> u32 {
    (multiprocessors / SHARE).max(1)
}

impl Inner {
    /// Has the calling desk use a place, if one is free: this one or the next behind it.
    fn claim(&self, preferred: u32) -> Option<u32> {
        let count = self.places.len();
        let first = preferred as usize;
        let free = (first..first + count).map(|at| at % count).find(|&at| {
            let claimed = &self.places[at].claimed;
            // What the place's last user did is seen.
            !claimed.load(Ordering::Relaxed) && !claimed.swap(true, Ordering::Acquire)
        })?;
        let free = u32::try_from(free).ok()?;
        if free != preferred {
            self.set_active(free);
        }
        Some(free)
    }

    /// Notes that the place has letters.
    fn set_active(&self, place: u32) {
        let bit = 1 << place;
        if self.active.load(Ordering::Relaxed) & bit == 0 {
            self.active.fetch_or(bit, Ordering::Relaxed);
        }
    }

    fn release(&self, place: u32) {
        self.places[place as usize].claimed.store(false, Ordering::Release);
    }

    /// The last letter that was posted at a place which the caller has claimed.
    fn posted(&self, place: u32) -> u64 {
        self.places[place as usize].posted.load(Ordering::Relaxed)
    }

    fn set_posted(&self, place: u32, number: u64) {
        self.places[place as usize].posted.store(number, Ordering::Relaxed);
    }

    /// The last launch that has left the place, or that is over.
    fn left(&self, desk: u32) -> u64 {
        self.mailbox.gone(desk as usize).launch.max(self.ended.load(Ordering::Acquire))
    }

    /// Whether a block is at the place and may have read its letter.
    fn is_here(&self, desk: u32) -> bool {
        // In this order: a block that comes and goes meanwhile counts as here.
        let left = self.left(desk);
        self.mailbox.here(desk as usize).launch > left
    }

    /// Whether the launch that would serve the place waits for room on the device for long.
    fn is_stuck(&self, desk: u32) -> bool {
        let latest = self.latest();
        // In this order, and each once: a block that leaves meanwhile counts as here.
        let left = self.left(desk);
        let is_here = self.mailbox.here(desk as usize).launch > left;
        if desk >= latest.desks || left >= latest.number || is_here {
            return false;
        }
        let since = self.put_at.load(Ordering::Relaxed);
        self.now().saturating_sub(since) > nanoseconds(self.timing.patience)
    }

    fn now(&self) -> u64 {
        nanoseconds(self.began.elapsed())
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The blocks use `shared` until they leave; a device that is lost runs none.
        let _ = self.context.entered(|| self.streams.iter().try_for_each(Stream::sync));
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
        let timing = Timing {
            patience: Duration::from_secs(20),
            looks: Duration::ZERO,
            ..Timing::default()
        };
        let office = Office::new(&context, timing).unwrap();
        let host = Locked::new(&context, 4096, PageSize::Plain).unwrap();
        office.0.mailbox.begin_behind(0, 0xffff - 20);
        office.0.set_posted(0, 0xffff - 20);
        let mut desk = office.desk();
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
}
