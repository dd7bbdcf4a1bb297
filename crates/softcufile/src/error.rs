//! Why a call fails.

use std::ffi::c_int;

/// cuFile's codes, by their names without the prefix.
pub(crate) mod code {
    pub(crate) const INVALID_PROPS: i32 = 5002;
    pub(crate) const CUDA_DRIVER_ERROR: i32 = 5011;
    pub(crate) const CUDA_POINTER_RANGE_ERROR: i32 = 5014;
    pub(crate) const INVALID_FILE_OPEN_FLAG: i32 = 5019;
    pub(crate) const INVALID_VALUE: i32 = 5022;
    pub(crate) const MEMORY_ALREADY_REGISTERED: i32 = 5023;
    pub(crate) const MEMORY_NOT_REGISTERED: i32 = 5024;
    pub(crate) const HANDLE_NOT_REGISTERED: i32 = 5027;
    pub(crate) const HANDLE_ALREADY_REGISTERED: i32 = 5028;
    pub(crate) const INTERNAL_ERROR: i32 = 5030;
    pub(crate) const GETNEWFD_FAILED: i32 = 5031;
    pub(crate) const NVFS_SETUP_ERROR: i32 = 5033;
    pub(crate) const BATCH_FULL: i32 = 5037;
}

/// Why a call fails: cuFile's code and the CUDA driver's, or an errno.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallError {
    Code(i32, c_int),
    Errno(i32),
    /// It does not fail: it never completes.
    Lost,
}

impl From<i32> for CallError {
    fn from(code: i32) -> CallError {
        CallError::Code(code, 0)
    }
}
