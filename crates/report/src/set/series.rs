//! Time series: lines over the seconds of a job, all on one time axis.

use gpuio_base::stat::Percentile;
use gpuio_record::metric::{self, Unit};
use gpuio_record::{DeviceSeries, Point, Towards, WatchedGroup};
use serde_json::{Map, Value, json};

use super::devices;
use super::html::four_digits;
use super::rows::Row;
use crate::number::float;

/// gpuio's own counters in each interval.
fn lines(points: &[Point]) -> Vec<Value> {
    let mut lines = Vec::new();
    let mut put = |label: &str, unit: Unit, value: &dyn Fn(&Point) -> Option<f64>| {
        lines.extend(line(label, unit, points.iter().map(value)));
    };
    for (key, ending) in [("throughput", ""), ("iops", "s")] {
        let Some(metric) = metric::find(key) else { continue };
        for direction in [Towards::Read, Towards::Write] {
            let label = format!("{}{ending}", direction.name());
            put(&label, metric.unit(), &|point| metric.of_point(point, direction));
        }
    }
    for at in Percentile::SHORT {
        put(&at.label(), Unit::Nanoseconds, &|point| point.percentile(at).map(float));
    }
    put("largest", Unit::Nanoseconds, &|point| point.max_ns.map(float));
    lines
}

/// Maximum number of device values in a page: more would make the page open slowly. Whole groups
/// are left out, the last first; the records have them.
pub(super) const MOST_VALUES: usize = 250_000;

/// The series of all jobs for the page: `jobs` by record and job, each with its lines; `groups` by
/// record and group, each with the lines of its devices.
///
/// A job's seconds count from the end of its ramp, a group's from the start of its workers; the
/// job's `from` is the second of its group at which its own 0 is. A job may name a group that is
/// missing because of [`MOST_VALUES`].
pub(super) fn all(rows: &[Row<'_>]) -> Value {
    let mut jobs = Map::new();
    let mut groups = Map::new();
    let mut fixed = 0;
    for row in rows {
        let key = format!("{}/{}", row.nth, row.job);
        if jobs.contains_key(&key) {
            continue;
        }
        let watched = devices::group(row.record, row.plan.group).filter(has_points);
        if row.result.series.is_empty() && watched.is_none() {
            continue;
        }
        let group = watched.map(|watched| {
            let key = format!("{}/{}", row.nth, watched.group);
            let more = if groups.contains_key(&key) { 0 } else { values(watched) };
            if more > 0 && fixed + more <= MOST_VALUES {
                fixed += more;
                groups.insert(key.clone(), of_group(row, watched));
            }
            key
        });
        let from = float(row.plan.measured_from_ns()) / 1e9;
        jobs.insert(key, of_job(row, from, group));
    }
    json!({ "jobs": jobs, "groups": groups })
}

/// Values of a group's devices that would be drawn, zeros included.
pub(super) fn values(group: &WatchedGroup) -> usize {
    let figures: usize = group.devices.iter().map(|device| devices::shown(device).len()).sum();
    figures * group.ends_ns.len()
}

fn has_points(group: &&WatchedGroup) -> bool {
    !group.ends_ns.is_empty() && !group.devices.is_empty()
}

/// A line for the page, unless it is zero or absent throughout.
fn line(label: &str, unit: Unit, values: impl Iterator<Item = Option<f64>>) -> Option<Value> {
    let values: Vec<Option<f64>> = values.map(four_digits).collect();
    let some = values.iter().flatten().any(|value| *value > 0.0);
    some.then(|| json!({ "label": label, "unit": unit.word(), "values": values }))
}

fn of_job(row: &Row<'_>, from: f64, group: Option<String>) -> Value {
    let points = &row.result.series;
    let seconds: Vec<f64> = points.iter().map(|point| point.at_ns as f64 / 1e9).collect();
    json!({ "seconds": seconds, "lines": lines(points), "group": group, "from": from })
}

fn of_group(row: &Row<'_>, group: &WatchedGroup) -> Value {
    let seconds: Vec<f64> = group.ends_ns.iter().map(|end| float(*end) / 1e9).collect();
    let device = |device: &DeviceSeries| {
        let shown = devices::shown(device);
        let lines: Vec<Value> =
            shown.iter().filter_map(|one| line(&one.label, one.unit, one.values())).collect();
        let name = devices::name(device);
        (!lines.is_empty()).then(|| json!({ "name": name, "kind": device.probe, "lines": lines }))
    };
    let devices: Vec<Value> = group.devices.iter().filter_map(device).collect();
    let jobs = row.record.plan.jobs.iter().filter(|job| job.group == group.group).count();
    json!({ "seconds": seconds, "jobs": jobs, "devices": devices })
}
