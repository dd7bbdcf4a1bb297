//! Primary contexts and each thread's current one.

use std::ffi::{c_int, c_void};

use crate::call::{call, put};

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

/// Tells of the failure by which the device was lost, if it was. A failure that passes belongs to
/// whoever waits for its stream.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuCtxSynchronize() -> c_int {
    call("cuCtxSynchronize", |machine| {
        let device = machine.bound()?;
        let streams = machine.streams.all();
        streams.iter().filter(|stream| stream.device() == device.index).for_each(|s| s.wait());
        device.usable()
    })
}
