//! The series of a job as fio's logs: a line per interval and direction, `time, value, direction,
//! block size, offset`, as fio-plot reads them. Time is in milliseconds from the ramp's end to the
//! interval's; block size and offset are 0, since a line is of many I/Os.

use std::fmt::Write as _;

use gpuio_record::{JobPlan, JobResult, Point, Towards};

/// The subject of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Log {
    /// Throughput in KiB per second.
    Bandwidth,
    /// I/Os per second.
    Iops,
    /// The mean latency of the interval in nanoseconds.
    Latency,
}

impl Log {
    /// The part of its file's name between the job's own and the number.
    pub fn suffix(self) -> &'static str {
        match self {
            Log::Bandwidth => "bw",
            Log::Iops => "iops",
            Log::Latency => "lat",
        }
    }
}

/// The lines of one job's log. Intervals of the ramp are left out, and those that began when the
/// job had ended: others of its group go on.
pub fn render(plan: &JobPlan, result: &JobResult, log: Log) -> String {
    let line_ns = plan.logs.as_ref().and_then(|logs| logs.line_ns);
    let mut out = String::new();
    let last_ns = i64::try_from(result.last_done_ns).unwrap_or(i64::MAX);
    for point in lines(&result.series, line_ns.unwrap_or(0), last_ns) {
        for direction in plan.directions() {
            let Some(value) = value(&point, *direction, log) else { continue };
            let (time, side) = (point.at_ns / 1_000_000, u8::from(*direction == Towards::Write));
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{time}, {value}, {side}, 0, 0");
        }
    }
    out
}

/// Points of the series that began before `last_ns`, joined until they cover so much time, to the
/// nearest point. The rest at the end is a line too.
fn lines(series: &[Point], line_ns: u64, last_ns: i64) -> Vec<Point> {
    let mut lines: Vec<Point> = Vec::new();
    let mut open = false;
    let within = |point: &&Point| {
        let began = point.at_ns.saturating_sub_unsigned(point.span_ns);
        point.at_ns > 0 && point.span_ns > 0 && began < last_ns
    };
    for point in series.iter().filter(within) {
        match lines.last_mut().filter(|_| open) {
            Some(line) => join(line, point),
            None => lines.push(point.clone()),
        }
        let covered = lines.last().map_or(0, |line| line.span_ns);
        open = covered.saturating_add(point.span_ns / 2) < line_ns;
    }
    lines
}

/// Adds a point to the line of those before it.
fn join(line: &mut Point, point: &Point) {
    let sum = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
    line.at_ns = point.at_ns;
    line.span_ns += point.span_ns;
    line.read_bytes += point.read_bytes;
    line.write_bytes += point.write_bytes;
    line.read_ios += point.read_ios;
    line.write_ios += point.write_ios;
    line.read_latency_ns = sum(line.read_latency_ns, point.read_latency_ns);
    line.write_latency_ns = sum(line.write_latency_ns, point.write_latency_ns);
}

fn value(point: &Point, direction: Towards, log: Log) -> Option<u64> {
    let latency_ns = match direction {
        Towards::Read => point.read_latency_ns,
        Towards::Write => point.write_latency_ns,
    };
    let per_s = |count: u64| {
        let value = u128::from(count) * 1_000_000_000 / u128::from(point.span_ns);
        u64::try_from(value).unwrap_or(u64::MAX)
    };
    match log {
        Log::Bandwidth => Some(per_s(point.bytes(direction)) / 1024),
        Log::Iops => Some(per_s(point.ios(direction))),
        Log::Latency => latency_ns?.checked_div(point.ios(direction)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(at_ms: i64, span_ms: u64, reads: u64) -> Point {
        Point {
            at_ns: at_ms * 1_000_000,
            span_ns: span_ms * 1_000_000,
            read_bytes: reads * 4096,
            write_bytes: 4096,
            read_ios: reads,
            write_ios: 1,
            read_latency_ns: Some(reads * 10),
            write_latency_ns: Some(700),
            ..Point::default()
        }
    }

    /// Twice the sampler's interval, and a rest of its own length at the end.
    #[test]
    fn a_line_covers_the_time_that_was_requested() {
        let series =
            [point(-100, 100, 9), point(501, 501, 10), point(1000, 499, 30), point(1500, 500, 5)];
        let found = lines(&series, 1_000_000_000, i64::MAX);
        let of: Vec<_> = found.iter().map(|p| (p.at_ns / 1_000_000, p.read_ios)).collect();
        assert_eq!(of, [(1000, 40), (1500, 5)]);
        assert_eq!(value(&found[0], Towards::Read, Log::Iops), Some(40));
        assert_eq!(value(&found[0], Towards::Write, Log::Latency), Some(700));
        assert_eq!(value(&found[1], Towards::Read, Log::Bandwidth), Some(40));
        assert_eq!(
            lines(&series, 0, i64::MAX).len(),
            3,
            "a line for each point where nothing was requested"
        );
    }

    /// It ended by its count at 1.2 s; another job of its group had 2.5 s.
    #[test]
    fn a_log_ends_with_its_job() {
        let job = [point(500, 500, 10), point(1000, 500, 10), point(1500, 500, 4)];
        let rest = [point(2000, 500, 0), point(2500, 500, 0)];
        let series = [&job[..], &rest].concat();
        let ends = |line_ns| {
            let found = lines(&series, line_ns, 1_200_000_000);
            found.iter().map(|one| one.at_ns / 1_000_000).collect::<Vec<_>>()
        };
        assert_eq!(ends(0), [500, 1000, 1500]);
        assert_eq!(ends(1_000_000_000), [1000, 1500]);
        assert_eq!(lines(&series, 0, 1_500_000_000).len(), 3, "its end is that of an interval");
    }

    #[test]
    fn an_interval_without_ios_of_a_direction_has_no_latency_of_it() {
        let none = Point { read_ios: 0, read_latency_ns: Some(0), ..point(1, 1, 0) };
        assert_eq!(value(&none, Towards::Read, Log::Latency), None);
        let old = Point { read_latency_ns: None, ..point(1, 1, 3) };
        assert_eq!(value(&old, Towards::Read, Log::Latency), None, "no record of it");
    }
}
