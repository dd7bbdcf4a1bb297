//! Whether a job has converged: its window, checked once per check by the run's own thread.

use std::collections::VecDeque;

use gpuio_base::stat::{Histogram, LiveTotals, SteadyRule};
use gpuio_io::clock::Nanos;
use gpuio_record::{Steady, SteadyFigure, SteadyPlan};

use super::peers::Peers;

/// The counts of one process from one check to the next.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Interval {
    /// Its end, nanoseconds after the end of the job's ramp.
    pub at_ns: u64,
    /// I/Os or bytes per second, as the criterion looks at them; 0 where it looks at latencies.
    pub per_s: f64,
    /// Latencies, added, nanoseconds.
    pub latency_ns: f64,
    pub ios: u64,
}

/// The last intervals of a job, on one process or on several at the same time.
#[derive(Debug)]
pub struct SteadyWindow {
    of: SteadyFigure,
    rule: SteadyRule,
    /// Values that make a window full.
    full: usize,
    window: VecDeque<f64>,
    result: Steady,
}

impl SteadyWindow {
    pub fn new(plan: &SteadyPlan) -> SteadyWindow {
        let full = usize::try_from(plan.window_ns / plan.check_ns.max(1)).unwrap_or(usize::MAX);
        let SteadyPlan { slope, limit, percent, .. } = *plan;
        SteadyWindow {
            of: plan.of,
            rule: SteadyRule { slope, limit, percent },
            full,
            window: VecDeque::new(),
            result: Steady::default(),
        }
    }

    /// Adds an interval, of which each process has counted its part: rates are added, a latency is
    /// the mean over the I/Os of all.
    pub fn add(&mut self, parts: &[Interval]) {
        let at_ns = parts.iter().map(|part| part.at_ns).max().unwrap_or(0);
        let value = match self.of {
            SteadyFigure::Iops | SteadyFigure::Bandwidth => {
                Some(parts.iter().map(|part| part.per_s).sum())
            }
            SteadyFigure::Latency => {
                let ios: u64 = parts.iter().map(|part| part.ios).sum();
                let sum: f64 = parts.iter().map(|part| part.latency_ns).sum();
                (ios > 0).then(|| sum / ios as f64)
            }
        };
        match value {
            Some(value) => self.check(value, at_ns),
            // An interval without an I/O has no latency: what was before does not go on after it.
            None => self.window.clear(),
        }
    }

    fn check(&mut self, value: f64, at_ns: u64) {
        self.window.push_back(value);
        if self.window.len() > self.full {
            self.window.pop_front();
        }
        if self.window.len() < self.full || self.result.attained_at_ns.is_some() {
            return;
        }
        let Some(seen) = self.rule.check(self.window.make_contiguous()) else { return };
        self.result.checks += 1;
        self.result.mean = Some(seen.mean);
        self.result.observed = Some(seen.value).filter(|value| value.is_finite());
        if seen.attained {
            self.result.attained_at_ns = Some(at_ns);
        }
    }

    /// The outcome so far.
    pub fn result(&self) -> Steady {
        self.result
    }
}

/// The intervals of one job in this process, and what comes of them.
pub(super) struct Convergence {
    of: SteadyFigure,
    check_ns: u64,
    /// The end of the job's ramp on the run's clock, and of the time after it that is not checked.
    ramp_over: Nanos,
    from: Nanos,
    /// The last check, and what had completed by then.
    since: Option<(Nanos, LiveTotals)>,
    /// Latencies since the last check.
    recent: Histogram,
    /// Intervals so far.
    nth: u64,
    window: SteadyWindow,
    /// The result of all processes, in place of that of the window.
    of_all: Option<Steady>,
}

impl Convergence {
    pub(super) fn new(plan: &SteadyPlan, ramp_over: Nanos) -> Convergence {
        Convergence {
            of: plan.of,
            check_ns: plan.check_ns,
            ramp_over,
            from: ramp_over + plan.ramp_ns,
            since: None,
            recent: Histogram::default(),
            nth: 0,
            window: SteadyWindow::new(plan),
            of_all: None,
        }
    }

    /// Takes a sample of the series; true once the job has converged, and no sample counts any
    /// more. Several processes decide together.
    pub(super) fn sample(
        &mut self,
        now: Nanos,
        totals: &LiveTotals,
        latencies: &Histogram,
        peers: Option<(&dyn Peers, usize)>,
    ) -> bool {
        let interval = match self.result().attained_at_ns {
            Some(_) => None,
            None => self.interval(now, totals, latencies),
        };
        match (interval, peers) {
            (Some(part), None) => self.window.add(&[part]),
            (Some(part), Some((peers, job))) => {
                peers.interval(job, self.nth, part);
                self.nth += 1;
            }
            (None, _) => {}
        }
        if let Some((peers, job)) = peers {
            self.of_all = peers.steady(job);
        }
        self.result().attained_at_ns.is_some()
    }

    /// Looks between two samples what all processes have decided; true once the job is steady.
    pub(super) fn is_decided(&mut self, peers: &dyn Peers, job: usize) -> bool {
        self.of_all = peers.steady(job);
        self.result().attained_at_ns.is_some()
    }

    /// The counts since the last check, if it is time for one.
    fn interval(
        &mut self,
        now: Nanos,
        totals: &LiveTotals,
        latencies: &Histogram,
    ) -> Option<Interval> {
        if now < self.from {
            return None;
        }
        let Some((since, last)) = self.since else {
            self.since = Some((now, *totals));
            return None;
        };
        self.recent.merge(latencies);
        let span_ns = now.saturating_sub(since);
        // Samples come a little late, never early.
        if span_ns < self.check_ns {
            return None;
        }
        let interval = self.counted(&last, totals, (now, span_ns));
        self.since = Some((now, *totals));
        self.recent.clear();
        Some(interval)
    }

    fn counted(
        &self,
        last: &LiveTotals,
        now: &LiveTotals,
        (at, span_ns): (Nanos, u64),
    ) -> Interval {
        let per_second =
            |now: u64, last: u64| now.saturating_sub(last) as f64 * 1e9 / span_ns.max(1) as f64;
        let per_s = match self.of {
            SteadyFigure::Iops => {
                per_second(now.read_ios + now.write_ios, last.read_ios + last.write_ios)
            }
            SteadyFigure::Bandwidth => {
                per_second(now.read_bytes + now.write_bytes, last.read_bytes + last.write_bytes)
            }
            SteadyFigure::Latency => 0.0,
        };
        Interval {
            at_ns: at.saturating_sub(self.ramp_over),
            per_s,
            latency_ns: self.recent.sum() as f64,
            ios: self.recent.count(),
        }
    }

    pub(super) fn result(&self) -> Steady {
        self.of_all.unwrap_or_else(|| self.window.result())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHECK: u64 = 1_000_000_000;

    fn convergence(of: SteadyFigure, limit: f64) -> Convergence {
        let plan = SteadyPlan {
            requested: "a".to_owned(),
            of,
            slope: false,
            limit,
            percent: true,
            window_ns: 3 * CHECK,
            ramp_ns: CHECK,
            check_ns: CHECK,
        };
        Convergence::new(&plan, CHECK)
    }

    #[test]
    fn a_rate_that_converges_is_attained_with_the_window_that_shows_it() {
        let mut convergence = convergence(SteadyFigure::Iops, 2.0);
        let mut totals = LiveTotals::default();
        let mut ended = Vec::new();
        // Ramps until 2 s; the rate is 10, 50, 100, 100, 101 a second from there on.
        for (second, ios) in [1000, 1000, 10, 50, 100, 100, 101, 5].into_iter().enumerate() {
            totals.read_ios += ios;
            let now = (second as u64 + 1) * CHECK;
            ended.push(convergence.sample(now, &totals, &Histogram::default(), None));
        }
        assert_eq!(ended, [false, false, false, false, false, false, true, true]);
        let result = convergence.result();
        assert_eq!((result.attained_at_ns, result.checks), (Some(6 * CHECK), 3));
        assert!((result.mean.unwrap() - 100.333).abs() < 0.01, "{result:?}");
        assert!((result.observed.unwrap() - 0.664).abs() < 0.01, "{result:?}");
    }

    /// Mean, largest deviation and slope of three intervals, worked out by hand. The last interval
    /// is a quarter longer, as where a sample comes late.
    ///
    /// - I/Os: 100, 130 and 150 in 1.25 s: 100, 130, 120 a second. Mean 350 / 3, the first is
    ///   50 / 3 below it; the line rises by (120 - 100) / 2.
    /// - Bytes: 1000, 2200 and 3750 in 1.25 s: 1000, 2200, 3000 a second. Mean 6200 / 3, the first
    ///   is 3200 / 3 below it; the line rises by 1000.
    /// - Latencies: 1000 and 3000; 2600; 2900, 3000 and 3100: means 2000, 2600, 3000. Mean
    ///   7600 / 3, the first is 1600 / 3 below it; the line rises by 500.
    const BY_HAND: [(SteadyFigure, [f64; 3]); 3] = [
        (SteadyFigure::Iops, [350.0 / 3.0, 50.0 / 3.0, 10.0]),
        (SteadyFigure::Bandwidth, [6200.0 / 3.0, 3200.0 / 3.0, 1000.0]),
        (SteadyFigure::Latency, [7600.0 / 3.0, 1600.0 / 3.0, 500.0]),
    ];

    /// The result of the intervals of [`BY_HAND`], with two samples in the first one.
    fn of_three_intervals(of: SteadyFigure, slope: bool, percent: bool, limit: f64) -> Steady {
        let plan = SteadyPlan {
            requested: "a".to_owned(),
            of,
            slope,
            limit,
            percent,
            window_ns: 3 * CHECK,
            ramp_ns: CHECK,
            check_ns: CHECK,
        };
        let mut convergence = Convergence::new(&plan, CHECK);
        let mut totals = LiveTotals::default();
        let mut sample = |at: u64, ios: u64, bytes: u64, latencies: &[u64]| {
            // Both directions count.
            totals.read_ios += ios / 2;
            totals.write_ios += ios - ios / 2;
            totals.read_bytes += bytes / 4;
            totals.write_bytes += bytes - bytes / 4;
            let mut histogram = Histogram::default();
            latencies.iter().for_each(|&ns| histogram.record(ns));
            convergence.sample(at * CHECK / 100, &totals, &histogram, None)
        };
        // The time that is not looked at ends at 2 s.
        assert!(!sample(150, 7777, 99, &[9]));
        assert!(!sample(200, 7777, 99, &[9]));
        assert!(!sample(250, 30, 400, &[1000]));
        assert!(!sample(300, 70, 600, &[3000]));
        assert!(!sample(400, 130, 2200, &[2600]));
        let ended = sample(525, 150, 3750, &[2900, 3000, 3100]);
        let steady = convergence.result();
        assert_eq!((ended, steady.checks), (steady.attained_at_ns.is_some(), 1));
        steady
    }

    #[test]
    fn figures_are_those_that_were_worked_out_by_hand() {
        for (of, [mean, deviation, slope]) in BY_HAND {
            for (is_slope, value) in [(false, deviation), (true, slope)] {
                for percent in [false, true] {
                    let value = if percent { 100.0 * value / mean } else { value };
                    let steady = |limit| of_three_intervals(of, is_slope, percent, limit);
                    let near = |found: f64, wanted: f64| (found / wanted - 1.0).abs() < 1e-9;
                    let below = steady(value * 0.999);
                    assert!(near(below.mean.unwrap(), mean), "{of:?} {below:?}, not {mean}");
                    assert!(near(below.observed.unwrap(), value), "{of:?} {below:?}, {value}");
                    assert_eq!(below.attained_at_ns, None);
                    let above = steady(value * 1.001);
                    // From the end of the ramp at 1 s.
                    assert_eq!(above.attained_at_ns, Some(CHECK * 425 / 100));
                    assert_eq!((above.mean, above.observed), (below.mean, below.observed));
                }
            }
        }
    }

    #[test]
    fn an_interval_without_an_io_begins_a_latency_anew() {
        let mut convergence = convergence(SteadyFigure::Latency, 5.0);
        let totals = LiveTotals::default();
        let mut some = Histogram::default();
        (0..10).for_each(|_| some.record(5000));
        let none = Histogram::default();
        let samples = [&none, &none, &some, &some, &none, &some, &some, &some];
        let ended: Vec<bool> = (1..)
            .zip(samples)
            .map(|(second, latencies)| convergence.sample(second * CHECK, &totals, latencies, None))
            .collect();
        assert_eq!(ended, [false, false, false, false, false, false, false, true]);
        assert!((convergence.result().mean.unwrap() - 5000.0).abs() < 50.0);
    }

    #[test]
    fn a_load_that_stands_still_is_not_steady_by_per_cent_and_has_no_figure_that_is_none() {
        let mut convergence = convergence(SteadyFigure::Bandwidth, 5.0);
        let still = LiveTotals::default();
        let any =
            (1..20).any(|n| convergence.sample(n * CHECK, &still, &Histogram::default(), None));
        assert!(!any);
        let result = convergence.result();
        assert_eq!((result.attained_at_ns, result.observed, result.mean), (None, None, Some(0.0)));
    }

    #[test]
    fn parts_of_several_processes_are_one_interval() {
        let plan = |of| SteadyPlan {
            requested: "a".to_owned(),
            of,
            slope: false,
            limit: 1.0,
            percent: true,
            window_ns: 2 * CHECK,
            ramp_ns: 0,
            check_ns: CHECK,
        };
        let part = |at_ns, per_s, latency_ns, ios| Interval { at_ns, per_s, latency_ns, ios };
        // Each alone changes, and the sum does not.
        let mut rate = SteadyWindow::new(&plan(SteadyFigure::Bandwidth));
        rate.add(&[part(10, 100.0, 0.0, 1), part(11, 300.0, 0.0, 1)]);
        assert_eq!(rate.result().checks, 0);
        rate.add(&[part(20, 300.0, 0.0, 1), part(21, 100.0, 0.0, 1)]);
        assert_eq!((rate.result().mean, rate.result().attained_at_ns), (Some(400.0), Some(21)));
        // Each I/O counts the same.
        let mut latency = SteadyWindow::new(&plan(SteadyFigure::Latency));
        latency.add(&[part(10, 0.0, 900.0, 9), part(10, 0.0, 300.0, 1)]);
        latency.add(&[part(20, 0.0, 0.0, 0), part(20, 0.0, 1200.0, 10)]);
        assert_eq!(latency.result().mean, Some(120.0));
    }
}
