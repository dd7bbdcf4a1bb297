//! The pool's threads: started on demand, asleep without work, never ended.

use crate::clock::{Clock, Nanos};
use crate::idle::IdleThreads;
use crate::spawn::spawn;
use crate::sync::atomic::{AtomicU32, Ordering};

/// How long an idle thread spins before it sleeps, if calls arrive that frequently: nanoseconds.
const SPIN: Nanos = 80_000;
/// Threads that a caller wakes itself, at some microseconds each; each of them wakes two more.
const WOKEN_PER_CALL: u32 = 3;
/// Threads that one call, or one thread that was started or woken, starts at most, at some 30
/// microseconds each.
const STARTED_PER_CALL: u32 = 3;

/// The threads' counters.
#[derive(Debug)]
pub(super) struct Workers {
    most: u32,
    started: AtomicU32,
    /// Threads that have been started.
    available: AtomicU32,
    idle: IdleThreads,
}

/// A thread's record of its last idle time.
pub(super) struct IdleState {
    since: Clock,
    frequent: bool,
    slept: bool,
}

impl IdleState {
    pub(super) fn new() -> Self {
        Self { since: Clock::start(), frequent: false, slept: true }
    }

    /// Whether it slept since it last worked.
    pub(super) fn slept(&self) -> bool {
        self.slept
    }

    /// Records that it found work.
    pub(super) fn worked(&mut self) {
        self.frequent = self.since.now() < SPIN;
        self.slept = false;
    }
}

impl Workers {
    pub(super) fn new(most: u32) -> Self {
        let zero = || AtomicU32::new(0);
        Self { most, started: zero(), available: zero(), idle: IdleThreads::new() }
    }

    /// Starts threads until `wanted` are idle, a few per call.
    pub(super) fn start<F: FnOnce() + Send + 'static>(&self, wanted: u32, make: impl Fn() -> F) {
        for _ in 0..STARTED_PER_CALL {
            let more = |started| (started < self.most).then_some(started + 1);
            if self.idle.count() >= wanted
                || self.started.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_err()
            {
                return;
            }
            if !spawn(make()) {
                // The limit of threads is reached: the existing ones must do, and callers work
                // themselves.
                self.started.fetch_sub(1, Ordering::Relaxed);
                return;
            }
            self.available.fetch_add(1, Ordering::Release);
        }
    }

    /// Whether at least one thread can be woken.
    pub(super) fn any_started(&self) -> bool {
        self.available.load(Ordering::Acquire) > 0
    }

    /// The wake sequence: read it before looking for work, and pass it to [`Workers::wait`].
    pub(super) fn seen(&self) -> u32 {
        self.idle.sequence()
    }

    /// Announces work for `wanted` threads.
    pub(super) fn notify(&self, wanted: u32) {
        self.idle.announce();
        self.idle.wake(wanted.saturating_sub(self.idle.spinning()).min(WOKEN_PER_CALL));
    }

    /// Wakes two more sleeping threads.
    pub(super) fn wake_more(&self) {
        self.idle.wake(2);
    }

    /// Returns when `notify` was called since `seen` was read, or a little earlier.
    pub(super) fn wait(&self, idle: &mut IdleState, seen: u32) {
        if !idle.slept && !self.spin_quietly(idle, seen) {
            return;
        }
        self.idle.sleep(seen, None);
        idle.slept = true;
    }

    /// Spins on the wake sequence for a while, if calls arrive frequently; true if it did not
    /// change.
    fn spin_quietly(&self, idle: &mut IdleState, seen: u32) -> bool {
        idle.since = Clock::start();
        if !idle.frequent {
            return true;
        }
        self.idle.start_spinning();
        let mut quiet = true;
        while quiet && idle.since.now() < SPIN {
            for _ in 0..16 {
                std::hint::spin_loop();
            }
            quiet = self.seen() == seen;
        }
        self.idle.stop_spinning();
        quiet
    }
}
