//! The outcome of a feed, for the record.

use std::cmp::Ordering;
use std::sync::atomic;

use gpuio_base::stat::Histogram;
use gpuio_base::units::per_second;
use gpuio_job::workload::feed::Draws;
use gpuio_record::facts::HostFacts;
use gpuio_record::{
    AcceleratorResult, CacheReading, EpochResult, FeedCompute, FeedResult, JobPlan,
};

use super::accelerator::{Accelerated, EpochSeen, MovedSoFar};
use super::rules::{self, Ruled};
use super::tier::Tier;
use super::{Feed, hold};

/// The facts besides the accelerators' measurements.
#[derive(Debug, Clone, Copy)]
pub(in crate::run) struct Found<'a> {
    pub(in crate::run) job: &'a JobPlan,
    pub(in crate::run) host: &'a HostFacts,
    pub(in crate::run) cache: &'a CacheReading,
}

/// Fewer steps have nothing between the first and the last.
const STEPS_LEAST: u64 = 3;

/// The result of a feed whose threads have all ended.
pub(in crate::run) fn result(
    feed: &Feed,
    seen: Vec<Option<Accelerated>>,
    found: Found<'_>,
) -> FeedResult {
    let is_lost = |one: &Option<Accelerated>| one.is_none();
    let lost = seen.iter().any(is_lost);
    let seen: Vec<Accelerated> = seen.into_iter().flatten().collect();
    let begin = seen.iter().map(|one| one.span.0).min().unwrap_or(0);
    let end = seen.iter().map(|one| one.span.1).max().unwrap_or(0);
    let span_ns = end.saturating_sub(begin);
    let samples: u64 = seen.iter().map(|one| one.samples).sum();
    let steps: u64 = seen.iter().map(|one| one.steps).sum();
    let epochs = epochs(feed, &seen, begin, Draws::of(&feed.plan, found.job.seed).as_ref());
    let (utilisation_percent, utilisation_unknown) = utilisation(feed, &epochs);
    let mut wait = Histogram::default();
    seen.iter().for_each(|one| wait.merge(&one.wait));
    let mut batch_read = Histogram::default();
    feed.queues.iter().for_each(|queue| batch_read.merge(&hold(&queue.state).batch_read));
    let all_steps = steps == feed.shape.batches().saturating_mul(feed.plan.epochs);
    let is_written = || seen.iter().all(|one| one.is_over);
    let complete = !lost && all_steps && (!feed.plan.writes || is_written());
    let (plan, reads_alone) = (&feed.plan, feed.reads_alone);
    let tier = feed.tier.as_ref().map(Tier::result);
    let ruled = Ruled { plan, found, reads_alone, tier, utilisation_percent, span_ns };
    FeedResult {
        span_ns,
        samples,
        samples_per_s: per_second(samples, span_ns),
        steps,
        complete,
        utilisation_percent,
        utilisation_unknown,
        stall_ns: seen.iter().map(|one| one.stall_ns).sum(),
        first_batch_ns: seen.iter().map(|one| one.first_batch_ns).max().unwrap_or(0),
        wait: wait.summary(),
        batch_read: batch_read.summary(),
        rested_ns: feed.queues.iter().map(|queue| hold(&queue.state).rested_ns).sum(),
        rules: rules::all(&ruled, &epochs),
        tier,
        epochs,
        accelerators: seen.into_iter().map(accelerator).collect(),
        search: None,
    }
}

fn accelerator(seen: Accelerated) -> AcceleratorResult {
    let computed = seen.alone_ns.filter(|_| seen.steps > 0);
    AcceleratorResult {
        number: seen.number,
        gpu: seen.gpu,
        steps: seen.steps,
        samples: seen.samples,
        stall_ns: seen.stall_ns,
        first_batch_ns: Some(seen.first_batch_ns),
        alone_ns: seen.alone_ns,
        compute_ns: computed.map(|_| seen.compute_ns / seen.steps),
        occupied: seen.occupied,
        multiprocessors: seen.multiprocessors,
        failed: seen.failed,
    }
}

/// The epochs that any accelerator began.
fn epochs(
    feed: &Feed,
    seen: &[Accelerated],
    begin: u64,
    draws: Option<&Draws>,
) -> Vec<EpochResult> {
    let count = seen.iter().map(|one| one.epochs.len()).max().unwrap_or(0);
    let mut from = begin;
    let storage = feed.storage_before.get().copied().flatten();
    let mut before = MovedSoFar { moved: 0, storage };
    let mut all = Vec::with_capacity(count);
    for nth in 0..count {
        let parts: Vec<(&Accelerated, &EpochSeen)> =
            seen.iter().filter_map(|one| Some((one, one.epochs.get(nth)?))).collect();
        // A step that hands its batch over is not the end of its write.
        let written = feed.ends.get(nth).filter(|_| feed.plan.writes);
        let written = written.map_or(from, |end| end.load(atomic::Ordering::Relaxed));
        let stepped = parts.iter().map(|(_, epoch)| epoch.last_end).max().unwrap_or(from);
        let end = stepped.max(written);
        // All of its accelerators have taken it down; an epoch without any is none.
        let now = parts.iter().find_map(|(_, epoch)| epoch.moved).unwrap_or(before);
        let storage = now.storage.zip(before.storage);
        let drawn = draws.map(|draws| draws.counts(nth as u64));
        let (once, never, repeated) = counted(feed, nth, drawn.as_deref());
        all.push(EpochResult {
            number: nth as u64 + 1,
            steps: parts.iter().map(|(_, epoch)| epoch.steps).max().unwrap_or(0),
            span_ns: end.saturating_sub(from),
            utilisation_percent: mean(parts.iter().map(|(one, epoch)| of_epoch(feed, one, epoch))),
            once,
            never,
            repeated,
            read_bytes: feed
                .bytes
                .get(nth)
                .map_or(0, |bytes| bytes.load(atomic::Ordering::Relaxed)),
            moved_bytes: now.moved.saturating_sub(before.moved),
            storage_read_bytes: storage.map(|(now, then)| now.saturating_sub(then)),
        });
        (from, before) = (end, now);
    }
    all
}

/// Samples of an epoch that were read once, never, and more often; where they are drawn, readings
/// as often as drawn, those that are missing, and those of samples that were read more often.
fn counted(feed: &Feed, epoch: usize, drawn: Option<&[u32]>) -> (u64, u64, u64) {
    let (mut once, mut never, mut repeated) = (0, 0, 0);
    for (unit, count) in feed.counts.get(epoch).into_iter().flatten().enumerate() {
        let count = u64::from(count.load(atomic::Ordering::Relaxed));
        let wanted = drawn.map_or(1, |drawn| u64::from(drawn.get(unit).copied().unwrap_or(0)));
        // Counts end at their largest number.
        match count.cmp(&wanted.min(u64::from(u8::MAX))) {
            Ordering::Equal => once += wanted,
            Ordering::Less => (once, never) = (once + count, never + wanted - count),
            Ordering::Greater => repeated += wanted.max(1),
        }
    }
    let group = feed.plan.sample_group;
    (once * group, never * group, repeated * group)
}

/// Utilisation of an accelerator in an epoch, per cent.
fn of_epoch(feed: &Feed, one: &Accelerated, epoch: &EpochSeen) -> Option<f64> {
    if feed.plan.compute == FeedCompute::None || epoch.steps < STEPS_LEAST {
        return None;
    }
    // A step that takes longer than it should has no more computation, and a shorter one has less.
    let step_ns = one.alone_ns?.min(feed.plan.compute_ns);
    let computed_ns = step_ns.saturating_mul(epoch.steps - 2).min(epoch.between_ns);
    let span = epoch.before_last_end.checked_sub(epoch.first_end).filter(|span| *span > 0)?;
    Some(computed_ns as f64 * 100.0 / span as f64)
}

/// The mean of figures that are all known.
fn mean(figures: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let all: Option<Vec<f64>> = figures.collect();
    let all = all.filter(|all| !all.is_empty())?;
    Some(all.iter().sum::<f64>() / all.len() as f64)
}

/// The mean over epochs, or why there is none.
fn utilisation(feed: &Feed, epochs: &[EpochResult]) -> (Option<f64>, Option<String>) {
    if feed.plan.compute == FeedCompute::None {
        return (None, Some("nothing is computed (compute=none)".to_owned()));
    }
    match mean(epochs.iter().map(|epoch| epoch.utilisation_percent)) {
        Some(percent) => (Some(percent), None),
        None => {
            let why = format!(
                "an epoch had fewer than {STEPS_LEAST} steps of each accelerator, and the first \
                 and the last do not count"
            );
            (None, Some(why))
        }
    }
}
