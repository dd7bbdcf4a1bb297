//! Time series: lines over the seconds of a job, all on one time axis.

use gpuio_record::{JobResult, Point, Record};
use serde_json::{Value, json};

use super::figures::Unit;
use crate::number::float;

/// One line of a job.
pub(super) struct Line {
    label: &'static str,
    unit: Unit,
    value: fn(&Point) -> Option<f64>,
}

fn per_second(count: u64, point: &Point) -> Option<f64> {
    (point.span_ns > 0).then(|| float(count) * 1e9 / float(point.span_ns))
}

/// What gpuio counts of itself in each interval.
const LINES: &[Line] = &[
    Line { label: "read", unit: Unit::BytesPerSecond, value: |p| per_second(p.read_bytes, p) },
    Line { label: "write", unit: Unit::BytesPerSecond, value: |p| per_second(p.write_bytes, p) },
    Line { label: "reads", unit: Unit::PerSecond, value: |p| per_second(p.read_ios, p) },
    Line { label: "writes", unit: Unit::PerSecond, value: |p| per_second(p.write_ios, p) },
    Line { label: "p50", unit: Unit::Nanoseconds, value: |p| p.p50_ns.map(float) },
    Line { label: "p99", unit: Unit::Nanoseconds, value: |p| p.p99_ns.map(float) },
    Line { label: "largest", unit: Unit::Nanoseconds, value: |p| p.max_ns.map(float) },
];

/// The lines of a job for the page: seconds, and for each line that is not zero all the way its
/// label, unit and values. `None` where there is no point.
pub(super) fn lines(_record: &Record, job: &JobResult) -> Option<Value> {
    if job.series.is_empty() {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "a place on a picture")]
    let seconds: Vec<f64> = job.series.iter().map(|point| point.at_ns as f64 / 1e9).collect();
    let some = |line: &&Line| {
        let mut values = job.series.iter().filter_map(line.value);
        values.any(|value| value > 0.0)
    };
    let lines: Vec<Value> = LINES
        .iter()
        .filter(some)
        .map(|line| {
            let values = job.series.iter().map(line.value).map(super::html::four_digits);
            let values: Vec<Option<f64>> = values.collect();
            json!({ "label": line.label, "unit": line.unit.word(), "values": values })
        })
        .collect();
    Some(json!({ "seconds": seconds, "lines": lines }))
}
