//! Sizes in bytes.

use crate::units::UnitError;
use crate::units::decimal::{Decimal, Wanted};

const SUFFIXES: &str =
    "a size in bytes, or with k, m, g, t, p or e as powers of 1024: 4096, 4k, 1MiB, 1.5G";

const WANTED: Wanted = Wanted {
    number: SUFFIXES,
    fits: "a size below 2^64 bytes (16E)",
    whole: "a size that is a whole number of bytes, such as 1.5K or 1536",
};

const UNITS: [(char, u32); 6] = [('E', 60), ('P', 50), ('T', 40), ('G', 30), ('M', 20), ('K', 10)];

/// Reads a size in bytes.
///
/// `4096`, `4096B`, `4k`, `4K`, `4KB` and `4KiB` are all 4096: every prefix is a power of 1024,
/// letters of either case. That is how gdsio reads `-i 1M`, and how fio reads `k`, `kb` and `m`
/// under its default `kb_base=1024`. fio reads the *IEC* spellings (`KiB`, `Mi`) as powers of
/// 1000 there, against IEC 80000-13; this function never does, so a reader of fio job files has
/// to say so where it meets one.
///
/// Decimals are accepted when they are a whole number of bytes: `1.5G`, not `1.3K`.
///
/// # Errors
/// Empty or signed text, another suffix, blanks, a value of 2^64 bytes or more, or a fraction
/// of a byte.
///
/// ```
/// assert_eq!(gpuio_base::units::parse_bytes("1.5G"), Ok(1_610_612_736));
/// assert!(gpuio_base::units::parse_bytes("4x").is_err());
/// ```
pub fn parse_bytes(input: &str) -> Result<u64, UnitError> {
    let number = Decimal::scan(input, &WANTED)?;
    let suffix = &input[number.len..];
    number.times(1 << shift(input, number.len, suffix)?, input, &WANTED)
}

fn shift(input: &str, from: usize, suffix: &str) -> Result<u32, UnitError> {
    let mut rest = suffix;
    let mut shift = 0;
    if let Some(first) = suffix.chars().next()
        && let Some((_, found)) = UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(&first))
    {
        rest = &suffix[1..];
        shift = *found;
    }
    let lower = rest.to_ascii_lowercase();
    if lower.is_empty() || lower == "b" || (shift > 0 && (lower == "i" || lower == "ib")) {
        return Ok(shift);
    }
    // Point at the first character past the longest accepted prefix of the suffix.
    let accepted = match lower.as_bytes() {
        [b'i', b'b', ..] if shift > 0 => 2,
        [b'i', ..] if shift > 0 => 1,
        [b'b', ..] => 1,
        _ => 0,
    };
    Err(UnitError::new(input, from + (suffix.len() - rest.len()) + accepted, SUFFIXES))
}

/// Prints a size with the largest power of 1024 that divides it: `4K`, `1536K`, `1M`, `4097`.
///
/// Exact: [`parse_bytes`] reads the same value back. No fraction is ever printed, so the text
/// sorts and compares as people type it.
pub fn format_bytes(bytes: u64) -> String {
    let unit = UNITS.iter().find(|(_, shift)| bytes != 0 && bytes.trailing_zeros() >= *shift);
    match unit {
        Some((name, shift)) => format!("{}{name}", bytes >> shift),
        None => bytes.to_string(),
    }
}
