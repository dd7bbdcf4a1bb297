//! Why there is no ring, and how to get what is missing.

use std::io;

use gpuio_base::catalog::RingAnswer;
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

impl RingError {
    fn kernel(call: &'static str, error: &io::Error, what: String) -> Self {
        let errno = error.raw_os_error().unwrap_or(libc::EIO);
        Self::Kernel { call, errno, error: error.to_string(), what }
    }

    /// The answer of io_uring_setup(2).
    pub(super) fn setup(error: &io::Error) -> Self {
        let switch = setting("io_uring_disabled").and_then(|word| word.parse().ok());
        let refusal = answer(error).refusal(switch, setting("osrelease").as_deref());
        let what = refusal.map(|refusal| format!("{}; {}", refusal.why, refusal.remedy));
        Self::kernel("io_uring_setup", error, what.unwrap_or_default())
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

/// io_uring_setup(2)'s error, as an answer.
pub(super) fn answer(error: &io::Error) -> RingAnswer {
    match error.raw_os_error() {
        Some(libc::EPERM) => RingAnswer::Forbidden,
        Some(libc::ENOSYS) => RingAnswer::NoCall,
        Some(libc::EINVAL) => RingAnswer::NoSuchRing,
        Some(libc::ENOMEM) => RingAnswer::NoMemory,
        Some(libc::EMFILE | libc::ENFILE) => RingAnswer::NoDescriptor,
        Some(libc::EAGAIN) => RingAnswer::NoThread,
        _ => RingAnswer::Refused,
    }
}

/// A word of a file of `/proc/sys/kernel`.
fn setting(name: &str) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?;
    Some(text.trim().to_owned())
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
    fn an_error_is_an_answer_and_its_remedy() {
        for (code, expected) in [
            (libc::EPERM, RingAnswer::Forbidden),
            (libc::ENOSYS, RingAnswer::NoCall),
            (libc::EINVAL, RingAnswer::NoSuchRing),
            (libc::ENOMEM, RingAnswer::NoMemory),
            (libc::EMFILE, RingAnswer::NoDescriptor),
            (libc::ENFILE, RingAnswer::NoDescriptor),
            (libc::EAGAIN, RingAnswer::NoThread),
            (libc::EACCES, RingAnswer::Refused),
        ] {
            assert_eq!(answer(&io::Error::from_raw_os_error(code)), expected);
        }
        let old = RingError::setup(&io::Error::from_raw_os_error(libc::EINVAL)).to_string();
        assert!(old.starts_with("io_uring_setup: Invalid argument (os error 22): Linux "), "{old}");
        assert!(old.ends_with("has no rings for GPUs; use 6.6 or later"), "{old}");
    }

    #[test]
    fn too_little_memory_to_lock_has_its_remedy() {
        assert_eq!(
            no_lock(1 << 20, Some(64 << 10)),
            "1024 KiB of buffers to lock, and this user may lock 64 KiB: raise RLIMIT_MEMLOCK \
             (ulimit -l), or use smaller blocks or less depth"
        );
    }
}
