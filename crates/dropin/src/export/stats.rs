//! Statistics (release 1.15 and later).

use std::ffi::{c_int, c_void};

use super::{export, write_out};
use crate::abi::CufileError;
use crate::call::as_error;
use crate::code::INVALID_VALUE;
use crate::{environment, library};

export! {
    /// Sets the level of counting: 0 (nothing) to 3; other numbers are 5022. May be called at any
    /// time, takes effect at once, and precedes the configuration.
    fn cuFileSetStatsLevel(level: c_int) -> CufileError {
        as_error(|| library::get().stats.set_level(level))
    }
}

export! {
    fn cuFileGetStatsLevel(level: *mut c_int) -> CufileError {
        as_error(|| {
            let now = c_int::from(library::get().stats.level());
            // SAFETY: null, or valid for the write of one number.
            unsafe { write_out(level, now) }
        })
    }
}

export! {
    /// Resumes counting after a stop. 5001 before the open. With a level above 0, counting runs
    /// from the open on.
    fn cuFileStatsStart() -> CufileError {
        as_error(|| {
            library::get().needs_open()?;
            library::get().stats.run(true);
            Ok(())
        })
    }
}

export! {
    /// Stops counting until the next start; the counts stay. 5001 before the open.
    fn cuFileStatsStop() -> CufileError {
        as_error(|| {
            library::get().needs_open()?;
            library::get().stats.run(false);
            Ok(())
        })
    }
}

export! {
    /// Sets all counters to zero. 5001 before the open.
    fn cuFileStatsReset() -> CufileError {
        as_error(|| {
            library::get().needs_open()?;
            library::get().stats.reset();
            Ok(())
        })
    }
}

/// # Safety
/// `room` is null or as long as the structure of this level and release.
unsafe fn fill(level: u8, room: *mut c_void) -> CufileError {
    as_error(|| {
        let library = library::get();
        library.needs_open()?;
        if room.is_null() {
            return Err(INVALID_VALUE.into());
        }
        let version = environment::get().version;
        let registered = |gpu| library.buffers.bytes_on(gpu);
        let bytes = library.stats.bytes(level, version, library.gpus(), registered)?;
        // SAFETY: not null, and the caller's promise; the two do not overlap.
        unsafe { room.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        Ok(())
    })
}

export! {
    /// Totals: 512 bytes as in release 1.15, or 624 if `GPUIO_CUFILE_VERSION` is 1200. 5022 if the
    /// level is lower, 5001 before the open.
    fn cuFileGetStatsL1(room: *mut c_void) -> CufileError {
        // SAFETY: the caller's promise by the interface.
        unsafe { fill(1, room) }
    }
}

export! {
    /// Like level 1, and histograms of sizes: 1024 or 1136 bytes.
    fn cuFileGetStatsL2(room: *mut c_void) -> CufileError {
        // SAFETY: the caller's promise by the interface.
        unsafe { fill(2, room) }
    }
}

export! {
    /// Like level 2, and an entry for each of up to 16 GPUs: 5000 or 5112 bytes.
    fn cuFileGetStatsL3(room: *mut c_void) -> CufileError {
        // SAFETY: the caller's promise by the interface.
        unsafe { fill(3, room) }
    }
}
