//! Rates as data sheets and links give them: powers of 1000, `B` bytes and `b` bits; and those of
//! what was counted.

use crate::units::UnitError;
use crate::units::decimal::{Decimal, Wanted};

const RATE: &str = "a rate with its unit, such as 3.5GB/s, 520MB/s, 12GiB/s or 100Gb/s";

const WANTED_RATE: Wanted =
    Wanted { number: RATE, fits: "a rate below 2^64 bytes per second", whole: RATE };

const COUNT: &str = "a count, or one with k, M or G as powers of 1000: 800000, 840k, 1.5M";

const WANTED_COUNT: Wanted =
    Wanted { number: COUNT, fits: "a count below 2^64", whole: "a whole number, such as 1.5k" };

/// Units in bytes per second.
const UNITS: [(&str, u64); 13] = [
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kb", 125),
    ("Mb", 125_000),
    ("Gb", 125_000_000),
    ("Tb", 125_000_000_000),
];

/// Reads a rate and returns bytes per second.
///
/// `3.5GB/s` is 3 500 000 000, `12GiB/s` 12 × 2^30, `100Gb/s` (bits) 12 500 000 000; `/s` may be
/// left out. Upper and lower case of `b` differ, and there is no default unit: a bare number
/// would be a guess between megabytes and bytes.
///
/// # Errors
/// Empty or signed text, a missing or other unit, blanks, a fraction of a byte, 2^64 or more.
///
/// ```
/// assert_eq!(gpuio_base::units::parse_bytes_per_second("100Gb/s"), Ok(12_500_000_000));
/// assert!(gpuio_base::units::parse_bytes_per_second("3500").is_err());
/// ```
pub fn parse_bytes_per_second(input: &str) -> Result<u64, UnitError> {
    let number = Decimal::scan(input, &WANTED_RATE)?;
    let suffix = &input[number.len..];
    let unit = suffix.strip_suffix("/s").unwrap_or(suffix);
    match UNITS.iter().find(|(name, _)| *name == unit) {
        Some((_, bytes)) => number.times(*bytes, input, &WANTED_RATE),
        None => Err(UnitError::new(input, number.len, RATE)),
    }
}

/// Reads a count: `800000`, `840k`, `1.5M`, as data sheets give I/Os per second. `K` and `k` are
/// both 1000 here, since nobody counts I/Os in powers of 1024.
///
/// # Errors
/// Empty or signed text, another suffix, blanks, a fraction of one, 2^64 or more.
///
/// ```
/// assert_eq!(gpuio_base::units::parse_count("1.5M"), Ok(1_500_000));
/// ```
pub fn parse_count(input: &str) -> Result<u64, UnitError> {
    let number = Decimal::scan(input, &WANTED_COUNT)?;
    let unit = match &input[number.len..] {
        "" => 1,
        "k" | "K" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        _ => return Err(UnitError::new(input, number.len, COUNT)),
    };
    number.times(unit, input, &WANTED_COUNT)
}

/// A count over a time in nanoseconds, per second; 0 over no time.
pub fn per_second(count: u64, time_ns: u64) -> f64 {
    if time_ns == 0 { 0.0 } else { count as f64 * 1e9 / time_ns as f64 }
}
