//! Durations in nanoseconds.

use crate::units::UnitError;
use crate::units::decimal::{Decimal, Wanted};

const SUFFIXES: &str =
    "a duration in seconds, or with ns, us, ms, s, m (min), h or d: 10, 10s, 1.5s, 500ms, 2m, 1d";

const WANTED: Wanted = Wanted {
    number: SUFFIXES,
    fits: "a duration below 2^64 ns (about 584 years)",
    whole: "a duration that is a whole number of nanoseconds, such as 1.5us",
};

/// Largest first, so that printing takes the first that divides.
const UNITS: [(&str, u64); 6] = [
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// Other spellings.
const WORDS: [(&str, u64); 16] = [
    ("d", 86_400_000_000_000),
    ("day", 86_400_000_000_000),
    ("days", 86_400_000_000_000),
    ("hour", 3_600_000_000_000),
    ("hours", 3_600_000_000_000),
    ("min", 60_000_000_000),
    ("mins", 60_000_000_000),
    ("minute", 60_000_000_000),
    ("minutes", 60_000_000_000),
    ("sec", 1_000_000_000),
    ("secs", 1_000_000_000),
    ("second", 1_000_000_000),
    ("seconds", 1_000_000_000),
    ("msec", 1_000_000),
    ("usec", 1_000),
    ("nsec", 1),
];

/// Reads a duration and returns nanoseconds.
///
/// A bare number is seconds, as in fio's `runtime=` and gdsio's `-T`. Suffixes are `ns`, `us`
/// (also `µs`), `ms`, `s`, `m` (minutes), `h` and `d`, and words such as `min` and `days`, in lower
/// case: `M` would be a size. Decimals are accepted when they are a whole number of nanoseconds.
///
/// # Errors
/// Empty or signed text, another suffix, blanks, 2^64 ns or more, or a fraction of a
/// nanosecond.
///
/// ```
/// assert_eq!(gpuio_base::units::parse_duration_ns("250us"), Ok(250_000));
/// assert_eq!(gpuio_base::units::parse_duration_ns("10"), Ok(10_000_000_000));
/// ```
pub fn parse_duration_ns(input: &str) -> Result<u64, UnitError> {
    let number = Decimal::scan(input, &WANTED)?;
    let unit = match &input[number.len..] {
        "" => 1_000_000_000,
        // U+00B5 micro sign and U+03BC Greek mu look alike and keyboards give either.
        "\u{b5}s" | "\u{3bc}s" => 1_000,
        suffix => match UNITS.iter().chain(&WORDS).find(|(name, _)| *name == suffix) {
            Some((_, unit)) => *unit,
            None => {
                return Err(UnitError::new(input, bad_column(input, number.len), SUFFIXES));
            }
        },
    };
    number.times(unit, input, &WANTED)
}

/// The first byte past the longest accepted suffix, so that `10sx` points at `x`.
fn bad_column(input: &str, from: usize) -> usize {
    let suffix = &input[from..];
    let fits =
        UNITS.iter().chain(&WORDS).map(|(name, _)| *name).filter(|name| suffix.starts_with(*name));
    from + fits.map(str::len).max().unwrap_or(0)
}

/// Prints nanoseconds with the largest unit that divides them: `10s`, `1500ms`, `2m`, `0s`. From
/// 10,000 of a unit below seconds on, with decimals of a larger one: `46.142857ms`.
///
/// Exact: [`parse_duration_ns`] reads the same value back.
pub fn format_duration_ns(ns: u64) -> String {
    if ns == 0 {
        return "0s".to_owned();
    }
    let unit = UNITS.iter().find(|(_, unit)| ns.is_multiple_of(*unit));
    // The last unit is 1 and divides everything.
    let (name, unit) = unit.unwrap_or(&("ns", 1));
    if ns / unit < 10_000 || *unit >= 1_000_000_000 {
        return format!("{}{name}", ns / unit);
    }
    let larger = UNITS.iter().find(|(_, unit)| *unit <= 1_000_000_000 && *unit <= ns);
    let (name, unit) = larger.unwrap_or(&("ns", 1));
    let width = unit.ilog10() as usize;
    let decimals = format!("{:0width$}", ns % unit);
    format!("{}.{}{name}", ns / unit, decimals.trim_end_matches('0'))
}
