//! Streams and events.

use std::ffi::{c_int, c_uint, c_void};

use crate::call::{call, put};
use crate::code::INVALID_VALUE;
use crate::event::Event;
use crate::stream::{Stream, Work};

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuStreamCreate(stream: *mut *mut c_void, _flags: c_uint) -> c_int {
    call("cuStreamCreate", |machine| {
        let (device, context) = machine.current_with_context()?;
        if stream.is_null() {
            return Err(INVALID_VALUE);
        }
        let made = machine.streams.add(Stream::new(machine, device.index, context)?);
        // SAFETY: the caller's pointer, by the manual.
        unsafe { put(stream, made) }
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuStreamCreateWithPriority(
    stream: *mut *mut c_void,
    flags: c_uint,
    _priority: c_int,
) -> c_int {
    // SAFETY: the caller's promise is the same.
    unsafe { cuStreamCreate(stream, flags) }
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuStreamDestroy_v2(stream: *mut c_void) -> c_int {
    call("cuStreamDestroy_v2", |machine| machine.streams.remove(stream).map(drop))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuStreamSynchronize(stream: *mut c_void) -> c_int {
    call("cuStreamSynchronize", |machine| {
        let device = machine.bound()?;
        let result = machine.stream(stream)?.sync();
        // Work of another stream may have lost the device during the wait.
        device.usable().and(result)
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuStreamQuery(stream: *mut c_void) -> c_int {
    call("cuStreamQuery", |machine| {
        machine.current()?;
        machine.stream(stream)?.query()
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuEventCreate(event: *mut *mut c_void, flags: c_uint) -> c_int {
    call("cuEventCreate", |machine| {
        machine.current()?;
        if event.is_null() {
            return Err(INVALID_VALUE);
        }
        const DISABLE_TIMING: c_uint = 2;
        let made = machine.events.add(Event::new(flags & DISABLE_TIMING == 0));
        // SAFETY: the caller's pointer, by the manual.
        unsafe { put(event, made) }
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuEventDestroy_v2(event: *mut c_void) -> c_int {
    call("cuEventDestroy_v2", |machine| machine.events.remove(event).map(drop))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuEventRecord(event: *mut c_void, stream: *mut c_void) -> c_int {
    call("cuEventRecord", |machine| {
        machine.current()?;
        let event = machine.events.get(event)?;
        let stream = machine.stream(stream)?;
        let number = event.record();
        stream.put(Work::Record(event, number))
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuStreamWaitEvent(
    stream: *mut c_void,
    event: *mut c_void,
    _flags: c_uint,
) -> c_int {
    call("cuStreamWaitEvent", |machine| {
        machine.current()?;
        let event = machine.events.get(event)?;
        let number = event.recorded();
        machine.stream(stream)?.put(Work::Await(event, number))
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuEventQuery(event: *mut c_void) -> c_int {
    call("cuEventQuery", |machine| {
        machine.current()?;
        machine.events.get(event)?.query()
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuEventSynchronize(event: *mut c_void) -> c_int {
    call("cuEventSynchronize", |machine| {
        let device = machine.bound()?;
        let result = machine.events.get(event)?.sync();
        device.usable().and(result)
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuEventElapsedTime(
    ms: *mut f32,
    start: *mut c_void,
    end: *mut c_void,
) -> c_int {
    call("cuEventElapsedTime", |machine| {
        machine.current()?;
        let (start, end) = (machine.events.get(start)?.time()?, machine.events.get(end)?.time()?);
        let before = start.saturating_duration_since(end).as_secs_f32();
        let after = end.saturating_duration_since(start).as_secs_f32();
        // SAFETY: the caller's pointer, by the manual.
        unsafe { put(ms, (after - before) * 1e3) }
    })
}
