//! Threads that serve streams: started when they are wanted, asleep when they are not, never ended.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use gpuio_io::clock::{Clock, Nanos};

use super::order::Order;
use crate::crew;

/// How long a thread looks for the next piece before it sleeps.
const SPIN: Nanos = 50_000;
/// How many look at once, within a half of the processors: a transfer has four pieces, and others
/// want theirs at the same time. One that has to be woken comes when the piece could be done.
const SPINNING: (usize, usize) = (2, 8);

/// Some threads and the line of what is to be served.
#[derive(Debug)]
pub(super) struct Threads {
    most: u32,
    spinning_most: usize,
    line: Mutex<Line>,
    wake: Condvar,
    /// The length of the line, for those who look without the lock.
    waiting: AtomicUsize,
    spinning: AtomicUsize,
}

#[derive(Debug, Default)]
struct Line {
    orders: VecDeque<Arc<Order>>,
    started: u32,
    asleep: u32,
}

impl Threads {
    pub(super) fn new(most: u32) -> Self {
        let zero = || AtomicUsize::new(0);
        let (line, wake) = (Mutex::default(), Condvar::new());
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let spinning_most = (cores / 2).clamp(SPINNING.0, SPINNING.1);
        Self { most, spinning_most, line, wake, waiting: zero(), spinning: zero() }
    }

    fn lock(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a thread look at an order. False where there is no thread and none can be started: the
    /// order is not in the line then.
    pub(super) fn push(&'static self, order: &Arc<Order>) -> bool {
        let mut line = self.lock();
        line.orders.push_back(Arc::clone(order));
        self.waiting.store(line.orders.len(), Ordering::SeqCst);
        let looked_after = line.asleep as usize + self.spinning.load(Ordering::SeqCst);
        if looked_after < line.orders.len() && line.started < self.most {
            line.started += 1;
            drop(line);
            if crew::spawn(move || self.serve()) {
                return true;
            }
            line = self.lock();
            line.started -= 1;
            if line.started == 0 {
                line.orders.retain(|other| !Arc::ptr_eq(other, order));
                self.waiting.store(line.orders.len(), Ordering::SeqCst);
                return false;
            }
        }
        let asleep = line.asleep > 0;
        drop(line);
        if asleep {
            self.wake.notify_one();
        }
        true
    }

    fn serve(&'static self) {
        loop {
            let order = self.next();
            order.work();
        }
    }

    /// The next order. Looks a while, then sleeps. Sleeping is decided with the line locked, so no
    /// wake is lost.
    fn next(&self) -> Arc<Order> {
        if let Some(order) = self.pop(&mut self.lock()) {
            return order;
        }
        if self.spinning.fetch_add(1, Ordering::SeqCst) < self.spinning_most {
            let since = Clock::start();
            while self.waiting.load(Ordering::SeqCst) == 0 && since.now() < SPIN {
                std::hint::spin_loop();
            }
        }
        let mut line = self.lock();
        self.spinning.fetch_sub(1, Ordering::SeqCst);
        loop {
            if let Some(order) = self.pop(&mut line) {
                return order;
            }
            line.asleep += 1;
            line = self.wake.wait(line).unwrap_or_else(PoisonError::into_inner);
            line.asleep -= 1;
        }
    }

    fn pop(&self, line: &mut Line) -> Option<Arc<Order>> {
        let order = line.orders.pop_front();
        self.waiting.store(line.orders.len(), Ordering::SeqCst);
        order
    }
}
