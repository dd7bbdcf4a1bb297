//! The time of a device: how long kernels last that keep it busy, and when marks were reached.
//!
//! It goes with the host's clock, but a thread that wakes late does not move it: what follows in
//! the stream begins when what was before it ended, as on hardware. So rates are known exactly
//! however busy the host is.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::device::Device;

/// The time that work of a device's streams takes from each other.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// Kernels at work that keep it busy.
    busy: AtomicU32,
    /// Nanoseconds that other work has taken from such kernels since the beginning.
    stolen: AtomicU64,
}

impl Pace {
    /// A copy or another kernel: it takes `steal` from kernels that keep the device busy, and waits
    /// for `contention` while there is one.
    pub(crate) fn disturb(&self, steal: Duration, contention: Duration) {
        let steal = u64::try_from(steal.as_nanos()).unwrap_or(u64::MAX);
        self.stolen.fetch_add(steal, Ordering::Relaxed);
        if !contention.is_zero() && self.busy.load(Ordering::Relaxed) > 0 {
            std::thread::sleep(contention);
        }
    }

    fn stolen(&self) -> Duration {
        Duration::from_nanos(self.stolen.load(Ordering::Relaxed))
    }
}

/// How far a stream has come by its device's clock. Its thread owns it.
pub(crate) struct Progress {
    at: Instant,
    /// The time that had been stolen from kernels by then.
    stolen: Duration,
}

impl Progress {
    pub(crate) fn new() -> Self {
        Self { at: Instant::now(), stolen: Duration::ZERO }
    }

    /// Work that took its time is done.
    pub(crate) fn now(&mut self) {
        self.at = self.at.max(Instant::now());
    }

    /// When something was reached that was put there at this time.
    pub(crate) fn reached(&self, put: Instant) -> Instant {
        self.at.max(put)
    }

    /// Lasts as long as a kernel that was put there at this time and is at work for `lasts` and for
    /// what is stolen from it.
    pub(crate) fn last(&mut self, device: &Device, put: Instant, lasts: Duration) {
        let pace = &device.pace;
        if put > self.at {
            // The stream was empty: nothing was taken from it.
            self.stolen = pace.stolen();
            self.at = put;
        }
        pace.busy.fetch_add(1, Ordering::Relaxed);
        let end = loop {
            let stolen = pace.stolen();
            let end = self.at + lasts + (stolen - self.stolen);
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || device.is_lost() {
                self.stolen = stolen;
                break end;
            }
            std::thread::sleep(left);
        };
        self.at = end;
        pace.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_begins_when_what_was_before_it_ended() {
        let mut progress = Progress::new();
        let put = progress.at + Duration::from_millis(1);
        assert_eq!(progress.reached(put), put, "an empty stream reaches it at once");
        progress.at = put + Duration::from_millis(5);
        assert_eq!(progress.reached(put), progress.at);
    }
}
