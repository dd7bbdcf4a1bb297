//! How long to wait for a copy by the driver before the driver is asked whether it has ended. Each
//! such query takes a lock of the driver, for which the program's launches wait.

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

/// The known pace of one device's copies. All copies share its link, so one that begins waits for
/// the bytes of those before it.
///
/// The estimate follows what threads measure that saw a copy end. A thread that waited too long
/// knows only that it did: the estimate then shrinks a little. It must not follow such threads
/// alone, which may be late for other reasons: it would shrink until none waits.
/// These are hints, so no memory order is needed.
#[derive(Debug)]
pub(crate) struct CopyPace {
    in_flight: AtomicU64,
    nanos_per_mib: AtomicU64,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct PacedCopy {
    began: Clock,
    len: u64,
    /// Bytes in flight with it.
    ahead: u64,
}

impl PacedCopy {
    /// This one and a later one behind it, as one copy.
    pub(crate) fn and(self, later: PacedCopy) -> PacedCopy {
        PacedCopy { began: self.began, len: self.len + later.len, ahead: later.ahead }
    }
}

impl CopyPace {
    pub(crate) fn new() -> Self {
        Self { in_flight: AtomicU64::new(0), nanos_per_mib: AtomicU64::new(START) }
    }

    /// Counts a copy that is about to be enqueued. [`Self::end`] is called for each.
    pub(crate) fn begin(&self, len: usize) -> PacedCopy {
        let len = len as u64;
        PacedCopy {
            began: Clock::start(),
            len,
            ahead: self.in_flight.fetch_add(len, Ordering::Relaxed) + len,
        }
    }

    /// Its end, or that it is no longer waited for.
    pub(crate) fn end(&self, copy: PacedCopy) {
        self.in_flight.fetch_sub(copy.len, Ordering::Relaxed);
    }

    /// Waits without the driver until about when it ends: sleeps until shortly before it, if that
    /// is long, else spins. False if it should have ended by now.
    pub(crate) fn wait(&self, copy: PacedCopy) -> bool {
        let pace = self.nanos_per_mib.load(Ordering::Relaxed);
        let takes = u128::from(copy.ahead) * u128::from(pace) / u128::from(MIB);
        let takes = u64::try_from(takes).unwrap_or(u64::MAX);
        let left = takes.saturating_sub(copy.began.now());
        if left == 0 {
            return false;
        }
        let sleep = left.saturating_sub(OVERSLEPT);
        if sleep >= SHORTEST {
            std::thread::sleep(Duration::from_nanos(sleep));
        } else {
            while copy.began.now() < takes {
                std::hint::spin_loop();
            }
        }
        true
    }

    /// Learns that a copy had ended after the wait for it.
    pub(crate) fn late(&self) {
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
        // A thread that is held up for longer than the copy takes finds it over: it tries again.
        let waited = |len| {
            let mut tries = (0..10_000).map(|_| pace.begin(len));
            tries.find(|copy| pace.wait(*copy) || (pace.end(*copy), false).1).unwrap()
        };
        let short = waited(1 << 20);
        assert!(short.began.now() >= START);
        assert!(!pace.wait(short), "it should have ended by now");
        let long = waited(9 << 20);
        assert_eq!(long.ahead, 10 << 20);
        assert!(long.began.now() >= 10 * START - OVERSLEPT);
        let both = short.and(long);
        assert_eq!((both.len, both.ahead), (10 << 20, 10 << 20));
        pace.end(both);
        assert_eq!(pace.begin(0).ahead, 0);
        let estimate = || pace.nanos_per_mib.load(Ordering::Relaxed);
        let first = estimate();
        pace.late();
        assert!(estimate() < first);
        (0..1000).for_each(|_| pace.late());
        assert_eq!(estimate(), FASTEST);
        // From the bottom, where none waits, it comes back; a few late ones change little.
        for turn in 0..1000 {
            pace.learn(16 * MIB, 16 * 21_000);
            if turn % 4 == 0 {
                pace.late();
            }
        }
        assert!((19_000..=21_000).contains(&estimate()), "{}", estimate());
        pace.learn(4096, 1_000_000);
        assert!(estimate() <= 21_000, "a short copy says nothing");
    }
}
