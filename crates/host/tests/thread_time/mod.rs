//! Time for tests that bound it.

use std::time::Duration;

/// Processor time of this thread so far. What other processes do on its core is not in it.
pub(crate) fn on_cpu() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(now).unwrap()
}
