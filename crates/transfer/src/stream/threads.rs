//! Threads that serve streams: started when they are wanted, asleep when they are not, never ended.
//!
//! No wake-up is lost. Who has work (1) puts it in the line, (2) rings the bell and (3) looks who
//! is asleep; who has none (4) hears the bell, (5) looks into the line and (6) sleeps unless the
//! bell was rung since. A sleeper is counted before the kernel compares the bell, so either (3)
//! sees it or (6) the ring.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};

use gpuio_io::clock::{Clock, Nanos};
use rustix::thread::futex;

use super::order::Order;
use super::sentry::Sentry;
use super::watch::Watch;
use crate::crew;
use crate::job::unpanicked;
use crate::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use crate::sync::{Mutex, MutexGuard};

/// How long a thread looks for the next piece before it sleeps, in nanoseconds.
const SPIN: Nanos = 50_000;
/// How many look at once, within a half of the processors: a transfer has four pieces, and others
/// want theirs at the same time. One that has to be woken comes when the piece could be done.
const LOOKING: (usize, usize) = (2, 8);
/// How many threads one transfer starts at most, at some 30 microseconds each.
const STARTED: u32 = 3;

/// Some threads and the line of what is to be served.
#[derive(Debug)]
pub(super) struct Threads {
    most: u32,
    looking_most: u32,
    /// Transfers with pieces to take, and some without.
    line: Mutex<VecDeque<Arc<Order>>>,
    /// The length of the line, for those who look without the lock.
    lined: AtomicUsize,
    /// Changes when something comes into the line; what sleepers sleep on.
    bell: AtomicU32,
    looking: AtomicU32,
    asleep: AtomicU32,
    started: AtomicU32,
    starting: Mutex<()>,
    /// Transfers that streams have still to come to, and who looks at them.
    pub(super) watch: Watch,
    sentry: Sentry,
}

impl Threads {
    pub(super) fn new(most: u32, sentry: bool) -> Self {
        let zero = || AtomicU32::new(0);
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let looking_most = (cores / 2).clamp(LOOKING.0, LOOKING.1);
        Self {
            most,
            looking_most: u32::try_from(looking_most).unwrap_or(2),
            line: Mutex::default(),
            lined: AtomicUsize::new(0),
            bell: zero(),
            looking: zero(),
            asleep: zero(),
            started: zero(),
            starting: Mutex::default(),
            watch: Watch::default(),
            sentry: Sentry::new(cores, sentry),
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<Order>>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has so many threads work on a transfer. False where there is no thread and none can be
    /// started: it is not in the line then.
    pub(super) fn push(&'static self, order: &Arc<Order>, hands: u32) -> bool {
        self.start(hands);
        if self.started.load(Ordering::Acquire) == 0 {
            return false;
        }
        self.line_up(order, hands);
        true
    }

    fn line_up(&self, order: &Arc<Order>, hands: u32) {
        let mut line = self.lock();
        line.push_back(Arc::clone(order));
        self.lined.store(line.len(), Ordering::SeqCst);
        drop(line);
        self.bell.fetch_add(1, Ordering::SeqCst);
        self.wake(hands.saturating_sub(self.looking.load(Ordering::SeqCst)));
    }

    fn wake(&self, hands: u32) {
        let hands = hands.min(self.asleep.load(Ordering::SeqCst));
        if hands > 0 {
            let _ = futex::wake(&self.bell, futex::Flags::PRIVATE, hands);
        }
    }

    /// Starts threads, some at a time, until so many are idle or there are enough.
    fn start(&'static self, hands: u32) {
        let idle = self.looking.load(Ordering::Relaxed) + self.asleep.load(Ordering::Relaxed);
        if idle >= hands || self.started.load(Ordering::Relaxed) >= self.most {
            return;
        }
        // Counted with the lock and after the fact: where one is counted there is one.
        let _one = self.starting.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..STARTED.min(hands - idle) {
            let started = self.started.load(Ordering::Relaxed);
            if started >= self.most || !crew::spawn(move || self.serve()) {
                return;
            }
            self.started.store(started + 1, Ordering::Release);
        }
    }

    fn serve(&'static self) {
        let mut since = Clock::start();
        loop {
            let order = self.next(since);
            // Who comes too late for a piece is one too many that looks.
            if unpanicked(|| order.work()).unwrap_or(true) {
                since = Clock::start();
            }
        }
    }

    /// The next transfer with pieces to take. Looks a while, from `since` on, then sleeps.
    fn next(&'static self, since: Clock) -> Arc<Order> {
        let may_look = self.looking.fetch_add(1, Ordering::SeqCst) < self.looking_most;
        loop {
            let heard = self.bell.load(Ordering::SeqCst);
            if let Some(order) = self.first() {
                self.relay(&order);
                return order;
            }
            if may_look && since.now() < SPIN {
                (0..4).for_each(|_| std::hint::spin_loop());
                continue;
            }
            self.asleep.fetch_add(1, Ordering::SeqCst);
            self.looking.fetch_sub(1, Ordering::SeqCst);
            let _ = futex::wait(&self.bell, futex::Flags::PRIVATE, heard, None);
            self.looking.fetch_add(1, Ordering::SeqCst);
            self.asleep.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Has the sentry look at a transfer until the stream has come to all of it. False where there
    /// is none, or it has too many streams to look at.
    pub(super) fn look_at(&'static self, order: &Arc<Order>) -> bool {
        let is_there = self.sentry.is_there(|| crew::spawn(move || self.watch_words()));
        let looked_at = is_there && self.watch.add(order);
        if looked_at {
            self.sentry.call();
        }
        looked_at
    }

    /// What the sentry does, for ever.
    fn watch_words(&'static self) {
        let mut since = Clock::start();
        loop {
            let heard = self.sentry.heard();
            if unpanicked(|| self.open_reached()).unwrap_or(true) {
                since = Clock::start();
            } else if self.sentry.rest(&since, heard, &self.watch) {
                // Somebody called.
                since = Clock::start();
            }
        }
    }

    /// Has threads move what streams have come to; false if there is nothing.
    fn open_reached(&'static self) -> bool {
        let mut found = false;
        while let Some(order) = self.watch.look() {
            found = true;
            if let Some(pieces) = order.open()
                && !self.push(&order, pieces)
            {
                // There is no other thread.
                order.work();
            }
        }
        found
    }

    /// The first in the line with pieces to take.
    fn first(&self) -> Option<Arc<Order>> {
        if self.lined.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let mut line = self.lock();
        while line.front().is_some_and(|order| order.untaken() == 0) {
            line.pop_front();
        }
        self.lined.store(line.len(), Ordering::SeqCst);
        line.front().cloned()
    }

    /// Ends a look with an order. Who put others into the line counted on this thread, if it was
    /// the only one that looked: they get another.
    fn relay(&self, order: &Arc<Order>) {
        let was_last = self.looking.fetch_sub(1, Ordering::SeqCst) == 1;
        if !was_last || self.lined.load(Ordering::SeqCst) < 2 {
            return;
        }
        let others = |line: &VecDeque<Arc<Order>>| -> u64 {
            line.iter()
                .filter(|other| !Arc::ptr_eq(other, order))
                .map(|other| other.untaken())
                .sum()
        };
        let wanted = others(&self.lock());
        self.wake(u32::try_from(wanted).unwrap_or(u32::MAX));
    }
}

#[cfg(test)]
mod tests;
