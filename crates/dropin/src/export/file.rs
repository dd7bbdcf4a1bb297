//! Files: registering them, reading and writing.

use std::ffi::c_uint;

use gpuio_transfer::Op;

use super::export;
use crate::abi::{CufileError, Descriptor, Handle, IoVec, OPAQUE_FD};
use crate::call::{as_count, as_error, run_void};
use crate::code::{CallError, INVALID_VALUE, IO_NOT_SUPPORTED};
use crate::library;
use crate::request::UncheckedRequest;

export! {
    /// Registers a file by a descriptor of this process (kind 1): regular files and block devices
    /// on any file system, opened with or without `O_DIRECT`. The descriptor stays the caller's,
    /// who may close it at any time: the handle has a duplicate (`fcntl(2)`, `F_DUPFD_CLOEXEC`).
    /// The same file or descriptor may be registered again and gets another handle; the guide's
    /// 5028 is never returned. Other kinds of handle are 5008, other kinds of file 5018, a
    /// descriptor that is not open 5022, no free descriptor 5031. The structure's third field is
    /// not read.
    fn cuFileHandleRegister(
        handle: *mut Handle,
        descriptor: *mut Descriptor
    ) -> CufileError, seen by register {
        as_error(|| {
            if handle.is_null() || descriptor.is_null() {
                return Err(INVALID_VALUE.into());
            }
            // SAFETY: not null, and the caller's structure.
            let kind = unsafe { (*descriptor).kind };
            if kind != OPAQUE_FD {
                return Err(IO_NOT_SUPPORTED.into());
            }
            // SAFETY: as above.
            let number = unsafe { (*descriptor).fd };
            // SAFETY: any bits are a number.
            let fd = unsafe { number.fd };
            let made = library::get().register(fd)?;
            // SAFETY: not null, and valid for the write of one handle.
            unsafe { handle.write(made) };
            Ok(())
        })
    }
}

export! {
    /// Ends a handle after all blocking calls and batches that use it have completed; I/O in
    /// streams continues. Invalid handles are ignored.
    fn cuFileHandleDeregister(handle: Handle) -> (), seen by deregister {
        run_void(|| library::get().deregister(handle));
    }
}

/// # Safety
/// As the interface requires of callers of `cuFileRead`.
unsafe fn transfer(handle: Handle, request: UncheckedRequest) -> isize {
    // SAFETY: the caller's promise.
    as_count(|| unsafe { library::get().transfer(handle, request) })
}

export! {
    /// Reads `len` bytes at `file_offset` into the memory at `base + buffer_offset`, on a GPU or in
    /// the host. Returns how many: fewer only at the end of the file, 0 at its end or beyond. Any
    /// work that starts afterwards sees the bytes; the null stream is not waited for. Any alignment
    /// will do. -1 with errno if the file system failed; otherwise the negative of a code: 5027 for
    /// an invalid handle, 5022 for negative offsets and null, 5017 if the range leaves the
    /// registered buffer of this base, 5019 for a file that is not open for reading, 5011 if CUDA
    /// failed. The thread needs no CUDA context, and its context stays current.
    fn cuFileRead(
        handle: Handle,
        base: u64,
        len: usize,
        file_offset: i64,
        buffer_offset: i64
    ) -> isize, seen by read {
        let op = Op::Read;
        let request = UncheckedRequest { op, base, len, file_offset, buffer_offset };
        // SAFETY: the caller's promise by the interface.
        unsafe { transfer(handle, request) }
    }
}

export! {
    /// Like `cuFileRead`, from memory to the file: writes the memory's content at the time of the
    /// call. All bytes or an error. A file that is not open for writing is -1 with the kernel's
    /// errno (EBADF).
    fn cuFileWrite(
        handle: Handle,
        base: u64,
        len: usize,
        file_offset: i64,
        buffer_offset: i64
    ) -> isize, seen by write {
        let op = Op::Write;
        let request = UncheckedRequest { op, base, len, file_offset, buffer_offset };
        // SAFETY: the caller's promise by the interface.
        unsafe { transfer(handle, request) }
    }
}

/// Most ranges of memory of one call, as for readv(2).
const VECTORS: usize = 1024;

/// One range after another; stops at the end of the file.
///
/// # Safety
/// As for `cuFileRead`, of each range, and `vectors` is null or valid for `count` of them.
unsafe fn vectors(
    handle: Handle,
    op: Op,
    vectors: (*const IoVec, usize),
    file_offset: i64,
    flags: c_uint,
) -> isize {
    as_count(|| {
        let (vectors, count) = vectors;
        if vectors.is_null() || count == 0 || count > VECTORS || flags != 0 {
            return Err(INVALID_VALUE.into());
        }
        // SAFETY: not null, and `count` long by the caller's promise.
        let vectors = unsafe { std::slice::from_raw_parts(vectors, count) };
        let mut done: usize = 0;
        for IoVec { base, len } in vectors.iter().filter(|vector| vector.len > 0) {
            let further = i64::try_from(done).ok().and_then(|done| file_offset.checked_add(done));
            let file_offset = further.ok_or(CallError::from(INVALID_VALUE))?;
            let (base, len) = (*base, *len);
            let request = UncheckedRequest { op, base, len, file_offset, buffer_offset: 0 };
            // SAFETY: the caller's promise.
            let moved = unsafe { library::get().transfer(handle, request) }?;
            done += moved;
            if moved < len {
                break;
            }
        }
        Ok(done)
    })
}

export! {
    /// Like `cuFileRead` into several ranges of memory in turn, 1 to 1024; `flags` are 0. Release
    /// 1.20. Ranges that were filled before an error are not reported.
    fn cuFileReadv(
        handle: Handle,
        list: *const IoVec,
        count: usize,
        file_offset: i64,
        flags: c_uint
    ) -> isize, seen by readv {
        // SAFETY: the caller's promise by the interface.
        unsafe { vectors(handle, Op::Read, (list, count), file_offset, flags) }
    }
}

export! {
    /// Like `cuFileReadv`, from memory to the file.
    fn cuFileWritev(
        handle: Handle,
        list: *const IoVec,
        count: usize,
        file_offset: i64,
        flags: c_uint
    ) -> isize, seen by writev {
        // SAFETY: the caller's promise by the interface.
        unsafe { vectors(handle, Op::Write, (list, count), file_offset, flags) }
    }
}
