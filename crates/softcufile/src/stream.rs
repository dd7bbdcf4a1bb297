//! I/O in the order of a stream: a function that the stream calls when it comes to it.

use std::ffi::{c_uint, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::api::{Answer, answer};
use crate::cuda::Context;
use crate::machine::{self, Failure, Transfer, Way, code};

/// Stream flags are bits 0 to 3.
const FLAGS: c_uint = 0xf;

/// An I/O that a stream will come to.
struct Later {
    way: Way,
    handle: usize,
    base: u64,
    len: *const usize,
    file_offset: *const i64,
    base_offset: *const i64,
    done: *mut isize,
    context: Context,
}

impl Later {
    /// Reads the parameters, as they are now, and does the I/O.
    fn run(&self) -> isize {
        // SAFETY: valid until the stream has passed this, by the guide.
        let len = unsafe { self.len.read() };
        // SAFETY: as above.
        let file_offset = unsafe { self.file_offset.read() };
        // SAFETY: as above.
        let buffer_offset = unsafe { self.base_offset.read() };
        let (way, handle, base) = (self.way, self.handle, self.base);
        let asked = Transfer { way, handle, base, len, file_offset, buffer_offset };
        let moved = machine::get().and_then(|machine| {
            machine.enter(self.context)?;
            machine.transfer(asked)
        });
        match moved {
            // No slice is longer than isize::MAX.
            Ok(count) => count.cast_signed(),
            Err(Failure::Code(code, _)) => -(code as isize),
            Err(Failure::Errno(errno)) => -(errno as isize),
            Err(Failure::Lost) => -(code::INTERNAL_ERROR as isize),
        }
    }
}

/// What the stream calls.
unsafe extern "C" fn now(data: *mut c_void) {
    // SAFETY: from `put`, which gave it to the stream; a stream calls once.
    let later = unsafe { Box::from_raw(data.cast::<Later>()) };
    let moved = catch_unwind(AssertUnwindSafe(|| later.run()));
    // SAFETY: valid until the stream has passed this, by the guide.
    unsafe { later.done.write(moved.unwrap_or(-(code::INTERNAL_ERROR as isize))) };
}

/// Puts the I/O into the stream.
///
/// # Safety
/// As the guide asks of `cuFileReadAsync`.
unsafe fn put(call: &str, mut later: Later, stream: *mut c_void) -> Answer {
    answer(call, |machine| {
        let pointers = [later.len.is_null(), later.file_offset.is_null(), later.done.is_null()];
        if pointers.contains(&true) || later.base_offset.is_null() {
            return Err(code::INVALID_VALUE.into());
        }
        later.context = machine.context()?;
        let data = Box::into_raw(Box::new(later)).cast();
        // SAFETY: `now` takes what `data` is, once.
        let told = unsafe { machine.later(stream, now, data) };
        if told.is_err() {
            // SAFETY: the stream did not take it.
            drop(unsafe { Box::from_raw(data.cast::<Later>()) });
        }
        told
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
    let (way, handle, context) = (Way::Read, handle.addr(), Context::none());
    let later = Later { way, handle, base, len, file_offset, base_offset, done, context };
    // SAFETY: the caller's promise by the guide.
    unsafe { put("cuFileReadAsync", later, stream) }
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
    let (way, handle, context) = (Way::Write, handle.addr(), Context::none());
    let later = Later { way, handle, base, len, file_offset, base_offset, done, context };
    // SAFETY: the caller's promise by the guide.
    unsafe { put("cuFileWriteAsync", later, stream) }
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
