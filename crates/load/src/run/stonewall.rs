//! `wear_out`: when the run time is over, every thread continues until it has moved as many bytes
//! as the fastest. That number is sent to other processes, which are not waited for.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use gpuio_base::units::per_second;
use gpuio_io::clock::Nanos;
use gpuio_record::{JobPlan, Stonewall};

use super::gate::FirstDone;
use super::peers::Peers;

/// No worker moves this much.
const UNKNOWN: u64 = u64::MAX;

/// The stonewall of one job. Workers come to it one after another, each at its own look at the
/// clock; the run's own thread decides. Only `left` orders the other values.
pub(super) struct Wall {
    /// Workers that have not come to it.
    left: AtomicU32,
    /// Whether a worker ended before it.
    missed: AtomicBool,
    /// When the last worker came to it.
    at: AtomicU64,
    bytes: AtomicU64,
    /// The most that a worker had begun to move.
    largest: AtomicU64,
    /// Whether that was sent to the other processes.
    announced: AtomicBool,
    /// The bytes that each worker moves in all.
    goal: AtomicU64,
}

impl Wall {
    pub(super) fn new(workers: u32) -> Wall {
        Wall {
            left: AtomicU32::new(workers),
            missed: AtomicBool::new(false),
            at: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            largest: AtomicU64::new(0),
            announced: AtomicBool::new(false),
            goal: AtomicU64::new(UNKNOWN),
        }
    }

    /// A worker comes to it, which has moved and has begun to move so many bytes.
    pub(super) fn come(&self, at: Nanos, moved: u64, begun: u64) {
        self.at.fetch_max(at, Ordering::Relaxed);
        self.bytes.fetch_add(moved, Ordering::Relaxed);
        self.largest.fetch_max(begun, Ordering::Relaxed);
        self.left.fetch_sub(1, Ordering::Release);
    }

    /// A worker ends before it.
    pub(super) fn miss(&self) {
        self.missed.store(true, Ordering::Relaxed);
        self.left.fetch_sub(1, Ordering::Release);
    }

    /// The bytes that each worker moves in all, once that is known.
    pub(super) fn goal(&self) -> Option<u64> {
        Some(self.goal.load(Ordering::Relaxed)).filter(|goal| *goal != UNKNOWN)
    }

    /// Decides once all workers have come to it, those of other processes included.
    fn decide(&self, peers: Option<(&dyn Peers, usize)>) {
        if self.goal().is_some() || self.left.load(Ordering::Acquire) > 0 {
            return;
        }
        let largest = self.largest.load(Ordering::Relaxed);
        let goal = match peers {
            None => Some(largest),
            Some((peers, job)) => {
                if !self.announced.swap(true, Ordering::Relaxed) {
                    peers.at_stonewall(job, largest);
                }
                peers.wear_out(job)
            }
        };
        if let Some(goal) = goal {
            self.goal.store(goal, Ordering::Relaxed);
        }
    }

    /// The bytes moved until then; `from` is the end of the job's ramp.
    pub(super) fn result(&self, from: Nanos) -> Option<Stonewall> {
        let bytes_per_thread = self.goal()?;
        if self.missed.load(Ordering::Relaxed) {
            return None;
        }
        let time_ns = self.at.load(Ordering::Relaxed).saturating_sub(from);
        let bytes = self.bytes.load(Ordering::Relaxed);
        let bytes_per_s = per_second(bytes, time_ns);
        Some(Stonewall { time_ns, bytes, bytes_per_s, bytes_per_thread })
    }
}

/// Decides for the jobs of a group that have a stonewall.
pub(super) fn decide(jobs: &[JobPlan], firsts: &[FirstDone], peers: Option<&dyn Peers>) {
    for (nth, (_, first)) in jobs.iter().zip(firsts).enumerate().filter(|(_, (job, _))| is_of(job))
    {
        first.wall.decide(peers.map(|peers| (peers, nth)));
    }
}

/// Whether a job goes on after its time.
pub(super) fn is_of(job: &JobPlan) -> bool {
    job.stop.wear_out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_go_on_to_what_the_fastest_had_begun() {
        let wall = Wall::new(3);
        wall.come(1_000_000_100, 700, 800);
        wall.come(1_000_000_300, 900, 1000);
        wall.decide(None);
        assert_eq!(wall.goal(), None, "one is still on its way");
        wall.come(1_000_000_200, 100, 100);
        wall.decide(None);
        assert_eq!(wall.goal(), Some(1000));
        let result = wall.result(300).unwrap();
        assert_eq!((result.time_ns, result.bytes), (1_000_000_000, 1700));
        assert!((result.bytes_per_s - 1700.0).abs() < 1e-6);
        assert_eq!(result.bytes_per_thread, 1000);
    }

    #[test]
    fn a_worker_that_ends_before_leaves_no_result_and_none_waiting() {
        let wall = Wall::new(2);
        wall.miss();
        wall.come(10, 1, 1);
        wall.decide(None);
        assert_eq!((wall.goal(), wall.result(0)), (Some(1), None));
    }
}
