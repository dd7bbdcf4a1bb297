//! The poller: one thread that only watches the semaphores of streams.
//!
//! A host function (`cuLaunchHostFunc`) announces a transfer too, but holds up the stream until it
//! has returned. That takes some 200 microseconds on a virtual machine, where an interrupt has to
//! wake a thread of the driver, while reading 1 MiB takes 90. So streams whose transfers follow
//! each other quickly are polled, and nothing is called.
//!
//! The poller moves no bytes, which might wait for a device, so it is always available. For a read
//! whose bytes are mapped it writes the list for the stream's kernel. It spins for a while after it
//! was notified or a stream has reached a transfer. Then it sleeps between polls, each time for an
//! eighth of the time waited so far. If a stream is held up, by a kernel of the program or an event
//! of another stream, it is thus noticed late by at most that part, or by a few milliseconds where
//! the kernel's timers are coarse; its next transfer is announced by a call.

use std::sync::PoisonError;

use rustix::thread::futex;

use super::latency::PROMPT;
use crate::clock::{Clock, Nanos};
use crate::idle::IdleThreads;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, Ordering};

/// How long it spins, where other processors do the work, and where there are few: nanoseconds.
const SPIN: Nanos = PROMPT;
const SPIN_AMONG_FEW: Nanos = 50_000;
const FEW: usize = 4;
/// The shortest and the longest sleep, in nanoseconds.
const PAUSE: (Nanos, Nanos) = (50_000, 20_000_000);

/// How the poller is started and woken.
#[derive(Debug)]
pub(super) struct Poller {
    wanted: bool,
    spin_for: Nanos,
    started: AtomicBool,
    starting: Mutex<()>,
    idle: IdleThreads,
}

impl Poller {
    pub(super) fn new(cores: usize, wanted: bool) -> Self {
        Self {
            wanted,
            spin_for: if cores < FEW { SPIN_AMONG_FEW } else { SPIN },
            started: AtomicBool::new(false),
            starting: Mutex::new(()),
            idle: IdleThreads::new(),
        }
    }

    /// Whether the poller runs. If not, `start` starts it and returns whether it could.
    pub(super) fn ensure_started(&self, start: impl FnOnce() -> bool) -> bool {
        if self.started.load(Ordering::Acquire) || !self.wanted {
            return self.wanted;
        }
        let _one = self.starting.lock().unwrap_or_else(PoisonError::into_inner);
        let started = self.started.load(Ordering::Acquire) || start();
        self.started.store(started, Ordering::Release);
        started
    }

    /// Announces something to watch.
    pub(super) fn notify(&self) {
        self.idle.announce();
        self.idle.wake(1);
    }

    /// The wake sequence: read it before polling, and pass it to [`Poller::wait`].
    pub(super) fn sequence(&self) -> u32 {
        self.idle.sequence()
    }

    /// Waits until the next poll is due, `since` being the last success; true if notified.
    /// `has_none`: there was nothing to poll after the sequence `seen` was read.
    pub(super) fn wait(&self, since: &Clock, seen: u32, has_none: bool) -> bool {
        let waited = since.now();
        if waited < self.spin_for {
            (0..4).for_each(|_| std::hint::spin_loop());
            return self.sequence() != seen;
        }
        let pause = (waited / 8).clamp(PAUSE.0, PAUSE.1);
        // Below a second, so it fits any type.
        let pause = futex::Timespec { tv_sec: 0, tv_nsec: pause.cast_signed() };
        // Whoever adds an operation notifies afterwards, so with none there is no reason to poll
        // again.
        let most = if has_none { None } else { Some(&pause) };
        self.idle.sleep(seen, most);
        self.sequence() != seen
    }
}
