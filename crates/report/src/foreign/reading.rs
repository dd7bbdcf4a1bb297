//! Data that all tools have in common.

use std::collections::BTreeMap;

use gpuio_record::{BlockShare, Follow, Order, Pacing};

/// Direction of the bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// File to memory.
    #[default]
    Read,
    /// Memory to file.
    Write,
    /// Both, reported as one figure.
    Both,
}

impl Direction {
    /// `read`, `write` or `read+write`.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Read => "read",
            Direction::Write => "write",
            Direction::Both => "read+write",
        }
    }
}

/// A figure as printed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Number {
    /// The value, in the unit of the field that holds it.
    pub value: f64,
    /// Possible error by rounding or by the tool's buckets, either way, same unit.
    pub off: f64,
}

impl Number {
    /// A figure times `unit`, from a text that ends at its last printed digit: the error is half of
    /// it. `None` if the text is no finite number or negative.
    pub fn printed(text: &str, unit: f64) -> Option<Number> {
        let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let value: f64 = text.parse().ok().filter(|_| plain)?;
        let decimals = text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let digit = 0.1_f64.powi(i32::try_from(decimals).ok()?);
        Some(Number { value: value * unit, off: digit / 2.0 * unit })
    }

    /// A figure that is exact as far as this tool goes.
    pub fn exact(value: f64) -> Number {
        Number { value, off: 0.0 }
    }
}

/// One result: one job and direction.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reading {
    /// The tool, with its version if known.
    pub tool: String,
    /// The job's name or label.
    pub job: Option<String>,
    /// Which way.
    pub direction: Direction,
    /// Whether offsets are random.
    pub random: Option<bool>,
    /// Share of reads in per cent, where it is one direction of a mix: `None` is no mix, and
    /// `Some(None)` one whose share is unknown.
    pub mix: Option<Option<u8>>,
    /// The measured figures, by the names of gpuio's metrics, in their units.
    pub figures: BTreeMap<String, Number>,
    /// Threads or processes in all.
    pub threads: Option<u64>,
    /// I/Os in flight per thread.
    pub depth: Option<u64>,
    /// Block size in bytes; absent where sizes vary.
    pub block_bytes: Option<u64>,
    /// Block sizes that vary, with their shares; empty where there is one, or unknown.
    pub blocks: Vec<BlockShare>,
    /// Order of offsets, as the tool's default or as requested.
    pub order: Option<(Order, Option<Follow>)>,
    /// Whether random offsets may repeat although `order` says that they do not.
    pub repeats_unknown: bool,
    /// Requested options by the names of keys of job files; absent where none are listed.
    pub given: Option<BTreeMap<&'static str, String>>,
    /// Options that gpuio can't read or does not have, as requested.
    pub unread: Vec<String>,
    /// The path between file and memory, by gpuio's name.
    pub path: Option<String>,
    /// The engine that moves bytes between file and host memory.
    pub engine: Option<String>,
    /// The rate that each thread had to keep; absent where unknown.
    pub pacing: Option<Pacing>,
    /// The moment from which latencies count, as words behind "from".
    pub since: Option<&'static str>,
    /// O_DIRECT (true) or page cache (false), as requested.
    pub direct: Option<bool>,
    /// Whether each write waits for stable storage.
    pub sync: Option<bool>,
    /// Size of each thread's region.
    pub size_bytes: Option<u64>,
    /// I/Os and bytes that were moved, where the result has them beside its rates.
    pub ops: Option<f64>,
    pub data_bytes: Option<f64>,
    /// The least and the highest latency in ns, of the kind of the mean and of that of the
    /// percentiles.
    pub mean_span: Option<(f64, f64)>,
    pub percentile_span: Option<(f64, f64)>,
    /// The results that this one is the sum of, where the tool prints each.
    pub parts: Vec<Reading>,
    /// Time measured, seconds.
    pub seconds: Option<f64>,
    /// File, directory or device.
    pub target: Option<String>,
    /// Whether it ran on gpuio's software GPU.
    pub software_gpu: bool,
    /// Why it did not end as planned; `None` if nothing reports that.
    pub failed: Option<String>,
    pub notes: Vec<String>,
}

impl Reading {
    /// A result of which only the tool and direction are known.
    pub(crate) fn new(tool: &str, direction: Direction) -> Reading {
        let since = Some("submission");
        Reading { tool: tool.to_owned(), direction, since, ..Reading::default() }
    }

    /// Adds a figure, where there is one.
    pub(crate) fn put(&mut self, metric: &str, number: Option<Number>) {
        self.figures.extend(number.map(|number| (metric.to_owned(), number)));
    }
}

/// The content of a text.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Output {
    /// Its results, in order.
    pub readings: Vec<Reading>,
    /// Results that could not be read, so that none is omitted silently.
    pub skipped: Vec<Skipped>,
}

/// A result that was not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Location: `line 7`, `job twins`.
    pub place: String,
    pub why: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_figure_knows_its_last_digit() {
        let two = Number::printed("2.50", 1000.0).unwrap();
        assert!((two.value - 2500.0).abs() < 1e-9 && (two.off - 5.0).abs() < 1e-9, "{two:?}");
        assert!((Number::printed("7", 1.0).unwrap().off - 0.5).abs() < 1e-12);
        for text in ["", "-1", "1e3", "nan", "inf", "1.2.3", "+4"] {
            assert_eq!(Number::printed(text, 1.0), None, "{text}");
        }
    }
}
