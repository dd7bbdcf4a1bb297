//! Lines about training feeds.

use gpuio_base::document::Section;
use gpuio_base::stat::{Percentile, Summary};
use gpuio_record::{
    AcceleratorResult, EpochResult, FeedCompute, FeedPlan, FeedResult, FeedRule, JobPlan,
    JobResult, Record, ServiceLevel,
};

use super::of_jobs;
use crate::number::{NONE, bytes, count, float, iops, many, maybe_time, time};
use crate::workload::jobs;

/// Epochs and accelerators that get a line each.
const LINES_MOST: usize = 8;

/// Some lines per job that is a training feed: what it came to, its data set, its computation,
/// its waits, each epoch, and which of MLPerf's rules it broke.
pub(super) fn section(record: &Record) -> Section {
    let of_job = |(plan, job)| {
        let (plan, job): (&JobPlan, &JobResult) = (plan, job);
        let lines = plan.feed.as_ref().zip(job.feed.as_ref()).map(|(of, found)| {
            let mut lines = vec![outcome(of, found)];
            lines.extend(all_ahead(of));
            lines.extend([data_set(of), computation(of, found)]);
            lines.push(waits(plan, of, found, job));
            lines.extend(service_level(of, found, job));
            lines.extend(tier(of, found));
            lines.extend(accelerators(found));
            lines.extend(epochs(of, found));
            lines.extend(rules(&found.rules));
            lines
        });
        lines.into_iter().flatten().map(|line| (plan.name.as_str(), line))
    };
    of_jobs(record, "training feed:", jobs(record).flat_map(of_job))
}

fn outcome(plan: &FeedPlan, found: &FeedResult) -> String {
    let percent = match (found.utilisation_percent, &found.utilisation_unknown) {
        (Some(percent), _) => format!("{percent:.1} %"),
        (None, why) => format!("unknown: {}", why.as_deref().unwrap_or("no reason was recorded")),
    };
    let wanted = plan
        .least_utilisation_percent
        .map_or_else(String::new, |least| format!(" ({least} % or more was to be reached)"));
    let cut = if found.complete { "" } else { "; ended before its last step" };
    format!(
        "{} samples/s in {}, {}; accelerator utilisation {percent}{wanted}{cut}",
        iops(found.samples_per_s),
        time(found.span_ns),
        many(u64::from(plan.accelerators), "accelerator"),
    )
}

/// That the utilisation says nothing about storage, where all batches are read ahead.
fn all_ahead(plan: &FeedPlan) -> Option<String> {
    let ahead = plan.all_ahead().filter(|_| plan.compute != FeedCompute::None)?;
    Some(format!(
        "utilisation says nothing about storage here: all batches of an accelerator fit into the \
         {ahead} that are read ahead; use more epochs or more files"
    ))
}

fn data_set(plan: &FeedPlan) -> String {
    let samples = plan.files.saturating_mul(plan.samples_per_file);
    let columns = match plan.columns.iter().filter(|column| column.read).count() {
        0 => String::new(),
        read => format!(
            ", {read} of {} columns in groups of {}",
            plan.columns.len(),
            many(plan.sample_group, "sample")
        ),
    };
    let ratio = match plan.ratio > 1.0 {
        true => format!(", stored at 1/{} of their size", plan.ratio),
        false => String::new(),
    };
    format!(
        "scale {}: {} of {}, {}{ratio}{columns}, in order {}",
        plan.scale,
        count(plan.files),
        many(plan.full_files, "file"),
        many(samples, "sample"),
        plan.order.key(),
    )
}

fn computation(plan: &FeedPlan, found: &FeedResult) -> String {
    let steps = format!(
        "steps of {}, {} by {} with {} {} each",
        many(plan.batch_samples, "sample"),
        done(plan),
        many(u64::from(plan.readers), "thread"),
        match plan.prefetch {
            1 => "1 batch".to_owned(),
            batches => format!("{batches} batches"),
        },
        if plan.writes { "behind" } else { "ahead" },
    );
    let one = found.accelerators.first();
    let alone = one.and_then(|one| one.alone_ns).map_or_else(|| NONE.to_owned(), time);
    let during = mean_compute(&found.accelerators).map_or_else(|| NONE.to_owned(), time);
    match plan.compute {
        FeedCompute::None => format!("{steps}; nothing is computed"),
        FeedCompute::Sleep => {
            format!(
                "{steps}; accelerators sleep for {} (during the feed {during})",
                time(plan.compute_ns)
            )
        }
        FeedCompute::Kernel { .. } => {
            let on = one.and_then(|one| Some((one.occupied?, one.multiprocessors?)));
            let on = on.map_or_else(String::new, |(occupied, all)| {
                format!(" on {occupied} of {all} multiprocessors")
            });
            format!(
                "{steps}; compute={}{on} for {} (alone {alone}, during the feed {during})",
                plan.compute.key(),
                time(plan.compute_ns)
            )
        }
    }
}

/// The mean time of a step's computation over all accelerators.
fn mean_compute(accelerators: &[AcceleratorResult]) -> Option<u64> {
    let steps: u64 = accelerators.iter().map(|one| one.steps).sum();
    let all: u64 =
        accelerators.iter().map(|one| one.compute_ns.map_or(0, |mean| mean * one.steps)).sum();
    all.checked_div(steps).filter(|mean| *mean > 0)
}

fn waits(job_plan: &JobPlan, plan: &FeedPlan, found: &FeedResult, job: &JobResult) -> String {
    let [p95, tail] = ServiceLevel::AT;
    let usual = [Percentile::MEDIAN, p95, tail];
    let shown = Percentile::shown(&job_plan.percentiles, &usual);
    let labels: Vec<String> = shown.iter().map(|at| at.label()).collect();
    let whole = float(found.span_ns) * f64::from(plan.accelerators.max(1));
    let share = if whole > 0.0 { float(found.stall_ns) * 100.0 / whole } else { 0.0 };
    let first = match plan.writes {
        true => String::new(),
        false => format!("; the first batch came after {}", time(found.first_batch_ns)),
    };
    format!(
        "stalled for {} ({share:.1} % of the time), a step for {}{first}; a batch was {} in {} \
         ({}){}",
        time(found.stall_ns),
        percentiles(found.wait.as_ref(), &shown),
        done(plan),
        percentiles(found.batch_read.as_ref(), &shown),
        labels.join(" / "),
        hidden(plan, found, job),
    )
}

/// The times of the batches against those that they were to keep, and the storage alone.
fn service_level(plan: &FeedPlan, found: &FeedResult, job: &JobResult) -> Option<String> {
    let slo = plan.slo?;
    let ([p95, tail], [most, nearly_all]) = (ServiceLevel::AT, slo.times());
    let name = slo.name().map_or_else(String::new, |name| format!(" {name}"));
    let batches = found.batch_read.as_ref();
    let percentile = |of: Option<&Summary>, at| of.and_then(|summary| summary.percentile(at));
    let verdict = |at: Percentile, most: u64| match percentile(batches, at) {
        Some(took) if took <= most => format!("{} (kept: {})", time(took), time(most)),
        Some(took) => format!("{} (NOT KEPT: {})", time(took), time(most)),
        None => match percentile(batches, Percentile::MEDIAN) {
            Some(half) if half > most => {
                format!(
                    "more than {}, which half of them took (NOT KEPT: {})",
                    time(half),
                    time(most)
                )
            }
            _ => format!(
                "a time that is unknown, since too few batches were {} ({})",
                done(plan),
                time(most)
            ),
        },
    };
    let side = if plan.writes { &job.write } else { &job.read };
    let file = side.latency.as_ref().and_then(|latency| latency.file.as_ref());
    let alone = percentile(file, p95).map_or_else(|| NONE.to_owned(), time);
    Some(format!(
        "service level{name}: {p95} % of {} batches were {} within {}, {tail} % within {}; {} {}, \
         {p95} % of the I/Os in {alone} by the storage alone",
        count(batches.map_or(0, |batches| batches.count)),
        done(plan),
        verdict(p95, most),
        verdict(tail, nearly_all),
        bytes(side.bytes),
        done(plan),
    ))
}

/// The counts of the tier in host memory, its bytes apart from those of storage.
fn tier(plan: &FeedPlan, found: &FeedResult) -> Option<String> {
    let (kept, seen) = (plan.tier?, found.tier?);
    let all = seen.hits.saturating_add(seen.misses);
    let share = match all {
        0 => NONE.to_owned(),
        all => format!("{:.1} %", float(seen.hits) * 100.0 / float(all)),
    };
    Some(format!(
        "tier in CPU memory of {} for {}: {} and {} ({share} hits), {} evicted by LRU, {} not \
         kept; {} came from it and {} from storage, whose bytes and rates have only the latter; \
         what is written does not enter it",
        bytes(kept.bytes()),
        many(u64::from(kept.places), "sample"),
        many(seen.hits, "hit"),
        match seen.misses {
            1 => "1 miss".to_owned(),
            misses => format!("{} misses", count(misses)),
        },
        count(seen.evictions),
        count(seen.not_kept),
        bytes(seen.memory_bytes),
        bytes(seen.storage_bytes),
    ))
}

fn done(plan: &FeedPlan) -> &'static str {
    if plan.writes { "written" } else { "read" }
}

/// Share of the time of all batches in which no accelerator waited for them. Accelerators also wait
/// for what readers check.
fn hidden(plan: &FeedPlan, found: &FeedResult, job: &JobResult) -> String {
    let computes = plan.compute != FeedCompute::None;
    let Some(batches) = found.batch_read.as_ref().filter(|_| computes) else {
        return String::new();
    };
    let all = batches.mean_ns * float(batches.count) + float(job.between_ios_ns);
    let waited = float(found.stall_ns) + float(found.first_batch_ns);
    if all <= 0.0 {
        return String::new();
    }
    let percent = (1.0 - waited / all).max(0.0) * 100.0;
    format!("; {percent:.1} % of the time of all batches is hidden by computation")
}

/// Percentiles; `-` where there are too few values.
pub(super) fn percentiles(summary: Option<&Summary>, all: &[Percentile]) -> String {
    let Some(summary) = summary else { return NONE.to_owned() };
    let each = all.iter().map(|at| maybe_time(summary.percentile(*at)));
    each.collect::<Vec<_>>().join(" / ")
}

/// A line for each accelerator, where there are several; one for each that failed.
fn accelerators(found: &FeedResult) -> Vec<String> {
    let mut lines = Vec::new();
    if found.accelerators.len() > 1 {
        let words = |one: &AcceleratorResult| {
            let gpu = one.gpu.map_or_else(String::new, |gpu| format!(" on GPU {gpu}"));
            let during = one.compute_ns.map_or_else(|| NONE.to_owned(), time);
            format!(
                "accelerator {}{gpu}: {}, {}, stalled for {}, computed for {during} a step",
                one.number,
                many(one.steps, "step"),
                many(one.samples, "sample"),
                time(one.stall_ns)
            )
        };
        lines.extend(found.accelerators.iter().take(LINES_MOST).map(words));
        lines.extend(rest(found.accelerators.len(), "accelerators"));
    }
    lines.extend(found.accelerators.iter().filter_map(|one| {
        let failed = one.failed.as_ref()?;
        Some(format!("FAILED: the computation of accelerator {}: {failed}", one.number))
    }));
    lines
}

fn rest(all: usize, what: &str) -> Option<String> {
    (all > LINES_MOST).then(|| format!("… and {} more {what}", all - LINES_MOST))
}

fn epochs(plan: &FeedPlan, found: &FeedResult) -> Vec<String> {
    let verb = done(plan);
    let words = |epoch: &EpochResult| {
        let percent = epoch
            .utilisation_percent
            .map_or_else(|| NONE.to_owned(), |percent| format!("{percent:.1} %"));
        let moved = bytes(epoch.moved_bytes);
        let storage = match epoch.storage_read_bytes {
            _ if plan.writes => String::new(),
            Some(stored) => format!(", {} from storage", bytes(stored)),
            None => ", from storage: unknown".to_owned(),
        };
        let [once, never, repeated] = match plan.order.draws() {
            true => [" as often as drawn", "too seldom", "too often"],
            false => [" once", "never", "repeatedly"],
        };
        format!(
            "epoch {}: utilisation {percent}, {}; {} of {} {verb}{once}, {} {never}, {} \
             {repeated}; {moved} {verb} in its time{storage}",
            epoch.number,
            time(epoch.span_ns),
            many(epoch.once, "sample"),
            bytes(epoch.read_bytes),
            count(epoch.never),
            count(epoch.repeated),
        )
    };
    let mut lines: Vec<String> = found.epochs.iter().take(LINES_MOST).map(words).collect();
    lines.extend(rest(found.epochs.len(), "epochs"));
    lines
}

/// The rules of MLPerf Storage that this run did not keep.
fn rules(rules: &[FeedRule]) -> Vec<String> {
    let words = |rule: &FeedRule| match rule.kept {
        Some(true) => None,
        Some(false) => Some(format!("MLPerf rule broken: {} ({})", rule.rule, rule.found)),
        None => Some(format!("MLPerf rule unknown: {} ({})", rule.rule, rule.found)),
    };
    let mut lines: Vec<String> = rules.iter().filter_map(words).collect();
    let kept: Vec<&str> = rules
        .iter()
        .filter(|rule| rule.kept == Some(true))
        .map(|rule| rule.rule.as_str())
        .collect();
    if !kept.is_empty() {
        lines.push(format!("MLPerf rules kept: {}", kept.join("; ")));
    }
    lines
}
