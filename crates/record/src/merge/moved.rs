//! The bytes that ranks moved while all of them ran; slow ranks.

use gpuio_base::units::per_second;

use crate::{RankJobRates, RankRow, RateOver, Straggler, TimeSpan};

/// Less than this share of the median is slow.
const SLOW: f64 = 0.9;
const STRAGGLERS_MOST: usize = 8;
/// Readings that are kept; beyond, every second one goes.
const READINGS_MOST: usize = 1 << 18;

/// Bytes that a job has moved, read from time to time while it runs.
#[derive(Debug, Clone, Default)]
pub struct Moved {
    readings: Vec<(u64, u64)>,
    /// One in so many is kept.
    every: u64,
    seen: u64,
}

impl Moved {
    /// Adds a reading: nanoseconds on any clock, bytes until then. Both only grow.
    pub fn read(&mut self, at_ns: u64, bytes: u64) {
        let every = self.every.max(1);
        self.seen += 1;
        if !self.seen.is_multiple_of(every) {
            return;
        }
        self.readings.push((at_ns, bytes));
        if self.readings.len() >= READINGS_MOST {
            let mut keep = false;
            self.readings.retain(|_| {
                keep = !keep;
                keep
            });
            self.every = every * 2;
        }
    }

    /// Bytes until this time, and how far that may be wrong: the readings before and after it bound
    /// it. `span` and `bytes` are those of the job, exact.
    pub fn until(&self, at_ns: u64, span: TimeSpan, bytes: u64) -> (u64, u64) {
        if at_ns <= span.begin_ns {
            return (0, 0);
        }
        if at_ns >= span.end_ns {
            return (bytes, 0);
        }
        let after = self.readings.partition_point(|(at, _)| *at <= at_ns);
        let known = |index: usize| self.readings.get(index).copied();
        let (from, at_from) = after
            .checked_sub(1)
            .and_then(known)
            .filter(|(at, _)| *at >= span.begin_ns)
            .unwrap_or((span.begin_ns, 0));
        let (to, at_to) =
            known(after).filter(|(at, _)| *at <= span.end_ns).unwrap_or((span.end_ns, bytes));
        let between = at_to.saturating_sub(at_from);
        let (part, whole) = (u128::from(at_ns - from), u128::from((to - from).max(1)));
        let share = u64::try_from(u128::from(between) * part / whole).unwrap_or(between);
        (at_from + share, between)
    }
}

/// When a job ran on one rank, on a common clock, and what it moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobTimes {
    /// From the end of the ramp until the last I/O was back.
    pub span: TimeSpan,
    /// Bytes, both directions.
    pub bytes: u64,
}

/// The bounds of the times over which the rates of a job are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windows {
    /// The first begin.
    pub first_begin_ns: u64,
    /// The last begin.
    pub last_begin_ns: u64,
    /// The first end.
    pub first_end_ns: u64,
    /// The last end.
    pub last_end_ns: u64,
}

/// The windows of a job that ran on all ranks; `None` where it ran on none.
pub fn windows(all: &[JobTimes]) -> Option<Windows> {
    let begins = || all.iter().map(|one| one.span.begin_ns);
    let ends = || all.iter().map(|one| one.span.end_ns);
    Some(Windows {
        first_begin_ns: begins().min()?,
        last_begin_ns: begins().max()?,
        first_end_ns: ends().min()?,
        last_end_ns: ends().max()?,
    })
}

/// The rates of a job. `parts` has for each rank the bytes until the last begin and until the first
/// end, each with its bound; `bytes` is what all moved.
pub fn rates(job: &str, windows: Windows, parts: &[[(u64, u64); 2]], bytes: u64) -> RankJobRates {
    let Windows { first_begin_ns, last_begin_ns, first_end_ns, last_end_ns } = windows;
    let until_end: u64 = parts.iter().map(|[_, end]| end.0).sum();
    let end_bound: u64 = parts.iter().map(|[_, end]| end.1).sum();
    let together: u64 = parts.iter().map(|[begin, end]| end.0.saturating_sub(begin.0)).sum();
    let together_bound: u64 = parts.iter().map(|[begin, end]| begin.1 + end.1).sum();
    let time = |from: u64, to: u64| to.saturating_sub(from);
    RankJobRates {
        job: job.to_owned(),
        ends_by: None,
        until_first: over(time(first_begin_ns, first_end_ns), until_end, end_bound),
        while_all: (first_end_ns > last_begin_ns)
            .then(|| over(first_end_ns - last_begin_ns, together, together_bound)),
        until_last: over(time(first_begin_ns, last_end_ns), bytes, 0),
        stragglers: Vec::new(),
    }
}

fn over(time_ns: u64, bytes: u64, bytes_bound: u64) -> RateOver {
    RateOver { time_ns, bytes, bytes_bound, bytes_per_s: per_second(bytes, time_ns) }
}

/// From the first start to the last, and how well that is known: `started` has for each rank when
/// its last worker began on rank 0's clock, and the bound of its clock's offset.
pub fn skew(started: &[(u64, u64)]) -> (u64, u64) {
    let times = || started.iter().map(|(at, _)| *at);
    let skew = times().max().unwrap_or(0) - times().min().unwrap_or(0);
    let mut bounds: Vec<u64> = started.iter().map(|(_, bound)| *bound).collect();
    bounds.sort_unstable();
    (skew, bounds.iter().rev().take(2).sum())
}

/// The slowest ranks of a job, slowest first.
pub fn stragglers(job: &str, rows: &[RankRow]) -> Vec<Straggler> {
    let rate = |row: &RankRow| Some(row.jobs.iter().find(|one| one.job == job)?.bytes_per_s);
    let mut all: Vec<(f64, &RankRow)> =
        rows.iter().filter_map(|row| Some((rate(row)?, row))).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let Some((upper, _)) = all.get(all.len() / 2) else { return Vec::new() };
    let lower = all[(all.len() - 1) / 2].0;
    let median = f64::midpoint(lower, *upper);
    let slow = all.iter().filter(|(rate, _)| *rate < SLOW * median).take(STRAGGLERS_MOST);
    slow.map(|(rate, row)| Straggler {
        rank: row.rank,
        host: row.host.clone(),
        gpus: row.gpus.clone(),
        devices: row.devices.clone(),
        nics: row.nics.clone(),
        bytes_per_s: *rate,
        of_median: rate / median,
    })
    .collect()
}
