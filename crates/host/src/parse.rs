//! The few forms that kernel files share.

use crate::{HostError, LineFault, Root};

/// More of a kind than any machine has: pairs of devices are counted by their square.
const MOST_DEVICES: usize = 4096;

/// Highest processor number that is accepted: a list such as `0-4000000000` is an error, not
/// memory.
const MAX_CPU: u32 = 1 << 20;

/// Parses a list as `/sys` and `/proc` print processors and nodes: `0-3,8`, ascending as given.
/// An empty list is a list of none.
///
/// # Errors
/// [`LineFault`] when a part is not a number or an ascending range.
pub fn parse_cpu_list(text: &str) -> Result<Vec<u32>, LineFault> {
    let malformed = || LineFault::new(0, text.trim_end(), "a list like 0-3,8");
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: u32 = first.parse().map_err(|_| malformed())?;
        let last: u32 = last.parse().map_err(|_| malformed())?;
        if first > last || last > MAX_CPU || cpus.last().is_some_and(|seen| *seen >= first) {
            return Err(malformed());
        }
        cpus.extend(first..=last);
    }
    Ok(cpus)
}

/// A file of one unsigned number.
pub(crate) fn number(text: &str) -> Result<u64, LineFault> {
    let word = text.trim();
    word.parse().map_err(|_| LineFault::new(0, word, "an unsigned number"))
}

/// The value of the first line `key: value`, trimmed.
pub(crate) fn field<'t>(text: &'t str, key: &str) -> Option<(usize, &'t str)> {
    text.lines().enumerate().find_map(|(index, line)| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then_some((index, value.trim()))
    })
}

/// A `/proc/meminfo` value in bytes: `16384 kB`. Counts (no unit) are refused.
pub(crate) fn kib_field(text: &str, key: &str) -> Result<Option<u64>, LineFault> {
    let Some((index, value)) = field(text, key) else {
        return Ok(None);
    };
    let malformed = || LineFault::new(index, value, "a size in kB");
    let digits = value.strip_suffix("kB").ok_or_else(malformed)?.trim_end();
    let kib: u64 = digits.parse().map_err(|_| malformed())?;
    kib.checked_mul(1024).ok_or_else(malformed).map(Some)
}

/// A `key: number` value without unit.
pub(crate) fn count_field(text: &str, key: &str) -> Result<Option<u64>, LineFault> {
    let Some((index, value)) = field(text, key) else {
        return Ok(None);
    };
    value.parse().map(Some).map_err(|_| LineFault::new(index, value, "an unsigned number"))
}

/// The choice in brackets of a list like `always [madvise] never`; the only word when there are
/// no brackets, as block devices without a choice print.
pub(crate) fn chosen(text: &str) -> Option<String> {
    let text = text.trim();
    let inside = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    match inside {
        Some((word, _)) => Some(word.trim().to_owned()),
        None if !text.is_empty() && !text.contains(char::is_whitespace) => Some(text.to_owned()),
        None => None,
    }
}

/// A rate in Gbit/s as drivers print it, in Mbit/s: `6.0 Gbps` (libata), `12.0 Gbit` (SAS),
/// `100 Gb/sec (4X EDR)` (InfiniBand). `None` for `<unknown>` and whatever else is no such rate.
pub(crate) fn gigabits(text: &str) -> Option<u64> {
    let (figure, unit) = text.trim().split_once(' ')?;
    if !unit.starts_with('G') {
        return None;
    }
    let (whole, part) = figure.split_once('.').unwrap_or((figure, "0"));
    if part.is_empty() || part.len() > 3 || !part.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let thousandths: u64 = format!("{part:0<3}").parse().ok()?;
    let megabits = whole.checked_mul(1000)?.checked_add(thousandths)?;
    (megabits > 0).then_some(megabits)
}

/// Undoes the escapes of `/proc` tables: space, tab, newline, backslash and `#` as `\ooo`
/// (proc_pid_mountinfo(5), Linux `mangle_path`). A backslash not followed by three octal
/// digits below 256 stands for itself.
pub(crate) fn unescape_octal(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((byte, tail)) = rest.split_first() {
        if *byte == b'\\'
            && let Some(code) = octal(tail)
        {
            out.push(code);
            rest = &tail[3..];
        } else {
            out.push(*byte);
            rest = tail;
        }
    }
    out
}

/// The byte that three octal digits at the start of `text` spell.
fn octal(text: &[u8]) -> Option<u8> {
    let digits = text.get(..3)?;
    let mut value = 0u16;
    for digit in digits {
        value = value * 8 + u16::from((b'0'..=b'7').contains(digit).then(|| digit - b'0')?);
    }
    u8::try_from(value).ok()
}

/// Names in a directory of devices. Those beyond the first 4096 are left out, as a problem: no
/// machine has so many.
pub(crate) fn devices_in(root: &Root, dir: &str, problems: &mut Vec<HostError>) -> Vec<String> {
    let mut names = keep(root.list(dir).map(Some), problems).unwrap_or_default();
    if names.len() > MOST_DEVICES {
        let source = LineFault::new(MOST_DEVICES, &names[MOST_DEVICES], "4096 devices at most");
        problems.push(HostError::Malformed { path: root.join(dir), source });
        names.truncate(MOST_DEVICES);
    }
    names
}

/// Keeps a value, or notes why there is none and goes on.
pub(crate) fn keep<T>(
    result: Result<Option<T>, HostError>,
    problems: &mut Vec<HostError>,
) -> Option<T> {
    result.unwrap_or_else(|error| {
        problems.push(error);
        None
    })
}
