//! Numbers: sizes, times, counts.

use gpuio_base::units::{MAX_INDEX, parse_bytes, parse_duration_ns};

use super::{Read, ValueError, wrong};
use crate::spec::job::IoSize;

/// A size in bytes; zero is allowed (an offset, a rate of nothing).
pub(crate) fn bytes(value: &str) -> Read<u64> {
    if let Some(at) = value.find('%') {
        return wrong(at, "a share works for size=, io_size= and offset=; give bytes, such as 10G");
    }
    one_for_both(value)?;
    Ok(parse_bytes(value)?)
}

/// A size above zero.
pub(crate) fn size(value: &str) -> Read<u64> {
    match bytes(value)? {
        0 => wrong(0, "the size is 0; give a size above 0, such as 4k or 1G"),
        size => Ok(size),
    }
}

/// How much a thread moves: bytes, or a share of its size.
pub(crate) fn io_size(value: &str) -> Read<IoSize> {
    let Some(share) = value.strip_suffix('%') else { return size(value).map(IoSize::Bytes) };
    match share.parse() {
        Ok(percent @ 1..) => Ok(IoSize::OfSize(percent)),
        _ => wrong(0, "expected a share of the size of at least 1%, such as 50% or 200%"),
    }
}

/// A chunk of data of which a part repeats: its bytes.
pub(crate) fn chunk(value: &str) -> Read<u32> {
    match u32::try_from(bytes(value)?) {
        Ok(chunk) if chunk.is_power_of_two() && (64..=1 << 30).contains(&chunk) => Ok(chunk),
        _ => wrong(0, "expected a power of two from 64 to 1G, such as 512 or 4k"),
    }
}

/// Values of reads and of writes, where a list has both apart: fio's `read,write,trim`, of which
/// each may be empty. Without a list the value is of both.
pub(crate) type ByDirection<T> = (Option<T>, Option<Option<T>>);

/// Reads such a list; trim moves no bytes, and its part is only checked.
pub(crate) fn by_direction<T>(value: &str, read: fn(&str) -> Read<T>) -> Read<ByDirection<T>> {
    if !value.contains(',') {
        return Ok((Some(read(value)?), None));
    }
    let mut parts = [const { None }; 3];
    for (nth, (at, text)) in super::pieces(value, ',').enumerate() {
        let Some(part) = parts.get_mut(nth) else {
            let what = "a list is read,write,trim: three values at most";
            return wrong(at - 1, what);
        };
        if !text.is_empty() {
            *part = Some(read(text).map_err(|error| error.shifted(at))?);
        }
    }
    let [reads, writes, _] = parts;
    match (&reads, &writes) {
        (None, None) => wrong(0, "the list has no value for reads or for writes"),
        _ => Ok((reads, Some(writes))),
    }
}

/// A share of each file from 1 to 100 per cent.
pub(crate) fn size_percent(value: &str) -> Read<u8> {
    match percent(value)? {
        0 => wrong(0, "the size is 0; give a share from 1% to 100%"),
        share => Ok(share),
    }
}

/// A time of which fio counts bare numbers in microseconds.
pub(crate) fn fio_microseconds(value: &str) -> Read<u64> {
    bare_in(value, 1_000)
}

/// A time of which fio counts bare numbers in milliseconds.
pub(crate) fn fio_milliseconds(value: &str) -> Read<u64> {
    bare_in(value, 1_000_000)
}

fn bare_in(value: &str, unit: u64) -> Read<u64> {
    if value.is_empty() || value.contains(|c: char| !c.is_ascii_digit()) {
        return duration(value);
    }
    let number = integer(value)?;
    number.checked_mul(unit).ok_or_else(|| ValueError::new(0, "a time below 2^64 ns works"))
}

/// Bytes per second, with or without `/s`.
pub(crate) fn rate(value: &str) -> Read<u64> {
    size(value.strip_suffix("/s").unwrap_or(value))
}

/// fio accepts `read,write,trim` triples for many keys; here one value is for both directions.
fn one_for_both(value: &str) -> Read<()> {
    match value.find(',') {
        Some(at) => wrong(
            at,
            "one value is for reads and writes (fio's read,write,trim lists are not supported); \
             use one job for each direction",
        ),
        None => Ok(()),
    }
}

/// Nanoseconds.
pub(crate) fn duration(value: &str) -> Read<u64> {
    Ok(parse_duration_ns(value)?)
}

/// Nanoseconds, above 0.
pub(crate) fn some_time(value: &str) -> Read<u64> {
    match duration(value)? {
        0 => wrong(0, "the time is 0; give one above 0, such as 30s"),
        time => Ok(time),
    }
}

/// A whole number, decimal (leading zeros are ignored: gdsio's examples write `-k 0308`) or `0x`
/// and hexadecimal digits.
pub(crate) fn integer(value: &str) -> Read<u64> {
    const EXPECTED: &str = "expected a whole number below 2^64, decimal or 0x…, without a suffix";
    let (digits, radix, from) = match value.strip_prefix("0x").or(value.strip_prefix("0X")) {
        Some(digits) => (digits, 16, 2),
        None => (value, 10, 0),
    };
    if let Some(at) = digits.find(|c: char| !c.is_digit(radix)) {
        return wrong(from + at, EXPECTED);
    }
    u64::from_str_radix(digits, radix).map_err(|_| {
        let at = if digits.is_empty() { from } else { 0 };
        ValueError::new(at, EXPECTED)
    })
}

/// A count that must not be zero.
pub(crate) fn at_least_one(value: &str) -> Read<u64> {
    match integer(value)? {
        0 => wrong(0, "0 has no effect; give 1 or more"),
        count => Ok(count),
    }
}

/// A count that must not be zero, with fio's suffixes: `3k` is 3072.
pub(crate) fn fio_count(value: &str) -> Read<u64> {
    match value.ends_with(|c: char| c.is_ascii_alphabetic()) && !value.starts_with("0x") {
        true => size(value),
        false => at_least_one(value),
    }
}

/// A count from 1 to 2^32 - 1.
pub(crate) fn at_least_one_u32(value: &str) -> Read<u32> {
    u32::try_from(at_least_one(value)?)
        .map_err(|_| ValueError::new(0, "too many; give a number below 2^32"))
}

/// A whole percentage.
pub(crate) fn percent(value: &str) -> Read<u8> {
    let error = |at| ValueError::new(at, "expected a whole percentage from 0 to 100");
    let digits = value.strip_suffix('%').unwrap_or(value);
    if let Some(at) = digits.find(|c: char| !c.is_ascii_digit()) {
        return Err(error(at));
    }
    match digits.parse::<u8>() {
        Ok(percent) if percent <= 100 => Ok(percent),
        _ => Err(error(0)),
    }
}

/// One NUMA node. fio's key accepts a list; a job here has one node.
pub(crate) fn node(value: &str) -> Read<u32> {
    index(value, "expected one NUMA node, such as 0; for several nodes write one job for each")
}

/// One GPU number, for gdsio's keys, which accept one.
pub(crate) fn device(value: &str) -> Read<u32> {
    index(
        value,
        "expected one GPU number, such as 0; for several GPUs write one job for each, or gpu=0,1",
    )
}

fn index(value: &str, expected: &str) -> Read<u32> {
    if let Some(at) = value.find(|c: char| !c.is_ascii_digit()) {
        return wrong(at, expected);
    }
    match value.parse() {
        Ok(index) if index <= MAX_INDEX => Ok(index),
        _ => wrong(0, expected),
    }
}

/// gdsio's transfer type.
pub(crate) fn xfer_type(value: &str) -> Read<u8> {
    match value.parse::<u8>() {
        Ok(xfer_type) if xfer_type <= 7 && value.len() == 1 => Ok(xfer_type),
        _ => wrong(
            0,
            "expected a transfer type from 0 to 7 (1 is host memory, 2 staged to the GPU, 3 \
             managed memory, 4 staged through the page cache); gpuio's own key is path=",
        ),
    }
}
