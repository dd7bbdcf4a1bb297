//! The results of functions that fail, and the thread's last error in words.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use gpuio_gpu::{Driver, GpuError, MapError, Which};
use gpuio_transfer::{Fault, FileError, MappingError, cancellation_point, uncancelled};

/// The driver's code for a GPU that it does not have (`CUDA_ERROR_INVALID_DEVICE`, CUDA driver API
/// manual).
const INVALID_DEVICE: i32 = 101;
/// Its code where a GPU can't register memory that may only be read (`CUDA_ERROR_NOT_SUPPORTED`).
const NOT_SUPPORTED: i32 = 801;

/// Why a call failed. The header says what each errno means.
#[derive(Debug)]
pub(crate) struct CallError {
    pub(crate) errno: c_int,
    pub(crate) text: String,
}

impl CallError {
    pub(crate) fn new(errno: c_int, text: impl Into<String>) -> Self {
        Self { errno, text: text.into() }
    }

    /// A null pointer where there may be none.
    pub(crate) fn null(call: &str, name: &str) -> Self {
        Self::new(libc::EINVAL, format!("{call}: {name} is NULL. Pass a valid pointer"))
    }

    /// The same failure, with what was to be done before it.
    pub(crate) fn of(self, what: &str) -> Self {
        Self { errno: self.errno, text: format!("{what}: {}", self.text) }
    }
}

impl From<FileError> for CallError {
    fn from(error: FileError) -> Self {
        let errno = match error {
            FileError::Kind { .. } => libc::EINVAL,
            FileError::Call { errno: libc::EBADF, .. } => libc::EBADF,
            FileError::Call { errno: libc::EMFILE | libc::ENFILE, .. } => libc::EMFILE,
            _ => libc::EIO,
        };
        Self::new(errno, error.to_string())
    }
}

impl CallError {
    /// The failure for a refusal of the driver.
    pub(crate) fn of_gpu(error: &GpuError) -> Self {
        let errno = match error.code {
            INVALID_DEVICE => libc::ENODEV,
            _ if error.is_out_of_memory() => libc::ENOMEM,
            _ => libc::EIO,
        };
        Self::new(errno, error.to_string())
    }

    /// Why a transfer failed.
    pub(crate) fn of_fault(fault: &Fault) -> Self {
        let errno = match fault {
            Fault::File { errno: errno @ (libc::EBADF | libc::EFAULT | libc::EINVAL), .. } => {
                *errno
            }
            Fault::Gpu(error) => return Self::of_gpu(error),
            Fault::Forked => libc::EPERM,
            Fault::Unreached { .. } => libc::EFAULT,
            Fault::Panicked => libc::ENOTRECOVERABLE,
            _ => libc::EIO,
        };
        Self::new(errno, fault.to_string())
    }

    /// Why a range could not be mapped. `which` is the driver that was to be used.
    pub(crate) fn of_mapping(error: &MappingError, which: &Which) -> Self {
        let errno = match error {
            MappingError::Writer => libc::EAGAIN,
            MappingError::NoRule => {
                let text = format!(
                    "{error}. Copy the file to such a file system, or read it into GPU memory"
                );
                return Self::new(libc::EOPNOTSUPP, text);
            }
            MappingError::TooMany | MappingError::Reopen { errno: libc::EMFILE | libc::ENFILE } => {
                libc::EMFILE
            }
            MappingError::Reopen { .. } => libc::EACCES,
            MappingError::NoWatcher => libc::EPERM,
            MappingError::NoDriver => {
                // The transfer does not keep the reason. Loading it again finds it again.
                let why = Driver::load(which).err().map(|absent| absent.to_string());
                return Self::new(libc::ENODEV, why.unwrap_or_else(|| error.to_string()));
            }
            MappingError::Map(MapError::Short { .. } | MapError::Range(_)) => libc::EINVAL,
            MappingError::Map(MapError::Call { errno: libc::ENOMEM, .. }) => libc::ENOMEM,
            MappingError::Map(MapError::Gpu(error)) if error.code == INVALID_DEVICE => libc::ENODEV,
            MappingError::Map(MapError::Gpu(why)) if why.code == NOT_SUPPORTED => {
                let text = format!(
                    "{error}. This GPU can't read the page cache by itself. Read the file into \
                     its memory"
                );
                return Self::new(libc::ENODEV, text);
            }
            _ => libc::EIO,
        };
        Self::new(errno, error.to_string())
    }
}

thread_local! {
    /// The last error of this thread.
    static LAST: RefCell<CString> = RefCell::default();
}

/// Runs a call, a cancellation point where it begins, and uncancelled then: 0, or the negative
/// errno of its failure, whose words are kept. A panic is a defect of ours.
pub(crate) fn run(body: impl FnOnce() -> Result<(), CallError>) -> c_int {
    let panicked = |_| {
        let text = "a defect in gpuio: it panicked, and standard error has where. Please report it";
        Err(CallError::new(libc::ENOTRECOVERABLE, text))
    };
    cancellation_point();
    uncancelled(|| match catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(panicked) {
        Ok(()) => 0,
        Err(error) => {
            keep(&error.text);
            -error.errno
        }
    })
}

/// Keeps the words of an error for this thread. Not in a thread that is ending.
fn keep(text: &str) {
    // A C string ends at its first NUL. None of ours has one but by a foreign text.
    let text = CString::new(text.replace('\0', "?")).unwrap_or_default();
    let _ = LAST.try_with(|last| last.replace(text));
}

/// The last error of this thread; empty if there was none. Valid until the next [`keep`] of the
/// thread, or its end.
pub(crate) fn last() -> *const c_char {
    let none: &CStr = c"";
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(none.as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> String {
        // SAFETY: a C string of this thread, copied before the next call.
        unsafe { CStr::from_ptr(last()) }.to_str().expect("our own words").to_owned()
    }

    #[test]
    fn a_failure_is_an_errno_and_words_of_its_thread() {
        assert_eq!(words(), "");
        assert_eq!(run(|| Err(CallError::new(libc::EAGAIN, "one\0two").of("map"))), -libc::EAGAIN);
        assert_eq!(words(), "map: one?two");
        std::thread::spawn(|| assert_eq!(words(), "")).join().expect("it does not panic");
        // A call that succeeds changes nothing.
        assert_eq!(run(|| Ok(())), 0);
        assert_eq!(words(), "map: one?two");
    }

    #[test]
    fn a_panic_stays_inside() {
        assert_eq!(run(|| panic!("on purpose")), -libc::ENOTRECOVERABLE);
        assert!(words().contains("defect"), "{}", words());
    }

    #[test]
    fn every_failure_has_its_own_errno() {
        let call = |errno| FileError::Call { call: "fstat", fd: 5, errno };
        assert_eq!(CallError::from(call(libc::EBADF)).errno, libc::EBADF);
        assert_eq!(CallError::from(call(libc::ENFILE)).errno, libc::EMFILE);
        assert_eq!(CallError::from(FileError::Kind { fd: 5, what: "a pipe" }).errno, libc::EINVAL);
        let of = |error: MappingError| CallError::of_mapping(&error, &Which::System).errno;
        assert_eq!(of(MappingError::Writer), libc::EAGAIN);
        assert_eq!(of(MappingError::NoRule), libc::EOPNOTSUPP);
        assert_eq!(of(MappingError::TooMany), libc::EMFILE);
        assert_eq!(of(MappingError::Reopen { errno: libc::ENFILE }), libc::EMFILE);
        assert_eq!(of(MappingError::Reopen { errno: libc::ENOENT }), libc::EACCES);
        assert_eq!(of(MappingError::NoWatcher), libc::EPERM);
        assert_eq!(of(MapError::Short { length: 5, end: 6 }.into()), libc::EINVAL);
        let of_read = |errno| {
            let (offset, len, path) = (0, 1, "/data".into());
            CallError::of_fault(&Fault::File { call: "pread", errno, offset, len, path }).errno
        };
        assert_eq!(of_read(libc::EFAULT), libc::EFAULT);
        assert_eq!(of_read(libc::ENODATA), libc::EIO);
        assert_eq!(CallError::of_fault(&Fault::Forked).errno, libc::EPERM);
        let call = |errno| MapError::Call { call: "mmap", errno };
        assert_eq!(of(call(libc::ENOMEM).into()), libc::ENOMEM);
        assert_eq!(of(call(libc::EFAULT).into()), libc::EIO);
    }
}
