//! The threads that serve streams: started on demand, asleep without work, never ended.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};

use super::op::StreamOp;
use super::pending::PendingOps;
use super::poller::Poller;
use crate::call::catch_panic;
use crate::clock::{Clock, Nanos};
use crate::idle::IdleThreads;
use crate::spawn::spawn;
use crate::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use crate::sync::{Mutex, MutexGuard};

/// How long an idle thread spins before it sleeps, in nanoseconds.
const SPIN: Nanos = 50_000;
/// How many spin at once, limited to half of the processors: a transfer has four pieces, and others
/// need threads at the same time. A thread that has to be woken arrives when the piece could be
/// done.
const SPINNING: (usize, usize) = (2, 8);
/// Threads that one transfer starts at most, at some 30 microseconds each.
const STARTED_PER_CALL: u32 = 3;

/// The threads and the queue of operations with pieces to move.
#[derive(Debug)]
pub(super) struct StreamWorkers {
    most: u32,
    max_spinning: u32,
    /// Operations with pieces to take, and some without.
    queue: Mutex<VecDeque<Arc<StreamOp>>>,
    /// Length of the queue, readable without the lock.
    queue_len: AtomicUsize,
    idle: IdleThreads,
    started: AtomicU32,
    starting: Mutex<()>,
    /// Operations that streams have yet to reach, and the thread that watches them.
    pub(super) pending: PendingOps,
    poller: Poller,
}

impl StreamWorkers {
    pub(super) fn new(most: u32, poller: bool) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let max_spinning = (cores / 2).clamp(SPINNING.0, SPINNING.1);
        Self {
            most,
            max_spinning: u32::try_from(max_spinning).unwrap_or(2),
            queue: Mutex::default(),
            queue_len: AtomicUsize::new(0),
            idle: IdleThreads::new(),
            started: AtomicU32::new(0),
            starting: Mutex::default(),
            pending: PendingOps::default(),
            poller: Poller::new(cores, poller),
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<StreamOp>>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets `count` threads work on an operation. False if there is no thread and none can be
    /// started; it is not queued then.
    pub(super) fn submit(&'static self, stream_op: &Arc<StreamOp>, count: u32) -> bool {
        self.start(count);
        if self.started.load(Ordering::Acquire) == 0 {
            return false;
        }
        self.enqueue(stream_op, count);
        true
    }

    fn enqueue(&self, stream_op: &Arc<StreamOp>, count: u32) {
        let mut queue = self.lock();
        queue.push_back(Arc::clone(stream_op));
        self.queue_len.store(queue.len(), Ordering::SeqCst);
        drop(queue);
        self.idle.announce();
        self.idle.wake(count.saturating_sub(self.idle.spinning()));
    }

    /// Starts threads, some at a time, until `count` are idle or the limit is reached.
    fn start(&'static self, count: u32) {
        let idle = self.idle.count();
        if idle >= count || self.started.load(Ordering::Relaxed) >= self.most {
            return;
        }
        // Counted under the lock and after the start: each counted thread exists.
        let _one = self.starting.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..STARTED_PER_CALL.min(count - idle) {
            let started = self.started.load(Ordering::Relaxed);
            if started >= self.most || !spawn(move || self.work_loop()) {
                return;
            }
            self.started.store(started + 1, Ordering::Release);
        }
    }

    fn work_loop(&'static self) {
        let mut since = Clock::start();
        loop {
            let stream_op = self.next(since);
            // A thread that arrives too late for a piece is one too many that spins.
            if catch_panic(|| stream_op.work()).unwrap_or(true) {
                since = Clock::start();
            }
        }
    }

    /// The next operation with pieces to take. Spins a while from `since` on, then sleeps.
    fn next(&'static self, since: Clock) -> Arc<StreamOp> {
        let may_look = self.idle.start_spinning() < self.max_spinning;
        loop {
            let seen = self.idle.sequence();
            if let Some(stream_op) = self.first() {
                self.wake_others(&stream_op);
                return stream_op;
            }
            if may_look && since.now() < SPIN {
                (0..4).for_each(|_| std::hint::spin_loop());
                continue;
            }
            self.idle.sleep_between_spins(seen);
        }
    }

    /// Lets the poller watch an operation until the stream has reached all of it. False if there is
    /// no poller, or it has too many streams.
    pub(super) fn poll_for(&'static self, stream_op: &Arc<StreamOp>) -> bool {
        let is_there = self.poller.ensure_started(|| spawn(move || self.poll_loop()));
        let looked_at = is_there && self.pending.add(stream_op);
        if looked_at {
            self.poller.notify();
        }
        looked_at
    }

    /// The body of the poller thread. Never returns.
    fn poll_loop(&'static self) {
        let mut since = Clock::start();
        loop {
            let seen = self.poller.sequence();
            if catch_panic(|| self.start_reached()).unwrap_or(true) {
                since = Clock::start();
            } else if self.poller.wait(&since, seen, self.pending.is_empty()) {
                // A thread notified it.
                since = Clock::start();
            }
        }
    }

    /// Starts work on what streams have reached; false if there is nothing.
    fn start_reached(&'static self) -> bool {
        let mut found = false;
        while let Some(stream_op) = self.pending.poll() {
            found = true;
            if let Some(pieces) = stream_op.open()
                && !self.submit(&stream_op, pieces)
            {
                // There is no other thread.
                stream_op.work();
            }
        }
        found
    }

    /// The first queued operation with pieces to take.
    fn first(&self) -> Option<Arc<StreamOp>> {
        if self.queue_len.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let mut queue = self.lock();
        while queue.front().is_some_and(|stream_op| stream_op.untaken() == 0) {
            queue.pop_front();
        }
        self.queue_len.store(queue.len(), Ordering::SeqCst);
        queue.front().cloned()
    }

    /// Ends a search that found an operation. Threads that queued others relied on this one if it
    /// was the only one spinning: others are woken for them.
    fn wake_others(&self, stream_op: &Arc<StreamOp>) {
        let was_last = self.idle.stop_spinning() == 0;
        if !was_last || self.queue_len.load(Ordering::SeqCst) < 2 {
            return;
        }
        let others = |queue: &VecDeque<Arc<StreamOp>>| -> u64 {
            queue
                .iter()
                .filter(|other| !Arc::ptr_eq(other, stream_op))
                .map(|other| other.untaken())
                .sum()
        };
        let wanted = others(&self.lock());
        self.idle.wake(u32::try_from(wanted).unwrap_or(u32::MAX));
    }
}

#[cfg(test)]
mod tests;
