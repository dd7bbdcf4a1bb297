//! Who works on large calls: callers and threads of our own, no more at once than pays.
//!
//! A *turn* is the right to move bytes; there are `max_active`. A caller that gets one works on its
//! own call, and lines the call up where it has more than one piece, so that threads of ours with
//! turns of their own help. A caller that gets none lines its call up and sleeps, until the call is
//! done by others or a turn is passed on to it. Where calls are many, reads are not begun by their
//! callers at all: to wake one takes a tenth of a call, in which its turn moves nothing, and more
//! threads than saturate the link only wait for it. A few threads of ours then go from call to
//! call. Turns go to those in line, in its order; work that no caller does itself, such as a batch,
//! gets one that is kept until a thread of ours comes.
//!
//! No wake-up is lost. Who wants a turn (1) lines up and (2) looks whether a turn is free; who has
//! one (3) gives it back and (4) looks whether somebody is in line. All four are sequentially
//! consistent, so either (2) sees (3) or (4) sees (1). A turn is passed on with the line locked,
//! once for each call, and the caller looks for it with the line locked before it returns, so none
//! goes to a call that is over.

mod workers;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::device::Devices;
use crate::file::Bottleneck;
use crate::job::{DeferredCompletion, Executors, Job, catch_panic};
use crate::settings::Settings;
use workers::Workers;

/// What stands in the line.
pub(crate) trait Work: std::fmt::Debug + Send + Sync {
    /// Whether there is something to do that nobody has taken.
    fn has_more(&self) -> bool;

    /// Does as much of it as nobody else takes, on any thread that has a turn. What is under way to
    /// the GPU then is left in `behind`, where what was there before was settled meanwhile.
    fn work(self: Arc<Self>, devices: &'static Devices, deferred: &mut DeferredCompletion);

    /// Who does it.
    fn owner(&self) -> WorkOwner;

    /// Whether it has waited for so long that nobody but a thread of ours with a turn that is kept
    /// for it will do it soon. Request of what is not a caller's.
    fn is_starved(&self) -> bool {
        false
    }

    /// Whether nobody has begun it.
    fn is_unstarted(&self) -> bool {
        true
    }

    /// Whether a caller sleeps until [`Work::grant_permit`].
    fn wants_permit(&self) -> bool {
        false
    }

    /// Passes a turn on to that caller.
    fn grant_permit(&self) {}

    /// Whether it may be taken out of the line: nothing is to do, and who has more lines up again.
    /// Called with the line locked.
    fn may_leave_queue(&self) -> bool {
        false
    }
}

/// Who does work that stands in the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkOwner {
    /// The caller who waits for it, with a turn; threads of ours help.
    Caller,
    /// Threads of ours; the caller sleeps.
    Workers,
    /// Threads of ours, or whoever asks for its end.
    Either,
}

/// What moves the bytes between page-locked memory and the caller's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CopyMethod {
    /// Nothing: the file is read into the caller's memory, which is the host's.
    Host,
    /// A kernel that stays on the GPU.
    Kernel,
    /// The GPU's copy engines.
    CopyEngines,
}

/// The right to move bytes, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Permit<'a> {
    pool: Option<&'a WorkerPool>,
    /// Whether a thread of ours is to be woken for what is in line: not by one that looks itself.
    notifies: bool,
}

impl Permit<'_> {
    /// Gives it back now.
    pub(crate) fn release(&mut self) {
        if let Some(pool) = self.pool.take() {
            pool.release(self.notifies);
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.release();
    }
}

/// The turns, the line, and our own threads.
#[derive(Debug)]
pub(crate) struct WorkerPool {
    max_active: u32,
    /// While so many are busy threads of ours help nobody: there is no processor for them.
    worker_permits: u32,
    /// While so many calls are under way, reads are left to as many threads of ours.
    oversubscription: u32,
    held: AtomicU32,
    /// Turns kept for a thread of ours to come, none or one.
    reserved: AtomicU32,
    /// Calls that want helpers, or a turn for their caller, in the order in which they came.
    queue: Mutex<VecDeque<Arc<dyn Work>>>,
    /// The length of the line.
    queue_len: AtomicU32,
    /// Calls between their begin and their end.
    calls: AtomicU32,
    workers: Workers,
}

impl WorkerPool {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            max_active: settings.max_active.max(1),
            worker_permits: settings.max_active.min(settings.max_workers).max(1),
            oversubscription: if settings.oversubscription <= settings.max_workers {
                settings.oversubscription
            } else {
                0
            },
            held: AtomicU32::new(0),
            reserved: AtomicU32::new(0),
            queue: Mutex::default(),
            queue_len: AtomicU32::new(0),
            calls: AtomicU32::new(0),
            workers: Workers::new(settings.max_workers),
        }
    }

    /// Who shall move the pieces of a call, and how long those are: `len` bytes that go at this
    /// pace to or from that end, by pieces of `most` at most; `sleeps` if the caller may.
    pub(crate) fn split(
        &self,
        len: u64,
        bottleneck: Bottleneck,
        method: CopyMethod,
        sleeps: bool,
        most: u64,
    ) -> (Executors, u64) {
        /// Below that the driver's calls take longer than the copies.
        const LEAST: u64 = 128 << 10;
        /// A device is asked for no less: each time costs an interrupt and a sleep.
        const MIN_FROM_DEVICE: u64 = 256 << 10;
        /// Pieces for each turn, so that the last ones end at about the same time.
        const EACH: u64 = 4;
        const PARTS: u64 = 4;
        /// The fewest that keep the GPU's part behind the processor's, which takes longer: half as
        /// much moves 6 % less, twice as much 4 %.
        const HANDED: u64 = 512 << 10;
        /// What a copy engine moves at nearly its full rate, while copies of 128 KiB reach half of
        /// it: each costs some microseconds in the driver, whose lock all threads share.
        const MIN_PER_ENGINE: u64 = 512 << 10;
        /// From so many calls on pieces of that length are enough to keep the engines busy.
        const SEVERAL: u64 = 4;
        let calls = u64::from(self.calls.load(Ordering::Relaxed)) + 1;
        let even = |each: u64| len.saturating_mul(calls) / (each * u64::from(self.worker_permits));
        let parts = (len / PARTS).max(LEAST);
        let (executors, piece) = match bottleneck {
            Bottleneck::Cpu if method == CopyMethod::CopyEngines && calls >= SEVERAL => {
                (Executors::CallerAndWorkers, MIN_PER_ENGINE)
            }
            Bottleneck::Cpu
                if method == CopyMethod::Kernel && sleeps && self.is_oversubscribed() =>
            {
                (Executors::WorkersOnly, HANDED)
            }
            // In parts even among many, for one to be copied while the next is read.
            Bottleneck::Cpu => (Executors::CallerAndWorkers, even(EACH).clamp(LEAST, parts)),
            Bottleneck::Device => (Executors::CallerAndWorkers, even(1).max(MIN_FROM_DEVICE)),
            Bottleneck::FileLock if calls == 1 => (Executors::CallerOnly, parts),
            Bottleneck::FileLock => (Executors::CallerOnly, most),
        };
        (executors, piece.min(most).next_power_of_two())
    }

    /// Whether calls are so many that their callers would only take each other's processors.
    fn is_oversubscribed(&self) -> bool {
        self.oversubscription > 0 && self.calls.load(Ordering::Relaxed) >= self.oversubscription
    }

    /// Has the job's pieces moved, by this thread or others, and returns when they have landed.
    pub(crate) fn run(&'static self, devices: &'static Devices, job: &Arc<Job>) {
        let work: Arc<dyn Work> = Arc::<Job>::clone(job);
        self.calls.fetch_add(1, Ordering::Relaxed);
        if job.executors() != Executors::WorkersOnly || !self.delegate(devices, job, &work) {
            self.run_in_caller(devices, job, &work);
        }
        self.calls.fetch_sub(1, Ordering::Relaxed);
    }

    /// Has threads of ours do the job while this one sleeps; false if there are none.
    fn delegate(&'static self, devices: &'static Devices, job: &Job, work: &Arc<dyn Work>) -> bool {
        if self.held.load(Ordering::Relaxed) < self.oversubscription {
            self.workers.start(1, || move || self.work_loop(devices));
        }
        if !self.workers.any_started() {
            return false;
        }
        self.enqueue(work);
        // Who is busy looks at the line when he has done. A turn that is free beside is for one
        // more.
        if self.held.load(Ordering::SeqCst) < self.oversubscription {
            self.workers.notify(1);
        }
        job.sleep();
        self.remove(work);
        true
    }

    fn run_in_caller(
        &'static self,
        devices: &'static Devices,
        job: &Arc<Job>,
        work: &Arc<dyn Work>,
    ) {
        if let Some(mut permit) = self.try_acquire() {
            self.work_with_help(devices, job, work, &mut permit);
        } else {
            job.set_waiting();
            self.enqueue(work);
            if let Some(mut permit) = self.try_acquire() {
                Self::work(devices, job, &mut permit);
            } else {
                job.sleep_until_permit();
            }
            self.remove(work);
            if job.has_permit() {
                Self::work(devices, job, &mut Permit { pool: Some(self), notifies: true });
            }
        }
        job.wait();
    }

    /// Moves what nobody else takes of a job.
    fn work(devices: &'static Devices, job: &Arc<Job>, permit: &mut Permit<'_>) {
        let mut deferred = DeferredCompletion::default();
        Arc::clone(job).work(devices, &mut deferred);
        // What is left is to wait for the GPU, which takes no more of the memory's bandwidth than
        // it must: who waits for a turn may wake up meanwhile.
        permit.release();
        deferred.complete();
    }

    /// As [`WorkerPool::run`], for a thread that has a turn and keeps it.
    pub(crate) fn run_with_permit(&'static self, devices: &'static Devices, job: &Arc<Job>) {
        let work: Arc<dyn Work> = Arc::<Job>::clone(job);
        self.work_with_help(devices, job, &work, &mut Permit { pool: None, notifies: false });
        job.wait();
    }

    /// Works on a job and has others help where it has more than one piece.
    fn work_with_help(
        &'static self,
        devices: &'static Devices,
        job: &Arc<Job>,
        work: &Arc<dyn Work>,
        permit: &mut Permit<'_>,
    ) {
        let helped = job.pieces() > 1 && job.executors() != Executors::CallerOnly;
        if helped {
            self.enqueue(work);
            self.wake_workers(devices, job.pieces() - 1);
        }
        Self::work(devices, job, permit);
        if helped {
            self.remove(work);
        }
    }

    /// Lines work up for our own threads, as many as `wanted`, and returns at once.
    pub(crate) fn submit(
        &'static self,
        devices: &'static Devices,
        work: &Arc<dyn Work>,
        wanted: u64,
    ) {
        self.enqueue(work);
        // One at least has to be there, for a turn that is kept for it.
        self.workers.start(1, || move || self.work_loop(devices));
        self.wake_spare_workers(devices, wanted);
    }

    /// As [`WorkerPool::wake_workers`] for work whose callers are mostly about to do it themselves. For
    /// each thread that is busy one is left out: it will be back with more, and a thread too many
    /// takes the processor of one that somebody waits for, for some milliseconds.
    pub(crate) fn wake_spare_workers(&'static self, devices: &'static Devices, wanted: u64) {
        self.wake_workers(devices, wanted.min(self.spare_workers().into()));
    }

    fn spare_workers(&self) -> u32 {
        self.worker_permits.saturating_sub(self.held.load(Ordering::SeqCst).saturating_mul(2))
    }

    /// Does work with a turn beyond the limit, for a thread that would only sleep otherwise: what
    /// it does is bound by system calls and not by the bandwidth of memory.
    pub(crate) fn with_extra_permit<T>(&self, work: impl FnOnce() -> T) -> T {
        self.held.fetch_add(1, Ordering::SeqCst);
        let _turn = Permit { pool: Some(self), notifies: true };
        work()
    }

    /// Takes a turn, if one is free.
    fn try_acquire(&self) -> Option<Permit<'_>> {
        let entered = self.try_acquire_below(self.max_active);
        entered.then(|| Permit { pool: Some(self), notifies: true })
    }

    /// Whether more threads are at work than ours would join.
    pub(crate) fn is_busy(&self) -> bool {
        self.held.load(Ordering::Relaxed) >= self.worker_permits
    }

    fn try_acquire_below(&self, most: u32) -> bool {
        let more = |held| (held < most).then_some(held + 1);
        self.held.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).is_ok()
    }

    /// Gives a turn back, or passes it on.
    fn release(&self, notifies: bool) {
        if self.queue_len.load(Ordering::SeqCst) == 0 {
            self.held.fetch_sub(1, Ordering::SeqCst);
            if self.queue_len.load(Ordering::SeqCst) == 0
                || !self.try_acquire_below(self.max_active)
            {
                return;
            }
        }
        let queue = self.lock();
        let next = queue.iter().find(|work| self.reserves_for(work) || work.wants_permit());
        if let Some(next) = next {
            if next.wants_permit() {
                next.grant_permit();
                return;
            }
            // With the line locked, so no second one is kept.
            self.reserved.store(1, Ordering::SeqCst);
            drop(queue);
            self.workers.notify(1);
            return;
        }
        // With the line locked: who lines up after this finds the turn.
        let held = self.held.fetch_sub(1, Ordering::SeqCst);
        let spare = self.spare_workers() > 0;
        let waits =
            |work: &Arc<dyn Work>| work.has_more() && (spare || work.owner() != WorkOwner::Either);
        let wanted = notifies && held <= self.worker_limit() && queue.iter().any(waits);
        drop(queue);
        if wanted {
            self.workers.notify(1);
        }
    }

    /// Whether work has nobody but threads of ours, as its caller sleeps or went away, and the next
    /// turn shall be kept for one of them: callers that come again and again would take every turn
    /// before it is awake.
    fn reserves_for(&self, work: &Arc<dyn Work>) -> bool {
        work.owner() != WorkOwner::Caller
            && self.reserved.load(Ordering::SeqCst) == 0
            && self.workers.any_started()
            && work.is_starved()
    }

    /// Work to help with and the turn for it.
    fn pick(&self) -> Option<(Arc<dyn Work>, Permit<'_>)> {
        if self.queue_len.load(Ordering::SeqCst) == 0 && self.reserved.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let is_reserved = self.reserved.swap(0, Ordering::SeqCst) == 1;
        if !is_reserved && !self.try_acquire_below(self.worker_limit()) {
            return None;
        }
        let mut permit = Permit { pool: Some(self), notifies: false };
        let mut queue = self.lock();
        let before = queue.len();
        queue.retain(|work| !work.may_leave_queue());
        // A line has fewer than 2^32 entries, each of which is a call of some thread.
        let gone = u32::try_from(before - queue.len()).unwrap_or(0);
        self.queue_len.fetch_sub(gone, Ordering::SeqCst);
        let open = || queue.iter().filter(|work| work.has_more());
        let left =
            if is_reserved { open().find(|work| work.owner() != WorkOwner::Caller) } else { None };
        // A call each is better than all at one: less is waited for.
        let fresh = || open().find(|work| work.is_unstarted());
        let found = left.or_else(fresh).or_else(|| open().next()).cloned();
        drop(queue);
        // Who lines up from here on may have found every turn taken, and this one looks no more.
        permit.notifies = found.is_none();
        found.map(|work| (work, permit))
    }

    /// While so many are busy threads of ours do not begin anything.
    fn worker_limit(&self) -> u32 {
        if self.is_oversubscribed() { self.oversubscription } else { self.worker_permits }
    }

    fn enqueue(&self, work: &Arc<dyn Work>) {
        let mut queue = self.lock();
        queue.push_back(Arc::clone(work));
        self.queue_len.fetch_add(1, Ordering::SeqCst);
    }

    /// Takes work out of the line, if it is there still.
    pub(crate) fn remove(&self, work: &Arc<dyn Work>) {
        let mut queue = self.lock();
        if let Some(at) = queue.iter().position(|other| Arc::ptr_eq(other, work)) {
            queue.remove(at);
            self.queue_len.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Wakes threads of ours, or starts them, as many as are wanted and have turns.
    pub(crate) fn wake_workers(&'static self, devices: &'static Devices, wanted: u64) {
        let free = self.worker_permits.saturating_sub(self.held.load(Ordering::Relaxed));
        let wanted = u32::try_from(wanted).unwrap_or(u32::MAX).min(free);
        if wanted > 0 {
            self.workers.start(wanted, || move || self.work_loop(devices));
            self.workers.notify(wanted);
        }
    }

    /// What a thread of ours does, for ever.
    fn work_loop(&'static self, devices: &'static Devices) {
        let (mut idle, mut deferred) = (workers::IdleState::new(), DeferredCompletion::default());
        loop {
            let seen = self.workers.seen();
            if let Some((work, _turn)) = self.pick() {
                if idle.slept() && work.has_more() {
                    self.workers.wake_more();
                }
                idle.worked();
                // What panics tells its callers itself; this thread stays for the others.
                let _ = catch_panic(|| work.work(devices, &mut deferred));
            } else if !deferred.is_empty() {
                deferred.complete();
            } else {
                self.workers.wait(&mut idle, seen);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<dyn Work>>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
