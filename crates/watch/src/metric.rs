//! Metrics as they are read, what changed between two readings, and figures made of that.

use std::borrow::Cow;

use gpuio_base::units::{Powers, powers};

/// How a metric behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Counts up and begins again at 0 after 2^32.
    Counter32,
    /// Counts up in 64 bits.
    Counter64,
    /// Goes up and down.
    Gauge,
}

/// One number of a device, as it is read.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// Name, its base unit the last word where it has one: `read_bytes`, `busy_seconds`.
    pub key: &'static str,
    /// The base unit as OpenMetrics names it; empty for counts.
    pub unit: &'static str,
    /// Base units in `scale.1` of the raw number: 512 and 1 for sectors, 1 and 1000 for
    /// milliseconds.
    pub scale: (u32, u32),
    /// How it behaves.
    pub kind: Kind,
    pub help: &'static str,
}

/// A count of 64 bits.
pub(crate) const fn count(key: &'static str, help: &'static str) -> Metric {
    Metric { key, unit: "", scale: (1, 1), kind: Kind::Counter64, help }
}

/// A count of bytes, of 64 bits.
pub(crate) const fn bytes(key: &'static str, help: &'static str) -> Metric {
    Metric { unit: "bytes", ..count(key, help) }
}

/// Milliseconds that add up, of 64 bits.
pub(crate) const fn milliseconds(key: &'static str, help: &'static str) -> Metric {
    Metric { unit: "seconds", scale: (1, 1000), ..count(key, help) }
}

impl Metric {
    /// A raw number in base units.
    pub fn base(&self, raw: u64) -> f64 {
        raw as f64 * f64::from(self.scale.0) / f64::from(self.scale.1)
    }

    /// The count from one reading to the next, if it turned over at most once; `None` when it went
    /// back, which means that it was reset.
    pub fn counted(&self, from: u64, to: u64) -> Option<u64> {
        match self.kind {
            Kind::Counter32 if from <= u64::from(u32::MAX) && to <= u64::from(u32::MAX) => {
                Some(to.wrapping_sub(from) & u64::from(u32::MAX))
            }
            // No counter of 64 bits goes through half its range in one interval: what would have,
            // was reset.
            _ => Some(to.wrapping_sub(from)).filter(|counted| *counted <= u64::MAX / 2),
        }
    }
}

/// The change of one device in one interval.
#[derive(Debug, Clone)]
pub struct Change {
    pub(crate) metrics: &'static [Metric],
    /// Counters: what was counted. Gauges: the later value. In base units, in the order of
    /// `metrics`.
    pub(crate) values: Vec<Option<f64>>,
    /// Length of the interval; above 0.
    pub(crate) seconds: f64,
}

impl Change {
    /// The count of a counter, or a gauge's value at the end; `None` where it is not known.
    pub fn of(&self, key: &str) -> Option<f64> {
        let nth = self.metrics.iter().position(|metric| metric.key == key)?;
        *self.values.get(nth)?
    }

    /// The count per second.
    pub fn rate(&self, key: &str) -> Option<f64> {
        Some(self.of(key)? / self.seconds)
    }

    /// One count over another; `None` where the second is 0.
    pub fn per(&self, key: &str, each: &str) -> Option<f64> {
        let each = self.of(each).filter(|each| *each > 0.0)?;
        Some(self.of(key)? / each)
    }
}

/// How a figure is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Number,
    /// Bytes (per second) in MiB.
    Mebibytes,
    /// Bytes in KiB.
    Kibibytes,
    /// Bytes in GiB.
    Gibibytes,
    /// Seconds in milliseconds.
    Milliseconds,
    Percent,
    /// Hz in MHz.
    Megahertz,
}

impl Form {
    /// The figure in the unit that its heading names.
    pub fn shown(self, value: f64) -> f64 {
        let one = if powers(Powers::Iec) == Powers::Si { 1000.0 } else { 1024.0 };
        match self {
            Form::Number | Form::Percent => value,
            Form::Kibibytes => value / one,
            Form::Mebibytes => value / one.powi(2),
            Form::Gibibytes => value / one.powi(3),
            Form::Milliseconds => value * 1000.0,
            Form::Megahertz => value / 1e6,
        }
    }
}

/// A heading with the unit that the powers in print have.
pub(crate) fn heading(own: &'static str) -> Cow<'static, str> {
    match powers(Powers::Iec) {
        Powers::Iec => Cow::Borrowed(own),
        Powers::Si => Cow::Owned(own.replace("KiB", "kB").replace("iB", "B")),
    }
}

impl Figure {
    /// Its heading as it is shown.
    pub fn title(&self) -> Cow<'static, str> {
        heading(self.heading)
    }
}

/// A column: what is made of a change.
#[derive(Debug, Clone, Copy)]
pub struct Figure {
    /// Name in JSON, base units: `read_bytes_per_second`, `read_await_seconds`.
    pub key: &'static str,
    /// Heading, with the unit that is shown.
    pub heading: &'static str,
    /// How it is shown.
    pub form: Form,
    /// Whether it is shown where there are only 80 columns.
    pub narrow: bool,
    /// The figure; `None` where it is not known or makes no sense, as the mean wait of no request.
    pub of: fn(&Change) -> Option<f64>,
}

/// A figure; its arguments are the fields.
pub(crate) const fn figure(
    key: &'static str,
    heading: &'static str,
    form: Form,
    narrow: bool,
    of: fn(&Change) -> Option<f64>,
) -> Figure {
    Figure { key, heading, form, narrow, of }
}

/// Figures of whatever counts `reads`, `writes`, `read_bytes` and `written_bytes`: devices, mounts
/// and processes have columns of the same names.
pub(crate) const READS: Figure =
    figure("reads_per_second", "r/s", Form::Number, true, |c| c.rate("reads"));
pub(crate) const WRITES: Figure =
    figure("writes_per_second", "w/s", Form::Number, true, |c| c.rate("writes"));
pub(crate) const READ_BYTES: Figure =
    figure("read_bytes_per_second", "rMiB/s", Form::Mebibytes, true, |c| c.rate("read_bytes"));
pub(crate) const WRITTEN_BYTES: Figure =
    figure("written_bytes_per_second", "wMiB/s", Form::Mebibytes, true, |c| {
        c.rate("written_bytes")
    });

/// Bytes per second in both directions.
pub(crate) fn moved(change: &Change) -> Option<f64> {
    Some(change.rate("read_bytes")? + change.rate("written_bytes")?)
}

/// Figures of whatever counts `received_bytes`, `sent_bytes`, `received_packets` and
/// `sent_packets`: interfaces and ports have columns of the same names.
pub(crate) const RECEIVED_BYTES: Figure =
    figure("received_bytes_per_second", "rx MiB/s", Form::Mebibytes, true, |c| {
        c.rate("received_bytes")
    });
pub(crate) const SENT_BYTES: Figure =
    figure("sent_bytes_per_second", "tx MiB/s", Form::Mebibytes, true, |c| c.rate("sent_bytes"));
pub(crate) const RECEIVED_PACKETS: Figure =
    figure("received_packets_per_second", "rx pkt/s", Form::Number, true, |c| {
        c.rate("received_packets")
    });
pub(crate) const SENT_PACKETS: Figure =
    figure("sent_packets_per_second", "tx pkt/s", Form::Number, true, |c| c.rate("sent_packets"));

/// Bytes per second in both directions, of the same.
pub(crate) fn carried(change: &Change) -> Option<f64> {
    Some(change.rate("received_bytes")? + change.rate("sent_bytes")?)
}
