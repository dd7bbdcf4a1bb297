//! Why there is no ring, and how to get what is missing.

use std::io;

use thiserror::Error;

use crate::error::GpuError;

/// Why a ring can't be made or used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RingError {
    /// The kernel refused.
    #[error("{call}: {error}: {what}")]
    Kernel {
        /// The system call.
        call: &'static str,
        /// Its error, as a number and in words.
        errno: i32,
        /// See `errno`.
        error: String,
        /// The meaning, and the remedy.
        what: String,
    },
    /// The CUDA driver refused.
    #[error(transparent)]
    Gpu(#[from] GpuError),
    /// It can't be as requested.
    #[error("{0}")]
    Request(String),
}

/// The kernel's switch (`Documentation/admin-guide/sysctl/kernel.rst`, Linux 6.6).
const SWITCH: &str = "/proc/sys/kernel/io_uring_disabled";

impl RingError {
    fn kernel(call: &'static str, error: &io::Error, what: String) -> Self {
        let errno = error.raw_os_error().unwrap_or(libc::EIO);
        Self::Kernel { call, errno, error: error.to_string(), what }
    }

    /// The answer of io_uring_setup(2).
    pub(super) fn setup(error: &io::Error) -> Self {
        let switch = std::fs::read_to_string(SWITCH).ok();
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let code = error.raw_os_error().unwrap_or(0);
        Self::kernel("io_uring_setup", error, why_no_ring(code, switch.as_deref(), &release))
    }

    /// The answer of io_uring_enter(2) to a wake-up.
    pub(super) fn kernel_stopped(error: &io::Error) -> Self {
        let what = "the kernel's thread that serves the ring can't be woken".to_owned();
        Self::kernel("io_uring_enter", error, what)
    }

    /// The answer of io_uring_register(2) to `count` files.
    pub(super) fn files(error: &io::Error, count: usize) -> Self {
        let what = match error.raw_os_error() {
            Some(libc::EMFILE) => {
                format!("{count} files: raise the limit of descriptors (ulimit -n)")
            }
            Some(libc::EBADF) => format!("one of {count} files can't be used by a ring"),
            _ => format!("the ring does not take {count} files"),
        };
        Self::kernel("io_uring_register", error, what)
    }

    /// The answer of io_uring_register(2) to buffers of `len` bytes together.
    pub(super) fn buffers(error: &io::Error, len: usize) -> Self {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Memlock).current;
        let what = match error.raw_os_error() {
            Some(libc::ENOMEM) => no_lock(len as u64, limit),
            _ => format!("the ring does not take {len} bytes of buffers"),
        };
        Self::kernel("io_uring_register", error, what)
    }
}

/// The meaning of io_uring_setup(2)'s error, on a kernel of this release.
fn why_no_ring(code: i32, switch: Option<&str>, release: &str) -> String {
    let release = release.trim();
    match code {
        libc::EPERM => match switch.map(str::trim) {
            Some("2") => format!("{SWITCH} is 2: io_uring is off; set it to 0"),
            Some("1") => format!(
                "{SWITCH} is 1: io_uring is off for this user; set it to 0, or add the user to the \
                 group in /proc/sys/kernel/io_uring_group. If it is on for him, a seccomp filter \
                 forbids it"
            ),
            _ => "a seccomp filter forbids io_uring, as in many containers; allow \
                  io_uring_setup, io_uring_enter and io_uring_register"
                .to_owned(),
        },
        libc::ENOSYS => format!("kernel {release} has no io_uring, or a filter hides it"),
        libc::EINVAL => format!(
            "kernel {release} has no rings in a program's own memory with entries in their order \
             (IORING_SETUP_NO_MMAP, IORING_SETUP_NO_SQARRAY): that needs 6.6"
        ),
        libc::ENOMEM => {
            "no memory for the ring, or too little may be locked: raise RLIMIT_MEMLOCK \
                         (ulimit -l)"
                .to_owned()
        }
        libc::EMFILE | libc::ENFILE => "no descriptor left: raise the limit (ulimit -n)".to_owned(),
        libc::EAGAIN => "no thread left for the ring: raise the limit (ulimit -u)".to_owned(),
        _ => "the kernel refused the ring".to_owned(),
    }
}

/// More memory than this user may lock.
fn no_lock(len: u64, limit: Option<u64>) -> String {
    let may = limit.map_or("no limit".to_owned(), |bytes| format!("{} KiB", bytes >> 10));
    format!(
        "{} KiB of buffers to lock, and this user may lock {may}: raise RLIMIT_MEMLOCK (ulimit \
         -l), or use smaller blocks or less depth",
        len.div_ceil(1024)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_names_its_remedy() {
        let why = |code, switch| why_no_ring(code, switch, "5.15.0-91-generic\n");
        assert!(why(libc::EPERM, Some("2\n")).contains("io_uring_disabled is 2"));
        assert!(why(libc::EPERM, Some("1\n")).contains("io_uring_group"));
        assert!(why(libc::EPERM, Some("0\n")).contains("seccomp"));
        assert!(why(libc::EPERM, None).contains("seccomp"));
        let old = why(libc::EINVAL, Some("0\n"));
        assert!(
            old.contains("kernel 5.15.0-91-generic has no rings") && old.ends_with("needs 6.6")
        );
        assert!(why(libc::ENOMEM, None).contains("RLIMIT_MEMLOCK"));
        assert!(why(libc::EMFILE, None).contains("ulimit -n"));
        assert_eq!(
            no_lock(1 << 20, Some(64 << 10)),
            "1024 KiB of buffers to lock, and this user may lock 64 KiB: raise RLIMIT_MEMLOCK \
             (ulimit -l), or use smaller blocks or less depth"
        );
    }
}
