//! One thread that does nothing but look at the words of streams.
//!
//! A function that a stream calls (`cuLaunchHostFunc`) tells of a transfer too, but holds the
//! stream until it has returned: some 200 microseconds on a virtual machine, where an interrupt has
//! to wake a thread of the driver for it, and the bytes of 1 MiB are there in 90. So a stream whose
//! transfers come soon one after another is looked at, and nothing is called.
//!
//! The sentry works on no transfer, which might wait for a device, and so is always there to look.
//! It looks without a pause for a while after somebody called it or a stream has come to a
//! transfer, then again and again after an eighth of the time that it has waited by then. A stream
//! that is held up, by a kernel of the program or an event of another stream, is thus seen late by
//! no more than that part, or a few milliseconds where a kernel's timers are no better; and its
//! next transfer is told of by a call.

use std::sync::PoisonError;

use gpuio_io::clock::{Clock, Nanos};
use rustix::thread::futex;

use super::watch::{SOON, Watch};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// How long it looks without a pause, where other processors do the work meanwhile, and where they
/// are few: nanoseconds.
const LOOK: Nanos = SOON;
const LOOK_AMONG_FEW: Nanos = 50_000;
const FEW: usize = 4;
/// The shortest and the longest pause, in nanoseconds.
const PAUSE: (Nanos, Nanos) = (50_000, 20_000_000);

/// How the sentry is called.
#[derive(Debug)]
pub(super) struct Sentry {
    wanted: bool,
    look: Nanos,
    there: AtomicBool,
    starting: Mutex<()>,
    /// Changes when somebody calls; what the sentry sleeps on.
    bell: AtomicU32,
    asleep: AtomicBool,
}

impl Sentry {
    pub(super) fn new(cores: usize, wanted: bool) -> Self {
        Self {
            wanted,
            look: if cores < FEW { LOOK_AMONG_FEW } else { LOOK },
            there: AtomicBool::new(false),
            starting: Mutex::new(()),
            bell: AtomicU32::new(0),
            asleep: AtomicBool::new(false),
        }
    }

    /// Whether there is one; `start` starts it if not, and says whether it could.
    pub(super) fn is_there(&self, start: impl FnOnce() -> bool) -> bool {
        if self.there.load(Ordering::Acquire) || !self.wanted {
            return self.wanted;
        }
        let _one = self.starting.lock().unwrap_or_else(PoisonError::into_inner);
        let there = self.there.load(Ordering::Acquire) || start();
        self.there.store(there, Ordering::Release);
        there
    }

    /// Tells it that there is something to look at. Ringing comes before asking whether it sleeps,
    /// and it says that it does before the kernel compares the bell: one of the two sees the other.
    pub(super) fn call(&self) {
        self.bell.fetch_add(1, Ordering::SeqCst);
        if self.asleep.load(Ordering::SeqCst) {
            let _ = futex::wake(&self.bell, futex::Flags::PRIVATE, 1);
        }
    }

    /// The bell as it is: to be read before one looks, and handed to [`Sentry::rest`].
    pub(super) fn heard(&self) -> u32 {
        self.bell.load(Ordering::SeqCst)
    }

    /// Waits as long as is due before the next look, `since` it last had something to do; true if
    /// somebody called.
    pub(super) fn rest(&self, since: &Clock, heard: u32, watch: &Watch) -> bool {
        let waited = since.now();
        if waited < self.look {
            (0..4).for_each(|_| std::hint::spin_loop());
            return self.heard() != heard;
        }
        let pause = (waited / 8).clamp(PAUSE.0, PAUSE.1);
        // Below a second, so it fits whatever the type.
        let pause = futex::Timespec { tv_sec: 0, tv_nsec: pause.cast_signed() };
        self.asleep.store(true, Ordering::SeqCst);
        // Whoever adds something calls behind it, so an empty watch is no reason to look again.
        let most = if watch.is_empty() { None } else { Some(&pause) };
        let _ = futex::wait(&self.bell, futex::Flags::PRIVATE, heard, most);
        self.asleep.store(false, Ordering::SeqCst);
        self.heard() != heard
    }
}
