//! Other processes that run the same plan at the same time: when they start together, and what they
//! learn of each other.

use std::fmt::Debug;

use gpuio_record::{JobPlan, JobResult, Steady};

use super::Ran;
use super::steady::Interval;

/// The other processes of a run. Called from the run's own thread. The calls that come while the
/// clock runs ([`Peers::moved`], [`Peers::interval`], [`Peers::steady`], [`Peers::at_stonewall`],
/// [`Peers::wear_out`], [`Peers::so_far`]) wait for no other process.
pub trait Peers: Sync + Debug {
    /// Waits for all processes, and returns what the first says. `what` names the exchange.
    ///
    /// # Errors
    /// Why the run ended.
    fn first_says(&self, what: &str, own: Vec<u8>) -> Result<Vec<u8>, String>;

    /// Waits for all processes; whether all say yes.
    ///
    /// # Errors
    /// Why the run ended.
    fn all(&self, what: &str, yes: bool) -> Result<bool, String>;

    /// This process can't go on: ends the run of all, for this reason unless it ended already.
    fn fail(&self, why: &str);

    /// All workers of these jobs, a group, have opened their paths. Waits until those of all
    /// processes have.
    ///
    /// # Errors
    /// Why there is no start.
    fn opened(&self, jobs: &[JobPlan]) -> Result<(), OpenError>;

    /// Instead of [`Peers::opened`]: these jobs, of a path that was not named, could not be opened
    /// here, so all processes leave them out.
    fn not_opened(&self, jobs: &[JobPlan], why: &str);

    /// Everything is ready but the start. Waits for all processes; when to start, in nanoseconds of
    /// `CLOCK_MONOTONIC` of this machine.
    ///
    /// # Errors
    /// Why there is no start.
    fn start(&self, jobs: &[JobPlan]) -> Result<u64, String>;

    /// Bytes that each job of the group has moved by this time on the same clock, after its ramp,
    /// and I/Os of all that have come back, ramp and failures included; at least every
    /// `READING_NS` as long as the clock runs.
    fn moved(&self, at_ns: u64, bytes: &[u64], ios: u64);

    /// Takes the counts of this process in the `nth` interval of a job that is to become steady; by
    /// the job's place in the group.
    fn interval(&self, job: usize, nth: u64, part: Interval);

    /// The common decision of all processes on that job; in the one that decides also before it is
    /// steady.
    fn steady(&self, job: usize) -> Option<Steady>;

    /// All workers of this process have come to the stonewall of a job that goes on after it; the
    /// most bytes that one of them had begun to move.
    fn at_stonewall(&self, job: usize, bytes: u64);

    /// The most of all processes, once all have come to it.
    fn wear_out(&self, job: usize) -> Option<u64>;

    /// Whether results so far are wanted now: about once in a second.
    fn wants_results(&self) -> bool;

    /// Results so far: of finished groups in `ran`, of the running one in `jobs`, without evidence
    /// and percentiles of parts.
    fn so_far(&self, ran: &Ran, jobs: Vec<JobResult>);

    /// This process's clock has stopped. Waits until those of all have, because verification would
    /// disturb them. `start` says how well the start was met.
    ///
    /// # Errors
    /// Why the others are not waited for.
    fn stopped(&self, start: Start) -> Result<(), String>;
}

/// Why a group does not start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenError {
    Ended(String),
    /// Another process can't open it: all leave it out.
    Elsewhere(String),
}

/// How a group started in one process; times in nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    pub agreed_ns: u64,
    /// When the last worker began.
    pub last_began_ns: u64,
    /// The offset to add to times of the run's clock.
    pub clock_began_ns: u64,
}

/// Between two readings for [`Peers::moved`], at most.
pub(super) const READING_NS: u64 = 20_000_000;
