//! Registered files, and their transfers.

use std::ffi::c_int;
use std::os::fd::BorrowedFd;

use gpuio_base::trace::{Call, Within};
use gpuio_gpu::GpuError;
use gpuio_transfer::{
    Fault, File, FileError, MemoryLocation, Op, RouteBytes, Transfer, Transferred,
};
use rustix::fs::{OFlags, fcntl_getfl};

use crate::abi::Handle;
use crate::buffers::Buffer;
use crate::code::{
    ASYNC_NOT_SUPPORTED, CUDA_CONTEXT_MISMATCH, CUDA_POINTER_RANGE_ERROR, CallError,
    GETNEWFD_FAILED, HANDLE_NOT_REGISTERED, INTERNAL_ERROR, INVALID_FILE_OPEN_FLAG,
    INVALID_FILE_TYPE, INVALID_VALUE,
};
use crate::direct::{self, NvidiaFile, ShortTransfer};
use crate::library::{CUDA_NOT_INITIALIZED, Library};
use crate::live_page::{self, CompletedCall};
use crate::log::{self, Level};
use crate::nvidia_stats;
use crate::recorder::{self, Origin};
use crate::request::UncheckedRequest;
use crate::stats::CountedOp;

pub(crate) struct Registered {
    pub(crate) file: File,
    /// Whether its descriptor is open for reading.
    pub(crate) reads: bool,
    /// Its number in the trace, if it has one.
    pub(crate) trace_file: Option<u32>,
    /// The file's handle in NVIDIA's library, if that has a direct path for it.
    nvidia_file: Option<NvidiaFile>,
}

/// A transfer that passed all checks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Checked {
    pub(crate) location: MemoryLocation,
    pub(crate) address: u64,
    pub(crate) offset: u64,
}

impl Library {
    /// Registers a descriptor of this process, which stays the caller's. A registered one gets
    /// another handle: programs close descriptors without notice, and the kernel reuses the number
    /// for another file.
    pub(crate) fn register(&self, fd: c_int) -> Result<Handle, CallError> {
        let transfer = self.ensure_open()?;
        let result = self.register_with(transfer, fd);
        self.stats.operations(CountedOp::HandleRegister, result.is_ok(), 1);
        result
    }

    fn register_with(&self, transfer: &Transfer, fd: c_int) -> Result<Handle, CallError> {
        if fd < 0 {
            return Err(INVALID_VALUE.into());
        }
        // SAFETY: the caller's descriptor, open during the call by the interface; a closed one is
        // refused by the kernel.
        let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
        let flags = fcntl_getfl(borrowed).map_err(|_| CallError::from(INVALID_VALUE))?;
        let file = transfer.file(borrowed).map_err(|error| {
            log::line(Level::Error, || error.to_string());
            match error {
                FileError::Kind { .. } => CallError::from(INVALID_FILE_TYPE),
                FileError::Call { errno: libc::EBADF, .. } => INVALID_VALUE.into(),
                _ => GETNEWFD_FAILED.into(),
            }
        })?;
        let mode = flags & OFlags::ACCMODE;
        let reads = mode != OFlags::WRONLY && !flags.contains(OFlags::PATH);
        let nvidia_file = direct::register_file(borrowed, flags);
        let trace_file = recorder::file(borrowed);
        let entry = Registered { file, reads, trace_file, nvidia_file };
        let mut state = self.lock();
        let made = self.files.open(&mut state.free, entry);
        drop(state);
        if made.is_some() {
            live_page::count_registrations(None, 1, 0);
        }
        made.ok_or(CallError::from(GETNEWFD_FAILED))
    }

    /// Ends a handle after all reads, writes and batch entries that use it have completed, whether
    /// or not their events were fetched. An invalid handle is ignored.
    pub(crate) fn deregister(&self, handle: Handle) {
        let Some(closing) = self.files.close(handle) else {
            self.stats.operations(CountedOp::HandleDeregister, false, 1);
            return;
        };
        closing.wait(|| self.collect_completed());
        let entry = closing.finish(&mut self.lock().free);
        // Outside the lock: NVIDIA's library may take long.
        drop(entry);
        live_page::count_registrations(None, -1, 0);
        self.stats.operations(CountedOp::HandleDeregister, true, 1);
    }

    /// Records a buffer. Never fails for lack of resources: transfers don't need it.
    pub(crate) fn register_buffer(
        &self,
        base: u64,
        len: usize,
        flags: c_int,
    ) -> Result<(), CallError> {
        if base == 0 || len == 0 {
            return Err(INVALID_VALUE.into());
        }
        let transfer = self.ensure_open()?;
        let location = transfer.locate(base).map_err(|error| location_error(&error));
        let result = location.and_then(|location| {
            let buffer = Buffer { len, gpu: location.device(), location: Some(location) };
            self.buffers.register(base, buffer).map(|()| location)
        });
        if let Ok(location) = &result {
            live_page::count_registrations(location.device(), 0, 1);
            if direct::supports_memory(location) {
                direct::register_buffer(base, len, flags);
            }
        }
        self.stats.operations(CountedOp::BufferRegister, result.is_ok(), 1);
        result.map(|_| ())
    }

    pub(crate) fn deregister_buffer(&self, base: u64) -> Result<(), CallError> {
        if base == 0 {
            return Err(INVALID_VALUE.into());
        }
        let result = self.buffers.deregister(base);
        if let Ok(buffer) = &result {
            live_page::count_registrations(buffer.gpu, 0, -1);
            if buffer.location.is_some_and(|location| direct::supports_memory(&location)) {
                direct::deregister_buffer(base);
            }
        }
        self.stats.operations(CountedOp::BufferDeregister, result.is_ok(), 1);
        result.map(|_| ())
    }

    /// Checks a request before it begins. `near`: the location of other memory in the same call, if
    /// known.
    pub(crate) fn check(
        &self,
        transfer: &Transfer,
        file: &Registered,
        request: &UncheckedRequest,
        near: Option<MemoryLocation>,
    ) -> Result<Checked, CallError> {
        let invalid = |_| CallError::from(INVALID_VALUE);
        let offset = u64::try_from(request.file_offset).map_err(invalid)?;
        let skip = u64::try_from(request.buffer_offset).map_err(invalid)?;
        if request.base == 0 || isize::try_from(request.len).is_err() {
            return Err(INVALID_VALUE.into());
        }
        if request.op == Op::Read && !file.reads {
            return Err(INVALID_FILE_OPEN_FLAG.into());
        }
        // NVIDIA's library, if it is used too, resets what `Transfer::locate` sets in the driver
        // for that memory: then each call queries again.
        let registered = self.buffers.check(request.base, skip, request.len)?;
        let holds =
            |location: &MemoryLocation| direct::find().is_none() && transfer.is_current(location);
        let known = registered.filter(holds);
        let address = request.base.checked_add(skip).ok_or(CallError::from(INVALID_VALUE))?;
        let location = match known.or(near.filter(|near| near.holds(address, request.len))) {
            Some(location) => location,
            None => transfer.locate(address).map_err(|error| location_error(&error))?,
        };
        Ok(Checked { location, address, offset })
    }

    /// Moves bytes between a file and memory, and returns when they have arrived.
    ///
    /// # Safety
    /// As the interface requires of callers of `cuFileRead` and `cuFileWrite`: the memory is the
    /// caller's and is not freed during the call.
    pub(crate) unsafe fn transfer(
        &self,
        handle: Handle,
        request: UncheckedRequest,
    ) -> Result<usize, CallError> {
        let transfer = self.ensure_open()?;
        let file = self.files.hold(handle).ok_or(CallError::from(HANDLE_NOT_REGISTERED))?;
        let began_ns = gpuio_watch::page::monotonic_ns();
        let checked = self.check(transfer, &file, &request, None);
        let result = match (&checked, &file.nvidia_file) {
            (Err(error), _) => Err(*error),
            (Ok(_), _) if request.len == 0 => return Ok(0),
            (Ok(checked), Some(nvidia_file)) if nvidia_file.moves(&checked.location) => {
                // SAFETY: the caller's promise.
                unsafe {
                    transfer_by_nvidia(transfer, (&file.file, nvidia_file), &request, checked)
                }
            }
            (Ok(checked), _) => {
                // SAFETY: as above.
                let moved = unsafe { run(transfer, &file.file, &request, checked) };
                moved.map(|moved| (moved.bytes, Some(moved.route)))
            }
        };
        let gpu = checked.ok().and_then(|checked| checked.location.device());
        let forwarded = matches!(result, Ok((_, None)));
        let origin = Origin::here(file.trace_file, Within::Thread);
        self.record(&request, origin, (began_ns, gpu), &result, forwarded);
        result.map(|(bytes, _)| bytes)
    }

    /// Counts a completed transfer, and records it where that is requested.
    pub(crate) fn record(
        &self,
        request: &UncheckedRequest,
        origin: Origin,
        (began_ns, gpu): (u64, Option<u32>),
        result: &Result<(usize, Option<RouteBytes>), CallError>,
        forwarded: bool,
    ) {
        let range = (request.file_offset.unsigned_abs(), request.len as u64);
        let bytes = result.as_ref().ok().map(|(bytes, _)| *bytes as u64);
        let done = CompletedCall::now(request.op, gpu, range, began_ns, bytes);
        let done = CompletedCall { forwarded, ..done };
        self.stats.count(&done);
        if forwarded {
            nvidia_stats::look(done.ended_ns);
        }
        let route = result.as_ref().ok().and_then(|(_, route)| route.as_ref());
        live_page::count(&done, route);
        recorder::record(origin.file, |file| Call {
            op: request.op,
            file,
            offset: request.file_offset.cast_unsigned(),
            bytes: request.len as u64,
            // No range of memory is longer than isize::MAX.
            result: result.as_ref().map_or_else(
                |error| error.negative() as i64,
                |(bytes, _)| bytes.cast_signed() as i64,
            ),
            begin_ns: began_ns,
            duration_ns: done.latency_ns,
            thread: origin.thread,
            within: origin.within,
            gpu,
        });
    }
}

/// Runs it by `transfer`.
///
/// # Safety
/// As for [`Library::transfer`].
unsafe fn run(
    transfer: &Transfer,
    file: &File,
    request: &UncheckedRequest,
    checked: &Checked,
) -> Result<Transferred, CallError> {
    let Checked { location, address, offset } = *checked;
    // SAFETY: the caller's promise.
    let moved = unsafe { transfer.call(request.op, file, location, address, request.len, offset) };
    moved.map_err(|fault| call_error(&fault))
}

/// Runs it by NVIDIA's library, and the rest by `transfer`, whose route is returned then.
/// `transfer` decides where the file ends and whether there is an error.
///
/// # Safety
/// As for [`Library::transfer`].
unsafe fn transfer_by_nvidia(
    transfer: &Transfer,
    (file, nvidia_file): (&File, &NvidiaFile),
    request: &UncheckedRequest,
    checked: &Checked,
) -> Result<(usize, Option<RouteBytes>), CallError> {
    // SAFETY: the caller's promise.
    let (done, short) = unsafe { nvidia_file.transfer(request) };
    let Some(short) = short else {
        return Ok((done, None));
    };
    let done_bytes = done as u64;
    let rest = UncheckedRequest { len: request.len - done, ..*request };
    let Checked { location, address, offset } = *checked;
    let (address, offset) = (address.saturating_add(done_bytes), offset.saturating_add(done_bytes));
    let left = Checked { location, address, offset };
    // SAFETY: the rest of the caller's range, which the library no longer uses.
    let moved = unsafe { run(transfer, file, &rest, &left) }?;
    let ends_there = short == ShortTransfer::Silent && moved.bytes == 0;
    if ends_there {
        return Ok((done, None));
    }
    nvidia_file.give_up(short);
    Ok((done + moved.bytes, Some(moved.route)))
}

/// The interface's code for a fault. The log, if there is one, gets the details.
pub(crate) fn call_error(fault: &Fault) -> CallError {
    log::line(Level::Error, || fault.to_string());
    match fault {
        Fault::File { errno, .. } => CallError::Errno(*errno),
        Fault::Gpu(error) => CallError::Cuda(error.code),
        Fault::Forked => CallError::Cuda(CUDA_NOT_INITIALIZED),
        Fault::Unreached { .. } => CallError::Errno(libc::EFAULT),
        Fault::Parameter { .. } => INVALID_VALUE.into(),
        Fault::Outside { .. } => CUDA_POINTER_RANGE_ERROR.into(),
        Fault::Captured => ASYNC_NOT_SUPPORTED.into(),
        Fault::OtherContext => CUDA_CONTEXT_MISMATCH.into(),
        Fault::NoDriver => CallError::Cuda(CUDA_NOT_INITIALIZED),
        Fault::Cancelled => CallError::Errno(libc::ECANCELED),
        _ => INTERNAL_ERROR.into(),
    }
}

pub(crate) fn location_error(error: &GpuError) -> CallError {
    log::line(Level::Error, || error.to_string());
    CallError::Cuda(error.code)
}
