//! The series: what the worker counters (`gpuio_base::stat::Live`) show, interval by interval.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::Duration;

use gpuio_base::stat::{Counted, Histogram, Live, LiveTotals, Percentile};
use gpuio_io::clock::Nanos;
use gpuio_record::{JobPlan, Point, Steady};

use super::gate::FirstDone;
use super::peers::Peers;
use super::steady::Convergence;
use gpuio_job::workload::feed::Shape;

/// How a group goes, for a progress line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tick {
    /// Time since the start, nanoseconds.
    pub elapsed_ns: u64,
    /// Time that the group should take, where it is bound by time.
    pub expected_ns: Option<u64>,
    /// Share of the bytes moved, where it is bound by bytes, 0 to 1.
    pub moved_share: Option<f64>,
    /// Bytes per second over the last interval, both directions.
    pub bytes_per_s: f64,
    /// I/Os per second over the last interval.
    pub iops: f64,
    /// [`Percentile::TAIL`] of the last interval's latencies, nanoseconds.
    pub tail_ns: Option<u64>,
    /// I/Os that failed so far.
    pub failed: u64,
}

struct JobSeries {
    live: Range<usize>,
    /// The end of the ramp on the run's clock.
    from: Nanos,
    last: LiveTotals,
    /// Latencies of reads and of writes until the last point.
    seen: [Histogram; 2],
    points: Vec<Point>,
    convergence: Option<Convergence>,
}

impl JobSeries {
    /// The totals so far, and the latencies of the reads and of the writes that completed since the
    /// last reading, with their sums. A worker counts an I/O before it adds its latency: a sum that
    /// comes alone is the next reading's, or, at the `last` one, of the I/Os before it.
    fn read(&mut self, live: &[Live], last: bool) -> (LiveTotals, [Histogram; 2], [u64; 2]) {
        let mut totals = LiveTotals::default();
        let mut seen = <[Histogram; 2]>::default();
        for counters in &live[self.live.clone()] {
            totals += counters.totals();
            for (write, all) in [false, true].into_iter().zip(&mut seen) {
                counters.latencies(Counted { write, ramp: true }, all);
                counters.latencies(Counted { write, ramp: false }, all);
            }
        }
        (totals.read_ios, totals.write_ios) = (seen[0].count(), seen[1].count());
        let windows = [seen[0].since(&self.seen[0]), seen[1].since(&self.seen[1])];
        let mut sums = [0; 2];
        for (nth, now) in seen.into_iter().enumerate() {
            if last || windows[nth].count() > 0 {
                sums[nth] = now.sum().wrapping_sub(self.seen[nth].sum());
                self.seen[nth] = now;
            }
        }
        (totals, windows, sums)
    }
}

/// Takes the samples of one group.
pub(super) struct SeriesSampler {
    start: Nanos,
    interval_ns: u64,
    last_at: Nanos,
    next_at: Nanos,
    expected_ns: Option<u64>,
    expected_bytes: Option<u64>,
    jobs: Vec<JobSeries>,
}

impl SeriesSampler {
    pub(super) fn new(
        jobs: &[JobPlan],
        live_ranges: &[Range<usize>],
        start: Nanos,
        interval_ns: u64,
    ) -> SeriesSampler {
        let bytes = |job: &JobPlan| match (&job.feed, &job.replay) {
            (_, Some(replay)) => Some(replay.read_bytes.saturating_add(replay.written_bytes)),
            (Some(feed), _) => Some(Shape::new(feed).epoch_bytes().saturating_mul(feed.epochs)),
            (None, None) => Some(job.stop.bytes_per_thread?.saturating_mul(u64::from(job.threads))),
        };
        let series = |(job, range): (&JobPlan, &Range<usize>)| {
            let from = start + job.measured_from_ns();
            JobSeries {
                live: range.clone(),
                from,
                last: LiveTotals::default(),
                seen: Default::default(),
                points: Vec::new(),
                convergence: job.steady.as_ref().map(|plan| Convergence::new(plan, from)),
            }
        };
        SeriesSampler {
            start,
            interval_ns,
            last_at: start,
            next_at: start + interval_ns,
            expected_ns: jobs.iter().map(JobPlan::time_over_ns).max().flatten(),
            expected_bytes: jobs
                .iter()
                .try_fold(0_u64, |sum, job| Some(sum.saturating_add(bytes(job)?))),
            jobs: jobs.iter().zip(live_ranges).map(series).collect(),
        }
    }

    /// How long to wait for the workers before looking again: short enough for an interrupt.
    pub(super) fn timeout(&self, now: Nanos, interval_ns: u64) -> Duration {
        let left = self.next_at.saturating_sub(now).clamp(1_000_000, interval_ns.max(1_000_000));
        Duration::from_nanos(left.min(100_000_000))
    }

    /// Stops the jobs that all processes together have found to be steady.
    pub(super) fn settle(&mut self, firsts: &[FirstDone], peers: &dyn Peers) {
        for (nth, (job, first)) in self.jobs.iter_mut().zip(firsts).enumerate() {
            if job.convergence.as_mut().is_some_and(|one| one.is_decided(peers, nth)) {
                first.ended.store(true, Ordering::Relaxed);
            }
        }
    }

    pub(super) fn due(&self, now: Nanos) -> bool {
        now >= self.next_at
    }

    /// Reads all live counters and adds a point to each job's series: bytes, I/Os and latencies of
    /// what completed since the last one, and of nothing else, whatever workers do at the same
    /// time. I/Os are counted by their latencies, so that a point's rate and percentiles are of the
    /// same I/Os. The last point may be shorter. A job that has converged is stopped.
    pub(super) fn sample(
        &mut self,
        live: &[Live],
        firsts: &[FirstDone],
        (now, last): (Nanos, bool),
        peers: Option<&dyn Peers>,
    ) -> Tick {
        let span_ns = now.saturating_sub(self.last_at).max(1);
        let mut sum = LiveTotals::default();
        let mut moved = LiveTotals::default();
        let mut latencies = Histogram::default();
        for (nth, (job, first)) in self.jobs.iter_mut().zip(firsts).enumerate() {
            let (totals, [reads, writes], sums) = job.read(live, last);
            let mut window = reads;
            window.merge(&writes);
            let point = point(job, &totals, (sums, &window), now, span_ns);
            moved.read_bytes += point.read_bytes;
            moved.write_bytes += point.write_bytes;
            moved.read_ios += point.read_ios;
            moved.write_ios += point.write_ios;
            sum += totals;
            latencies.merge(&window);
            job.last = totals;
            let peers = peers.map(|peers| (peers, nth));
            let converges = |job: &mut Convergence| job.sample(now, &totals, &window, peers);
            if !last && first.get().is_none() && job.convergence.as_mut().is_some_and(converges) {
                first.ended.store(true, Ordering::Relaxed);
            }
            add(&mut job.points, point, last);
        }
        self.last_at = now;
        self.next_at = now + self.interval_ns;
        self.tick(now, span_ns, &moved, &sum, &latencies)
    }

    fn tick(
        &self,
        now: Nanos,
        span_ns: u64,
        moved: &LiveTotals,
        sum: &LiveTotals,
        latencies: &Histogram,
    ) -> Tick {
        let seconds = span_ns as f64 / 1e9;
        let bytes = sum.read_bytes + sum.write_bytes;
        Tick {
            elapsed_ns: now.saturating_sub(self.start),
            expected_ns: self.expected_ns,
            moved_share: self.expected_bytes.map(|of| (bytes as f64 / of.max(1) as f64).min(1.0)),
            bytes_per_s: (moved.read_bytes + moved.write_bytes) as f64 / seconds,
            iops: (moved.read_ios + moved.write_ios) as f64 / seconds,
            tail_ns: latencies.percentile(Percentile::TAIL.quantile()),
            failed: sum.failed,
        }
    }

    /// The end of the ramp of each job, its pages and its points so far.
    pub(super) fn so_far(&self) -> impl Iterator<Item = (Nanos, Range<usize>, &[Point])> {
        self.jobs.iter().map(|job| (job.from, job.live.clone(), job.points.as_slice()))
    }

    /// The points of each job, and whether it converged where it was to.
    pub(super) fn series(self) -> Vec<(Vec<Point>, Option<Steady>)> {
        let of =
            |job: JobSeries| (job.points, job.convergence.map(|convergence| convergence.result()));
        self.jobs.into_iter().map(of).collect()
    }
}

/// Adds a point. I/Os that completed while counters were being read may have been counted in one
/// point and their bytes in the next: a last point of bytes alone belongs to the one before it.
fn add(points: &mut Vec<Point>, mut point: Point, last: bool) {
    if let Some(before) = points.last_mut().filter(|_| last) {
        let give = |ios: u64, from: &mut Option<u64>, to: &mut Option<u64>| {
            if let (0, Some(left), Some(sum)) = (ios, from.as_mut(), to.as_mut()) {
                *sum += std::mem::take(left);
            }
        };
        give(point.read_ios, &mut point.read_latency_ns, &mut before.read_latency_ns);
        give(point.write_ios, &mut point.write_latency_ns, &mut before.write_latency_ns);
    }
    match points.last_mut() {
        Some(before) if last && point.read_ios + point.write_ios == 0 => {
            before.read_bytes += point.read_bytes;
            before.write_bytes += point.write_bytes;
        }
        None if last && point.read_ios + point.write_ios == 0 => {}
        _ => points.push(point),
    }
}

fn point(
    job: &JobSeries,
    totals: &LiveTotals,
    (sums, window): ([u64; 2], &Histogram),
    now: Nanos,
    span_ns: u64,
) -> Point {
    let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    Point {
        at_ns: signed(now) - signed(job.from),
        span_ns,
        read_bytes: totals.read_bytes.saturating_sub(job.last.read_bytes),
        write_bytes: totals.write_bytes.saturating_sub(job.last.write_bytes),
        read_ios: totals.read_ios.saturating_sub(job.last.read_ios),
        write_ios: totals.write_ios.saturating_sub(job.last.write_ios),
        read_latency_ns: Some(sums[0]),
        write_latency_ns: Some(sums[1]),
        ..Point::of_latencies(window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpuio_testkit::jobs;

    const SECOND: u64 = 1_000_000_000;
    const READS: Counted = Counted { write: false, ramp: false };

    /// Time goes by in steps of a second; workers that never look at anything do nothing but count.
    #[test]
    fn bytes_whose_ios_were_counted_before_are_not_lost_with_the_last_point() {
        let point = |at_ns: i64, read_ios: u64, read_bytes: u64| Point {
            at_ns,
            span_ns: 1,
            read_bytes,
            read_ios,
            ..Point::default()
        };
        let mut points = Vec::new();
        add(&mut points, point(1, 10, 8 * 4096), false);
        add(&mut points, point(2, 0, 2 * 4096), true);
        assert_eq!((points.len(), points[0].read_bytes), (1, 10 * 4096));
        let late = |ns| Point { read_latency_ns: Some(ns), ..Point::default() };
        let mut sums = vec![late(70)];
        add(&mut sums, late(30), true);
        assert_eq!((sums.len(), sums[0].read_latency_ns), (1, Some(100)), "a latency that is late");
        add(&mut points, point(3, 1, 4096), true);
        assert_eq!(points.len(), 2, "a last point of its own");
        let mut none = Vec::new();
        add(&mut none, point(1, 0, 0), true);
        assert!(none.is_empty());
    }

    #[test]
    fn a_point_has_rate_and_latencies_of_the_same_interval_whatever_workers_do() {
        let job = jobs::job("filename=/dev/null\nthreads=2\nruntime=10");
        let live = [Live::default(), Live::default()];
        let firsts = [FirstDone::new(2)];
        let both = 0..2;
        let mut sampler = SeriesSampler::new(&[job], &[both], 0, SECOND);
        let mut second = |nth: u64, fast: u32, slow_ns: Option<u64>| {
            // The second worker hangs all the time.
            (0..fast).for_each(|_| live[0].complete(READS, 4096, 1_000_000));
            slow_ns.into_iter().for_each(|ns| live[0].complete(READS, 4096, ns));
            sampler.sample(&live, &firsts, (nth * SECOND, nth == 5), None)
        };
        let ticks = [
            second(1, 2000, None),
            // One I/O is in flight for 900 ms of the third second and back within it.
            second(2, 2000, None),
            second(3, 100, Some(900_000_000)),
            second(4, 2000, None),
            second(5, 500, None),
        ];
        let series = sampler.series().remove(0).0;
        let of = |of: fn(&Point) -> u64| series.iter().map(of).collect::<Vec<_>>();
        assert_eq!(of(|point| point.read_ios), [2000, 2000, 101, 2000, 500]);
        assert_eq!(of(|point| point.read_bytes / 4096), [2000, 2000, 101, 2000, 500]);
        let millis = |ns: u64| (ns + 10_000) / 1_000_000;
        let max = series.iter().map(|point| millis(point.max_ns.unwrap()));
        assert_eq!(max.collect::<Vec<_>>(), [1, 1, 900, 1, 1]);
        let sums = series.iter().map(|point| point.read_latency_ns.unwrap() / 1_000_000);
        assert_eq!(sums.collect::<Vec<_>>(), [2000, 2000, 1000, 2000, 500]);
        assert!(series.iter().all(|point| point.write_latency_ns == Some(0)));
        let p50 = series.iter().map(|point| millis(point.p50_ns.unwrap()));
        assert_eq!(p50.collect::<Vec<_>>(), [1, 1, 1, 1, 1], "the first and the last have it too");
        // No 99th percentile is reported of 101 and of 500.
        let tail = series.iter().map(|point| point.percentile(Percentile::TAIL).is_some());
        assert_eq!(tail.collect::<Vec<_>>(), [true, true, false, true, false]);
        assert_eq!(ticks.map(|tick| tick.tail_ns.is_some()), [true, true, false, true, false]);
    }

    #[test]
    fn the_ramp_has_points_with_latencies_of_its_own() {
        let job = jobs::job("filename=/dev/null\nruntime=10\nramp=1");
        let (live, firsts) = ([Live::default()], [FirstDone::new(1)]);
        let one = 0..1;
        let mut sampler = SeriesSampler::new(&[job], &[one], 0, SECOND);
        live[0].complete(Counted { ramp: true, ..READS }, 4096, 7000);
        sampler.sample(&live, &firsts, (SECOND / 2, false), None);
        live[0].complete(READS, 8192, 9000);
        sampler.sample(&live, &firsts, (2 * SECOND, true), None);
        let series = sampler.series().remove(0).0;
        let seen = series.iter().map(|p| (p.at_ns < 0, p.read_ios, p.read_bytes, p.max_ns));
        let near = |max: Option<u64>, ns: u64| max.is_some_and(|max| max.abs_diff(ns) < 80);
        let seen: Vec<_> = seen.collect();
        assert!(matches!(seen[..], [(true, 1, 4096, _), (false, 1, 8192, _)]), "{seen:?}");
        assert!(near(seen[0].3, 7000) && near(seen[1].3, 9000), "{seen:?}");
    }
}
