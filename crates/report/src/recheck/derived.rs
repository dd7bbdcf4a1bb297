//! Figures of a job that follow from others of it: of its threads, its legs, its feed.

use gpuio_base::stat::Summary;
use gpuio_base::units::per_second;
use gpuio_record::{
    AcceleratorResult, ComputationCost, EndedHow, EpochResult, FeedCompute, FeedPlan, FeedResult,
    FeedTime, JobPlan, JobResult,
};

use super::{ROUNDING, Recheck};
use crate::number::float;

impl Recheck {
    /// Figures of a job of one process.
    pub(super) fn derived(&mut self, about: &str, plan: &JobPlan, job: &JobResult) {
        let bytes = job.read.bytes.saturating_add(job.write.bytes);
        self.threads(about, plan, job, bytes);
        let listed = job.failures.iter().fold(0, |sum: u64, one| sum.saturating_add(one.times));
        self.at_most(about, "failures listed", listed, job.failed);
        if let Some(found) = &job.verify {
            let listed =
                found.failures.iter().fold(0, |sum: u64, one| sum.saturating_add(one.times));
            self.at_most(about, "failures of the verification listed", listed, found.failed);
        }
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
            if let Some(plan) = &plan.feed {
                self.epochs(about, plan, feed, job);
            }
        }
        if let Some(beside) = &job.beside {
            self.beside(about, beside, job);
        }
    }

    pub(super) fn at_most(&mut self, about: &str, figure: &str, recorded: u64, most: u64) {
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

    /// Epochs follow each other from the first read to the last step, and have all bytes; of a feed
    /// that was cut short, those of the epochs that ended. A feed that writes ends them with their
    /// last write, which may come after the last step.
    fn epochs(&mut self, about: &str, plan: &FeedPlan, feed: &FeedResult, job: &JobResult) {
        let sum =
            |of: fn(&EpochResult) -> u64| feed.epochs.iter().map(of).fold(0, u64::saturating_add);
        let moved = sum(|epoch| epoch.moved_bytes);
        if plan.writes {
            self.at_most(about, "bytes of its epochs", moved, job.write.bytes);
        } else if feed.complete {
            self.equal(about, "time of its epochs, ns", sum(|epoch| epoch.span_ns), feed.span_ns);
            self.equal(about, "bytes of its epochs", moved, job.read.bytes);
        } else {
            self.at_most(about, "time of its epochs, ns", sum(|epoch| epoch.span_ns), feed.span_ns);
            self.at_most(about, "bytes of its epochs", moved, job.read.bytes);
        }
        let tier = feed.tier.map_or(0, |tier| tier.memory_bytes);
        let all = job.read.bytes.saturating_add(job.write.bytes).saturating_add(tier);
        self.at_most(about, "bytes of its samples", sum(|epoch| epoch.read_bytes), all);
        // `storage_read_bytes` of epochs and `process_read_bytes` of the job are not held against
        // each other: the kernel counts all reads of this process, and the accelerators' last steps
        // come after the last I/O, with which the job's reading ends. How much the process read
        // between the two is not recorded.
        self.at_most(about, "ns until the first batch", feed.first_batch_ns, feed.span_ns);
        let firsts: Option<Vec<u64>> =
            feed.accelerators.iter().map(|one| one.first_batch_ns).collect();
        if let Some(longest) = firsts.and_then(|all| all.into_iter().max()) {
            self.equal(about, "ns until the first batch", feed.first_batch_ns, longest);
        }
        for one in feed.accelerators.iter().filter(|_| !plan.writes) {
            let about = format!("{about}, accelerator {}", one.number);
            let FeedTime { computed_ns, stall_ns, first_batch_ns, .. } = feed.time_of(one);
            let busy = computed_ns.saturating_add(stall_ns);
            let busy = busy.saturating_add(first_batch_ns.unwrap_or(0));
            self.at_most(&about, "ns of steps and waits", busy, feed.span_ns);
        }
        if !plan.writes && feed.complete {
            self.utilisation(about, plan, feed);
        }
    }

    /// The utilisation of an epoch is over its time without the first and the last step. That is
    /// known within the longest wait and what steps took beyond their least time: sleeps take what
    /// is planned at least, and of kernels, which were timed before, half of it is allowed for.
    /// Accelerators wait for each other after each step, and one may make a step less.
    fn utilisation(&mut self, about: &str, plan: &FeedPlan, feed: &FeedResult) {
        let many = if plan.accelerators > 1 { 1.0 } else { 0.0 };
        let wait = feed.wait.as_ref().map_or(0.0, |wait| float(wait.max_ns));
        let planned = float(plan.compute_ns);
        let step = if plan.compute == FeedCompute::Sleep { planned } else { planned / 2.0 };
        let beyond = |one: &AcceleratorResult| {
            (float(one.compute_ns.unwrap_or(0)) + 1.0 - step).max(0.0) * float(one.steps)
        };
        let beyond = feed.accelerators.iter().map(beyond).fold(0.0, f64::max);
        let stalls = feed.accelerators.iter().map(|one| float(one.stall_ns));
        let stalled = stalls.fold(f64::INFINITY, f64::min);
        for (nth, epoch) in feed.epochs.iter().enumerate() {
            let Some(percent) = epoch.utilisation_percent else { continue };
            let steps = float(epoch.steps.saturating_sub(2));
            let fewer = (steps - many).max(0.0);
            let first = if nth == 0 { float(feed.first_batch_ns) } else { wait };
            let ends = first + wait * (1.0 + 2.0 * many) + step * (2.0 + 2.0 * many) + beyond;
            let mut time = float(epoch.span_ns) - ends;
            if feed.epochs.len() == 1 {
                time = time.max(stalled - wait + step * fewer);
            }
            let most = if time > 0.0 { (planned * steps * 100.0 / time).min(100.0) } else { 100.0 };
            let least = step * fewer * 100.0 / float(epoch.span_ns).max(1.0);
            let fits = least * (1.0 - ROUNDING)..=most * (1.0 + ROUNDING);
            self.check(about, fits.contains(&percent), || {
                format!(
                    "utilisation in epoch {}: {percent:.1} % recorded, {least:.1} to {most:.1} by \
                     its times",
                    epoch.number
                )
            });
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

#[cfg(test)]
mod tests {
    use gpuio_testkit::jobs;
    use serde_json::{Value, json};

    use super::*;

    /// Eight steps of 4 ms, the first after 3 ms and the others after 2 ms each: 36 ms from the end
    /// of the first step to the end of the last but one, with 24 ms of computation.
    #[test]
    fn epochs_have_the_times_and_bytes_of_their_feed() {
        let keys = "files=8\nsample_size=4096\nbatch_samples=1\nepochs=1\nreaders=1\nprefetch=1\n\
                    compute=sleep\ncompute_time=4ms\nrw=read\npath=host\ndirectory=d";
        let plan = jobs::job(keys);
        let job = jobs::result(&plan, 8);
        let of_times = json!({
            "count": 7, "min_ns": 2_000_000, "max_ns": 2_000_000, "mean_ns": 2e6, "stddev_ns": 0.0,
            "p50_ns": 2_000_000, "buckets": [], "p90_ns": null, "p99_ns": null, "p99_9_ns": null,
            "p99_99_ns": null,
        });
        let feed = json!({
            "span_ns": 49_000_000, "samples": 8, "samples_per_s": 163.26, "steps": 8,
            "complete": true, "utilisation_percent": 66.6, "stall_ns": 14_000_000,
            "first_batch_ns": 3_000_000, "wait": of_times, "batch_read": null, "rules": [],
            "accelerators": [{
                "number": 0, "gpu": null, "steps": 8, "samples": 8, "stall_ns": 14_000_000,
                "alone_ns": 4_000_000, "compute_ns": 4_000_000, "occupied": null,
                "multiprocessors": null,
            }],
            "epochs": [{
                "number": 1, "steps": 8, "span_ns": 49_000_000, "utilisation_percent": 66.6,
                "once": 8, "never": 0, "repeated": 0, "read_bytes": 32768, "moved_bytes": 32768,
                "storage_read_bytes": 32768,
            }],
        });
        let wrong = |place: &str, value: Value| {
            let mut feed = feed.clone();
            *feed.pointer_mut(place).unwrap_or_else(|| panic!("no {place}")) = value;
            let feed = serde_json::from_value(feed).unwrap();
            let mut all = Recheck::default();
            all.epochs("job", plan.feed.as_ref().unwrap(), &feed, &job);
            all.wrong.join("; ")
        };
        assert_eq!(wrong("/steps", json!(8)), "");
        // The process read metadata, or a page of its program, after the job's last I/O.
        assert_eq!(wrong("/epochs/0/storage_read_bytes", json!(32768 + 8192)), "");
        // Cut short, the last epoch's bytes are not counted.
        let mut cut = feed.clone();
        (cut["complete"], cut["epochs"][0]["moved_bytes"]) = (json!(false), json!(0));
        let mut all = Recheck::default();
        let cut = serde_json::from_value(cut).unwrap();
        all.epochs("job", plan.feed.as_ref().unwrap(), &cut, &job);
        assert!(!all.wrong.join("; ").contains("of its epochs"), "{:?}", all.wrong);
        for (place, value, of) in [
            ("/epochs/0/span_ns", json!(98_000_000), "time of its epochs, ns: 98000000 recorded"),
            ("/span_ns", json!(98_000_000), "49000000 recorded, 98000000 by its counts"),
            ("/epochs/0/utilisation_percent", json!(95.0), "95.0 % recorded, 49.0 to 66.7 by its"),
            ("/epochs/0/utilisation_percent", json!(40.0), "40.0 % recorded, 49.0 to 66.7 by its"),
            ("/epochs/0/moved_bytes", json!(65536), "bytes of its epochs: 65536 recorded"),
            ("/epochs/0/read_bytes", json!(65536), "bytes of its samples: 65536, of at most 32768"),
            ("/first_batch_ns", json!(50_000_000), "ns until the first batch: 50000000, of at"),
            ("/accelerators/0/stall_ns", json!(28_000_000), "ns of steps and waits: 63000000, of"),
            ("/first_batch_ns", json!(6_000_000), "ns of steps and waits: 52000000, of at most"),
        ] {
            let found = wrong(place, value);
            assert!(found.contains(of), "{place}: {found}");
        }
    }
}
