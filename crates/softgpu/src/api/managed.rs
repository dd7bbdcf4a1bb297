//! Managed memory and hints about where it shall be.

use std::ffi::{c_int, c_uint, c_void};

use super::vmm::Location;
use crate::call::{call, later, put};
use crate::code::{Answer, Code, INVALID_DEVICE, INVALID_VALUE, NOT_SUPPORTED};
use crate::machine::Machine;
use crate::managed::Residence;
use crate::stream::Work;

/// `CU_MEM_ATTACH_GLOBAL`: every stream of every device may use it.
const ATTACH_GLOBAL: c_uint = 1;
/// `CU_DEVICE_CPU`.
const CPU: c_int = -1;
/// `CU_MEM_LOCATION_TYPE_HOST`.
const LOCATION_HOST: c_int = 2;

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuMemAllocManaged(
    address: *mut u64,
    len: usize,
    flags: c_uint,
) -> c_int {
    call("cuMemAllocManaged", |machine| {
        let (device, context) = machine.current_with_context()?;
        if address.is_null() || flags != ATTACH_GLOBAL {
            return Err(INVALID_VALUE);
        }
        let start = machine.memory.manage(device, context, len)?;
        // SAFETY: the caller's pointer, by the manual.
        unsafe { put(address, start) }
    })
}

/// Where a hint of the first form points.
fn residence(machine: &Machine, device: c_int) -> Answer<Residence> {
    if device == CPU {
        return Ok(Residence::Host);
    }
    let index = machine.device(device)?.index;
    if machine.config.managed { Ok(Residence::Device(index)) } else { Err(INVALID_DEVICE) }
}

/// Where a hint of the second form points.
fn location(machine: &Machine, location: Location) -> Answer<Residence> {
    let device = if location.kind == LOCATION_HOST { CPU } else { location.device_number()? };
    residence(machine, device)
}

/// Puts the move of the pages into the stream.
fn prefetch(
    machine: &'static Machine,
    fault: Option<Code>,
    (address, len): (u64, usize),
    to: Residence,
    stream: *mut c_void,
) -> Answer<()> {
    machine.current()?;
    let stream = machine.stream(stream)?;
    if !machine.config.managed {
        return Err(INVALID_DEVICE);
    }
    let (memory, skip) = machine.memory.managed(address, len as u64)?;
    let work = Work::Migrate { memory, skip, len, to };
    stream.put(fault.map_or(work, Work::Fail))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuMemPrefetchAsync(
    address: u64,
    len: usize,
    device: c_int,
    stream: *mut c_void,
) -> c_int {
    later("cuMemPrefetchAsync", |machine, fault| {
        let to = residence(machine, device)?;
        prefetch(machine, fault, (address, len), to, stream)
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuMemPrefetchAsync_v2(
    address: u64,
    len: usize,
    to: Location,
    flags: c_uint,
    stream: *mut c_void,
) -> c_int {
    later("cuMemPrefetchAsync_v2", |machine, fault| {
        if flags != 0 {
            return Err(INVALID_VALUE);
        }
        let to = location(machine, to)?;
        prefetch(machine, fault, (address, len), to, stream)
    })
}

/// Takes the advice that a program may give; nothing here becomes faster by it.
fn advise(machine: &Machine, (address, len): (u64, usize), advice: c_int) -> Answer<()> {
    machine.memory.managed(address, len as u64)?;
    match advice {
        // Read mostly, preferred location, accessed by: each set and unset.
        1..=6 if machine.config.managed => Ok(()),
        1..=6 => Err(NOT_SUPPORTED),
        _ => Err(INVALID_VALUE),
    }
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuMemAdvise(
    address: u64,
    len: usize,
    advice: c_int,
    device: c_int,
) -> c_int {
    call("cuMemAdvise", |machine| {
        residence(machine, device)?;
        advise(machine, (address, len), advice)
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuMemAdvise_v2(
    address: u64,
    len: usize,
    advice: c_int,
    at: Location,
) -> c_int {
    call("cuMemAdvise_v2", |machine| {
        location(machine, at)?;
        advise(machine, (address, len), advice)
    })
}
