//! A stand-in for `libdcgm.so.4`: the functions that gpuio calls, over two made-up GPUs. Its
//! behaviour depends on the address of the host engine. Tests compile it with rustc into a shared
//! object; it is no part of any crate.
//!
//! Its structure is written down again from dcgm_structs.h, so that a mistake in the crate's own
//! does not cancel out.

use std::ffi::{CStr, c_char, c_int, c_void};

/// `dcgmFieldValue_v1`.
#[repr(C)]
pub struct FieldValue {
    version: u32,
    field_id: u16,
    field_type: u16,
    status: i32,
    ts: i64,
    /// The union of 4096 bytes, aligned as its largest number.
    value: [u64; 512],
}

pub type Callback = extern "C" fn(u32, *mut FieldValue, c_int, *mut c_void) -> c_int;

const FINE: usize = 1;
const FOREIGN: usize = 2;
const NOT_PROFILED: usize = 3;
const STOPPED: usize = 4;

#[unsafe(no_mangle)]
pub extern "C" fn dcgmInit() -> c_int {
    0
}

/// # Safety
/// As in dcgm_agent.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcgmConnect(address: *const c_char, handle: *mut usize) -> c_int {
    let address = unsafe { CStr::from_ptr(address) };
    let which = match address.to_bytes() {
        b"127.0.0.1" => FINE,
        b"foreign" => FOREIGN,
        b"not profiled" => NOT_PROFILED,
        b"stopped" => STOPPED,
        _ => return -21,
    };
    unsafe { *handle = which };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn dcgmDisconnect(_: usize) -> c_int {
    0
}

/// # Safety
/// As in dcgm_agent.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcgmFieldGroupCreate(
    handle: usize,
    count: c_int,
    fields: *const u16,
    name: *const c_char,
    group: *mut usize,
) -> c_int {
    let named = !unsafe { CStr::from_ptr(name) }.to_bytes().is_empty();
    let fields = unsafe { std::slice::from_raw_parts(fields, count as usize) };
    if !named || !fields.contains(&1002) || !fields.contains(&54) {
        return -1;
    }
    unsafe { *group = handle + 100 };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn dcgmWatchFields(
    handle: usize,
    gpus: usize,
    fields: usize,
    every: i64,
    age: f64,
    samples: c_int,
) -> c_int {
    if handle == NOT_PROFILED {
        return -36;
    }
    let right = gpus == 0x7fff_ffff && fields == handle + 100;
    if right && every == 1_000_000 && age > 1.0 && samples > 0 { 0 } else { -1 }
}

fn value(handle: usize, field_id: u16, field_type: u8, status: i32, bits: u64) -> FieldValue {
    let version = if handle == FOREIGN { 4120 + 8 } else { 4120 } | (1 << 24);
    let mut value = [0; 512];
    value[0] = bits;
    FieldValue { version, field_id, field_type: u16::from(field_type), status, ts: 1, value }
}

fn uuid(handle: usize, gpu: u32) -> FieldValue {
    let mut it = value(handle, 54, b's', 0, 0);
    let text = format!("GPU-0000000{gpu}\0");
    for (nth, byte) in text.bytes().enumerate() {
        it.value[nth / 8] |= u64::from(byte) << (nth % 8 * 8);
    }
    it
}

#[unsafe(no_mangle)]
pub extern "C" fn dcgmGetLatestValues(
    handle: usize,
    _: usize,
    _: usize,
    callback: Callback,
    data: *mut c_void,
) -> c_int {
    if handle == STOPPED {
        return -21;
    }
    for gpu in [1, 0] {
        let mut values = vec![
            value(handle, 1002, b'd', 0, 0.25_f64.to_bits()),
            // No value yet; a blank; and one that the GPU does not have.
            value(handle, 1003, b'd', -14, 0),
            value(handle, 1004, b'd', 0, 140_737_488_355_330.0_f64.to_bits()),
            value(handle, 1009, b'i', 0, 7_000_000_000),
            value(handle, 1011, b'i', 0, 0x7fff_ffff_ffff_fff2),
            uuid(handle, gpu),
        ];
        // In two calls, as the real one may.
        let (first, second) = values.split_at_mut(2);
        for part in [first, second] {
            if callback(gpu, part.as_mut_ptr(), part.len() as c_int, data) < 0 {
                return 0;
            }
        }
    }
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn errorString(result: c_int) -> *const c_char {
    match result {
        -21 => c"The connection to the host engine is not valid any longer".as_ptr(),
        -36 => c"Profiling is not supported for this group of GPUs or GPU".as_ptr(),
        _ => std::ptr::null(),
    }
}
