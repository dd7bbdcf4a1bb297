//! How long a library may complete nothing while I/O is in flight.

use std::time::Duration;

use super::PathError;
use crate::clock::{Clock, Nanos};

/// Sleep of a wait without a timeout: short compared with the limit, long compared with any I/O.
const SLICE: Duration = Duration::from_millis(500);

/// The time since the library last said something.
pub(super) struct StallTimer {
    limit: Duration,
    since: Option<Nanos>,
}

impl StallTimer {
    pub(super) fn new(limit: Duration) -> StallTimer {
        StallTimer { limit, since: None }
    }

    /// Something ended, or nothing is in flight.
    pub(super) fn broken(&mut self) {
        self.since = None;
    }

    /// How long the next wait in the library may take.
    pub(super) fn slice(&self) -> Duration {
        SLICE.min(self.limit)
    }

    /// Nothing ended again.
    ///
    /// # Errors
    /// That for too long.
    pub(super) fn goes_on(
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
        Err(PathError::Stalled { path, out, seconds: self.limit.as_secs_f64() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_ends_a_path_only_when_it_lasts() {
        let clock = Clock::start();
        let mut stall = StallTimer::new(Duration::from_millis(40));
        assert!(stall.slice() <= Duration::from_millis(40));
        stall.goes_on(&clock, "p", 3).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        stall.broken();
        stall.goes_on(&clock, "p", 3).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        let error = stall.goes_on(&clock, "p", 3).unwrap_err().to_string();
        assert!(error.contains("path p") && error.contains("3 I/Os"), "{error}");
    }
}
