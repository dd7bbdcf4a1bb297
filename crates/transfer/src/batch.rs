//! Many transfers at once, whose ends are asked for.
//!
//! Entries wait in the batch. Whoever works on it, threads of ours and those that wait for its
//! events, takes a run of them: neighbours that fit together into one slot and go to or from one
//! GPU, which then cost one launch, or a single one that is large or of the host. Nobody waits for
//! page-locked memory while holding some, so there is always a run that comes to its end, however
//! many entries there are and however little memory.

mod run;
mod uring;

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gpuio_io::clock::Clock;
use gpuio_io::engine::Op;
use thiserror::Error;

use crate::api::State;
use crate::device::Devices;
use crate::fault::Fault;
use crate::file::File;
use crate::job::DeferredCompletion;
use crate::memory::MemoryLocation;
use crate::pool::{Work, WorkOwner};
use crate::transferred::Transferred;
use run::Taken;

/// One transfer of a batch.
#[derive(Debug, Clone)]
pub struct Entry {
    /// File to memory, or memory to file.
    pub op: Op,
    /// The file.
    pub file: File,
    /// What the memory is.
    pub location: MemoryLocation,
    /// Its address.
    pub address: u64,
    /// Bytes.
    pub len: usize,
    /// Where in the file, in bytes.
    pub offset: u64,
    /// The caller's mark, which comes back.
    pub cookie: u64,
}

/// The end of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The entry's mark.
    pub cookie: u64,
    /// What became of it.
    pub outcome: Result<Transferred, Fault>,
}

/// There is no room for so many entries; none was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "{requested} entries for a batch that has capacity_left for {capacity_left}: fetch events first, submit fewer, or \
     make a larger batch; one of a parent process has no capacity_left at all"
)]
pub struct BatchFull {
    /// How many were offered.
    pub requested: usize,
    /// How many there is room for.
    pub capacity_left: u32,
}

/// A batch. It may be used from many threads, and again after its events were fetched. Dropping it
/// cancels what has not begun and waits for the rest.
///
/// In a child of `fork(2)` a batch of the parent is empty and takes nothing.
#[derive(Debug)]
pub struct Batch(Arc<Core>);

/// What those who work on a batch share.
#[derive(Debug)]
pub(crate) struct Core {
    state: &'static State,
    capacity: u32,
    queue: Mutex<Queue>,
    /// Something ended, or there is more to do.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Entry>,
    running: usize,
    completed: VecDeque<Event>,
    /// Threads that sleep until something changes.
    sleepers: usize,
    /// Whether the batch stands in the crew's line.
    queued: bool,
    /// When the entries that wait came.
    since: Option<Clock>,
    /// Threads that wait for events and work on the batch meanwhile.
    helping: usize,
}

impl Queue {
    fn outstanding(&self) -> usize {
        self.waiting.len() + self.running + self.completed.len()
    }
}

impl Batch {
    pub(crate) fn new(state: &'static State, capacity: u32) -> Self {
        let (queue, changed) = (Mutex::default(), Condvar::new());
        Self(Arc::new(Core { state, capacity, queue, changed }))
    }

    /// The most entries at once.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        self.0.capacity
    }

    /// Entries whose events were not fetched.
    #[must_use]
    pub fn outstanding(&self) -> u32 {
        if !self.0.state.is_here() {
            return 0;
        }
        u32::try_from(self.0.lock().outstanding()).unwrap_or(u32::MAX)
    }

    /// Takes entries, and returns when threads of ours know of them. Never waits for memory or for
    /// another entry.
    ///
    /// # Errors
    ///
    /// More than the batch has room for, in which case it takes none.
    ///
    /// # Safety
    ///
    /// Until its event was fetched, or the batch was dropped, the memory of each entry is live: of
    /// a read nobody else's, of a write written by nobody else.
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
        }
        queue.waiting.extend(entries);
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

    /// Fetches ends: at least `least` (as many as are outstanding, if that is fewer) and at most
    /// `most`, waiting for them no longer than `timeout`, or as long as it takes without one. Each
    /// comes once, in the order in which entries ended. The waiting thread works on the batch, so a
    /// timeout may be passed by the time that one run takes.
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
            // Nobody else does it, and the caller may ask without ever waiting.
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

    /// Ends all entries that have not begun with [`Fault::Cancelled`]; their events come. What has
    /// begun goes on.
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

    /// Sleeps until something changes, no longer than `most`; may return earlier.
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

    /// Bytes of a slot; none in a child of `fork(2)`, where entries go one by one and those on a
    /// GPU are refused.
    fn slot(&self) -> usize {
        if self.state.is_forked() { 0 } else { self.state.settings.max_piece() }
    }

    fn most(&self) -> usize {
        // A launch for each run costs a call of the driver, a letter to the kernel that stays not.
        run::most(self.state.pool.is_busy() && !self.state.settings.resident)
    }

    /// Takes what is to be done next.
    fn take(&self) -> Option<Taken> {
        let slot = self.slot();
        let mut queue = self.lock();
        let taken = run::take(&mut queue.waiting, slot, self.most())?;
        queue.running += taken.len();
        Some(taken)
    }

    /// Tells ends.
    fn completed(&self, events: Vec<Event>) {
        let mut queue = self.lock();
        queue.running -= events.len();
        queue.completed.extend(events);
        if queue.sleepers > 0 {
            self.changed.notify_all();
        }
    }

    /// What a thread does that waits for events: one thing, and what is next while it is not
    /// `enough`.
    fn help(&self, enough: &dyn Fn() -> bool) {
        match self.take() {
            None => {}
            Some(Taken::One(entry)) => self.completed(vec![self.run_entry(*entry)]),
            Some(Taken::Run(run)) => {
                let more = |kind| if enough() { None } else { self.take_run(kind) };
                let state = self.state;
                let _helping = Helping::new(self);
                state.pool.with_extra_permit(|| {
                    run::execute(&state.devices, run, more, |ends| self.completed(ends))
                });
            }
        }
    }

    /// A run like those before, if one is next.
    fn take_run(&self, kind: run::RunKind) -> Option<run::Run> {
        let slot = self.slot();
        let mut queue = self.lock();
        let run = run::take_run(&mut queue.waiting, slot, self.most(), Some(kind))?;
        queue.running += run.entries.len();
        Some(run)
    }

    /// Runs one entry to its end, as a call of its own.
    fn run_entry(&self, entry: Entry) -> Event {
        let cookie = entry.cookie;
        Event { cookie, outcome: self.state.run(entry.into()) }
    }

    fn cancel(&self) {
        let mut queue = self.lock();
        let Queue { waiting, completed, .. } = &mut *queue;
        let gone = waiting.drain(..).map(|entry| entry.cookie);
        completed.extend(gone.map(|cookie| Event { cookie, outcome: Err(Fault::Cancelled) }));
        if queue.sleepers > 0 {
            self.changed.notify_all();
        }
    }
}

/// A thread that works on a batch while it waits for events.
struct Helping<'a>(&'a Core);

impl<'a> Helping<'a> {
    fn new(core: &'a Core) -> Self {
        core.lock().helping += 1;
        Self(core)
    }
}

impl Drop for Helping<'_> {
    fn drop(&mut self) {
        self.0.lock().helping -= 1;
    }
}

impl Work for Core {
    fn has_more(&self) -> bool {
        !self.lock().waiting.is_empty()
    }

    fn owner(&self) -> WorkOwner {
        WorkOwner::Either
    }

    fn is_starved(&self) -> bool {
        /// Nanoseconds. Who submits and then waits for the ends does the work sooner than a thread
        /// that has to be woken, which would take the processor of another caller besides.
        const SOON: u64 = 200_000;
        let queue = self.lock();
        let is_late = queue.since.as_ref().is_none_or(|since| since.now() > SOON);
        !queue.waiting.is_empty() && queue.helping == 0 && is_late
    }

    fn work(self: Arc<Self>, devices: &'static Devices, deferred: &mut DeferredCompletion) {
        deferred.complete();
        while let Some(taken) = self.take() {
            match taken {
                Taken::One(entry) => {
                    let cookie = entry.cookie;
                    // This thread has a turn, so it moves the entry's pieces itself.
                    let outcome = self.state.run_with_permit((*entry).into());
                    self.completed(vec![Event { cookie, outcome }]);
                }
                Taken::Run(run) => {
                    run::execute(
                        devices,
                        run,
                        |kind| self.take_run(kind),
                        |ends| self.completed(ends),
                    );
                }
            }
        }
    }

    fn may_leave_queue(&self) -> bool {
        let mut queue = self.lock();
        if queue.waiting.is_empty() {
            queue.queued = false;
        }
        !queue.queued
    }
}
