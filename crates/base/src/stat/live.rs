//! Counters that a running worker lets others see.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::stat::{Histogram, SharedHistogram};

/// Totals of a worker at one moment. Taken field by field: a reader may see the bytes of an I/O
/// and not yet its count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LiveTotals {
    pub read_bytes: u64,
    pub write_bytes: u64,
    /// Reads that completed.
    pub read_ios: u64,
    /// Writes that completed.
    pub write_ios: u64,
    /// I/Os that failed.
    pub failed: u64,
    /// Bytes, both directions, of I/Os that completed after the ramp.
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

impl LiveTotals {
    /// The amounts added since `earlier`; nothing where that is the later one.
    pub fn since(&self, earlier: &LiveTotals) -> LiveTotals {
        LiveTotals {
            read_bytes: self.read_bytes.saturating_sub(earlier.read_bytes),
            write_bytes: self.write_bytes.saturating_sub(earlier.write_bytes),
            read_ios: self.read_ios.saturating_sub(earlier.read_ios),
            write_ios: self.write_ios.saturating_sub(earlier.write_ios),
            failed: self.failed.saturating_sub(earlier.failed),
            counted_bytes: self.counted_bytes.saturating_sub(earlier.counted_bytes),
        }
    }
}

/// The counts of one worker in one direction, before its ramp is over or after it.
#[derive(Debug, Default)]
struct Side {
    bytes: AtomicU64,
    ios: AtomicU64,
    failed: AtomicU64,
    /// Due until completed.
    latency: SharedHistogram,
}

/// Where an I/O of a worker is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// A write, and no read.
    pub write: bool,
    /// It completed before the ramp was over: it is in the series and not in the result.
    pub ramp: bool,
}

impl Counted {
    #[inline]
    fn index(self) -> usize {
        usize::from(self.ramp) * 2 + usize::from(self.write)
    }
}

/// The counters of one worker, read while it runs. The worker alone stores, with plain loads and
/// stores; any thread may load at any time, and the worker never waits for one. Relaxed order: each
/// figure is right, their mutual order is not promised. Two cache lines apart from the next ones:
/// processors fetch lines in pairs, and a line that two workers store to goes to and fro between
/// their cores.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Live {
    sides: [Side; 4],
}

/// Adds to a counter that this thread alone stores to: a load and a store, where `fetch_add` would
/// lock the bus for about 5 ns. Relaxed order.
#[inline]
pub fn add_single_writer(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
}

impl Live {
    /// Counts an I/O that completed whole.
    #[inline]
    pub fn complete(&self, at: Counted, bytes: u64, latency_ns: u64) {
        let side = &self.sides[at.index()];
        add_single_writer(&side.bytes, bytes);
        add_single_writer(&side.ios, 1);
        side.latency.record(latency_ns);
    }

    /// Counts an I/O that failed.
    pub fn fail(&self, at: Counted) {
        add_single_writer(&self.sides[at.index()].failed, 1);
    }

    /// The totals as they are now, ramp included.
    pub fn totals(&self) -> LiveTotals {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut all = LiveTotals::default();
        for (index, side) in self.sides.iter().enumerate() {
            let (bytes, ios) = (load(&side.bytes), load(&side.ios));
            match index % 2 {
                0 => (all.read_bytes, all.read_ios) = (all.read_bytes + bytes, all.read_ios + ios),
                _ => {
                    (all.write_bytes, all.write_ios) =
                        (all.write_bytes + bytes, all.write_ios + ios);
                }
            }
            all.failed += load(&side.failed);
            if index < 2 {
                all.counted_bytes += bytes;
            }
        }
        all
    }

    /// Bytes, I/Os and failures of one side so far.
    pub fn of(&self, at: Counted) -> (u64, u64, u64) {
        let side = &self.sides[at.index()];
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (load(&side.bytes), load(&side.ios), load(&side.failed))
    }

    /// Adds the latencies of one side so far.
    pub fn latencies(&self, at: Counted, into: &mut Histogram) {
        self.sides[at.index()].latency.add_to(into);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_two_workers_share_no_cache_line_and_no_pair_of_lines() {
        assert_eq!((align_of::<Live>(), size_of::<Live>() % 128), (128, 0));
        let all: Vec<Live> = (0..3).map(|_| Live::default()).collect();
        for pair in all.windows(2) {
            let [a, b] = [&raw const pair[0], &raw const pair[1]].map(|page| page as usize / 128);
            let last = (&raw const pair[0] as usize + size_of::<Live>() - 1) / 128;
            assert!(a <= last && last < b, "{a} {last} {b}");
        }
    }

    #[test]
    fn sides_are_kept_apart_and_totals_are_of_all() {
        let live = Live::default();
        let (read, write) =
            (Counted { write: false, ramp: false }, Counted { write: true, ramp: false });
        live.complete(Counted { ramp: true, ..read }, 10, 5);
        live.complete(read, 100, 6);
        live.complete(write, 1000, 7);
        live.fail(write);
        let totals = live.totals();
        assert_eq!((totals.read_bytes, totals.write_bytes), (110, 1000));
        assert_eq!((totals.read_ios, totals.write_ios, totals.failed), (2, 1, 1));
        assert_eq!(totals.counted_bytes, 1100);
        assert_eq!((live.of(read), live.of(write)), ((100, 1, 0), (1000, 1, 1)));
        let mut latencies = Histogram::default();
        live.latencies(read, &mut latencies);
        assert_eq!((latencies.count(), latencies.sum()), (1, 6));
        let earlier = LiveTotals { read_bytes: 10, write_ios: 5, ..LiveTotals::default() };
        let since = totals.since(&earlier);
        assert_eq!((since.read_bytes, since.write_ios, since.read_ios), (100, 0, 2));
    }
}
