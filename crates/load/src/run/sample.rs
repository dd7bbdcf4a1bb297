//! The series: what the live pages say, interval by interval.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::Duration;

use gpuio_io::clock::Nanos;
use gpuio_record::{JobPlan, Point, Steady};
use gpuio_stat::{Histogram, LiveTotals};

use super::gate::{FirstDone, Gate};
use super::steady::Settling;

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
    /// 99th percentile of the last interval's latencies, nanoseconds.
    pub p99_ns: Option<u64>,
    /// I/Os that failed so far.
    pub failed: u64,
}

struct JobSeries {
    pages: Range<usize>,
    /// The end of the ramp on the run's clock.
    from: Nanos,
    last: LiveTotals,
    points: Vec<Point>,
    settling: Option<Settling>,
}

/// Takes the samples of one group.
pub(super) struct Sampler {
    start: Nanos,
    interval_ns: u64,
    last_at: Nanos,
    next_at: Nanos,
    expected_ns: Option<u64>,
    expected_bytes: Option<u64>,
    jobs: Vec<JobSeries>,
}

impl Sampler {
    pub(super) fn new(
        jobs: &[JobPlan],
        pages: &[Range<usize>],
        start: Nanos,
        interval_ns: u64,
    ) -> Sampler {
        let length = |job: &JobPlan| Some(job.start_delay_ns + job.ramp_ns + job.stop.runtime_ns?);
        let bytes =
            |job: &JobPlan| Some(job.stop.bytes_per_thread?.saturating_mul(u64::from(job.threads)));
        let series = |(job, pages): (&JobPlan, &Range<usize>)| {
            let from = start + job.start_delay_ns + job.ramp_ns;
            JobSeries {
                pages: pages.clone(),
                from,
                last: LiveTotals::default(),
                points: Vec::new(),
                settling: job.steady.as_ref().map(|plan| Settling::new(plan, from)),
            }
        };
        Sampler {
            start,
            interval_ns,
            last_at: start,
            next_at: start + interval_ns,
            expected_ns: jobs.iter().map(length).max().flatten(),
            expected_bytes: jobs
                .iter()
                .try_fold(0_u64, |sum, job| Some(sum.saturating_add(bytes(job)?))),
            jobs: jobs.iter().zip(pages).map(series).collect(),
        }
    }

    /// How long to wait for the workers before looking again: short enough for an interrupt.
    pub(super) fn patience(&self, now: Nanos, interval_ns: u64) -> Duration {
        let left = self.next_at.saturating_sub(now).clamp(1_000_000, interval_ns.max(1_000_000));
        Duration::from_nanos(left.min(100_000_000))
    }

    pub(super) fn due(&self, now: Nanos) -> bool {
        now >= self.next_at
    }

    /// Reads all pages and adds a point to each job's series. The last point may be shorter. A job
    /// that has settled is told to end.
    pub(super) fn sample(
        &mut self,
        gate: &Gate,
        firsts: &[FirstDone],
        now: Nanos,
        last: bool,
    ) -> Tick {
        let span_ns = now.saturating_sub(self.last_at).max(1);
        let mut sum = LiveTotals::default();
        let mut moved = LiveTotals::default();
        let mut latencies = Histogram::default();
        for (job, first) in self.jobs.iter_mut().zip(firsts) {
            let mut totals = LiveTotals::default();
            let mut window = Histogram::default();
            for page in &gate.live[job.pages.clone()] {
                totals += page.totals();
                page.take_window(&mut window);
            }
            let point = point(job, &totals, &window, now, span_ns);
            moved.read_bytes += point.read_bytes;
            moved.write_bytes += point.write_bytes;
            moved.read_ios += point.read_ios;
            moved.write_ios += point.write_ios;
            sum += totals;
            latencies.merge(&window);
            job.last = totals;
            let settles = |job: &mut Settling| job.sample(now, &totals, &window);
            if !last && first.get().is_none() && job.settling.as_mut().is_some_and(settles) {
                first.settled.store(true, Ordering::Relaxed);
            }
            if !(last && point.read_ios + point.write_ios == 0) {
                job.points.push(point);
            }
        }
        // Windows handed over now are read at the next sample: an interval late at most.
        gate.epoch.fetch_add(1, Ordering::Relaxed);
        self.last_at = now;
        self.next_at = now + self.interval_ns;
        self.tick(now, span_ns, &moved, &sum, &latencies)
    }

    #[expect(clippy::cast_precision_loss, reason = "rates for a progress line")]
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
            p99_ns: latencies.percentile(0.99),
            failed: sum.failed,
        }
    }

    /// The points of each job, and whether it settled where it was to.
    pub(super) fn series(self) -> Vec<(Vec<Point>, Option<Steady>)> {
        let of = |job: JobSeries| (job.points, job.settling.map(|settling| settling.result()));
        self.jobs.into_iter().map(of).collect()
    }
}

fn point(
    job: &JobSeries,
    totals: &LiveTotals,
    window: &Histogram,
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
        p50_ns: window.percentile(0.5),
        p99_ns: window.percentile(0.99),
        max_ns: window.percentile(1.0),
    }
}
