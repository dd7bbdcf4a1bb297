//! Whether it pays to ask the page cache first.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU32, Ordering};

use super::sys;

/// Hits in a row after which a file that was cold counts as warm again.
const MISSED: u32 = 8;
/// Of how many cold pieces one is tried where the kernel can't be asked.
const TRIED: u32 = 16;

/// What the last pieces of a file met in the page cache.
///
/// A read with `RWF_NOWAIT` that finds nothing is not free: since Linux 5.9 it starts read-ahead
/// (mm/filemap.c, `filemap_get_pages`), so a cold file that is read with `O_DIRECT` would be read
/// twice in part. While a file is cold `cachestat(2)` is asked first, which starts nothing; where
/// that is missing only some pieces are tried. All of it is advice, so nothing is ordered.
#[derive(Debug)]
pub(super) struct Warmth {
    /// 0 is warm.
    cold: AtomicU32,
    turn: AtomicU32,
}

impl Warmth {
    pub(super) fn new() -> Self {
        Self { cold: AtomicU32::new(0), turn: AtomicU32::new(0) }
    }

    /// Whether the last pieces were not there.
    pub(super) fn is_cold(&self) -> bool {
        self.cold.load(Ordering::Relaxed) > 0
    }

    /// Whether a read from the cache is worth a try.
    pub(super) fn hopes(&self, fd: RawFd, offset: u64, len: usize) -> bool {
        if self.cold.load(Ordering::Relaxed) == 0 {
            return true;
        }
        let page = rustix::param::page_size() as u64;
        match sys::cached_pages(fd, offset, len as u64) {
            // The last page may lie behind the end of the file.
            Some(pages) => pages > 0 && pages + 1 >= (len as u64).div_ceil(page),
            None => self.turn.fetch_add(1, Ordering::Relaxed).is_multiple_of(TRIED),
        }
    }

    /// What a try gave.
    pub(super) fn learn(&self, found: bool) {
        let cold = self.cold.load(Ordering::Relaxed);
        let next = if found { cold.saturating_sub(1) } else { MISSED };
        if next != cold {
            self.cold.store(next, Ordering::Relaxed);
        }
    }
}
