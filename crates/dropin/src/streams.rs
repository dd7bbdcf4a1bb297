//! I/O in the order of a CUDA stream.

use std::ffi::c_uint;

use gpuio_base::trace::Within;
use gpuio_transfer::{OnCompletion, Op, Param, Params, RawStream, Transferred};

use crate::abi::{Handle, StreamHandle};
use crate::code::{CallError, HANDLE_NOT_REGISTERED, INVALID_FILE_OPEN_FLAG, INVALID_VALUE};
use crate::io::{Registered, call_error, location_error};
use crate::library::{self, Library, State};
use crate::recorder::{self, Origin};
use crate::request::UncheckedRequest;
use crate::sync::thread_number;

/// Flags of a registered stream: which parameters are read at the call, not when the stream reaches
/// the transfer.
const FIXED_BUFFER_OFFSET: c_uint = 1 << 0;
const FIXED_FILE_OFFSET: c_uint = 1 << 1;
const FIXED_SIZE: c_uint = 1 << 2;
/// A promise that sizes and offsets are whole pages. It changes nothing here.
const PAGE_ALIGNED: c_uint = 1 << 3;
const FLAGS: c_uint = FIXED_BUFFER_OFFSET | FIXED_FILE_OFFSET | FIXED_SIZE | PAGE_ALIGNED;

/// The result of an I/O error in place of bytes ("cuFile API Reference Guide", `cuFileReadAsync`).
const IO_ERROR: isize = -1;

/// The program's addresses of the parameters of one I/O and of its result.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pointers {
    pub(crate) len: *mut usize,
    pub(crate) file_offset: *mut i64,
    pub(crate) buffer_offset: *mut i64,
    pub(crate) done: *mut isize,
}

struct ResultPointer(*mut isize);

// SAFETY: the program keeps the address valid for whichever thread completes the I/O (the
// interface).
unsafe impl Send for ResultPointer {}

impl ResultPointer {
    fn store(&self, result: &Result<Transferred, CallError>) {
        let number = match result {
            // No range of memory is longer than isize::MAX.
            Ok(moved) => moved.bytes.cast_signed(),
            Err(CallError::Errno(_)) => IO_ERROR,
            Err(error) => error.negative(),
        };
        // SAFETY: the program's address, valid until the stream has passed. Volatile: the program
        // may read it from another thread.
        unsafe { self.0.write_volatile(number) };
    }
}

impl Pointers {
    fn has_null(&self) -> bool {
        self.len.is_null()
            || self.file_offset.is_null()
            || self.buffer_offset.is_null()
            || self.done.is_null()
    }

    /// The parameters: their values now, or their addresses.
    ///
    /// # Safety
    /// None is null, and all are valid for reads until the stream has passed.
    unsafe fn parameters(&self, flags: c_uint) -> Params {
        let fixed = |flag| flags & flag != 0;
        // SAFETY: the caller's promise.
        let len = unsafe { self.len.read() };
        let offset = |location: *mut i64, flag| {
            if fixed(flag) {
                // SAFETY: the caller's promise.
                Param::Immediate(unsafe { location.read() })
            } else {
                Param::Deferred(location.cast_const())
            }
        };
        Params {
            max_size: len,
            size: if fixed(FIXED_SIZE) { Param::Immediate(len) } else { Param::Deferred(self.len) },
            file_offset: offset(self.file_offset, FIXED_FILE_OFFSET),
            buffer_offset: offset(self.buffer_offset, FIXED_BUFFER_OFFSET),
        }
    }
}

/// `CU_STREAM_PER_THREAD`: each thread has its own.
const PER_THREAD: usize = 2;

impl State {
    /// The number of a stream in a trace.
    fn stream_number(&mut self, stream: StreamHandle) -> u32 {
        let thread = if stream.addr() == PER_THREAD { thread_number() } else { 0 };
        let next = u32::try_from(self.stream_numbers.len()).unwrap_or(u32::MAX);
        *self.stream_numbers.entry((stream.addr(), thread)).or_insert(next)
    }
}

impl Library {
    /// Records a stream's flags.
    pub(crate) fn register_stream(
        &self,
        stream: StreamHandle,
        flags: c_uint,
    ) -> Result<(), CallError> {
        self.ensure_open()?;
        if flags & !FLAGS != 0 {
            return Err(INVALID_VALUE.into());
        }
        let mut state = self.lock();
        // The null stream may be registered repeatedly; for others the first flags stay.
        if !stream.is_null() && state.streams.contains_key(&stream.addr()) {
            return Err(INVALID_VALUE.into());
        }
        state.streams.insert(stream.addr(), flags);
        Ok(())
    }

    pub(crate) fn deregister_stream(&self, stream: StreamHandle) -> Result<(), CallError> {
        let known = self.lock().streams.remove(&stream.addr()).is_some();
        if known || stream.is_null() { Ok(()) } else { Err(INVALID_VALUE.into()) }
    }

    /// Enqueues a read or a write into a stream.
    ///
    /// # Safety
    /// As the interface requires of callers of `cuFileReadAsync` and `cuFileWriteAsync`: stream,
    /// memory and parameters are the caller's, and live until the stream has passed.
    pub(crate) unsafe fn enqueue(
        &'static self,
        handle: Handle,
        (op, base): (Op, u64),
        pointers: Pointers,
        stream: StreamHandle,
    ) -> Result<(), CallError> {
        if pointers.has_null() || base == 0 {
            return Err(INVALID_VALUE.into());
        }
        let transfer = self.ensure_open()?;
        let file = self.files.hold(handle).ok_or(CallError::from(HANDLE_NOT_REGISTERED))?;
        let (flags, number) = {
            let mut state = self.lock();
            let flags = state.streams.get(&stream.addr()).copied().unwrap_or(0);
            (flags, if recorder::is_on() { state.stream_number(stream) } else { 0 })
        };
        let origin = Origin::here(file.trace_file, Within::Stream(number));
        // SAFETY: not null, and the caller's promise.
        let params = unsafe { pointers.parameters(flags) };
        self.check_fixed(&file, op, base, &params)?;
        let location = transfer.locate(base).map_err(|error| location_error(&error))?;
        let (began_ns, gpu) = (gpuio_watch::page::monotonic_ns(), location.device());
        let done = ResultPointer(pointers.done);
        let on_completion: OnCompletion = Box::new(move |read, outcome| {
            let result = outcome.map_err(|fault| call_error(&fault));
            done.store(&result);
            let (file_offset, buffer_offset) = (read.file_offset, read.buffer_offset);
            let request = UncheckedRequest { op, base, len: read.size, file_offset, buffer_offset };
            let moved = result.map(|moved| (moved.bytes, Some(moved.route)));
            library::get().record(&request, origin, (began_ns, gpu), &moved, false);
        });
        let (stream, file) = (RawStream::new(stream), file.file.clone());
        // SAFETY: the caller's promise.
        let enqueued = unsafe {
            transfer.enqueue(stream, (op, &file), (location, base), params, on_completion)
        };
        enqueued.map_err(|fault| call_error(&fault))
    }

    /// Refuses at once what is already known to be invalid.
    fn check_fixed(
        &self,
        file: &Registered,
        op: Op,
        base: u64,
        params: &Params,
    ) -> Result<(), CallError> {
        if isize::try_from(params.max_size).is_err() {
            return Err(INVALID_VALUE.into());
        }
        if op == Op::Read && !file.reads {
            return Err(INVALID_FILE_OPEN_FLAG.into());
        }
        let negative = |param| matches!(param, Param::Immediate(value) if value < 0);
        if negative(params.file_offset) || negative(params.buffer_offset) {
            return Err(INVALID_VALUE.into());
        }
        if let (Param::Immediate(len), Param::Immediate(skip)) = (params.size, params.buffer_offset)
        {
            self.buffers.check(base, u64::try_from(skip).unwrap_or(0), len)?;
        }
        Ok(())
    }
}
