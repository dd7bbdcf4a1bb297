//! The counts of one worker, reads and writes apart.

use crate::stat::Histogram;

/// Histograms of the parts of an I/O's life, in nanoseconds.
#[derive(Debug, Clone, Default)]
pub struct Legs {
    /// Due until started: how far the load ran behind the requested rate.
    pub queue: Histogram,
    /// Time between the file and host memory.
    pub file: Histogram,
    /// Time between host memory and GPU memory.
    pub gpu: Histogram,
    /// Due until completed.
    pub total: Histogram,
}

impl Legs {
    fn merge(&mut self, other: &Legs) {
        self.queue.merge(&other.queue);
        self.file.merge(&other.file);
        self.gpu.merge(&other.gpu);
        self.total.merge(&other.total);
    }
}

/// Counts of one direction (reads or writes) of one worker or of several merged.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// I/Os that completed whole.
    pub ios: u64,
    pub bytes: u64,
    /// I/Os that failed.
    pub failed: u64,
    /// Latencies of those that completed whole.
    pub legs: Legs,
}

impl Tally {
    /// Adds another worker's counts.
    pub fn merge(&mut self, other: &Tally) {
        self.ios += other.ios;
        self.bytes += other.bytes;
        self.failed += other.failed;
        self.legs.merge(&other.legs);
    }
}
