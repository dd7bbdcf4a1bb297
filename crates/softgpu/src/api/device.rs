//! The devices.

use std::ffi::{c_char, c_int};

use crate::call::{call, put};
use crate::code::{Answer, INVALID_VALUE};

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuDeviceGetCount(count: *mut c_int) -> c_int {
    call("cuDeviceGetCount", |machine| {
        // SAFETY: the caller's pointer, by the manual. 64 devices are the most.
        unsafe { put(count, machine.config.devices.cast_signed()) }
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> c_int {
    call("cuDeviceGet", |machine| {
        machine.device(ordinal)?;
        // SAFETY: the caller's pointer, by the manual.
        unsafe { put(device, ordinal) }
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuDeviceGetName(
    name: *mut c_char,
    len: c_int,
    device: c_int,
) -> c_int {
    call("cuDeviceGetName", |machine| {
        let index = machine.device(device)?.index;
        // SAFETY: the caller's pointer, by the manual.
        unsafe { write(name, len, &format!("gpuio software GPU {index}")) }
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuDeviceGetPCIBusId(
    id: *mut c_char,
    len: c_int,
    device: c_int,
) -> c_int {
    call("cuDeviceGetPCIBusId", |machine| {
        // A domain that real machines seldom have, so that nothing is mistaken for a real device.
        let index = machine.device(device)?.index;
        // SAFETY: the caller's pointer, by the manual.
        unsafe { write(id, len, &format!("F5F7:{:02X}:00.0", index + 1)) }
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuDeviceGetUuid(id: *mut [u8; 16], device: c_int) -> c_int {
    // SAFETY: the caller's promise is the same.
    call("cuDeviceGetUuid", |machine| unsafe { put(id, uuid(machine.device(device)?.index)) })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuDeviceGetUuid_v2(id: *mut [u8; 16], device: c_int) -> c_int {
    // SAFETY: the caller's promise is the same.
    call("cuDeviceGetUuid_v2", |machine| unsafe { put(id, uuid(machine.device(device)?.index)) })
}

/// The same in each run: "gpuio soft" and the index.
fn uuid(index: u32) -> [u8; 16] {
    let mut id = *b"gpuio soft\0\0\0\0\0\0";
    id[12..].copy_from_slice(&index.to_be_bytes());
    id
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuDeviceTotalMem_v2(bytes: *mut usize, device: c_int) -> c_int {
    call("cuDeviceTotalMem_v2", |machine| {
        let total = machine.device(device)?.budget.total();
        // SAFETY: the caller's pointer, by the manual.
        unsafe { put(bytes, usize::try_from(total).unwrap_or(usize::MAX)) }
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuDeviceGetAttribute(
    value: *mut c_int,
    attribute: c_int,
    device: c_int,
) -> c_int {
    call("cuDeviceGetAttribute", |machine| {
        let index = machine.device(device)?.index.cast_signed();
        let managed = c_int::from(machine.config.managed);
        let sms = machine.config.multiprocessors.cast_signed();
        let words = c_int::from(machine.config.stream_words);
        let read_only = c_int::from(machine.config.read_only_register);
        let answer = match attribute {
            16 => sms,        // MULTIPROCESSOR_COUNT: one thread runs a kernel all the same
            33 => index + 1,  // PCI_BUS_ID
            34 => 0,          // PCI_DEVICE_ID
            41 => 1,          // UNIFIED_ADDRESSING
            50 => 0xF5F7,     // PCI_DOMAIN_ID
            75 => 8,          // COMPUTE_CAPABILITY_MAJOR: what modules may be compiled for
            76 => 0,          // COMPUTE_CAPABILITY_MINOR
            83 => 1,          // MANAGED_MEMORY
            89 => managed,    // CONCURRENT_MANAGED_ACCESS
            91 => 1,          // CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM
            92 => words,      // CAN_USE_STREAM_MEM_OPS_V1
            100 => 0,         // PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES
            102 => 1,         // VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
            110 | 116 => 0,   // GPU_DIRECT_RDMA_*: no other device reaches this memory
            113 => read_only, // READ_ONLY_HOST_REGISTER_SUPPORTED
            115 => 1,         // MEMORY_POOLS_SUPPORTED
            122 => 0,         // CAN_USE_64_BIT_STREAM_MEM_OPS: words of 32 bits only
            123 => words,     // CAN_USE_STREAM_WAIT_VALUE_NOR
            _ => return Err(INVALID_VALUE),
        };
        // SAFETY: the caller's pointer, by the manual.
        unsafe { put(value, answer) }
    })
}

/// Writes a text and its NUL, cut to `len` bytes.
///
/// # Safety
/// `to` must be null or valid for writes of `len` bytes.
unsafe fn write(to: *mut c_char, len: c_int, text: &str) -> Answer<()> {
    let len = usize::try_from(len).unwrap_or(0);
    if to.is_null() || len == 0 {
        return Err(INVALID_VALUE);
    }
    let count = text.len().min(len - 1);
    // SAFETY: `count` is less than `len`; the text is not the caller's buffer.
    unsafe { std::ptr::copy_nonoverlapping(text.as_ptr().cast(), to, count) };
    // SAFETY: as above.
    unsafe { to.wrapping_add(count).write(0) };
    Ok(())
}
