//! Time in which the whole process stood still: SIGSTOP, Ctrl-Z, a frozen cgroup, a paused machine.
//!
//! Such time is nothing that storage took. A thread of a run calls [`Ticker::tick`] every
//! [`TICK`]. One that comes late by much, and did not wait for a processor meanwhile
//! (`/proc/thread-self/schedstat`: time on a run queue), was stopped, and with it all threads. The
//! time is then taken out of every [`Clock`](super::Clock).
//!
//! After a stop all threads wake at once, in any order. So a thread that reads the clock while the
//! tick is overdue waits for it: no reading has the stopped time in it. A reading that came before
//! is never undercut: the time taken out begins after the last reading, which `READ` knows to
//! `GRAIN`.
//!
//! Without a ticker (in gpuio's libraries, in tests) nothing is taken out, and nobody waits.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::Nanos;

/// Between two ticks.
pub const TICK: Duration = Duration::from_millis(20);
/// From here on a tick is overdue, and shorter stops are not noticed.
const OVERDUE: Nanos = 250_000_000;
/// How well the time of the last reading is known.
const GRAIN: Nanos = 5_000_000;
/// Longest wait for a tick: a thread that gets no processor for so long is not waited for.
const TIMEOUT: Nanos = 5_000_000_000;
/// A shorter difference between the clocks is none of a machine that slept.
const SUSPENDED: Nanos = 10_000_000;

/// When the last tick was; the largest number where nobody ticks.
static TICKED: AtomicU64 = AtomicU64::new(u64::MAX);
/// A reading of the clock, no more than [`GRAIN`] before the last one.
static READ: AtomicU64 = AtomicU64::new(0);
/// Time taken out so far.
static STOPPED: AtomicU64 = AtomicU64::new(0);
/// Time in which the machine slept; `CLOCK_MONOTONIC` does not count it.
static SLEPT: AtomicU64 = AtomicU64::new(0);
/// Stops and sleeps so far.
static COUNT: AtomicU32 = AtomicU32::new(0);

fn ns(clock: ClockId) -> Nanos {
    let now = clock_gettime(clock);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(now.tv_nsec).unwrap_or(0))
}

/// `CLOCK_MONOTONIC` without the time in which the process was stopped.
#[inline]
pub(super) fn running_ns() -> Nanos {
    loop {
        let stopped = STOPPED.load(Ordering::Acquire);
        let now = ns(ClockId::Monotonic);
        let ticked = TICKED.load(Ordering::Acquire);
        if ticked != u64::MAX {
            if now.saturating_sub(ticked) >= OVERDUE && await_tick(now) {
                continue;
            }
            if now.saturating_sub(READ.load(Ordering::Relaxed)) > GRAIN {
                READ.fetch_max(now, Ordering::AcqRel);
            }
        }
        // A stop may have been taken out since the first line.
        if STOPPED.load(Ordering::Acquire) == stopped {
            return now.saturating_sub(stopped);
        }
    }
}

/// Waits for a tick that is overdue; false where it does not come.
#[cold]
fn await_tick(from: Nanos) -> bool {
    loop {
        let now = ns(ClockId::Monotonic);
        let ticked = TICKED.load(Ordering::Acquire);
        if now.saturating_sub(ticked) < OVERDUE {
            return true;
        }
        if now.saturating_sub(from) > TIMEOUT {
            return false;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Number of stops so far: an I/O during which it changed has a time that is not storage's.
#[inline]
pub fn count() -> u32 {
    COUNT.load(Ordering::Acquire)
}

/// Stops of a process, or those in a part of its life.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stops {
    /// How many.
    pub count: u32,
    /// Time in which the process was stopped, nanoseconds.
    pub stopped_ns: Nanos,
    /// Time in which the machine was suspended, nanoseconds.
    pub suspended_ns: Nanos,
}

impl Stops {
    /// All so far.
    pub fn so_far() -> Stops {
        Stops {
            count: count(),
            stopped_ns: STOPPED.load(Ordering::Acquire),
            suspended_ns: SLEPT.load(Ordering::Acquire),
        }
    }

    /// Those since `before`.
    pub fn since(self, before: Stops) -> Stops {
        Stops {
            count: self.count.saturating_sub(before.count),
            stopped_ns: self.stopped_ns.saturating_sub(before.stopped_ns),
            suspended_ns: self.suspended_ns.saturating_sub(before.suspended_ns),
        }
    }
}

/// The readings of a tick, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Look {
    /// `CLOCK_MONOTONIC`.
    monotonic: Nanos,
    /// `CLOCK_BOOTTIME`, which goes on while the machine is suspended.
    boot: Nanos,
    /// `CLOCK_MONOTONIC` once more, after that.
    after: Nanos,
    /// Time that this thread waited for a processor so far; `None` where the kernel does not say.
    waited: Option<Nanos>,
}

/// The time lost between two ticks: time to take out, and time in which the machine slept. `read`
/// is when the clock was last read.
fn between(before: Look, now: Look, read: Nanos) -> (Nanos, Nanos) {
    let due = before.monotonic.saturating_add(u64::try_from(TICK.as_nanos()).unwrap_or(0));
    let late = now.monotonic.saturating_sub(due.max(read.saturating_add(GRAIN)));
    let stopped = match (before.waited, now.waited) {
        (Some(before), Some(now)) => late.saturating_sub(now.saturating_sub(before)),
        // It may have been a lack of processors.
        _ => 0,
    };
    // The thread may have waited between two readings: what the clocks differ by is known to that.
    let most_before = before.boot.saturating_sub(before.monotonic);
    let slept = now.boot.saturating_sub(now.after).saturating_sub(most_before);
    let least = |time: Nanos, least: Nanos| if time >= least { time } else { 0 };
    (least(stopped, OVERDUE), least(slept, SUSPENDED))
}

/// Ticks; one for the process. Dropped, nobody waits for a tick any more.
#[derive(Debug)]
pub struct Ticker {
    waited: Option<File>,
    last: Look,
}

impl Ticker {
    /// Begins, on the thread that will tick; `None` where another one does.
    #[must_use]
    pub fn begin() -> Option<Ticker> {
        let waited = File::open("/proc/thread-self/schedstat").ok();
        let last = look(waited.as_ref());
        let free = u64::MAX;
        let ours =
            TICKED.compare_exchange(free, last.monotonic, Ordering::AcqRel, Ordering::Relaxed);
        ours.is_ok().then_some(Ticker { waited, last })
    }

    /// Notes that this thread runs, and takes out the time in which it could not.
    pub fn tick(&mut self) {
        let now = look(self.waited.as_ref());
        let (stopped, slept) = between(self.last, now, READ.load(Ordering::Acquire));
        if stopped > 0 || slept > 0 {
            SLEPT.fetch_add(slept, Ordering::AcqRel);
            COUNT.fetch_add(1, Ordering::AcqRel);
            STOPPED.fetch_add(stopped, Ordering::AcqRel);
        }
        self.last = now;
        TICKED.store(now.monotonic, Ordering::Release);
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        TICKED.store(u64::MAX, Ordering::Release);
    }
}

fn look(waited: Option<&File>) -> Look {
    Look {
        waited: waited.and_then(waited_ns),
        monotonic: ns(ClockId::Monotonic),
        boot: ns(ClockId::Boottime),
        after: ns(ClockId::Monotonic),
    }
}

/// The second number of `schedstat`: time on a run queue (`Documentation/scheduler/
/// sched-stats.rst`).
fn waited_ns(file: &File) -> Option<Nanos> {
    let mut bytes = [0; 96];
    let length = file.read_at(&mut bytes, 0).ok()?;
    let text = std::str::from_utf8(bytes.get(..length)?).ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    fn at(monotonic: Nanos, slept: Nanos, waited: Option<Nanos>) -> Look {
        let (monotonic, boot) = (monotonic * MS, (monotonic + slept) * MS);
        Look { monotonic, boot, after: monotonic, waited: waited.map(|time| time * MS) }
    }

    #[test]
    fn what_was_no_wait_for_a_processor_was_a_stop() {
        let before = at(1000, 0, Some(7));
        let stopped = |now, read: Nanos| between(before, now, read * MS).0 / MS;
        assert_eq!(stopped(at(1020, 0, Some(7)), 1000), 0);
        assert_eq!(stopped(at(7020, 0, Some(7)), 1010), 6000);
        // It waited for a processor all the time, or the last second of it.
        assert_eq!(stopped(at(7020, 0, Some(6007)), 1010), 0);
        assert_eq!(stopped(at(7020, 0, Some(1007)), 1010), 5000);
        // Somebody read the clock meanwhile: not all threads stood still.
        assert_eq!(stopped(at(7020, 0, Some(7)), 4000), 3015);
        assert_eq!(stopped(at(7020, 0, Some(7)), 7019), 0);
        assert_eq!(stopped(at(1260, 0, Some(7)), 1010), 0, "too short to be sure");
        assert_eq!(stopped(at(7020, 0, None), 1010), 0, "the kernel does not say");
    }

    #[test]
    fn a_machine_that_slept_shows_by_the_difference_of_its_clocks() {
        let before = at(1000, 500, Some(7));
        assert_eq!(between(before, at(1020, 500, Some(7)), 0), (0, 0));
        assert_eq!(between(before, at(1020, 4500, Some(7)), 0), (0, 4000 * MS));
        assert_eq!(between(before, at(1020, 4500, None), 0).1, 4000 * MS);
        // This thread waited a second between the two readings.
        let late = Look { boot: 2520 * MS, after: 2020 * MS, ..at(1020, 500, Some(7)) };
        assert_eq!(between(before, late, 0).1, 0);
    }

    #[test]
    fn readings_rise_and_what_was_before_is_no_stop_of_a_part() {
        let before = Stops { count: 1, stopped_ns: 5, suspended_ns: 0 };
        let now = Stops { count: 3, stopped_ns: 9, suspended_ns: 2 };
        assert_eq!(now.since(before), Stops { count: 2, stopped_ns: 4, suspended_ns: 2 });
        let readings: Vec<Nanos> = (0..1000).map(|_| running_ns()).collect();
        assert!(readings.is_sorted());
    }
}
