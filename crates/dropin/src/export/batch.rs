//! Batches.

use std::ffi::c_uint;
use std::time::Duration;

use super::export;
use crate::abi::{BatchEntry, BatchEvent, BatchHandle, CufileError};
use crate::call::{as_error, run_void};
use crate::code::INVALID_VALUE;
use crate::library;

export! {
    /// Makes a batch for `capacity` entries at a time: 1 to `properties.io_batchsize`, 128 unless
    /// set; other numbers are 5022. It may be submitted to repeatedly.
    fn cuFileBatchIOSetUp(batch: *mut BatchHandle, capacity: c_uint) -> CufileError {
        as_error(|| {
            if batch.is_null() {
                return Err(INVALID_VALUE.into());
            }
            let made = library::get().set_up(capacity)?;
            // SAFETY: not null, and valid for the write of one handle.
            unsafe { batch.write(made) };
            Ok(())
        })
    }
}

export! {
    /// Submits `count` entries and returns; never waits for memory or for other entries. All are
    /// accepted or none: 5037 if more would be outstanding than the batch has space for, 5027 if
    /// one has an invalid file handle, 5022 for an invalid batch, mode or operation. An entry that
    /// is impossible (a negative offset, a file not open for it) completes with an event. Files,
    /// modes and memory may be mixed. Flags are ignored.
    fn cuFileBatchIOSubmit(
        batch: BatchHandle,
        count: c_uint,
        entries: *mut BatchEntry,
        _flags: c_uint
    ) -> CufileError, seen by submit {
        as_error(|| {
            if entries.is_null() || count == 0 {
                return Err(INVALID_VALUE.into());
            }
            // SAFETY: not null, and `count` long by the interface.
            let entries = unsafe { std::slice::from_raw_parts(entries, count as usize) };
            // SAFETY: the caller's promise by the interface.
            unsafe { library::get().submit(batch, entries) }
        })
    }
}

export! {
    /// Fetches events: `*count` is the capacity of `events` on entry and the number of events on
    /// return, at least `least` of them, or as many as are outstanding if that is fewer. `least`
    /// above the capacity is 5022. Without a timeout it waits without limit; after a timeout it
    /// succeeds with what there is. Each entry comes once, in order of completion, with its cookie,
    /// status (complete 0x10, failed 0x40, cancelled 0x08) and bytes or negative error.
    fn cuFileBatchIOGetStatus(
        batch: BatchHandle,
        least: c_uint,
        count: *mut c_uint,
        events: *mut BatchEvent,
        timeout: *mut libc::timespec
    ) -> CufileError, seen by status {
        as_error(|| {
            if count.is_null() {
                return Err(INVALID_VALUE.into());
            }
            // SAFETY: not null, and the caller's number.
            let room = unsafe { count.read() };
            if room > 0 && events.is_null() {
                return Err(INVALID_VALUE.into());
            }
            // SAFETY: null or the caller's structure.
            let timeout = unsafe { timeout.as_ref() }.map(duration);
            let ended = library::get().fetch(batch, least, room, timeout)?;
            for (at, event) in ended.iter().enumerate() {
                // SAFETY: there is space for `room` events, and no more have come.
                let slot = unsafe { events.add(at) };
                // SAFETY: as above.
                unsafe { slot.write(*event) };
            }
            // SAFETY: not null, and the caller's number.
            unsafe { count.write(c_uint::try_from(ended.len()).unwrap_or(room)) };
            Ok(())
        })
    }
}

/// A negative time is no time.
fn duration(time: &libc::timespec) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or(0);
    Duration::from_secs(seconds).saturating_add(Duration::from_nanos(nanoseconds))
}

export! {
    /// Cancels entries that have not begun: their events come as cancelled. Entries in flight
    /// continue. 5022 for an invalid batch.
    fn cuFileBatchIOCancel(batch: BatchHandle) -> CufileError {
        as_error(|| library::get().cancel(batch))
    }
}

export! {
    /// Ends a batch: cancels what has not begun and waits for what is in flight, so that the memory
    /// is the caller's again. An invalid batch is ignored.
    fn cuFileBatchIODestroy(batch: BatchHandle) -> (), seen by destroy {
        run_void(|| library::get().destroy(batch));
    }
}
