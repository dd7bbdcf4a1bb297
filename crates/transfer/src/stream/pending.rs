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

use super::op::StreamOp;
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Mutex, MutexGuard, thread_number};

/// The most streams that are looked at: each look is at all of them, with the lock.
const MAX_STREAMS: usize = 64;

/// Which stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StreamKey {
    context: RawContext,
    stream: RawStream,
    /// Of a default stream, which may be the calling thread's own.
    thread: usize,
}

impl StreamKey {
    /// The key of a stream, on the thread that puts something into it.
    pub(super) fn of(stream: &UserStream) -> Self {
        let raw = stream.raw();
        let thread = if raw.is_default() { thread_number() } else { 0 };
        Self { context: stream.context(), stream: raw, thread }
    }
}

/// How long a stream may hold a transfer back to count as one that comes soon, in nanoseconds.
pub(super) const PROMPT: Nanos = 300_000;
/// Where the oldest transfer of a stream stands there for so long, in nanoseconds, so many behind
/// it are looked at too: its stream may be gone with its context, and the handle another's.
const STUCK: Nanos = 20_000_000;
const BEHIND: usize = 64;
/// The most streams whose ways are remembered.
const MAX_KNOWN: usize = 256;

/// How a stream came to the transfers in it: soon when it was done with those before, or held up by
/// work of the program's.
#[derive(Debug)]
pub(super) struct StreamLatency {
    clock: Clock,
    /// When the last transfer in it was served, in nanoseconds since then.
    stream_device: AtomicU64,
    prompt: AtomicBool,
    enqueue_lock: Mutex<()>,
}

impl StreamLatency {
    fn new() -> Self {
        let (stream_device, prompt) = (AtomicU64::new(0), AtomicBool::new(false));
        Self { clock: Clock::start(), stream_device, prompt, enqueue_lock: Mutex::new(()) }
    }

    /// For one thread at a time that puts a transfer into the stream.
    pub(super) fn lock_enqueue(&self) -> MutexGuard<'_, ()> {
        self.enqueue_lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Now, as the pace has it.
    pub(super) fn now(&self) -> Nanos {
        self.clock.now()
    }

    /// The stream has come to a transfer that was put there at `put`.
    pub(super) fn record_reached(&self, enqueued: Nanos) {
        let free = self.stream_device.load(Ordering::Relaxed).max(enqueued);
        self.prompt.store(self.now().saturating_sub(free) < PROMPT, Ordering::Relaxed);
    }

    /// A transfer in the stream was served.
    pub(super) fn completed(&self) {
        self.stream_device.store(self.now(), Ordering::Relaxed);
    }

    /// Whether the stream came soon to what it came to last.
    pub(super) fn is_prompt(&self) -> bool {
        self.prompt.load(Ordering::Relaxed)
    }
}

/// The transfers, by stream, in the order in which they were put there.
#[derive(Debug, Default)]
pub(super) struct PendingOps {
    streams: Mutex<Vec<(StreamKey, VecDeque<Arc<StreamOp>>)>>,
    /// How many streams there are, for those who look without the lock.
    count: AtomicUsize,
    /// A handle may be another stream's by now, whose pace is then believed to be this one's until
    /// it has come to a transfer.
    paces: Mutex<Vec<(StreamKey, Arc<StreamLatency>)>>,
}

impl PendingOps {
    fn lock(&self) -> MutexGuard<'_, Vec<(StreamKey, VecDeque<Arc<StreamOp>>)>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How a stream comes to the transfers in it.
    pub(super) fn latency(&self, key: StreamKey) -> Arc<StreamLatency> {
        let mut paces = self.paces.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, latency)) = paces.iter().find(|(resolved, _)| *resolved == key) {
            return Arc::clone(latency);
        }
        if paces.len() >= MAX_KNOWN {
            // Those of transfers under way stay: one lock for each stream.
            paces.retain(|(_, latency)| Arc::strong_count(latency) > 1);
        }
        let latency = Arc::new(StreamLatency::new());
        paces.push((key, Arc::clone(&latency)));
        latency
    }

    /// Whether there is something to look at.
    pub(super) fn is_empty(&self) -> bool {
        self.count.load(Ordering::SeqCst) == 0
    }

    /// Has a transfer looked at, if it is not yet, until its stream has come to all of it. False
    /// where that is not possible, as streams are too many.
    pub(super) fn add(&self, stream_op: &Arc<StreamOp>) -> bool {
        let mut streams = self.lock();
        // Looked at with the lock: who notes that it is reached takes it out afterwards, see
        // `forget`.
        if stream_op.is_reached() {
            return true;
        }
        let at = streams.iter().position(|(key, _)| *key == stream_op.key);
        if let Some(at) = at {
            let stream_ops = &mut streams[at].1;
            if !stream_ops.back().is_some_and(|last| Arc::ptr_eq(last, stream_op)) {
                stream_ops.push_back(Arc::clone(stream_op));
            }
        } else if streams.len() < MAX_STREAMS {
            streams.push((stream_op.key, VecDeque::from([Arc::clone(stream_op)])));
        } else {
            return false;
        }
        self.count.store(streams.len(), Ordering::SeqCst);
        true
    }

    /// Takes one out, if it is there.
    pub(super) fn remove(&self, stream_op: &StreamOp) {
        let mut streams = self.lock();
        if let Some(at) = streams.iter().position(|(key, _)| *key == stream_op.key) {
            let stream_ops = &mut streams[at].1;
            let is_it = |other: &Arc<StreamOp>| std::ptr::eq(Arc::as_ptr(other), stream_op);
            // The oldest, nearly always, of the thousands that a stream may hold.
            if stream_ops.front().is_some_and(is_it) {
                stream_ops.pop_front();
            } else {
                stream_ops.retain(|other| !is_it(other));
            }
            if stream_ops.is_empty() {
                streams.swap_remove(at);
            }
        }
        self.count.store(streams.len(), Ordering::Relaxed);
    }

    /// One whose stream has come further than was noted, which is noted now.
    pub(super) fn poll(&self) -> Option<Arc<StreamOp>> {
        if self.count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut streams = self.lock();
        let mut found = None;
        let mut at = 0;
        while let (None, Some((_, stream_ops))) = (&found, streams.get_mut(at)) {
            while let (None, Some(stream_op)) = (&found, stream_ops.front()) {
                found = stream_op.poll_reached().then(|| Arc::clone(stream_op));
                if !stream_op.is_reached() {
                    break;
                }
                stream_ops.pop_front();
            }
            if found.is_none() && stream_ops.front().is_some_and(|first| first.age() > STUCK) {
                let later = stream_ops
                    .iter()
                    .skip(1)
                    .take(BEHIND)
                    .position(|stream_op| stream_op.poll_reached());
                if let Some(stream_op) = later.and_then(|later| stream_ops.get(later + 1)) {
                    found = Some(Arc::clone(stream_op));
                    stream_ops.retain(|stream_op| !stream_op.is_reached());
                }
            }
            if stream_ops.is_empty() {
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
        let latency = StreamLatency::new();
        assert!(!latency.is_prompt(), "nothing is resolved of it");
        let enqueued = latency.now();
        // StreamDevice a moment ago, however long ago it was put there.
        std::thread::sleep(std::time::Duration::from_nanos(2 * PROMPT));
        latency.record_reached(enqueued);
        assert!(!latency.is_prompt());
        let long = 1_000_000_000;
        latency.stream_device.store(latency.now() + long, Ordering::Relaxed);
        latency.record_reached(enqueued);
        assert!(latency.is_prompt());
        latency.completed();
        latency.record_reached(latency.now() + long);
        assert!(latency.is_prompt());
    }
}
