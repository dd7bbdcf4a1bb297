//! The agreements of ranks while they run: whether a job has become steady on all of them, where
//! rank 0 adds up what they count, and how far all go on after a stonewall, where it takes the
//! largest number. Messages are not waited for: some hundred bytes per check of the criterion, one
//! a second by default.

use std::collections::BTreeMap;

use gpuio_load::ranks::Ranks;
use gpuio_load::run::{Interval, SteadyWindow};
use gpuio_record::{JobPlan, Steady};
use serde::{Deserialize, Serialize};

use super::{parse, to_bytes};

/// Messages between ranks. Each carries its start's number, because messages of an earlier start
/// may still arrive.
#[derive(Debug, Serialize, Deserialize)]
enum Post {
    /// From a rank: the job, the number of the interval, and [`Interval`].
    Part { start: u32, job: usize, nth: u64, part: (u64, f64, f64, u64) },
    /// From rank 0: the job is steady.
    Steady { start: u32, job: usize, steady: Steady },
    /// From a rank: the most bytes that one of its threads had reached at the stonewall.
    Wall { start: u32, job: usize, bytes: u64 },
    /// From rank 0: the most of all.
    WearOut { start: u32, job: usize, bytes: u64 },
}

/// The jobs of the running group.
#[derive(Debug, Default)]
pub(super) struct Agreement {
    start: u32,
    jobs: Vec<OfJob>,
}

#[derive(Debug, Default)]
struct OfJob {
    /// On rank 0, where the job has a criterion.
    window: Option<SteadyWindow>,
    /// Intervals of which not all ranks have sent their part: by number, by rank.
    parts: BTreeMap<u64, BTreeMap<u32, Interval>>,
    next: u64,
    steady: Option<Steady>,
    /// The ranks' messages about the stonewall; on rank 0.
    walls: BTreeMap<u32, u64>,
    wear_out: Option<u64>,
}

impl Agreement {
    /// A group starts.
    pub(super) fn begin(&mut self, jobs: &[JobPlan], is_first: bool) {
        self.start += 1;
        let of = |job: &JobPlan| OfJob {
            window: job.steady.as_ref().filter(|_| is_first).map(SteadyWindow::new),
            ..OfJob::default()
        };
        self.jobs = jobs.iter().map(of).collect();
    }

    /// This rank's part of an interval.
    pub(super) fn counted(&mut self, ranks: &Ranks, job: usize, nth: u64, part: Interval) {
        if ranks.rank() == 0 {
            self.add(ranks, job, nth, (0, part));
            return;
        }
        let part = (part.at_ns, part.per_s, part.latency_ns, part.ios);
        ranks.post(&to_bytes(&Post::Part { start: self.start, job, nth, part }));
    }

    /// The decision about a job.
    pub(super) fn of(&mut self, ranks: &Ranks, job: usize) -> Option<Steady> {
        self.take(ranks);
        self.jobs.get(job)?.steady
    }

    /// All threads of this rank have come to the stonewall of a job.
    pub(super) fn at_stonewall(&mut self, ranks: &Ranks, job: usize, bytes: u64) {
        if ranks.rank() == 0 {
            self.add_wall(ranks, job, (0, bytes));
        } else {
            ranks.post(&to_bytes(&Post::Wall { start: self.start, job, bytes }));
        }
    }

    /// How many bytes each thread of a job moves, once all ranks have come to its stonewall.
    pub(super) fn wear_out(&mut self, ranks: &Ranks, job: usize) -> Option<u64> {
        self.take(ranks);
        self.jobs.get(job)?.wear_out
    }

    fn take(&mut self, ranks: &Ranks) {
        for (from, bytes) in ranks.posted() {
            match parse(&bytes) {
                Some(Post::Part { start, job, nth, part }) if start == self.start => {
                    let (at_ns, per_s, latency_ns, ios) = part;
                    let part = Interval { at_ns, per_s, latency_ns, ios };
                    self.add(ranks, job, nth, (from, part));
                }
                Some(Post::Steady { start, job, steady }) if start == self.start => {
                    if let Some(job) = self.jobs.get_mut(job) {
                        job.steady = Some(steady);
                    }
                }
                Some(Post::Wall { start, job, bytes }) if start == self.start => {
                    self.add_wall(ranks, job, (from, bytes));
                }
                Some(Post::WearOut { start, job, bytes }) if start == self.start => {
                    if let Some(job) = self.jobs.get_mut(job) {
                        job.wear_out = Some(bytes);
                    }
                }
                _ => {}
            }
        }
    }

    fn add_wall(&mut self, ranks: &Ranks, at: usize, said: (u32, u64)) {
        let (start, all) = (self.start, ranks.size() as usize);
        let Some(job) = self.jobs.get_mut(at) else { return };
        if let Some(bytes) = job.add_wall(said, all) {
            ranks.post(&to_bytes(&Post::WearOut { start, job: at, bytes }));
        }
    }

    fn add(&mut self, ranks: &Ranks, at: usize, nth: u64, (from, part): (u32, Interval)) {
        let (start, all) = (self.start, ranks.size() as usize);
        let Some(job) = self.jobs.get_mut(at) else { return };
        if let Some(steady) = job.add(nth, (from, part), all) {
            ranks.post(&to_bytes(&Post::Steady { start, job: at, steady }));
        }
    }
}

impl OfJob {
    /// Adds what a rank says; the largest number once all have said theirs.
    fn add_wall(&mut self, (from, bytes): (u32, u64), ranks: usize) -> Option<u64> {
        self.walls.insert(from, bytes);
        self.wear_out = self.walls.values().max().copied().filter(|_| self.walls.len() == ranks);
        self.wear_out
    }

    /// Adds a part; the result once the job has become steady by it.
    fn add(&mut self, nth: u64, (from, part): (u32, Interval), ranks: usize) -> Option<Steady> {
        let window = self.window.as_mut()?;
        if self.steady.is_some_and(|steady| steady.attained_at_ns.is_some()) {
            return None;
        }
        self.parts.entry(nth).or_default().insert(from, part);
        while self.parts.get(&self.next).is_some_and(|parts| parts.len() == ranks) {
            let parts = self.parts.remove(&self.next).unwrap_or_default();
            window.add(&parts.into_values().collect::<Vec<_>>());
            self.next += 1;
        }
        self.steady = Some(window.result());
        self.steady.filter(|steady| steady.attained_at_ns.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpuio_record::{SteadyFigure, SteadyPlan};

    fn part(at_ns: u64, per_s: f64) -> Interval {
        Interval { at_ns, per_s, latency_ns: 0.0, ios: 1 }
    }

    #[test]
    fn after_a_stonewall_all_go_on_to_the_largest_number() {
        let mut job = OfJob::default();
        assert_eq!(job.add_wall((1, 700), 3), None);
        assert_eq!(job.add_wall((0, 300), 3), None);
        assert_eq!(job.add_wall((2, 500), 3), Some(700));
        assert_eq!(job.wear_out, Some(700));
    }

    #[test]
    fn an_interval_counts_once_all_ranks_have_sent_theirs() {
        let plan = SteadyPlan {
            requested: "bw:1%".to_owned(),
            of: SteadyFigure::Bandwidth,
            slope: false,
            limit: 1.0,
            percent: true,
            window_ns: 2,
            ramp_ns: 0,
            check_ns: 1,
        };
        let window = Some(SteadyWindow::new(&plan));
        let mut job = OfJob { window, ..OfJob::default() };
        // Rank 0 is ahead; rank 1 sends what makes the sum steady.
        assert_eq!(job.add(0, (0, part(1, 100.0)), 2), None);
        assert_eq!(job.add(1, (0, part(2, 200.0)), 2), None);
        assert_eq!(job.add(2, (0, part(3, 300.0)), 2), None);
        assert_eq!(job.steady.unwrap().checks, 0, "nothing is known of rank 1");
        assert_eq!(job.add(0, (1, part(1, 200.0)), 2), None);
        let steady = job.add(1, (1, part(5, 100.0)), 2).unwrap();
        assert_eq!((steady.attained_at_ns, steady.mean), (Some(5), Some(300.0)));
        assert_eq!(job.add(2, (1, part(6, 900.0)), 2), None, "it is decided");
    }
}
