//! Transfers that streams have still to come to.
//!
//! A thread that looks for work reads the words by which streams tell that they have come to a
//! transfer, of each stream the oldest one's. That only makes transfers begin earlier: the function
//! that the stream calls behind its store begins those that nobody has seen. So one that is missing
//! here, or stands behind one of another thread that was put into the stream after it, comes to no
//! harm.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gpuio_gpu::{RawContext, RawStream, UserStream};

use super::order::Order;

/// The most streams that are looked at: each look is at all of them, with the lock.
const STREAMS_MOST: usize = 64;

/// Which stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    context: RawContext,
    stream: RawStream,
    /// Of a default stream, which may be the calling thread's own.
    thread: usize,
}

impl Key {
    /// The key of a stream, on the thread that puts something into it.
    pub(super) fn of(stream: &UserStream) -> Self {
        thread_local! {
            static HERE: u8 = const { 0 };
        }
        let raw = stream.raw();
        let here = || HERE.with(|here| std::ptr::from_ref(here).addr());
        let thread = if raw.is_default() { here() } else { 0 };
        Self { context: stream.context(), stream: raw, thread }
    }
}

/// The transfers, by stream, in the order in which they were put there.
#[derive(Debug, Default)]
pub(super) struct Watch {
    streams: Mutex<Vec<(Key, VecDeque<Arc<Order>>)>>,
    /// How many streams there are, for those who look without the lock.
    count: AtomicUsize,
    /// Somebody looks: more than one would only be in each other's way.
    taken: AtomicBool,
}

impl Watch {
    fn lock(&self) -> MutexGuard<'_, Vec<(Key, VecDeque<Arc<Order>>)>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a transfer looked at, if it is not yet, until its stream has come to all of it.
    pub(super) fn add(&self, order: &Arc<Order>) {
        let mut streams = self.lock();
        // Looked at with the lock: who notes that it is reached takes it out afterwards, see
        // `forget`.
        if order.is_reached() {
            return;
        }
        let at = streams.iter().position(|(key, _)| *key == order.key);
        if let Some(at) = at {
            let orders = &mut streams[at].1;
            if !orders.back().is_some_and(|last| Arc::ptr_eq(last, order)) {
                orders.push_back(Arc::clone(order));
            }
        } else if streams.len() < STREAMS_MOST {
            streams.push((order.key, VecDeque::from([Arc::clone(order)])));
        }
        self.count.store(streams.len(), Ordering::Relaxed);
    }

    /// Takes one out, if it is there.
    pub(super) fn forget(&self, order: &Order) {
        let mut streams = self.lock();
        if let Some(at) = streams.iter().position(|(key, _)| *key == order.key) {
            let orders = &mut streams[at].1;
            let is_it = |other: &Arc<Order>| std::ptr::eq(Arc::as_ptr(other), order);
            // The oldest, nearly always, of the thousands that a stream may hold.
            if orders.front().is_some_and(is_it) {
                orders.pop_front();
            } else {
                orders.retain(|other| !is_it(other));
            }
            if orders.is_empty() {
                streams.swap_remove(at);
            }
        }
        self.count.store(streams.len(), Ordering::Relaxed);
    }

    /// True for one thread at a time, which looks until it calls [`Watch::leave`].
    pub(super) fn enter(&self) -> bool {
        !self.taken.load(Ordering::Relaxed) && !self.taken.swap(true, Ordering::Acquire)
    }

    pub(super) fn leave(&self) {
        self.taken.store(false, Ordering::Release);
    }

    /// One whose stream has come further than was noted, which is noted now.
    pub(super) fn look(&self) -> Option<Arc<Order>> {
        if self.count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut streams = self.lock();
        let mut found = None;
        let mut at = 0;
        while let (None, Some((_, orders))) = (&found, streams.get_mut(at)) {
            while let (None, Some(order)) = (&found, orders.front()) {
                found = order.look().then(|| Arc::clone(order));
                if !order.is_reached() {
                    break;
                }
                orders.pop_front();
            }
            if orders.is_empty() {
                streams.swap_remove(at);
            } else {
                at += 1;
            }
        }
        self.count.store(streams.len(), Ordering::Relaxed);
        found
    }
}
