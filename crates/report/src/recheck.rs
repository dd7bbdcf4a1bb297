//! Whether the figures of a record follow from its own counts.
//!
//! A reader who was given a record can't repeat the run. This recomputes what was derived when the
//! record was made (rates, percentiles, sums, agreement of evidence) from what was counted. It
//! finds a record that was damaged or changed in one place, or that a faulty gpuio wrote. Who
//! changes all figures alike is not found: nothing here is evidence of a measurement.

use gpuio_base::stat::{Histogram, Percentile, Summary};
use gpuio_base::units::per_second;
use gpuio_record::{
    Assessment, BlockShare, DirectionResult, EndedHow, Evidence, JobPlan, JobResult, Record,
    Towards,
};

/// The comparison, and the differences that it found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recheck {
    /// How many figures were recomputed.
    pub compared: usize,
    /// Figures that do not follow, a sentence each: the job, the figure, and what it should be.
    pub wrong: Vec<String>,
}

/// Relative difference of two computed figures that is rounding.
const ROUNDING: f64 = 1e-6;

/// Recomputes the figures of a record. Looks at nothing but the record.
#[must_use]
pub fn recheck(record: &Record) -> Recheck {
    let mut all = Recheck::default();
    let (planned, ran) = (record.plan.jobs.len(), record.jobs.len());
    // A journal, and a run that errors or a signal ended, have results of the first jobs only.
    if record.ended == EndedHow::Complete {
        all.equal("the run", "results of jobs", ran as u64, planned as u64);
    }
    for (plan, job) in record.plan.jobs.iter().zip(&record.jobs) {
        all.job(plan, job, record.ranks.is_some());
    }
    for total in &record.totals {
        let jobs = || record.jobs.iter().filter(|job| job.group == total.group);
        for (side, total_of, of) in [
            ("reads", &total.read, (|job| &job.read) as fn(&JobResult) -> &DirectionResult),
            ("writes", &total.write, |job| &job.write),
        ] {
            let about = format!("the total of group {}, {side}", total.group);
            let sum = |figure: fn(&DirectionResult) -> u64| {
                jobs().map(|job| figure(of(job))).fold(0, u64::saturating_add)
            };
            all.equal(&about, "I/Os", total_of.ios, sum(|one| one.ios));
            all.equal(&about, "bytes", total_of.bytes, sum(|one| one.bytes));
            all.equal(&about, "failed I/Os", total_of.failed, sum(|one| one.failed));
        }
    }
    all
}

impl Recheck {
    fn equal(&mut self, about: &str, figure: &str, recorded: u64, counted: u64) {
        self.compared += 1;
        if recorded != counted {
            let difference = format!("{recorded} recorded, {counted} by its counts");
            self.wrong.push(format!("{about}: {figure}: {difference}"));
        }
    }

    fn close(&mut self, about: &str, figure: &str, recorded: f64, computed: f64) {
        self.compared += 1;
        let is_close = (recorded - computed).abs() <= computed.abs() * ROUNDING;
        if !is_close {
            let difference = format!("{recorded} recorded, {computed} by its counts");
            self.wrong.push(format!("{about}: {figure}: {difference}"));
        }
    }

    fn job(&mut self, plan: &JobPlan, job: &JobResult, merged: bool) {
        let name = &job.name;
        let directions = [(Towards::Read, &job.read), (Towards::Write, &job.write)];
        for (towards, side) in directions {
            let about = format!(
                "job '{name}', {}",
                match towards {
                    Towards::Read => "reads",
                    Towards::Write => "writes",
                }
            );
            // The ranks of a merged record ended at different times of their own.
            if !merged {
                let over = job.last_done_ns;
                self.close(
                    &about,
                    "bytes per second",
                    side.bytes_per_s,
                    per_second(side.bytes, over),
                );
                self.close(&about, "IOPS", side.iops, per_second(side.ios, over));
            }
            if plan.feed.is_none() && plan.replay.is_none() {
                self.sizes(&about, plan.sizes_of(towards == Towards::Write), side);
            }
            self.latencies(&about, side);
        }
        let about = format!("job '{name}'");
        for towards in [Towards::Read, Towards::Write] {
            self.points(&about, plan, job, towards);
        }
        let bytes = job.read.bytes.saturating_add(job.write.bytes);
        let ios = job.read.ios.saturating_add(job.write.ios);
        let add = u64::saturating_add;
        if !job.workers.is_empty() {
            let workers = || job.workers.iter();
            self.equal(
                &about,
                "bytes of its threads",
                workers().map(|it| it.bytes).fold(0, add),
                bytes,
            );
            self.equal(&about, "I/Os of its threads", workers().map(|it| it.ios).fold(0, add), ios);
        }
        if !job.gpus.is_empty() {
            let gpus = || job.gpus.iter();
            self.equal(&about, "bytes of its GPUs", gpus().map(|it| it.bytes).fold(0, add), bytes);
            self.equal(&about, "I/Os of its GPUs", gpus().map(|it| it.ios).fold(0, add), ios);
        }
        self.equal(&about, "failed I/Os", job.failed, add(job.read.failed, job.write.failed));
        if let Some(proof) = &job.proof {
            self.compared += 1;
            let contradicts = |it: &&Evidence| it.assessment == Assessment::Contradicts;
            if let Some(other) =
                proof.evidence.iter().find(contradicts).filter(|_| proof.as_requested)
            {
                let (name, why) = (&other.name, &other.why);
                self.wrong.push(format!(
                    "{about}: path as requested, but evidence '{name}' contradicts: {why}"
                ));
            }
        }
        if let Some(verify) = &job.verify {
            self.compared += 1;
            if verify.bad_blocks == 0 && !verify.mismatches.is_empty() {
                let mismatches = verify.mismatches.len();
                self.wrong.push(format!("{about}: no bad block, but {mismatches} mismatches"));
            }
        }
    }

    /// The series has all that the result has, and the ramp.
    fn points(&mut self, about: &str, plan: &JobPlan, job: &JobResult, towards: Towards) {
        if job.series.is_empty() || plan.feed.is_some() {
            return;
        }
        let side = match towards {
            Towards::Read => &job.read,
            Towards::Write => &job.write,
        };
        let points = job.series.iter().map(|point| point.bytes(towards));
        let sum = points.fold(0, u64::saturating_add);
        self.compared += 1;
        if sum < side.bytes || (plan.ramp_ns == 0 && sum != side.bytes) {
            let bytes = side.bytes;
            self.wrong.push(format!("{about}: {bytes} bytes, but {sum} in its series"));
        }
    }

    /// Bytes by I/Os and the largest block. The last I/O of a file may be shorter.
    fn sizes(&mut self, about: &str, blocks: &[BlockShare], side: &DirectionResult) {
        let Some(size) = blocks.iter().map(|block| block.max_bytes).max() else { return };
        self.compared += 1;
        if side.bytes > side.ios.saturating_mul(size) {
            let (bytes, ios) = (side.bytes, side.ios);
            self.wrong.push(format!("{about}: {bytes} bytes in {ios} I/Os of at most {size}"));
        }
    }

    fn latencies(&mut self, about: &str, side: &DirectionResult) {
        let Some(latency) = &side.latency else {
            return self.equal(about, "I/Os without latencies", side.ios, 0);
        };
        self.equal(about, "latencies", latency.total.count, side.ios);
        let parts = [
            ("latency", Some(&latency.total)),
            ("latency of the queue", latency.queue.as_ref()),
            ("latency of the file leg", latency.file.as_ref()),
            ("latency of the GPU leg", latency.gpu.as_ref()),
        ];
        for (figure, summary) in parts {
            if let Some(summary) = summary.filter(|it| !it.buckets.is_empty()) {
                self.summary(about, figure, summary);
            }
        }
    }

    fn summary(&mut self, about: &str, figure: &str, summary: &Summary) {
        let counted = summary.buckets.iter().fold(0, |sum: u64, it| sum.saturating_add(it.1));
        self.equal(about, &format!("{figure}: values"), summary.count, counted);
        if summary.count != counted {
            return;
        }
        let buckets = Histogram::from_summary(summary);
        for at in Percentile::ALL {
            let (Some(recorded), Some(computed)) =
                (summary.percentile(at), buckets.percentile(at.quantile()))
            else {
                continue;
            };
            self.equal(about, &format!("{figure}, {}", at.label()), recorded, computed);
        }
        self.compared += 1;
        let [min, max] = [summary.min_ns, summary.max_ns].map(crate::number::float);
        if !(min <= summary.mean_ns && summary.mean_ns <= max) {
            let mean = summary.mean_ns;
            self.wrong
                .push(format!("{about}: {figure}: a mean of {mean} ns outside {min} to {max}"));
        }
    }
}
