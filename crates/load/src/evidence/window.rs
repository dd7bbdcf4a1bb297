//! The times that the readings of a group cover. They are defined here and nowhere else.
//!
//! - **The time of I/O** is from the first I/O of the first job, after its start delay and before
//!   its ramp, to the last I/O of the last job. Evidence, page cache and storage traffic, and the
//!   rules on them, cover it: they are held against all bytes that were moved, in ramps too.
//! - **The window** is from the moment from which the first job's I/Os count, after its start delay
//!   and its ramp, to the same end. All that is "during the run" covers it: devices and their
//!   series, traffic of others, time of the processors, CPU time of the process.
//!
//! Layout, waiting and verification are in neither. Both begin with the same reading unless each
//! job has a ramp. A reading takes some milliseconds, and is done before the first I/O: what others
//! do in these is in it. One that comes too late for that, because the machine is busy, begins the
//! window; the time of the I/O then has begun with the reading before the start, as it does where
//! the delay is too short for a reading of its own.

use gpuio_io::clock::Nanos;
use gpuio_record::JobPlan;

/// Beside what the readings took before: enough for a thread to wake, more after a longer delay.
const MARGIN_NS: [Nanos; 2] = [10_000_000, 50_000_000];

/// When the two times of a group begin, on the run's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    first_io: Nanos,
    from: Nanos,
}

/// A reading that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Right before the first I/O.
    FirstIo,
    /// The window begins.
    From,
}

impl Window {
    /// The times of jobs that start at `start`.
    pub(crate) fn of(jobs: &[JobPlan], start: Nanos) -> Window {
        let first = |of: fn(&JobPlan) -> u64| start + jobs.iter().map(of).min().unwrap_or(0);
        Window {
            first_io: first(JobPlan::latest_first_io_ns),
            from: first(JobPlan::measured_from_ns),
        }
    }

    /// Whether the readings are done before the first I/O at this time.
    pub(crate) fn is_before_io(&self, now: Nanos) -> bool {
        now <= self.first_io
    }

    /// The readings that are due after that before the start, which took this long, with their
    /// times; the last first.
    pub(crate) fn moments(&self, start: Nanos, took: Nanos) -> Vec<(Nanos, Moment)> {
        let [least, most] = MARGIN_NS;
        let ahead = took.saturating_mul(2) + ((self.first_io - start) / 50).clamp(least, most);
        let ramp = (self.from > self.first_io).then_some((self.from, Moment::From));
        let delayed =
            (self.first_io > start + ahead).then(|| (self.first_io - ahead, Moment::FirstIo));
        ramp.into_iter().chain(delayed).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpuio_testkit::jobs::job;

    const MS: Nanos = 1_000_000;

    #[test]
    fn the_first_job_to_count_begins_the_window() {
        let of = |delays: &[(u64, u64)]| {
            let one = |(delay, ramp): &(u64, u64)| JobPlan {
                start_delay_ns: delay * MS,
                ramp_ns: ramp * MS,
                ..job("rw=read\nbs=1m")
            };
            let jobs: Vec<JobPlan> = delays.iter().map(one).collect();
            Window::of(&jobs, 7 * MS).moments(7 * MS, MS)
        };
        assert_eq!(of(&[(0, 0)]), []);
        assert_eq!(of(&[(12, 0)]), [], "no time for another reading");
        assert_eq!(of(&[(300, 0)]), [(295 * MS, Moment::FirstIo)]);
        assert_eq!(of(&[(300, 0), (0, 0)]), [], "the other job is at work by then");
        assert_eq!(of(&[(300, 50), (100, 0)]), [(95 * MS, Moment::FirstIo)]);
        assert_eq!(of(&[(2000, 0)]), [(1965 * MS, Moment::FirstIo)]);
        assert_eq!(of(&[(0, 50), (40, 0)]), [(47 * MS, Moment::From)]);
        let both = [(357 * MS, Moment::From), (295 * MS, Moment::FirstIo)];
        assert_eq!(of(&[(300, 50), (500, 0)]), both);
    }
}
