//! Files that were registered, and transfers of them.

use std::ffi::c_int;
use std::os::fd::BorrowedFd;

use gpuio_transfer::{Fault, File, FileError, Moved, Place, PlaceError, Route, Transfer};
use rustix::fs::{OFlags, fcntl_getfl};

use crate::abi::Handle;
use crate::buffers::Buffer;
use crate::code::{
    ASYNC_NOT_SUPPORTED, CUDA_CONTEXT_MISMATCH, CUDA_POINTER_INVALID, CUDA_POINTER_RANGE_ERROR,
    Failure, GETNEWFD_FAILED, HANDLE_NOT_REGISTERED, INTERNAL_ERROR, INVALID_FILE_OPEN_FLAG,
    INVALID_FILE_TYPE, INVALID_VALUE,
};
use crate::library::Library;
use crate::log::{self, Level};
use crate::peer::{self, Theirs};
use crate::stats::{Done, Op, Way};
use crate::{fork, live};

/// Offsets and lengths off this grid count as unaligned.
const GRID: u64 = 4096;
/// What the CUDA driver answers in a child of fork(2).
const CUDA_NOT_INITIALIZED: c_int = 3;

/// A file that a program registered.
#[derive(Debug)]
pub(crate) struct Registered {
    pub(crate) file: File,
    /// Whether its descriptor may be read from.
    pub(crate) reads: bool,
    /// NVIDIA's library has it, too, and moves its bytes.
    theirs: Option<Theirs>,
    /// The process that registered it, in a line of forks.
    born: u32,
}

/// A transfer as asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) way: Way,
    pub(crate) base: u64,
    pub(crate) len: usize,
    pub(crate) file_offset: i64,
    pub(crate) buffer_offset: i64,
}

/// A transfer that passed all checks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Checked {
    pub(crate) place: Place,
    pub(crate) address: u64,
    pub(crate) offset: u64,
}

impl Registered {
    /// Whether waiting for those who use it makes sense: in a child of fork(2) the threads that did
    /// are gone.
    fn is_of_this_process(&self) -> bool {
        self.born == fork::generation()
    }
}

impl Library {
    /// Registers a descriptor of this process, which stays the caller's. One that is registered
    /// already gets one more handle: programs close descriptors and never say so, and the kernel
    /// gives the number to another file.
    pub(crate) fn register(&self, fd: c_int) -> Result<Handle, Failure> {
        let transfer = self.ensure_open()?;
        let result = self.register_with(transfer, fd);
        self.stats.operations(Op::HandleRegister, result.is_ok(), 1);
        result
    }

    fn register_with(&self, transfer: &Transfer, fd: c_int) -> Result<Handle, Failure> {
        if fd < 0 {
            return Err(INVALID_VALUE.into());
        }
        // SAFETY: the caller's descriptor, open during the call by the interface; a closed one is
        // refused by the kernel.
        let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
        let flags = fcntl_getfl(borrowed).map_err(|_| Failure::from(INVALID_VALUE))?;
        let file = transfer.file(borrowed).map_err(|error| {
            log::line(Level::Error, || error.to_string());
            match error {
                FileError::Kind { .. } => Failure::from(INVALID_FILE_TYPE),
                FileError::Call { errno: libc::EBADF, .. } => INVALID_VALUE.into(),
                _ => GETNEWFD_FAILED.into(),
            }
        })?;
        let mode = flags & OFlags::ACCMODE;
        let reads = mode != OFlags::WRONLY && !flags.contains(OFlags::PATH);
        let theirs = peer::direct().and_then(|direct| direct.register(fd));
        let entry = Registered { file, reads, theirs, born: fork::generation() };
        let mut state = self.lock();
        self.files.open(&mut state.free, entry).ok_or(Failure::from(GETNEWFD_FAILED))
    }

    /// Ends a handle, once the reads, writes and entries of batches that use it have ended, whether
    /// or not their events were fetched. One that is none is left alone.
    pub(crate) fn deregister(&self, handle: Handle) {
        let Some(closing) = self.files.close(handle) else {
            self.stats.operations(Op::HandleDeregister, false, 1);
            return;
        };
        if closing.entry().is_some_and(Registered::is_of_this_process) {
            closing.wait(|| self.harvest());
        }
        let entry = closing.finish(&mut self.lock().free);
        // Outside the lock: NVIDIA's library may take its time.
        drop(entry);
        self.stats.operations(Op::HandleDeregister, true, 1);
    }

    /// Notes a buffer. Never fails for want of anything: transfers don't need it.
    pub(crate) fn register_buffer(&self, base: u64, len: usize) -> Result<(), Failure> {
        if base == 0 || len == 0 {
            return Err(INVALID_VALUE.into());
        }
        let transfer = self.ensure_open()?;
        let place = transfer.place(base).map_err(|error| failure_of_place(&error));
        let result = place.and_then(|place| {
            let buffer = Buffer { len, gpu: place.device(), place: Some(place) };
            self.buffers.register(base, buffer)
        });
        self.stats.operations(Op::BufferRegister, result.is_ok(), 1);
        result
    }

    /// Forgets a buffer.
    pub(crate) fn deregister_buffer(&self, base: u64) -> Result<(), Failure> {
        if base == 0 {
            return Err(INVALID_VALUE.into());
        }
        let result = self.buffers.deregister(base).map(|_| ());
        self.stats.operations(Op::BufferDeregister, result.is_ok(), 1);
        result
    }

    /// What a transfer has to be before it is begun. `near` is what other memory of the same moment
    /// is, where that is known.
    pub(crate) fn check(
        &self,
        transfer: &Transfer,
        file: &Registered,
        asked: &Asked,
        near: Option<Place>,
    ) -> Result<Checked, Failure> {
        let invalid = |_| Failure::from(INVALID_VALUE);
        let offset = u64::try_from(asked.file_offset).map_err(invalid)?;
        let skip = u64::try_from(asked.buffer_offset).map_err(invalid)?;
        if asked.base == 0 || isize::try_from(asked.len).is_err() {
            return Err(INVALID_VALUE.into());
        }
        if asked.way == Way::Read && !file.reads {
            return Err(INVALID_FILE_OPEN_FLAG.into());
        }
        let known = self.buffers.check(asked.base, skip, asked.len)?;
        let address = asked.base.checked_add(skip).ok_or(Failure::from(INVALID_VALUE))?;
        let place = match known.or(near.filter(|near| near.holds(address, asked.len))) {
            Some(place) => place,
            None => transfer.place(address).map_err(|error| failure_of_place(&error))?,
        };
        Ok(Checked { place, address, offset })
    }

    /// Moves bytes between a file and memory, and returns when they are there.
    ///
    /// # Safety
    /// As the interface asks of callers of `cuFileRead` and `cuFileWrite`: the memory is theirs,
    /// and nobody frees it meanwhile.
    pub(crate) unsafe fn transfer(&self, handle: Handle, asked: Asked) -> Result<usize, Failure> {
        let transfer = self.ensure_open()?;
        let file = self.files.hold(handle).ok_or(Failure::from(HANDLE_NOT_REGISTERED))?;
        let began_ns = gpuio_page::monotonic_ns();
        let checked = self.check(transfer, &file, &asked, None);
        let result = match (&checked, &file.theirs) {
            (Err(failure), _) => Err(*failure),
            (Ok(_), _) if asked.len == 0 => return Ok(0),
            // SAFETY: the caller's promise.
            (Ok(_), Some(theirs)) => unsafe { hand_on(theirs, &asked) }.map(|bytes| (bytes, None)),
            (Ok(checked), None) => {
                // SAFETY: as above.
                let moved = unsafe { run(transfer, &file.file, &asked, checked) };
                moved.map(|moved| (moved.bytes, Some(moved.route)))
            }
        };
        let gpu = checked.ok().and_then(|checked| checked.place.device());
        self.note(&asked, began_ns, gpu, &result, file.theirs.is_some());
        result.map(|(bytes, _)| bytes)
    }

    /// Counts a transfer that ended.
    pub(crate) fn note(
        &self,
        asked: &Asked,
        began_ns: u64,
        gpu: Option<u32>,
        result: &Result<(usize, Option<Route>), Failure>,
        handed_on: bool,
    ) {
        let place = asked.file_offset.unsigned_abs() | asked.len as u64;
        let ended_ns = gpuio_page::monotonic_ns();
        let done = Done {
            way: asked.way,
            gpu,
            bytes: result.as_ref().ok().map(|(bytes, _)| *bytes as u64),
            latency_ns: ended_ns.saturating_sub(began_ns),
            ended_ns,
            unaligned: !place.is_multiple_of(GRID),
            handed_on,
        };
        self.stats.count(&done);
        let route = result.as_ref().ok().and_then(|(_, route)| route.as_ref());
        live::count(&done, route);
    }
}

/// By our transfers.
///
/// # Safety
/// As for [`Library::transfer`].
unsafe fn run(
    transfer: &Transfer,
    file: &File,
    asked: &Asked,
    checked: &Checked,
) -> Result<Moved, Failure> {
    let Checked { place, address, offset } = *checked;
    let moved = match asked.way {
        // SAFETY: the caller's promise.
        Way::Read => unsafe { transfer.read(file, place, address, asked.len, offset) },
        // SAFETY: the caller's promise.
        Way::Write => unsafe { transfer.write(file, place, address, asked.len, offset) },
    };
    moved.map_err(|fault| failure(&fault))
}

/// By NVIDIA's library.
///
/// # Safety
/// As for [`Library::transfer`].
unsafe fn hand_on(theirs: &Theirs, asked: &Asked) -> Result<usize, Failure> {
    let offsets = (asked.file_offset, asked.buffer_offset);
    let write = asked.way == Way::Write;
    // SAFETY: the caller's promise.
    let result = unsafe { theirs.transfer(write, asked.base, asked.len, offsets) };
    match usize::try_from(result) {
        Ok(bytes) => Ok(bytes),
        Err(_) if result == -1 => {
            let errno = std::io::Error::last_os_error().raw_os_error();
            Err(Failure::Errno(errno.unwrap_or(libc::EIO)))
        }
        Err(_) => Err(Failure::Code(c_int::try_from(-result).unwrap_or(INTERNAL_ERROR))),
    }
}

/// What a transfer's fault is in the interface's words. The log, where somebody asked for one, gets
/// all that the number does not say.
pub(crate) fn failure(fault: &Fault) -> Failure {
    log::line(Level::Error, || fault.to_string());
    match fault {
        Fault::File { errno, .. } => Failure::Errno(*errno),
        Fault::Gpu(error) => Failure::Cuda(error.code),
        Fault::Forked => Failure::Cuda(CUDA_NOT_INITIALIZED),
        Fault::Parameter { .. } => INVALID_VALUE.into(),
        Fault::Outside { .. } => CUDA_POINTER_RANGE_ERROR.into(),
        Fault::Captured => ASYNC_NOT_SUPPORTED.into(),
        Fault::OtherContext => CUDA_CONTEXT_MISMATCH.into(),
        Fault::NoDriver => Failure::Cuda(CUDA_NOT_INITIALIZED),
        Fault::Cancelled => Failure::Errno(libc::ECANCELED),
        _ => INTERNAL_ERROR.into(),
    }
}

pub(crate) fn failure_of_place(error: &PlaceError) -> Failure {
    log::line(Level::Error, || error.to_string());
    match error {
        PlaceError::Gpu(error) => Failure::Cuda(error.code),
        PlaceError::Forked { .. } => Failure::Cuda(CUDA_NOT_INITIALIZED),
        _ => CUDA_POINTER_INVALID.into(),
    }
}
