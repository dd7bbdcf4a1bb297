//! Threads of our own: started when they are wanted, asleep when they are not, never ended.

use gpuio_io::clock::{Clock, Nanos};
use rustix::thread::futex;

pub(crate) use crate::spawn::spawn;
use crate::sync::atomic::{AtomicU32, Ordering};

/// How long a thread looks for the next call before it sleeps, if calls come as close as that:
/// nanoseconds.
const SPIN: Nanos = 80_000;
/// How many a caller wakes itself, at some microseconds each; each of them wakes two more.
const WOKEN: u32 = 3;
/// How many threads one call starts at most, at some 30 microseconds each.
const STARTED: u32 = 3;
/// Our threads, counted.
#[derive(Debug)]
pub(super) struct Hands {
    most: u32,
    started: AtomicU32,
    /// Those that were started and are there.
    there: AtomicU32,
    /// Changes when there may be work; what sleepers sleep on.
    bell: AtomicU32,
    spinning: AtomicU32,
    asleep: AtomicU32,
}

/// What a thread remembers of its last rest.
#[derive(Debug)]
pub(super) struct Rest {
    since: Clock,
    close: bool,
    slept: bool,
}

impl Rest {
    pub(super) fn new() -> Self {
        Self { since: Clock::start(), close: false, slept: true }
    }

    /// Whether it slept since it last worked.
    pub(super) fn slept(&self) -> bool {
        self.slept
    }

    /// It found work.
    pub(super) fn worked(&mut self) {
        self.close = self.since.now() < SPIN;
        self.slept = false;
    }
}

impl Hands {
    pub(super) fn new(most: u32) -> Self {
        let zero = || AtomicU32::new(0);
        Self {
            most,
            started: zero(),
            there: zero(),
            bell: zero(),
            spinning: zero(),
            asleep: zero(),
        }
    }

    /// Starts threads until `wanted` are idle, a few at a time.
    pub(super) fn start<F: FnOnce() + Send + 'static>(&self, wanted: u32, make: impl Fn() -> F) {
        for _ in 0..STARTED {
            let idle = self.asleep.load(Ordering::Relaxed) + self.spinning.load(Ordering::Relaxed);
            let more = |started| (started < self.most).then_some(started + 1);
            if idle >= wanted
                || self.started.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_err()
            {
                return;
            }
            if !spawn(make()) {
                // The limit of threads: those there are have to do, and callers work themselves.
                self.started.fetch_sub(1, Ordering::Relaxed);
                return;
            }
            self.there.fetch_add(1, Ordering::Release);
        }
    }

    /// Whether there is a thread that will come when it is called.
    pub(super) fn are_there(&self) -> bool {
        self.there.load(Ordering::Acquire) > 0
    }

    /// The bell as it is: to be read before one looks for work, and handed to [`Hands::rest`].
    pub(super) fn heard(&self) -> u32 {
        self.bell.load(Ordering::SeqCst)
    }

    /// Tells that there is work for so many.
    pub(super) fn ring(&self, wanted: u32) {
        self.bell.fetch_add(1, Ordering::SeqCst);
        let awake = self.spinning.load(Ordering::SeqCst);
        let asleep = self.asleep.load(Ordering::SeqCst);
        self.wake(wanted.saturating_sub(awake).min(WOKEN).min(asleep));
    }

    /// Wakes two more, if any sleep.
    pub(super) fn wake_more(&self) {
        self.wake(self.asleep.load(Ordering::SeqCst).min(2));
    }

    fn wake(&self, count: u32) {
        if count > 0 {
            let _ = futex::wake(&self.bell, futex::Flags::PRIVATE, count);
        }
    }

    /// Returns when the bell was rung since `heard` was read, or a little earlier.
    ///
    /// Sleeping is entered before the kernel compares the bell, and ringing reads who sleeps after
    /// it has changed the bell: so either the kernel sees the change or the ringer the sleeper.
    pub(super) fn rest(&self, rest: &mut Rest, heard: u32) {
        if !rest.slept && !self.spinning_ends(rest, heard) {
            return;
        }
        self.asleep.fetch_add(1, Ordering::SeqCst);
        let _ = futex::wait(&self.bell, futex::Flags::PRIVATE, heard, None);
        self.asleep.fetch_sub(1, Ordering::SeqCst);
        rest.slept = true;
    }

    /// Looks at the bell for a while, if calls come close to one another; true if it stayed quiet.
    fn spinning_ends(&self, rest: &mut Rest, heard: u32) -> bool {
        rest.since = Clock::start();
        if !rest.close {
            return true;
        }
        self.spinning.fetch_add(1, Ordering::SeqCst);
        let mut quiet = true;
        while quiet && rest.since.now() < SPIN {
            for _ in 0..16 {
                std::hint::spin_loop();
            }
            quiet = self.bell.load(Ordering::SeqCst) == heard;
        }
        self.spinning.fetch_sub(1, Ordering::SeqCst);
        quiet
    }
}
