//! Keeping writes through the page cache and writes past it apart.
//!
//! A direct write drops the cached pages of its range; a page that is dirty then, or becomes dirty
//! meanwhile, stays and is written back later, over the direct write's bytes where it holds old
//! ones (`open(2)`, "O_DIRECT"; mm/filemap.c, `kiocb_invalidate_post_direct_write`). Large folios
//! make neighbours share what is dirty. So an edge is written and brought to the device with its
//! file's lock held alone, and blocks are written with it shared. Other processes are their own
//! affair.

use std::os::fd::RawFd;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::sys::errno;
use crate::born::{Born, OfProcess};
use crate::fault::Failed;

/// Locks, which files share by their identity: two handles of one file have the same.
const LOCKS: usize = 64;

struct Locks {
    born: Born,
    locks: [RwLock<()>; LOCKS],
}

/// A thread that a child of `fork(2)` does not have may hold one of its parent's.
static HELD: OfProcess<Locks> = OfProcess::later();

/// This process's locks.
fn locks() -> &'static Locks {
    let make = || Locks { born: Born::here(), locks: std::array::from_fn(|_| RwLock::new(())) };
    HELD.get(|locks| &locks.born, make)
}

fn lock(identity: u64) -> &'static RwLock<()> {
    #[expect(clippy::cast_possible_truncation, reason = "below the number of locks")]
    let index = ((identity >> 32 ^ identity) % LOCKS as u64) as usize;
    &locks().locks[index]
}

/// For direct writes of whole blocks.
pub(super) fn shared(identity: u64) -> RwLockReadGuard<'static, ()> {
    lock(identity).read().unwrap_or_else(PoisonError::into_inner)
}

/// For writes of edges.
pub(super) fn alone(identity: u64) -> RwLockWriteGuard<'static, ()> {
    lock(identity).write().unwrap_or_else(PoisonError::into_inner)
}

/// Writes the range's dirty pages to the device and waits for it (`sync_file_range(2)`). Where the
/// file system has nothing to write to, that is no error.
pub(super) fn to_device(fd: RawFd, offset: u64, len: usize) -> Result<(), Failed> {
    let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // A write that got here was inside the range of off_t.
    let (from, bytes) = (offset.cast_signed(), (len as u64).cast_signed());
    // SAFETY: the call takes numbers only.
    if unsafe { libc::sync_file_range(fd, from, bytes, flags) } == 0 {
        return Ok(());
    }
    match errno() {
        libc::EINVAL | libc::ESPIPE | libc::ENOSYS | libc::EOPNOTSUPP => Ok(()),
        errno => Err(Failed { call: "sync_file_range", errno, offset, len: len as u64 }),
    }
}
