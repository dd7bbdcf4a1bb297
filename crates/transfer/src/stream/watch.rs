//! Transfers that streams have still to come to.
//!
//! The sentry reads the words by which streams tell that they have come to a transfer, of each
//! stream the oldest one's: transfers of a stream stand here in the order in which they stand
//! there, which is why they are put there by one thread at a time. A transfer that is missing here
//! is begun by a function that the stream calls behind its store.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};

use gpuio_gpu::{RawContext, RawStream, UserStream};
use gpuio_io::clock::{Clock, Nanos};

use super::order::Order;
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Mutex, MutexGuard, thread_number};

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
        let raw = stream.raw();
        let thread = if raw.is_default() { thread_number() } else { 0 };
        Self { context: stream.context(), stream: raw, thread }
    }
}

/// How long a stream may hold a transfer back to count as one that comes soon, in nanoseconds.
pub(super) const SOON: Nanos = 300_000;
/// Where the oldest transfer of a stream stands there for so long, in nanoseconds, so many behind
/// it are looked at too: its stream may be gone with its context, and the handle another's.
const STUCK: Nanos = 20_000_000;
const BEHIND: usize = 64;
/// The most streams whose ways are remembered.
const KNOWN_MOST: usize = 256;

/// How a stream came to the transfers in it: soon when it was done with those before, or held up by
/// work of the program's.
#[derive(Debug)]
pub(super) struct Pace {
    clock: Clock,
    /// When the last transfer in it was served, in nanoseconds since then.
    served: AtomicU64,
    soon: AtomicBool,
    putting: Mutex<()>,
}

impl Pace {
    fn new() -> Self {
        let (served, soon) = (AtomicU64::new(0), AtomicBool::new(false));
        Self { clock: Clock::start(), served, soon, putting: Mutex::new(()) }
    }

    /// For one thread at a time that puts a transfer into the stream.
    pub(super) fn put(&self) -> MutexGuard<'_, ()> {
        self.putting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Now, as the pace has it.
    pub(super) fn now(&self) -> Nanos {
        self.clock.now()
    }

    /// The stream has come to a transfer that was put there at `put`.
    pub(super) fn reached(&self, put: Nanos) {
        let free = self.served.load(Ordering::Relaxed).max(put);
        self.soon.store(self.now().saturating_sub(free) < SOON, Ordering::Relaxed);
    }

    /// A transfer in the stream was served.
    pub(super) fn served(&self) {
        self.served.store(self.now(), Ordering::Relaxed);
    }

    /// Whether the stream came soon to what it came to last.
    pub(super) fn is_soon(&self) -> bool {
        self.soon.load(Ordering::Relaxed)
    }
}

/// The transfers, by stream, in the order in which they were put there.
#[derive(Debug, Default)]
pub(super) struct Watch {
    streams: Mutex<Vec<(Key, VecDeque<Arc<Order>>)>>,
    /// How many streams there are, for those who look without the lock.
    count: AtomicUsize,
    /// A handle may be another stream's by now, whose pace is then believed to be this one's until
    /// it has come to a transfer.
    paces: Mutex<Vec<(Key, Arc<Pace>)>>,
}

impl Watch {
    fn lock(&self) -> MutexGuard<'_, Vec<(Key, VecDeque<Arc<Order>>)>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How a stream comes to the transfers in it.
    pub(super) fn pace(&self, key: Key) -> Arc<Pace> {
        let mut paces = self.paces.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, pace)) = paces.iter().find(|(known, _)| *known == key) {
            return Arc::clone(pace);
        }
        if paces.len() >= KNOWN_MOST {
            // Those of transfers under way stay: one lock for each stream.
            paces.retain(|(_, pace)| Arc::strong_count(pace) > 1);
        }
        let pace = Arc::new(Pace::new());
        paces.push((key, Arc::clone(&pace)));
        pace
    }

    /// Whether there is something to look at.
    pub(super) fn is_empty(&self) -> bool {
        self.count.load(Ordering::SeqCst) == 0
    }

    /// Has a transfer looked at, if it is not yet, until its stream has come to all of it. False
    /// where that is not possible, as streams are too many.
    pub(super) fn add(&self, order: &Arc<Order>) -> bool {
        let mut streams = self.lock();
        // Looked at with the lock: who notes that it is reached takes it out afterwards, see
        // `forget`.
        if order.is_reached() {
            return true;
        }
        let at = streams.iter().position(|(key, _)| *key == order.key);
        if let Some(at) = at {
            let orders = &mut streams[at].1;
            if !orders.back().is_some_and(|last| Arc::ptr_eq(last, order)) {
                orders.push_back(Arc::clone(order));
            }
        } else if streams.len() < STREAMS_MOST {
            streams.push((order.key, VecDeque::from([Arc::clone(order)])));
        } else {
            return false;
        }
        self.count.store(streams.len(), Ordering::SeqCst);
        true
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
            if found.is_none() && orders.front().is_some_and(|first| first.age() > STUCK) {
                let later = orders.iter().skip(1).take(BEHIND).position(|order| order.look());
                if let Some(order) = later.and_then(|later| orders.get(later + 1)) {
                    found = Some(Arc::clone(order));
                    orders.retain(|order| !order.is_reached());
                }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_was_held_up_is_not_expected_soon_until_it_came_soon_again() {
        let pace = Pace::new();
        assert!(!pace.is_soon(), "nothing is known of it");
        let put = pace.now();
        // Served a moment ago, however long ago it was put there.
        std::thread::sleep(std::time::Duration::from_nanos(2 * SOON));
        pace.reached(put);
        assert!(!pace.is_soon());
        let long = 1_000_000_000;
        pace.served.store(pace.now() + long, Ordering::Relaxed);
        pace.reached(put);
        assert!(pace.is_soon());
        pace.served();
        pace.reached(pace.now() + long);
        assert!(pace.is_soon());
    }
}
