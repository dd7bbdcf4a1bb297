//! Figures of one direction, in bytes and nanoseconds. fio 2 prints KiB and microseconds, under
//! other names or, of `io_bytes`, under the same one.

use gpuio_base::stat::Percentile;
use serde_json::Value;

use super::number;
use crate::foreign::Number;

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

/// Bytes moved. fio 3 has fields of its own beside them.
pub(super) fn bytes(side: &Value) -> f64 {
    let is_of_fio_3 = ["io_kbytes", "bw_bytes"].iter().any(|field| !side[field].is_null());
    let unit = if is_of_fio_3 { 1.0 } else { KIB };
    number(&side["io_bytes"]) * unit
}

/// The mean of the whole latency.
pub(super) fn mean_ns(side: &Value) -> f64 {
    side["lat_ns"]["mean"].as_f64().unwrap_or_else(|| number(&side["lat"]["mean"]) * 1000.0)
}

/// The least and the highest latency of these names (fio 3's, fio 2's), in ns.
pub(super) fn span(side: &Value, [ns, us]: [&str; 2]) -> Option<(f64, f64)> {
    let of = |field: &str, unit: f64, digit: f64| {
        let [least, most] = ["min", "max"].map(|end| side[field][end].as_f64());
        let most = most.filter(|most| *most > 0.0)?;
        Some((least? * unit - digit, most * unit + digit))
    };
    of(ns, 1.0, 1.0).or_else(|| of(us, 1000.0, 1000.0))
}

/// The percentiles of completion latency.
pub(super) fn percentiles(side: &Value) -> Vec<(Percentile, Number)> {
    let known = [("clat_ns", 1.0, 0.0), ("clat", 1000.0, 1000.0)];
    let found = known
        .into_iter()
        .find_map(|(field, ns, digit)| Some((side[field]["percentile"].as_object()?, ns, digit)));
    let Some((all, ns, digit)) = found else { return Vec::new() };
    let one = |(name, value): (&String, &Value)| {
        let value = value.as_f64().filter(|value| *value > 0.0)? * ns;
        Some((Percentile::parse(name)?, Number { value, off: value * BUCKET + digit }))
    };
    all.iter().filter_map(one).collect()
}
