//! Primary contexts, those that programs create, and each thread's current one.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::atomic::Ordering;

use crate::call::{call, put};
use crate::code::{Answer, INVALID_CONTEXT, INVALID_VALUE};
use crate::machine::Machine;

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuDevicePrimaryCtxRetain(
    context: *mut *mut c_void,
    device: c_int,
) -> c_int {
    call("cuDevicePrimaryCtxRetain", |machine| {
        let device = machine.device(device)?;
        // SAFETY: the caller's pointer, by the manual.
        unsafe { put(context, device.context())? };
        device.retain();
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuDevicePrimaryCtxRelease_v2(device: c_int) -> c_int {
    call("cuDevicePrimaryCtxRelease_v2", |machine| machine.device(device)?.release())
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuCtxSetCurrent(context: *mut c_void) -> c_int {
    call("cuCtxSetCurrent", |machine| machine.set_current(context))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuCtxPushCurrent_v2(context: *mut c_void) -> c_int {
    call("cuCtxPushCurrent_v2", |machine| machine.push(context))
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuCtxPopCurrent_v2(context: *mut *mut c_void) -> c_int {
    call("cuCtxPopCurrent_v2", |machine| {
        let popped = machine.pop()?;
        if context.is_null() {
            return Ok(());
        }
        // SAFETY: the caller's pointer, by the manual.
        unsafe { put(context, popped) }
    })
}

/// Null where none is current, as the driver has it.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuCtxGetCurrent(context: *mut *mut c_void) -> c_int {
    call("cuCtxGetCurrent", |machine| {
        // SAFETY: the caller's pointer, by the manual.
        unsafe { put(context, machine.here().unwrap_or(std::ptr::null_mut())) }
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuCtxGetDevice(device: *mut c_int) -> c_int {
    call("cuCtxGetDevice", |machine| {
        let index = machine.bound()?.index.cast_signed();
        // SAFETY: the caller's pointer, by the manual.
        unsafe { put(device, index) }
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuCtxGetId(context: *mut c_void, id: *mut u64) -> c_int {
    call("cuCtxGetId", |machine| {
        let context =
            if context.is_null() { machine.here().ok_or(INVALID_CONTEXT)? } else { context };
        // SAFETY: the caller's pointer, by the manual.
        unsafe { put(id, machine.id(context)?) }
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuDevicePrimaryCtxGetState(
    device: c_int,
    flags: *mut c_uint,
    active: *mut c_int,
) -> c_int {
    call("cuDevicePrimaryCtxGetState", |machine| {
        let device = machine.device(device)?;
        // SAFETY: the caller's pointer, by the manual.
        unsafe { put(flags, 0)? };
        // SAFETY: the caller's pointer, by the manual.
        unsafe { put(active, c_int::from(device.is_active())) }
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuCtxGetFlags(flags: *mut c_uint) -> c_int {
    call("cuCtxGetFlags", |machine| {
        let held = machine.bound()?.flags.load(Ordering::Acquire);
        // SAFETY: the caller's pointer, by the manual.
        unsafe { put(flags, held) }
    })
}

/// Sets the flags of the primary context of the current one's device: others have no flags here.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuCtxSetFlags(flags: c_uint) -> c_int {
    call("cuCtxSetFlags", |machine| {
        machine.bound()?.flags.store(flags, Ordering::Release);
        Ok(())
    })
}

/// Kernels here have the stack of the thread that runs them.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuCtxSetLimit(_limit: c_int, _value: usize) -> c_int {
    call("cuCtxSetLimit", |machine| machine.bound().map(|_| ()))
}

/// Takes memory and streams of the primary context away; those who retained it still may use it.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuDevicePrimaryCtxReset_v2(device: c_int) -> c_int {
    call("cuDevicePrimaryCtxReset_v2", |machine| {
        machine.reset(machine.device(device)?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuCtxCreate_v2(
    context: *mut *mut c_void,
    _flags: c_uint,
    device: c_int,
) -> c_int {
    // SAFETY: the caller's promise is the same.
    call("cuCtxCreate_v2", |machine| unsafe { create(machine, context, device) })
}

/// The form of CUDA 12.5, whose parameters are for other kinds of contexts than these.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuCtxCreate_v4(
    context: *mut *mut c_void,
    _params: *mut c_void,
    _flags: c_uint,
    device: c_int,
) -> c_int {
    // SAFETY: the caller's promise is the same.
    call("cuCtxCreate_v4", |machine| unsafe { create(machine, context, device) })
}

/// Makes a context and stores its handle.
///
/// # Safety
/// `context` must be null or valid for the write of a pointer.
unsafe fn create(machine: &Machine, context: *mut *mut c_void, device: c_int) -> Answer<()> {
    let device = machine.device(device)?;
    device.usable()?;
    if context.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: the caller's promise.
    unsafe { put(context, machine.create(device)) }
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuCtxDestroy_v2(context: *mut c_void) -> c_int {
    call("cuCtxDestroy_v2", |machine| machine.destroy(context))
}

/// Reports the failure by which the device was lost, if it was. A temporary failure is reported to
/// the next caller that waits for its stream.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuCtxSynchronize() -> c_int {
    call("cuCtxSynchronize", |machine| {
        let device = machine.bound()?;
        machine.streams_here().iter().for_each(|stream| stream.wait());
        device.usable()
    })
}
