//! The metrics that are compared.

use gpuio_units::{human_count, human_ns, human_rate};

/// A figure that results have.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// Name on the command line and in JSON.
    pub key: &'static str,
    /// Name in tables.
    pub name: &'static str,
    /// Unit of its values.
    pub unit: &'static str,
    /// Whether more of it is better.
    pub more_is_better: bool,
    /// What the other side is called if it is better, and if it is worse.
    pub words: (&'static str, &'static str),
    /// A value as printed in tables.
    pub print: fn(f64) -> String,
}

/// Every metric, in the order of the tables.
pub const METRICS: &[Metric] = &[
    rate("throughput", "throughput", "bytes/s", human_rate),
    rate("iops", "IOPS", "1/s", human_count),
    latency("mean", "mean latency"),
    latency("p50", "p50"),
    latency("p99", "p99"),
    latency("p99.9", "p99.9"),
    Metric {
        key: "cpu",
        name: "CPU per MiB",
        unit: "µs/MiB",
        more_is_better: false,
        words: ("less CPU", "more CPU"),
        print: |us| human_ns(us * 1000.0),
    },
];

const FASTER: (&str, &str) = ("faster", "slower");

const fn rate(
    key: &'static str,
    name: &'static str,
    unit: &'static str,
    print: fn(f64) -> String,
) -> Metric {
    Metric { key, name, unit, more_is_better: true, words: FASTER, print }
}

const fn latency(key: &'static str, name: &'static str) -> Metric {
    Metric { key, name, unit: "ns", more_is_better: false, words: FASTER, print: human_ns }
}

/// The metric of this key.
#[must_use]
pub(crate) fn find(key: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.key == key)
}
