//! Batches: many I/Os in one call, and an event for each completed one.

use std::ffi::{c_int, c_uint, c_void};
use std::path::Path;
use std::time::Duration;

use gpuio_base::catalog::Op;

use crate::cufile::Calls;
use crate::cufile::abi::{
    BatchEntry, BatchEvent, MODE_BATCH, OPCODE_READ, OPCODE_WRITE, STATUS_CANCELED as CANCELED,
    STATUS_COMPLETE as COMPLETE, STATUS_FAILED as FAILED,
};
use crate::cufile::calls::InterfaceAbsent;
use crate::cufile::diagnosis::Diagnosis;
use crate::cufile::driver::Driver;
use crate::cufile::pool::Reservation;
use crate::cufile::transfer::{Handle, IoError, IoRange, moved};

// Bits of `BatchEvent::status` that only NVIDIA's library sets.
const INVALID: c_int = 0x04;
const TIMEOUT: c_int = 0x20;
/// An I/O with one of these has completed; one that waits or is in flight has another.
const FINAL: c_int = INVALID | CANCELED | COMPLETE | TIMEOUT | FAILED;
/// An event that the library has not written.
const NOTHING: BatchEvent = BatchEvent { cookie: 0, status: 0, result: 0 };
/// cuFile's code for an argument that is out of range.
const INVALID_VALUE: i32 = 5022;

/// The result of an event: bytes, or the error.
fn outcome(event: &BatchEvent) -> Result<usize, IoError> {
    let returned = moved(event.result);
    match (event.status, returned) {
        (COMPLETE, returned) => returned,
        (_, Err(error)) => Err(error),
        (INVALID, Ok(_)) => Err(IoError::Code(INVALID_VALUE)),
        (CANCELED, Ok(_)) => Err(IoError::Errno(libc::ECANCELED)),
        (TIMEOUT, Ok(_)) => Err(IoError::Errno(libc::ETIMEDOUT)),
        (_, Ok(_)) => Err(IoError::Errno(libc::EIO)),
    }
}

/// A completed I/O: its cookie, and the bytes moved.
pub type Completion = (u64, Result<usize, IoError>);

/// A batch handle of the library. One thread at a time uses it.
///
/// Entries are pushed, submitted together, and complete in any order. It is submitted again only
/// after all of them have completed, so that it never holds more than its capacity.
#[derive(Debug)]
pub struct Batch {
    driver: Driver,
    raw: *mut c_void,
    entries: Vec<BatchEntry>,
    events: Vec<BatchEvent>,
    in_flight: usize,
    _reservation: Reservation,
}

// SAFETY: the handle is a name that any thread may use; the calls need one thread at a time, which
// `&mut` gives.
unsafe impl Send for Batch {}

impl Batch {
    /// Sets up a batch of at most `capacity` entries of at most `block` bytes.
    ///
    /// # Errors
    /// The release has no batches, the library refused, or its pool of host memory is too small for
    /// this batch and the existing ones (it would then wait forever).
    pub fn set_up(driver: &Driver, capacity: u32, block: usize) -> Result<Batch, InterfaceAbsent> {
        let reservation = driver.reserve(capacity, block)?;
        let raw = set_up(driver, capacity)?;
        let entries = Vec::with_capacity(capacity as usize);
        let events = vec![NOTHING; capacity as usize];
        Ok(Batch {
            driver: driver.clone(),
            raw,
            entries,
            events,
            in_flight: 0,
            _reservation: reservation,
        })
    }

    /// Adds an I/O to the next submit. Its event will carry `cookie`.
    ///
    /// # Errors
    /// The offset is beyond the largest possible one: the entry was not added.
    ///
    /// # Panics
    /// The batch is full, or was submitted and is not idle.
    pub fn push(
        &mut self,
        op: Op,
        handle: &Handle,
        range: IoRange,
        cookie: u64,
    ) -> Result<(), IoError> {
        assert!(self.in_flight == 0 && self.entries.len() < self.events.len(), "a batch is full");
        let (file_offset, buffer_offset) = range.offsets()?;
        self.entries.push(BatchEntry {
            mode: MODE_BATCH,
            base: range.base,
            file_offset,
            buffer_offset,
            len: range.len,
            handle: handle.raw(),
            opcode: if op == Op::Read { OPCODE_READ } else { OPCODE_WRITE },
            cookie,
        });
        Ok(())
    }

    /// The most entries of one submit.
    pub fn capacity(&self) -> usize {
        self.events.len()
    }

    /// Entries pushed and not submitted.
    pub fn pushed(&self) -> usize {
        if self.in_flight == 0 { self.entries.len() } else { 0 }
    }

    /// Submits the pushed entries.
    ///
    /// # Errors
    /// The library's code. Some entries may be in flight nevertheless: call [`Batch::renew`].
    ///
    /// # Safety
    /// For each entry, until its event has come or the batch is dropped: the handle is registered,
    /// and the piece is live memory of a kind that cuFile supports and that nothing else uses; for
    /// a write, its content is complete. If its base begins a registered buffer, it lies inside.
    pub unsafe fn submit(&mut self) -> Result<(), i32> {
        self.in_flight = self.entries.len();
        let Some(call) = self.driver.library().cuFileBatchIOSubmit else { return Ok(()) };
        // As many as `capacity`, a u32, at most.
        let count = c_uint::try_from(self.entries.len()).unwrap_or(c_uint::MAX);
        let first = self.entries.as_mut_ptr();
        // SAFETY: `first` begins `count` entries, which stay in place until all of them have
        // completed; pieces and handles are the caller's promise.
        let answer = unsafe { call(self.raw, count, first, 0) };
        if answer.code == 0 { Ok(()) } else { Err(answer.code) }
    }

    /// Appends completed I/Os, each once. Waits until there are `at_least` of them, or all that are
    /// in flight if these are fewer, or until `timeout`.
    ///
    /// # Errors
    /// The library's code: the batch is unusable from now on.
    pub fn reap(
        &mut self,
        at_least: usize,
        timeout: Duration,
        ended: &mut Vec<Completion>,
    ) -> Result<(), i32> {
        if self.in_flight == 0 {
            return Ok(());
        }
        let Some(call) = self.driver.library().cuFileBatchIOGetStatus else { return Ok(()) };
        // Both are at most the capacity, a u32.
        let least = c_uint::try_from(at_least.min(self.in_flight)).unwrap_or(c_uint::MAX);
        let mut count = c_uint::try_from(self.in_flight).unwrap_or(c_uint::MAX);
        let mut time = libc::timespec {
            tv_sec: timeout.as_secs().try_into().unwrap_or(libc::time_t::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        // At a timeout, release 1.15 leaves the count unchanged: entries without a final status
        // were not reported.
        self.events.fill(NOTHING);
        let events = self.events.as_mut_ptr();
        // SAFETY: the batch is set up; `events` has room for `count`, no more than the capacity,
        // and all pointers are valid during the call.
        let answer = unsafe { call(self.raw, least, &raw mut count, events, &raw mut time) };
        if answer.code != 0 {
            return Err(answer.code);
        }
        let events_read = &self.events[..(count as usize).min(self.in_flight)];
        let before = ended.len();
        let finals = events_read.iter().filter(|event| event.status & FINAL != 0);
        ended.extend(finals.map(|event| (event.cookie, outcome(event))));
        self.in_flight -= ended.len() - before;
        if self.in_flight == 0 {
            self.entries.clear();
        }
        Ok(())
    }

    /// Submitted entries whose events have not come.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// After a failed submit: cancels entries in flight, appends completed ones, and replaces the
    /// batch by an empty one. Ends when nothing has completed for `quiet`.
    ///
    /// # Errors
    /// The library sets up no other.
    pub fn renew(
        &mut self,
        quiet: Duration,
        ended: &mut Vec<Completion>,
    ) -> Result<(), InterfaceAbsent> {
        self.cancel();
        loop {
            let before = ended.len();
            if self.reap(1, quiet, ended).is_err() || ended.len() == before || self.in_flight == 0 {
                break;
            }
        }
        let capacity = c_uint::try_from(self.events.len()).unwrap_or(c_uint::MAX);
        let new = set_up(&self.driver, capacity)?;
        self.destroy();
        (self.raw, self.in_flight) = (new, 0);
        self.entries.clear();
        Ok(())
    }

    /// Requests that the library drops entries that it has not begun; their events still come.
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

fn set_up(driver: &Driver, capacity: u32) -> Result<*mut c_void, InterfaceAbsent> {
    let library = driver.library();
    if let Some(missing_function) = library.missing_function(Calls::Batch) {
        return Err(missing_function.into());
    }
    let name = "cuFileBatchIOSetUp";
    let call = library.cuFileBatchIOSetUp.ok_or_else(|| library.without(name))?;
    let mut raw = std::ptr::null_mut();
    // SAFETY: `raw` is valid for the write of one pointer.
    let answer = unsafe { call(&raw mut raw, capacity) };
    driver.check(name, answer, || {
        (format!("{capacity} I/Os per batch"), Diagnosis::machine(Path::new("/")))
    })?;
    Ok(raw)
}

impl Drop for Batch {
    fn drop(&mut self) {
        if self.in_flight > 0 {
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
        let events_read =
            |status, result: isize| outcome(&BatchEvent { cookie: 1, status, result });
        assert_eq!(events_read(COMPLETE, 4096), Ok(4096));
        assert_eq!(events_read(COMPLETE, -5011), Err(IoError::Code(5011)));
        assert_eq!(events_read(FAILED, -5008), Err(IoError::Code(5008)));
        assert_eq!(events_read(FAILED, -28), Err(IoError::Errno(libc::ENOSPC)));
        assert_eq!(events_read(FAILED, 4096), Err(IoError::Errno(libc::EIO)));
        assert_eq!(events_read(INVALID, 0), Err(IoError::Code(5022)));
        assert_eq!(events_read(CANCELED, 0), Err(IoError::Errno(libc::ECANCELED)));
        assert_eq!(events_read(TIMEOUT, 0), Err(IoError::Errno(libc::ETIMEDOUT)));
    }
}
