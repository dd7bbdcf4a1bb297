//! Whether the figures of a record follow from its own counts.
//!
//! A reader who was given a record can't repeat the run. This recomputes what was derived when the
//! record was made (rates, percentiles, sums, agreement of evidence) from what was counted. It
//! finds a record that was damaged or changed in one place, or that a faulty gpuio wrote. Who
//! changes all figures alike is not found: nothing here is evidence of a measurement.

use gpuio_base::stat::{Histogram, Percentile, Summary};
use gpuio_base::units::per_second;
use gpuio_record::{
    Assessment, BlockShare, DirectionResult, DirectionTotal, EndedHow, Evidence, JobPlan,
    JobResult, Record, RunTotals, Towards,
};

/// The comparison, and the differences that it found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recheck {
    /// How many figures were recomputed.
    pub compared: usize,
    /// Figures that do not follow, a sentence each: the job, the figure, and what it should be.
    pub wrong: Vec<String>,
}

impl Recheck {
    /// A sentence on the figures that do not follow, if there are any.
    pub fn doubt(&self) -> Option<String> {
        let (count, first) = (self.wrong.len(), self.wrong.first()?);
        Some(format!(
            "Figures do not follow from what the run counted ({count} of {}): the record was \
             changed or damaged. The first: {first}. `gpuio show RECORD --check` names all",
            self.compared
        ))
    }
}

/// Relative difference of two computed figures that is rounding.
const ROUNDING: f64 = 1e-6;

/// Recomputes the figures of a record. Looks at nothing but the record.
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
            all.total(&about, total, total_of, jobs().map(of));
        }
    }
    all
}

impl Recheck {
    /// Counts a figure, and says what is wrong where it does not hold.
    fn check(&mut self, about: &str, holds: bool, words: impl FnOnce() -> String) {
        self.compared += 1;
        if !holds {
            self.wrong.push(format!("{about}: {}", words()));
        }
    }

    fn equal(&mut self, about: &str, figure: &str, recorded: u64, counted: u64) {
        self.check(about, recorded == counted, || {
            format!("{figure}: {recorded} recorded, {counted} by its counts")
        });
    }

    fn close(&mut self, about: &str, figure: &str, recorded: f64, computed: f64) {
        let is_close = (recorded - computed).abs() <= computed.abs() * ROUNDING;
        self.check(about, is_close, || {
            format!("{figure}: {recorded} recorded, {computed} by its counts")
        });
    }

    /// The rate of a total is over the time in which all its jobs ran, and has their bytes of that
    /// time, which are not recorded: at most all of them. Its latencies are those of its jobs.
    fn total<'a>(
        &mut self,
        about: &str,
        totals: &RunTotals,
        total: &DirectionTotal,
        jobs: impl Iterator<Item = &'a DirectionResult>,
    ) {
        let time = totals.common.map(|common| common.length_ns()).filter(|time| *time > 0);
        if let Some(time) = time {
            self.most(about, "bytes per second", total.bytes_per_s, per_second(total.bytes, time));
            self.most(about, "IOPS", total.iops, per_second(total.ios, time));
        }
        let Some(latency) = &total.latency else {
            return self.equal(about, "I/Os without latencies", total.ios, 0);
        };
        self.equal(about, "latencies", latency.total.count, total.ios);
        self.summary(about, "latency", &latency.total);
        let mut merged = Histogram::default();
        for one in jobs.filter_map(|job| job.latency.as_ref()) {
            merged.merge(&Histogram::from_summary(&one.total));
        }
        let figures = |all: &Summary| (all.count, all.min_ns, all.max_ns, all.buckets.clone());
        let holds = merged.summary().as_ref().map(figures) == Some(figures(&latency.total));
        self.check(about, holds, || "latency: other values than those of its jobs".to_owned());
    }

    fn most(&mut self, about: &str, figure: &str, recorded: Option<f64>, most: f64) {
        let recorded = recorded.unwrap_or_default();
        self.check(about, recorded <= most * (1.0 + ROUNDING), || {
            format!("{figure}: {recorded} recorded, at most {most}")
        });
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
        self.cost(&about, job, bytes, merged);
        let parts = [
            ("threads", job.workers.iter().map(|it| (it.bytes, it.ios)).collect::<Vec<_>>()),
            ("GPUs", job.gpus.iter().map(|it| (it.bytes, it.ios)).collect()),
        ];
        for (name, parts) in parts.into_iter().filter(|(_, parts)| !parts.is_empty()) {
            let sum = parts.iter().fold((0, 0), |sum: (u64, u64), part| {
                (sum.0.saturating_add(part.0), sum.1.saturating_add(part.1))
            });
            self.equal(&about, &format!("bytes of its {name}"), sum.0, bytes);
            self.equal(&about, &format!("I/Os of its {name}"), sum.1, ios);
        }
        self.equal(
            &about,
            "failed I/Os",
            job.failed,
            job.read.failed.saturating_add(job.write.failed),
        );
        if let Some(proof) = &job.proof {
            let contradicts = |it: &&Evidence| it.assessment == Assessment::Contradicts;
            let other = proof.evidence.iter().find(contradicts).filter(|_| proof.as_requested);
            self.check(&about, other.is_none(), || {
                let words = other.map(|it| format!("'{}' contradicts: {}", it.name, it.why));
                format!("path as requested, but evidence {}", words.unwrap_or_default())
            });
        }
        if let Some(verify) = &job.verify {
            let mismatches = verify.mismatches.len();
            self.check(&about, verify.bad_blocks > 0 || mismatches == 0, || {
                format!("no bad block, but {mismatches} mismatches")
            });
        }
    }

    fn cost(&mut self, about: &str, job: &JobResult, bytes: u64, merged: bool) {
        if merged || job.last_done_ns == 0 {
            return;
        }
        let busy = job.cpu.user_s + job.cpu.system_s;
        let seconds = crate::number::float(job.last_done_ns) / 1e9;
        self.close(about, "processors kept busy", job.cpu.cores_busy, busy / seconds);
        if let Some(cost) = job.cpu.us_per_mib {
            let mib = crate::number::float(bytes) / f64::from(1 << 20);
            self.close(about, "CPU time per MiB", cost, busy * 1e6 / mib);
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
        let bytes = side.bytes;
        self.check(about, sum == bytes || (plan.ramp_ns > 0 && sum > bytes), || {
            format!("{bytes} bytes, but {sum} in its series")
        });
    }

    /// Bytes by I/Os and the largest block. The last I/O of a file may be shorter.
    fn sizes(&mut self, about: &str, blocks: &[BlockShare], side: &DirectionResult) {
        let Some(size) = blocks.iter().map(|block| block.max_bytes).max() else { return };
        let (bytes, ios) = (side.bytes, side.ios);
        self.check(about, bytes <= ios.saturating_mul(size), || {
            format!("{bytes} bytes in {ios} I/Os of at most {size}")
        });
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
        let [min, max] = [summary.min_ns, summary.max_ns].map(crate::number::float);
        let mean = summary.mean_ns;
        self.check(about, (min..=max).contains(&mean), || {
            format!("{figure}: a mean of {mean} ns outside {min} to {max}")
        });
    }
}
