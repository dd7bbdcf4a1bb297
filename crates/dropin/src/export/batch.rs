//! Batches.

use std::ffi::c_uint;
use std::time::Duration;

use super::export;
use crate::abi::{BatchEntry, BatchEvent, BatchHandle, CufileError};
use crate::call::{as_error, run_void};
use crate::code::INVALID_VALUE;
use crate::library;

export! {
    /// Makes a batch for `capacity` entries at once: 1 to `properties.io_batchsize`, 128 unless
    /// set; other numbers are 5022. It may be submitted to again and again.
    fn cuFileBatchIOSetUp(batch: *mut BatchHandle, capacity: c_uint) -> CufileError {
        as_error(|| {
            if batch.is_null() {
                return Err(INVALID_VALUE.into());
            }
            let made = library::get().set_up(capacity)?;
            // SAFETY: not null, and the caller's room for one handle.
            unsafe { batch.write(made) };
            Ok(())
        })
    }
}

export! {
    /// Puts `count` entries under way and returns; never waits for memory or for other entries. All
    /// are taken or none: 5037 where more would be outstanding than the batch has room for, 5027
    /// where one names no file, 5022 for a batch, mode or operation that is none. An entry that
    /// can't be done (a negative offset, a file not open for it) ends with an event. Files,
    /// modes and memory may be mixed. Flags are not looked at.
    fn cuFileBatchIOSubmit(
        batch: BatchHandle,
        count: c_uint,
        entries: *mut BatchEntry,
        _flags: c_uint
    ) -> CufileError {
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
    /// Fetches ends of entries: `*count` is room on the way in and how many came on the way out, at
    /// least `least` of them, or as many as are outstanding if that is fewer. `least` above the
    /// room is 5022. Without a timeout it waits as long as it takes; after one it succeeds with
    /// what there is. Each entry comes once, in the order in which they ended, with its cookie,
    /// status (complete 0x10, failed 0x40, cancelled 0x08) and bytes or negative error.
    fn cuFileBatchIOGetStatus(
        batch: BatchHandle,
        least: c_uint,
        count: *mut c_uint,
        events: *mut BatchEvent,
        timeout: *mut libc::timespec
    ) -> CufileError {
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
                // SAFETY: there is room for `room` events, and no more have come.
                let place = unsafe { events.add(at) };
                // SAFETY: as above.
                unsafe { place.write(*event) };
            }
            // SAFETY: not null, and the caller's number.
            unsafe { count.write(c_uint::try_from(ended.len()).unwrap_or(room)) };
            Ok(())
        })
    }
}

/// A time that went backwards is none.
fn duration(time: &libc::timespec) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or(0);
    Duration::from_secs(seconds).saturating_add(Duration::from_nanos(nanoseconds))
}

export! {
    /// Ends entries that have not begun: their events come as cancelled. Those under way end as
    /// they would have. 5022 for a batch that is none.
    fn cuFileBatchIOCancel(batch: BatchHandle) -> CufileError {
        as_error(|| library::get().cancel(batch))
    }
}

export! {
    /// Ends a batch: what has not begun is cancelled, what is under way waited for, so that the
    /// memory is the caller's again. One that is none is left alone.
    fn cuFileBatchIODestroy(batch: BatchHandle) -> () {
        run_void(|| library::get().destroy(batch));
    }
}
