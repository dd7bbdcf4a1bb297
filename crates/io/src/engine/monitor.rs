//! Counts what comes back, live, for other threads to look at.

use super::{Done, Engine, EngineError, Io, Op, Push};
use gpuio_base::stat::add_single_writer;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// One direction's counters. All only grow.
#[derive(Debug, Default)]
pub struct OpCounters {
    /// I/Os that came back without a fault.
    pub ios: AtomicU64,
    /// Bytes that those moved.
    pub bytes: AtomicU64,
    /// I/Os that came back with a fault.
    pub faults: AtomicU64,
}

/// The counts of one worker's engine so far.
///
/// One thread writes: the one that drives the engine. Any thread reads, with
/// `Ordering::Relaxed`; counters read together may be a batch of I/Os apart. Aligned to two
/// cache lines, since x86 prefetches lines in pairs, so that workers do not slow each other.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct LegCounters {
    /// File to memory.
    pub read: OpCounters,
    /// Memory to file.
    pub write: OpCounters,
    /// I/Os that the kernel cut short at least once and [`super::whole`] continued.
    pub short_ios: AtomicU64,
    /// Faults that [`super::fault`] made.
    pub injected: InjectedCounters,
}

/// Faults by kind.
#[derive(Debug, Default)]
pub struct InjectedCounters {
    /// I/Os that ended with EIO.
    pub eio: AtomicU64,
    /// Writes that ended with ENOSPC.
    pub enospc: AtomicU64,
    /// Writes that were reported as done and not made.
    pub lost: AtomicU64,
    /// Transfers that were cut.
    pub short: AtomicU64,
    /// I/Os that came back late.
    pub delay: AtomicU64,
    /// I/Os that were requested in the stall.
    pub stall: AtomicU64,
}

impl LegCounters {
    /// The counters of one direction.
    pub fn of(&self, op: Op) -> &OpCounters {
        match op {
            Op::Read => &self.read,
            Op::Write => &self.write,
        }
    }
}

/// The counting decorator; the outermost, so it sees each I/O once and whole.
pub struct Monitor {
    inner: Box<dyn Engine>,
    counters: Arc<LegCounters>,
}

impl std::fmt::Debug for Monitor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Monitor").field("counters", &self.counters).finish_non_exhaustive()
    }
}

/// A batch summed in registers before the counters are touched.
#[derive(Default, Clone, Copy)]
struct Sum {
    ios: u64,
    bytes: u64,
    faults: u64,
}

impl Sum {
    #[inline]
    fn count(&mut self, done: &Done) {
        match done.result {
            Ok(bytes) => {
                self.ios += 1;
                self.bytes += u64::from(bytes);
            }
            Err(_) => self.faults += 1,
        }
    }

    #[inline]
    fn add_to(self, counters: &OpCounters) {
        if self.ios > 0 {
            add_single_writer(&counters.ios, self.ios);
            add_single_writer(&counters.bytes, self.bytes);
        }
        if self.faults > 0 {
            add_single_writer(&counters.faults, self.faults);
        }
    }
}

impl Monitor {
    /// Counts into `counters`, which nothing else writes.
    pub fn new(inner: Box<dyn Engine>, counters: Arc<LegCounters>) -> Monitor {
        Monitor { inner, counters }
    }

    fn count(&self, batch: &[Done]) {
        let (mut read, mut write) = (Sum::default(), Sum::default());
        for done in batch {
            match done.io.op {
                Op::Read => read.count(done),
                Op::Write => write.count(done),
            }
        }
        read.add_to(&self.counters.read);
        write.add_to(&self.counters.write);
    }
}

impl Engine for Monitor {
    #[inline]
    fn push(&mut self, io: Io) -> Push {
        let push = self.inner.push(io);
        if let Push::Done(done) = &push {
            let mut sum = Sum::default();
            sum.count(done);
            sum.add_to(self.counters.of(done.io.op));
        }
        push
    }

    fn submit(&mut self) -> Result<(), EngineError> {
        self.inner.submit()
    }

    fn reap(&mut self, done: &mut Vec<Done>, at_least: usize) -> Result<(), EngineError> {
        let from = done.len();
        let outcome = self.inner.reap(done, at_least);
        // Counted even when the engine broke: these I/Os did come back.
        self.count(&done[from..]);
        outcome
    }

    fn wait_timeout(&mut self, timeout: Duration) -> Result<(), EngineError> {
        self.inner.wait_timeout(timeout)
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight()
    }

    fn synchronous(&self) -> bool {
        self.inner.synchronous()
    }
}
