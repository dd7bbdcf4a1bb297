//! Batches: many transfers in one call, whose completions are fetched as events.

use std::collections::VecDeque;
use std::ffi::c_int;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gpuio_base::trace::Within;
use gpuio_transfer::{Entry, Event, Fault, File, MemoryLocation, Op};

use crate::abi::{
    BatchEntry, BatchEvent, BatchHandle, Handle, MODE_BATCH, OPCODE_READ, OPCODE_WRITE,
    STATUS_CANCELED, STATUS_COMPLETE, STATUS_FAILED,
};
use crate::code::{BATCH_FULL, CallError, HANDLE_NOT_REGISTERED, INVALID_VALUE};
use crate::config::table;
use crate::handles::HeldHandle;
use crate::io::{Checked, Registered, call_error};
use crate::library::{self, Library};
use crate::recorder::{self, Origin};
use crate::request::UncheckedRequest;
use crate::stats::CountedOp;

pub(crate) struct ProgramBatch {
    inner: gpuio_transfer::Batch,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Entries in flight, indexed by the cookies of the transfers.
    pending: Vec<Option<Pending>>,
    free: Vec<usize>,
    /// Completions of entries that were refused at submission, or that are not fetched yet.
    ready: VecDeque<BatchEvent>,
}

/// The facts needed to complete an entry.
#[derive(Debug)]
struct Pending {
    cookie: u64,
    request: UncheckedRequest,
    gpu: Option<u32>,
    began_ns: u64,
    origin: Origin,
    /// Keeps the file open until the entry has completed.
    file: HeldHandle<'static, Registered>,
}

impl State {
    fn insert(&mut self, pending: Pending) -> u64 {
        let at = self.free.pop().unwrap_or_else(|| {
            self.pending.push(None);
            self.pending.len() - 1
        });
        self.pending[at] = Some(pending);
        at as u64
    }

    fn take(&mut self, mark: u64) -> Option<Pending> {
        let at = usize::try_from(mark).ok()?;
        let pending = self.pending.get_mut(at)?.take()?;
        self.free.push(at);
        Some(pending)
    }
}

impl ProgramBatch {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Entries whose events were not fetched.
    fn outstanding(&self, state: &State) -> usize {
        self.inner.outstanding() as usize + state.ready.len()
    }

    /// Moves available events, up to `most` in all.
    fn take_ready(&self, events: &mut Vec<BatchEvent>, most: usize) {
        let mut state = self.lock();
        let count = state.ready.len().min(most.saturating_sub(events.len()));
        events.extend(state.ready.drain(..count));
    }

    fn has_ready(&self) -> bool {
        !self.lock().ready.is_empty()
    }

    /// Keeps completions until they are fetched. All under the lock: who finds none in the
    /// transfers any more finds them here.
    fn collect_completed(&self, library: &Library) {
        let mut state = self.lock();
        let ended = self.inner.events(0, u32::MAX, Some(Duration::ZERO));
        for event in &ended {
            if let Some(pending) = state.take(event.cookie) {
                state.ready.push_back(finish(library, pending, event));
            }
        }
    }

    /// The event of a completed entry.
    fn event(&self, library: &Library, event: &Event) -> Option<BatchEvent> {
        let pending = self.lock().take(event.cookie)?;
        Some(finish(library, pending, event))
    }
}

/// Counts a completed entry, releases its file and makes its event.
fn finish(library: &Library, pending: Pending, event: &Event) -> BatchEvent {
    let result = event.outcome.as_ref().map_err(call_error);
    let status = match &event.outcome {
        Ok(_) => STATUS_COMPLETE,
        Err(Fault::Cancelled) => STATUS_CANCELED,
        Err(_) => STATUS_FAILED,
    };
    let Pending { cookie, request, gpu, began_ns, origin, file } = pending;
    let moved = result.map(|moved| (moved.bytes, Some(moved.route)));
    library.record(&request, origin, (began_ns, gpu), &moved, false);
    library.stats.operations(CountedOp::BatchProcessed, moved.is_ok(), 1);
    drop(file);
    batch_event(cookie, status, moved.map(|(bytes, _)| bytes))
}

fn batch_event(cookie: u64, status: c_int, result: Result<usize, CallError>) -> BatchEvent {
    // No range of memory is longer than isize::MAX.
    let result = result.map_or_else(CallError::negative, usize::cast_signed);
    BatchEvent { cookie, status, result }
}

/// An entry that passed all checks.
struct Accepted {
    entry: Entry,
    pending: Pending,
}

impl Library {
    /// Makes a batch for so many entries at a time, 1 to `properties.io_batchsize`.
    pub(crate) fn set_up(&self, capacity: u32) -> Result<BatchHandle, CallError> {
        let transfer = self.ensure_open()?;
        let most = self.config(|config| config.sizes[table::BATCH]);
        let result = if capacity == 0 || capacity as usize > most {
            Err(INVALID_VALUE.into())
        } else {
            let (inner, state) = (transfer.batch(capacity), Mutex::default());
            let batch = Arc::new(ProgramBatch { inner, state });
            let mut state = self.lock();
            state.living.retain(|batch| batch.strong_count() > 0);
            state.living.push(Arc::downgrade(&batch));
            self.batches.open(&mut state.free_batches, batch).ok_or(CallError::from(INVALID_VALUE))
        };
        self.stats.operations(CountedOp::BatchSetup, result.is_ok(), 1);
        result
    }

    fn batch(&self, handle: BatchHandle) -> Result<Arc<ProgramBatch>, CallError> {
        let batch = self.batches.hold(handle).ok_or(CallError::from(INVALID_VALUE))?;
        Ok(Arc::clone(&batch))
    }

    /// Submits entries: all of them, or none if one is invalid or the batch is full. An entry whose
    /// transfer is impossible completes as failed, with an event like the others.
    ///
    /// # Safety
    /// As for [`Library::transfer`], until the entries' events were fetched.
    pub(crate) unsafe fn submit(
        &self,
        handle: BatchHandle,
        entries: &[BatchEntry],
    ) -> Result<(), CallError> {
        // SAFETY: the caller's promise.
        let result = unsafe { self.submit_all(handle, entries) };
        self.stats.operations(CountedOp::BatchSubmit, result.is_ok(), 1);
        result
    }

    /// # Safety
    /// As for [`Library::submit`].
    unsafe fn submit_all(
        &self,
        handle: BatchHandle,
        entries: &[BatchEntry],
    ) -> Result<(), CallError> {
        let transfer = self.ensure_open()?;
        let batch = self.batch(handle)?;
        let known = |entry: &BatchEntry| {
            entry.mode == MODE_BATCH && [OPCODE_READ, OPCODE_WRITE].contains(&entry.opcode)
        };
        if entries.is_empty() || !entries.iter().all(known) {
            return Err(INVALID_VALUE.into());
        }
        let library = library::get();
        let hold = |handle: Handle| {
            library.files.hold(handle).ok_or(CallError::from(HANDLE_NOT_REGISTERED))
        };
        let files: Vec<_> =
            entries.iter().map(|entry| hold(entry.handle)).collect::<Result<_, _>>()?;
        let began_ns = gpuio_watch::page::monotonic_ns();
        let batch_number = recorder::batch();
        let (mut accepted, mut ready) = (Vec::with_capacity(entries.len()), Vec::new());
        // Neighbours mostly share file and allocation.
        let (mut near, mut own_count): (Option<MemoryLocation>, Option<(Handle, File)>) =
            (None, None);
        for (entry, held) in entries.iter().zip(files) {
            let request = UncheckedRequest::from(entry);
            let cookie = entry.cookie;
            match self.check(transfer, &held, &request, near) {
                Ok(checked) => {
                    near = Some(checked.location);
                    let file = match &own_count {
                        Some((handle, file)) if *handle == entry.handle => file.clone(),
                        _ => {
                            let file = held.file.with_own_count();
                            own_count = Some((entry.handle, file.clone()));
                            file
                        }
                    };
                    let origin = Origin::here(held.trace_file, Within::Batch(batch_number));
                    let began = (began_ns, origin);
                    accepted.push(accept(cookie, request, &checked, (held, file), began));
                }
                Err(error) => ready.push(batch_event(cookie, STATUS_FAILED, Err(error))),
            }
        }
        let mut state = batch.lock();
        let room = (batch.inner.capacity() as usize).saturating_sub(batch.outstanding(&state));
        if entries.len() > room {
            return Err(BATCH_FULL.into());
        }
        let submitted: Vec<Entry> = accepted
            .into_iter()
            .map(|Accepted { entry, pending }| Entry { cookie: state.insert(pending), ..entry })
            .collect();
        let count = submitted.len() as u64;
        // SAFETY: the caller's promise.
        if unsafe { batch.inner.submit(submitted) }.is_err() {
            // There was space, and all submit under this lock.
            return Err(BATCH_FULL.into());
        }
        state.ready.extend(ready);
        drop(state);
        self.stats.operations(CountedOp::BatchEnqueued, true, count);
        Ok(())
    }

    /// Fetches events: at least `least`, or as many as are outstanding, and at most `most`; returns
    /// at the latest after `timeout`, if given. Each event comes once.
    pub(crate) fn fetch(
        &self,
        handle: BatchHandle,
        least: u32,
        most: u32,
        timeout: Option<Duration>,
    ) -> Result<Vec<BatchEvent>, CallError> {
        let batch = self.batch(handle)?;
        if least > most {
            return Err(INVALID_VALUE.into());
        }
        let (least, most) = (least as usize, most as usize);
        let began_ns = gpuio_watch::page::monotonic_ns();
        let mut events = Vec::new();
        loop {
            batch.take_ready(&mut events, most);
            let passed = gpuio_watch::page::monotonic_ns().saturating_sub(began_ns);
            let left = timeout.map(|time| time.saturating_sub(Duration::from_nanos(passed)));
            let missing = least.saturating_sub(events.len());
            // Does not wait if nothing is missing.
            let left = if missing == 0 { Some(Duration::ZERO) } else { left };
            let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
            let (wanted, room) = (number(missing), number(most - events.len()));
            let ended = batch.inner.events(wanted, room, left);
            events.extend(ended.iter().filter_map(|event| batch.event(self, event)));
            // Another thread may have collected some in the meantime; then there is nothing to wait
            // for in the transfers.
            let is_over = ended.is_empty() && !batch.has_ready();
            if events.len() >= least.max(1) || is_over || room == 0 {
                return Ok(events);
            }
        }
    }

    /// Collects completions before they are fetched, so that files are released.
    pub(crate) fn collect_completed(&self) {
        let living: Vec<Arc<ProgramBatch>> =
            self.lock().living.iter().filter_map(std::sync::Weak::upgrade).collect();
        living.iter().for_each(|batch| batch.collect_completed(self));
    }

    /// Cancels entries that have not begun; their events follow.
    pub(crate) fn cancel(&self, handle: BatchHandle) -> Result<(), CallError> {
        let result = self.batch(handle).map(|batch| batch.inner.cancel());
        self.stats.operations(CountedOp::BatchCancel, result.is_ok(), 1);
        result
    }

    /// Ends a batch: cancels what has not begun and waits for what is in flight.
    pub(crate) fn destroy(&self, handle: BatchHandle) {
        let Some(closing) = self.batches.close(handle) else {
            self.stats.operations(CountedOp::BatchDestroy, false, 1);
            return;
        };
        closing.wait(|| {});
        let batch = closing.finish(&mut self.lock().free_batches);
        if let Some(batch) = batch {
            batch.inner.cancel();
            // Nothing may touch the files or the memory when this returns.
            while batch.inner.outstanding() > 0 {
                let ended = batch.inner.events(1, u32::MAX, None);
                for event in &ended {
                    let _ = batch.event(self, event);
                }
            }
        }
        self.stats.operations(CountedOp::BatchDestroy, true, 1);
    }
}

fn accept(
    cookie: u64,
    request: UncheckedRequest,
    checked: &Checked,
    (held, file): (HeldHandle<'static, Registered>, File),
    (began_ns, origin): (u64, Origin),
) -> Accepted {
    let Checked { location, address, offset } = *checked;
    let (op, len, gpu) = (request.op, request.len, location.device());
    let entry = Entry { op, file, location, address, len, offset, cookie };
    Accepted { entry, pending: Pending { cookie, request, gpu, began_ns, origin, file: held } }
}

impl From<&BatchEntry> for UncheckedRequest {
    fn from(entry: &BatchEntry) -> Self {
        UncheckedRequest {
            op: if entry.opcode == OPCODE_READ { Op::Read } else { Op::Write },
            base: entry.base,
            len: entry.len,
            file_offset: entry.file_offset,
            buffer_offset: entry.buffer_offset,
        }
    }
}
