//! The virtual memory management calls, for mappings that are granted and taken as a whole.

use std::ffi::{c_int, c_ulonglong, c_void};
use std::slice;

use crate::call::{call, put};
use crate::code::{Answer, INVALID_DEVICE, INVALID_HANDLE, INVALID_VALUE};
use crate::device::Device;
use crate::machine::Machine;
use crate::memory::Kind;
use crate::vmm::{GRANULARITY, Physical};

/// Where memory lies or is used from (`CUmemLocation`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Location {
    pub(crate) kind: c_int,
    id: c_int,
}

/// The memory to make (`CUmemAllocationProp`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Prop {
    kind: c_int,
    handle_types: c_int,
    location: Location,
    windows: *mut c_void,
    flags: [u8; 8],
}

/// Who may use a mapping (`CUmemAccessDesc`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Access {
    location: Location,
    flags: c_int,
}

impl Location {
    pub(crate) fn device_number(self) -> Answer<c_int> {
        if self.kind == 1 { Ok(self.id) } else { Err(INVALID_DEVICE) }
    }

    /// The device it names; 1 is the kind for devices.
    fn device(self, machine: &Machine) -> Answer<&Device> {
        machine.device(self.device_number()?)
    }
}

/// Reads the requested memory: pinned (1), on a device, of a shape that is supported.
///
/// # Safety
/// `prop` must be null or readable.
unsafe fn wanted(machine: &Machine, prop: *const Prop) -> Answer<&Device> {
    // SAFETY: the caller's promise.
    let prop = unsafe { prop.as_ref() }.ok_or(INVALID_VALUE)?;
    if prop.kind != 1 || prop.handle_types != 0 || !prop.windows.is_null() {
        return Err(INVALID_VALUE);
    }
    // Neither compression nor other devices' access (flags, in this order) exists here.
    if prop.flags[..2] != [0, 0] {
        return Err(crate::code::Code(801));
    }
    prop.location.device(machine)
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuMemGetAllocationGranularity(
    granularity: *mut usize,
    prop: *const Prop,
    _option: c_int,
) -> c_int {
    call("cuMemGetAllocationGranularity", |machine| {
        // SAFETY: the caller's pointer, by the manual.
        unsafe { wanted(machine, prop)? };
        // SAFETY: the caller's pointer, by the manual.
        unsafe { put(granularity, GRANULARITY) }
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuMemCreate(
    handle: *mut u64,
    len: usize,
    prop: *const Prop,
    _flags: c_ulonglong,
) -> c_int {
    call("cuMemCreate", |machine| {
        machine.current()?;
        // SAFETY: the caller's pointer, by the manual.
        let device = unsafe { wanted(machine, prop)? };
        if handle.is_null() {
            return Err(INVALID_VALUE);
        }
        let made = machine.physical.add(Physical::new(device, len)?);
        // SAFETY: the caller's pointer, by the manual.
        unsafe { put(handle, made as u64) }
    })
}

/// The pointer shape of a 64-bit handle.
fn pointer(handle: u64) -> Answer<*mut c_void> {
    let handle = usize::try_from(handle).map_err(|_| INVALID_HANDLE)?;
    Ok(std::ptr::without_provenance_mut(handle))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuMemRelease(handle: u64) -> c_int {
    call("cuMemRelease", |machine| machine.physical.remove(pointer(handle)?).map(drop))
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuMemAddressReserve(
    address: *mut u64,
    len: usize,
    align: usize,
    _wish: u64,
    _flags: c_ulonglong,
) -> c_int {
    call("cuMemAddressReserve", |machine| {
        let device = machine.current()?;
        let align = align.max(GRANULARITY);
        if len == 0
            || !len.is_multiple_of(GRANULARITY)
            || !align.is_power_of_two()
            || address.is_null()
        {
            return Err(INVALID_VALUE);
        }
        let start = machine.memory.reserve(device, len as u64, align as u64)?;
        // SAFETY: the caller's pointer, by the manual.
        unsafe { put(address, start) }
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuMemAddressFree(address: u64, len: usize) -> c_int {
    call("cuMemAddressFree", |machine| machine.memory.unreserve(address, len as u64))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuMemMap(
    address: u64,
    len: usize,
    offset: usize,
    handle: u64,
    _flags: c_ulonglong,
) -> c_int {
    call("cuMemMap", |machine| {
        let physical = machine.physical.get(pointer(handle)?)?;
        machine.memory.map(address, len as u64, &physical.pages, offset as u64)
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuMemUnmap(address: u64, len: usize) -> c_int {
    call("cuMemUnmap", |machine| machine.memory.unmap(address, len as u64))
}

/// Answers for mappings alone. All devices have the same access here.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuMemGetAccess(
    flags: *mut c_ulonglong,
    _location: *const c_void,
    address: u64,
) -> c_int {
    call("cuMemGetAccess", |machine| {
        let access = match machine.memory.about(address).map(|it| it.kind) {
            Some(Kind::Mapped(true)) => 3,
            Some(Kind::Mapped(false)) => 0,
            _ => return Err(INVALID_VALUE),
        };
        // SAFETY: the caller's pointer, by the manual.
        unsafe { put(flags, access) }
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuMemSetAccess(
    address: u64,
    len: usize,
    descs: *const Access,
    count: usize,
) -> c_int {
    call("cuMemSetAccess", |machine| {
        if descs.is_null() || count == 0 {
            return Err(INVALID_VALUE);
        }
        // SAFETY: the caller's array of `count`, by the manual.
        for desc in unsafe { slice::from_raw_parts(descs, count) } {
            desc.location.device(machine)?;
            // Read and write is 3.
            machine.memory.allow(address, len as u64, desc.flags == 3)?;
        }
        Ok(())
    })
}
