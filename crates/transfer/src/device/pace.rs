//! How long to sleep for a copy by the driver: until shortly before it ends.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::clock::{Clock, Nanos};

/// A sleep ends so much later than requested, nanoseconds: the timer slack (50 µs by default,
/// prctl(2), `PR_SET_TIMERSLACK`) and the scheduler.
const OVERSLEPT: Nanos = 70_000;
/// Shorter sleeps save less than they cost, nanoseconds.
const SHORTEST: Nanos = 30_000;
/// The first estimate and its bounds, nanoseconds for each MiB.
const START: Nanos = 15_000;
const FASTEST: Nanos = 1_000;
const SLOWEST: Nanos = 400_000;
const MIB: u64 = 1 << 20;

/// What is known of the copies of one device. All copies share its link, so one that begins waits
/// for the bytes of those before it.
///
/// The estimate follows what threads measure that saw a copy end. A thread that slept too long
/// knows only that it did: the estimate then shrinks a little. It must not follow such threads
/// alone, which may be late for other reasons: it would shrink until none sleeps.
/// These are hints, so no memory order is needed.
#[derive(Debug)]
pub(crate) struct CopyPace {
    in_flight: AtomicU64,
    nanos_per_mib: AtomicU64,
}

/// A copy that begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PacedCopy {
    began: Clock,
    len: u64,
    /// Bytes in flight with it.
    ahead: u64,
}

impl CopyPace {
    pub(crate) fn new() -> Self {
        Self { in_flight: AtomicU64::new(0), nanos_per_mib: AtomicU64::new(START) }
    }

    /// Counts a copy that is about to be enqueued.
    pub(crate) fn begin(&self, len: usize) -> PacedCopy {
        let len = len as u64;
        PacedCopy {
            began: Clock::start(),
            len,
            ahead: self.in_flight.fetch_add(len, Ordering::Relaxed) + len,
        }
    }

    /// Its end.
    pub(crate) fn end(&self, copy: PacedCopy) {
        self.in_flight.fetch_sub(copy.len, Ordering::Relaxed);
    }

    /// Sleeps until shortly before it ends; false if it ends too soon for that.
    pub(crate) fn sleep(&self, copy: PacedCopy) -> bool {
        let pace = self.nanos_per_mib.load(Ordering::Relaxed);
        let takes = u128::from(copy.ahead) * u128::from(pace) / u128::from(MIB);
        let takes = u64::try_from(takes).unwrap_or(u64::MAX);
        let sleep = takes.saturating_sub(OVERSLEPT);
        if sleep < SHORTEST {
            return false;
        }
        std::thread::sleep(Duration::from_nanos(sleep));
        true
    }

    /// Learns that a copy had ended when its thread woke up.
    pub(crate) fn overslept(&self) {
        let pace = self.nanos_per_mib.load(Ordering::Relaxed);
        self.set(pace - pace / 64);
    }

    /// Learns from a thread that saw its copy end. Short copies say little about the link.
    pub(crate) fn seen(&self, copy: PacedCopy) {
        self.learn(copy.ahead, copy.began.now());
    }

    fn learn(&self, ahead: u64, took: Nanos) {
        if ahead < MIB {
            return;
        }
        let sample = u128::from(took) * u128::from(MIB) / u128::from(ahead);
        let sample = u64::try_from(sample).unwrap_or(SLOWEST).min(SLOWEST);
        let pace = self.nanos_per_mib.load(Ordering::Relaxed);
        self.set(pace - pace / 8 + sample / 8);
    }

    fn set(&self, pace: Nanos) {
        self.nanos_per_mib.store(pace.clamp(FASTEST, SLOWEST), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_waits_for_those_before_it_and_the_estimate_follows() {
        let pace = CopyPace::new();
        let short = pace.begin(1 << 20);
        assert!(!pace.sleep(short), "15 µs are no sleep");
        let long = pace.begin(9 << 20);
        assert_eq!(long.ahead, 10 << 20);
        let clock = crate::clock::Clock::start();
        assert!(pace.sleep(long), "150 µs are");
        assert!(clock.now() >= 150_000 - OVERSLEPT);
        pace.end(short);
        pace.end(long);
        assert_eq!(pace.begin(0).ahead, 0);
        let estimate = || pace.nanos_per_mib.load(Ordering::Relaxed);
        let first = estimate();
        pace.overslept();
        assert!(estimate() < first);
        (0..1000).for_each(|_| pace.overslept());
        assert_eq!(estimate(), FASTEST);
        // From the bottom, where none sleeps, it comes back; a few late sleepers change little.
        for turn in 0..1000 {
            pace.learn(16 * MIB, 16 * 21_000);
            if turn % 4 == 0 {
                pace.overslept();
            }
        }
        assert!((19_000..=21_000).contains(&estimate()), "{}", estimate());
        pace.learn(4096, 1_000_000);
        assert!(estimate() <= 21_000, "a short copy says nothing");
    }
}
