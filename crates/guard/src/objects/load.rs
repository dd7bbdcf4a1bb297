//! Loads shared objects: the only `dlopen(3)` of gpuio that can run new code.
#![allow(unsafe_code)]

use std::ffi::{CStr, OsStr, c_int, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use libloading::os::unix::Library;

use crate::objects::trust;

/// Loads a shared object, and gives it with the file that was opened.
///
/// A name without a slash is left to the loader, which searches where the system says (ld.so(8)). A
/// path is loaded as [`trust::object`] allows, with its links resolved.
///
/// # Errors
/// Why not, in one line that names the file.
///
/// # Safety
/// The object's initialisers run: it must be meant for this program, and for these flags.
pub unsafe fn load(name: &Path, flags: c_int) -> Result<(Library, PathBuf), String> {
    let file = match name.as_os_str().as_encoded_bytes().contains(&b'/') {
        true => trust::object(name).map_err(|refused| refused.to_string())?,
        false => name.to_owned(),
    };
    // SAFETY: the caller's promise.
    match unsafe { Library::open(Some(&file), flags) } {
        Ok(library) => Ok((library, file)),
        Err(error) => {
            // Its own words leave the loader's to the source.
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            Err(cause.unwrap_or_else(|| error.to_string()))
        }
    }
}

/// The file of the object that holds this address, as the loader found it, links resolved
/// (`dladdr(3)`).
///
/// # Safety
/// The object stays loaded during the call.
pub unsafe fn file_of(address: *const c_void) -> Option<PathBuf> {
    let mut info = libc::Dl_info {
        dli_fname: std::ptr::null(),
        dli_fbase: std::ptr::null_mut(),
        dli_sname: std::ptr::null(),
        dli_saddr: std::ptr::null_mut(),
    };
    // SAFETY: dladdr only compares the address with the loaded objects; `info` is valid for writes.
    let found = unsafe { libc::dladdr(address, &raw mut info) };
    if found == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the loader's string lives as long as the object: the caller's promise.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    let path = Path::new(OsStr::from_bytes(name.to_bytes()));
    Some(path.canonicalize().unwrap_or_else(|_| path.to_path_buf()))
}

/// The file of the object that has this code: the program, or one of gpuio's libraries in it.
pub(super) fn own_file() -> Option<PathBuf> {
    // SAFETY: the object that has this code is loaded as long as the code runs.
    unsafe { file_of(own_file as *const c_void) }
}
