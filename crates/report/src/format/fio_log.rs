//! The series of a job as fio's logs: a line per interval and direction, `time, value, direction,
//! block size, offset`, as fio-plot reads them. Time is in milliseconds since the ramp's end; block
//! size and offset are 0, since a line is of many I/Os.

use std::fmt::Write as _;

use gpuio_record::{JobPlan, JobResult, Point};

use crate::workload::{Direction, directions};

/// What a log is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Log {
    /// Throughput in KiB per second.
    Bandwidth,
    /// I/Os per second.
    Iops,
    /// The median latency of the interval in nanoseconds, of jobs that only read or only write.
    Latency,
}

impl Log {
    /// The part of its file's name between the job's own and the number.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Log::Bandwidth => "bw",
            Log::Iops => "iops",
            Log::Latency => "lat",
        }
    }
}

/// The lines of one job's log. Intervals of the ramp are left out.
#[must_use]
pub fn render(plan: &JobPlan, result: &JobResult, log: Log) -> String {
    let mut out = String::new();
    for point in result.series.iter().filter(|point| point.at_ns > 0 && point.span_ns > 0) {
        for direction in directions(plan) {
            let Some(value) = value(point, *direction, log) else { continue };
            let (time, side) = (point.at_ns / 1_000_000, u8::from(*direction == Direction::Write));
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{time}, {value}, {side}, 0, 0");
        }
    }
    out
}

fn value(point: &Point, direction: Direction, log: Log) -> Option<u64> {
    let (bytes, ios) = match direction {
        Direction::Read => (point.read_bytes, point.read_ios),
        Direction::Write => (point.write_bytes, point.write_ios),
    };
    let per_s = |count: u64| {
        let value = u128::from(count) * 1_000_000_000 / u128::from(point.span_ns);
        u64::try_from(value).unwrap_or(u64::MAX)
    };
    match log {
        Log::Bandwidth => Some(per_s(bytes) / 1024),
        Log::Iops => Some(per_s(ios)),
        Log::Latency => point.p50_ns,
    }
}
