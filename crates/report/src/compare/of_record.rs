//! Runs of a record.

use std::collections::BTreeMap;

use crate::foreign::Direction;
use gpuio_base::stat::Summary;
use gpuio_base::stat::infer::spread;
use gpuio_record::metric::List;
use gpuio_record::{JobResult, Metric, Plan, Point, Record, Side, Towards};

use crate::compare::ASPECTS;
use crate::compare::job::Job;
use crate::compare::keys;
use crate::compare::run::{BUCKET, Figure, Run, rates};
use crate::copies::Content;
use crate::doubts;
use crate::recheck;

/// One run for each job that ran and each requested direction, in plan order. `from` is the file's
/// name, `at` the record's point in a sweep.
#[must_use]
pub fn runs(record: &Record, from: &str, at: &[(String, String)]) -> Vec<Run> {
    let content = Content::of_record(record);
    let changed = recheck::changed(record)
        .map(|why| format!("nothing is concluded from the figures of {from}: {why}"));
    let changed = &changed;
    let jobs = record.plan.jobs.iter().zip(&record.jobs);
    let each = jobs.flat_map(|(plan, result)| {
        let side = move |direction: &Towards| Side { record, plan, result, direction: *direction };
        plan.directions().iter().map(side)
    });
    each.map(|side| {
        let (plan, result) = (side.plan, side.result);
        let direction = match side.direction {
            Towards::Read => Direction::Read,
            Towards::Write => Direction::Write,
        };
        let job = Job { record, plan, result, direction };
        Run {
            from: from.to_owned(),
            content,
            tool: job.tool(),
            job: Some(plan.name.clone()),
            direction,
            at: at.to_vec(),
            properties: properties(&job),
            keys: keys::of(plan),
            unread: Vec::new(),
            facts: crate::compare::facts::of(&job),
            figures: figures(&side),
            rates: rates_of(&job),
            latency: side.figures().latency.as_ref().map(|latency| latency.total.clone()),
            since_submission: since_submission(&side),
            percentiles: plan.percentiles.clone(),
            others: crate::others::of(record, plan, result),
            others_unknown: result.others_cpu_unknown.is_some(),
            doubts: changed.iter().cloned().collect(),
            standing: doubts::of_job(record, plan, result),
            notes: notes(&job),
        }
    })
    .collect()
}

/// The rates of all threads together; of a mix and of several ranks, none is known.
fn rates_of(job: &Job<'_>) -> BTreeMap<&'static str, f64> {
    let Some(pacing) = job.pacing().filter(|_| !job.is_mix() && job.record.ranks.is_none()) else {
        return BTreeMap::new();
    };
    let block = match job.plan.sizes_of(job.direction == Direction::Write) {
        [one] if one.min_bytes == one.max_bytes => Some(one.min_bytes),
        _ => None,
    };
    rates(pacing, block, u64::from(job.plan.threads))
}

/// A paced job's leg from submission on; none with a GPU leg, which has its own part of the time.
fn since_submission(side: &Side<'_>) -> Option<Summary> {
    let latency = side.figures().latency.as_ref()?;
    let paced = latency.queue.is_some() && latency.gpu.is_none();
    latency.file.clone().filter(|_| paced)
}

/// Figures of a result that can't be compared.
fn notes(job: &Job<'_>) -> Vec<String> {
    let bound = job.result.cpu.us_per_mib.is_some() && job.result.cpu.scope.is_at_least();
    // Without its figure, so that the repeats of a side share one line.
    let note = bound.then(|| {
        "CPU per MiB is not compared: other threads that gpuio can't identify may have worked for \
         the job, so only a lower bound is known"
            .to_owned()
    });
    note.into_iter().collect()
}

fn properties(job: &Job<'_>) -> BTreeMap<&'static str, String> {
    let one = |aspect: &crate::compare::Aspect| Some((aspect.key, (aspect.of_job)(job)?));
    ASPECTS.iter().filter_map(one).collect()
}

fn figures(side: &Side<'_>) -> BTreeMap<String, Figure> {
    let points = points(side.result, &side.record.plan);
    // Latencies of a series are of both directions together.
    let is_mix = side.plan.directions().len() > 1;
    let figure = |metric: &Metric| {
        let value = metric.of(side).filter(|value| *value > 0.0 && value.is_finite())?;
        let series: Vec<f64> =
            points.iter().filter_map(|point| metric.of_point(point, side.direction)).collect();
        let (off, spread) = match metric.is_whole() {
            true => (BUCKET, if is_mix { None } else { spread(&series) }),
            false => (0.0, spread(&series)),
        };
        Some((metric.word(), Figure { value, off, spread }))
    };
    List::Compared.metrics(&side.plan.percentiles).iter().filter_map(figure).collect()
}

/// The intervals in which every worker was active, after the ramp. A last one shorter than half an
/// interval is left out.
fn points<'a>(job: &'a JobResult, plan: &Plan) -> Vec<&'a Point> {
    let whole = |point: &&Point| {
        let end = u64::try_from(point.at_ns).unwrap_or(0);
        let slack = point.span_ns / 10;
        end + slack >= point.span_ns
            && point.span_ns >= plan.interval_ns / 2
            && point.span_ns > 0
            && end <= job.first_done_ns.saturating_add(slack)
    };
    job.series.iter().filter(whole).collect()
}
