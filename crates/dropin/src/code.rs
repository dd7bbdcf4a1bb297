//! The codes that calls return (`CUfileOpError`), and the failures of calls.
//!
//! Codes from 5039 on mean different things in different releases (5039 was `IO_MAX` before 1.15),
//! so none of them is ever returned.

use std::ffi::c_int;

/// The driver was not opened, or closed more often than opened.
pub(crate) const DRIVER_NOT_INITIALIZED: c_int = 5001;
pub(crate) const UNSUPPORTED_LIMIT: c_int = 5003;
/// The library can't do what was requested.
pub(crate) const IO_NOT_SUPPORTED: c_int = 5008;
/// The CUDA driver failed; its own code is in the second field.
pub(crate) const CUDA_DRIVER_ERROR: c_int = 5011;
/// The range leaves the memory that its base lies in.
pub(crate) const CUDA_POINTER_RANGE_ERROR: c_int = 5014;
/// The memory is of another context than the stream.
pub(crate) const CUDA_CONTEXT_MISMATCH: c_int = 5015;
/// The range leaves the registered buffer that it begins in.
pub(crate) const INVALID_MAPPING_RANGE: c_int = 5017;
/// Neither a regular file nor a block device.
pub(crate) const INVALID_FILE_TYPE: c_int = 5018;
/// The file's open mode does not allow this.
pub(crate) const INVALID_FILE_OPEN_FLAG: c_int = 5019;
/// An argument is out of range.
pub(crate) const INVALID_VALUE: c_int = 5022;
/// A buffer of this base is registered already.
pub(crate) const MEMORY_ALREADY_REGISTERED: c_int = 5023;
/// No buffer of this base is registered.
pub(crate) const MEMORY_NOT_REGISTERED: c_int = 5024;
/// Settings can't be changed while the driver is open.
pub(crate) const DRIVER_ALREADY_OPEN: c_int = 5026;
/// A handle that was never valid, or is closed.
pub(crate) const HANDLE_NOT_REGISTERED: c_int = 5027;
/// No GPU with this number.
pub(crate) const DEVICE_NOT_FOUND: c_int = 5029;
/// A defect of this library.
pub(crate) const INTERNAL_ERROR: c_int = 5030;
/// The descriptor could not be duplicated.
pub(crate) const GETNEWFD_FAILED: c_int = 5031;
/// More entries than the batch has space for.
pub(crate) const BATCH_FULL: c_int = 5037;
/// I/O in the order of this stream is impossible.
pub(crate) const ASYNC_NOT_SUPPORTED: c_int = 5038;

/// Why a call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallError {
    /// One of the codes above.
    Code(c_int),
    /// [`CUDA_DRIVER_ERROR`] with the CUDA driver's code.
    Cuda(c_int),
    /// The file system's errno.
    Errno(c_int),
}

impl From<c_int> for CallError {
    fn from(code: c_int) -> CallError {
        CallError::Code(code)
    }
}

impl CallError {
    /// The form in results of batches and streams: one negative number, below -5000 for cuFile's
    /// codes and -1 to -4095 for an errno (`IS_CUFILE_ERR` of the interface distinguishes them).
    pub(crate) fn negative(self) -> isize {
        let number = match self {
            CallError::Code(code) => code,
            CallError::Cuda(_) => CUDA_DRIVER_ERROR,
            CallError::Errno(errno) => errno,
        };
        -(number as isize)
    }
}
