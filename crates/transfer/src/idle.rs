//! Threads that wait for work on a futex, and how they are woken.
//!
//! No wake-up is lost. Who has work (1) queues it, (2) changes the wake sequence and (3) reads how
//! many sleep. An idle thread (4) reads the sequence, (5) looks for work and (6) sleeps unless the
//! sequence has changed. A sleeper is counted before the kernel compares the sequence, so either
//! (3) sees the sleeper or (6) the change.

use rustix::thread::futex;

use crate::sync::atomic::{AtomicU32, Ordering};

/// The counters of threads without work, and their futex.
#[derive(Debug)]
pub(crate) struct IdleThreads {
    /// Changes when there may be work. Idle threads sleep on it.
    wake_seq: AtomicU32,
    spinning: AtomicU32,
    asleep: AtomicU32,
}

impl IdleThreads {
    pub(crate) fn new() -> Self {
        let zero = || AtomicU32::new(0);
        Self { wake_seq: zero(), spinning: zero(), asleep: zero() }
    }

    /// About how many there are.
    pub(crate) fn count(&self) -> u32 {
        self.spinning.load(Ordering::Relaxed) + self.asleep.load(Ordering::Relaxed)
    }

    /// How many look for work without sleeping.
    pub(crate) fn spinning(&self) -> u32 {
        self.spinning.load(Ordering::SeqCst)
    }

    /// The wake sequence: read it before looking for work, and pass it to [`IdleThreads::sleep`].
    pub(crate) fn sequence(&self) -> u32 {
        self.wake_seq.load(Ordering::SeqCst)
    }

    /// Announces work that was queued. [`IdleThreads::wake`] then wakes those who sleep.
    pub(crate) fn announce(&self) {
        self.wake_seq.fetch_add(1, Ordering::SeqCst);
    }

    /// Wakes up to `count` of those who sleep.
    pub(crate) fn wake(&self, count: u32) {
        if count == 0 {
            return;
        }
        let count = count.min(self.asleep.load(Ordering::SeqCst));
        if count > 0 {
            let _ = futex::wake(&self.wake_seq, futex::Flags::PRIVATE, count);
        }
    }

    /// Counts this thread as spinning; how many others do.
    pub(crate) fn start_spinning(&self) -> u32 {
        self.spinning.fetch_add(1, Ordering::SeqCst)
    }

    /// No longer counts this thread as spinning; how many others do.
    pub(crate) fn stop_spinning(&self) -> u32 {
        self.spinning.fetch_sub(1, Ordering::SeqCst) - 1
    }

    /// Sleeps until work is announced after `seen` was read, or a little shorter; at most for
    /// `timeout`.
    pub(crate) fn sleep(&self, seen: u32, timeout: Option<&futex::Timespec>) {
        self.asleep.fetch_add(1, Ordering::SeqCst);
        let _ = futex::wait(&self.wake_seq, futex::Flags::PRIVATE, seen, timeout);
        self.asleep.fetch_sub(1, Ordering::SeqCst);
    }

    /// Like [`IdleThreads::sleep`], for a thread that is counted as spinning before and afterwards.
    /// It is counted at any time.
    pub(crate) fn sleep_between_spins(&self, seen: u32) {
        self.asleep.fetch_add(1, Ordering::SeqCst);
        self.spinning.fetch_sub(1, Ordering::SeqCst);
        let _ = futex::wait(&self.wake_seq, futex::Flags::PRIVATE, seen, None);
        self.spinning.fetch_add(1, Ordering::SeqCst);
        self.asleep.fetch_sub(1, Ordering::SeqCst);
    }
}
