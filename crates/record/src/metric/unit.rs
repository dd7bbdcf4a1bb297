//! Units of metrics.

use gpuio_base::units::{human_bytes, human_count, human_ns, human_rate};

/// The unit of a metric, which decides how it is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes per second.
    BytesPerSecond,
    /// Operations per second.
    PerSecond,
    /// Nanoseconds.
    Nanoseconds,
    /// Microseconds for each MiB.
    MicrosecondsPerMib,
    /// CPUs.
    Cores,
    /// Per cent.
    Percent,
    /// Bytes.
    Bytes,
    /// A number of things.
    Count,
}

impl Unit {
    /// Its name in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Unit::BytesPerSecond => "bytes/s",
            Unit::PerSecond => "1/s",
            Unit::Nanoseconds => "ns",
            Unit::MicrosecondsPerMib => "µs/MiB",
            Unit::Cores => "cores",
            Unit::Percent => "%",
            Unit::Bytes => "B",
            Unit::Count => "count",
        }
    }

    /// How many of it are one base unit of OpenMetrics: seconds, bytes or a ratio.
    pub fn per_base(self) -> f64 {
        match self {
            Unit::Nanoseconds => 1e9,
            Unit::MicrosecondsPerMib => 1e6,
            Unit::Percent => 100.0,
            _ => 1.0,
        }
    }

    /// A value as tables show it, with three digits. The report's script has the same rules.
    pub fn print(self, value: f64) -> String {
        match self {
            Unit::BytesPerSecond => human_rate(value),
            Unit::PerSecond | Unit::Count | Unit::Cores => human_count(value),
            Unit::Nanoseconds => human_ns(value),
            Unit::MicrosecondsPerMib => human_ns(value * 1e3),
            Unit::Percent => percent(value),
            Unit::Bytes => human_bytes(value),
        }
    }
}

/// A whole per cent, or one decimal below 10 and near 100. Never shows 100 for another value:
/// rounds down below it and up above it.
pub fn percent(percent: f64) -> String {
    if percent < 10.0 {
        return format!("{percent:.1}");
    }
    if !(99.0..101.0).contains(&percent) {
        return format!("{percent:.0}");
    }
    let tenths = percent * 10.0;
    let tenths = if percent < 100.0 { tenths.floor() } else { tenths.ceil() };
    if tenths == 1000.0 { "100".to_owned() } else { format!("{:.1}", tenths / 10.0) }
}

#[cfg(test)]
mod tests {
    use super::percent;

    #[test]
    fn only_a_hundred_is_a_hundred() {
        for (figure, text) in [
            (0.0, "0.0"),
            (4.26, "4.3"),
            (87.4, "87"),
            (98.96, "99"),
            (99.0, "99.0"),
            (99.99, "99.9"),
            (100.0, "100"),
            (100.01, "100.1"),
            (103.6, "104"),
            (2500.0, "2500"),
        ] {
            assert_eq!(percent(figure), text, "{figure}");
        }
    }
}
