//! I/O in the order of a CUDA stream.

use std::ffi::c_uint;

use super::export;
use crate::abi::{CufileError, Handle, RawStream};
use crate::call::as_error;
use crate::library;
use crate::stats::Direction;
use crate::streams::Pointers;

export! {
    /// Notes what a stream's parameters promise: 0 to 15; further bits are 5022, and so is a stream
    /// that is registered already (but for the default stream). I/O needs no registration. Bits: 1
    /// the buffer's offset, 2 the file's, 4 the size is read when the call is made; 8 promises
    /// whole pages, which changes nothing.
    fn cuFileStreamRegister(stream: RawStream, flags: c_uint) -> CufileError {
        as_error(|| library::get().register_stream(stream, flags))
    }
}

export! {
    /// Forgets a stream; 5022 for one that is not registered (but for the default stream). I/O that
    /// was put into it goes on as it was put there.
    fn cuFileStreamDeregister(stream: RawStream) -> CufileError {
        as_error(|| library::get().deregister_stream(stream))
    }
}

export! {
    /// Puts a read into a stream, which may be a default one (null, legacy, the thread's own): it
    /// happens behind all that was put there before, and later work of the stream finds the bytes.
    ///
    /// `*len`, `*file_offset` and `*buffer_offset` are read when the stream comes there, or now
    /// where the stream was registered so; `*len` now is the most that it may be then. `*done` is
    /// stored before later work of the stream begins: bytes as `cuFileRead` answers them, -1 where
    /// the file system refused (errno says nothing), the negative of a code otherwise: 5022 for a
    /// size above the bound and negative offsets, 5014 for a range outside the memory of the base.
    /// All five places, memory and stream must live until the stream has passed; the handle need
    /// not.
    ///
    /// The answer is of the putting: 5022 for null, 5027 for no handle, 5019 for a file that can't
    /// be read, 5017 where a fixed range leaves the registered buffer, 5015 for memory of another
    /// context of the same GPU than the stream's primary one, 5038 for a stream that is being
    /// captured into a graph. Files that NVIDIA's library moves otherwise are moved by us here.
    /// Does not wait for the stream, unless the CUDA driver does because the stream is full.
    fn cuFileReadAsync(
        handle: Handle,
        base: u64,
        len: *mut usize,
        file_offset: *mut i64,
        buffer_offset: *mut i64,
        done: *mut isize,
        stream: RawStream
    ) -> CufileError {
        let pointers = Pointers { len, file_offset, buffer_offset, done };
        // SAFETY: the caller's promise by the interface.
        as_error(|| unsafe { library::get().enqueue(handle, (Direction::Read, base), pointers, stream) })
    }
}

export! {
    /// As `cuFileReadAsync`, from memory to the file. Other than a read it needs nothing of the
    /// file's mode when it is put there: a file that can't be written is -1 in `*done`.
    fn cuFileWriteAsync(
        handle: Handle,
        base: u64,
        len: *mut usize,
        file_offset: *mut i64,
        buffer_offset: *mut i64,
        done: *mut isize,
        stream: RawStream
    ) -> CufileError {
        let pointers = Pointers { len, file_offset, buffer_offset, done };
        // SAFETY: the caller's promise by the interface.
        as_error(|| unsafe { library::get().enqueue(handle, (Direction::Write, base), pointers, stream) })
    }
}
