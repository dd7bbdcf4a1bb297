//! The one clock of the data path.

use std::time::Instant;

/// Nanoseconds since the clock's epoch.
pub type Nanos = u64;

/// A monotonic clock with its own epoch, shared by all workers of a run so that their stamps can
/// be compared. Reads `CLOCK_MONOTONIC` through the vDSO (clock_gettime(2)): 20–25 ns a call
/// where the kernel's clock source is the TSC. Never steps back.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    epoch: Instant,
}

impl Clock {
    /// A clock whose epoch is now.
    #[must_use]
    pub fn start() -> Clock {
        Clock { epoch: Instant::now() }
    }

    /// Nanoseconds since the epoch.
    #[must_use]
    #[inline]
    pub fn now(&self) -> Nanos {
        let elapsed = self.epoch.elapsed();
        elapsed.as_secs() * 1_000_000_000 + u64::from(elapsed.subsec_nanos())
    }

    /// Waits until `at`, sleeping for most of it and spinning for the last 60 µs, since a sleep
    /// overshoots by the timer slack (50 µs by default, prctl(2) `PR_SET_TIMERSLACK`).
    pub fn wait_until(&self, at: Nanos) {
        const SPIN: u64 = 60_000;
        loop {
            let now = self.now();
            if now >= at {
                return;
            }
            let left = at - now;
            if left > SPIN {
                std::thread::sleep(std::time::Duration::from_nanos(left - SPIN));
            } else {
                std::hint::spin_loop();
            }
        }
    }
}
