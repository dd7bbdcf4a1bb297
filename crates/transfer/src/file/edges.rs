//! Keeps writes through the page cache and direct writes from overwriting each other.
//!
//! A direct write drops the cached pages of its range. A page that is dirty then, or becomes dirty
//! during the write, stays and is written back later, over the direct write's bytes (`open(2)`,
//! "O_DIRECT"; mm/filemap.c, `kiocb_invalidate_post_direct_write`). With large folios, neighbours
//! share one dirty state. So an unaligned edge is written and flushed to the device under its
//! file's exclusive lock, and whole blocks are written under the shared lock. Other processes are
//! not covered.

use std::os::fd::RawFd;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::sys::errno;
use crate::fault::FileFault;
use crate::fork::{PerProcess, ProcessMark};

/// Number of locks. Files share them by identity: two handles of one file have the same lock.
const LOCKS: usize = 64;

struct Locks {
    mark: ProcessMark,
    locks: [RwLock<()>; LOCKS],
}

/// Per process: a lock of the parent may be held by a thread that a child of `fork(2)` does not
/// have.
static PROCESS_LOCKS: PerProcess<Locks> = PerProcess::new();

/// This process's locks.
fn locks() -> &'static Locks {
    let make =
        || Locks { mark: ProcessMark::new(), locks: std::array::from_fn(|_| RwLock::new(())) };
    PROCESS_LOCKS.get(|locks| &locks.mark, make)
}

fn lock(identity: u64) -> &'static RwLock<()> {
    #[expect(clippy::cast_possible_truncation, reason = "below the number of locks")]
    let index = ((identity >> 32 ^ identity) % LOCKS as u64) as usize;
    &locks().locks[index]
}

/// The lock for direct writes of whole blocks.
pub(super) fn shared(identity: u64) -> RwLockReadGuard<'static, ()> {
    lock(identity).read().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn exclusive(identity: u64) -> RwLockWriteGuard<'static, ()> {
    lock(identity).write().unwrap_or_else(PoisonError::into_inner)
}

/// Writes the range's dirty pages to the device and waits for it (`sync_file_range(2)`). A file
/// system without a device is no error.
pub(super) fn flush_range(fd: RawFd, offset: u64, len: usize) -> Result<(), FileFault> {
    let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // A successful write was inside the range of off_t.
    let (from, bytes) = (offset.cast_signed(), (len as u64).cast_signed());
    // SAFETY: the call takes numbers only.
    if unsafe { libc::sync_file_range(fd, from, bytes, flags) } == 0 {
        return Ok(());
    }
    match errno() {
        libc::EINVAL | libc::ESPIPE | libc::ENOSYS | libc::EOPNOTSUPP => Ok(()),
        errno => Err(FileFault { call: "sync_file_range", errno, offset, len: len as u64 }),
    }
}
