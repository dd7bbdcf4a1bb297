//! Registered files and memory, and transfers between them.

use std::ffi::c_void;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use gpuio_base::catalog::Op;

use crate::cufile::abi::{Descriptor, DescriptorUnion, OPAQUE_FD};
use crate::cufile::codes::CufileError;
use crate::cufile::diagnosis::Diagnosis;
use crate::cufile::driver::Driver;

/// Why an I/O failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IoError {
    /// The kernel's file I/O failed with this errno.
    Errno(i32),
    /// cuFile failed with this code, 5001 to 5050; see [`crate::cufile::meaning`].
    Code(i32),
}

/// One transfer: `len` bytes between `base + at` and `offset` of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IoRange {
    /// Address of the memory, as registered.
    pub base: u64,
    /// Offset from the base, in bytes.
    pub at: u64,
    pub len: usize,
    /// Byte offset in the file.
    pub offset: u64,
}

impl IoRange {
    /// The offsets in the file and from the base in the library's type.
    pub(crate) fn offsets(&self) -> Result<(i64, i64), IoError> {
        Ok((signed(self.offset)?, signed(self.at)?))
    }
}

/// A file that is registered with cuFile while this lives.
///
/// It holds a descriptor of its own for the same open file, so that one file may be registered more
/// than once and the caller may close its own.
#[derive(Debug)]
pub struct Handle {
    driver: Driver,
    raw: *mut c_void,
    _fd: OwnedFd,
}

// SAFETY: the handle is a name that any thread may use ("cuFile API Reference Guide": handles may
// be shared by threads).
unsafe impl Send for Handle {}
// SAFETY: as above; the calls take the library's own locks.
unsafe impl Sync for Handle {}

impl Handle {
    /// Registers the open file `fd`, named `name` in errors.
    ///
    /// # Errors
    /// The library's error, with the most likely cause.
    pub fn register(driver: &Driver, fd: BorrowedFd<'_>, name: &str) -> Result<Self, CufileError> {
        let named = || (name.to_owned(), Diagnosis::file(Path::new("/"), fd));
        let copy = fd.try_clone_to_owned().map_err(|_| {
            let (context, diagnosis) = named();
            // The library's code for a lack of descriptors.
            CufileError { call: "fcntl(F_DUPFD_CLOEXEC)", code: 5031, cuda: 0, context, diagnosis }
        })?;
        let mut descriptor = Descriptor {
            kind: OPAQUE_FD,
            fd: DescriptorUnion { fd: copy.as_raw_fd() },
            operations: std::ptr::null(),
        };
        let mut raw = std::ptr::null_mut();
        let call = driver.library().cuFileHandleRegister;
        // SAFETY: both pointers are valid for the call, and the descriptor is open.
        let answer = unsafe { call(&raw mut raw, &raw mut descriptor) };
        driver.check("cuFileHandleRegister", answer, named)?;
        Ok(Handle { driver: driver.clone(), raw, _fd: copy })
    }

    /// The library's name of it.
    pub(crate) fn raw(&self) -> *mut c_void {
        self.raw
    }

    /// Moves up to `range.len` bytes between file and memory, and returns how many when they have
    /// arrived: 0 for a read at the end of the file. Anything that the GPU starts after a read sees
    /// its bytes.
    ///
    /// # Errors
    /// The kernel's or the library's error. The content of the destination is then undefined.
    ///
    /// # Safety
    /// The range's memory is live, of a kind that cuFile supports (of a GPU whose context is
    /// current, or of the host), and nothing else uses it during the call. If its `base` begins a
    /// registered [`Buffer`], it lies inside. Before a write all writes to the memory have
    /// completed: cuFile is not ordered with any stream.
    pub unsafe fn transfer(&self, op: Op, range: IoRange) -> Result<usize, IoError> {
        let library = self.driver.library();
        let call = match op {
            Op::Read => library.cuFileRead,
            Op::Write => library.cuFileWrite,
        };
        let (offset, at) = range.offsets()?;
        clear_errno();
        // SAFETY: the handle is registered while `self` lives; the range is as the caller promised.
        result(unsafe { call(self.raw, range.base, range.len, offset, at) })
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: registered by `register` and deregistered once; no call uses it, since each
        // borrows `self`.
        unsafe { (self.driver.library().cuFileHandleDeregister)(self.raw) };
    }
}

/// An offset as off_t; larger ones are in no file.
fn signed(offset: u64) -> Result<i64, IoError> {
    i64::try_from(offset).map_err(|_| IoError::Errno(libc::EINVAL))
}

/// -1 means "see errno"; if a library sets none, an older one must not be reported.
fn clear_errno() {
    // SAFETY: the address of this thread's errno, which is always valid.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above, valid for writes by this thread.
    unsafe { errno.write(0) };
}

/// The result of `cuFileRead` and `cuFileWrite`: bytes, -1 with errno, or a negative code.
fn result(returned: isize) -> Result<usize, IoError> {
    match returned {
        0.. => Ok(returned.unsigned_abs()),
        -1 => {
            let errno = std::io::Error::last_os_error().raw_os_error().filter(|&errno| errno != 0);
            Err(IoError::Errno(errno.unwrap_or(libc::EIO)))
        }
        // No documented value lies between -5000 and -2; it is shown unchanged.
        code => Err(IoError::Code(i32::try_from(code.unsigned_abs()).unwrap_or(i32::MAX))),
    }
}

/// The result of an I/O of a batch or of a stream: bytes, or a negative errno or code. -1 means
/// that errno was set in a thread of the library, where it can't be read.
pub(crate) fn moved(returned: isize) -> Result<usize, IoError> {
    match returned {
        0.. => Ok(returned.unsigned_abs()),
        -1 => Err(IoError::Errno(libc::EIO)),
        -5000..=-2 => Err(IoError::Errno(i32::try_from(-returned).unwrap_or(libc::EIO))),
        code => Err(IoError::Code(i32::try_from(code.unsigned_abs()).unwrap_or(i32::MAX))),
    }
}

/// A range of memory that is registered with cuFile while this lives.
#[derive(Debug)]
pub struct Buffer {
    driver: Driver,
    base: u64,
}

impl Buffer {
    /// Registers `len` bytes at `base`.
    ///
    /// # Errors
    /// The library's error: no space in the GPU's BAR, or memory that it does not support.
    ///
    /// # Safety
    /// The range is part of one allocation, and lives until the value is dropped.
    pub unsafe fn register(driver: &Driver, base: u64, len: usize) -> Result<Self, CufileError> {
        // SAFETY: the range is memory as the caller promised; flags 0 request nothing special.
        let answer = unsafe { (driver.library().cuFileBufRegister)(base, len, 0) };
        driver.check("cuFileBufRegister", answer, || {
            (format!("{len} bytes at {base:#x}"), Diagnosis::machine(Path::new("/")))
        })?;
        Ok(Buffer { driver: driver.clone(), base })
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: registered by `register` and deregistered once.
        let _ = unsafe { (self.driver.library().cuFileBufDeregister)(self.base) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_transfer_returns_is_bytes_errno_or_code() {
        assert_eq!(result(0), Ok(0));
        assert_eq!(result(4096), Ok(4096));
        assert_eq!(result(-5011), Err(IoError::Code(5011)));
        clear_errno();
        assert_eq!(result(-1), Err(IoError::Errno(libc::EIO)));
        assert_eq!(moved(-1), Err(IoError::Errno(libc::EIO)));
        assert_eq!(moved(-28), Err(IoError::Errno(libc::ENOSPC)));
        assert_eq!(moved(-5030), Err(IoError::Code(5030)));
        assert_eq!(signed(u64::MAX), Err(IoError::Errno(libc::EINVAL)));
    }
}
