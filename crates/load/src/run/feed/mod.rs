//! Training feeds: readers that fill batches, and accelerators that take them; or, of a feed that
//! writes, accelerators that make batches, and readers that write them.
//!
//! A reader is a worker whose blocks come from `gpuio_job::workload::feed`; a batch is there when
//! its last block is in memory. One thread for each accelerator (`accelerator`) takes the batches
//! in order. The two exchange a batch's arrival and its being taken under the lock of the
//! accelerator's queue, once for each batch and never for an I/O.
//!
//! A reader that is as far ahead as the plan allows sleeps until its accelerator takes a batch; an
//! accelerator sleeps until its next batch is there. Either leaves by a guard, so that the other
//! sees its end, whatever it was.
//!
//! A feed may keep samples that were read in a tier of host memory ([`tier`]): its readers ask for
//! each sample where it is. Bytes that come from there are in no count of what the job read.

mod accelerator;
mod outcome;
mod reader;
mod rules;
mod tier;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use gpuio_base::stat::Histogram;
use gpuio_gpu::{Context, Pinned};
use gpuio_host::Root;
use gpuio_io::clock::Nanos;
use gpuio_job::workload::feed::Shape;
use gpuio_record::{DirectMode, FeedPlan, JobPlan};

pub(super) use accelerator::{Accelerated, Accelerators};
pub(super) use outcome::{Found, result};
pub(super) use reader::{FeedReader, Step};
pub(super) use rules::again as rules_of;

use super::RunError;
use tier::Tier;

/// Longest sleep between two looks for an end.
const LOOK: Duration = Duration::from_millis(50);

/// The shared state of the threads of a feed.
pub(super) struct Feed {
    plan: FeedPlan,
    shape: Shape,
    queues: Vec<Queue>,
    /// How often each unit was read in each epoch.
    counts: Vec<Box<[AtomicU8]>>,
    /// Bytes of units that were read in each epoch.
    bytes: Vec<AtomicU64>,
    /// When the last unit of each epoch was read or written, on the run's clock.
    ends: Vec<AtomicU64>,
    /// Nothing more is computed.
    ended: AtomicBool,
    meeting: Mutex<Meeting>,
    met: Condvar,
    /// One accelerator is calibrated at a time: two may share a GPU.
    calibrating: Mutex<()>,
    tier: Option<Tier>,
    /// Which of the gate's counters are those of its readers.
    live: Range<usize>,
    /// Whether all that the process reads from storage is read for this job.
    reads_alone: bool,
    /// Bytes that the process had read from storage before any reader began.
    storage_before: OnceLock<Option<u64>>,
}

/// The batches of an accelerator.
struct Queue {
    /// Steps that it has taken, or made: what readers may go by.
    taken: AtomicU64,
    state: Mutex<QueueState>,
    changed: Condvar,
}

struct QueueState {
    readers: Vec<ReaderState>,
    /// From the first I/O of a batch to its last byte, without work of gpuio's own between them.
    batch_read: Histogram,
    /// Time in which readers were as far ahead as they may be, of those that are over.
    rested_ns: Nanos,
}

#[derive(Debug, Clone, Copy, Default)]
struct ReaderState {
    /// Its steps below this one are there.
    read_before: u64,
    left: bool,
}

/// Where accelerators wait for one another after each step.
struct Meeting {
    step: u64,
    arrived: u32,
    /// Accelerators that are still at work.
    at_work: u32,
}

fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic elsewhere leaves these plain values whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The feeds of a group's jobs; `live` says which of the gate's counters are those of each.
///
/// # Errors
/// The memory of a tier could not be had.
pub(super) fn of(
    jobs: &[JobPlan],
    live: &[Range<usize>],
    contexts: &BTreeMap<u32, Context>,
) -> Result<Vec<Option<Feed>>, RunError> {
    let of = |(at, (job, live)): (usize, (&JobPlan, &Range<usize>))| {
        let Some(plan) = &job.feed else { return Ok(None) };
        let live = (live.clone(), reads_alone(jobs, at));
        Ok(Some(Feed::new(plan, Tier::open(job, contexts)?, live)))
    };
    jobs.iter().zip(live).enumerate().map(of).collect()
}

/// Whether all that the process reads from storage is read for the job `at` of its group.
fn reads_alone(jobs: &[JobPlan], at: usize) -> bool {
    jobs.iter().enumerate().all(|(other, job)| other == at || reads_nothing(job))
}

/// Whether the process reads nothing from storage for a job while the clock runs. A write through
/// the page cache may read the rest of its page.
fn reads_nothing(job: &JobPlan) -> bool {
    job.read_percent == 0 && job.replay.is_none() && job.direct == DirectMode::Direct
}

/// Bytes that this process has read from storage so far (`/proc/self/io`); `None` where that can't
/// be read.
fn storage_read() -> Option<u64> {
    let sample = gpuio_host::proc_io::sample(&Root::live()).ok().flatten();
    sample.map(|sample| sample.total.storage_read_bytes)
}

impl Feed {
    fn new(plan: &FeedPlan, tier: Option<Tier>, (live, reads_alone): (Range<usize>, bool)) -> Feed {
        let shape = Shape::new(plan);
        let queue = |_| Queue {
            taken: AtomicU64::new(0),
            state: Mutex::new(QueueState {
                readers: vec![ReaderState::default(); plan.readers as usize],
                batch_read: Histogram::default(),
                rested_ns: 0,
            }),
            changed: Condvar::new(),
        };
        let counts = |_| (0..shape.units()).map(|_| AtomicU8::new(0)).collect();
        Feed {
            queues: (0..plan.accelerators).map(queue).collect(),
            counts: (0..plan.epochs).map(counts).collect(),
            bytes: (0..plan.epochs).map(|_| AtomicU64::new(0)).collect(),
            ends: (0..plan.epochs).map(|_| AtomicU64::new(0)).collect(),
            ended: AtomicBool::new(false),
            meeting: Mutex::new(Meeting { step: 0, arrived: 0, at_work: plan.accelerators }),
            met: Condvar::new(),
            calibrating: Mutex::new(()),
            tier,
            live,
            reads_alone,
            storage_before: OnceLock::new(),
            plan: plan.clone(),
            shape,
        }
    }

    /// The start is about to be announced: no reader has begun.
    pub(super) fn begins(&self) {
        self.storage_before.get_or_init(|| storage_read().filter(|_| self.reads_alone));
    }

    /// The memory of its tier, for the paths of its readers.
    pub(super) fn tier_memory(&self) -> Option<Arc<Pinned>> {
        self.tier.as_ref().map(Tier::memory)
    }

    /// Batches that an accelerator's readers may be ahead of it, or behind it, in steps.
    fn ahead(&self) -> u64 {
        u64::from(self.plan.readers) * u64::from(self.plan.prefetch)
    }

    /// The step whose batch has to be there before an accelerator begins this one: its own, or the
    /// one whose memory it writes into.
    fn awaited(&self, step: u64) -> Option<u64> {
        if self.plan.writes { step.checked_sub(self.ahead()) } else { Some(step) }
    }

    fn queue(&self, accelerator: u32) -> &Queue {
        &self.queues[accelerator as usize]
    }

    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// A unit of this epoch is in memory, all of it, or written, since that moment.
    fn count(&self, epoch: u64, unit: u64, since: Nanos) {
        let at = |index: u64| usize::try_from(index).unwrap_or(usize::MAX);
        let Some(counts) = self.counts.get(at(epoch)) else { return };
        if let Some(count) = counts.get(at(unit)) {
            // Where samples are drawn, two readers may have the same one: none is lost.
            let _ = count
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| count.checked_add(1));
        }
        if let Some(bytes) = self.bytes.get(at(epoch)) {
            bytes.fetch_add(self.shape.read_bytes(unit), Ordering::Relaxed);
        }
        if let Some(end) = self.ends.get(at(epoch)) {
            end.fetch_max(since, Ordering::Relaxed);
        }
    }

    /// Nothing more is computed: all that wait go on.
    fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
        for queue in &self.queues {
            // With the lock, so that none that is about to wait misses it.
            drop(hold(&queue.state));
            queue.changed.notify_all();
        }
        drop(hold(&self.meeting));
        self.met.notify_all();
    }

    /// Waits until all accelerators have made this step; false where the feed has ended.
    fn meet(&self, step: u64) -> bool {
        let mut meeting = hold(&self.meeting);
        meeting.arrived += 1;
        if meeting.arrived == self.plan.accelerators {
            (meeting.step, meeting.arrived) = (step + 1, 0);
            self.met.notify_all();
            return true;
        }
        while meeting.step <= step && !self.has_ended() {
            let woken = self.met.wait_timeout(meeting, LOOK);
            meeting = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        meeting.step > step
    }

    /// Waits until the last accelerator has left.
    pub(super) fn await_end(&self) {
        let mut meeting = hold(&self.meeting);
        while meeting.at_work > 0 {
            let woken = self.met.wait_timeout(meeting, LOOK);
            meeting = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Called by each accelerator as it leaves.
    fn leave(&self) {
        hold(&self.meeting).at_work -= 1;
        self.met.notify_all();
    }
}
