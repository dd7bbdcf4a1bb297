//! The logs of one thread in fio's format: a line for each I/O, or for each direction in each
//! window: `time, value, direction, block size, 0`, as fio-plot reads them. Time is in milliseconds
//! from the ramp's end; in a window's line it is the window's end, and the block size is 0.

use std::fmt::Write as _;

use gpuio_base::stat::IoLine;

/// The subject of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Log {
    /// Throughput in KiB per second.
    Bandwidth,
    /// I/Os per second; 1 for each I/O.
    Iops,
    /// Latency in nanoseconds from when an I/O was due; the mean in a window.
    Latency,
    /// The same from when it was started: fio's `clat`.
    Completion,
}

impl Log {
    /// The part of its file's name between the job's own and the number.
    pub fn suffix(self) -> &'static str {
        match self {
            Log::Bandwidth => "bw",
            Log::Iops => "iops",
            Log::Latency => "lat",
            Log::Completion => "clat",
        }
    }

    /// The value of a line, which is of a window or of one I/O.
    fn value(self, line: &IoLine, window: bool) -> u64 {
        let per = |count: u64, time_ns: u64| {
            let value = u128::from(count) * 1_000_000_000 / u128::from(time_ns.max(1));
            u64::try_from(value).unwrap_or(u64::MAX)
        };
        let mean = |sum: u64| sum / line.ios.max(1);
        match self {
            Log::Bandwidth if window => per(line.bytes, line.span_ns) / 1024,
            Log::Bandwidth => per(line.bytes, line.started_ns) / 1024,
            Log::Iops if window => per(line.ios, line.span_ns),
            Log::Iops => line.ios,
            Log::Latency => mean(line.latency_ns),
            Log::Completion => mean(line.started_ns),
        }
    }
}

/// The lines of one thread's log; with `offset` each has that of its I/O before the last field.
pub fn render(lines: &[IoLine], log: Log, window: bool, offset: bool) -> String {
    let mut out = String::new();
    for line in lines {
        let (time, side) = (line.at_ns / 1_000_000, u8::from(line.write));
        let (value, size) = (log.value(line, window), if window { 0 } else { line.bytes });
        let place = if offset { format!(" {},", line.offset) } else { String::new() };
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{time}, {value}, {side}, {size},{place} 0");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const IO: IoLine = IoLine {
        at_ns: 1_700_000,
        span_ns: 500_000,
        ios: 1,
        bytes: 4096,
        latency_ns: 500_000,
        started_ns: 400_000,
        offset: 8192,
        write: true,
    };
    const WINDOW: IoLine = IoLine {
        at_ns: 2_000_000_000,
        span_ns: 1_000_000_000,
        ios: 100,
        bytes: 409_600,
        latency_ns: 70_000_000,
        started_ns: 50_000_000,
        offset: 0,
        write: false,
    };

    fn line(line: IoLine, log: Log, window: bool) -> String {
        render(&[line], log, window, false)
    }

    #[test]
    fn a_line_of_one_io() {
        assert_eq!(line(IO, Log::Bandwidth, false), "1, 10000, 1, 4096, 0\n");
        assert_eq!(line(IO, Log::Iops, false), "1, 1, 1, 4096, 0\n");
        assert_eq!(line(IO, Log::Latency, false), "1, 500000, 1, 4096, 0\n");
        assert_eq!(line(IO, Log::Completion, false), "1, 400000, 1, 4096, 0\n");
        assert_eq!(render(&[IO], Log::Iops, false, true), "1, 1, 1, 4096, 8192, 0\n");
    }

    #[test]
    fn a_line_of_a_window() {
        assert_eq!(line(WINDOW, Log::Bandwidth, true), "2000, 400, 0, 0, 0\n");
        assert_eq!(line(WINDOW, Log::Iops, true), "2000, 100, 0, 0, 0\n");
        assert_eq!(line(WINDOW, Log::Latency, true), "2000, 700000, 0, 0, 0\n");
        assert_eq!(line(WINDOW, Log::Completion, true), "2000, 500000, 0, 0, 0\n");
    }
}
