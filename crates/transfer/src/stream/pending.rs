//! Stream operations that their streams have not reached in full yet.
//!
//! The poller reads the semaphores by which streams announce that they have reached an operation;
//! per stream, that of the oldest one. The operations of a stream are kept here in stream order, so
//! one thread at a time enqueues them. An operation that is missing here is started by a function
//! that the stream calls after its store.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};

use super::latency::{StreamKey, StreamLatency};
use super::op::StreamOp;
use crate::clock::Nanos;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Mutex, MutexGuard};

/// The most streams that are watched: each poll visits all of them, under the lock.
const MAX_STREAMS: usize = 64;

/// If a stream does not reach its oldest operation for so many nanoseconds, so many operations
/// after it are polled too: the stream may be gone with its context, and its handle reused.
const STUCK: Nanos = 20_000_000;
const POLLED_AFTER_STUCK: usize = 64;
/// The most streams whose latency is remembered.
const MAX_KNOWN: usize = 256;

/// The operations by stream, in the order in which they were enqueued.
#[derive(Debug, Default)]
pub(super) struct PendingOps {
    streams: Mutex<Vec<(StreamKey, VecDeque<Arc<StreamOp>>)>>,
    /// Number of streams, readable without the lock.
    count: AtomicUsize,
    /// If a handle was reused for another stream, the latency of the old one is used until the new
    /// one reaches a transfer.
    latencies: Mutex<Vec<(StreamKey, Arc<StreamLatency>)>>,
}

impl PendingOps {
    fn lock(&self) -> MutexGuard<'_, Vec<(StreamKey, VecDeque<Arc<StreamOp>>)>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn latency(&self, key: StreamKey) -> Arc<StreamLatency> {
        let mut latencies = self.latencies.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, latency)) = latencies.iter().find(|(known, _)| *known == key) {
            return Arc::clone(latency);
        }
        if latencies.len() >= MAX_KNOWN {
            // Streams with operations in progress stay: they need one lock per stream.
            latencies.retain(|(_, latency)| Arc::strong_count(latency) > 1);
        }
        let latency = Arc::new(StreamLatency::new());
        latencies.push((key, Arc::clone(&latency)));
        latency
    }

    /// Whether there is nothing to poll.
    pub(super) fn is_empty(&self) -> bool {
        self.count.load(Ordering::SeqCst) == 0
    }

    /// Adds an operation, unless it is here already, until its stream has reached all of it. False
    /// if there are too many streams.
    pub(super) fn add(&self, stream_op: &Arc<StreamOp>) -> bool {
        let mut streams = self.lock();
        // Checked under the lock: who records that it is reached removes it afterwards, see
        // `remove`.
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

    /// Removes an operation, if it is here.
    pub(super) fn remove(&self, stream_op: &StreamOp) {
        let mut streams = self.lock();
        if let Some(at) = streams.iter().position(|(key, _)| *key == stream_op.key) {
            let stream_ops = &mut streams[at].1;
            let is_it = |other: &Arc<StreamOp>| std::ptr::eq(Arc::as_ptr(other), stream_op);
            // Nearly always the oldest of the thousands that a stream may hold.
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

    /// Returns an operation whose stream has reached more than was recorded, and records it.
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
                    .take(POLLED_AFTER_STUCK)
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
