//! A second descriptor of a file, in another mode.

use std::ffi::CString;
use std::os::fd::{IntoRawFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};

/// Not asked for yet.
const UNKNOWN: RawFd = -2;
/// The kernel refused.
const NONE: RawFd = -1;

/// A descriptor that is opened when it is first asked for, and closed with this value.
///
/// No lock: where two threads open it at once, the second closes its own and takes the first's. So
/// a child of `fork(2)` never waits for a thread that it does not have.
#[derive(Debug)]
pub(super) struct Twin(AtomicI32);

impl Twin {
    pub(super) fn new() -> Self {
        Self(AtomicI32::new(UNKNOWN))
    }

    /// The descriptor: the file of `own`, opened anew with `flags`. `advised` says that it is there
    /// for what the page cache holds, and the kernel shall not read ahead.
    pub(super) fn get(&self, own: RawFd, flags: libc::c_int, advised: bool) -> Option<RawFd> {
        let fd = self.known().unwrap_or_else(|| self.set(open(own, flags, advised)));
        (fd >= 0).then_some(fd)
    }

    /// The descriptor, or something negative where the kernel refused one; `None` where nobody
    /// asked for it yet.
    pub(super) fn known(&self) -> Option<RawFd> {
        let known = self.0.load(Ordering::Acquire);
        (known != UNKNOWN).then_some(known)
    }

    /// Behaves from now on as where the kernel refuses.
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

impl Drop for Twin {
    fn drop(&mut self) {
        close(*self.0.get_mut());
    }
}

fn close(fd: RawFd) {
    if fd >= 0 {
        // SAFETY: opened by `open` below, and nobody else has it.
        drop(unsafe { super::owned(fd) });
    }
}

/// Opens the file behind a descriptor once more, through its link in `/proc` (proc(5)), which works
/// for files that have no name any more.
fn open(own: RawFd, flags: libc::c_int, advised: bool) -> RawFd {
    let Ok(link) = CString::new(format!("/proc/self/fd/{own}")) else {
        return NONE;
    };
    // O_NONBLOCK and O_NOCTTY: nothing here may wait, or take a terminal.
    let flags = flags | libc::O_CLOEXEC | libc::O_NOCTTY | libc::O_NONBLOCK;
    // SAFETY: the path is NUL-terminated; no flag asks for a mode.
    let fd = unsafe { libc::open(link.as_ptr(), flags) };
    if fd >= 0 && advised {
        // With read-ahead, one piece that was found in the page cache would have the kernel read
        // what follows into the cache (mm/filemap.c,
        // `filemap_readahead`), that be found too, and so on: most of a cold file was read so
        // beside its direct reads. Advice holds for this descriptor alone, and a refusal changes
        // nothing.
        // SAFETY: a descriptor of ours, and no memory is passed.
        unsafe { libc::posix_fadvise(fd, 0, 0, libc::POSIX_FADV_RANDOM) };
    }
    if fd < 0 {
        return NONE;
    }
    // SAFETY: just opened, and nobody else's.
    let fd = unsafe { super::owned(fd) };
    // Above the standard streams, see `duplicate`.
    rustix::io::fcntl_dupfd_cloexec(&fd, 3).map_or(NONE, IntoRawFd::into_raw_fd)
}
