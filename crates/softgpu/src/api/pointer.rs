//! The attributes of an address.

use std::ffi::{c_int, c_uint, c_void};

use crate::call::{call, put};
use crate::code::{Answer, INVALID_VALUE, NOT_SUPPORTED};
use crate::machine::Machine;
use crate::memory::{About, Kind, owner};

/// `CU_DEVICE_INVALID`: the device of memory that the driver does not know.
const NO_DEVICE: c_int = -2;

/// Stores one attribute of an address, or its null value where nothing is known.
///
/// # Safety
/// `to` must be null or valid for the write of the attribute's type.
unsafe fn write_attribute(
    machine: &Machine,
    attribute: c_int,
    about: Option<About>,
    address: u64,
    to: *mut c_void,
) -> Answer<()> {
    let is_host = about.is_some_and(|it| matches!(it.kind, Kind::Pinned | Kind::Registered));
    let is_managed = about.is_some_and(|it| it.kind == Kind::Managed);
    let context = about.map_or(0, |it| it.context);
    let handle = std::ptr::without_provenance_mut::<c_void>(context);
    let device = about.and_then(|it| {
        owner(it.start).or_else(|| machine.owner(handle).ok().map(|device| device.index))
    });
    match attribute {
        // CONTEXT
        // SAFETY: the caller's promise, here and in every arm.
        1 => unsafe { put(to.cast(), handle) },
        // MEMORY_TYPE
        2 => {
            let kind: c_uint = if about.is_none() { 0 } else { 2 - c_uint::from(is_host) };
            // SAFETY: as above.
            unsafe { put(to.cast(), kind) }
        }
        // DEVICE_POINTER
        // SAFETY: as above.
        3 => unsafe { put(to.cast(), if about.is_some() { address } else { 0 }) },
        // HOST_POINTER
        // SAFETY: as above.
        4 => unsafe { put(to.cast(), if is_host || is_managed { address } else { 0 }) },
        // SYNC_MEMOPS
        6 => {
            let on = machine.memory.memops(address).is_some_and(|ops| ops.is_synchronized());
            // SAFETY: as above.
            unsafe { put(to.cast(), c_uint::from(on)) }
        }
        // BUFFER_ID
        7 => {
            let id = machine.memory.memops(address).map_or(0, |ops| ops.id());
            // SAFETY: as above.
            unsafe { put(to.cast(), id) }
        }
        // IS_MANAGED
        // SAFETY: as above.
        8 => unsafe { put(to.cast(), c_uint::from(is_managed)) },
        // DEVICE_ORDINAL
        // SAFETY: as above.
        9 => unsafe { put(to.cast(), device.map_or(NO_DEVICE, u32::cast_signed)) },
        // RANGE_START_ADDR
        // SAFETY: as above.
        11 => unsafe { put(to.cast(), about.map_or(0, |it| it.start)) },
        // RANGE_SIZE
        // SAFETY: as above.
        12 => unsafe { put(to.cast(), about.map_or(0, |it| it.len)) },
        // MAPPED
        // SAFETY: as above.
        13 => unsafe { put(to.cast(), c_uint::from(about.is_some())) },
        _ => Err(INVALID_VALUE),
    }
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuPointerGetAttributes(
    count: c_uint,
    attributes: *mut c_int,
    data: *mut *mut c_void,
    address: u64,
) -> c_int {
    call("cuPointerGetAttributes", |machine| {
        if attributes.is_null() || data.is_null() {
            return Err(INVALID_VALUE);
        }
        let about = machine.memory.about(address);
        for at in 0..count as usize {
            // SAFETY: an array of `count`, by the manual.
            let attribute = unsafe { attributes.wrapping_add(at).read() };
            // SAFETY: an array of `count`, by the manual.
            let to = unsafe { data.wrapping_add(at).read() };
            // SAFETY: the caller's pointer, by the manual.
            unsafe { write_attribute(machine, attribute, about, address, to)? };
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuPointerGetAttribute(
    data: *mut c_void,
    attribute: c_int,
    address: u64,
) -> c_int {
    call("cuPointerGetAttribute", |machine| {
        // Other than the call for many, this one refuses what it does not know.
        let about = machine.memory.about(address).ok_or(INVALID_VALUE)?;
        // SAFETY: the caller's pointer, by the manual.
        unsafe { write_attribute(machine, attribute, Some(about), address, data) }
    })
}

/// Takes the one attribute that can be set here: whether synchronous operations on the allocation
/// synchronize. Mappings have none, and for memory of a pool it does nothing, as with hardware.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuPointerSetAttribute(
    value: *const c_void,
    attribute: c_int,
    address: u64,
) -> c_int {
    call("cuPointerSetAttribute", |machine| {
        // SAFETY: the caller's pointer, to a value of the attribute's type, by the manual.
        let value = unsafe { value.cast::<c_uint>().as_ref() };
        let value = value.copied().filter(|_| attribute == 6).ok_or(INVALID_VALUE)?;
        let about = machine.memory.about(address).ok_or(INVALID_VALUE)?;
        if matches!(about.kind, Kind::Mapped(_)) {
            return Err(NOT_SUPPORTED);
        }
        let memops = machine.memory.memops(address).ok_or(INVALID_VALUE)?;
        if about.kind == Kind::Pool {
            memops.mark(value != 0);
        } else {
            memops.synchronize(value != 0);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuMemGetAddressRange_v2(
    start: *mut u64,
    len: *mut usize,
    address: u64,
) -> c_int {
    call("cuMemGetAddressRange_v2", |machine| {
        let about = machine.memory.about(address).ok_or(INVALID_VALUE)?;
        if !start.is_null() {
            // SAFETY: the caller's pointer, by the manual; either may be null.
            unsafe { put(start, about.start)? };
        }
        if !len.is_null() {
            // SAFETY: as above.
            unsafe { put(len, usize::try_from(about.len).unwrap_or(usize::MAX))? };
        }
        Ok(())
    })
}
