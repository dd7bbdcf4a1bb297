//! How long cuFile may say nothing while I/O is under way, and what becomes of a path when it does.

use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use crate::clock::{Clock, Nanos};
use crate::path::PathError;

/// Sleep of a wait without an end: short beside the limit, long beside any I/O.
const SLICE: Duration = Duration::from_millis(500);

/// The time since the library last said something.
pub(in crate::path) struct Silence {
    limit: Duration,
    since: Option<Nanos>,
}

impl Silence {
    pub(in crate::path) fn new(limit: Duration) -> Silence {
        Silence { limit, since: None }
    }

    /// Something ended, or nothing is under way.
    pub(in crate::path) fn broken(&mut self) {
        self.since = None;
    }

    /// How long the next wait in the library may take.
    pub(in crate::path) fn slice(&self) -> Duration {
        SLICE.min(self.limit)
    }

    /// Nothing ended again.
    ///
    /// # Errors
    /// That for too long.
    pub(in crate::path) fn goes_on(
        &mut self,
        clock: &Clock,
        path: &'static str,
        out: usize,
    ) -> Result<(), PathError> {
        let now = clock.now();
        let since = *self.since.get_or_insert(now);
        if Duration::from_nanos(now.saturating_sub(since)) < self.limit {
            return Ok(());
        }
        Err(PathError::Silent { path, out, seconds: self.limit.as_secs_f64() })
    }
}

/// The parts of a path whose I/O the library may never end.
pub(in crate::path) trait Settle {
    /// Waits, within limits, until the library is done with the memory. False if it is not.
    fn settle(&mut self) -> bool;
}

/// Parts that are dropped once the library is done with them, and else left where they are: memory
/// that it may still write must not become somebody else's.
pub(in crate::path) struct Settled<T: Settle>(ManuallyDrop<T>);

impl<T: Settle> Settled<T> {
    pub(in crate::path) fn new(parts: T) -> Settled<T> {
        Settled(ManuallyDrop::new(parts))
    }
}

impl<T: Settle> Deref for Settled<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Settle> DerefMut for Settled<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: Settle> Drop for Settled<T> {
    fn drop(&mut self) {
        if self.0.settle() {
            // SAFETY: dropped once, here, and not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.0) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_ends_a_path_only_when_it_lasts() {
        let clock = Clock::start();
        let mut silence = Silence::new(Duration::from_millis(40));
        assert!(silence.slice() <= Duration::from_millis(40));
        silence.goes_on(&clock, "p", 3).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        silence.broken();
        silence.goes_on(&clock, "p", 3).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        let error = silence.goes_on(&clock, "p", 3).unwrap_err().to_string();
        assert!(error.contains("path p") && error.contains("3 I/Os"), "{error}");
    }
}
