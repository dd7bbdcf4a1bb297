//! A histogram that one thread records into while others read it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::stat::Histogram;
use crate::stat::histogram::Nanoseconds;
use crate::stat::live::add_single_writer;

/// Counts of durations in nanoseconds, in the buckets of [`Histogram`]. One thread records, with
/// plain loads and stores: no locked instruction, no hand-over, and a reader never holds it up. Any
/// thread may read at any time, whether the one that records runs, sleeps or hangs in a system
/// call: what was recorded before the reading is in it, each value once. Values that come during it
/// may be in or out. The first value allocates the counters (38 KiB), on the recording thread.
#[derive(Debug)]
pub struct SharedHistogram {
    counts: OnceLock<Box<[AtomicU64]>>,
    sum: AtomicU64,
    /// The bits of an `f64`.
    squares: AtomicU64,
    min: AtomicU64,
    max: AtomicU64,
}

impl Default for SharedHistogram {
    fn default() -> SharedHistogram {
        SharedHistogram {
            counts: OnceLock::new(),
            sum: AtomicU64::new(0),
            squares: AtomicU64::new(0.0_f64.to_bits()),
            min: AtomicU64::new(u64::MAX),
            max: AtomicU64::new(0),
        }
    }
}

/// Makes the counters. Away from the hot path.
#[cold]
fn counters() -> Box<[AtomicU64]> {
    (0..Nanoseconds::COUNT).map(|_| AtomicU64::new(0)).collect()
}

impl SharedHistogram {
    /// Adds one duration. For one thread only: of two that record at once, one may be lost.
    #[inline]
    pub fn record(&self, value_ns: u64) {
        let relaxed = Ordering::Relaxed;
        if value_ns < self.min.load(relaxed) {
            self.min.store(value_ns, relaxed);
        }
        if value_ns > self.max.load(relaxed) {
            self.max.store(value_ns, relaxed);
        }
        add_single_writer(&self.sum, value_ns);
        let v = value_ns as f64;
        let squares = f64::from_bits(self.squares.load(relaxed)) + v * v;
        self.squares.store(squares.to_bits(), relaxed);
        add_single_writer(&self.counts.get_or_init(counters)[Nanoseconds::of(value_ns)], 1);
    }

    /// Adds all values so far to `into`.
    pub fn add_to(&self, into: &mut Histogram) {
        let relaxed = Ordering::Relaxed;
        let Some(counts) = self.counts.get() else { return };
        let squares = f64::from_bits(self.squares.load(relaxed));
        let sum = self.sum.load(relaxed);
        // Only the buckets that hold something; one that came during the reading is in the next.
        let (min, max) = (self.min.load(relaxed), self.max.load(relaxed));
        let held = Nanoseconds::of(min)..Nanoseconds::of(max).max(Nanoseconds::of(min)) + 1;
        let read = counts[held.clone()].iter().map(|count| count.load(relaxed));
        into.add_counts(held, read, (sum, squares), (min, max));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn it_says_what_a_plain_histogram_says() {
        let (shared, mut plain) = (SharedHistogram::default(), Histogram::default());
        let mut read = Histogram::default();
        shared.add_to(&mut read);
        assert_eq!(read, plain, "nothing recorded, nothing read");
        for n in 0..5000_u64 {
            let value = n * n * 37 % 10_000_019;
            shared.record(value);
            plain.record(value);
        }
        shared.add_to(&mut read);
        assert_eq!(read, plain);
        shared.add_to(&mut read);
        assert_eq!((read.count(), read.sum()), (2 * plain.count(), 2 * plain.sum()));
    }

    #[test]
    fn a_reader_sees_every_value_once_while_another_thread_records() {
        const COUNT: u64 = 200_000;
        let (shared, done) = (SharedHistogram::default(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                (0..COUNT).for_each(|n| shared.record(1000 + n % 5000));
                done.store(true, Ordering::Release);
            });
            let (mut before, mut parts) = (Histogram::default(), 0);
            while !done.load(Ordering::Acquire) {
                let mut now = Histogram::default();
                shared.add_to(&mut now);
                parts += now.since(&before).count();
                assert!(now.count() >= before.count());
                before = now;
            }
            let mut last = Histogram::default();
            shared.add_to(&mut last);
            parts += last.since(&before).count();
            assert_eq!((last.count(), parts), (COUNT, COUNT));
        });
    }
}
