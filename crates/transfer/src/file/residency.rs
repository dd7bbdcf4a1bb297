//! Cache residency: whether a read from the page cache is worth trying first.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU32, Ordering};

use super::sys;

/// Consecutive hits after which a cold file counts as warm again.
const HITS_UNTIL_WARM: u32 = 8;
/// One of so many cold pieces is tried where the kernel can't report residency.
const COLD_PIECES_PER_TRY: u32 = 16;

/// How the last pieces of a file fared in the page cache.
///
/// A read with `RWF_NOWAIT` that finds nothing is not free: since Linux 5.9 it starts read-ahead
/// (mm/filemap.c, `filemap_get_pages`), so a cold file that is read with `O_DIRECT` would partly be
/// read twice. While a file is cold, `cachestat(2)` is queried first, which starts nothing; without
/// it only some pieces are tried. These are hints, so no memory order is needed.
#[derive(Debug)]
pub(super) struct CacheResidency {
    /// Hits left until the file counts as warm; 0 is warm.
    cold: AtomicU32,
    attempts: AtomicU32,
}

impl CacheResidency {
    pub(super) fn new() -> Self {
        Self { cold: AtomicU32::new(0), attempts: AtomicU32::new(0) }
    }

    /// Whether the last pieces were not cached.
    pub(super) fn is_cold(&self) -> bool {
        self.cold.load(Ordering::Relaxed) > 0
    }

    /// Whether a read from the cache is worth trying.
    pub(super) fn is_worth_trying(&self, fd: RawFd, offset: u64, len: usize) -> bool {
        if self.cold.load(Ordering::Relaxed) == 0 {
            return true;
        }
        let page = rustix::param::page_size() as u64;
        match sys::cached_pages(fd, offset, len as u64) {
            // The last page may lie beyond the end of the file.
            Some(pages) => pages > 0 && pages + 1 >= (len as u64).div_ceil(page),
            None => {
                self.attempts.fetch_add(1, Ordering::Relaxed).is_multiple_of(COLD_PIECES_PER_TRY)
            }
        }
    }

    /// Records the result of a try.
    pub(super) fn record(&self, found: bool) {
        let cold = self.cold.load(Ordering::Relaxed);
        let next = if found { cold.saturating_sub(1) } else { HITS_UNTIL_WARM };
        if next != cold {
            self.cold.store(next, Ordering::Relaxed);
        }
    }
}
