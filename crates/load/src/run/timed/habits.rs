//! Pauses between I/Os, and calls that send written data to the medium.

use gpuio_io::clock::Nanos;
use gpuio_record::{FlushPlan, ThinkPlan};

use super::super::RunError;
use super::Loop;

/// When a thread pauses.
pub(super) struct Thinker {
    plan: ThinkPlan,
    since: u64,
    until: Option<Nanos>,
}

/// The loop's step before its next I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Think {
    /// It starts it.
    No,
    /// It waits for what is in flight: a pause is due.
    WaitForAll,
    /// It starts none before this time.
    Until(Nanos),
}

impl Thinker {
    pub(super) fn new(plan: ThinkPlan) -> Thinker {
        Thinker { plan, since: 0, until: None }
    }

    /// An I/O was started.
    #[inline]
    pub(super) fn took(&mut self) {
        self.since += 1;
    }

    #[inline]
    pub(super) fn look(&mut self, now: Nanos, idle: bool) -> Think {
        if self.until.is_none() {
            if self.since < self.plan.every_ios {
                return Think::No;
            }
            if !idle {
                return Think::WaitForAll;
            }
            self.since = 0;
            self.until = Some(now.saturating_add(self.plan.pause_ns));
            spin(self.plan.spin_ns);
        }
        match self.until {
            Some(until) if now < until => Think::Until(until),
            _ => {
                self.until = None;
                Think::No
            }
        }
    }
}

/// Computes for a time.
#[cold]
fn spin(ns: u64) {
    let began = gpuio_watch::page::monotonic_ns();
    while gpuio_watch::page::monotonic_ns().saturating_sub(began) < ns {
        std::hint::spin_loop();
    }
}

/// When a thread flushes.
pub(super) struct Flushes {
    plan: FlushPlan,
    since: u64,
    /// Whether the last write that is done is flushed.
    flushed: bool,
}

impl Flushes {
    pub(super) fn new(plan: FlushPlan) -> Flushes {
        Flushes { plan, since: 0, flushed: false }
    }

    /// A write is done; whether a flush is due.
    #[inline]
    pub(super) fn wrote(&mut self) -> bool {
        self.since += 1;
        let due = self.plan.every_ios.is_some_and(|ios| self.since >= ios);
        if due {
            self.since = 0;
        }
        self.flushed = due;
        due
    }

    /// Whether a flush follows the last write: one that would find nothing is left out, as fio does
    /// (3.33, `fsync` and `end_fsync` together).
    fn is_due_at_end(&self) -> bool {
        self.plan.at_end && (!self.flushed || self.plan.data_only)
    }
}

impl Loop<'_> {
    /// Flushes the worker's files. The calls are in the wall clock, and in no write's latency but
    /// those in flight.
    #[cold]
    pub(super) fn flush(&mut self, counts: bool) -> Result<(), RunError> {
        let data_only = self.flushes.as_ref().is_some_and(|flushes| flushes.plan.data_only);
        self.call_flush(data_only, counts)
    }

    /// The last flush, inside the measured time.
    pub(super) fn flush_at_end(&mut self) -> Result<(), RunError> {
        if !self.flushes.as_ref().is_some_and(Flushes::is_due_at_end) {
            return Ok(());
        }
        self.call_flush(false, true)?;
        self.last_back = self.last_back.max(self.task.gate.clock.now());
        Ok(())
    }

    /// The last flush where it belongs to closing: it counts nowhere.
    pub(super) fn flush_at_close(&mut self) -> Result<(), RunError> {
        match self.flushes.as_ref().is_some_and(|flushes| flushes.plan.at_close) {
            true => self.call_flush(false, false),
            false => Ok(()),
        }
    }

    fn call_flush(&mut self, data_only: bool, counts: bool) -> Result<(), RunError> {
        let clock = &self.task.gate.clock;
        let flushed = &mut self.out.flushed;
        let mut began = clock.now();
        self.tools.files.flush(self.task.job, data_only, || {
            let ended = clock.now();
            if counts {
                flushed.record(ended - began);
            }
            began = ended;
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_begins_when_all_is_back_and_ends_by_itself() {
        let plan = ThinkPlan { pause_ns: 100, spin_ns: 0, every_ios: 2 };
        let mut thinker = Thinker::new(plan);
        for _ in 0..2 {
            assert_eq!(thinker.look(0, true), Think::No);
            thinker.took();
        }
        assert_eq!(thinker.look(10, false), Think::WaitForAll);
        assert_eq!(thinker.look(20, true), Think::Until(120));
        assert_eq!(thinker.look(119, true), Think::Until(120));
        assert_eq!(thinker.look(120, true), Think::No);
        thinker.took();
        assert_eq!(thinker.look(121, false), Think::No, "one more before the next pause");
    }

    #[test]
    fn flushes_come_every_so_many_writes() {
        let plan =
            FlushPlan { every_ios: Some(3), data_only: true, at_end: false, at_close: false };
        let mut flushes = Flushes::new(plan);
        let due: Vec<bool> = (0..7).map(|_| flushes.wrote()).collect();
        assert_eq!(due, [false, false, true, false, false, true, false]);
        let end = FlushPlan { every_ios: None, data_only: false, at_end: true, at_close: false };
        assert!((0..9).all(|_| !Flushes::new(end).wrote()));
        let both = |data_only| FlushPlan { every_ios: Some(2), data_only, ..end };
        let mut flushes = Flushes::new(both(false));
        let due = [0; 4].map(|_| (flushes.wrote(), flushes.is_due_at_end()).1);
        assert_eq!(due, [true, false, true, false], "nothing is left after the second one");
        let mut data = Flushes::new(both(true));
        assert!(data.is_due_at_end() && !data.wrote() && data.wrote() && data.is_due_at_end());
    }
}
