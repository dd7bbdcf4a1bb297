//! The figures of a row: one per line of the table.

mod fix;

use gpuio_record::Latency;
use gpuio_stat::Summary;
use gpuio_units::{human_bytes, human_count, human_ns};

pub(super) use fix::{fix, points};

use super::rows::Row;
use crate::ceilings;
use crate::number::{self, float};

/// The unit of a figure, which decides how it is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    BytesPerSecond,
    PerSecond,
    Nanoseconds,
    MicrosecondsPerMib,
    Cores,
    Percent,
    Bytes,
    Count,
}

impl Unit {
    /// Its name in the page's script.
    pub(super) fn word(self) -> &'static str {
        match self {
            Unit::BytesPerSecond => "B/s",
            Unit::PerSecond => "1/s",
            Unit::Nanoseconds => "ns",
            Unit::MicrosecondsPerMib => "us/MiB",
            Unit::Cores => "cores",
            Unit::Percent => "%",
            Unit::Bytes => "B",
            Unit::Count => "count",
        }
    }
}

/// A value as it is printed. The page's script has the same rules, and a test compares both.
pub(super) fn print(unit: Unit, value: f64) -> String {
    match unit {
        Unit::BytesPerSecond => number::throughput(value),
        Unit::PerSecond | Unit::Count => number::iops(value),
        Unit::Nanoseconds => human_ns(value),
        Unit::MicrosecondsPerMib => human_ns(value * 1e3),
        Unit::Cores => human_count(value),
        Unit::Percent => ceilings::percent(value),
        Unit::Bytes => human_bytes(value),
    }
}

/// One figure.
pub(super) struct Figure {
    /// Short name, unique.
    pub(super) key: &'static str,
    /// Name for people.
    pub(super) label: &'static str,
    /// Its unit.
    pub(super) unit: Unit,
    /// Whether more is better; `None` if neither is.
    pub(super) more_is_better: Option<bool>,
    /// Its value; `None` if there is none.
    pub(super) value: fn(&Row<'_>) -> Option<f64>,
}

fn latency<'a>(row: &Row<'a>) -> Option<&'a Latency> {
    row.side().latency.as_ref()
}

fn total(row: &Row<'_>, figure: fn(&Summary) -> Option<u64>) -> Option<f64> {
    latency(row).and_then(|legs| figure(&legs.total)).map(float)
}

fn leg(
    row: &Row<'_>,
    leg: fn(&Latency) -> Option<&Summary>,
    figure: fn(&Summary) -> Option<u64>,
) -> Option<f64> {
    latency(row).and_then(leg).and_then(figure).map(float)
}

const fn time(
    key: &'static str,
    label: &'static str,
    value: fn(&Row<'_>) -> Option<f64>,
) -> Figure {
    Figure { key, label, unit: Unit::Nanoseconds, more_is_better: Some(false), value }
}

const fn figure(
    key: &'static str,
    label: &'static str,
    unit: Unit,
    more_is_better: Option<bool>,
    value: fn(&Row<'_>) -> Option<f64>,
) -> Figure {
    Figure { key, label, unit, more_is_better, value }
}

/// Every figure, in the order in which a page offers them. A lower bound is not a figure: a plot
/// would show it as exact.
pub(super) const FIGURES: &[Figure] = &[
    figure("rate", "throughput", Unit::BytesPerSecond, Some(true), |r| Some(r.side().bytes_per_s)),
    figure("iops", "I/Os per second", Unit::PerSecond, Some(true), |r| Some(r.side().iops)),
    time("p50", "latency, median", |r| total(r, |s| Some(s.p50_ns))),
    time("p90", "latency, 90th percentile", |r| total(r, |s| s.p90_ns)),
    time("p99", "latency, 99th percentile", |r| total(r, |s| s.p99_ns)),
    time("p99_9", "latency, 99.9th percentile", |r| total(r, |s| s.p99_9_ns)),
    time("p99_99", "latency, 99.99th percentile", |r| total(r, |s| s.p99_99_ns)),
    time("max", "latency, largest", |r| total(r, |s| Some(s.max_ns))),
    time("min", "latency, smallest", |r| total(r, |s| Some(s.min_ns))),
    time("mean", "latency, mean", |r| latency(r).map(|legs| legs.total.mean_ns)),
    time("file_p50", "file leg, median", |r| leg(r, |l| l.file.as_ref(), |s| Some(s.p50_ns))),
    time("file_p99", "file leg, 99th percentile", |r| leg(r, |l| l.file.as_ref(), |s| s.p99_ns)),
    time("gpu_p50", "GPU leg, median", |r| leg(r, |l| l.gpu.as_ref(), |s| Some(s.p50_ns))),
    time("gpu_p99", "GPU leg, 99th percentile", |r| leg(r, |l| l.gpu.as_ref(), |s| s.p99_ns)),
    time("queue_p99", "queue, 99th percentile", |r| leg(r, |l| l.queue.as_ref(), |s| s.p99_ns)),
    figure("cpu", "CPU time of the job per MiB", Unit::MicrosecondsPerMib, Some(false), |r| {
        r.result.cpu.us_per_mib.filter(|_| !r.result.cpu.scope.is_at_least())
    }),
    figure("cores", "CPUs used by the job", Unit::Cores, Some(false), |r| {
        Some(r.result.cpu.cores_busy).filter(|_| !r.result.cpu.scope.is_at_least())
    }),
    figure("of_ceiling", "of the lowest ceiling", Unit::Percent, Some(true), |r| {
        r.side().of_ceiling.as_ref().map(|of| of.percent)
    }),
    figure("ceiling", "lowest ceiling", Unit::BytesPerSecond, None, |r| {
        r.side().of_ceiling.as_ref().and_then(|of| ceilings::rate(r.record(), of))
    }),
    figure("of_expected", "of the expected throughput", Unit::Percent, Some(true), |r| {
        r.expected().and_then(|one| one.percent)
    }),
    figure("expected", "expected throughput", Unit::BytesPerSecond, None, |r| {
        r.expected().and_then(|one| one.expected.bytes_per_s)
    }),
    figure("beside_compute", "speed kept by a GPU computation", Unit::Percent, Some(true), |r| {
        r.result.beside.as_ref()?.lowest()?.ratio.map(|ratio| ratio * 100.0)
    }),
    figure(
        "beside_io",
        "throughput kept during a GPU computation",
        Unit::Percent,
        Some(true),
        |r| r.result.beside.as_ref()?.io_ratio.map(|ratio| ratio * 100.0),
    ),
    figure("utilisation", "accelerator utilisation", Unit::Percent, Some(true), |r| {
        r.result.feed.as_ref()?.utilisation_percent
    }),
    figure("samples", "samples per second", Unit::PerSecond, Some(true), |r| {
        Some(r.result.feed.as_ref()?.samples_per_s)
    }),
    time("stall", "stall of all accelerators", |r| Some(float(r.result.feed.as_ref()?.stall_ns))),
    figure("in_flight", "I/Os in flight per thread", Unit::Count, None, |r| {
        Some(f64::from(r.plan.depth))
    }),
    figure("ios", "completed I/Os", Unit::Count, None, |r| Some(float(r.side().ios))),
    figure("failed", "failed I/Os", Unit::Count, Some(false), |r| Some(float(r.side().failed))),
];

/// The figure of this key.
pub(super) fn find(key: &str) -> Option<&'static Figure> {
    FIGURES.iter().find(|figure| figure.key == key)
}
