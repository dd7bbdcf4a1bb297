//! A limit on bytes and I/Os per second at the engine's interface, to imitate a slower device.
//!
//! Two buckets, each kept as the time at which it is free again. An asynchronous engine answers
//! [`Push::Full`] until then; a synchronous one waits inside the push. A bucket that stood idle
//! saves up at most 1 ms of its rate, so that the limit holds over any window much longer than
//! that.

use super::{Done, Engine, EngineError, Io, Push};
use crate::clock::{Clock, Nanos};
use std::time::Duration;

const SAVED_NS: Nanos = 1_000_000;
const SECOND: u128 = 1_000_000_000;

#[derive(Debug)]
struct Bucket {
    per_second: u64,
    free_at: Nanos,
}

impl Bucket {
    fn new(per_second: u64) -> Bucket {
        Bucket { per_second: per_second.max(1), free_at: 0 }
    }

    fn charge(&mut self, now: Nanos, amount: u64) {
        let cost = u128::from(amount) * SECOND / u128::from(self.per_second);
        // Above 584 years: as good as never.
        let cost = Nanos::try_from(cost).unwrap_or(Nanos::MAX);
        let from = self.free_at.max(now.saturating_sub(SAVED_NS));
        self.free_at = from.saturating_add(cost);
    }
}

/// The decorator.
pub struct Throttle {
    inner: Box<dyn Engine>,
    bytes: Option<Bucket>,
    ios: Option<Bucket>,
    clock: Clock,
    /// The last push was refused here: a reap with nothing out has to wait for the bucket.
    refused: bool,
}

impl std::fmt::Debug for Throttle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut f = f.debug_struct("Throttle");
        f.field("bytes", &self.bytes).field("ios", &self.ios).finish_non_exhaustive()
    }
}

impl Throttle {
    /// Limits in bytes a second and I/Os a second; `None` is no limit.
    pub fn new(inner: Box<dyn Engine>, bytes: Option<u64>, ios: Option<u64>) -> Throttle {
        let (bytes, ios) = (bytes.map(Bucket::new), ios.map(Bucket::new));
        Throttle { inner, bytes, ios, clock: Clock::start(), refused: false }
    }

    /// When the next I/O may go.
    fn free_at(&self) -> Nanos {
        let at = |bucket: &Option<Bucket>| bucket.as_ref().map_or(0, |bucket| bucket.free_at);
        at(&self.bytes).max(at(&self.ios))
    }
}

impl Engine for Throttle {
    fn push(&mut self, io: Io) -> Push {
        let free_at = self.free_at();
        if self.clock.now() < free_at {
            if !self.inner.synchronous() {
                self.refused = true;
                return Push::Full(io);
            }
            self.clock.wait_until(free_at);
        }
        self.refused = false;
        let now = self.clock.now();
        let push = self.inner.push(io);
        if !matches!(push, Push::Full(_)) {
            if let Some(bucket) = &mut self.bytes {
                bucket.charge(now, u64::from(io.span.len()));
            }
            if let Some(bucket) = &mut self.ios {
                bucket.charge(now, 1);
            }
        }
        push
    }

    fn submit(&mut self) -> Result<(), EngineError> {
        self.inner.submit()
    }

    fn reap(&mut self, done: &mut Vec<Done>, at_least: usize) -> Result<(), EngineError> {
        if self.refused && at_least > 0 && self.inner.in_flight() == 0 {
            // Nothing can come back, and the caller wants to push: without this it would spin.
            self.clock.wait_until(self.free_at());
            self.refused = false;
            return Ok(());
        }
        self.inner.reap(done, at_least)
    }

    fn wait_timeout(&mut self, timeout: Duration) -> Result<(), EngineError> {
        self.inner.wait_timeout(timeout)
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight()
    }

    fn synchronous(&self) -> bool {
        self.inner.synchronous()
    }
}
