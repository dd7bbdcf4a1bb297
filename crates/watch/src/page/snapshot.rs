//! The content of a page at one moment, as plain values.

use crate::page::bucket::{Latencies, SIZES};

/// Counts of one direction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes of I/Os that completed in full.
    pub bytes: u64,
    /// I/Os that failed.
    pub failed: u64,
    /// Sum of latencies, nanoseconds.
    pub latency_ns: u64,
    /// I/Os whose offset or length is no multiple of 4 KiB.
    pub unaligned: u64,
    /// I/Os by class of size ([`crate::page::size_class`]).
    pub sizes: [u64; SIZES],
    /// I/Os by bucket of latency.
    pub(crate) latencies: Vec<u64>,
}

/// The counters of all threads with one GPU, path and engine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathCounters {
    /// Index of the GPU; none for host memory.
    pub gpu: Option<u32>,
    /// Its PCI address; empty for host memory.
    pub pci: String,
    /// Path.
    pub path: String,
    /// Engine.
    pub engine: String,
    /// Threads that run now.
    pub threads: u64,
    /// Files opened; of path [`crate::page::REGISTERED`], files registered now.
    pub files: u64,
    /// Buffers registered with cuFile; none where they are not counted.
    pub registered: Option<u64>,
    /// I/O slots of threads that run now.
    pub slots: u64,
    /// I/Os in flight, each thread at its last update.
    pub in_flight: u64,
    /// Start of the first I/O, `CLOCK_MONOTONIC` nanoseconds of the writer; 0 before it.
    pub first_ns: u64,
    /// Completion of the last.
    pub last_ns: u64,
    /// Reads.
    pub read: Counts,
    /// Writes.
    pub write: Counts,
}

/// A page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The process, in its PID namespace.
    pub pid: u32,
    /// Its owner.
    pub uid: u32,
    /// When it began: clock ticks after boot.
    pub start_ticks: u64,
    /// Inode of its PID namespace; 0 where the kernel did not report it.
    pub namespace: u64,
    /// The boot, a UUID; may be empty.
    pub boot: String,
    /// Program that wrote it.
    pub program: String,
    /// That program's release.
    pub release: String,
    /// When the page was made: nanoseconds since 1970.
    pub began_ns: u64,
    /// By GPU, path and engine, in order.
    pub paths: Vec<PathCounters>,
}

impl Counts {
    /// I/Os that completed in full.
    #[must_use]
    pub fn ios(&self) -> u64 {
        self.sizes.iter().fold(0, |sum: u64, &count| sum.saturating_add(count))
    }

    /// Mean latency in nanoseconds.
    #[must_use]
    pub fn mean_ns(&self) -> Option<f64> {
        let ios = self.ios();
        #[expect(clippy::cast_precision_loss, reason = "a mean needs no 64 bits")]
        let mean = self.latency_ns as f64 / ios as f64;
        (ios > 0).then_some(mean)
    }

    /// The latency at or below which `quantile` (0 to 1) lie, nanoseconds, within 3 %.
    #[must_use]
    pub fn percentile_ns(&self, quantile: f64) -> Option<u64> {
        Latencies::at(&self.latencies, quantile)
    }

    pub(crate) fn merge(&mut self, other: &Counts) {
        self.each(other, u64::saturating_add);
    }

    /// The counts since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Counts) -> Counts {
        let mut since = self.clone();
        since.each(earlier, u64::saturating_sub);
        since
    }

    fn each(&mut self, other: &Counts, with: fn(u64, u64) -> u64) {
        self.bytes = with(self.bytes, other.bytes);
        self.failed = with(self.failed, other.failed);
        self.latency_ns = with(self.latency_ns, other.latency_ns);
        self.unaligned = with(self.unaligned, other.unaligned);
        for (mine, &theirs) in self.sizes.iter_mut().zip(&other.sizes) {
            *mine = with(*mine, theirs);
        }
        self.latencies.resize(self.latencies.len().max(other.latencies.len()), 0);
        for (mine, &theirs) in self.latencies.iter_mut().zip(&other.latencies) {
            *mine = with(*mine, theirs);
        }
    }
}

impl PathCounters {
    /// Whether both have the same GPU, path and engine.
    pub(crate) fn same(&self, other: &PathCounters) -> bool {
        (self.gpu, &self.path, &self.engine) == (other.gpu, &other.path, &other.engine)
    }

    pub(crate) fn merge(&mut self, other: &PathCounters) {
        self.threads = self.threads.saturating_add(other.threads);
        self.files = self.files.saturating_add(other.files);
        self.registered = match (self.registered, other.registered) {
            (Some(one), Some(two)) => Some(one.saturating_add(two)),
            _ => None,
        };
        self.slots = self.slots.saturating_add(other.slots);
        self.in_flight = self.in_flight.saturating_add(other.in_flight);
        self.first_ns = match (self.first_ns, other.first_ns) {
            (0, began) | (began, 0) => began,
            (one, two) => one.min(two),
        };
        self.last_ns = self.last_ns.max(other.last_ns);
        self.read.merge(&other.read);
        self.write.merge(&other.write);
    }

    /// Seconds from the start of its first I/O to the completion of its last, with pauses.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a time in seconds")]
    pub fn seconds(&self) -> Option<f64> {
        let span = self.last_ns.checked_sub(self.first_ns).filter(|_| self.first_ns > 0)?;
        (span > 0).then_some(span as f64 / 1e9)
    }
}

impl Snapshot {
    /// The sum of all paths.
    #[must_use]
    pub fn total(&self) -> PathCounters {
        let zero = PathCounters { registered: Some(0), ..PathCounters::default() };
        self.paths.iter().fold(zero, |mut sum, counters| {
            sum.merge(counters);
            sum
        })
    }

    /// Buffers registered now on a GPU, or of host memory; none where they are not counted.
    #[must_use]
    pub fn registered_on(&self, gpu: Option<u32>) -> Option<u64> {
        let paths = self.paths.iter().filter(|counters| counters.gpu == gpu);
        paths
            .map(|counters| counters.registered)
            .try_fold(0_u64, |sum, one| Some(sum.saturating_add(one?)))
    }

    /// The sums of each GPU, in order of their numbers.
    #[must_use]
    pub fn gpus(&self) -> Vec<PathCounters> {
        let mut gpus: Vec<PathCounters> = Vec::new();
        for counters in self.paths.iter().filter(|counters| counters.gpu.is_some()) {
            match gpus.iter_mut().find(|gpu| gpu.gpu == counters.gpu) {
                Some(gpu) => gpu.merge(counters),
                None => gpus.push(counters.clone()),
            }
        }
        gpus.sort_by_key(|gpu| gpu.gpu);
        gpus
    }
}
