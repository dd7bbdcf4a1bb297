//! I/O in the order of a CUDA stream.

use std::cell::UnsafeCell;
use std::ffi::{c_uint, c_void};
use std::path::Path;

use crate::calls::{Calls, Unavailable};
use crate::driver::Driver;
use crate::look::Look;
use crate::transfer::{Handle, IoError, Piece, Way, moved};

/// What `done` holds until the library has written it: no count of bytes and no code.
const NOT_YET: isize = isize::MIN;

/// What one I/O is told and tells, in memory that stays where it is: the library reads and writes
/// it when the stream comes to the I/O.
#[derive(Debug)]
struct Parameters {
    len: usize,
    file_offset: i64,
    base_offset: i64,
    done: isize,
}

/// I/O in streams, with a place for the parameters of each that is under way.
#[derive(Debug)]
pub struct StreamIo {
    driver: Driver,
    places: Box<[UnsafeCell<Parameters>]>,
}

// SAFETY: the places are plain memory; whoever uses one promises to be alone with it.
unsafe impl Send for StreamIo {}

impl StreamIo {
    /// Room for `places` I/Os under way at once.
    ///
    /// # Errors
    /// The release of the library has no I/O in streams.
    pub fn new(driver: &Driver, places: u32) -> Result<StreamIo, Unavailable> {
        if let Some(lacks) = driver.library().lacks(Calls::Streams) {
            return Err(lacks.into());
        }
        let empty = || Parameters { len: 0, file_offset: 0, base_offset: 0, done: NOT_YET };
        let places = (0..places).map(|_| UnsafeCell::new(empty())).collect();
        Ok(StreamIo { driver: driver.clone(), places })
    }

    /// Puts an I/O behind what is in `stream`, a `CUstream`, with the parameters in `place`.
    ///
    /// # Errors
    /// The library refused it: nothing is in the stream.
    ///
    /// # Safety
    /// The stream lives and its context is current. Until the stream has passed the I/O: `self`
    /// lives, `place` is not used again, the handle is registered, and the piece is memory that
    /// cuFile takes, lives, and is used by nobody else but what the stream orders. If its base
    /// begins a registered buffer, it lies inside.
    pub unsafe fn put(
        &self,
        way: Way,
        handle: &Handle,
        piece: Piece,
        place: u32,
        stream: *mut c_void,
    ) -> Result<(), IoError> {
        let (file_offset, base_offset) = piece.offsets()?;
        let at = self.places[place as usize].get();
        // SAFETY: nobody else uses the place, by the caller's promise, and it is aligned memory of
        // ours.
        unsafe { at.write(Parameters { len: piece.len, file_offset, base_offset, done: NOT_YET }) };
        let library = self.driver.library();
        let call = match way {
            Way::Read => library.cuFileReadAsync,
            Way::Write => library.cuFileWriteAsync,
        };
        // `new` saw both.
        let Some(call) = call else { return Err(IoError::Errno(libc::ENOSYS)) };
        // SAFETY: `at` is valid; only an address is taken.
        let len = unsafe { &raw mut (*at).len };
        // SAFETY: as above.
        let file_offset = unsafe { &raw mut (*at).file_offset };
        // SAFETY: as above.
        let base_offset = unsafe { &raw mut (*at).base_offset };
        // SAFETY: as above.
        let done = unsafe { &raw mut (*at).done };
        // SAFETY: the parameters stay where they are as long as `self`; the rest is the caller's
        // promise.
        let answer =
            unsafe { call(handle.raw(), piece.base, len, file_offset, base_offset, done, stream) };
        if answer.code == 0 { Ok(()) } else { Err(IoError::Code(answer.code)) }
    }

    /// What the I/O in `place` came to: bytes moved, 0 at the end of the file.
    ///
    /// # Errors
    /// The kernel's or the library's refusal; EIO if the library said nothing.
    ///
    /// # Safety
    /// The stream has passed the I/O: an event recorded behind it was reached.
    pub unsafe fn outcome(&self, place: u32) -> Result<usize, IoError> {
        let at = self.places[place as usize].get();
        // SAFETY: `at` is valid; only an address is taken.
        let done = unsafe { &raw const (*at).done };
        // SAFETY: nobody writes it any more, by the caller's promise. Volatile, since somebody else
        // wrote it.
        match unsafe { done.read_volatile() } {
            NOT_YET => Err(IoError::Errno(libc::EIO)),
            returned => moved(returned),
        }
    }
}

/// A stream that the library knows, so that it prepares what it needs once and not at each I/O.
#[derive(Debug)]
pub struct StreamRegistration {
    driver: Driver,
    stream: *mut c_void,
}

// SAFETY: the stream is a name that any thread may use.
unsafe impl Send for StreamRegistration {}

/// Offsets and length of each I/O are known when it is put into the stream.
const ALL_FIXED: c_uint = 0x1 | 0x2 | 0x4;

impl StreamRegistration {
    /// Registers `stream`, a `CUstream`; nothing where this release does not do so.
    ///
    /// # Errors
    /// The library's refusal.
    ///
    /// # Safety
    /// The stream lives as long as the value, and each I/O's parameters are set before
    /// [`StreamIo::put`].
    pub unsafe fn new(
        driver: &Driver,
        stream: *mut c_void,
    ) -> Result<Option<StreamRegistration>, Unavailable> {
        let library = driver.library();
        let (Some(call), Some(_)) = (library.cuFileStreamRegister, library.cuFileStreamDeregister)
        else {
            return Ok(None);
        };
        // SAFETY: the stream lives, by the caller's promise.
        let answer = unsafe { call(stream, ALL_FIXED) };
        driver.check("cuFileStreamRegister", answer, || {
            (String::new(), Look::machine(Path::new("/")))
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
