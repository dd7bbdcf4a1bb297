//! I/O in the order of a stream: a function that the stream calls when it reaches it.

use std::ffi::{c_uint, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::api::{Answer, answer};
use crate::cuda::Context;
use crate::error::{CallError, code};
use crate::machine::{self, Direction, Transfer};

/// Stream flags are bits 0 to 3.
const FLAGS: c_uint = 0xf;

/// An I/O in a stream.
struct StreamOp {
    direction: Direction,
    handle: usize,
    base: u64,
    len: *const usize,
    file_offset: *const i64,
    base_offset: *const i64,
    done: *mut isize,
    context: Context,
}

impl StreamOp {
    /// Reads the parameters as they are now, and does the I/O.
    fn run(&self) -> isize {
        // SAFETY: valid until the stream has passed this, by the guide.
        let len = unsafe { self.len.read() };
        // SAFETY: as above.
        let file_offset = unsafe { self.file_offset.read() };
        // SAFETY: as above.
        let buffer_offset = unsafe { self.base_offset.read() };
        let (direction, handle, base) = (self.direction, self.handle, self.base);
        let request = Transfer { direction, handle, base, len, file_offset, buffer_offset };
        let moved = machine::get().and_then(|machine| {
            machine.enter(self.context)?;
            machine.transfer(request)
        });
        match moved {
            // No slice is longer than isize::MAX.
            Ok(count) => count.cast_signed(),
            Err(CallError::Code(code, _)) => -(code as isize),
            Err(CallError::Errno(errno)) => -(errno as isize),
            Err(CallError::Lost) => -(code::INTERNAL_ERROR as isize),
        }
    }
}

/// The function that the stream calls.
unsafe extern "C" fn now(data: *mut c_void) {
    // SAFETY: from `enqueue`, which passed it to the stream; a stream calls once.
    let stream_op = unsafe { Box::from_raw(data.cast::<StreamOp>()) };
    let moved = catch_unwind(AssertUnwindSafe(|| stream_op.run()));
    // SAFETY: valid until the stream has passed this, by the guide.
    unsafe { stream_op.done.write(moved.unwrap_or(-(code::INTERNAL_ERROR as isize))) };
}

/// Enqueues the I/O into the stream.
///
/// # Safety
/// As the guide requires of `cuFileReadAsync`.
unsafe fn enqueue(call: &str, mut stream_op: StreamOp, stream: *mut c_void) -> Answer {
    answer(call, |machine| {
        let pointers =
            [stream_op.len.is_null(), stream_op.file_offset.is_null(), stream_op.done.is_null()];
        if pointers.contains(&true) || stream_op.base_offset.is_null() {
            return Err(code::INVALID_VALUE.into());
        }
        stream_op.context = machine.context()?;
        let data = Box::into_raw(Box::new(stream_op)).cast();
        // SAFETY: `now` takes ownership of `data`, once.
        let enqueued = unsafe { machine.call_in_stream(stream, now, data) };
        if enqueued.is_err() {
            // SAFETY: the stream did not accept it.
            drop(unsafe { Box::from_raw(data.cast::<StreamOp>()) });
        }
        enqueued
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuFileReadAsync(
    handle: *mut c_void,
    base: u64,
    len: *const usize,
    file_offset: *const i64,
    base_offset: *const i64,
    done: *mut isize,
    stream: *mut c_void,
) -> Answer {
    let (direction, handle, context) = (Direction::Read, handle.addr(), Context::none());
    let stream_op =
        StreamOp { direction, handle, base, len, file_offset, base_offset, done, context };
    // SAFETY: the caller's promise by the guide.
    unsafe { enqueue("cuFileReadAsync", stream_op, stream) }
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuFileWriteAsync(
    handle: *mut c_void,
    base: u64,
    len: *const usize,
    file_offset: *const i64,
    base_offset: *const i64,
    done: *mut isize,
    stream: *mut c_void,
) -> Answer {
    let (direction, handle, context) = (Direction::Write, handle.addr(), Context::none());
    let stream_op =
        StreamOp { direction, handle, base, len, file_offset, base_offset, done, context };
    // SAFETY: the caller's promise by the guide.
    unsafe { enqueue("cuFileWriteAsync", stream_op, stream) }
}

/// Registration is a hint: nothing is prepared here.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuFileStreamRegister(_stream: *mut c_void, flags: c_uint) -> Answer {
    answer("cuFileStreamRegister", |_| {
        if flags & !FLAGS == 0 { Ok(()) } else { Err(code::INVALID_VALUE.into()) }
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuFileStreamDeregister(_stream: *mut c_void) -> Answer {
    answer("cuFileStreamDeregister", |_| Ok(()))
}
