//! Lines about jobs that ran while a GPU computation was active.

use gpuio_base::document::Section;
use gpuio_base::stat::Percentile;
use gpuio_base::units::human_rate;
use gpuio_record::{
    ComputationCost, ComputationKind, ComputationPlan, GpuComputation, JobPlan, JobResult, Record,
    Towards,
};

use super::of_jobs;
use crate::number::{NONE, many, maybe_time};
use crate::verification::trouble;
use crate::workload::jobs;

/// Two or more lines per job: each computation, and the job's own loss.
pub(super) fn section(record: &Record) -> Section {
    let of_job = |(plan, job)| {
        let (plan, job): (&JobPlan, &JobResult) = (plan, job);
        let both = plan.beside.as_ref().zip(job.beside.as_ref());
        let lines = both.map(|(requested, found)| {
            let mut lines: Vec<String> =
                found.gpus.iter().map(|gpu| computation(plan, requested, gpu)).collect();
            lines.push(load(plan, job, found));
            lines.extend(wrong(found));
            lines
        });
        lines.into_iter().flatten().map(|line| (plan.name.as_str(), line))
    };
    of_jobs(record, "with a GPU computation running:", jobs(record).flat_map(of_job))
}

/// Says of a computation of the software GPU that nothing is computed.
const SOFTWARE_CLOCK: &str =
    " (by the clock of the software GPU, which a busy host does not slow: nothing was computed)";

fn computation(plan: &JobPlan, requested: &ComputationPlan, gpu: &GpuComputation) -> String {
    let is_software = plan.gpus.iter().any(|one| one.index == gpu.index && one.software);
    let clock = if is_software { SOFTWARE_CLOCK } else { "" };
    let mut head = format!(
        "{}{} on {} of {} multiprocessors of GPU {}",
        gpu.rank.map_or_else(String::new, |rank| format!("rank {rank}: ")),
        requested.with.word(),
        gpu.occupied,
        gpu.multiprocessors,
        gpu.index
    );
    if requested.share_percent < 100.0 {
        head.push_str(&format!(" ({}% requested)", requested.share_percent));
    }
    let rate =
        |value: Option<f64>| value.map_or_else(|| NONE.to_owned(), |v| speed(requested.with, v));
    match (gpu.ratio, &gpu.unknown) {
        (Some(ratio), _) => format!(
            "{head}: keeps {ratio:.3} of its speed, {} during the job, {} before and {} after \
             it{clock}",
            rate(gpu.beside_per_s),
            rate(gpu.before_per_s),
            rate(gpu.after_per_s)
        ),
        (None, why) => {
            let why = why.as_deref().unwrap_or("unknown");
            format!("{head}: its loss of speed is unknown: {why}")
        }
    }
}

fn speed(with: ComputationKind, value: f64) -> String {
    match with {
        ComputationKind::Compute => format!("{:.3} TFLOP/s", value / 1e12),
        ComputationKind::Memory => human_rate(value),
    }
}

fn load(plan: &JobPlan, job: &JobResult, found: &ComputationCost) -> String {
    let both = |read: f64, write: f64| human_rate(read + write);
    let beside = both(job.read.bytes_per_s, job.write.bytes_per_s);
    let alone = both(found.alone.read.bytes_per_s, found.alone.write.bytes_per_s);
    let ratio = match (found.io_ratio, &found.io_unknown) {
        (Some(ratio), _) => format!("{ratio:.3}"),
        (None, why) => format!(
            "ratio unknown: {}",
            why.as_deref().unwrap_or(
                "no reason was \
            recorded"
            )
        ),
    };
    let tails = Percentile::shown(&plan.percentiles, &[Percentile::TAIL]);
    let mut words = format!("I/O {beside} with the computation, {alone} alone ({ratio})");
    for direction in plan.directions() {
        let alone = match direction {
            Towards::Read => &found.alone.read,
            Towards::Write => &found.alone.write,
        };
        let [is, was] = [direction.of(job), alone].map(|figures| {
            let total = figures.latency.as_ref().map(|latency| &latency.total);
            tails.iter().map(|at| total.and_then(|all| all.percentile(*at))).collect::<Vec<_>>()
        });
        for ((at, is), was) in tails.iter().zip(is).zip(was) {
            if is.is_none() && was.is_none() {
                continue;
            }
            let (is, was) = (maybe_time(is), maybe_time(was));
            words.push_str(&format!(
                "; {} of {}s {is} with the computation, {was} alone",
                at.label(),
                direction.name()
            ));
        }
    }
    words
}

/// Failures in the run without the computation, which are reported nowhere else.
fn wrong(found: &ComputationCost) -> Vec<String> {
    let alone = &found.alone;
    let failed = (alone.failed > 0)
        .then(|| format!("in the run alone, {} of the job failed", many(alone.failed, "I/O")));
    let bad = alone.verify.as_ref().and_then(trouble);
    let bad =
        bad.map(|trouble| format!("WRONG DATA or an unfinished check in the run alone: {trouble}"));
    failed.into_iter().chain(bad).collect()
}
