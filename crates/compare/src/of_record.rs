//! Runs of a record.

use std::collections::BTreeMap;

use gpuio_foreign::Direction;
use gpuio_record::{JobResult, Plan, Point, Record};
use gpuio_stat::Summary;
use gpuio_stat::infer::{Spread, spread};

use crate::ASPECTS;
use crate::job::Job;
use crate::run::{Figure, Run};

/// gpuio's histograms give a percentile within this share of a recorded value.
const BUCKET: f64 = 1.0 / 256.0;

/// One run for each job that ran and each requested direction, in plan order. `from` is the file's
/// name, `at` the record's point in a sweep.
#[must_use]
pub fn runs(record: &Record, from: &str, at: &[(String, String)]) -> Vec<Run> {
    let jobs = record.plan.jobs.iter().zip(&record.jobs);
    let each = jobs.flat_map(|(plan, result)| {
        let directions: &[Direction] = match plan.read_percent {
            0 => &[Direction::Write],
            100.. => &[Direction::Read],
            _ => &[Direction::Read, Direction::Write],
        };
        directions.iter().map(move |direction| (plan, result, *direction))
    });
    each.map(|(plan, result, direction)| {
        let job = Job { record, plan, result, direction };
        Run {
            from: from.to_owned(),
            tool: job.tool(),
            job: Some(plan.name.clone()),
            direction,
            at: at.to_vec(),
            properties: properties(&job),
            facts: crate::facts::of(&job),
            figures: figures(&job),
            notes: notes(result),
        }
    })
    .collect()
}

/// Figures of a result that can't be compared.
fn notes(result: &JobResult) -> Vec<String> {
    let bound = result.cpu.us_per_mib.is_some() && result.cpu.scope.is_at_least();
    // Without its figure, so that the repeats of a side share one line.
    let note = bound.then(|| {
        "CPU per MiB is not compared: other threads that gpuio can't identify may have worked for \
         the job, so only a lower bound is known"
            .to_owned()
    });
    note.into_iter().collect()
}

fn properties(job: &Job<'_>) -> BTreeMap<&'static str, String> {
    let one = |aspect: &crate::Aspect| Some((aspect.key, (aspect.of_job)(job)?));
    ASPECTS.iter().filter_map(one).collect()
}

fn figures(job: &Job<'_>) -> BTreeMap<&'static str, Figure> {
    let side = job.figures();
    let points = points(job.result, &job.record.plan);
    let write = job.direction == Direction::Write;
    let bytes = |point: &Point| if write { point.write_bytes } else { point.read_bytes };
    let ios = |point: &Point| if write { point.write_ios } else { point.read_ios };
    let rate = |count: u64, point: &Point| float(count) / float(point.span_ns);
    let mut figures = BTreeMap::new();
    let mut put = |key: &'static str, value: f64, off: f64, spread: Option<Spread>| {
        if value > 0.0 && value.is_finite() {
            figures.insert(key, Figure { value, off, spread });
        }
    };
    let of = |series: Vec<f64>| spread(&series);
    put("throughput", side.bytes_per_s, 0.0, of(each(&points, |p| Some(rate(bytes(p), p)))));
    put("iops", side.iops, 0.0, of(each(&points, |p| Some(rate(ios(p), p)))));
    if let Some(Summary { mean_ns, p50_ns, p99_ns, p99_9_ns, .. }) =
        side.latency.as_ref().map(|latency| &latency.total)
    {
        // Latencies of a series are of both directions together.
        let own = |series: Vec<f64>| if job.is_mix() { None } else { spread(&series) };
        put("mean", *mean_ns, 0.0, None);
        put("p50", float(*p50_ns), BUCKET, own(each(&points, |p| p.p50_ns.map(float))));
        if let Some(p99) = p99_ns {
            put("p99", float(*p99), BUCKET, own(each(&points, |p| p.p99_ns.map(float))));
        }
        if let Some(p99_9) = p99_9_ns {
            put("p99.9", float(*p99_9), BUCKET, None);
        }
    }
    let cpu = &job.result.cpu;
    if let Some(us) = cpu.us_per_mib.filter(|_| !cpu.scope.is_at_least()) {
        put("cpu", us, 0.0, None);
    }
    figures
}

fn each(points: &[&Point], value: impl Fn(&Point) -> Option<f64>) -> Vec<f64> {
    points.iter().filter_map(|point| value(point)).collect()
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

/// For figures of three digits: a count above 2^53 loses its last bits.
#[expect(clippy::cast_precision_loss, reason = "rates need no 64 bits")]
fn float(value: u64) -> f64 {
    value as f64
}
