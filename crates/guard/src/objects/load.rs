//! Loads shared objects: the only `dlopen(3)` of gpuio that can run new code.
#![allow(unsafe_code)]

use std::ffi::c_int;
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
