//! Many transfers at once, whose ends are asked for.
//!
//! Entries wait in the batch. Whoever works on it, threads of ours and those that wait for its
//! events, takes a run of them: neighbours that fit together into one slot and go to or from one
//! GPU, which then cost one launch, or a single one that is large or of the host. Nobody waits for
//! page-locked memory while holding some, so there is always a run that comes to its end, however
//! many entries there are and however little memory.

mod cold;
mod run;

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gpuio_io::clock::Clock;
use gpuio_io::engine::Op;
use thiserror::Error;

use crate::crew::{Owner, Work};
use crate::fault::Fault;
use crate::file::File;
use crate::gpus::Gpus;
use crate::job::Behind;
use crate::moved::Moved;
use crate::place::Place;
use crate::transfer::State;
use run::Taken;

/// One transfer of a batch.
#[derive(Debug, Clone)]
pub struct Entry {
    /// File to memory, or memory to file.
    pub op: Op,
    /// The file.
    pub file: File,
    /// What the memory is.
    pub place: Place,
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
    pub outcome: Result<Moved, Fault>,
}

/// There is no room for so many entries; none was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "{asked} entries for a batch that has room for {room}: fetch events first, submit fewer, or \
     make a larger batch; one of a parent process has no room at all"
)]
pub struct Full {
    /// How many were offered.
    pub asked: usize,
    /// How many there is room for.
    pub room: u32,
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
    ended: VecDeque<Event>,
    /// Threads that sleep until something changes.
    sleepers: usize,
    /// Whether the batch stands in the crew's line.
    lined: bool,
    /// When the entries that wait came.
    since: Option<Clock>,
    /// Threads that wait for events and work on the batch meanwhile.
    helping: usize,
}

impl Queue {
    fn outstanding(&self) -> usize {
        self.waiting.len() + self.running + self.ended.len()
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
    pub unsafe fn submit(&self, entries: Vec<Entry>) -> Result<(), Full> {
        let core = &self.0;
        if !core.state.is_here() {
            return Err(Full { asked: entries.len(), room: 0 });
        }
        let mut queue = core.lock();
        let taken = u32::try_from(queue.outstanding()).unwrap_or(u32::MAX);
        let room = core.capacity.saturating_sub(taken);
        if entries.len() > room as usize {
            return Err(Full { asked: entries.len(), room });
        }
        if entries.is_empty() {
            return Ok(());
        }
        let runs = run::count(&entries);
        if queue.waiting.is_empty() {
            queue.since = Some(Clock::start());
        }
        queue.waiting.extend(entries);
        let is_new = !std::mem::replace(&mut queue.lined, true);
        if queue.sleepers > 0 {
            core.changed.notify_all();
        }
        drop(queue);
        let work: Arc<dyn Work> = Arc::<Core>::clone(core);
        let (crew, gpus) = (&core.state.crew, &core.state.gpus);
        if is_new {
            crew.offer(gpus, &work, runs)
        } else {
            crew.call_spare_hands(gpus, runs)
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
        if core.state.settings.workers_most == 0 && queue.ended.is_empty() {
            // Nobody else does it, and the caller may ask without ever waiting.
            drop(queue);
            core.help(&|| true);
            queue = core.lock();
        }
        loop {
            let wanted = least.min(queue.outstanding());
            if queue.ended.len() >= wanted || over() {
                let count = queue.ended.len().min(most);
                return queue.ended.drain(..count).collect();
            }
            if queue.waiting.is_empty() {
                queue = core.sleep(queue, left());
                continue;
            }
            drop(queue);
            core.help(&|| over() || core.lock().ended.len() >= wanted);
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
        let was_lined = std::mem::replace(&mut queue.lined, false);
        drop(queue);
        if was_lined {
            let work: Arc<dyn Work> = Arc::<Core>::clone(core);
            core.state.crew.strike(&work);
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
        if self.state.is_forked() { 0 } else { self.state.settings.chunk() }
    }

    fn most(&self) -> usize {
        // A launch for each run costs a call of the driver, a letter to the kernel that stays not.
        run::most(self.state.crew.is_crowded() && !self.state.settings.resident)
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
    fn ended(&self, events: Vec<Event>) {
        let mut queue = self.lock();
        queue.running -= events.len();
        queue.ended.extend(events);
        if queue.sleepers > 0 {
            self.changed.notify_all();
        }
    }

    /// What a thread does that waits for events: one thing, and what is next while it is not
    /// `enough`.
    fn help(&self, enough: &dyn Fn() -> bool) {
        match self.take() {
            None => {}
            Some(Taken::One(entry)) => self.ended(vec![self.one(*entry)]),
            Some(Taken::Run(run)) => {
                let more = |kind| if enough() { None } else { self.take_run(kind) };
                let state = self.state;
                let _helping = Helping::new(self);
                state.crew.beside(|| run::carry(&state.gpus, run, more, |ends| self.ended(ends)));
            }
        }
    }

    /// A run like those before, if one is next.
    fn take_run(&self, kind: run::Kind) -> Option<run::Run> {
        let slot = self.slot();
        let mut queue = self.lock();
        let run = run::take_run(&mut queue.waiting, slot, self.most(), Some(kind))?;
        queue.running += run.entries.len();
        Some(run)
    }

    /// Runs one entry to its end, as a call of its own.
    fn one(&self, entry: Entry) -> Event {
        let cookie = entry.cookie;
        Event { cookie, outcome: self.state.run(entry.into()) }
    }

    fn cancel(&self) {
        let mut queue = self.lock();
        let Queue { waiting, ended, .. } = &mut *queue;
        let gone = waiting.drain(..).map(|entry| entry.cookie);
        ended.extend(gone.map(|cookie| Event { cookie, outcome: Err(Fault::Cancelled) }));
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

    fn owner(&self) -> Owner {
        Owner::Either
    }

    fn is_left(&self) -> bool {
        /// Nanoseconds. Who submits and then waits for the ends does the work sooner than a thread
        /// that has to be woken, which would take the processor of another caller besides.
        const SOON: u64 = 200_000;
        let queue = self.lock();
        let is_late = queue.since.as_ref().is_none_or(|since| since.now() > SOON);
        !queue.waiting.is_empty() && queue.helping == 0 && is_late
    }

    fn work(self: Arc<Self>, gpus: &'static Gpus, behind: &mut Behind) {
        behind.settle();
        while let Some(taken) = self.take() {
            match taken {
                Taken::One(entry) => {
                    let cookie = entry.cookie;
                    // This thread has a turn, so it moves the entry's pieces itself.
                    let outcome = self.state.run_with_turn((*entry).into());
                    self.ended(vec![Event { cookie, outcome }]);
                }
                Taken::Run(run) => {
                    run::carry(gpus, run, |kind| self.take_run(kind), |ends| self.ended(ends));
                }
            }
        }
    }

    fn is_over(&self) -> bool {
        let mut queue = self.lock();
        if queue.waiting.is_empty() {
            queue.lined = false;
        }
        !queue.lined
    }
}
