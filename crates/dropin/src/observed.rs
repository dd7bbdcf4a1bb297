//! Calls that NVIDIA's library serves (`GPUIO_CUFILE=nvidia`), seen from outside.
//!
//! Each call is passed on unchanged. When it has returned, it is counted on the live page (path
//! `nvidia`) and put into the trace, as gpuio's own are: by its arguments, its result, its time,
//! and the GPU that the CUDA driver names for the address. A file's handle is NVIDIA's; it is only
//! a key here. An entry of a batch is counted when its event was fetched, with the time until then.
//! I/O in streams is not counted: nothing says when it ends. Facts that the library alone has
//! (POSIX pieces, nvidia-fs, detours through another GPU, registrations) are from its own
//! statistics ([`crate::nvidia_stats`]). Nothing that fails here reaches the program.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint};
use std::os::fd::BorrowedFd;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use gpuio_base::trace::Within;
use gpuio_transfer::Op;
use gpuio_watch::page::monotonic_ns;

use crate::abi::{
    BatchEntry, BatchEvent, BatchHandle, CufileError, Descriptor, Handle, IoVec, OPAQUE_FD,
    OPCODE_READ, STATUS_CANCELED,
};
use crate::call::{errno, run_void};
use crate::code::CallError;
use crate::recorder::{self, Origin};
use crate::request::UncheckedRequest;
use crate::{fork, library, live_page, nvidia, nvidia_stats};

/// Entries of batches that are remembered; programs that never fetch events lose further ones.
const MOST_ENTRIES: usize = 1 << 16;

/// The fork generation of the process that looks on. A child of fork(2) does nothing here: a lock
/// may be held by a thread of its parent.
static GENERATION: OnceLock<u32> = OnceLock::new();

#[derive(Debug, Default)]
struct Known {
    /// Numbers of files in the trace, by handle.
    files: BTreeMap<usize, u32>,
    /// GPUs of registered buffers, by base.
    buffers: BTreeMap<u64, Option<u32>>,
    /// Entries in flight, by batch and cookie.
    entries: BTreeMap<(usize, u64), Vec<Entry>>,
    count: usize,
}

/// An entry of a batch that was submitted.
#[derive(Debug, Clone, Copy)]
struct Entry {
    request: UncheckedRequest,
    origin: Origin,
    began_ns: u64,
    gpu: Option<u32>,
}

static KNOWN: Mutex<Known> = Mutex::new(Known {
    files: BTreeMap::new(),
    buffers: BTreeMap::new(),
    entries: BTreeMap::new(),
    count: 0,
});

fn known() -> MutexGuard<'static, Known> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a call is to be counted. The first one that succeeds has opened NVIDIA's library, and
/// begins it.
fn looks_on(is_good: bool) -> bool {
    let begin = || {
        library::get().look_on();
        if let Some(nvidia) = nvidia::forward_all().flatten() {
            nvidia_stats::begin(nvidia, library::get().gpus());
        }
        fork::generation()
    };
    let generation = match is_good {
        true => Some(GENERATION.get_or_init(begin)),
        false => GENERATION.get(),
    };
    generation == Some(&fork::generation())
}

fn succeeded(result: CufileError) -> bool {
    result.code == 0 && looks_on(true)
}

/// `cuFileDriverOpen`.
pub(crate) fn open(call: impl FnOnce() -> CufileError) -> CufileError {
    let result = call();
    run_void(|| {
        succeeded(result);
    });
    result
}

/// `cuFileHandleRegister`.
pub(crate) fn register(
    call: impl FnOnce() -> CufileError,
    handle: *mut Handle,
    descriptor: *mut Descriptor,
) -> CufileError {
    let result = call();
    run_void(|| {
        if !succeeded(result) {
            return;
        }
        live_page::count_registrations(None, 1, 0);
        // SAFETY: the call succeeded, so it is the caller's structure, here and below.
        let kind = unsafe { (*descriptor).kind };
        if recorder::is_on() && kind == OPAQUE_FD {
            // SAFETY: as above.
            let given = unsafe { (*descriptor).fd };
            // SAFETY: any bits are a number.
            let fd = unsafe { given.fd };
            if fd < 0 {
                return;
            }
            // SAFETY: the caller's descriptor, open during the call by the interface.
            let number = recorder::file(unsafe { BorrowedFd::borrow_raw(fd) });
            // SAFETY: the call has written it.
            let made = unsafe { handle.read() };
            if let Some(number) = number {
                known().files.insert(made.addr(), number);
            }
        }
    });
    result
}

/// `cuFileHandleDeregister`.
pub(crate) fn deregister(call: impl FnOnce(), handle: Handle) {
    // Before the call: after it another thread may get the same handle for its file.
    run_void(|| {
        if looks_on(false) {
            known().files.remove(&handle.addr());
        }
    });
    call();
    run_void(|| {
        if looks_on(false) {
            live_page::count_registrations(None, -1, 0);
        }
    });
}

/// `cuFileBufRegister`.
pub(crate) fn register_buffer(
    call: impl FnOnce() -> CufileError,
    base: u64,
    _len: usize,
    _flags: c_int,
) -> CufileError {
    let result = call();
    run_void(|| {
        if succeeded(result) {
            let gpu = library::get().gpu_of(base);
            known().buffers.insert(base, gpu);
            live_page::count_registrations(gpu, 0, 1);
            nvidia_stats::look(monotonic_ns());
        }
    });
    result
}

/// `cuFileBufDeregister`.
pub(crate) fn deregister_buffer(call: impl FnOnce() -> CufileError, base: u64) -> CufileError {
    let result = call();
    run_void(|| {
        if succeeded(result)
            && let Some(gpu) = known().buffers.remove(&base)
        {
            live_page::count_registrations(gpu, 0, -1);
        }
    });
    result
}

/// `cuFileRead`.
pub(crate) fn read(
    call: impl FnOnce() -> isize,
    handle: Handle,
    base: u64,
    len: usize,
    file_offset: i64,
    buffer_offset: i64,
) -> isize {
    let op = Op::Read;
    transfer(call, handle, UncheckedRequest { op, base, len, file_offset, buffer_offset })
}

/// `cuFileWrite`.
pub(crate) fn write(
    call: impl FnOnce() -> isize,
    handle: Handle,
    base: u64,
    len: usize,
    file_offset: i64,
    buffer_offset: i64,
) -> isize {
    let op = Op::Write;
    transfer(call, handle, UncheckedRequest { op, base, len, file_offset, buffer_offset })
}

/// `cuFileReadv`.
pub(crate) fn readv(
    call: impl FnOnce() -> isize,
    handle: Handle,
    list: *const IoVec,
    count: usize,
    file_offset: i64,
    _flags: c_uint,
) -> isize {
    vectors(call, handle, (Op::Read, list, count), file_offset)
}

/// `cuFileWritev`.
pub(crate) fn writev(
    call: impl FnOnce() -> isize,
    handle: Handle,
    list: *const IoVec,
    count: usize,
    file_offset: i64,
    _flags: c_uint,
) -> isize {
    vectors(call, handle, (Op::Write, list, count), file_offset)
}

/// One call, with the memory of its first range.
fn vectors(
    call: impl FnOnce() -> isize,
    handle: Handle,
    (op, list, count): (Op, *const IoVec, usize),
    file_offset: i64,
) -> isize {
    let mut request = UncheckedRequest { op, base: 0, len: 0, file_offset, buffer_offset: 0 };
    if !list.is_null() && count > 0 {
        // SAFETY: not null, and `count` long by the interface.
        let ranges = unsafe { std::slice::from_raw_parts(list, count) };
        request.base = ranges[0].base;
        request.len = ranges.iter().fold(0, |sum: usize, range| sum.saturating_add(range.len));
    }
    transfer(call, handle, request)
}

fn transfer(call: impl FnOnce() -> isize, handle: Handle, request: UncheckedRequest) -> isize {
    let began_ns = monotonic_ns();
    let result = call();
    let errno = errno();
    run_void(|| {
        if !looks_on(result >= 0) {
            return;
        }
        let gpu = library::get().gpu_of(request.base);
        let origin = Origin::here(file_of(handle), Within::Thread);
        count(&Entry { request, origin, began_ns, gpu }, result, errno);
    });
    result
}

/// A file's number in the trace; `None` for a handle that was not made from a descriptor, or is
/// none.
fn file_of(handle: Handle) -> Option<u32> {
    if !recorder::is_on() {
        return None;
    }
    known().files.get(&handle.addr()).copied()
}

/// Counts what ended with a result of the interface: bytes, -1 with an errno, or a negative code.
fn count(entry: &Entry, result: isize, errno: c_int) {
    let failed = match result {
        -1 => Err(CallError::Errno(errno)),
        code => Err(CallError::Code(c_int::try_from(code.unsigned_abs()).unwrap_or(c_int::MAX))),
    };
    let moved = usize::try_from(result).map_or(failed, |bytes| Ok((bytes, None)));
    let Entry { request, origin, began_ns, gpu } = entry;
    library::get().record(request, *origin, (*began_ns, *gpu), &moved, true);
}

/// `cuFileBatchIOSubmit`.
pub(crate) fn submit(
    call: impl FnOnce() -> CufileError,
    batch: BatchHandle,
    count: c_uint,
    entries: *mut BatchEntry,
    _flags: c_uint,
) -> CufileError {
    let began_ns = monotonic_ns();
    // Before the call: an event may be fetched by another thread before it returns.
    run_void(|| {
        if looks_on(false) && !entries.is_null() {
            // SAFETY: not null, and `count` long by the interface.
            remember(batch, unsafe { std::slice::from_raw_parts(entries, count as usize) });
        }
    });
    let result = call();
    run_void(|| {
        if result.code != 0 && looks_on(false) && !entries.is_null() {
            // SAFETY: as above.
            let entries = unsafe { std::slice::from_raw_parts(entries, count as usize) };
            for entry in entries {
                let _ = taken(batch, entry.cookie, began_ns);
            }
        }
    });
    result
}

fn remember(batch: BatchHandle, entries: &[BatchEntry]) {
    let within = Within::Batch(recorder::batch());
    let began_ns = monotonic_ns();
    for one in entries {
        let op = if one.opcode == OPCODE_READ { Op::Read } else { Op::Write };
        let BatchEntry { base, len, file_offset, buffer_offset, .. } = *one;
        let request = UncheckedRequest { op, base, len, file_offset, buffer_offset };
        let gpu = library::get().gpu_of(base);
        let origin = Origin::here(file_of(one.handle), within);
        let mut known = known();
        if known.count < MOST_ENTRIES {
            known.count += 1;
            let place = known.entries.entry((batch.addr(), one.cookie)).or_default();
            place.push(Entry { request, origin, began_ns, gpu });
        }
    }
}

/// The first entry of a batch with this cookie that was submitted at this time or later.
fn taken(batch: BatchHandle, cookie: u64, from_ns: u64) -> Option<Entry> {
    let mut known = known();
    let key = (batch.addr(), cookie);
    let place = known.entries.get_mut(&key)?;
    let at = place.iter().position(|entry| entry.began_ns >= from_ns)?;
    let entry = place.remove(at);
    if place.is_empty() {
        known.entries.remove(&key);
    }
    known.count -= 1;
    Some(entry)
}

/// `cuFileBatchIOGetStatus`.
pub(crate) fn status(
    call: impl FnOnce() -> CufileError,
    batch: BatchHandle,
    _least: c_uint,
    count_of: *mut c_uint,
    events: *mut BatchEvent,
    _timeout: *mut libc::timespec,
) -> CufileError {
    let result = call();
    run_void(|| {
        if !succeeded(result) || count_of.is_null() || events.is_null() {
            return;
        }
        // SAFETY: the call succeeded, so it has written this number and so many events.
        let number = unsafe { count_of.read() };
        // SAFETY: as above.
        let events = unsafe { std::slice::from_raw_parts(events, number as usize) };
        for event in events {
            let entry = taken(batch, event.cookie, 0);
            if let Some(entry) = entry.filter(|_| event.status != STATUS_CANCELED) {
                count(&entry, event.result, libc::EIO);
            }
        }
    });
    result
}

/// `cuFileBatchIODestroy`.
pub(crate) fn destroy(call: impl FnOnce(), batch: BatchHandle) {
    call();
    run_void(|| {
        if looks_on(false) {
            let mut known = known();
            let before: usize = known.entries.values().map(Vec::len).sum();
            known.entries.retain(|(of, _), _| *of != batch.addr());
            let after: usize = known.entries.values().map(Vec::len).sum();
            known.count -= before - after;
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// While NVIDIA's library ends a handle, another thread may get the same one for its file.
    #[test]
    fn the_next_file_of_a_handle_is_not_forgotten_with_the_one_before() {
        GENERATION.get_or_init(fork::generation);
        known().files.insert(0x17, 1);
        let handle = std::ptr::without_provenance_mut(0x17);
        let next = || {
            assert_eq!(known().files.insert(0x17, 2), None);
        };
        deregister(next, handle);
        assert_eq!(known().files.get(&0x17), Some(&2));
    }
}
