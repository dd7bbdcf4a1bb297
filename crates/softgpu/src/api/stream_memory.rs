//! Words of memory that streams wait for and write, host functions, and what a stream is.
//!
//! Words are also taken in managed memory of the host, which hardware refuses.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;

use crate::backing::MemoryRange;
use crate::call::{call, later, put};
use crate::capture;
use crate::code::{Answer, Code, INVALID_VALUE, NOT_SUPPORTED, STREAM_CAPTURE_INVALIDATED};
use crate::machine::Machine;
use crate::stream::{Capture, Compare, HostCall, Stream, Work};

/// `CU_STREAM_WAIT_VALUE_FLUSH`: without effect here, where nothing is left to flush.
const FLUSH: c_uint = 1 << 30;

/// Other than the driver, this one lets the function make calls of the driver's, with a context
/// that it makes current itself: softcufile does its copies there.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuLaunchHostFunc(
    stream: *mut c_void,
    function: Option<unsafe extern "C" fn(*mut c_void)>,
    data: *mut c_void,
) -> c_int {
    call("cuLaunchHostFunc", |machine| {
        machine.current()?;
        let stream = machine.stream(stream)?;
        let function = function.ok_or(INVALID_VALUE)?;
        stream.put(Work::Call(HostCall { function, data }))
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuStreamGetCtx(
    stream: *mut c_void,
    context: *mut *mut c_void,
) -> c_int {
    call("cuStreamGetCtx", |machine| {
        // A stream that was made is known from every context, and from none.
        let found = match machine.streams.get(stream) {
            Ok(stream) => stream,
            Err(_) => machine.stream(stream)?,
        };
        let handle = std::ptr::without_provenance_mut(found.context());
        // SAFETY: the caller's pointer, by the manual.
        unsafe { put(context, handle) }
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuStreamIsCapturing(
    stream: *mut c_void,
    status: *mut c_int,
) -> c_int {
    call("cuStreamIsCapturing", |machine| {
        let captured = machine.stream(stream)?.captured();
        // SAFETY: the caller's pointer, by the manual.
        unsafe { put(status, c_int::from(captured)) }
    })
}

/// Nothing can be captured here, but a stream can be in that state: work is then refused.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuStreamBeginCapture_v2(stream: *mut c_void, mode: c_int) -> c_int {
    call("cuStreamBeginCapture_v2", |machine| {
        let stream = machine.stream(stream)?;
        if stream.captured() != Capture::None as u8 {
            return Err(INVALID_VALUE);
        }
        machine.captures.count(mode, true);
        stream.capture(Capture::Active, mode);
        Ok(())
    })
}

/// The graph of nothing: null.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuStreamEndCapture(
    stream: *mut c_void,
    graph: *mut *mut c_void,
) -> c_int {
    call("cuStreamEndCapture", |machine| {
        let stream = machine.stream(stream)?;
        let state = stream.captured();
        if state == Capture::None as u8 {
            return Err(INVALID_VALUE);
        }
        machine.captures.count(stream.capture_mode(), false);
        stream.capture(Capture::None, 0);
        // SAFETY: the caller's pointer, by the manual.
        unsafe { put(graph, std::ptr::null_mut())? };
        if state == Capture::Spoiled as u8 { Err(STREAM_CAPTURE_INVALIDATED) } else { Ok(()) }
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuThreadExchangeStreamCaptureMode(mode: *mut c_int) -> c_int {
    call("cuThreadExchangeStreamCaptureMode", |_machine| {
        // SAFETY: the caller's pointer, by the manual.
        let wanted = unsafe { mode.as_ref() }.copied().ok_or(INVALID_VALUE)?;
        let before = capture::exchange(wanted)?;
        // SAFETY: as above.
        unsafe { put(mode, before) }
    })
}

fn word(machine: &Machine, address: u64) -> Answer<MemoryRange> {
    if !address.is_multiple_of(4) {
        return Err(INVALID_VALUE);
    }
    machine.memory.on_device(address, 4)
}

/// The stream, if the machine has work on words in streams.
fn stream_with_words(machine: &'static Machine, stream: *mut c_void) -> Answer<Arc<Stream>> {
    machine.current()?;
    let stream = machine.stream(stream)?;
    if machine.config.stream_words { Ok(stream) } else { Err(NOT_SUPPORTED) }
}

fn wait(
    machine: &'static Machine,
    fault: Option<Code>,
    stream: *mut c_void,
    (address, value): (u64, u32),
    flags: c_uint,
) -> Answer<()> {
    let stream = stream_with_words(machine, stream)?;
    let compare = match flags & !FLUSH {
        0 => Compare::AtLeast(value),
        1 => Compare::Equal(value),
        2 => Compare::And(value),
        3 => Compare::Nor(value),
        _ => return Err(INVALID_VALUE),
    };
    let work = Work::Wait { at: word(machine, address)?, compare };
    stream.put(fault.map_or(work, Work::Fail))
}

fn write(
    machine: &'static Machine,
    fault: Option<Code>,
    stream: *mut c_void,
    (address, value): (u64, u32),
    flags: c_uint,
) -> Answer<()> {
    let stream = stream_with_words(machine, stream)?;
    // 1 leaves the barrier before the write out, which this one never does.
    if flags > 1 {
        return Err(INVALID_VALUE);
    }
    let work = Work::Write { to: word(machine, address)?, value };
    stream.put(fault.map_or(work, Work::Fail))
}

/// Exports calls that put work on a word into a stream. Both forms of each are the same here: the
/// driver's differ only in which attribute of a device shows that it has them.
macro_rules! word_calls {
    ($($name:ident: $put:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub(crate) extern "C" fn $name(
            stream: *mut c_void,
            address: u64,
            value: u32,
            flags: c_uint,
        ) -> c_int {
            later(stringify!($name), |machine, fault| {
                $put(machine, fault, stream, (address, value), flags)
            })
        }
    )*};
}

word_calls! {
    cuStreamWaitValue32: wait;
    cuStreamWaitValue32_v2: wait;
    cuStreamWriteValue32: write;
    cuStreamWriteValue32_v2: write;
}
