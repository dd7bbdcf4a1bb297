//! The one clock of the data path.

pub mod stops;

use std::time::Duration;

/// Nanoseconds since the clock's epoch.
pub type Nanos = u64;

/// A monotonic clock with its own epoch, shared by all workers of a run so that their stamps can
/// be compared. Reads `CLOCK_MONOTONIC` through the vDSO (clock_gettime(2)): 20–25 ns a call
/// where the kernel's clock source is the TSC. Never steps back. While the process is stopped it
/// stands still, where somebody watches for that ([`stops`]).
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    epoch: Nanos,
}

impl Clock {
    /// A clock whose epoch is now.
    pub fn start() -> Clock {
        Clock { epoch: stops::running_ns() }
    }

    /// Nanoseconds since the epoch.
    #[inline]
    pub fn now(&self) -> Nanos {
        stops::running_ns().saturating_sub(self.epoch)
    }
    /// How long a thread may sleep that has to be up at `at`; nothing if it may not. Less than what
    /// is left by 60 µs, since a sleep overshoots by the timer slack (50 µs by default, prctl(2)
    /// `PR_SET_TIMERSLACK`).
    pub fn may_sleep(&self, at: Nanos) -> Option<Duration> {
        const OVERSHOOT: Nanos = 60_000;
        let left = at.checked_sub(self.now())?.checked_sub(OVERSHOOT)?;
        (left > 0).then_some(Duration::from_nanos(left))
    }

    /// Waits until `at`, sleeping for most of it and spinning for the rest.
    pub fn wait_until(&self, at: Nanos) {
        while self.now() < at {
            match self.may_sleep(at) {
                Some(time) => std::thread::sleep(time),
                None => std::hint::spin_loop(),
            }
        }
    }
}
