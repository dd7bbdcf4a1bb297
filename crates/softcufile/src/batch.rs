//! Batches: entries are done by separate threads in an order of their own, and reported as events.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::{c_int, c_uint, c_void};
use std::mem::offset_of;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::api::{Answer, answer};
use crate::cuda::Context;
use crate::error::{CallError, code};
use crate::fault::FaultMode;
use crate::machine::{self, Direction, Machine, Transfer};

/// One I/O of a submit: 64 bytes.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    mode: c_int,
    base: u64,
    file_offset: i64,
    base_offset: i64,
    len: usize,
    handle: usize,
    opcode: c_int,
    cookie: u64,
}

/// The event of a completed entry: 24 bytes.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Event {
    cookie: u64,
    status: c_int,
    returned: isize,
}

const _: () = {
    assert!(size_of::<Entry>() == 64);
    assert!(offset_of!(Entry, base) == 8 && offset_of!(Entry, cookie) == 56);
    assert!(size_of::<Event>() == 24 && offset_of!(Event, returned) == 16);
};

/// The only value of [`Entry::mode`].
const BATCH: c_int = 1;
const CANCELED: c_int = 0x08;
const COMPLETE: c_int = 0x10;
const FAILED: c_int = 0x40;

#[derive(Debug, Default)]
struct State {
    ended: VecDeque<Event>,
    /// Entries whose events have not been fetched, lost ones included.
    outstanding: usize,
    /// Threads at work.
    workers: usize,
    cancelled: bool,
}

#[derive(Debug)]
struct Batch {
    capacity: usize,
    state: Mutex<State>,
    changed: Condvar,
}

impl Batch {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does entries one after another and reports each when it is done.
    fn work(&self, machine: &Machine, entries: &[Entry]) {
        for entry in entries {
            if let Some(event) = self.one(machine, entry) {
                self.lock().ended.push_back(event);
                self.changed.notify_all();
            }
        }
        self.lock().workers -= 1;
        self.changed.notify_all();
    }

    fn one(&self, machine: &Machine, entry: &Entry) -> Option<Event> {
        let cookie = entry.cookie;
        if self.lock().cancelled {
            return Some(Event { cookie, status: CANCELED, returned: 0 });
        }
        let returned = match machine.transfer(entry.transfer()) {
            // No slice is longer than isize::MAX.
            Ok(count) => count.cast_signed(),
            Err(CallError::Code(code, _)) => -(code as isize),
            Err(CallError::Errno(errno)) => -(errno as isize),
            Err(CallError::Lost) => return None,
        };
        let status = if returned < 0 { FAILED } else { COMPLETE };
        Some(Event { cookie, status, returned })
    }
}

impl Entry {
    fn transfer(&self) -> Transfer {
        Transfer {
            direction: if self.opcode == 0 { Direction::Read } else { Direction::Write },
            handle: self.handle,
            base: self.base,
            len: self.len,
            file_offset: self.file_offset,
            buffer_offset: self.base_offset,
        }
    }
}

/// All batches, by their handles.
#[derive(Debug, Default)]
struct Batches {
    by_handle: BTreeMap<usize, Arc<Batch>>,
    last: usize,
}

fn batches() -> MutexGuard<'static, Batches> {
    static BATCHES: Mutex<Batches> = Mutex::new(Batches { by_handle: BTreeMap::new(), last: 0 });
    BATCHES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn find(handle: *mut c_void) -> Result<Arc<Batch>, CallError> {
    let found = batches().by_handle.get(&handle.addr()).cloned();
    found.ok_or(CallError::from(code::INVALID_VALUE))
}

/// Starts entries: the odd ones in one thread, the even ones, last first, in another.
fn begin(batch: &Arc<Batch>, entries: &[Entry], context: Context) -> Result<(), CallError> {
    let machine = machine::get()?;
    let odd: Vec<Entry> = entries.iter().skip(1).step_by(2).copied().collect();
    let even: Vec<Entry> = entries.iter().step_by(2).rev().copied().collect();
    for part in [odd, even] {
        if part.is_empty() {
            continue;
        }
        batch.lock().workers += 1;
        let shared = Arc::clone(batch);
        let body = move || {
            // Without a context each transfer fails and reports that.
            let _ = machine.enter(context);
            shared.work(machine, &part);
        };
        if std::thread::Builder::new().spawn(body).is_err() {
            batch.lock().workers -= 1;
            return Err(code::INTERNAL_ERROR.into());
        }
    }
    Ok(())
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuFileBatchIOSetUp(
    handle: *mut *mut c_void,
    capacity: c_uint,
) -> Answer {
    answer("cuFileBatchIOSetUp", |_| {
        if handle.is_null() || capacity == 0 {
            return Err(code::INVALID_VALUE.into());
        }
        let (state, changed) = (Mutex::default(), Condvar::new());
        let batch = Arc::new(Batch { capacity: capacity as usize, state, changed });
        let mut batches = batches();
        batches.last += 1;
        let made = batches.last;
        batches.by_handle.insert(made, batch);
        // SAFETY: not null, and the caller's promise by the guide.
        unsafe { handle.write(std::ptr::without_provenance_mut(made)) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuFileBatchIOSubmit(
    handle: *mut c_void,
    count: c_uint,
    entries: *const Entry,
    _flags: c_uint,
) -> Answer {
    // Its fault may be `short`, which is no plain failure, so it is queried below.
    answer("", |machine| {
        let batch = find(handle)?;
        if entries.is_null() || count == 0 {
            return Err(code::INVALID_VALUE.into());
        }
        // SAFETY: not null, and `count` entries long by the guide.
        let mut entries = unsafe { std::slice::from_raw_parts(entries, count as usize) };
        if entries.iter().any(|entry| entry.mode != BATCH || !(0..=1).contains(&entry.opcode)) {
            return Err(code::INVALID_VALUE.into());
        }
        let context = machine.context()?;
        let refused = match machine.next("cuFileBatchIOSubmit") {
            None => None,
            // Some entries are in flight, and the call still fails.
            Some(FaultMode::Short) => {
                entries = &entries[..entries.len() / 2];
                Some(CallError::from(code::BATCH_FULL))
            }
            Some(mode) => return Err(mode.refusal()),
        };
        {
            let mut state = batch.lock();
            if state.outstanding + entries.len() > batch.capacity {
                return Err(code::BATCH_FULL.into());
            }
            state.outstanding += entries.len();
        }
        begin(&batch, entries, context)?;
        refused.map_or(Ok(()), Err)
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuFileBatchIOGetStatus(
    handle: *mut c_void,
    least: c_uint,
    count: *mut c_uint,
    events: *mut Event,
    timeout: *const libc::timespec,
) -> Answer {
    answer("cuFileBatchIOGetStatus", |_| {
        let batch = find(handle)?;
        if count.is_null() || events.is_null() {
            return Err(code::INVALID_VALUE.into());
        }
        // SAFETY: not null, and the caller's promise by the guide.
        let buffer = unsafe { count.read() };
        let few = |state: &mut State| state.ended.len() < (least as usize).min(state.outstanding);
        let mut state = if timeout.is_null() {
            let waited = batch.changed.wait_while(batch.lock(), few);
            waited.unwrap_or_else(PoisonError::into_inner)
        } else {
            // SAFETY: not null, and the caller's promise by the guide.
            let time = unsafe { timeout.read() };
            let seconds = Duration::from_secs(time.tv_sec.try_into().unwrap_or(0));
            let time = seconds + Duration::from_nanos(time.tv_nsec.try_into().unwrap_or(0));
            let waited = batch.changed.wait_timeout_while(batch.lock(), time, few);
            waited.unwrap_or_else(PoisonError::into_inner).0
        };
        let mut count_written = 0;
        while count_written < buffer
            && let Some(event) = state.ended.pop_front()
        {
            state.outstanding -= 1;
            // SAFETY: there is space for `room` events by the guide.
            let slot = unsafe { events.add(count_written as usize) };
            // SAFETY: as above.
            unsafe { slot.write(event) };
            count_written += 1;
        }
        // Like NVIDIA's release 1.15: without events the count stays unchanged.
        if count_written > 0 {
            // SAFETY: as above.
            unsafe { count.write(count_written) };
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuFileBatchIOCancel(handle: *mut c_void) -> Answer {
    answer("cuFileBatchIOCancel", |_| {
        find(handle)?.lock().cancelled = true;
        Ok(())
    })
}

/// Waits for entries in progress; those not begun are cancelled.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuFileBatchIODestroy(handle: *mut c_void) {
    let _ = answer("cuFileBatchIODestroy", |_| {
        let batch = find(handle)?;
        batches().by_handle.remove(&handle.addr());
        let mut state = batch.lock();
        state.cancelled = true;
        let busy = |state: &mut State| state.workers > 0;
        let waited = batch.changed.wait_while(state, busy);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        Ok(())
    });
}
