//! Counters that a running worker lets others see.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Histogram;

/// Totals of a worker at one moment. Taken field by field: a reader may see the bytes of an I/O
/// and not yet its count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LiveTotals {
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Reads that landed.
    pub read_ios: u64,
    /// Writes that landed.
    pub write_ios: u64,
    /// I/Os that failed.
    pub failed: u64,
    /// Bytes, both directions, of I/Os started after the ramp.
    pub counted_bytes: u64,
}

impl std::ops::AddAssign for LiveTotals {
    fn add_assign(&mut self, other: LiveTotals) {
        self.read_bytes += other.read_bytes;
        self.write_bytes += other.write_bytes;
        self.read_ios += other.read_ios;
        self.write_ios += other.write_ios;
        self.failed += other.failed;
        self.counted_bytes += other.counted_bytes;
    }
}

/// Latencies since the reader last took them.
#[derive(Debug, Clone, Default)]
pub struct Window {
    /// Due until landed, reads and writes together.
    pub total: Histogram,
}

/// One worker's live page. The worker alone stores; any thread may load. Relaxed order: each
/// figure is right, their mutual order is not promised.
#[derive(Debug, Default)]
pub struct Live {
    read_bytes: AtomicU64,
    write_bytes: AtomicU64,
    read_ios: AtomicU64,
    write_ios: AtomicU64,
    failed: AtomicU64,
    counted_bytes: AtomicU64,
    window: Mutex<Window>,
}

impl Live {
    /// Publishes the worker's totals so far.
    #[inline]
    pub fn publish(&self, totals: &LiveTotals) {
        self.read_bytes.store(totals.read_bytes, Ordering::Relaxed);
        self.write_bytes.store(totals.write_bytes, Ordering::Relaxed);
        self.read_ios.store(totals.read_ios, Ordering::Relaxed);
        self.write_ios.store(totals.write_ios, Ordering::Relaxed);
        self.failed.store(totals.failed, Ordering::Relaxed);
        self.counted_bytes.store(totals.counted_bytes, Ordering::Relaxed);
    }

    /// The totals as last published.
    #[must_use]
    pub fn totals(&self) -> LiveTotals {
        LiveTotals {
            read_bytes: self.read_bytes.load(Ordering::Relaxed),
            write_bytes: self.write_bytes.load(Ordering::Relaxed),
            read_ios: self.read_ios.load(Ordering::Relaxed),
            write_ios: self.write_ios.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            counted_bytes: self.counted_bytes.load(Ordering::Relaxed),
        }
    }

    /// Adds `recent` to the window and empties it. The worker calls it once per interval, so the
    /// lock is all but never contended.
    pub fn add_window(&self, recent: &mut Histogram) {
        let mut window = self.window.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        window.total.merge(recent);
        drop(window);
        recent.clear();
    }

    /// Moves the window's latencies into `into`.
    pub fn take_window(&self, into: &mut Histogram) {
        let mut window = self.window.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        into.merge(&window.total);
        window.total.clear();
    }
}
