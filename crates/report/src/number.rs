//! Figures as the tables for people show them: three digits, a blank, the unit.

use gpuio_base::units::{human_bytes, human_ns};
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

/// `1 sample`, `2 samples`.
pub(crate) fn many(number: u64, what: &str) -> String {
    format!("{} {what}{}", count(number), if number == 1 { "" } else { "s" })
}

/// A count with every digit: `1,050,624`.
pub(crate) fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::new();
    for (nth, digit) in digits.chars().enumerate() {
        if nth > 0 && (digits.len() - nth).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number of times, with every digit.
pub(crate) fn times(number: u64) -> String {
    if number == 1 { "once".to_owned() } else { format!("{} times", count(number)) }
}

/// For rounded forms only: a count above 2^53 loses its last bits.
#[expect(clippy::cast_precision_loss, reason = "three digits are printed")]
pub(crate) fn float(value: u64) -> f64 {
    value as f64
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
        let counts = [0, 999, 1_000, 1_050_624, u64::MAX].map(count);
        let with_commas = ["0", "999", "1,000", "1,050,624", "18,446,744,073,709,551,615"];
        assert_eq!(counts, with_commas);
        assert_eq!(times(1), "once");
        assert_eq!(times(12_345), "12,345 times");
    }
}
