//! I/O in the order of a CUDA stream.

use std::ffi::c_uint;

use gpuio_transfer::Op;

use super::export;
use crate::abi::{CufileError, Handle, StreamHandle};
use crate::call::as_error;
use crate::library;
use crate::streams::Pointers;

export! {
    /// Records which of a stream's parameters are fixed at the call: 0 to 15; further bits are
    /// 5022, and so is a stream that is registered already (except the default stream). I/O needs
    /// no registration. Bits: 1 the buffer's offset, 2 the file's, 4 the size is read at the call;
    /// 8 promises whole pages, which changes nothing.
    fn cuFileStreamRegister(stream: StreamHandle, flags: c_uint) -> CufileError {
        as_error(|| library::get().register_stream(stream, flags))
    }
}

export! {
    /// Deregisters a stream; 5022 for one that is not registered (except the default stream).
    /// Enqueued I/O continues as it was enqueued.
    fn cuFileStreamDeregister(stream: StreamHandle) -> CufileError {
        as_error(|| library::get().deregister_stream(stream))
    }
}

export! {
    /// Enqueues a read into a stream, which may be a default one (null, legacy, the thread's own):
    /// it runs after all earlier work of the stream, and later work sees the bytes.
    ///
    /// `*len`, `*file_offset` and `*buffer_offset` are read when the stream reaches the read, or at
    /// the call if the stream was registered so; `*len` at the call is the most that it may be
    /// later. `*done` is stored before later work of the stream begins: bytes as `cuFileRead`
    /// returns them, -1 if the file system failed (errno is not set), otherwise the negative of a
    /// code: 5022 for a size above the bound and negative offsets, 5014 for a range outside the
    /// memory of the base. All addresses, memory and stream must live until the stream has passed;
    /// the handle need not.
    ///
    /// The return value covers the enqueueing only: 5022 for null, 5027 for an invalid handle, 5019
    /// for a file that is not open for reading, 5017 if a fixed range leaves the registered buffer,
    /// 5015 for memory of another context of the same GPU than the stream's primary one, 5038 for a
    /// stream that is being captured into a graph. Here `transfer` moves even the files that
    /// NVIDIA's library otherwise moves. Does not wait for the stream, unless the CUDA driver does
    /// because the stream is full.
    fn cuFileReadAsync(
        handle: Handle,
        base: u64,
        len: *mut usize,
        file_offset: *mut i64,
        buffer_offset: *mut i64,
        done: *mut isize,
        stream: StreamHandle
    ) -> CufileError {
        let pointers = Pointers { len, file_offset, buffer_offset, done };
        let side = (Op::Read, base);
        // SAFETY: the caller's promise by the interface.
        as_error(|| unsafe { library::get().enqueue(handle, side, pointers, stream) })
    }
}

export! {
    /// Like `cuFileReadAsync`, from memory to the file. Unlike a read it does not check the file's
    /// mode when it is enqueued: a file that is not open for writing is -1 in `*done`.
    fn cuFileWriteAsync(
        handle: Handle,
        base: u64,
        len: *mut usize,
        file_offset: *mut i64,
        buffer_offset: *mut i64,
        done: *mut isize,
        stream: StreamHandle
    ) -> CufileError {
        let pointers = Pointers { len, file_offset, buffer_offset, done };
        let side = (Op::Write, base);
        // SAFETY: the caller's promise by the interface.
        as_error(|| unsafe { library::get().enqueue(handle, side, pointers, stream) })
    }
}
