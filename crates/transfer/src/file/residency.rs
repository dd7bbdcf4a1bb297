//! Cache residency: whether a read from the page cache is worth trying first.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU32, Ordering};

use super::sys;

/// Consecutive hits after which a file counts as warm.
const HITS_UNTIL_WARM: u32 = 8;
/// No piece was missing yet.
const NO_MISS: u32 = 1 << 31;
/// One of so many cold pieces is tried where the kernel can't report residency.
const COLD_PIECES_PER_TRY: u32 = 16;

/// How the last pieces of a file fared in the page cache.
///
/// A read with `RWF_NOWAIT` that finds nothing is not free: since Linux 5.9 it starts read-ahead
/// (mm/filemap.c, `filemap_get_pages`), so a cold file that is read with `O_DIRECT` would partly be
/// read twice and fill the cache. So until a file is known to be warm, `cachestat(2)` is queried
/// first, which starts nothing. Without it a file counts as warm until a piece is missing, and then
/// only some pieces are tried. These are hints, so no memory order is needed.
#[derive(Debug)]
pub(super) struct CacheResidency {
    /// Hits left until the file counts as warm, and [`NO_MISS`]; 0 is warm.
    hits_left: AtomicU32,
    attempts: AtomicU32,
}

impl CacheResidency {
    pub(super) fn new() -> Self {
        Self { hits_left: AtomicU32::new(NO_MISS | HITS_UNTIL_WARM), attempts: AtomicU32::new(0) }
    }

    /// Whether one of the last pieces was not cached.
    pub(super) fn is_cold(&self) -> bool {
        (1..NO_MISS).contains(&self.hits_left.load(Ordering::Relaxed))
    }

    /// Whether a read from the cache is worth trying.
    pub(super) fn is_worth_trying(&self, fd: RawFd, offset: u64, len: usize) -> bool {
        let hits_left = self.hits_left.load(Ordering::Relaxed);
        if hits_left == 0 {
            return true;
        }
        let Some(found) = holds(fd, offset, len) else {
            if hits_left & NO_MISS != 0 {
                self.assume_warm();
                return true;
            }
            let attempt = self.attempts.fetch_add(1, Ordering::Relaxed);
            return attempt.is_multiple_of(COLD_PIECES_PER_TRY);
        };
        if !found {
            self.record(false);
        }
        found
    }

    /// Records whether a piece was cached.
    pub(super) fn record(&self, found: bool) {
        let before = self.hits_left.load(Ordering::Relaxed);
        let next = match (found, before & !NO_MISS) {
            (false, _) => HITS_UNTIL_WARM,
            (true, 0 | 1) => 0,
            (true, _) => before - 1,
        };
        if next != before {
            self.hits_left.store(next, Ordering::Relaxed);
        }
    }

    /// Records that nothing can be learned: each piece is tried.
    pub(super) fn assume_warm(&self) {
        if self.hits_left.load(Ordering::Relaxed) != 0 {
            self.hits_left.store(0, Ordering::Relaxed);
        }
    }
}

/// Whether the page cache holds the range, but for one page at most: the last one may lie beyond
/// the end of the file. `None` if that is unknown.
pub(super) fn holds(fd: RawFd, offset: u64, len: usize) -> Option<bool> {
    let page = rustix::param::page_size() as u64;
    let pages = sys::cached_pages(fd, offset, len as u64)?;
    Some(pages > 0 && pages + 1 >= (len as u64).div_ceil(page))
}
