//! A block device's I/O counters: its `stat` file (Documentation/block/stat.rst of Linux).

use gpuio_record::facts::BlockCounters;

use super::topology::block_dir_by_name;
use crate::{HostError, LineFault, Root};

const SECTOR_BYTES: u64 = 512;
const NS_PER_MS: u64 = 1_000_000;

/// A device's counters since it appeared, in the kernel's own units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BlockSample {
    pub reads: u64,
    /// Reads merged into a neighbour.
    pub reads_merged: u64,
    /// Sectors of 512 bytes read.
    pub read_sectors: u64,
    /// Milliseconds that reads waited, summed; wraps at 2^32.
    pub read_ms: u64,
    pub writes: u64,
    /// Writes merged into a neighbour.
    pub writes_merged: u64,
    /// Sectors of 512 bytes written.
    pub write_sectors: u64,
    /// Milliseconds that writes waited, summed; wraps at 2^32.
    pub write_ms: u64,
    /// Requests in flight now.
    pub in_flight: u64,
    /// Milliseconds with at least one request in flight (`io_ticks`); wraps at 2^32.
    pub busy_ms: u64,
    /// Milliseconds times requests in flight (`time_in_queue`); wraps at 2^32.
    pub queue_ms: u64,
    /// Flushes of the device's cache. Each is one of the writes too, unless a write with bytes
    /// asked for it. Absent before Linux 5.5.
    pub flushes: Option<u64>,
}

impl BlockSample {
    /// The work from this sample to a `later` one of the same device. `None` when a counter went
    /// back: the device was taken away and another has its number.
    pub fn delta(&self, later: &Self) -> Option<BlockCounters> {
        let sectors = |from: u64, to: u64| Some(to.checked_sub(from)?.saturating_mul(SECTOR_BYTES));
        Some(BlockCounters {
            reads: later.reads.checked_sub(self.reads)?,
            read_bytes: sectors(self.read_sectors, later.read_sectors)?,
            read_wait_ns: milliseconds(self.read_ms, later.read_ms),
            writes: later.writes.checked_sub(self.writes)?,
            write_bytes: sectors(self.write_sectors, later.write_sectors)?,
            write_wait_ns: milliseconds(self.write_ms, later.write_ms),
            reads_merged: later.reads_merged.checked_sub(self.reads_merged)?,
            writes_merged: later.writes_merged.checked_sub(self.writes_merged)?,
            busy_ns: milliseconds(self.busy_ms, later.busy_ms),
            in_flight: later.in_flight,
            flushes: later.flushes.zip(self.flushes).and_then(|(to, from)| to.checked_sub(from)),
        })
    }
}

/// Time between two readings of a counter that the kernel prints as a 32-bit number.
fn milliseconds(from: u64, to: u64) -> u64 {
    let passed = to.wrapping_sub(from) & u64::from(u32::MAX);
    passed * NS_PER_MS
}

/// Samples the counters of the device with this kernel name; `None` when it has no entry in sysfs.
/// A partition counts only its own I/O.
///
/// # Errors
/// [`HostError`] when the file cannot be read or understood.
pub fn sample_named(root: &Root, name: &str) -> Result<Option<BlockSample>, HostError> {
    let Some(dir) = block_dir_by_name(root, name) else {
        return Ok(None);
    };
    root.read(dir.file("stat"))?.map(|text| text.parse(parse_stat)).transpose()
}

/// Samples all block devices by one file, partitions included; kernel names with counters, in the
/// kernel's order. Devices that never did anything are listed too.
///
/// # Errors
/// [`HostError`] when `/proc/diskstats` cannot be read or understood.
pub fn samples(root: &Root) -> Result<Vec<(String, BlockSample)>, HostError> {
    let text = root.read("proc/diskstats")?;
    text.map_or_else(|| Ok(Vec::new()), |text| text.parse(parse_diskstats))
}

/// Parses `/proc/diskstats` (Documentation/admin-guide/iostats.rst): major, minor, name, and the
/// numbers of [`parse_stat`].
///
/// # Errors
/// [`LineFault`] when a line has no name or fewer than eleven numbers behind it.
fn parse_diskstats(text: &str) -> Result<Vec<(String, BlockSample)>, LineFault> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(index, line)| {
            let malformed = || LineFault::new(index, line.trim(), "a device and eleven numbers");
            let mut words = line.split_whitespace().skip(2);
            let name = words.next().ok_or_else(malformed)?;
            Ok((name.to_owned(), numbers(words).ok_or_else(malformed)?))
        })
        .collect()
}

/// Parses a `stat` file: 11 numbers, more since Linux 4.18 (discards) and 5.5 (flushes).
///
/// # Errors
/// [`LineFault`] when there are fewer than 11 or one is not a number.
pub fn parse_stat(text: &str) -> Result<BlockSample, LineFault> {
    let malformed = || LineFault::new(0, text.trim(), "eleven or more numbers");
    numbers(text.split_whitespace()).ok_or_else(malformed)
}

fn numbers<'t>(mut words: impl Iterator<Item = &'t str>) -> Option<BlockSample> {
    let mut numbers = [0u64; 11];
    for number in &mut numbers {
        *number = words.next()?.parse().ok()?;
    }
    // Behind four numbers of discards.
    let flushes = words.nth(4).and_then(|word| word.parse().ok());
    let [
        reads,
        reads_merged,
        read_sectors,
        read_ms,
        writes,
        writes_merged,
        write_sectors,
        write_ms,
        in_flight,
        busy_ms,
        queue_ms,
    ] = numbers;
    Some(BlockSample {
        reads,
        reads_merged,
        read_sectors,
        read_ms,
        writes,
        writes_merged,
        write_sectors,
        write_ms,
        in_flight,
        busy_ms,
        queue_ms,
        flushes,
    })
}
