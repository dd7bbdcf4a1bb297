//! Batches: many I/Os in one call, and an event for each that ended.

use std::ffi::{c_int, c_uint, c_void};
use std::mem::offset_of;
use std::path::Path;
use std::time::Duration;

use crate::calls::{Calls, Unavailable};
use crate::driver::Driver;
use crate::look::Look;
use crate::pool::Room;
use crate::transfer::{Handle, IoError, Piece, Way, moved};

/// One I/O of a submit, as the library reads it: 64 bytes.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    mode: c_int,
    _gap: c_int,
    base: u64,
    file_offset: i64,
    base_offset: i64,
    len: usize,
    handle: *mut c_void,
    opcode: c_int,
    _rest: c_int,
    cookie: u64,
}

/// What the library writes about one I/O that ended: 24 bytes.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Event {
    cookie: u64,
    status: c_int,
    _gap: c_int,
    /// Bytes, or the bits of a negative code.
    returned: usize,
}

const _: () = {
    assert!(size_of::<Entry>() == 64);
    assert!(offset_of!(Entry, base) == 8);
    assert!(offset_of!(Entry, file_offset) == 16);
    assert!(offset_of!(Entry, base_offset) == 24);
    assert!(offset_of!(Entry, len) == 32);
    assert!(offset_of!(Entry, handle) == 40);
    assert!(offset_of!(Entry, opcode) == 48);
    assert!(offset_of!(Entry, cookie) == 56);
    assert!(size_of::<Event>() == 24);
    assert!(offset_of!(Event, status) == 8);
    assert!(offset_of!(Event, returned) == 16);
};

/// The only value of [`Entry::mode`].
const BATCH: c_int = 1;
const READ: c_int = 0;
const WRITE: c_int = 1;

// Bits of `Event::status`.
const INVALID: c_int = 0x04;
const CANCELED: c_int = 0x08;
const COMPLETE: c_int = 0x10;
const TIMEOUT: c_int = 0x20;
const FAILED: c_int = 0x40;
/// An I/O with one of these has ended; one that waits or is under way has another.
const FINAL: c_int = INVALID | CANCELED | COMPLETE | TIMEOUT | FAILED;
/// An event that the library has not written.
const NOTHING: Event = Event { cookie: 0, status: 0, _gap: 0, returned: 0 };
/// cuFile's code for an argument that is out of range.
const INVALID_VALUE: i32 = 5022;

/// What an I/O's event says: bytes, or why there are none.
fn outcome(event: &Event) -> Result<usize, IoError> {
    let returned = moved(event.returned.cast_signed());
    match (event.status, returned) {
        (COMPLETE, returned) => returned,
        (_, Err(error)) => Err(error),
        (INVALID, Ok(_)) => Err(IoError::Code(INVALID_VALUE)),
        (CANCELED, Ok(_)) => Err(IoError::Errno(libc::ECANCELED)),
        (TIMEOUT, Ok(_)) => Err(IoError::Errno(libc::ETIMEDOUT)),
        (_, Ok(_)) => Err(IoError::Errno(libc::EIO)),
    }
}

/// One I/O that ended: the cookie that it was given, and bytes moved.
pub type Ended = (u64, Result<usize, IoError>);

/// A batch handle of the library's. One thread at a time uses it.
///
/// Entries are pushed, submitted together, and come back in any order. It is submitted again only
/// when all of them have come back, so that it never holds more than it was set up for.
#[derive(Debug)]
pub struct Batch {
    driver: Driver,
    raw: *mut c_void,
    entries: Vec<Entry>,
    events: Vec<Event>,
    out: usize,
    /// Given back when the batch is gone.
    _room: Room,
}

// SAFETY: the handle is a name that any thread may use; the calls need one thread at a time, which
// `&mut` gives.
unsafe impl Send for Batch {}

impl Batch {
    /// Sets up a batch of at most `capacity` entries of at most `block` bytes.
    ///
    /// # Errors
    /// The release has no batches, the library refused, or its pool of host memory is too small
    /// for this batch and those that are set up already (it would then wait for ever).
    pub fn set_up(driver: &Driver, capacity: u32, block: usize) -> Result<Batch, Unavailable> {
        let room = driver.room(capacity, block)?;
        let raw = set_up(driver, capacity)?;
        let entries = Vec::with_capacity(capacity as usize);
        let events = vec![NOTHING; capacity as usize];
        Ok(Batch { driver: driver.clone(), raw, entries, events, out: 0, _room: room })
    }

    /// Adds an I/O to the next submit. Its event will bear `cookie`.
    ///
    /// # Errors
    /// An offset past the largest that there is: the entry was not added.
    ///
    /// # Panics
    /// The batch is full, or was submitted and is not idle.
    pub fn push(
        &mut self,
        way: Way,
        handle: &Handle,
        piece: Piece,
        cookie: u64,
    ) -> Result<(), IoError> {
        assert!(self.out == 0 && self.entries.len() < self.events.len(), "a batch is full");
        let (file_offset, base_offset) = piece.offsets()?;
        self.entries.push(Entry {
            mode: BATCH,
            _gap: 0,
            base: piece.base,
            file_offset,
            base_offset,
            len: piece.len,
            handle: handle.raw(),
            opcode: if way == Way::Read { READ } else { WRITE },
            _rest: 0,
            cookie,
        });
        Ok(())
    }

    /// The most entries of one submit.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.events.len()
    }

    /// Entries pushed and not submitted.
    #[must_use]
    pub fn pushed(&self) -> usize {
        if self.out == 0 { self.entries.len() } else { 0 }
    }

    /// Submits what was pushed.
    ///
    /// # Errors
    /// The library's code. Some of the entries may be under way all the same: [`Batch::renew`]
    /// follows.
    ///
    /// # Safety
    /// For each entry, until its event has come or the batch is gone: the handle is registered, and
    /// the piece is memory that cuFile takes, lives, and is used by nobody else; for a write,
    /// whatever filled it has ended. If its base begins a registered buffer, it lies inside.
    pub unsafe fn submit(&mut self) -> Result<(), i32> {
        self.out = self.entries.len();
        let Some(call) = self.driver.library().cuFileBatchIOSubmit else { return Ok(()) };
        // As many as `capacity`, a u32, at most.
        let count = c_uint::try_from(self.entries.len()).unwrap_or(c_uint::MAX);
        let first = self.entries.as_mut_ptr();
        // SAFETY: `first` begins `count` entries, which stay where they are until all of them have
        // ended; pieces and handles are the caller's promise.
        let answer = unsafe { call(self.raw, count, first, 0) };
        if answer.code == 0 { Ok(()) } else { Err(answer.code) }
    }

    /// Appends the I/Os that have ended, each once. Waits until there are `at_least` of them, all
    /// that are out if those are fewer, or `patience` is over.
    ///
    /// # Errors
    /// The library's code: the batch is of no use any more.
    pub fn reap(
        &mut self,
        at_least: usize,
        patience: Duration,
        ended: &mut Vec<Ended>,
    ) -> Result<(), i32> {
        if self.out == 0 {
            return Ok(());
        }
        let Some(call) = self.driver.library().cuFileBatchIOGetStatus else { return Ok(()) };
        // Both are at most the capacity, a u32.
        let least = c_uint::try_from(at_least.min(self.out)).unwrap_or(c_uint::MAX);
        let mut count = c_uint::try_from(self.out).unwrap_or(c_uint::MAX);
        let mut time = libc::timespec {
            tv_sec: patience.as_secs().try_into().unwrap_or(libc::time_t::MAX),
            tv_nsec: patience.subsec_nanos().into(),
        };
        // Release 1.15 leaves the count as it was when the time is over: what has no final status
        // was not told of.
        self.events.fill(NOTHING);
        let events = self.events.as_mut_ptr();
        // SAFETY: the batch is set up; `events` has room for `count`, no more than the capacity,
        // and all pointers are valid during the call.
        let answer = unsafe { call(self.raw, least, &raw mut count, events, &raw mut time) };
        if answer.code != 0 {
            return Err(answer.code);
        }
        let told = &self.events[..(count as usize).min(self.out)];
        let before = ended.len();
        let finals = told.iter().filter(|event| event.status & FINAL != 0);
        ended.extend(finals.map(|event| (event.cookie, outcome(event))));
        self.out -= ended.len() - before;
        if self.out == 0 {
            self.entries.clear();
        }
        Ok(())
    }

    /// Entries submitted whose events have not come.
    #[must_use]
    pub fn out(&self) -> usize {
        self.out
    }

    /// After a submit that was refused: cancels what may be under way of it, appends what ended,
    /// and sets the batch up anew, empty. Ends when nothing has ended for `quiet`.
    ///
    /// # Errors
    /// The library sets up no other.
    pub fn renew(&mut self, quiet: Duration, ended: &mut Vec<Ended>) -> Result<(), Unavailable> {
        self.cancel();
        loop {
            let before = ended.len();
            if self.reap(1, quiet, ended).is_err() || ended.len() == before || self.out == 0 {
                break;
            }
        }
        let capacity = c_uint::try_from(self.events.len()).unwrap_or(c_uint::MAX);
        let new = set_up(&self.driver, capacity)?;
        self.destroy();
        (self.raw, self.out) = (new, 0);
        self.entries.clear();
        Ok(())
    }

    /// Asks the library to give up what it has not begun; the events come all the same.
    fn cancel(&mut self) {
        if let Some(call) = self.driver.library().cuFileBatchIOCancel {
            // SAFETY: the batch is set up.
            let _ = unsafe { call(self.raw) };
        }
    }

    fn destroy(&mut self) {
        if let Some(call) = self.driver.library().cuFileBatchIODestroy {
            // SAFETY: set up once and destroyed once: `renew` puts another in its place.
            unsafe { call(self.raw) };
        }
    }
}

fn set_up(driver: &Driver, capacity: u32) -> Result<*mut c_void, Unavailable> {
    let library = driver.library();
    if let Some(lacks) = library.lacks(Calls::Batch) {
        return Err(lacks.into());
    }
    let name = "cuFileBatchIOSetUp";
    let call = library.cuFileBatchIOSetUp.ok_or_else(|| library.without(name))?;
    let mut raw = std::ptr::null_mut();
    // SAFETY: `raw` is valid for the write of one pointer.
    let answer = unsafe { call(&raw mut raw, capacity) };
    driver.check(name, answer, || {
        (format!("{capacity} I/Os per batch"), Look::machine(Path::new("/")))
    })?;
    Ok(raw)
}

impl Drop for Batch {
    fn drop(&mut self) {
        if self.out > 0 {
            self.cancel();
        }
        self.destroy();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_bytes_or_a_reason() {
        let told = |status, returned: isize| {
            let returned = returned.cast_unsigned();
            outcome(&Event { cookie: 1, status, _gap: 0, returned })
        };
        assert_eq!(told(COMPLETE, 4096), Ok(4096));
        assert_eq!(told(COMPLETE, -5011), Err(IoError::Code(5011)));
        assert_eq!(told(FAILED, -5008), Err(IoError::Code(5008)));
        assert_eq!(told(FAILED, -28), Err(IoError::Errno(libc::ENOSPC)));
        assert_eq!(told(FAILED, 4096), Err(IoError::Errno(libc::EIO)));
        assert_eq!(told(INVALID, 0), Err(IoError::Code(5022)));
        assert_eq!(told(CANCELED, 0), Err(IoError::Errno(libc::ECANCELED)));
        assert_eq!(told(TIMEOUT, 0), Err(IoError::Errno(libc::ETIMEDOUT)));
    }
}
