//! Functions that programs other than gpuio call: synchronous copies, bytes that are set, memory of
//! the pool.

use std::ffi::{c_int, c_uchar, c_void};
use std::sync::Arc;

use super::memory::{Lookup, copy};
use crate::backing::{MemoryRange, Pages};
use crate::call::{call, later, put};
use crate::code::{Answer, Code, INVALID_VALUE};
use crate::machine::Machine;
use crate::memory::Kind;
use crate::stream::{Stream, Work};

/// The handle of the default stream.
const DEFAULT: *mut c_void = std::ptr::null_mut();

/// A copy in the default stream, waited for unless the driver's documentation lets the call return
/// before: then the bytes of pageable memory are in a staging buffer.
fn copy_now(
    call: &'static str,
    (dst, to): (u64, Lookup),
    (src, from): (u64, Lookup),
    len: usize,
) -> c_int {
    later(call, |machine, fault| {
        let waits = len == 0
            || machine.synchronizes_memops()?
            || machine.memory.synchronizes(dst, Some(src));
        if waits {
            copy(machine, (call, fault), DEFAULT, (dst, to), (src, from), len)?;
            return machine.stream(DEFAULT)?.sync();
        }
        machine.current()?;
        let stream = machine.stream(DEFAULT)?;
        let to = to(&machine.memory, dst, len as u64)?;
        let mut from = from(&machine.memory, src, len as u64)?;
        if machine.memory.about(src).is_none() {
            // Work put there before goes first, then the bytes are taken.
            stream.sync()?;
            let staged = Arc::new(Pages::of_host(len)?);
            // SAFETY: the caller's memory, by the manual, and pages that were just mapped.
            unsafe { staged.start().copy_from_nonoverlapping(from.now(len)?, len) };
            from = MemoryRange::new(staged.start(), Some(staged));
        }
        let spoil = machine.config.spoils(call);
        let work = Work::Copy { to, from, len, spoil };
        leave(machine, &stream, fault.map_or(work, Work::Fail), [Some(dst), Some(src)])
    })
}

/// Puts the work of a call that returns now into the stream. It counts as an operation on the
/// allocations at these addresses until it has ended.
fn leave(
    machine: &Machine,
    stream: &Stream,
    work: Work,
    addresses: [Option<u64>; 2],
) -> Answer<()> {
    let memops = addresses.map(|at| machine.memory.memops(at?).map(|ops| ops.begin()));
    stream.put(Work::Late(Box::new(work), memops))
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuMemcpyHtoD_v2(dst: u64, src: *const c_void, len: usize) -> c_int {
    let src = src.expose_provenance() as u64;
    let (to, from): (Lookup, Lookup) = (|m, a, n| m.on_device(a, n), |m, a, n| m.on_host(a, n));
    copy_now("cuMemcpyHtoD_v2", (dst, to), (src, from), len)
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuMemcpyDtoH_v2(dst: *mut c_void, src: u64, len: usize) -> c_int {
    let dst = dst.expose_provenance() as u64;
    let (to, from): (Lookup, Lookup) = (|m, a, n| m.on_host(a, n), |m, a, n| m.on_device(a, n));
    copy_now("cuMemcpyDtoH_v2", (dst, to), (src, from), len)
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuMemcpyDtoD_v2(dst: u64, src: u64, len: usize) -> c_int {
    let device: Lookup = |m, a, n| m.on_device(a, n);
    copy_now("cuMemcpyDtoD_v2", (dst, device), (src, device), len)
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuMemcpy(dst: u64, src: u64, len: usize) -> c_int {
    let either: Lookup = |m, a, n| m.anywhere(a, n);
    copy_now("cuMemcpy", (dst, either), (src, either), len)
}

/// Puts the setting of `len` bytes into a stream; `returns` as a call that returns before.
fn set(
    machine: &'static Machine,
    fault: Option<Code>,
    (to, value): (u64, u8),
    len: usize,
    (stream, returns): (*mut c_void, bool),
) -> Answer<()> {
    machine.current()?;
    let stream = machine.stream(stream)?;
    if len == 0 {
        return Ok(());
    }
    let range = machine.memory.on_device(to, len as u64)?;
    let work = fault.map_or(Work::Set { to: range, len, value }, Work::Fail);
    if returns { leave(machine, &stream, work, [Some(to), None]) } else { stream.put(work) }
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuMemsetD8_v2(to: u64, value: c_uchar, len: usize) -> c_int {
    later("cuMemsetD8_v2", |machine, fault| {
        let waits = machine.synchronizes_memops()? || machine.memory.synchronizes(to, None);
        set(machine, fault, (to, value), len, (DEFAULT, !waits))?;
        if waits { machine.stream(DEFAULT)?.sync() } else { Ok(()) }
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuMemsetD8Async(
    to: u64,
    value: c_uchar,
    len: usize,
    stream: *mut c_void,
) -> c_int {
    later("cuMemsetD8Async", |machine, fault| {
        set(machine, fault, (to, value), len, (stream, false))
    })
}

/// Memory of the device's pool, which belongs to no context. It is there when the call returns,
/// earlier than the driver promises.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuMemAllocAsync(
    address: *mut u64,
    len: usize,
    stream: *mut c_void,
) -> c_int {
    call("cuMemAllocAsync", |machine| {
        let device = machine.current()?;
        machine.stream(stream)?;
        if address.is_null() {
            return Err(INVALID_VALUE);
        }
        let start = machine.memory.alloc(device, 0, len)?;
        // SAFETY: the caller's pointer, by the manual.
        unsafe { put(address, start) }
    })
}

/// Freed when the stream comes to it. Memory of `cuMemAlloc` is taken too, as the driver has it.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuMemFreeAsync(address: u64, stream: *mut c_void) -> c_int {
    later("cuMemFreeAsync", |machine, fault| {
        machine.current()?;
        let stream = machine.stream(stream)?;
        let about = machine.memory.about(address).ok_or(INVALID_VALUE)?;
        if about.start != address || !matches!(about.kind, Kind::Pool | Kind::Device) {
            return Err(INVALID_VALUE);
        }
        stream.put(fault.map_or(Work::Free(address, about.kind), Work::Fail))
    })
}
