//! I/O in the order of a CUDA stream.

use std::ffi::c_uint;

use super::export;
use crate::abi::{Answer, Handle, RawStream};
use crate::answer::answer;
use crate::code::{ASYNC_NOT_SUPPORTED, HANDLE_NOT_REGISTERED, INVALID_VALUE};
use crate::library;

/// Bits 0 to 3: buffer offset, file offset and size are fixed, inputs are aligned to pages.
const FLAGS: c_uint = 0xf;

export! {
    /// Notes what a stream's parameters promise: 0 to 15; further bits are 5022, and so is a stream
    /// that is registered already (but for the default stream). I/O needs no registration.
    fn cuFileStreamRegister(stream: RawStream, flags: c_uint) -> Answer {
        answer(|| {
            let library = library::get();
            library.ensure_open()?;
            if flags & !FLAGS != 0 {
                return Err(INVALID_VALUE.into());
            }
            let before = library.lock().streams.insert(stream.addr(), flags);
            let again = before.is_some() && !stream.is_null();
            if again { Err(INVALID_VALUE.into()) } else { Ok(()) }
        })
    }
}

export! {
    /// Forgets a stream; 5022 for one that is not registered (but for the default stream).
    fn cuFileStreamDeregister(stream: RawStream) -> Answer {
        answer(|| {
            let known = library::get().lock().streams.remove(&stream.addr()).is_some();
            if known || stream.is_null() { Ok(()) } else { Err(INVALID_VALUE.into()) }
        })
    }
}

/// What one I/O in a stream takes.
type Parameters = (*mut usize, *mut i64, *mut i64, *mut isize);

fn refuse(handle: Handle, base: u64, parameters: Parameters) -> Answer {
    answer(|| {
        let (len, file_offset, buffer_offset, done) = parameters;
        let null = len.is_null() || file_offset.is_null() || buffer_offset.is_null();
        if null || done.is_null() || base == 0 {
            return Err(INVALID_VALUE.into());
        }
        let library = library::get();
        library.ensure_open()?;
        if library.files.hold(handle).is_none() {
            return Err(HANDLE_NOT_REGISTERED.into());
        }
        Err(ASYNC_NOT_SUPPORTED.into())
    })
}

export! {
    /// 5038: I/O in the order of a stream can't be had yet. Null is 5022, no handle 5027.
    fn cuFileReadAsync(
        handle: Handle,
        base: u64,
        len: *mut usize,
        file_offset: *mut i64,
        buffer_offset: *mut i64,
        done: *mut isize,
        _stream: RawStream
    ) -> Answer {
        refuse(handle, base, (len, file_offset, buffer_offset, done))
    }
}

export! {
    /// As `cuFileReadAsync`.
    fn cuFileWriteAsync(
        handle: Handle,
        base: u64,
        len: *mut usize,
        file_offset: *mut i64,
        buffer_offset: *mut i64,
        done: *mut isize,
        _stream: RawStream
    ) -> Answer {
        refuse(handle, base, (len, file_offset, buffer_offset, done))
    }
}
