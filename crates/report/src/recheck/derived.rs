//! Figures of a job that follow from others of it: of its threads, its legs, its feed.

use gpuio_base::stat::Summary;
use gpuio_base::units::per_second;
use gpuio_record::{ComputationCost, EndedHow, FeedResult, JobPlan, JobResult};

use super::Recheck;
use crate::number::float;

impl Recheck {
    /// Figures of a job of one process.
    pub(super) fn derived(&mut self, about: &str, plan: &JobPlan, job: &JobResult) {
        let bytes = job.read.bytes.saturating_add(job.write.bytes);
        self.threads(about, plan, job, bytes);
        let listed = job.failures.iter().fold(0, |sum: u64, one| sum.saturating_add(one.times));
        self.at_most(about, "failures listed", listed, job.failed);
        if let Some(of) = &job.fan_out {
            let placed = job.read.bytes.saturating_mul(u64::from(of.gpus));
            self.equal(about, "bytes placed in GPUs", of.placed_bytes, placed);
            let rate = per_second(placed, job.last_done_ns);
            self.close(about, "bytes placed per second", of.placed_bytes_per_s, rate);
        }
        if let Some(wall) = &job.stonewall {
            let rate = per_second(wall.bytes, wall.time_ns);
            self.close(about, "rate until the stonewall", wall.bytes_per_s, rate);
            self.at_most(about, "bytes until the stonewall", wall.bytes, bytes);
        }
        if let Some((done, latency)) =
            job.flushes.as_ref().and_then(|done| Some((done, done.latency.as_ref()?)))
        {
            self.equal(about, "flushes", done.calls, latency.count);
            self.summary(about, "time of a flush", latency);
            let all = latency.mean_ns * float(latency.count);
            self.close(about, "time of flushes", float(done.ns), all);
        }
        if let Some(feed) = &job.feed {
            self.feed(about, feed, job);
        }
        if let Some(beside) = &job.beside {
            self.beside(about, beside, job);
        }
    }

    fn at_most(&mut self, about: &str, figure: &str, recorded: u64, most: u64) {
        self.check(about, recorded <= most, || format!("{figure}: {recorded}, of at most {most}"));
    }

    fn threads(&mut self, about: &str, plan: &JobPlan, job: &JobResult, bytes: u64) {
        let done = || job.workers.iter().map(|one| one.done_ns);
        if let Some((first, last)) = done().min().zip(done().max()) {
            self.equal(about, "first thread done, ns", job.first_done_ns, first);
            self.equal(about, "last thread done, ns", job.last_done_ns, last);
        }
        if job.ended == EndedHow::Complete {
            self.equal(about, "threads", job.workers.len() as u64, u64::from(plan.threads));
        }
        self.at_most(about, "bytes when the first was done", job.first_done_bytes, bytes);
        if let Some(span) = job.measured {
            self.equal(about, "time measured, ns", job.last_done_ns, span.length_ns());
        }
    }

    fn feed(&mut self, about: &str, feed: &FeedResult, job: &JobResult) {
        let rate = per_second(feed.samples, feed.span_ns);
        self.close(about, "samples per second", feed.samples_per_s, rate);
        let sum = |of: fn(&gpuio_record::AcceleratorResult) -> u64| {
            feed.accelerators.iter().map(of).fold(0, u64::saturating_add)
        };
        self.equal(about, "steps", feed.steps, sum(|one| one.steps));
        self.equal(about, "samples", feed.samples, sum(|one| one.samples));
        self.equal(about, "ns that accelerators waited", feed.stall_ns, sum(|one| one.stall_ns));
        let known: Option<Vec<f64>> =
            feed.epochs.iter().map(|epoch| epoch.utilisation_percent).collect();
        let known = known.filter(|known| !known.is_empty());
        let mean = known.map(|known| known.iter().sum::<f64>() / known.len() as f64);
        self.check(about, mean.is_some() == feed.utilisation_percent.is_some(), || {
            "utilisation: not that of its epochs".to_owned()
        });
        if let Some((own, mean)) = feed.utilisation_percent.zip(mean) {
            self.close(about, "utilisation", own, mean);
        }
        let summaries: [(&str, &Option<Summary>); 2] =
            [("wait for a batch", &feed.wait), ("time of a batch", &feed.batch_read)];
        for (figure, summary) in summaries {
            if let Some(summary) = summary {
                self.summary(about, figure, summary);
            }
        }
        if let Some(tier) = feed.tier {
            self.equal(
                about,
                "bytes from storage beside its tier",
                tier.storage_bytes,
                job.read.bytes,
            );
            self.at_most(about, "readings not kept", tier.not_kept, tier.misses);
        }
    }

    fn beside(&mut self, about: &str, beside: &ComputationCost, job: &JobResult) {
        for gpu in &beside.gpus {
            let rates = gpu.before_per_s.zip(gpu.after_per_s).zip(gpu.beside_per_s);
            if let (Some(ratio), Some(((before, after), during))) = (gpu.ratio, rates) {
                let whole = during / f64::midpoint(before, after);
                self.close(about, "speed kept by the computation", ratio, whole);
            }
        }
        let alone = &beside.alone;
        if let Some(ratio) = beside.io_ratio {
            let whole = (job.read.bytes_per_s + job.write.bytes_per_s)
                / (alone.read.bytes_per_s + alone.write.bytes_per_s);
            self.close(about, "speed kept beside the computation", ratio, whole);
        }
        for (name, side) in [("reads", &alone.read), ("writes", &alone.write)] {
            let about = format!("{about} alone, {name}");
            self.latencies(&about, side.ios, side.latency.as_ref());
            if let Some(span) = alone.measured {
                let rate = per_second(side.bytes, span.length_ns());
                self.close(&about, "bytes per second", side.bytes_per_s, rate);
            }
        }
    }
}
