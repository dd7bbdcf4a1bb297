//! The system calls of the data path.

use std::os::fd::{BorrowedFd, RawFd};

use crate::fault::FileFault;

/// `preadv2(2)`: return at once with what is in the page cache (Linux 4.14).
const NOWAIT: libc::c_int = libc::RWF_NOWAIT;

pub(super) fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

fn offset_of(call: &'static str, offset: u64, len: usize) -> Result<libc::off_t, FileFault> {
    let end = offset.checked_add(len as u64).and_then(|end| i64::try_from(end).ok());
    match (end, i64::try_from(offset)) {
        (Some(_), Ok(offset)) => Ok(offset),
        _ => Err(FileFault { call, errno: libc::EINVAL, offset, len: len as u64 }),
    }
}

/// One call from this offset, repeated if a signal interrupts it before the first byte.
#[inline]
fn repeated(
    call: &'static str,
    (offset, len): (u64, usize),
    attempt: impl Fn(libc::off_t) -> libc::ssize_t,
) -> Result<usize, FileFault> {
    let from = offset_of(call, offset, len)?;
    loop {
        match usize::try_from(attempt(from)) {
            Ok(count) => return Ok(count),
            Err(_) => match errno() {
                libc::EINTR => {}
                errno => return Err(FileFault { call, errno, offset, len: len as u64 }),
            },
        }
    }
}

/// One `pread(2)`.
///
/// # Safety
/// `at` is valid for writes of `len` bytes.
pub(super) unsafe fn pread(
    fd: RawFd,
    at: *mut u8,
    len: usize,
    offset: u64,
) -> Result<usize, FileFault> {
    // SAFETY: the caller's promise.
    repeated("pread", (offset, len), |from| unsafe { libc::pread(fd, at.cast(), len, from) })
}

/// The result of a read from the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cached {
    /// So many bytes from the start; 0 at the end of the file.
    Bytes(usize),
    /// The first byte is not cached.
    Nothing,
    /// The file system or the kernel does not support this query.
    Unsupported,
}

/// Copies the cached part of the range without waiting for the device.
///
/// # Safety
/// As [`pread`].
pub(super) unsafe fn pread_cached(
    fd: RawFd,
    at: *mut u8,
    len: usize,
    offset: u64,
) -> Result<Cached, FileFault> {
    let from = offset_of("preadv2", offset, len)?;
    let into = libc::iovec { iov_base: at.cast(), iov_len: len };
    loop {
        // SAFETY: one vector, whose memory is valid by the caller's promise.
        let count = unsafe { libc::preadv2(fd, &raw const into, 1, from, NOWAIT) };
        if let Ok(count) = usize::try_from(count) {
            return Ok(Cached::Bytes(count));
        }
        match errno() {
            libc::EINTR => {}
            libc::EAGAIN => return Ok(Cached::Nothing),
            libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL => return Ok(Cached::Unsupported),
            errno => return Err(FileFault { call: "preadv2", errno, offset, len: len as u64 }),
        }
    }
}

/// One `pwrite(2)`.
///
/// # Safety
/// `at` is valid for reads of `len` bytes.
pub(super) unsafe fn pwrite(
    fd: RawFd,
    at: *const u8,
    len: usize,
    offset: u64,
) -> Result<usize, FileFault> {
    // SAFETY: the caller's promise.
    repeated("pwrite", (offset, len), |from| unsafe { libc::pwrite(fd, at.cast(), len, from) })
}

/// Pages of the range in the page cache, without touching it; `None` if that is unknown.
pub(super) fn cached_pages(fd: RawFd, offset: u64, length: u64) -> Option<u64> {
    // SAFETY: the callers' files hold the descriptor open.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    gpuio_host::residency::cached_pages(fd, offset, length)
}
