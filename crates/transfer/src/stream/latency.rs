//! How promptly streams reach transfers.

use std::sync::PoisonError;

use gpuio_gpu::{RawContext, RawStream, UserStream};

use crate::clock::{Clock, Nanos};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard, thread_number};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StreamKey {
    context: RawContext,
    stream: RawStream,
    /// For a default stream, which may be the calling thread's own.
    thread: usize,
}

impl StreamKey {
    /// The key of a stream, on the thread that enqueues into it.
    pub(super) fn of(stream: &UserStream) -> Self {
        let raw = stream.raw();
        let thread = if raw.is_default() { thread_number() } else { 0 };
        Self { context: stream.context(), stream: raw, thread }
    }
}

/// A transfer counts as prompt if the stream delays it for at most so many nanoseconds.
pub(super) const PROMPT: Nanos = 300_000;

/// How a stream reached its last transfers: promptly after the previous one, or held up by other
/// work of the program.
#[derive(Debug)]
pub(super) struct StreamLatency {
    clock: Clock,
    /// When its last transfer completed, in nanoseconds of `clock`.
    last_completed: AtomicU64,
    prompt: AtomicBool,
    enqueue_lock: Mutex<()>,
}

impl StreamLatency {
    pub(super) fn new() -> Self {
        let (last_completed, prompt) = (AtomicU64::new(0), AtomicBool::new(false));
        Self { clock: Clock::start(), last_completed, prompt, enqueue_lock: Mutex::new(()) }
    }

    /// Only one thread at a time enqueues a transfer into the stream.
    pub(super) fn lock_enqueue(&self) -> MutexGuard<'_, ()> {
        self.enqueue_lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The current time of `clock`.
    pub(super) fn now(&self) -> Nanos {
        self.clock.now()
    }

    /// Records that the stream has reached a transfer that was enqueued at `enqueued`.
    pub(super) fn record_reached(&self, enqueued: Nanos) {
        let free = self.last_completed.load(Ordering::Relaxed).max(enqueued);
        self.prompt.store(self.now().saturating_sub(free) < PROMPT, Ordering::Relaxed);
    }

    pub(super) fn record_completed(&self) {
        self.last_completed.store(self.now(), Ordering::Relaxed);
    }

    /// Whether the stream reached its last transfer promptly.
    pub(super) fn is_prompt(&self) -> bool {
        self.prompt.load(Ordering::Relaxed)
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
        // Completed a moment ago, however long ago it was enqueued.
        std::thread::sleep(std::time::Duration::from_nanos(2 * PROMPT));
        latency.record_reached(enqueued);
        assert!(!latency.is_prompt());
        let long = 1_000_000_000;
        latency.last_completed.store(latency.now() + long, Ordering::Relaxed);
        latency.record_reached(enqueued);
        assert!(latency.is_prompt());
        latency.record_completed();
        latency.record_reached(latency.now() + long);
        assert!(latency.is_prompt());
    }
}
