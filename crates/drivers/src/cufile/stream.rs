//! I/O in the order of a CUDA stream.

use std::cell::UnsafeCell;
use std::ffi::{c_uint, c_void};
use std::path::Path;

use gpuio_base::catalog::Op;

use crate::cufile::Calls;
use crate::cufile::calls::InterfaceAbsent;
use crate::cufile::diagnosis::Diagnosis;
use crate::cufile::driver::Driver;
use crate::cufile::transfer::{Handle, IoError, IoRange, moved};

/// The value of `done` until the library writes it: neither a count of bytes nor a code.
const NOT_YET: isize = isize::MIN;

/// The parameters and the result of one I/O, in memory that stays in place: the library reads and
/// writes it when the stream reaches the I/O.
struct Parameters {
    len: usize,
    file_offset: i64,
    base_offset: i64,
    done: isize,
}

/// I/O in streams, with a slot for the parameters of each I/O in flight.
#[derive(Debug)]
pub struct StreamIo {
    driver: Driver,
    slots: Box<[UnsafeCell<Parameters>]>,
}

// SAFETY: the slots are plain memory; who uses one promises to be the only user.
unsafe impl Send for StreamIo {}

impl StreamIo {
    /// Space for `slots` I/Os in flight.
    ///
    /// # Errors
    /// This release has no I/O in streams.
    pub fn new(driver: &Driver, slots: u32) -> Result<StreamIo, InterfaceAbsent> {
        if let Some(missing_function) = driver.library().missing_function(Calls::Streams) {
            return Err(missing_function.into());
        }
        let empty = || Parameters { len: 0, file_offset: 0, base_offset: 0, done: NOT_YET };
        let slots = (0..slots).map(|_| UnsafeCell::new(empty())).collect();
        Ok(StreamIo { driver: driver.clone(), slots })
    }

    /// Enqueues an I/O into `stream`, a `CUstream`, with the parameters in `slot`.
    ///
    /// # Errors
    /// The library refused it: nothing is in the stream.
    ///
    /// # Safety
    /// The stream lives and its context is current. Until the stream has passed the I/O:
    /// `self` lives, `slot` is not used again, the handle is registered, and the piece is live
    /// memory of a kind that cuFile supports, used only by work that the stream orders. If its base
    /// begins a registered buffer, it lies inside.
    pub unsafe fn enqueue(
        &self,
        op: Op,
        handle: &Handle,
        range: IoRange,
        slot: u32,
        stream: *mut c_void,
    ) -> Result<(), IoError> {
        let (file_offset, base_offset) = range.offsets()?;
        let at = self.slots[slot as usize].get();
        // SAFETY: nothing else uses the slot, by the caller's promise, and it is aligned memory of
        // ours.
        unsafe { at.write(Parameters { len: range.len, file_offset, base_offset, done: NOT_YET }) };
        let library = self.driver.library();
        let call = match op {
            Op::Read => library.cuFileReadAsync,
            Op::Write => library.cuFileWriteAsync,
        };
        // `new` checked both.
        let Some(call) = call else { return Err(IoError::Errno(libc::ENOSYS)) };
        // SAFETY: `at` is valid; only an address is taken.
        let len = unsafe { &raw mut (*at).len };
        // SAFETY: as above.
        let file_offset = unsafe { &raw mut (*at).file_offset };
        // SAFETY: as above.
        let base_offset = unsafe { &raw mut (*at).base_offset };
        // SAFETY: as above.
        let done = unsafe { &raw mut (*at).done };
        // SAFETY: the parameters stay in place as long as `self`; the rest is the caller's promise.
        let answer =
            unsafe { call(handle.raw(), range.base, len, file_offset, base_offset, done, stream) };
        if answer.code == 0 { Ok(()) } else { Err(IoError::Code(answer.code)) }
    }

    /// The result of the I/O in `slot`: bytes moved, 0 at the end of the file.
    ///
    /// # Errors
    /// The kernel's or the library's error; EIO if the library wrote none.
    ///
    /// # Safety
    /// The stream has passed the I/O: an event recorded after it was reached.
    pub unsafe fn outcome(&self, slot: u32) -> Result<usize, IoError> {
        let at = self.slots[slot as usize].get();
        // SAFETY: `at` is valid; only an address is taken.
        let done = unsafe { &raw const (*at).done };
        // SAFETY: no thread writes it any more, by the caller's promise. Volatile, since the
        // library wrote it.
        match unsafe { done.read_volatile() } {
            NOT_YET => Err(IoError::Errno(libc::EIO)),
            returned => moved(returned),
        }
    }
}

/// A stream that is registered with the library, which then prepares once and not for each I/O.
#[derive(Debug)]
pub struct StreamRegistration {
    driver: Driver,
    stream: *mut c_void,
}

// SAFETY: the stream is a name that any thread may use.
unsafe impl Send for StreamRegistration {}

/// Offsets and length of each I/O are known when it is enqueued.
const ALL_FIXED: c_uint = 0x1 | 0x2 | 0x4;

impl StreamRegistration {
    /// Registers `stream`, a `CUstream`; does nothing if this release can't.
    ///
    /// # Errors
    /// The library's error.
    ///
    /// # Safety
    /// The stream lives as long as the value, and each I/O's parameters are set before
    /// [`StreamIo::enqueue`].
    pub unsafe fn new(
        driver: &Driver,
        stream: *mut c_void,
    ) -> Result<Option<StreamRegistration>, InterfaceAbsent> {
        let library = driver.library();
        let (Some(call), Some(_)) = (library.cuFileStreamRegister, library.cuFileStreamDeregister)
        else {
            return Ok(None);
        };
        // SAFETY: the stream lives, by the caller's promise.
        let answer = unsafe { call(stream, ALL_FIXED) };
        driver.check("cuFileStreamRegister", answer, || {
            (String::new(), Diagnosis::machine(Path::new("/")))
        })?;
        Ok(Some(StreamRegistration { driver: driver.clone(), stream }))
    }
}

impl Drop for StreamRegistration {
    fn drop(&mut self) {
        if let Some(call) = self.driver.library().cuFileStreamDeregister {
            // SAFETY: registered by `new`, deregistered once, and the stream lives.
            let _ = unsafe { call(self.stream) };
        }
    }
}
