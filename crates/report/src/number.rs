//! Figures as the tables for people show them: three digits, a blank, the unit.

/// A count with every digit, alone and with what is counted.
pub(crate) use gpuio_base::units::{digits as count, float, many};
use gpuio_base::units::{format_bytes, human_bytes, human_ns};
/// A number of operations, or operations per second, as `98.3 k`; bytes per second as `2.31 GiB/s`.
pub(crate) use gpuio_base::units::{human_count as iops, human_rate as throughput};

/// Shown if there is no figure.
pub(crate) const NONE: &str = "-";

/// Nanoseconds as `12.3 µs`.
pub(crate) fn time(ns: u64) -> String {
    human_ns(float(ns))
}

/// Nanoseconds as `12.3 µs`, or `-`.
pub(crate) fn maybe_time(ns: Option<u64>) -> String {
    ns.map_or_else(|| NONE.to_owned(), time)
}

/// Bytes as `2.31 GiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    human_bytes(float(bytes))
}

/// A number of times, with every digit.
pub(crate) fn times(number: u64) -> String {
    if number == 1 { "once".to_owned() } else { format!("{} times", count(number)) }
}

/// A requested rate, exact: `602 MiB/s`, `4097 B/s`.
pub(crate) fn requested_rate(bytes_per_s: u64) -> String {
    let text = format_bytes(bytes_per_s);
    match text.strip_suffix(|unit: char| unit.is_ascii_alphabetic()) {
        Some(number) => format!("{number} {}iB/s", &text[number.len()..]),
        None => format!("{text} B/s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_carry_their_unit_behind_a_blank() {
        assert_eq!(time(12_345), "12.3 µs");
        assert_eq!(maybe_time(None), "-");
        assert_eq!(maybe_time(Some(0)), "0 ns");
        assert_eq!(iops(98_312.0), "98.3 k");
        assert_eq!(throughput(2.5 * 1024.0 * 1024.0), "2.50 MiB/s");
        assert_eq!(requested_rate(602 << 20), "602 MiB/s");
        assert_eq!(requested_rate(1536 << 10), "1536 KiB/s");
        assert_eq!(requested_rate(4097), "4097 B/s");
        assert_eq!(times(1), "once");
        assert_eq!(times(12_345), "12,345 times");
    }
}
