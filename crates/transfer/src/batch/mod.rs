//! Batches: many transfers at once, whose completions are fetched as events.
//!
//! Entries wait in the batch. Workers, and threads that wait for its events, take them from there:
//! either a run of neighbouring small entries of one GPU that fit into one slot and cost one
//! launch, or a single entry that is large or in host memory. No thread waits for page-locked
//! memory while it holds some, so a run always completes, however many entries there are and
//! however little memory.

mod run;
mod uring;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use thiserror::Error;

use crate::Op;
use crate::call::DeferredCompletion;
use crate::clock::Clock;
use crate::device::Devices;
use crate::fault::Fault;
use crate::file::File;
use crate::memory::MemoryLocation;
use crate::pool::{Work, WorkOwner};
use crate::state::State;
use crate::transferred::Transferred;
use run::Taken;

/// One transfer of a batch.
#[derive(Debug, Clone)]
pub struct Entry {
    /// File to memory, or memory to file.
    pub op: Op,
    /// The file.
    pub file: File,
    /// The kind of its memory.
    pub location: MemoryLocation,
    /// Its address.
    pub address: u64,
    /// Length in bytes.
    pub len: usize,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// The caller's value, returned with the event.
    pub cookie: u64,
}

/// The completion of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The entry's value.
    pub cookie: u64,
    /// Its result.
    pub outcome: Result<Transferred, Fault>,
}

/// The batch has too little space left; it accepted no entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "{requested} entries submitted, but the batch has space for {capacity_left}: fetch events \
     first, submit fewer, or make a larger batch. A batch of the parent process has no space."
)]
pub struct BatchFull {
    /// How many were submitted.
    pub requested: usize,
    /// How many it would accept now.
    pub capacity_left: u32,
}

/// A batch. It may be used from many threads, and again after its events were fetched. Dropping it
/// cancels entries that have not begun and waits for the rest.
///
/// In a child of `fork(2)` the parent's batch is empty and accepts nothing.
#[derive(Debug)]
pub struct Batch(Arc<Core>);

/// The shared state of the threads that work on a batch.
#[derive(Debug)]
pub(crate) struct Core {
    state: &'static State,
    capacity: u32,
    queue: Mutex<Queue>,
    /// How many entries wait, as the queue says: read without its lock, which the batch's threads
    /// need.
    waiting: AtomicUsize,
    /// Threads that work on the batch while they wait for its events.
    helping: AtomicUsize,
    /// Whether the thread that waited last worked on the batch. Then it will again, and workers
    /// need not.
    self_served: AtomicBool,
    /// An entry completed, or there is more to do.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Entry>,
    running: usize,
    completed: VecDeque<Event>,
    /// Threads that sleep until something changes.
    sleepers: usize,
    /// Whether the batch is in the pool's queue.
    queued: bool,
    /// When the waiting entries were submitted.
    since: Option<Clock>,
    /// Whether a thread worked on the batch while it waited, since entries were submitted to the
    /// empty batch.
    was_helped: bool,
}

impl Queue {
    fn outstanding(&self) -> usize {
        self.waiting.len() + self.running + self.completed.len()
    }
}

impl Batch {
    pub(crate) fn new(state: &'static State, capacity: u32) -> Self {
        Self(Arc::new(Core {
            state,
            capacity,
            queue: Mutex::default(),
            waiting: AtomicUsize::new(0),
            helping: AtomicUsize::new(0),
            self_served: AtomicBool::new(false),
            changed: Condvar::new(),
        }))
    }

    /// The most entries at a time.
    pub fn capacity(&self) -> u32 {
        self.0.capacity
    }

    /// Entries whose events were not fetched yet.
    pub fn outstanding(&self) -> u32 {
        if !self.0.state.is_here() {
            return 0;
        }
        u32::try_from(self.0.lock().outstanding()).unwrap_or(u32::MAX)
    }

    /// Accepts entries and returns once workers can take them. Never waits for memory or for
    /// another entry.
    ///
    /// # Errors
    /// More entries than the batch has space for; it then accepts none.
    ///
    /// # Safety
    /// Until its event was fetched, or the batch was dropped, the memory of each entry is live.
    /// Nothing else uses the memory of a read, and nothing else writes the memory of a write.
    pub unsafe fn submit(&self, entries: Vec<Entry>) -> Result<(), BatchFull> {
        let core = &self.0;
        if !core.state.is_here() {
            return Err(BatchFull { requested: entries.len(), capacity_left: 0 });
        }
        let mut queue = core.lock();
        let taken = u32::try_from(queue.outstanding()).unwrap_or(u32::MAX);
        let capacity_left = core.capacity.saturating_sub(taken);
        if entries.len() > capacity_left as usize {
            return Err(BatchFull { requested: entries.len(), capacity_left });
        }
        if entries.is_empty() {
            return Ok(());
        }
        let runs = run::count(&entries);
        if queue.waiting.is_empty() {
            queue.since = Some(Clock::start());
            let was_helped = std::mem::take(&mut queue.was_helped);
            core.set_self_served(was_helped);
        }
        queue.waiting.extend(entries);
        core.note_waiting(&queue);
        let is_new = !std::mem::replace(&mut queue.queued, true);
        if queue.sleepers > 0 {
            core.changed.notify_all();
        }
        drop(queue);
        let work: Arc<dyn Work> = Arc::<Core>::clone(core);
        let (pool, devices) = (&core.state.pool, &core.state.devices);
        if is_new {
            pool.submit(devices, &work, runs)
        } else {
            pool.wake_spare_workers(devices, runs)
        }
        Ok(())
    }

    /// Fetches events: at least `least` (or all outstanding ones, if these are fewer) and at most
    /// `most`, waiting for at most `timeout`, or without limit. Each event is returned once, in
    /// order of completion. The waiting thread works on the batch, so it may exceed the timeout by
    /// the time of one run.
    #[must_use]
    pub fn events(&self, least: u32, most: u32, timeout: Option<Duration>) -> Vec<Event> {
        let core = &self.0;
        if !core.state.is_here() {
            return Vec::new();
        }
        let clock = Clock::start();
        let left = || timeout.map(|most| most.saturating_sub(Duration::from_nanos(clock.now())));
        let over = || left().is_some_and(|left| left.is_zero());
        let (least, most) = (least.min(most) as usize, most as usize);
        let mut queue = core.lock();
        if core.state.settings.max_workers == 0 && queue.completed.is_empty() {
            // There are no workers, and the caller may poll without ever waiting.
            drop(queue);
            core.help(&|| true);
            queue = core.lock();
        }
        loop {
            let wanted = least.min(queue.outstanding());
            if queue.completed.len() >= wanted || over() {
                let count = queue.completed.len().min(most);
                return queue.completed.drain(..count).collect();
            }
            if queue.waiting.is_empty() {
                queue = core.sleep(queue, left());
                continue;
            }
            drop(queue);
            core.help(&|| over() || core.lock().completed.len() >= wanted);
            queue = core.lock();
        }
    }

    /// Ends all entries that have not begun with [`Fault::Cancelled`]; their events follow. Entries
    /// that have begun continue.
    pub fn cancel(&self) {
        if self.0.state.is_here() {
            self.0.cancel();
        }
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        let core = &self.0;
        if !core.state.is_here() {
            return;
        }
        core.cancel();
        let mut queue = core.lock();
        while queue.running > 0 {
            queue = core.sleep(queue, None);
        }
        let was_queued = std::mem::replace(&mut queue.queued, false);
        core.set_self_served(false);
        drop(queue);
        if was_queued {
            let work: Arc<dyn Work> = Arc::<Core>::clone(core);
            core.state.pool.remove(&work);
        }
    }
}

impl Core {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Copies how many entries wait; with the queue locked.
    fn note_waiting(&self, queue: &Queue) {
        self.waiting.store(queue.waiting.len(), Ordering::SeqCst);
    }

    /// With the queue locked.
    fn set_self_served(&self, is_now: bool) {
        if self.self_served.swap(is_now, Ordering::SeqCst) != is_now {
            self.state.pool.count_self_served(is_now);
        }
    }

    /// Sleeps until something changes, at most `most`; may return earlier.
    fn sleep<'a>(
        &self,
        mut queue: MutexGuard<'a, Queue>,
        most: Option<Duration>,
    ) -> MutexGuard<'a, Queue> {
        queue.sleepers += 1;
        queue = match most {
            None => self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner),
            Some(most) => {
                self.changed.wait_timeout(queue, most).unwrap_or_else(PoisonError::into_inner).0
            }
        };
        queue.sleepers -= 1;
        queue
    }

    /// Bytes of a slot; 0 in a child of `fork(2)`, where entries run one by one and those on a GPU
    /// are refused.
    fn slot(&self) -> usize {
        if self.state.is_forked() { 0 } else { self.state.settings.max_piece() }
    }

    fn most(&self) -> usize {
        // Long runs save launches. A command to the resident copy kernel costs no driver call.
        run::most(self.state.pool.is_busy() && !self.state.settings.resident)
    }

    /// Takes what is to be done next.
    fn take(&self) -> Option<Taken> {
        let slot = self.slot();
        let mut queue = self.lock();
        let taken = run::take(&mut queue.waiting, slot, self.most())?;
        self.note_waiting(&queue);
        queue.running += taken.len();
        Some(taken)
    }

    /// Records completions.
    fn completed(&self, events: Vec<Event>) {
        let mut queue = self.lock();
        queue.running -= events.len();
        queue.completed.extend(events);
        if queue.sleepers > 0 {
            self.changed.notify_all();
        }
    }

    /// Work of a thread that waits for events: one run or entry, and more runs until `enough`.
    fn help(&self, enough: &dyn Fn() -> bool) {
        match self.take() {
            None => {}
            Some(Taken::One(entry)) => self.completed(vec![self.run_entry(*entry)]),
            Some(Taken::Run(run)) => {
                let more = |kind| if enough() { None } else { self.take_run(kind) };
                let state = self.state;
                let _helping = Helping::new(self);
                state.pool.with_extra_permit(|| {
                    run::execute(state, run, more, |ends| self.completed(ends))
                });
            }
        }
    }

    /// A run like the previous ones, if one is next.
    fn take_run(&self, kind: run::RunKind) -> Option<run::Run> {
        let slot = self.slot();
        let mut queue = self.lock();
        let run = run::take_run(&mut queue.waiting, slot, self.most(), Some(kind))?;
        self.note_waiting(&queue);
        queue.running += run.entries.len();
        Some(run)
    }

    /// Runs one entry to completion, as a call of its own.
    fn run_entry(&self, entry: Entry) -> Event {
        let cookie = entry.cookie;
        Event { cookie, outcome: self.state.run(entry.into()) }
    }

    fn cancel(&self) {
        let mut queue = self.lock();
        let Queue { waiting, completed, .. } = &mut *queue;
        let gone = waiting.drain(..).map(|entry| entry.cookie);
        completed.extend(gone.map(|cookie| Event { cookie, outcome: Err(Fault::Cancelled) }));
        self.note_waiting(&queue);
        if queue.sleepers > 0 {
            self.changed.notify_all();
        }
    }
}

/// A thread that works on a batch while it waits for events.
struct Helping<'a>(&'a Core);

impl<'a> Helping<'a> {
    fn new(core: &'a Core) -> Self {
        core.helping.fetch_add(1, Ordering::SeqCst);
        core.lock().was_helped = true;
        Self(core)
    }
}

impl Drop for Helping<'_> {
    fn drop(&mut self) {
        self.0.helping.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Work for Core {
    fn has_more(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0
    }

    fn owner(&self) -> WorkOwner {
        WorkOwner::Either
    }

    fn is_starved(&self) -> bool {
        /// Nanoseconds. A thread that submits and then waits does the work sooner than a worker
        /// that has to be woken, which would also take the processor of another caller.
        const SOON: u64 = 200_000;
        if !self.has_more() || self.helping.load(Ordering::SeqCst) > 0 {
            return false;
        }
        let queue = self.lock();
        let is_late = queue.since.as_ref().is_none_or(|since| since.now() > SOON);
        !queue.waiting.is_empty() && is_late
    }

    fn work(self: Arc<Self>, _: &'static Devices, deferred: &mut DeferredCompletion) {
        deferred.complete();
        while let Some(taken) = self.take() {
            match taken {
                Taken::One(entry) => {
                    let cookie = entry.cookie;
                    // This thread holds a permit, so it moves the entry's pieces itself.
                    let outcome = self.state.run_with_permit((*entry).into());
                    self.completed(vec![Event { cookie, outcome }]);
                }
                Taken::Run(run) => {
                    run::execute(
                        self.state,
                        run,
                        |kind| self.take_run(kind),
                        |ends| self.completed(ends),
                    );
                }
            }
        }
    }

    fn is_self_served(&self) -> bool {
        self.self_served.load(Ordering::SeqCst)
    }

    fn may_leave_queue(&self) -> bool {
        if self.has_more() {
            return false;
        }
        let mut queue = self.lock();
        if queue.waiting.is_empty() {
            queue.queued = false;
        }
        !queue.queued
    }
}
