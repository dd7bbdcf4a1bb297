//! Opening and closing, properties, limits.

use std::ffi::{c_char, c_int, c_uint};

use super::{export, write_out};
use crate::abi::{
    CONTROL_ALLOW_COMPAT, CONTROL_POLL_MODE, CufileError, FEATURE_BATCH, FEATURE_PARALLEL,
    FEATURE_STREAMS, Properties,
};
use crate::call::as_error;
use crate::code::{
    CallError, DEVICE_NOT_FOUND, INVALID_VALUE, IO_NOT_SUPPORTED, UNSUPPORTED_LIMIT,
};
use crate::config::{Config, table};
use crate::nvidia::Count;
use crate::{environment, library};

export! {
    /// Opens the library: reads the configuration, loads and initialises the CUDA driver (the
    /// program need not have called it), creates the live page. Opens are counted. 5011 with the
    /// CUDA driver's code if there is no driver or no GPU; it returns at once then (measured of
    /// 1.20: never). Touches no descriptor but its own, needs no udev, writes no log unless
    /// configured.
    fn cuFileDriverOpen() -> CufileError, seen by open {
        as_error(|| library::get().open())
    }
}

export! {
    /// Undoes one open, an implicit one too (5001 when there is none). After the last one, buffers
    /// and streams are no longer registered, and settings may be changed. Calls no CUDA; memory and
    /// threads stay for a later open. The older of two names, which `dlsym(3)` users look up; both
    /// are the same here.
    fn cuFileDriverClose() -> CufileError {
        as_error(|| library::get().close())
    }
}

export! {
    /// As `cuFileDriverClose`: the name that C headers give it.
    fn cuFileDriverClose_v2() -> CufileError {
        as_error(|| library::get().close())
    }
}

export! {
    /// Number of opens without a close; 0 before the first (measured).
    fn cuFileUseCount() -> Count {
        let uses = std::panic::catch_unwind(|| library::get().uses());
        Count(uses.unwrap_or(0))
    }
}

export! {
    /// Properties: version 0.0 of nvidia-fs and no file system of it, which is the truth, and by
    /// which clients recognise that; compatibility mode allowed; batches, streams and parallel I/O;
    /// sizes in KiB as set. The whole structure is written. May be called before the open, as in
    /// 1.20 (measured), and opens nothing.
    fn cuFileDriverGetProperties(properties: *mut Properties) -> CufileError {
        // SAFETY: null, or valid for the write of the structure.
        as_error(|| unsafe { write_out(properties, library::get().config(properties_of)) })
    }
}

fn properties_of(config: &Config) -> Properties {
    let small = |at: usize| c_uint::try_from(config.sizes[at]).unwrap_or(c_uint::MAX);
    let poll = if config.switches[table::POLL_MODE] { CONTROL_POLL_MODE } else { 0 };
    Properties {
        poll_threshold_kib: config.sizes[table::POLL_THRESHOLD],
        max_direct_io_kib: config.sizes[table::MAX_DIRECT_IO],
        control_flags: CONTROL_ALLOW_COMPAT | poll,
        features: FEATURE_BATCH | FEATURE_STREAMS | FEATURE_PARALLEL,
        max_device_cache_kib: small(table::MAX_DEVICE_CACHE),
        per_buffer_cache_kib: small(table::PER_BUFFER_CACHE),
        max_pinned_kib: small(table::MAX_PINNED),
        max_batch: small(table::BATCH),
        max_batch_timeout_ms: small(table::BATCH_TIMEOUT),
        ..Properties::default()
    }
}

export! {
    /// Poll mode and its threshold in KiB: stored and returned. Neither mode polls; small calls
    /// spin where that is faster. May be called at any time.
    fn cuFileDriverSetPollMode(poll: u8, threshold_kib: usize) -> CufileError {
        as_error(|| {
            let library = library::get();
            library.set_switch(table::POLL_MODE, poll != 0);
            library.set_size(table::POLL_THRESHOLD, threshold_kib);
            Ok(())
        })
    }
}

/// A limit of nvidia-fs, in KiB: stored and returned. 0 is refused with 5003.
fn set_limit(at: usize, kib: usize) -> CufileError {
    as_error(|| {
        if kib == 0 {
            return Err(UNSUPPORTED_LIMIT.into());
        }
        library::get().set_size(at, kib);
        Ok(())
    })
}

export! {
    /// Largest direct I/O of nvidia-fs in KiB: stored, limits nothing here. May be called after the
    /// open, which KvikIO and fastsafetensors rely on; 0 is refused with 5003.
    fn cuFileDriverSetMaxDirectIOSize(kib: usize) -> CufileError {
        set_limit(table::MAX_DIRECT_IO, kib)
    }
}

export! {
    /// GPU memory that NVIDIA's library would use for itself, in KiB: stored, none is used here.
    /// May be called after the open; 0 is refused with 5003.
    fn cuFileDriverSetMaxCacheSize(kib: usize) -> CufileError {
        set_limit(table::MAX_DEVICE_CACHE, kib)
    }
}

export! {
    /// GPU memory that nvidia-fs may pin, in KiB: stored, none is pinned here. May be called after
    /// the open; 0 is refused with 5003.
    fn cuFileDriverSetMaxPinnedMemSize(kib: usize) -> CufileError {
        set_limit(table::MAX_PINNED, kib)
    }
}

export! {
    /// Which kinds of peer-to-peer a kind of storage uses: none, so 0 for every kind (0 to 14);
    /// other numbers are refused with 5022. Release 1.16 and later.
    fn cuFileDriverGetP2PFlags(storage: c_int, flags: *mut c_uint) -> CufileError {
        as_error(|| {
            if !(0..=14).contains(&storage) {
                return Err(INVALID_VALUE.into());
            }
            // SAFETY: null, or the caller's room for one number.
            unsafe { write_out(flags, 0) }
        })
    }
}

export! {
    /// Peer-to-peer can't be enabled here: 5008, except for no flags at all. Release 1.16 and
    /// later.
    fn cuFileDriverSetP2PFlags(storage: c_int, flags: c_uint) -> CufileError {
        as_error(|| match (storage, flags) {
            (0..=14, 0) => Ok(()),
            (0..=14, _) => Err(IO_NOT_SUPPORTED.into()),
            _ => Err(INVALID_VALUE.into()),
        })
    }
}

export! {
    /// The release that this library behaves like, 1000 × major + 10 × minor: 1150, which has the
    /// small statistics structures, or the value of `GPUIO_CUFILE_VERSION`. Opens nothing.
    fn cuFileGetVersion(version: *mut c_int) -> CufileError {
        // SAFETY: null, or the caller's room for one number.
        as_error(|| unsafe { write_out(version, environment::get().version) })
    }
}

export! {
    /// 5008: PCIe routes play no role here. `gpuio topo` prints them. Release 1.16 and later.
    fn cuFileExportPCIeTopology(path: *const c_char) -> CufileError {
        as_error(|| {
            let code = if path.is_null() { INVALID_VALUE } else { IO_NOT_SUPPORTED };
            Err(code.into())
        })
    }
}

export! {
    /// GPU memory that a bus address reaches through nvidia-fs, in KiB: 0, for nothing is mapped
    /// (release 1.15 returns the same without nvidia-fs, as reported). 5029 for a GPU that does not
    /// exist.
    fn cuFileGetBARSizeInKB(gpu: c_int, kib: *mut usize) -> CufileError {
        as_error(|| {
            if kib.is_null() {
                return Err(INVALID_VALUE.into());
            }
            let library = library::get();
            library.ensure_open()?;
            let known = library.gpus().iter().any(|one| i64::from(one.index) == i64::from(gpu));
            if !known {
                return Err(CallError::from(DEVICE_NOT_FOUND));
            }
            // SAFETY: not null, and the caller's room for one number.
            unsafe { kib.write(0) };
            Ok(())
        })
    }
}
