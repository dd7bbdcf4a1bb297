//! Where workers wait for each other and for the run.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use gpuio_base::stat::{Live, LiveTotals};
use gpuio_io::clock::{Clock, Nanos};

use super::rusage::Usage;
use super::stonewall::Wall;

/// How far a group has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Workers open their files and memory.
    Opening,
    /// They run from this moment on the run's clock.
    Running(Nanos),
    /// All have stopped the clock: verification may touch storage.
    After,
    /// A worker failed before the start: all workers end.
    Abandoned,
}

/// The shared state of the threads of a group. While the clock runs, workers load `stop` and store
/// their counts in `live`; the last worker of a job also reads what all have counted.
pub(crate) struct Gate {
    pub(crate) clock: Clock,
    /// Set by an interrupt, also while data is verified: workers start nothing more.
    pub(crate) stop: Arc<AtomicBool>,
    /// One page per worker of the group, in order.
    pub(super) live: Vec<Live>,
    stage: Mutex<Stage>,
    changed: Condvar,
    running: Mutex<u32>,
    finished: Condvar,
    /// When the first job of the group was done, and what all workers had moved by then.
    first_end: OnceLock<(Nanos, LiveTotals)>,
    /// When the last worker began.
    last_began: AtomicU64,
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
            live: (0..workers).map(|_| Live::default()).collect(),
            stage: Mutex::new(Stage::Opening),
            changed: Condvar::new(),
            running: Mutex::new(workers),
            finished: Condvar::new(),
            first_end: OnceLock::new(),
            last_began: AtomicU64::new(0),
        }
    }

    pub(crate) fn open(&self, stage: Stage) {
        *hold(&self.stage) = stage;
        self.changed.notify_all();
    }

    /// Its holder ends the workers on every way out of the scope that joins them.
    pub(crate) fn until_joined(&self) -> UntilJoined<'_> {
        UntilJoined(self)
    }

    /// Waits until the group has left `Opening`.
    pub(crate) fn await_start(&self) -> Stage {
        let mut stage = hold(&self.stage);
        while *stage == Stage::Opening {
            stage = self.changed.wait(stage).unwrap_or_else(PoisonError::into_inner);
        }
        *stage
    }

    /// Waits until every worker of the group has stopped the clock.
    pub(super) fn await_after(&self) {
        let mut stage = hold(&self.stage);
        while !matches!(*stage, Stage::After | Stage::Abandoned) {
            stage = self.changed.wait(stage).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Called by each worker before its first I/O.
    pub(super) fn begins(&self, at: Nanos) {
        self.last_began.fetch_max(at, Ordering::Relaxed);
    }

    /// When the last worker began.
    pub(super) fn last_began(&self) -> Nanos {
        self.last_began.load(Ordering::Relaxed)
    }

    /// Called by the last worker of a job: the first call of a group counts.
    pub(super) fn job_done(&self) {
        self.first_end.get_or_init(|| {
            let mut all = LiveTotals::default();
            self.live.iter().for_each(|page| all += page.totals());
            (self.clock.now(), all)
        });
    }

    /// The end of the first job that was done; `None` where no job got that far.
    pub(super) fn first_end(&self) -> Option<(Nanos, LiveTotals)> {
        self.first_end.get().copied()
    }

    /// A guard that a worker holds while it runs; dropping it says that it has stopped the clock. A
    /// guard, so that a worker that panics does not leave the others waiting for ever.
    pub(super) fn running(&self) -> Running<'_> {
        Running(self)
    }

    /// Waits until all workers are done, at most `timeout`; true when they are.
    pub(super) fn await_done(&self, timeout: Duration) -> bool {
        let running = hold(&self.running);
        let (running, _) = self
            .finished
            .wait_timeout_while(running, timeout, |running| *running > 0)
            .unwrap_or_else(PoisonError::into_inner);
        *running == 0
    }
}

/// Abandons the group when it goes, unless all workers have stopped the clock.
pub(crate) struct UntilJoined<'a>(&'a Gate);

impl Drop for UntilJoined<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Nobody samples any more: what runs would go on to its own end, if it has one.
            self.0.stop.store(true, Ordering::Relaxed);
        }
        let abandon = *hold(&self.0.stage) != Stage::After;
        if abandon {
            self.0.open(Stage::Abandoned);
        }
    }
}

/// A worker that runs.
pub(super) struct Running<'a>(&'a Gate);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        *hold(&self.0.running) -= 1;
        self.0.finished.notify_all();
    }
}

/// The ends of a job: when its first worker was done and what all of them had moved by then, how
/// many are still at work, what the process used from the first that counted to the last that did,
/// and whether the run's thread has seen enough of it.
pub(super) struct FirstDone {
    at: AtomicU64,
    bytes: AtomicU64,
    left: AtomicU32,
    process: [OnceLock<Usage>; 2],
    /// The stonewall, of jobs that go on after it.
    pub(super) wall: Wall,
    /// The job has converged, or another one ended it: its workers start nothing more.
    pub(super) ended: AtomicBool,
}

impl FirstDone {
    pub(super) fn new(workers: u32) -> FirstDone {
        FirstDone {
            at: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            left: AtomicU32::new(workers),
            process: Default::default(),
            wall: Wall::new(workers),
            ended: AtomicBool::new(false),
        }
    }

    /// Called by each worker as its ramp ends; only the first call counts.
    pub(super) fn process_begins(&self) {
        self.process[0].get_or_init(Usage::of_process);
    }

    /// Called by each worker when it is done; true for the last of the job.
    pub(super) fn is_last(&self) -> bool {
        let last = self.left.fetch_sub(1, Ordering::AcqRel) == 1;
        if last {
            self.process[1].get_or_init(Usage::of_process);
        }
        last
    }

    /// The process's use while the job counted, where all its workers were done.
    pub(super) fn process_used(&self) -> Option<Usage> {
        let [from, until] = &self.process;
        Some(from.get()?.until(until.get()?))
    }

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

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::thread::scope;

    use super::*;

    /// Workers at both places where they wait for the run's thread, which fails or panics: the
    /// scope that joins them ends.
    #[test]
    fn workers_end_on_every_way_out_of_their_scope() {
        for panics in [false, true] {
            let gate = Gate::new(Clock::start(), 2, Arc::default());
            let run = || {
                scope(|scope| {
                    let _until_joined = gate.until_joined();
                    let waits: [fn(&Gate); 2] = [Gate::await_after, |gate| {
                        gate.await_start();
                    }];
                    let gate = &gate;
                    for wait in waits {
                        scope.spawn(move || wait(gate));
                    }
                    assert!(!panics, "the run's thread breaks");
                    Err::<(), _>("it fails")
                })
            };
            let ended = catch_unwind(AssertUnwindSafe(run));
            assert_eq!(ended.is_err(), panics);
            assert_eq!(gate.await_start(), Stage::Abandoned);
            assert_eq!(gate.stop.load(Ordering::Relaxed), panics, "what runs is stopped too");
        }
        let gate = Gate::new(Clock::start(), 0, Arc::default());
        gate.open(Stage::After);
        drop(gate.until_joined());
        assert_eq!(gate.await_start(), Stage::After);
    }
}
