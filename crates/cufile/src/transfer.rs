//! Registered files and memory, and what moves between them.

use std::ffi::c_void;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use crate::codes::CufileError;
use crate::driver::Driver;
use crate::look::Look;
use crate::table::{Descriptor, OPAQUE_FD};

/// Why an I/O failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IoError {
    /// The kernel refused the file I/O with this errno.
    Errno(i32),
    /// cuFile refused with this code, 5001 to 5050; see [`crate::meaning`].
    Code(i32),
}

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// From the file to memory.
    Read,
    /// From memory to the file.
    Write,
}

/// What one I/O moves: `len` bytes between `base + at` and `offset` of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Address of the memory, as its registration knows it.
    pub base: u64,
    /// Bytes behind the base.
    pub at: u64,
    /// Bytes to move.
    pub len: usize,
    /// Byte offset in the file.
    pub offset: u64,
}

impl Piece {
    /// The offsets in the file and behind the base as the library takes them.
    pub(crate) fn offsets(&self) -> Result<(i64, i64), IoError> {
        Ok((signed(self.offset)?, signed(self.at)?))
    }
}

/// A file that is registered with cuFile while this lives.
///
/// It holds a descriptor of its own for the same open file, so that one file may be registered
/// more than once and the caller may close his.
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
    /// The library's refusal, with the most likely cause that can be seen.
    pub fn register(driver: &Driver, fd: BorrowedFd<'_>, name: &str) -> Result<Self, CufileError> {
        let named = || (name.to_owned(), Look::file(Path::new("/"), fd));
        let copy = fd.try_clone_to_owned().map_err(|_| {
            let (context, look) = named();
            // The code that the library has for a descriptor that it can't get.
            CufileError { call: "fcntl(F_DUPFD_CLOEXEC)", code: 5031, cuda: 0, context, look }
        })?;
        let mut descriptor = Descriptor {
            kind: OPAQUE_FD,
            _gap: 0,
            fd: copy.as_raw_fd(),
            _rest: 0,
            file_system: std::ptr::null(),
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

    /// Reads up to `len` bytes at `offset` of the file to `base + at`, and returns once they are
    /// there: how many, 0 at the end of the file. They are visible to whatever the GPU starts
    /// afterwards.
    ///
    /// # Errors
    /// What the kernel or the library answered. What the memory then holds is not defined.
    ///
    /// # Safety
    /// `base + at` up to `len` bytes further is memory that cuFile takes (of a GPU whose context is
    /// current, or of the host), lives, and is used by nobody else meanwhile. If `base` begins a
    /// registered [`Buffer`], the range lies inside it.
    pub unsafe fn read(
        &self,
        base: u64,
        at: u64,
        len: usize,
        offset: u64,
    ) -> Result<usize, IoError> {
        let call = self.driver.library().cuFileRead;
        let (offset, at) = (signed(offset)?, signed(at)?);
        clear_errno();
        // SAFETY: the handle is registered while `self` lives; the range is as the caller promised.
        result(unsafe { call(self.raw, base, len, offset, at) })
    }

    /// Writes up to `len` bytes from `base + at` to `offset` of the file: how many it did.
    ///
    /// # Errors
    /// As for [`Handle::read`].
    ///
    /// # Safety
    /// As for [`Handle::read`], and whatever wrote the memory has ended: cuFile is not ordered with
    /// any stream.
    pub unsafe fn write(
        &self,
        base: u64,
        at: u64,
        len: usize,
        offset: u64,
    ) -> Result<usize, IoError> {
        let call = self.driver.library().cuFileWrite;
        let (offset, at) = (signed(offset)?, signed(at)?);
        clear_errno();
        // SAFETY: the handle is registered while `self` lives; the range is as the caller promised.
        result(unsafe { call(self.raw, base, len, offset, at) })
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: registered by `register` and deregistered once; no call uses it, since each
        // borrows `self`.
        unsafe { (self.driver.library().cuFileHandleDeregister)(self.raw) };
    }
}

/// An offset as off_t; past that there is no file.
fn signed(offset: u64) -> Result<i64, IoError> {
    i64::try_from(offset).map_err(|_| IoError::Errno(libc::EINVAL))
}

/// -1 says "see errno"; a library that says so and set none must not show an older one.
fn clear_errno() {
    // SAFETY: the address of this thread's errno, which is always valid.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above, valid for writes by this thread.
    unsafe { errno.write(0) };
}

/// Reads what `cuFileRead` and `cuFileWrite` return: bytes, -1 with errno, or a negative code.
fn result(returned: isize) -> Result<usize, IoError> {
    match returned {
        0.. => Ok(returned.unsigned_abs()),
        -1 => {
            let errno = std::io::Error::last_os_error().raw_os_error().filter(|&errno| errno != 0);
            Err(IoError::Errno(errno.unwrap_or(libc::EIO)))
        }
        // Nothing that is documented lies between -5000 and -2; it is shown as it came.
        code => Err(IoError::Code(i32::try_from(code.unsigned_abs()).unwrap_or(i32::MAX))),
    }
}

/// Reads what an I/O of a batch or of a stream returned: bytes, or a negative errno or code. -1
/// says that an errno was set, in a thread of the library's: which one, nobody can see.
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
    /// The library's refusal: no room in the GPU's BAR, or memory that it does not take.
    ///
    /// # Safety
    /// The range is one allocation's, and lives until the value is dropped.
    pub unsafe fn register(driver: &Driver, base: u64, len: usize) -> Result<Self, CufileError> {
        // SAFETY: the range is memory as the caller promised; flags 0 ask for nothing special.
        let answer = unsafe { (driver.library().cuFileBufRegister)(base, len, 0) };
        driver.check("cuFileBufRegister", answer, || {
            (format!("{len} bytes at {base:#x}"), Look::machine(Path::new("/")))
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
