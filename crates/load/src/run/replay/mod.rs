//! Replays: workers that make recorded calls again, each when what it waits for is over.
//!
//! A worker has a lane of the script (`gpuio_job::workload::replay`) and asks [`LaneReader::look`]
//! before each call. Lanes tell one another of ends by [`Ends`], without a lock: a call that is
//! over marks its place, and who finds the first place that is not over yet counts on. A lane with
//! nothing in flight that has to wait looks for some microseconds and then sleeps. A lane that is
//! left before its last call ends the replay for all, since the others would wait for it.

mod ends;
mod lane;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use gpuio_job::workload::replay::Script;
use gpuio_record::{JobPlan, ReplayResult};

use ends::Ends;
pub(super) use lane::{LaneReader, Look};

/// The shared state of the threads of a replay.
pub(super) struct Replay {
    script: Arc<Script>,
    orders: Vec<Ends>,
    /// A lane was left before its last call.
    abandoned: AtomicBool,
    calls: AtomicU64,
    waited_ns: AtomicU64,
}

/// The replays of a group's jobs; nothing for the others.
pub(super) fn of(jobs: &[JobPlan], script: Option<&Arc<Script>>) -> Vec<Option<Replay>> {
    let of = |job: &JobPlan| job.replay.as_ref().and(script).map(Replay::new);
    jobs.iter().map(of).collect()
}

impl Replay {
    fn new(script: &Arc<Script>) -> Replay {
        Replay {
            orders: script.orders.iter().map(|calls| Ends::new(*calls)).collect(),
            script: Arc::clone(script),
            abandoned: AtomicBool::new(false),
            calls: AtomicU64::new(0),
            waited_ns: AtomicU64::new(0),
        }
    }

    pub(super) fn script(&self) -> &Script {
        &self.script
    }

    /// Its outcome, once all lanes are done.
    pub(super) fn result(&self) -> ReplayResult {
        ReplayResult {
            calls: self.calls.load(Ordering::Relaxed),
            waited_ns: self.waited_ns.load(Ordering::Relaxed),
        }
    }

    /// The others would wait for calls that are never made.
    fn abandon(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
        self.orders.iter().for_each(Ends::wake_all);
    }
}
