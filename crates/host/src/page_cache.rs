//! The page cache and what waits to be written: `/proc/meminfo` (proc_meminfo(5)).

use crate::parse::kib_field;
use crate::{HostError, LineFault, Root};

/// Memory at one moment, in bytes. `None` where the kernel does not report it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PageCacheSample {
    /// Free (`MemFree`).
    pub free: Option<u64>,
    /// Could be had without swapping (`MemAvailable`).
    pub available: Option<u64>,
    /// Page cache, shared memory included (`Cached`).
    pub cached: Option<u64>,
    /// Waits to be written back (`Dirty`).
    pub dirty: Option<u64>,
    /// Is being written back (`Writeback`).
    pub writeback: Option<u64>,
}

/// Samples the page cache; `None` without `/proc/meminfo`.
///
/// # Errors
/// [`HostError`] when the file cannot be read or understood.
pub fn sample(root: &Root) -> Result<Option<PageCacheSample>, HostError> {
    let Some(text) = root.read("proc/meminfo")? else { return Ok(None) };
    text.parse(parse).map(Some)
}

/// Parses `/proc/meminfo`.
///
/// # Errors
/// [`LineFault`] when one of the lines is no size in kB.
pub fn parse(text: &str) -> Result<PageCacheSample, LineFault> {
    Ok(PageCacheSample {
        free: kib_field(text, "MemFree")?,
        available: kib_field(text, "MemAvailable")?,
        cached: kib_field(text, "Cached")?,
        dirty: kib_field(text, "Dirty")?,
        writeback: kib_field(text, "Writeback")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_is_not_swap_cached() {
        let text = "MemFree: 1 kB\nSwapCached: 9 kB\nCached: 2 kB\nDirty: 3 kB\n";
        let read = parse(text).unwrap();
        assert_eq!((read.free, read.cached, read.dirty), (Some(1024), Some(2048), Some(3072)));
        assert_eq!(read.writeback, None);
    }
}
