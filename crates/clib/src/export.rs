//! Mappings of files, and the last error. `include/gpuio.h` is the contract of each function.

use std::ffi::{c_char, c_int};

use gpuio_transfer::{FileMapping, MappingState};

use crate::error::{self, CallError, run};
use crate::process::{file, gpu, path, transfer, which};

/// `GPUIO_MAP_SURE` and `GPUIO_MAP_WANTED`.
const SURE: c_int = 0;
const WANTED: c_int = 1;

/// The types that threads share, and hand to each other.
const _: fn() = || {
    fn needs<T: Send + Sync>() {}
    needs::<FileMapping>();
};

fn open(fd: c_int, offset: u64, length: u64, device: c_int) -> Result<FileMapping, CallError> {
    if length == 0 {
        return Err(CallError::new(libc::EINVAL, "length is 0. Map one byte or more"));
    }
    let end = offset.checked_add(length).ok_or_else(|| {
        CallError::new(libc::EINVAL, "offset + length is above 2^64. Map a range inside the file")
    })?;
    let (file, device) = (file(fd)?, gpu(device)?);
    transfer()
        .map(&file, offset..end, device)
        .map_err(|error| CallError::of_mapping(&error, which()))
}

/// Maps a range of a file.
///
/// # Safety
/// `map` is null or valid for the write of a pointer.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn gpuio_map_open(
    fd: c_int,
    offset: u64,
    length: u64,
    device: c_int,
    map: *mut *mut FileMapping,
) -> c_int {
    run(|| {
        if map.is_null() {
            return Err(CallError::null("gpuio_map_open", "map"));
        }
        // SAFETY: not null, and the caller's promise.
        unsafe { map.write(std::ptr::null_mut()) };
        let opened = open(fd, offset, length, device).map_err(|error| {
            let file = path(fd);
            error.of(&format!(
                "gpuio_map_open of {length} bytes at {offset} of {file} for GPU {device}"
            ))
        })?;
        // SAFETY: as above.
        unsafe { map.write(Box::into_raw(Box::new(opened))) };
        Ok(())
    })
}

/// Where kernels read its first byte; 0 for null.
///
/// # Safety
/// `map` is null or an open mapping.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn gpuio_map_address(map: *const FileMapping) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { map.as_ref() }.map_or(0, FileMapping::address)
}

/// Its bytes; 0 for null.
///
/// # Safety
/// As [`gpuio_map_address`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn gpuio_map_length(map: *const FileMapping) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { map.as_ref() }.map_or(0, FileMapping::bytes)
}

/// Whether its bytes are still those of the file.
///
/// # Safety
/// As [`gpuio_map_address`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn gpuio_map_state(map: *const FileMapping) -> c_int {
    // SAFETY: the caller's promise.
    match unsafe { map.as_ref() }.map(FileMapping::state) {
        Some(MappingState::Sure) => SURE,
        Some(MappingState::Wanted) => WANTED,
        None => run(|| Err(CallError::null("gpuio_map_state", "map"))),
    }
}

/// Gives it back.
///
/// # Safety
/// `map` is null or an open mapping, which nothing uses any more.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn gpuio_map_close(map: *mut FileMapping) -> c_int {
    run(|| {
        if map.is_null() {
            return Err(CallError::null("gpuio_map_close", "map"));
        }
        // SAFETY: from `Box::into_raw` in `gpuio_map_open`, and closed once.
        let map = unsafe { Box::from_raw(map) };
        map.close().map_err(|error| {
            let text = format!(
                "gpuio_map_close: {error}. It is closed, but its pages may stay in memory until \
                 the process ends"
            );
            CallError::new(libc::EIO, text)
        })
    })
}

/// The last error of this thread.
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn gpuio_error() -> *const c_char {
    error::last()
}
