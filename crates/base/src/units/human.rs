//! Rounded forms for people, three significant digits. Never read back.

use std::borrow::Cow;
use std::sync::OnceLock;

const BINARY: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
const BINARY_RATE: [&str; 7] = ["B/s", "KiB/s", "MiB/s", "GiB/s", "TiB/s", "PiB/s", "EiB/s"];
const DECIMAL: [&str; 5] = ["", "k", "M", "G", "T"];
const DECIMAL_BYTES: [&str; 7] = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
const DECIMAL_RATE: [&str; 5] = ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"];
const TIME: [&str; 4] = ["ns", "µs", "ms", "s"];

/// Powers in which sizes and rates are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Powers {
    /// Powers of 1000: kB, MB, GB.
    Si,
    /// Powers of 1024: KiB, MiB, GiB.
    Iec,
}

/// The powers that the process prints everywhere, where they were requested.
static REQUESTED: OnceLock<Powers> = OnceLock::new();

/// From now on all `human_*` forms of bytes have these powers, whatever each has by itself. To be
/// set once, before anything is printed; later calls change nothing.
pub fn print_in(powers: Powers) {
    let _ = REQUESTED.set(powers);
}

/// The powers of a form that has these by itself.
pub fn powers(own: Powers) -> Powers {
    REQUESTED.get().copied().unwrap_or(own)
}

/// A sentence, such as a record has saved, with its sizes and rates in the powers that are
/// requested by [`print_in`]: those of the forms of [`human_bytes`] and [`human_rate`], of which
/// three digits are known.
pub fn in_requested(sentence: &str) -> Cow<'_, str> {
    REQUESTED.get().map_or(Cow::Borrowed(sentence), |to| rewritten(sentence, *to))
}

pub(crate) fn rewritten(sentence: &str, to: Powers) -> Cow<'_, str> {
    let (base, names): (f64, &[&str]) = match to {
        Powers::Si => (1024.0, &BINARY),
        Powers::Iec => (1000.0, &DECIMAL_BYTES),
    };
    let mut out = String::new();
    let mut kept = 0;
    for (blank, _) in sentence.match_indices(' ') {
        let (before, unit) = (&sentence[kept..blank], &sentence[blank + 1..]);
        let of_number = |c: char| c.is_ascii_digit() || c == '.';
        let number = &before[before.trim_end_matches(of_number).len()..];
        let begins_a_word = !before[..before.len() - number.len()]
            .ends_with(|c: char| c.is_alphanumeric() || matches!(c, ',' | '_' | '-'));
        let unit = &unit[..unit.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(unit.len())];
        // The unit itself is the same in both.
        let Some(power) = names.iter().skip(1).position(|name| *name == unit) else { continue };
        let Some(value) = number
            .parse::<f64>()
            .ok()
            .filter(|value| begins_a_word && (three_digits(*value, false) == number))
        else {
            continue;
        };
        let of_unit = |_| base;
        let value = value * (0..=power).map(of_unit).product::<f64>();
        let text = match to {
            Powers::Si => scaled(value, 1000.0, &DECIMAL_BYTES),
            Powers::Iec => scaled(value, 1024.0, &BINARY),
        };
        out.push_str(&before[..before.len() - number.len()]);
        out.push_str(&text);
        kept = blank + 1 + unit.len();
    }
    if out.is_empty() {
        return Cow::Borrowed(sentence);
    }
    out.push_str(&sentence[kept..]);
    Cow::Owned(out)
}

/// Bytes as `512 B`, `2.31 GiB`, `1000 KiB`: powers of 1024, named so, unless others are requested
/// by [`print_in`].
///
/// A value that is not a number or infinite prints `n/a`; a negative one keeps its sign.
pub fn human_bytes(bytes: f64) -> String {
    match powers(Powers::Iec) {
        Powers::Iec => scaled(bytes, 1024.0, &BINARY),
        Powers::Si => scaled(bytes, 1000.0, &DECIMAL_BYTES),
    }
}

/// Bytes per second as `2.31 GiB/s`. Same rules as [`human_bytes`].
pub fn human_rate(bytes_per_second: f64) -> String {
    rate(bytes_per_second, powers(Powers::Iec))
}

/// Bytes per second as `2.31 GB/s`: powers of 1000, as links and data sheets count. Same rules as
/// [`human_bytes`].
pub fn human_decimal_rate(bytes_per_second: f64) -> String {
    rate(bytes_per_second, powers(Powers::Si))
}

pub(crate) fn rate(bytes_per_second: f64, powers: Powers) -> String {
    match powers {
        Powers::Iec => scaled(bytes_per_second, 1024.0, &BINARY_RATE),
        Powers::Si => scaled(bytes_per_second, 1000.0, &DECIMAL_RATE),
    }
}

/// The unit of rates of this size, for several that are to be in one: bytes per second of one, and
/// its name.
pub fn rate_unit(bytes_per_second: f64) -> (f64, &'static str) {
    let (base, names): (f64, &[&'static str]) = match powers(Powers::Iec) {
        Powers::Iec => (1024.0, &BINARY_RATE),
        Powers::Si => (1000.0, &DECIMAL_RATE),
    };
    let (mut one, mut step) = (1.0, 0);
    while bytes_per_second / one >= base - 0.5 && step + 1 < names.len() {
        one *= base;
        step += 1;
    }
    (one, names[step])
}

/// A count, or a rate of operations, as `999`, `12.3 k`, `1.23 M`: powers of 1000.
pub fn human_count(count: f64) -> String {
    scaled(count, 1000.0, &DECIMAL)
}

/// Nanoseconds as `850 ns`, `12.3 µs`, `1.20 ms`, `3.50 s`. Seconds are the largest unit.
pub fn human_ns(ns: f64) -> String {
    scaled(ns, 1000.0, &TIME)
}

/// Transfers per second of one lane of a link, given in millions, as PCI Express names its speeds:
/// `16 GT/s`, `2.5 GT/s`.
pub fn human_transfers(millions: u64) -> String {
    match millions % 1000 / 100 {
        0 => format!("{} GT/s", millions / 1000),
        tenths => format!("{}.{tenths} GT/s", millions / 1000),
    }
}

/// A directory in a sentence, where a full stop may follow: a dot at its end would be one with it.
pub fn place(directory: &str) -> String {
    match directory {
        "" | "." | "./" => "the working directory".to_owned(),
        one if one.ends_with('.') => format!("{one}/"),
        one => one.to_owned(),
    }
}

/// A count with every digit: `1,050,624`.
pub fn digits(count: u64) -> String {
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

/// A number of things with every digit: `1 sample`, `1,050,624 samples`. Words of which more than
/// the end changes have both forms: `file is|files are`.
pub fn many(number: u64, what: &str) -> String {
    let (one, more) = what.split_once('|').unwrap_or((what, ""));
    match (number, more) {
        (1, _) => format!("1 {one}"),
        (_, "") => format!("{} {one}s", digits(number)),
        _ => format!("{} {more}", digits(number)),
    }
}

fn scaled(value: f64, base: f64, units: &[&str]) -> String {
    if !value.is_finite() {
        return "n/a".to_owned();
    }
    let mut left = value.abs();
    let mut step = 0;
    // Half a unit below the base rounds up to it, and `1024 KiB` should read `1.00 MiB`.
    while left >= base - 0.5 && step + 1 < units.len() {
        left /= base;
        step += 1;
    }
    let number = three_digits(left, step == 0);
    let sign = if value < 0.0 { "-" } else { "" };
    let gap = if units[step].is_empty() { "" } else { " " };
    format!("{sign}{number}{gap}{}", units[step])
}

/// Whole numbers of the base unit print without decimals: half a byte is news, `512.0 B` is not.
fn three_digits(value: f64, base_unit: bool) -> String {
    // The bounds are where rounding to the finer form would gain a digit (`9.995` → `10.0`).
    if value >= 99.95 || (base_unit && value.fract() == 0.0) {
        format!("{value:.0}")
    } else if value >= 9.995 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}
