//! Figures of one direction, in bytes and nanoseconds. fio 2 prints KiB and microseconds, under
//! other names or, of `io_bytes`, under the same one.

use serde_json::Value;

use super::number;
use crate::Number;

/// fio's latency buckets: 64 for each power of two, so at most 1/128 off (stat.h).
const BUCKET: f64 = 1.0 / 128.0;
const KIB: f64 = 1024.0;

/// Bytes per second of several entries together.
pub(super) fn bytes_per_s<'a>(sides: impl Iterator<Item = &'a Value>) -> Number {
    sides.fold(Number::exact(0.0), |sum, side| match side["bw_bytes"].as_f64() {
        Some(bytes) => Number { value: sum.value + bytes, ..sum },
        // Whole KiB.
        None => Number { value: sum.value + number(&side["bw"]) * KIB, off: sum.off + KIB },
    })
}

/// Bytes moved.
pub(super) fn bytes(side: &Value) -> f64 {
    let unit = if side["io_kbytes"].is_null() { KIB } else { 1.0 };
    number(&side["io_bytes"]) * unit
}

/// The mean of the whole latency.
pub(super) fn mean_ns(side: &Value) -> f64 {
    side["lat_ns"]["mean"].as_f64().unwrap_or_else(|| number(&side["lat"]["mean"]) * 1000.0)
}

/// A percentile of completion latency.
pub(super) fn percentile(side: &Value, name: &str) -> Option<Number> {
    let (value, digit) = match side["clat_ns"]["percentile"][name].as_f64() {
        Some(ns) => (ns, 0.0),
        None => (side["clat"]["percentile"][name].as_f64()? * 1000.0, 1000.0),
    };
    (value > 0.0).then_some(Number { value, off: value * BUCKET + digit })
}
