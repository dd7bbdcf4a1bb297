//! Where workers wait for each other and for the run.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gpuio_io::clock::{Clock, Nanos};
use gpuio_stat::Live;

/// How far a group has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Workers open their files and memory.
    Opening,
    /// They run from this moment on the run's clock.
    Running(Nanos),
    /// All have stopped the clock: verification may touch storage.
    After,
    /// Somebody failed before the start: everybody goes home.
    Abandoned,
}

/// What the threads of a group share. Workers only load `stop` and `epoch` while the clock runs.
#[derive(Debug)]
pub(crate) struct Gate {
    pub(crate) clock: Clock,
    /// Set by an interrupt, also while data is verified: workers start nothing more.
    pub(crate) stop: Arc<AtomicBool>,
    /// Raised by the sampler each interval: workers then hand their recent latencies over.
    pub(super) epoch: AtomicU32,
    /// One page per worker of the group, in order.
    pub(super) live: Vec<Live>,
    stage: Mutex<Stage>,
    turn: Condvar,
    running: Mutex<u32>,
    finished: Condvar,
}

fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic elsewhere leaves these plain values whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Gate {
    pub(crate) fn new(clock: Clock, workers: u32, stop: Arc<AtomicBool>) -> Gate {
        Gate {
            clock,
            stop,
            epoch: AtomicU32::new(0),
            live: (0..workers).map(|_| Live::default()).collect(),
            stage: Mutex::new(Stage::Opening),
            turn: Condvar::new(),
            running: Mutex::new(workers),
            finished: Condvar::new(),
        }
    }

    pub(crate) fn open(&self, stage: Stage) {
        *hold(&self.stage) = stage;
        self.turn.notify_all();
    }

    /// Waits until the group has left `Opening`.
    pub(crate) fn await_start(&self) -> Stage {
        let mut stage = hold(&self.stage);
        while *stage == Stage::Opening {
            stage = self.turn.wait(stage).unwrap_or_else(PoisonError::into_inner);
        }
        *stage
    }

    /// Waits until every worker of the group has stopped the clock.
    pub(super) fn await_after(&self) {
        let mut stage = hold(&self.stage);
        while !matches!(*stage, Stage::After | Stage::Abandoned) {
            stage = self.turn.wait(stage).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// What a worker holds while it runs; dropping it says that it has stopped the clock. A guard,
    /// so that a worker that panics does not leave the others waiting for ever.
    pub(super) fn running(&self) -> Running<'_> {
        Running(self)
    }

    /// Waits until all workers are done, at most `patience`; true when they are.
    pub(super) fn await_done(&self, patience: Duration) -> bool {
        let running = hold(&self.running);
        let (running, _) = self
            .finished
            .wait_timeout_while(running, patience, |running| *running > 0)
            .unwrap_or_else(PoisonError::into_inner);
        *running == 0
    }
}

/// A worker that runs.
#[derive(Debug)]
pub(super) struct Running<'a>(&'a Gate);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        *hold(&self.0.running) -= 1;
        self.0.finished.notify_all();
    }
}

/// The end of a job: when its first worker was done, what all of them had moved by then, and
/// whether the run's thread has seen enough of it.
#[derive(Debug, Default)]
pub(super) struct FirstDone {
    at: AtomicU64,
    bytes: AtomicU64,
    /// The job has settled: its workers start nothing more.
    pub(super) settled: AtomicBool,
}

impl FirstDone {
    /// Called by each worker when it is done; only the first call counts.
    pub(super) fn note(&self, at: Nanos, counted: impl FnOnce() -> u64) {
        let at = at.max(1);
        if self.at.compare_exchange(0, at, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            self.bytes.store(counted(), Ordering::Relaxed);
        }
    }

    /// Time on the run's clock and bytes; `None` when no worker got that far.
    pub(super) fn get(&self) -> Option<(Nanos, u64)> {
        let at = self.at.load(Ordering::Relaxed);
        (at > 0).then(|| (at, self.bytes.load(Ordering::Relaxed)))
    }
}
