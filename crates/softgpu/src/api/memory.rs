//! Device memory, pinned memory and the copies between them.

use std::ffi::{c_int, c_uint, c_void};

use crate::backing::MemoryRange;
use crate::call::{call, free, later, put};
use crate::code::{Answer, Code, INVALID_VALUE, NOT_SUPPORTED};
use crate::fickle;
use crate::locked;
use crate::machine::Machine;
use crate::memory::Kind;
use crate::stream::Work;

/// `CU_MEMHOSTREGISTER_READ_ONLY`.
const REGISTER_READ_ONLY: c_uint = 8;

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> c_int {
    call("cuMemGetInfo_v2", |machine| {
        let budget = &machine.current()?.budget;
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        // SAFETY: the caller's pointer, by the manual.
        unsafe { put(free, size(budget.free()))? };
        // SAFETY: the caller's pointer, by the manual.
        unsafe { put(total, size(budget.total())) }
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuMemAlloc_v2(address: *mut u64, len: usize) -> c_int {
    call("cuMemAlloc_v2", |machine| {
        if address.is_null() {
            return Err(INVALID_VALUE);
        }
        let (device, context) = machine.current_with_context()?;
        let start = machine.memory.alloc(device, context, len)?;
        // SAFETY: the caller's pointer, by the manual.
        unsafe { put(address, start) }
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuMemFree_v2(address: u64) -> c_int {
    free("cuMemFree_v2", |machine| {
        let kinds = [Kind::Device, Kind::Managed, Kind::Pool];
        let freed = kinds.into_iter().any(|kind| machine.memory.free(address, kind).is_ok());
        if freed { Ok(()) } else { Err(INVALID_VALUE) }
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuMemHostAlloc(
    start: *mut *mut c_void,
    len: usize,
    _flags: c_uint,
) -> c_int {
    call("cuMemHostAlloc", |machine| {
        let (_, context) = machine.current_with_context()?;
        if start.is_null() {
            return Err(INVALID_VALUE);
        }
        let pinned = machine.memory.pin(context, len)?;
        // SAFETY: the caller's pointer, by the manual.
        unsafe { put(start, pinned.cast()) }
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuMemAllocHost_v2(start: *mut *mut c_void, len: usize) -> c_int {
    // SAFETY: the caller's promise is the same.
    unsafe { cuMemHostAlloc(start, len, 0) }
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuMemFreeHost(start: *mut c_void) -> c_int {
    free("cuMemFreeHost", |machine| machine.memory.free(start as u64, Kind::Pinned))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuMemHostRegister_v2(
    start: *mut c_void,
    len: usize,
    flags: c_uint,
) -> c_int {
    call("cuMemHostRegister_v2", |machine| {
        let (_, context) = machine.current_with_context()?;
        let read_only = flags & REGISTER_READ_ONLY != 0;
        if read_only && !machine.config.read_only_register {
            return Err(NOT_SUPPORTED);
        }
        let address = start.addr() as u64;
        let of_file = fickle::holds_pages_of_files(&(address..address.saturating_add(len as u64)));
        locked::reachable(start, len, read_only, of_file)?;
        if machine.config.keeps_pages {
            fickle::keep_pages();
        }
        let keeps = read_only && machine.config.keeps_pages;
        machine.memory.register(context, start.cast(), len, (keeps, of_file))
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuMemHostUnregister(start: *mut c_void) -> c_int {
    free("cuMemHostUnregister", |machine| machine.memory.unregister(start.cast()))
}

/// Memory that is page-locked has the same address on the device.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuMemHostGetDevicePointer_v2(
    seen: *mut u64,
    start: *mut c_void,
    flags: c_uint,
) -> c_int {
    call("cuMemHostGetDevicePointer_v2", |machine| {
        machine.current()?;
        let address = start as u64;
        let about = machine.memory.about(address).ok_or(INVALID_VALUE)?;
        if flags != 0 || !matches!(about.kind, Kind::Pinned | Kind::Registered) {
            return Err(INVALID_VALUE);
        }
        // SAFETY: the caller's pointer, by the manual.
        unsafe { put(seen, address) }
    })
}

/// Which lookup an end of a copy goes through.
pub(super) type Lookup = fn(&crate::memory::Memory, u64, u64) -> Answer<MemoryRange>;

/// Looks both ends up, now, and puts the copy into the stream, to be done later, unless it is one
/// that the driver waits for. `call` is the exported function's name.
pub(super) fn copy(
    machine: &'static Machine,
    (call, fault): (&str, Option<Code>),
    stream: *mut c_void,
    (dst, to): (u64, Lookup),
    (src, from): (u64, Lookup),
    len: usize,
) -> Answer<()> {
    machine.current()?;
    let stream = machine.stream(stream)?;
    if len == 0 {
        return Ok(());
    }
    let to = to(&machine.memory, dst, len as u64)?;
    let from = from(&machine.memory, src, len as u64)?;
    let spoil = machine.config.spoils(call);
    let work = Work::Copy { to, from, len, spoil };
    stream.put(fault.map_or(work, Work::Fail))?;
    if machine.memory.waits_for_copy(dst, src) {
        // A wait for the stream reports failures, as for every copy.
        stream.wait();
    }
    Ok(())
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuMemcpyHtoDAsync_v2(
    dst: u64,
    src: *const c_void,
    len: usize,
    stream: *mut c_void,
) -> c_int {
    let call = "cuMemcpyHtoDAsync_v2";
    later(call, |machine, fault| {
        let src = src.expose_provenance() as u64;
        let (to, from): (Lookup, Lookup) = (|m, a, n| m.on_device(a, n), |m, a, n| m.on_host(a, n));
        copy(machine, (call, fault), stream, (dst, to), (src, from), len)
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuMemcpyDtoHAsync_v2(
    dst: *mut c_void,
    src: u64,
    len: usize,
    stream: *mut c_void,
) -> c_int {
    let call = "cuMemcpyDtoHAsync_v2";
    later(call, |machine, fault| {
        let dst = dst.expose_provenance() as u64;
        let (to, from): (Lookup, Lookup) = (|m, a, n| m.on_host(a, n), |m, a, n| m.on_device(a, n));
        copy(machine, (call, fault), stream, (dst, to), (src, from), len)
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuMemcpyAsync(
    dst: u64,
    src: u64,
    len: usize,
    stream: *mut c_void,
) -> c_int {
    let call = "cuMemcpyAsync";
    later(call, |machine, fault| {
        let either: Lookup = |m, a, n| m.anywhere(a, n);
        copy(machine, (call, fault), stream, (dst, either), (src, either), len)
    })
}

/// One side of `CUDA_MEMCPY2D`, in the manual's layout.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Side {
    x_in_bytes: usize,
    y: usize,
    memory_type: c_uint,
    host: *mut c_void,
    device: u64,
    array: *mut c_void,
    pitch: usize,
}

/// `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Copy2D {
    src: Side,
    dst: Side,
    width: usize,
    height: usize,
}

/// `CU_MEMORYTYPE_UNIFIED`: the only type that this device takes.
const UNIFIED: c_uint = 4;

impl Side {
    /// The address of a row; `None` for what this device does not have.
    fn row(&self, row: usize, width: usize) -> Option<u64> {
        let known = self.memory_type == UNIFIED && self.array.is_null() && self.pitch >= width;
        let skip = (self.y + row).checked_mul(self.pitch)?.checked_add(self.x_in_bytes)?;
        known.then(|| self.device.checked_add(skip as u64)).flatten()
    }
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuMemcpy2DAsync_v2(
    copies: *const Copy2D,
    stream: *mut c_void,
) -> c_int {
    let call = "cuMemcpy2DAsync_v2";
    later(call, |machine, fault| {
        // SAFETY: null, or the caller's structure, by the manual.
        let Copy2D { src, dst, width, height } =
            *unsafe { copies.as_ref() }.ok_or(INVALID_VALUE)?;
        let either: Lookup = |m, a, n| m.anywhere(a, n);
        for row in 0..height {
            let to = dst.row(row, width).ok_or(INVALID_VALUE)?;
            let from = src.row(row, width).ok_or(INVALID_VALUE)?;
            copy(machine, (call, fault), stream, (to, either), (from, either), width)?;
        }
        Ok(())
    })
}
