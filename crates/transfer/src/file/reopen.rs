//! Opens a file again in another mode.

use std::ffi::CString;
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};

/// Not opened yet.
const UNKNOWN: RawFd = -2;
/// The kernel refused.
const NONE: RawFd = -1;

/// A descriptor that is opened on first use and closed with this value.
///
/// There is no lock: if two threads open it at once, the second closes its own descriptor and uses
/// the first's. So a child of `fork(2)` never waits for a thread that it does not have.
#[derive(Debug)]
pub(super) struct ReopenedFd(AtomicI32);

impl ReopenedFd {
    pub(super) fn new() -> Self {
        Self(AtomicI32::new(UNKNOWN))
    }

    /// The descriptor: the file of `own`, reopened with `flags`. `advised`: it serves cached bytes,
    /// and the kernel is not to read ahead.
    pub(super) fn get(&self, own: RawFd, flags: libc::c_int, advised: bool) -> Option<RawFd> {
        let fd =
            self.known().unwrap_or_else(|| self.set(open(own, flags, advised).unwrap_or(NONE)));
        (fd >= 0).then_some(fd)
    }

    /// The descriptor, or a negative number if the kernel refused it; `None` before the first use.
    pub(super) fn known(&self) -> Option<RawFd> {
        let known = self.0.load(Ordering::Acquire);
        (known != UNKNOWN).then_some(known)
    }

    /// From now on behaves as if the kernel had refused.
    #[cfg(test)]
    pub(super) fn refuse(&self) {
        self.set(NONE);
    }

    fn set(&self, opened: RawFd) -> RawFd {
        match self.0.compare_exchange(UNKNOWN, opened, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => opened,
            Err(first) => {
                close(opened);
                first
            }
        }
    }
}

impl Drop for ReopenedFd {
    fn drop(&mut self) {
        close(*self.0.get_mut());
    }
}

/// Opens the file of a descriptor again, for reading; the errno if the kernel refuses.
pub(crate) fn reopen_to_read(file: BorrowedFd<'_>) -> Result<OwnedFd, i32> {
    let fd = open(file.as_raw_fd(), libc::O_RDONLY | libc::O_NOATIME, false)
        .or_else(|_| open(file.as_raw_fd(), libc::O_RDONLY, false))?;
    // SAFETY: just opened, and not owned elsewhere.
    Ok(unsafe { super::owned(fd) })
}

fn close(fd: RawFd) {
    if fd >= 0 {
        // SAFETY: opened by `open` below, and owned by this value alone.
        drop(unsafe { super::owned(fd) });
    }
}

/// Opens the file of a descriptor again through its link in `/proc` (proc(5)), which also works for
/// files whose name was removed. The error is the errno.
fn open(own: RawFd, flags: libc::c_int, advised: bool) -> Result<RawFd, i32> {
    let link = CString::new(format!("/proc/self/fd/{own}")).map_err(|_| libc::EINVAL)?;
    // O_NONBLOCK and O_NOCTTY: this must not wait, nor take a terminal.
    let flags = flags | libc::O_CLOEXEC | libc::O_NOCTTY | libc::O_NONBLOCK;
    // SAFETY: the path is NUL-terminated; no flag asks for a mode.
    let fd = unsafe { libc::open(link.as_ptr(), flags) };
    if fd < 0 {
        return Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO));
    }
    if advised {
        // With read-ahead, one cached piece would make the kernel read what follows into the cache
        // (mm/filemap.c, `filemap_readahead`), so that this is found cached too, and so on: most of
        // a cold file would be read twice. The advice holds for this descriptor alone, and a
        // refusal does no harm. SAFETY: a descriptor of ours, and no memory is passed.
        unsafe { libc::posix_fadvise(fd, 0, 0, libc::POSIX_FADV_RANDOM) };
    }
    // SAFETY: just opened, and not owned elsewhere.
    let fd = unsafe { super::owned(fd) };
    // Above the standard streams, see `duplicate`.
    let above = rustix::io::fcntl_dupfd_cloexec(&fd, 3).map_err(|errno| errno.raw_os_error())?;
    Ok(above.into_raw_fd())
}
