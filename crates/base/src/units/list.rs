//! Lists of small numbers: CPUs, GPUs, NUMA nodes.

use std::fmt::Write as _;

use crate::units::UnitError;

/// The largest index a list may name, and one less than how many entries it may have.
///
/// Above any CPU number Linux is built for (`CONFIG_NR_CPUS` is at most 8192 on x86-64), and low
/// enough that a mistyped `0-4000000000` is an error and not 16 GB of memory.
pub const MAX_INDEX: u32 = 65_535;

const LIST: &str = "numbers and ranges joined by commas, each at most 65535, such as 0-3,8";
const RANGE: &str = "a range whose end is not below its start, such as 0-3";
const ENTRIES: &str = "at most 65536 entries in the whole list";

/// Reads a CPU list in the kernel's own form, `0-3,8`: sorted and each CPU once, because it is
/// a set (`cpuset(7)`, "List format", without the `:N/M` stride, which the kernel never prints).
///
/// # Errors
/// Empty text (the kernel prints that for a node without CPUs: the caller says what it means),
/// blanks, an index above [`MAX_INDEX`], a range that runs backwards.
///
/// ```
/// assert_eq!(gpuio_base::units::parse_cpu_list("8,0-3"), Ok(vec![0, 1, 2, 3, 8]));
/// ```
pub fn parse_cpu_list(input: &str) -> Result<Vec<u32>, UnitError> {
    let mut cpus = parse_index_list(input)?;
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

/// Reads a list in the same form and keeps its order and its repeats: `2,0-1,2` is
/// `[2, 0, 1, 2]`. For GPUs, where the order decides which worker gets which.
///
/// # Errors
/// As [`parse_cpu_list`], and more than 65536 entries.
pub fn parse_index_list(input: &str) -> Result<Vec<u32>, UnitError> {
    let mut list = Vec::new();
    let mut at = 0;
    loop {
        let (first, mut end) = index(input, at)?;
        let mut last = first;
        if input.as_bytes().get(end) == Some(&b'-') {
            let start = end + 1;
            (last, end) = index(input, start)?;
            if last < first {
                return Err(UnitError::new(input, start, RANGE));
            }
        }
        list.extend(first..=last);
        if list.len() > MAX_INDEX as usize + 1 {
            return Err(UnitError::new(input, at, ENTRIES));
        }
        match input.as_bytes().get(end) {
            None => return Ok(list),
            Some(b',') => at = end + 1,
            Some(_) => return Err(UnitError::new(input, end, LIST)),
        }
    }
}

/// The number that starts at byte `at`, and where it ends.
fn index(input: &str, at: usize) -> Result<(u32, usize), UnitError> {
    let digits = input.as_bytes()[at..].iter().take_while(|b| b.is_ascii_digit()).count();
    match input[at..at + digits].parse() {
        Ok(value) if value <= MAX_INDEX => Ok((value, at + digits)),
        _ => Err(UnitError::new(input, at, LIST)),
    }
}

/// Prints CPUs in the kernel's form, sorted and each once: `[8, 0, 1, 2, 3]` is `0-3,8`. Two
/// neighbours are a range as well (`0-1`), as the kernel prints them. No CPU prints nothing.
pub fn format_cpu_list(cpus: &[u32]) -> String {
    let mut sorted = cpus.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let mut text = String::new();
    for run in sorted.chunk_by(|a, b| a.checked_add(1) == Some(*b)) {
        let comma = if text.is_empty() { "" } else { "," };
        // Writing to a String cannot fail.
        let _ = match run {
            [first, .., last] => write!(text, "{comma}{first}-{last}"),
            [only] => write!(text, "{comma}{only}"),
            [] => Ok(()),
        };
    }
    text
}
