//! The library's properties, and poll mode, which can only be set and read: there is nothing to
//! poll for.

use std::ffi::c_int;
use std::mem::offset_of;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};

use gpuio_base::cufilejson::Config;
use gpuio_guard::objects::environment;

use crate::api::{Answer, answer};
use crate::error::code;

/// 56 bytes; zero for properties that do not exist here.
#[repr(C)]
#[derive(Debug, Default)]
pub(crate) struct Properties {
    nvidia_fs: [u32; 2],
    poll_threshold: usize,
    max_direct_io: usize,
    status_flags: u32,
    control_flags: u32,
    features: u32,
    max_device_cache: u32,
    per_buffer_cache: u32,
    max_pinned: u32,
    max_batch: u32,
    max_batch_timeout_ms: u32,
}

const _: () = {
    assert!(size_of::<Properties>() == 56);
    assert!(offset_of!(Properties, control_flags) == 28);
};

/// Bits of the control flags.
const POLL_MODE: u32 = 1 << 0;
const ALLOW_COMPAT: u32 = 1 << 1;
/// The documented default, KiB.
const THRESHOLD: usize = 4;

/// The parameters that allow and force compatibility mode, and how many there are.
const ALLOW_COMPAT_PARAMETER: c_int = 1;
const FORCE_COMPAT_PARAMETER: c_int = 2;
const SWITCHES: c_int = 14;
/// Local NVMe drives, as a bit of the status flags.
const NVME: u32 = 1 << 4;

static POLL: AtomicBool = AtomicBool::new(false);
static POLL_KIB: AtomicUsize = AtomicUsize::new(THRESHOLD);
/// Whether compatibility mode is allowed: by the program, else by the configuration, else it is.
static COMPAT: AtomicU8 = AtomicU8::new(UNSAID);
const UNSAID: u8 = 2;
static FORCED: AtomicBool = AtomicBool::new(false);

/// The version of nvidia-fs that the environment requests to report, and the storage it supports.
fn nvidia_fs() -> ([u32; 2], u32) {
    let text = environment::text("GPUIO_SOFT_CUFILE_NVFS").unwrap_or_default();
    let (version, flags) = text.split_once(':').unwrap_or((&text, ""));
    let (major, minor) = version.split_once('.').unwrap_or((version, ""));
    let version = [major, minor].map(|part| part.parse().unwrap_or(0));
    let storage = if version == [0, 0] { 0 } else { NVME };
    (version, flags.parse().unwrap_or(storage))
}

/// Applies the configuration's key of compatibility mode, unless the program has set it.
pub(crate) fn configure(config: &Config) {
    if let Some(allowed) = config.switch("properties.allow_compat_mode") {
        let (now, then) = (Ordering::Relaxed, Ordering::Relaxed);
        let _ = COMPAT.compare_exchange(UNSAID, u8::from(allowed), now, then);
    }
    if config.switch("properties.force_compat_mode") == Some(true) {
        FORCED.store(true, Ordering::Relaxed);
    }
}

fn compat_allowed() -> bool {
    COMPAT.load(Ordering::Relaxed) != 0
}

/// Whether a file can be registered: by compatibility mode, or by the reported nvidia-fs.
pub(crate) fn takes_files() -> bool {
    compat_allowed() || nvidia_fs().0 != [0, 0]
}

/// Whether compatibility mode is forced, by the program or by the environment.
fn is_forced() -> bool {
    let value = environment::text("CUFILE_FORCE_COMPAT_MODE");
    FORCED.load(Ordering::Relaxed)
        || value.is_some_and(|value| value == "1" || value.eq_ignore_ascii_case("true"))
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuFileDriverGetProperties(properties: *mut Properties) -> Answer {
    answer("cuFileDriverGetProperties", |_| {
        if properties.is_null() {
            return Err(code::INVALID_VALUE.into());
        }
        // All bytes go through host memory: that is what a test double is for.
        let poll = if POLL.load(Ordering::Relaxed) { POLL_MODE } else { 0 };
        let compat = if compat_allowed() { ALLOW_COMPAT } else { 0 };
        let (nvidia_fs, status_flags) = nvidia_fs();
        let found = Properties {
            nvidia_fs,
            status_flags,
            poll_threshold: POLL_KIB.load(Ordering::Relaxed),
            max_direct_io: 16 << 10,
            control_flags: compat | poll,
            max_device_cache: 128 << 10,
            per_buffer_cache: 1 << 10,
            max_pinned: 32 << 20,
            max_batch: 128,
            max_batch_timeout_ms: 5,
            ..Properties::default()
        };
        // SAFETY: not null, and the caller's promise by the guide.
        unsafe { properties.write(found) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuFileDriverSetPollMode(poll: bool, threshold_kib: usize) -> Answer {
    answer("cuFileDriverSetPollMode", |_| {
        POLL.store(poll, Ordering::Relaxed);
        POLL_KIB.store(threshold_kib, Ordering::Relaxed);
        Ok(())
    })
}

/// Switches of compatibility mode are stored and returned; the others do nothing.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuFileSetParameterBool(parameter: c_int, value: bool) -> Answer {
    answer("cuFileSetParameterBool", |_| {
        match parameter {
            ALLOW_COMPAT_PARAMETER => COMPAT.store(u8::from(value), Ordering::Relaxed),
            FORCE_COMPAT_PARAMETER => FORCED.store(value, Ordering::Relaxed),
            0..SWITCHES => {}
            _ => return Err(code::INVALID_VALUE.into()),
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuFileGetParameterBool(
    parameter: c_int,
    value: *mut bool,
) -> Answer {
    answer("cuFileGetParameterBool", |_| {
        let found = match parameter {
            ALLOW_COMPAT_PARAMETER => compat_allowed(),
            FORCE_COMPAT_PARAMETER => is_forced(),
            0..SWITCHES => false,
            _ => return Err(code::INVALID_VALUE.into()),
        };
        if value.is_null() {
            return Err(code::INVALID_VALUE.into());
        }
        // SAFETY: not null, and the caller's promise by the guide.
        unsafe { value.write(found) };
        Ok(())
    })
}
