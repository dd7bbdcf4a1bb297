//! Start, version, explanations.

use std::ffi::{CStr, c_char, c_int, c_uint};

use crate::call::{guarded, put};
use crate::code::{INVALID_VALUE, explain};
use crate::machine;

/// The release of CUDA whose calls are answered: 12.0.
const VERSION: c_int = 12_000;

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuInit(_flags: c_uint) -> c_int {
    guarded(|| {
        let machine = machine::start()?;
        if machine.config.forks {
            fork();
        }
        machine.config.fault("cuInit").map_or(Ok(()), Err)
    })
}

/// Makes a child that ends at once, and waits for it.
fn fork() {
    // SAFETY: the child calls nothing but `_exit(2)`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: takes a number and does not return.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: `status` is valid for the write of one int.
    let _ = unsafe { libc::waitpid(child, &raw mut status, 0) };
}

/// The version of this software GPU. Its presence shows that the library is one.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn gpuio_soft_version() -> c_int {
    1
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuDriverGetVersion(version: *mut c_int) -> c_int {
    // SAFETY: the caller's pointer, by the manual.
    guarded(|| unsafe { put(version, VERSION) })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuGetErrorName(code: c_int, text: *mut *const c_char) -> c_int {
    // SAFETY: the caller's pointer, by the manual.
    guarded(|| unsafe { write_text(text, explain(code).map(|(name, _)| name)) })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuGetErrorString(code: c_int, text: *mut *const c_char) -> c_int {
    // SAFETY: the caller's pointer, by the manual.
    guarded(|| unsafe { write_text(text, explain(code).map(|(_, text)| text)) })
}

/// Stores a text, or null for a code that is not known.
///
/// # Safety
/// `to` must be null or valid for the write of a pointer.
unsafe fn write_text(
    to: *mut *const c_char,
    text: Option<&'static CStr>,
) -> Result<(), crate::code::Code> {
    let start = text.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: the caller's promise.
    unsafe { put(to, start)? };
    if text.is_none() { Err(INVALID_VALUE) } else { Ok(()) }
}
