//! Settings.
//!
//! Getters may be called at any time and open nothing. They return the setting in effect, or the
//! one that an open would put into effect now. Setters must come before the open: 5026 after it. A
//! parameter precedes its environment variable, and that precedes `cufile.json`. Unknown parameters
//! are 5022.

use std::ffi::{CStr, c_char, c_int};

use super::{export, write_out};
use crate::abi::{CufileError, Text};
use crate::call::as_error;
use crate::code::{CallError, INVALID_VALUE};
use crate::config::table::{SIZES, SWITCHES, TEXTS, range};
use crate::config::{Pool, Slabs, check_size, check_text};
use crate::library;

/// The index of a parameter in its table.
fn index(parameter: c_int, rows: usize) -> Result<usize, CallError> {
    let at = usize::try_from(parameter).ok().filter(|at| *at < rows);
    at.ok_or(CallError::from(INVALID_VALUE))
}

export! {
    fn cuFileGetParameterSizeT(parameter: c_int, value: *mut usize) -> CufileError {
        as_error(|| {
            let at = index(parameter, SIZES.len())?;
            // SAFETY: the caller's promise by the interface.
            unsafe { write_out(value, library::get().config(|config| config.sizes[at])) }
        })
    }
}

export! {
    /// Sets a size or number; 5022 out of its range (`cuFileGetParameterMinMaxValue`).
    fn cuFileSetParameterSizeT(parameter: c_int, value: usize) -> CufileError {
        as_error(|| {
            let at = index(parameter, SIZES.len())?;
            check_size(at, value)?;
            library::get().stage(|staged| staged.sizes[at] = Some(value))
        })
    }
}

export! {
    /// The range of a size or number, inclusive.
    fn cuFileGetParameterMinMaxValue(
        parameter: c_int,
        least: *mut usize,
        most: *mut usize
    ) -> CufileError {
        as_error(|| {
            if least.is_null() || most.is_null() {
                return Err(INVALID_VALUE.into());
            }
            let (low, high) = range(index(parameter, SIZES.len())?);
            // SAFETY: not null, and valid for the write.
            unsafe { least.write(low) };
            // SAFETY: as above.
            unsafe { most.write(high) };
            Ok(())
        })
    }
}

export! {
    fn cuFileGetParameterBool(parameter: c_int, value: *mut bool) -> CufileError {
        as_error(|| {
            let at = index(parameter, SWITCHES.len())?;
            // SAFETY: the caller's promise by the interface.
            unsafe { write_out(value, library::get().config(|config| config.switches[at])) }
        })
    }
}

export! {
    /// Sets a switch. None changes transfers: this library always works in compatibility mode, and
    /// switching that off has no effect (a line at level WARN reports it at the open).
    fn cuFileSetParameterBool(parameter: c_int, value: u8) -> CufileError {
        as_error(|| {
            let at = index(parameter, SWITCHES.len())?;
            library::get().stage(|staged| staged.switches[at] = Some(value != 0))
        })
    }
}

export! {
    /// A text with its NUL; 5022 if `len` bytes are too few for both.
    fn cuFileGetParameterString(parameter: c_int, text: Text, len: c_int) -> CufileError {
        as_error(|| {
            let at = index(parameter, TEXTS.len())?;
            let value = library::get().config(|config| config.texts[at].clone());
            let room = usize::try_from(len).unwrap_or(0);
            if text.is_null() || value.len() >= room {
                return Err(INVALID_VALUE.into());
            }
            let bytes = value.as_bytes();
            // SAFETY: not null, and there is space for `len` bytes, which are more than these.
            unsafe { text.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
            // SAFETY: as above.
            let end = unsafe { text.add(bytes.len()) };
            // SAFETY: as above.
            unsafe { end.write(0) };
            Ok(())
        })
    }
}

export! {
    /// Sets a text; 5022 for an unknown log level.
    fn cuFileSetParameterString(parameter: c_int, text: *const c_char) -> CufileError {
        as_error(|| {
            let at = index(parameter, TEXTS.len())?;
            if text.is_null() {
                return Err(INVALID_VALUE.into());
            }
            // SAFETY: not null, and a NUL-terminated string, by the interface.
            let value = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
            check_text(at, &value)?;
            library::get().stage(|staged| staged.texts[at] = Some(value))
        })
    }
}

/// # Safety
/// Both are null or valid for writes of `len` numbers.
unsafe fn pool(pool: Pool, sizes_kib: *mut usize, counts: *mut usize, len: c_int) -> CufileError {
    as_error(|| {
        let room = usize::try_from(len).unwrap_or(0);
        let slabs = library::get().config(|config| config.pools[pool as usize].clone());
        if sizes_kib.is_null() || counts.is_null() || room < slabs.counts.len() {
            return Err(INVALID_VALUE.into());
        }
        let lists = [(sizes_kib, slabs.sizes_kib), (counts, slabs.counts)];
        for (to, mut list) in lists {
            list.resize(room, 0);
            // SAFETY: not null, and there is space for `len` numbers.
            unsafe { to.copy_from_nonoverlapping(list.as_ptr(), room) };
        }
        Ok(())
    })
}

/// # Safety
/// Both are null or valid for reads of `len` numbers.
unsafe fn set_pool(
    pool: Pool,
    sizes_kib: *const usize,
    counts: *const usize,
    len: c_int,
) -> CufileError {
    as_error(|| {
        let count = usize::try_from(len).unwrap_or(0);
        if sizes_kib.is_null() || counts.is_null() || count == 0 {
            return Err(INVALID_VALUE.into());
        }
        // SAFETY: not null, and `len` long by the caller's promise.
        let sizes_kib = unsafe { std::slice::from_raw_parts(sizes_kib, count) }.to_vec();
        // SAFETY: as above.
        let counts = unsafe { std::slice::from_raw_parts(counts, count) }.to_vec();
        let slabs = Slabs { sizes_kib, counts };
        slabs.check()?;
        library::get().stage(|staged| staged.pools[pool as usize] = Some(slabs))
    })
}

export! {
    /// The pool of host memory of NVIDIA's compatibility mode, as set: sizes in KiB and how many of
    /// each; zeros after the last class, 5022 if `len` is less than the number of classes. Nothing
    /// here waits for such a pool.
    fn cuFileGetParameterPosixPoolSlabArray(
        sizes_kib: *mut usize,
        counts: *mut usize,
        len: c_int
    ) -> CufileError {
        // SAFETY: the caller's promise by the interface.
        unsafe { pool(Pool::Posix, sizes_kib, counts, len) }
    }
}

export! {
    /// Sets it: stored and returned.
    fn cuFileSetParameterPosixPoolSlabArray(
        sizes_kib: *const usize,
        counts: *const usize,
        len: c_int
    ) -> CufileError {
        // SAFETY: the caller's promise by the interface.
        unsafe { set_pool(Pool::Posix, sizes_kib, counts, len) }
    }
}

export! {
    /// Like `cuFileGetParameterPosixPoolSlabArray`, for the GPU memory that NVIDIA's library would
    /// use for itself (release 1.17 and later); none is used here.
    fn cuFileGetParameterGpuBounceBufferSlabArray(
        sizes_kib: *mut usize,
        counts: *mut usize,
        len: c_int
    ) -> CufileError {
        // SAFETY: the caller's promise by the interface.
        unsafe { pool(Pool::GpuBounce, sizes_kib, counts, len) }
    }
}

export! {
    /// Sets it: stored and returned.
    fn cuFileSetParameterGpuBounceBufferSlabArray(
        sizes_kib: *const usize,
        counts: *const usize,
        len: c_int
    ) -> CufileError {
        // SAFETY: the caller's promise by the interface.
        unsafe { set_pool(Pool::GpuBounce, sizes_kib, counts, len) }
    }
}
