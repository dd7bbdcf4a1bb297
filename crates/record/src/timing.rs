//! Times and rate of a job by its plan. Each question has one answer here, so that a key which
//! moves a time or holds I/Os back changes this file and no reader.

use crate::plan::{Arrivals, BlockShare, JobPlan, Pacing};
use crate::replay::ReplayPace;
use crate::result::JobResult;

impl JobPlan {
    /// When the last thread's first I/O is due, nanoseconds after the common start.
    pub fn latest_first_io_ns(&self) -> u64 {
        self.start_delay_ns
    }

    /// When its results begin to count, nanoseconds after the common start.
    pub fn measured_from_ns(&self) -> u64 {
        self.latest_first_io_ns().saturating_add(self.ramp_ns)
    }

    /// When its time is over, nanoseconds after the common start; `None` where it has none. Its
    /// bytes or a criterion may end it earlier.
    pub fn time_over_ns(&self) -> Option<u64> {
        Some(self.measured_from_ns().saturating_add(self.stop.runtime_ns?))
    }

    /// Whether a rate spaces its I/Os, or those of one direction.
    pub fn is_paced(&self) -> bool {
        self.pacing.is_some() || self.write_pacing.is_some()
    }

    /// Whether each thread starts an I/O as soon as another is back, as fast as the path can: no
    /// rate, no pause, no flush, no work between I/Os.
    pub fn is_unhindered(&self) -> bool {
        let habits = self.think.is_some() || self.flush.is_some();
        !self.is_paced() && !habits && !self.works_between_ios()
    }

    /// Whether none of its I/Os may be in flight for a while because the request says so: between
    /// arrivals at a rate, in pauses, or in those of the recorded program.
    pub fn may_rest(&self) -> bool {
        let recorded = |pace| pace == ReplayPace::Recorded;
        self.is_paced()
            || self.think.is_some()
            || self.replay.as_ref().is_some_and(|replay| recorded(replay.pace))
    }

    /// The mean size of an I/O by its blocks' shares, in bytes.
    pub fn mean_block_bytes(&self) -> u64 {
        mean_bytes(self.sizes())
    }

    /// The same of one direction's I/Os.
    pub fn mean_block_bytes_of(&self, writes: bool) -> u64 {
        mean_bytes(self.sizes_of(writes).iter())
    }

    /// The share of what its rate made due that this result has; `None` without a rate. Arrivals at
    /// random are as many as were drawn, where it is known which of these were never started.
    pub fn share_of_due(&self, result: &JobResult) -> Option<f64> {
        let of = |pacing: Option<&Pacing>, ios: u64, bytes: u64| {
            let pacing = pacing.filter(|it| it.iops.is_some() || it.bytes_per_s.is_some())?;
            let drawn = match (pacing.arrivals, result.never_started) {
                (Arrivals::Poisson, Some(never)) if ios > 0 => {
                    ios as f64 / (ios as f64 + never.ios as f64)
                }
                _ => 0.0,
            };
            // A merged result has the workers of all ranks, a broken one not all of the plan's.
            let workers = u32::try_from(result.workers.len()).unwrap_or(u32::MAX);
            let threads = self.threads.max(workers);
            Some(reached(pacing, threads, (ios, bytes), result.last_done_ns).max(drawn))
        };
        let (read, write) = (&result.read, &result.write);
        if self.write_pacing.is_none() {
            let (ios, bytes) = (read.ios + write.ios, read.bytes + write.bytes);
            return of(self.pacing.as_ref(), ios, bytes);
        }
        // The rate of two that is further away from its due.
        let reads = of(self.pacing.as_ref(), read.ios, read.bytes);
        let writes = of(self.write_pacing.as_ref(), write.ios, write.bytes);
        reads.into_iter().chain(writes).reduce(f64::min)
    }

    /// The percentage of reads: of two rates the one that they make, where they are of one unit and
    /// of blocks of one size.
    pub fn read_share(&self) -> Option<u64> {
        let Some(writes) = &self.write_pacing else { return Some(self.read_percent.into()) };
        let of_reads = self.pacing.as_ref()?;
        let ios = of_reads.iops.zip(writes.iops);
        let bytes = of_reads.bytes_per_s.zip(writes.bytes_per_s);
        let (reads, writes) = match (ios, bytes) {
            (Some(ios), None) => ios,
            (None, Some(bytes)) if self.write_blocks.is_empty() => bytes,
            _ => return None,
        };
        let (reads, writes) = (u128::from(reads), u128::from(writes));
        let both = (reads + writes).max(1);
        u64::try_from((reads * 100 + both / 2) / both).ok()
    }
}

fn mean_bytes<'b>(blocks: impl Iterator<Item = &'b BlockShare>) -> u64 {
    let (sum, shares) = blocks.fold((0, 0), |(sum, shares), block| {
        let middle = u128::from(block.min_bytes).midpoint(u128::from(block.max_bytes));
        let share = u128::from(block.percent);
        (sum + middle * share, shares + share)
    });
    u64::try_from(sum / shares.max(1)).unwrap_or(u64::MAX)
}

/// The share of a rate that so many threads reached with so many I/Os and bytes in so much time.
/// With two limits the one nearer to its bound held the load back.
fn reached(pacing: &Pacing, threads: u32, (ios, bytes): (u64, u64), elapsed_ns: u64) -> f64 {
    let seconds = elapsed_ns as f64 / 1e9 * f64::from(threads);
    let by_bytes = pacing.bytes_per_s.map(|rate| bytes as f64 / (rate as f64 * seconds));
    let by_ios = pacing.iops.map(|rate| ios as f64 / (rate as f64 * seconds));
    by_bytes.into_iter().chain(by_ios).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use crate::{
        Arrivals, BlockShare, FlushPlan, JobPlan, JobResult, NeverStarted, Pacing, Record,
        ThinkPlan, WorkerResult,
    };

    /// One thread that has neither rate nor pause, and its result.
    fn job() -> (JobPlan, JobResult) {
        let text = include_str!("../tests/record/merge/one_rank.json");
        let mut record: Record = serde_json::from_str(text).unwrap();
        (record.plan.jobs.remove(0), record.jobs.remove(0))
    }

    #[test]
    fn times_are_added_up_once() {
        let (mut plan, _) = job();
        (plan.start_delay_ns, plan.ramp_ns, plan.stop.runtime_ns) = (3, 20, Some(100));
        assert_eq!(plan.latest_first_io_ns(), 3);
        assert_eq!(plan.measured_from_ns(), 23);
        assert_eq!(plan.time_over_ns(), Some(123));
        plan.stop.runtime_ns = None;
        assert_eq!(plan.time_over_ns(), None);
    }

    #[test]
    fn two_rates_make_the_shares_of_a_mix() {
        let (mut plan, _) = job();
        plan.read_percent = 30;
        assert_eq!(plan.read_share(), Some(30));
        let rate =
            |bytes_per_s, iops| Some(Pacing { bytes_per_s, iops, arrivals: Arrivals::Steady });
        (plan.pacing, plan.write_pacing) = (rate(Some(2 << 20), None), rate(Some(1 << 20), None));
        assert_eq!(plan.read_share(), Some(67));
        plan.write_blocks = plan.blocks.clone();
        assert_eq!(plan.read_share(), None, "bytes of blocks of two sizes");
        (plan.pacing, plan.write_pacing) = (rate(None, Some(1)), rate(None, Some(3)));
        assert_eq!(plan.read_share(), Some(25));
        plan.pacing = None;
        assert_eq!(plan.read_share(), None, "reads have no rate");
    }

    #[test]
    fn what_holds_i_os_back() {
        let change = |change: fn(&mut JobPlan)| {
            let (mut plan, _) = job();
            assert!(plan.is_unhindered() && !plan.may_rest());
            change(&mut plan);
            (plan.is_unhindered(), plan.may_rest())
        };
        let rate = |plan: &mut JobPlan| {
            let arrivals = Arrivals::Steady;
            plan.pacing = Some(Pacing { bytes_per_s: None, iops: Some(1), arrivals });
        };
        let pause = |plan: &mut JobPlan| {
            plan.think = Some(ThinkPlan { pause_ns: 1, spin_ns: 0, every_ios: 1 });
        };
        let flush = |plan: &mut JobPlan| {
            plan.flush = Some(FlushPlan {
                every_ios: Some(1),
                data_only: false,
                at_end: false,
                at_close: false,
            });
        };
        assert_eq!(change(rate), (false, true));
        assert_eq!(change(pause), (false, true));
        assert_eq!(change(flush), (false, false));
        assert_eq!(change(|plan| plan.refill = true), (false, false));
    }

    #[test]
    fn blocks_have_a_mean_by_their_shares() {
        let (mut plan, _) = job();
        let share = |min_bytes, max_bytes, percent| BlockShare {
            min_bytes,
            max_bytes,
            step_bytes: 0,
            percent,
        };
        plan.blocks = vec![share(4096, 4096, 75), share(4096, 12288, 25)];
        assert_eq!(plan.mean_block_bytes(), 5120);
        plan.blocks = vec![share(u64::MAX, u64::MAX, 100)];
        assert_eq!(plan.mean_block_bytes(), u64::MAX);
        plan.blocks.clear();
        assert_eq!(plan.mean_block_bytes(), 0);
    }

    /// 10 s in which 500 I/Os of 4 KiB were done.
    #[test]
    fn the_share_of_a_rate() {
        let share = |threads, bytes_per_s, iops, arrivals, never: Option<u64>| {
            let (mut plan, mut result) = job();
            plan.threads = threads;
            plan.pacing = Some(Pacing { bytes_per_s, iops, arrivals });
            (result.read.ios, result.read.bytes) = (500, 500 * 4096);
            (result.write.ios, result.write.bytes) = (0, 0);
            result.last_done_ns = 10_000_000_000;
            let worker = |thread| WorkerResult { thread, bytes: 0, ios: 0, done_ns: 0 };
            result.workers = vec![worker(0), worker(1)];
            result.never_started = never.map(|ios| NeverStarted { ios, longest_wait_ns: 0 });
            plan.share_of_due(&result).unwrap()
        };
        assert_eq!(
            share(1, None, Some(50), Arrivals::Steady, None),
            0.5,
            "two threads had results"
        );
        assert_eq!(share(4, None, Some(50), Arrivals::Steady, None), 0.25, "two of four had none");
        assert_eq!(share(2, Some(204_800), None, Arrivals::Steady, Some(0)), 0.5);
        assert_eq!(share(2, Some(102_400), Some(50), Arrivals::Steady, None), 1.0);
        // 1,000 are due on average; of those drawn all but 125 were started.
        assert_eq!(share(2, None, Some(50), Arrivals::Poisson, Some(125)), 0.8);
        assert_eq!(share(2, None, Some(50), Arrivals::Steady, Some(125)), 0.5);
        let (plan, result) = job();
        assert_eq!(plan.share_of_due(&result), None);
    }
}
