//! The worker pool: a semaphore limits how many threads move the data of large calls, and workers
//! hold fewer permits than callers. Small calls on GPU memory (`device/small`) need no permit.
//!
//! A [`Permit`] is the right to move bytes; there are `max_active`. A caller that gets one works on
//! its own call. If workers may help with it (`Executors`), the caller also queues it, so that
//! workers with permits of their own take pieces. A caller that gets none queues its call and
//! sleeps until others have finished it or a permit is passed on to it.
//!
//! How many workers are useful follows from the GPUs in use: twelve threads fill the link to one
//! with what they read from the page cache. Nearly as many callers get no help. With more calls,
//! callers do not start large reads of cached files that the resident copy kernel copies. Waking a
//! caller takes a tenth of a call, during which its permit moves nothing, and more threads than
//! saturate the link only wait for it. The workers then go from call to call. With several GPUs in
//! use, workers go where the fewest are, and never more to one than its link needs: all of them on
//! the oldest call would fill one link after the other.
//!
//! Permits go to queued work in queue order. Work that no caller does itself, such as a batch, gets
//! a permit that is reserved until a worker arrives. Batches whose callers wait for events are
//! self-served: their callers do the work. Workers leave them alone unless many are idle.
//!
//! No wake-up is lost. Who wants a permit (1) queues and (2) tries to acquire one; who has one (3)
//! releases it and (4) reads the queue. All four are sequentially consistent, so either (2) sees
//! (3) or (4) sees (1). A permit is passed on under the queue's lock, once per call, and the caller
//! checks for it under the same lock before it returns, so none goes to a finished call.

mod workers;

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};

use crate::call::{Call, DeferredCompletion, Executors, catch_panic};
use crate::device::Devices;
use crate::file::Bottleneck;
use crate::settings::Settings;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{Mutex, MutexGuard, size};
use workers::Workers;

/// An entry of the queue.
pub(crate) trait Work: std::fmt::Debug + Send + Sync {
    /// Whether a part is left that no thread has taken.
    fn has_more(&self) -> bool;

    /// The GPU of all its memory. `None` for the host's, and for several.
    fn device(&self) -> Option<u32> {
        None
    }

    /// Does all parts that no other thread takes, on a thread that holds a permit. Copies to the
    /// GPU that are still in flight at the end are left in `deferred`; what `deferred` held before
    /// is completed first.
    fn work(self: Arc<Self>, devices: &'static Devices, deferred: &mut DeferredCompletion);

    /// Who does the work.
    fn owner(&self) -> WorkOwner;

    /// Whether it has waited so long that only a worker with a reserved permit will do it soon. Not
    /// called for work of [`WorkOwner::Caller`].
    fn is_starved(&self) -> bool {
        false
    }

    /// Whether no thread has started it.
    fn is_unstarted(&self) -> bool {
        true
    }

    /// Whether a caller sleeps until [`Work::grant_permit`].
    fn wants_permit(&self) -> bool {
        false
    }

    /// Passes a permit on to that caller.
    fn grant_permit(&self) {}

    /// Whether a thread is expected to do the work soon that holds no permit yet.
    fn is_self_served(&self) -> bool {
        false
    }

    /// Whether it may leave the queue: nothing is left to do, and who adds more queues it again.
    /// Called with the queue locked.
    fn may_leave_queue(&self) -> bool {
        false
    }
}

/// Who does queued work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkOwner {
    /// The waiting caller, with a permit; workers help.
    Caller,
    /// Workers; the caller sleeps.
    Workers,
    /// Workers, or the thread that waits for completions.
    Either,
}

/// How bytes move between page-locked memory and the caller's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CopyMethod {
    /// Not at all: file I/O goes directly to the caller's host memory.
    Host,
    /// The resident copy kernel.
    Kernel,
    /// The GPU's copy engines.
    CopyEngines,
}

/// The right to move bytes. Dropping it releases it.
pub(crate) struct Permit<'a> {
    pool: Option<&'a WorkerPool>,
    /// Whether releasing it wakes a worker for queued work. False for workers, which look at the
    /// queue themselves.
    notifies: bool,
    /// The GPU that a worker has it for.
    device: Option<u32>,
}

impl<'a> Permit<'a> {
    /// One that is held already.
    fn of_caller(pool: &'a WorkerPool) -> Self {
        Self { pool: Some(pool), notifies: true, device: None }
    }

    /// For a thread that keeps the one it has.
    fn none() -> Self {
        Self { pool: None, notifies: false, device: None }
    }

    pub(crate) fn release(&mut self) {
        if let Some(pool) = self.pool.take() {
            if let Some(device) = self.device {
                pool.workers_on(device).fetch_sub(1, Ordering::Relaxed);
            }
            pool.release(self.notifies);
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.release();
    }
}

/// GPUs whose workers are counted apart.
const GPUS: usize = 16;

/// The semaphore, the queue and the workers.
#[derive(Debug)]
pub(crate) struct WorkerPool {
    max_active: u32,
    /// Workers take a permit only while fewer than this are taken: otherwise no processor is left
    /// for them.
    max_worker_permits: u32,
    /// The same for each GPU in use.
    permits_per_gpu: u32,
    gpus: AtomicU32,
    /// Workers that move bytes for each GPU. Far GPUs may share a number, and then its limit.
    on_gpu: [std::sync::atomic::AtomicU32; GPUS],
    oversubscription: Oversubscription,
    held: AtomicU32,
    /// Permits reserved for a worker: 0 or 1.
    reserved: AtomicU32,
    /// Calls that want helpers or a permit for their caller, oldest first.
    queue: Mutex<VecDeque<Arc<dyn Work>>>,
    /// Length of the queue.
    queue_len: AtomicU32,
    /// Its entries that are not of [`WorkOwner::Either`].
    queued_calls: AtomicU32,
    /// Batches that are self-served, in the queue or not.
    self_served: AtomicU32,
    /// Releases that did not look at the queue since the last one that did.
    not_looked: AtomicU32,
    /// Calls in progress.
    calls: AtomicU32,
    workers: Workers,
}

/// From how many concurrent calls on reads are left to workers.
#[derive(Debug, Clone, Copy)]
enum Oversubscription {
    Never,
    /// From so many, and to as many workers.
    From(u32),
    /// From more calls than there are worker permits, counting a new one, and to so many workers
    /// for each GPU.
    Permits {
        per_gpu: u32,
    },
}

/// With fewer workers than this, callers always read themselves.
const LEAST_WORKERS: u32 = 8;

impl Oversubscription {
    fn new(settings: &Settings) -> Self {
        match settings.oversubscription {
            Some(0) => Self::Never,
            Some(calls) if calls > settings.max_workers => Self::Never,
            Some(calls) => Self::From(calls),
            None if settings.max_workers < LEAST_WORKERS => Self::Never,
            None => Self::Permits { per_gpu: settings.oversubscribed_per_gpu.max(1) },
        }
    }
}

impl WorkerPool {
    pub(crate) fn new(settings: &Settings) -> Self {
        let zero = || AtomicU32::new(0);
        Self {
            max_active: settings.max_active.max(1),
            max_worker_permits: settings.max_active.min(settings.max_workers).max(1),
            permits_per_gpu: settings.workers_per_gpu.max(1),
            gpus: zero(),
            on_gpu: Default::default(),
            oversubscription: Oversubscription::new(settings),
            held: zero(),
            reserved: zero(),
            queue: Mutex::default(),
            queue_len: zero(),
            queued_calls: zero(),
            self_served: zero(),
            not_looked: zero(),
            calls: zero(),
            workers: Workers::new(settings.max_workers),
        }
    }

    /// Which worker goes where is a matter of rate alone, so these are no part of the model.
    fn workers_on(&self, device: u32) -> &std::sync::atomic::AtomicU32 {
        &self.on_gpu[device as usize % GPUS]
    }

    /// Workers that may still go to a GPU.
    fn room_on(&self, device: u32) -> u32 {
        self.permits_per_gpu.saturating_sub(self.workers_on(device).load(Ordering::Relaxed))
    }

    /// Permits that workers may take.
    fn worker_permits(&self) -> u32 {
        match self.gpus.load(Ordering::Relaxed) {
            0 => self.max_worker_permits,
            gpus => self.max_worker_permits.min(self.permits_per_gpu.saturating_mul(gpus)),
        }
    }

    /// Notes how many GPUs are in use.
    fn note_gpus(&self, devices: &Devices) {
        let gpus = devices.in_use();
        if self.gpus.load(Ordering::Relaxed) != gpus {
            self.gpus.store(gpus, Ordering::Relaxed);
        }
    }

    /// Counts a batch that has become self-served, or is no longer.
    pub(crate) fn count_self_served(&self, is_now: bool) {
        if is_now {
            self.self_served.fetch_add(1, Ordering::SeqCst);
        } else {
            self.self_served.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Decides who moves the pieces of a call of `len` bytes, and how long these are: at most
    /// `most` bytes. `sleeps`: the caller may sleep.
    pub(crate) fn split(
        &self,
        len: u64,
        bottleneck: Bottleneck,
        method: CopyMethod,
        sleeps: bool,
        most: u64,
    ) -> (Executors, u64) {
        /// Below this, the driver's calls take longer than the copies.
        const LEAST: u64 = 128 << 10;
        /// Shorter reads from a device are not worth it: each costs an interrupt and a sleep.
        const MIN_FROM_DEVICE: u64 = 256 << 10;
        /// Pieces per permit, so that the last ones end at about the same time.
        const EACH: u64 = 4;
        const PARTS: u64 = 4;
        /// Longest piece for the resident copy kernel, of which a ring has two in flight. Thirteen
        /// threads read 8 GiB at 46 GiB/s, and at 41 with 512 KiB and one in flight (H200).
        const PER_KERNEL: u64 = 256 << 10;
        /// With this length a copy engine nearly reaches its full rate; with 128 KiB it reaches
        /// half. Each copy costs some microseconds in the driver, whose lock all threads share.
        const MIN_PER_ENGINE: u64 = 512 << 10;
        /// From so many calls on, pieces of that length keep the engines busy, and each caller does
        /// its own. The engines are used while the program's kernels fill the device, and a woken
        /// worker may take the processor of the thread that launches them: with workers, a training
        /// step beside eight threads that read 1 MiB kept 0.47 of its speed and they read 27.4
        /// GiB/s; without, 0.74 and 22.9 (H100, 16 processors).
        const SEVERAL: u64 = 4;
        let calls = u64::from(self.calls.load(Ordering::Relaxed)) + 1;
        let permits = u64::from(self.worker_permits());
        let even = |each: u64| len.saturating_mul(calls) / (each * permits);
        let parts = (len / PARTS).max(LEAST);
        let most = match bottleneck {
            Bottleneck::Cpu if method == CopyMethod::Kernel => most.min(PER_KERNEL),
            _ => most,
        };
        let (executors, piece) = match bottleneck {
            Bottleneck::Cpu if method == CopyMethod::CopyEngines && calls >= SEVERAL => {
                (Executors::CallerOnly, MIN_PER_ENGINE)
            }
            Bottleneck::Cpu
                if method == CopyMethod::Kernel && sleeps && self.is_oversubscribed() =>
            {
                (Executors::WorkersOnly, PER_KERNEL)
            }
            // The callers fill the link by themselves, also with some of them between two calls.
            Bottleneck::Cpu if method == CopyMethod::Kernel && calls * 8 >= permits * 7 => {
                (Executors::CallerOnly, even(EACH).clamp(LEAST, parts))
            }
            // Split even among many calls, so that one piece is copied while the next is read.
            Bottleneck::Cpu => (Executors::CallerAndWorkers, even(EACH).clamp(LEAST, parts)),
            Bottleneck::Device => (Executors::CallerAndWorkers, even(1).max(MIN_FROM_DEVICE)),
            Bottleneck::FileLock if calls == 1 => (Executors::CallerOnly, parts),
            Bottleneck::FileLock => (Executors::CallerOnly, most),
        };
        (executors, piece.min(most).next_power_of_two())
    }

    /// Whether there are more calls than processors can serve at once.
    fn is_oversubscribed(&self) -> bool {
        let calls = self.calls.load(Ordering::Relaxed);
        match self.oversubscription {
            Oversubscription::Never => false,
            Oversubscription::From(many) => calls >= many,
            Oversubscription::Permits { .. } => calls >= self.worker_permits(),
        }
    }

    /// Workers that go from call to call while there are too many calls.
    fn oversubscription_workers(&self) -> u32 {
        match self.oversubscription {
            Oversubscription::From(many) => many,
            Oversubscription::Permits { per_gpu } => {
                let gpus = self.gpus.load(Ordering::Relaxed).max(1);
                self.worker_permits().min(per_gpu.saturating_mul(gpus))
            }
            Oversubscription::Never => self.worker_permits(),
        }
    }

    /// Moves the call's pieces, by this thread or others, and returns when all have completed.
    pub(crate) fn run(&'static self, devices: &'static Devices, call: &Arc<Call>) {
        let work: Arc<dyn Work> = Arc::<Call>::clone(call);
        self.note_gpus(devices);
        self.calls.fetch_add(1, Ordering::Relaxed);
        if call.executors() != Executors::WorkersOnly || !self.delegate(devices, call, &work) {
            self.run_in_caller(devices, call, &work);
        }
        self.calls.fetch_sub(1, Ordering::Relaxed);
    }

    /// Lets workers do the call while this thread sleeps; false if there are no workers.
    fn delegate(
        &'static self,
        devices: &'static Devices,
        call: &Call,
        work: &Arc<dyn Work>,
    ) -> bool {
        let useful = self.oversubscription_workers();
        if self.held.load(Ordering::Relaxed) < useful {
            self.workers.start(1, || move || self.work_loop(devices));
        }
        if !self.workers.any_started() {
            return false;
        }
        self.enqueue(work);
        // Busy workers look at the queue when they finish. A free permit is for one more worker.
        if self.held.load(Ordering::SeqCst) < useful {
            self.workers.notify(1);
        }
        call.sleep();
        self.remove(work);
        true
    }

    fn run_in_caller(
        &'static self,
        devices: &'static Devices,
        call: &Arc<Call>,
        work: &Arc<dyn Work>,
    ) {
        if let Some(mut permit) = self.try_acquire() {
            self.work_with_help(devices, call, work, &mut permit);
        } else {
            call.set_waiting();
            self.enqueue(work);
            if let Some(mut permit) = self.try_acquire() {
                Self::work(devices, call, &mut permit);
            } else {
                call.sleep_until_permit();
            }
            self.remove(work);
            if call.has_permit() {
                Self::work(devices, call, &mut Permit::of_caller(self));
            }
        }
        call.wait();
    }

    /// Moves the pieces that no other thread takes.
    fn work(devices: &'static Devices, call: &Arc<Call>, permit: &mut Permit<'_>) {
        let mut deferred = DeferredCompletion::default();
        Arc::clone(call).work(devices, &mut deferred);
        // The rest waits for the GPU, which needs little memory bandwidth, so the next thread may
        // already wake up.
        permit.release();
        deferred.complete();
    }

    /// Like [`WorkerPool::run`], for a thread that holds a permit and keeps it.
    pub(crate) fn run_with_permit(&'static self, devices: &'static Devices, call: &Arc<Call>) {
        let work: Arc<dyn Work> = Arc::<Call>::clone(call);
        self.work_with_help(devices, call, &work, &mut Permit::none());
        call.wait();
    }

    /// Works on a call, with helpers if it has more than one piece.
    fn work_with_help(
        &'static self,
        devices: &'static Devices,
        call: &Arc<Call>,
        work: &Arc<dyn Work>,
        permit: &mut Permit<'_>,
    ) {
        let helped = call.pieces() > 1 && call.executors() != Executors::CallerOnly;
        if helped {
            self.enqueue(work);
            let room = work.device().map_or(u64::MAX, |device| self.room_on(device).into());
            self.wake_workers(devices, (call.pieces() - 1).min(room));
        }
        Self::work(devices, call, permit);
        if helped {
            self.remove(work);
        }
    }

    /// Queues work for up to `wanted` workers and returns at once.
    pub(crate) fn submit(
        &'static self,
        devices: &'static Devices,
        work: &Arc<dyn Work>,
        wanted: u64,
    ) {
        self.note_gpus(devices);
        self.enqueue(work);
        // At least one worker must exist, for a reserved permit.
        self.workers.start(1, || move || self.work_loop(devices));
        self.wake_spare_workers(devices, wanted);
    }

    /// Like [`WorkerPool::wake_workers`], for work that its callers are likely to do themselves
    /// soon. It wakes one worker less per busy thread: a busy thread will return for more, and a
    /// surplus worker can take the processor of a thread that is waited for, for some milliseconds.
    pub(crate) fn wake_spare_workers(&'static self, devices: &'static Devices, wanted: u64) {
        self.wake_workers(devices, wanted.min(self.spare_workers().into()));
    }

    fn spare_workers(&self) -> u32 {
        self.spare_beside(self.held.load(Ordering::SeqCst))
    }

    /// How many workers may help with batches beside so many other threads with permits. One at
    /// least if there are none: a batch is done even if its caller never asks for events.
    fn spare_beside(&self, held: u32) -> u32 {
        let busy = held.max(self.self_served.load(Ordering::SeqCst));
        let spare = self.worker_permits().saturating_sub(busy.saturating_mul(2));
        if held == 0 { spare.max(1) } else { spare }
    }

    /// Does work with a permit beyond the limit, for a thread that would otherwise sleep. The work
    /// must be limited by system calls and not by memory bandwidth.
    pub(crate) fn with_extra_permit<T>(&self, work: impl FnOnce() -> T) -> T {
        self.held.fetch_add(1, Ordering::SeqCst);
        let _turn = Permit::of_caller(self);
        work()
    }

    /// Acquires a permit if one is free.
    fn try_acquire(&self) -> Option<Permit<'_>> {
        let entered = self.try_acquire_below(self.max_active);
        entered.then(|| Permit::of_caller(self))
    }

    /// Whether more threads are active than workers would join.
    pub(crate) fn is_busy(&self) -> bool {
        self.held.load(Ordering::Relaxed) >= self.worker_permits()
    }

    fn try_acquire_below(&self, most: u32) -> bool {
        let more = |held| (held < most).then_some(held + 1);
        self.held.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).is_ok()
    }

    /// Releases a permit, or passes it on.
    fn release(&self, notifies: bool) {
        if self.queue_len.load(Ordering::SeqCst) == 0 {
            self.held.fetch_sub(1, Ordering::SeqCst);
            if self.queue_len.load(Ordering::SeqCst) == 0
                || !self.try_acquire_below(self.max_active)
            {
                return;
            }
        } else if self.release_unseen() {
            return;
        }
        let queue = self.lock();
        let next = queue.iter().find(|work| self.reserves_for(work) || work.wants_permit());
        if let Some(next) = next {
            if next.wants_permit() {
                next.grant_permit();
                return;
            }
            // Under the queue's lock, so that no second one is reserved.
            self.reserved.store(1, Ordering::SeqCst);
            drop(queue);
            self.workers.notify(1);
            return;
        }
        // Under the queue's lock: who queues after this finds the permit free.
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

    /// Releases a permit without a look at the queue, whose lock all threads share, if nothing in
    /// it waits for a permit: there are only batches, permits are free for their callers, and
    /// workers would not help them.
    ///
    /// A caller that wants a permit queues its call and then finds none free. So either this sees
    /// that all were taken, or that a call is queued, or the caller finds this one. A batch that
    /// no thread works on waits for the next look.
    fn release_unseen(&self) -> bool {
        /// One of so many releases looks, for batches that no caller works on.
        const LOOKS: u32 = size(16, 2);
        /// With no more permits taken than this, each release looks: it may be the last one.
        const FEW: u32 = size(2, 1);
        let only_batches = || self.queued_calls.load(Ordering::SeqCst) == 0;
        let has_spare = |held: u32| held <= FEW || self.spare_beside(held - 1) > 0;
        let held = self.held.load(Ordering::SeqCst);
        if held >= self.max_active
            || has_spare(held)
            || !only_batches()
            || self.not_looked.fetch_add(1, Ordering::Relaxed) >= LOOKS
        {
            self.not_looked.store(0, Ordering::Relaxed);
            return false;
        }
        let held = self.held.fetch_sub(1, Ordering::SeqCst);
        // Otherwise this goes on with a permit if one is free; if none is, who took it will look.
        held < self.max_active && !has_spare(held) && only_batches()
            || !self.try_acquire_below(self.max_active)
    }

    /// Whether only workers will do this work, because its caller sleeps or has returned, and the
    /// next permit is to be reserved for one of them. Otherwise busy callers would take every
    /// permit before the worker wakes up.
    fn reserves_for(&self, work: &Arc<dyn Work>) -> bool {
        work.owner() != WorkOwner::Caller
            && self.reserved.load(Ordering::SeqCst) == 0
            && self.workers.any_started()
            && work.is_starved()
    }

    /// Takes work to help with, and a permit for it.
    fn pick(&self) -> Option<(Arc<dyn Work>, Permit<'_>)> {
        if self.queue_len.load(Ordering::SeqCst) == 0 && self.reserved.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let is_reserved = self.reserved.swap(0, Ordering::SeqCst) == 1;
        if !is_reserved && !self.try_acquire_below(self.worker_limit()) {
            return None;
        }
        let mut permit = Permit { pool: Some(self), notifies: false, device: None };
        let mut queue = self.lock();
        let before = queue.len();
        queue.retain(|work| {
            let leaves = work.may_leave_queue();
            if leaves {
                self.count_call(work, false);
            }
            !leaves
        });
        // The queue has fewer than 2^32 entries: each is a call of some thread.
        let gone = u32::try_from(before - queue.len()).unwrap_or(0);
        self.queue_len.fetch_sub(gone, Ordering::SeqCst);
        // This thread's own permit is one of those held.
        let spare = self.spare_beside(self.held.load(Ordering::SeqCst).saturating_sub(1)) > 0;
        let open = || {
            queue
                .iter()
                .filter(|work| work.has_more() && (spare || is_reserved || !work.is_self_served()))
        };
        let left =
            if is_reserved { open().find(|work| work.owner() != WorkOwner::Caller) } else { None };
        // All that a GPU's link needs are at work for it, and look at the queue next.
        let served =
            |work: &&Arc<dyn Work>| work.device().is_none_or(|device| self.room_on(device) > 0);
        let fresh = open().filter(|work| work.is_unstarted());
        // Workers on different calls wait less than workers on one call.
        let found = left
            .or_else(|| self.least_served(fresh.filter(served)))
            .or_else(|| self.least_served(open().filter(served)))
            .cloned();
        let passed_over = found.is_none() && open().next().is_some();
        permit.device = found.as_ref().and_then(|work| work.device());
        if let Some(device) = permit.device {
            self.workers_on(device).fetch_add(1, Ordering::Relaxed);
        }
        drop(queue);
        // Who queues from here on may have found every permit taken, and this thread does not look
        // again. Those that work for a full GPU do.
        permit.notifies = found.is_none() && !passed_over;
        found.map(|work| (work, permit))
    }

    /// The oldest work, or if it is for a GPU, the oldest for the one with the fewest workers.
    fn least_served<'w>(
        &self,
        mut works: impl Iterator<Item = &'w Arc<dyn Work>>,
    ) -> Option<&'w Arc<dyn Work>> {
        let first = works.next()?;
        let on =
            |work: &Arc<dyn Work>| Some(self.workers_on(work.device()?).load(Ordering::Relaxed));
        match on(first) {
            None => Some(first),
            Some(_) => std::iter::once(first)
                .chain(works.filter(|work| work.device().is_some()))
                .min_by_key(|work| on(work)),
        }
    }

    /// With so many permits taken, workers start nothing.
    fn worker_limit(&self) -> u32 {
        if self.is_oversubscribed() {
            self.oversubscription_workers()
        } else {
            self.worker_permits()
        }
    }

    fn enqueue(&self, work: &Arc<dyn Work>) {
        let mut queue = self.lock();
        queue.push_back(Arc::clone(work));
        self.count_call(work, true);
        self.queue_len.fetch_add(1, Ordering::SeqCst);
    }

    /// Counts an entry that has come into the queue or left it, with the queue locked.
    fn count_call(&self, work: &Arc<dyn Work>, came: bool) {
        if work.owner() == WorkOwner::Either {
            return;
        }
        if came {
            self.queued_calls.fetch_add(1, Ordering::SeqCst);
        } else {
            self.queued_calls.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Takes work out of the queue if it is still there.
    pub(crate) fn remove(&self, work: &Arc<dyn Work>) {
        let mut queue = self.lock();
        if let Some(at) = queue.iter().position(|other| Arc::ptr_eq(other, work)) {
            queue.remove(at);
            self.count_call(work, false);
            self.queue_len.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Wakes or starts as many workers as are wanted and have permits.
    pub(crate) fn wake_workers(&'static self, devices: &'static Devices, wanted: u64) {
        let free = self.worker_permits().saturating_sub(self.held.load(Ordering::Relaxed));
        let wanted = u32::try_from(wanted).unwrap_or(u32::MAX).min(free);
        if wanted > 0 {
            self.workers.start(wanted, || move || self.work_loop(devices));
            self.workers.notify(wanted);
        }
    }

    /// Starts some workers, on one that has found more work than it does itself, unless one is idle
    /// or no permit is left. So the first large call of a process, whose caller starts a few, has
    /// all of them within some hundred microseconds.
    fn start_more(&'static self, devices: &'static Devices) {
        if self.held.load(Ordering::Relaxed) < self.worker_permits() {
            self.workers.start(1, || move || self.work_loop(devices));
        }
    }

    /// The body of a worker thread. Never returns.
    fn work_loop(&'static self, devices: &'static Devices) {
        let (mut idle, mut deferred) = (workers::IdleState::new(), DeferredCompletion::default());
        loop {
            let seen = self.workers.seen();
            if let Some((work, _turn)) = self.pick() {
                let wants = || !work.is_self_served() || self.spare_workers() > 0;
                if idle.slept() && work.has_more() && wants() {
                    self.workers.wake_more();
                    self.start_more(devices);
                }
                idle.worked();
                // A panic is reported to the callers of the work; this thread continues for the
                // others.
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
