//! The table of metrics.

use gpuio_base::stat::{Percentile, Summary};
use gpuio_base::units::float;

use super::{List, Side, Unit};
use crate::{FeedResult, Point, RankJob, Towards};

/// A metric that is no percentile.
///
/// The numbers are places in a list: a metric without one is not in it.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Its name, of letters, digits and underscores.
    pub key: &'static str,
    /// The head of its column.
    pub label: &'static str,
    /// Its name, in words.
    pub title: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// Whether more of it is better; `None` if neither is.
    pub more_is_better: Option<bool>,
    pub(super) of: fn(&Side<'_>) -> Option<f64>,
    pub(super) point: Option<fn(&Point, Towards) -> Option<f64>>,
    pub(super) rank: Option<fn(&RankJob) -> Option<f64>>,
    /// Its name among unlike metrics, where that is not the label.
    pub(super) name: Option<&'static str>,
    /// Number of its column, published name, and what it has.
    pub(super) csv: Option<(u8, &'static str, &'static str)>,
    /// Place, name without prefix, unit and meaning of its family.
    pub(super) family: Option<FamilyOf>,
    pub(super) rank_family: Option<FamilyOf>,
    page: Option<u8>,
    compared: Option<u8>,
    /// Whether it is in tables of results; `true` is in those of loads too.
    table: Option<bool>,
}

pub(super) type FamilyOf = (u8, &'static str, &'static str, &'static str);

impl Row {
    pub(super) fn place(&self, list: List) -> Option<u8> {
        match list {
            List::Page => self.page,
            List::Table => self.page.filter(|_| self.table.is_some()),
            List::Summary => self.page.filter(|_| self.table == Some(true)),
            List::Compared => self.compared,
            List::Families => self.family.map(|family| family.0),
            List::RankFamilies => self.rank_family.map(|family| family.0),
        }
    }
}

const MORE: Option<bool> = Some(true);
const LESS: Option<bool> = Some(false);
const NEITHER: Option<bool> = None;

/// `KEY, LABEL, TITLE, UNIT, BETTER, VALUE => FIELD VALUE, …;` for each metric.
macro_rules! rows {
    ($($key:literal, $label:literal, $title:literal, $unit:ident, $better:ident, $of:expr
        $(=> $($field:ident $value:expr),*)?;)*) => {
        &[$(Row {
            $($($field: Some($value),)*)?
            ..Row {
                key: $key,
                label: $label,
                title: $title,
                unit: Unit::$unit,
                more_is_better: $better,
                of: $of,
                point: None,
                rank: None,
                name: None,
                csv: None,
                family: None,
                rank_family: None,
                page: None,
                compared: None,
                table: None,
            }
        }),*]
    };
}

/// Every metric that is no percentile.
pub const ROWS: &[Row] = rows! {
    "throughput", "throughput", "throughput", BytesPerSecond, MORE,
        |s| Some(s.figures().bytes_per_s) =>
        csv (19, "throughput_bytes_per_s", "bytes per second until the last worker finished"),
        family (1, "throughput_bytes_per_second", "bytes_per_second",
            "Bytes per second until the last worker finished."),
        rank_family (1, "throughput_bytes_per_second", "bytes_per_second",
            "Bytes per second of one rank over its own time, both directions."),
        rank |job| Some(job.bytes_per_s), point |p, towards| rate(p.bytes(towards), p),
        page 1, compared 1, table true;
    "iops", "IOPS", "I/Os per second", PerSecond, MORE, |s| Some(s.figures().iops) =>
        csv (20, "iops", "I/Os per second over the same time"),
        family (2, "operations_per_second", "per_second", "I/Os per second over the same time."),
        point |p, towards| rate(p.ios(towards), p), page 2, compared 2, table true;
    "max", "max", "latency, largest", Nanoseconds, LESS, |s| Some(float(whole(s)?.max_ns)) =>
        csv (29, "latency_max_ns", "largest"), page 4, table false,
        rank_family (5, "latency_max_seconds", "seconds", "Largest latency of one rank."),
        rank |job| job.max_ns.map(float);
    "min", "min", "latency, smallest", Nanoseconds, LESS, |s| Some(float(whole(s)?.min_ns)) =>
        csv (21, "latency_min_ns", "smallest latency, from due to completed"), page 5;
    "mean", "mean", "latency, mean", Nanoseconds, LESS, |s| Some(whole(s)?.mean_ns) =>
        csv (22, "latency_mean_ns", "mean"), page 6, compared 3, name "mean latency";
    "stddev", "stddev", "latency, standard deviation", Nanoseconds, NEITHER,
        |s| Some(whole(s)?.stddev_ns) => csv (23, "latency_stddev_ns", "standard deviation");
    "cpu", "CPU/MiB", "CPU time of the job per MiB", MicrosecondsPerMib, LESS,
        |s| s.result.cpu.us_per_mib.filter(|_| !s.result.cpu.scope.is_at_least()) =>
        family (8, "cpu_seconds_per_mebibyte", "seconds_per_mebibyte",
            "CPU time of the job per MiB moved, both directions together."),
        page 10, compared 5, name "CPU per MiB", table false;
    "cores", "CPUs", "CPUs used by the job", Cores, LESS,
        |s| Some(s.result.cpu.cores_busy).filter(|_| !s.result.cpu.scope.is_at_least()) =>
        rank_family (6, "busy_cpus", "cpus", "CPUs that one rank kept busy."),
        rank |job| Some(job.cores_busy), page 11, table false;
    "of_ceiling", "% of ceiling", "of the lowest ceiling", Percent, MORE,
        |s| Some(s.figures().of_ceiling.as_ref()?.percent) =>
        csv (57, "ceiling_percent", "the row's throughput as a percentage of it"),
        family (5, "of_ceiling_ratio", "ratio", "Throughput divided by the lowest ceiling."),
        page 12, table false;
    "ceiling", "ceiling", "lowest ceiling", BytesPerSecond, NEITHER,
        |s| s.record.ceiling_rate(s.figures().of_ceiling.as_ref()?) =>
        csv (56, "ceiling_bytes_per_s", "bytes per second of that ceiling"), page 13;
    "of_expected", "% of expected", "of the expected throughput", Percent, MORE,
        |s| s.expected()?.percent =>
        csv (60, "expected_percent", "the row's throughput as a percentage of it"),
        family (6, "of_expected_ratio", "ratio",
            "Throughput divided by the expected throughput; label bottleneck."),
        page 14, table false;
    "expected", "expected", "expected throughput", BytesPerSecond, NEITHER,
        |s| s.expected()?.expected.bytes_per_s =>
        csv (59, "expected_bytes_per_s", "expected bytes per second from the data sheets of the \
            parts on the route (docs/expectation.md); empty if unknown"),
        family (7, "expected_bytes_per_second", "bytes_per_second",
            "Expected throughput by the figures of the hardware."),
        page 15;
    "beside_compute", "computation", "speed kept by a GPU computation", Percent, MORE,
        |s| Some(s.result.beside.as_ref()?.lowest()?.ratio? * 100.0) => page 16;
    "beside_io", "I/O", "throughput kept during a GPU computation", Percent, MORE,
        |s| Some(s.result.beside.as_ref()?.io_ratio? * 100.0) => page 17;
    "utilisation", "utilisation", "accelerator utilisation", Percent, MORE,
        |s| feed(s)?.utilisation_percent =>
        csv (72, "feed_utilisation_percent", "accelerator utilisation; empty if unknown"), page 18,
        table true;
    "samples", "samples/s", "samples per second", PerSecond, MORE,
        |s| Some(feed(s)?.samples_per_s) =>
        csv (73, "feed_samples_per_s", "samples of a training feed per second"), page 19,
        table false;
    "stall", "stalled", "stall of all accelerators", Nanoseconds, LESS,
        |s| Some(float(feed(s)?.stalled_ns()?)) =>
        csv (74, "feed_stall_ns", "time in which its accelerators waited, summed over them; empty \
            if utilisation is unknown"),
        page 20;
    "in_flight", "depth", "I/Os in flight per thread", Count, NEITHER,
        |s| Some(f64::from(s.plan.depth)) => page 21;
    "ios", "I/Os", "completed I/Os", Count, NEITHER, |s| Some(float(s.figures().ios)) =>
        csv (16, "ios", "I/Os that completed"), rank |job| Some(float(job.ios)), page 22;
    "failed", "failed", "failed I/Os", Count, LESS, |s| Some(float(s.figures().failed)) =>
        csv (18, "failed_ios", "I/Os that failed"),
        family (4, "failed_operations", "operations", "I/Os that failed."),
        rank_family (3, "failed_operations", "operations", "I/Os of one rank that failed."),
        rank |job| Some(float(job.failed)), page 23;
    "bytes", "bytes", "bytes moved", Bytes, NEITHER, |s| Some(float(s.figures().bytes)) =>
        csv (17, "bytes", "bytes of those"),
        family (3, "moved_bytes", "bytes", "Bytes of the completed I/Os."),
        rank_family (2, "moved_bytes", "bytes", "Bytes that one rank moved, both directions."),
        rank |job| Some(float(job.bytes));
    "as_requested", "as requested", "whether the requested path was taken", Count, MORE,
        |s| Some(f64::from(u8::from(s.result.proof.as_ref()?.is_as_requested()?))) =>
        family (9, "path_as_requested", "",
            "1 if the evidence shows that the bytes took the requested path, 0 if another; absent \
             where it shows neither.");
};

/// Place of percentiles in a comparison.
pub(super) const COMPARED_PERCENTILES: u8 = 4;
/// Place of the percentile of a rank among its families.
pub(super) const RANK_PERCENTILE: u8 = 4;

/// A part of a latency, with its percentiles.
#[derive(Debug, Clone, Copy)]
pub struct Leg {
    /// The beginning of its metrics' names; empty for the whole.
    pub(super) prefix: &'static str,
    /// Its name, in words.
    pub(super) title: &'static str,
    pub(super) of: for<'a> fn(&Side<'a>) -> Option<&'a Summary>,
    /// Its percentiles in every CSV file, ascending.
    pub(super) percentiles: &'static [Percentile],
    /// Those on the report's page; without any it has no place there.
    pub(super) on_page: &'static [Percentile],
    pub(super) page: u8,
    /// Number of the first column, how names begin, and what the first has.
    pub(super) csv: (u8, &'static str, &'static str),
}

/// Parts of a latency, the whole first.
pub const LEGS: &[Leg] = &[
    Leg {
        prefix: "",
        title: "latency",
        of: |side| whole(side),
        percentiles: &Percentile::ALL,
        on_page: &Percentile::ALL,
        page: 3,
        csv: (24, "latency", "{}"),
    },
    Leg {
        prefix: "file_",
        title: "file leg",
        of: |side| side.figures().latency.as_ref()?.file.as_ref(),
        percentiles: &Percentile::SHORT,
        on_page: &Percentile::SHORT,
        page: 7,
        csv: (32, "file", "between file and host memory, {}"),
    },
    Leg {
        prefix: "gpu_",
        title: "GPU leg",
        of: |side| side.figures().latency.as_ref()?.gpu.as_ref(),
        percentiles: &Percentile::SHORT,
        on_page: &Percentile::SHORT,
        page: 8,
        csv: (34, "gpu", "between host and GPU memory, {}; empty without a GPU leg"),
    },
    Leg {
        prefix: "queue_",
        title: "queue",
        of: |side| side.figures().latency.as_ref()?.queue.as_ref(),
        percentiles: &Percentile::SHORT,
        on_page: &[Percentile::TAIL],
        page: 9,
        csv: (30, "queue", "time from due to started, {}; empty without a rate"),
    },
    Leg {
        prefix: "alone_",
        title: "latency without the GPU computation",
        of: |side| Some(&side.alone()?.latency.as_ref()?.total),
        percentiles: &[Percentile::TAIL],
        on_page: &[],
        page: 0,
        csv: (70, "beside_alone", "the row's {} without it"),
    },
    Leg {
        prefix: "flush_",
        title: "flush",
        of: |side| match side.direction {
            Towards::Write => side.result.flushes.as_ref()?.latency.as_ref(),
            Towards::Read => None,
        },
        percentiles: &Percentile::SHORT,
        on_page: &Percentile::SHORT,
        page: 10,
        csv: (91, "flush", "calls of fsync or fdatasync, {}; empty without them"),
    },
];

fn whole<'a>(side: &Side<'a>) -> Option<&'a Summary> {
    side.figures().latency.as_ref().map(|latency| &latency.total)
}

fn feed<'a>(side: &Side<'a>) -> Option<&'a FeedResult> {
    side.result.feed.as_ref()
}

fn rate(count: u64, point: &Point) -> Option<f64> {
    (point.span_ns > 0).then(|| float(count) * 1e9 / float(point.span_ns))
}
