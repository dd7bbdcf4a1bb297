//! A log-linear histogram of nanoseconds with a bounded relative error.

use std::ops::Range;

use crate::units::whole;

use crate::stat::{Buckets, Summary};

/// Values from 2^44 ns (about 4.9 hours) on share the last bucket; `max` stays exact.
pub(crate) type Nanoseconds = Buckets<7, 44>;

/// Counts of durations in nanoseconds.
///
/// Values below 128 ns have a bucket each; above, each power of two is cut into 128 buckets, so a
/// reported percentile lies within 1/256 (0.4 %) of a value that was recorded. Count, sum, sum of
/// squares, minimum and maximum are exact (the sums as far as an `f64` carries the squares).
/// The first value allocates the counters (38 KiB), so that histograms which stay empty cost
/// nothing; after that recording touches one counter. Merging adds counters: the merge of two
/// histograms is the histogram of both sets of values.
#[derive(Clone, PartialEq)]
pub struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum: u64,
    sum_squares: f64,
    min: u64,
    max: u64,
}

/// Values that must lie beyond a percentile for it to be reported.
const BEYOND: f64 = 10.0;

/// Whether a percentile of `count` values is reported at all. Above the median at least ten values
/// must lie beyond it (100 values for 90 %, 1000 for 99 %, 10,000 for 99.9 %): with fewer it is one
/// of the few slowest, whichever these were, and another run gives another.
/// The median and what is below are reported for any number, the largest value apart.
pub fn enough_for(quantile: f64, count: u64) -> bool {
    quantile < 1.0 && count >= least_values(quantile)
}

pub(crate) fn least_values(quantile: f64) -> u64 {
    // 1 - 0.9 is a little less than a tenth: rounded, 100 values are enough for p90.
    if quantile <= 0.5 { 1 } else { whole((BEYOND / (1.0 - quantile)).round()) }
}

impl std::fmt::Debug for Histogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Histogram")
            .field("count", &self.count)
            .field("min", &self.min)
            .field("max", &self.max)
            .finish_non_exhaustive()
    }
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { counts: Vec::new(), count: 0, sum: 0, sum_squares: 0.0, min: u64::MAX, max: 0 }
    }
}

impl Histogram {
    /// Adds one duration.
    #[inline]
    pub fn record(&mut self, value_ns: u64) {
        match self.counts.get_mut(Nanoseconds::of(value_ns)) {
            Some(count) => *count += 1,
            None => self.first(value_ns),
        }
        self.count += 1;
        self.sum = self.sum.wrapping_add(value_ns);
        let v = value_ns as f64;
        self.sum_squares += v * v;
        self.min = self.min.min(value_ns);
        self.max = self.max.max(value_ns);
    }

    /// Makes the counters. Away from the hot path.
    #[cold]
    fn first(&mut self, value_ns: u64) {
        self.counts = vec![0; Nanoseconds::COUNT];
        self.counts[Nanoseconds::of(value_ns)] = 1;
    }

    /// The histogram that a summary was made of, so that records can be merged. The buckets, the
    /// extremes and the mean are exact; the deviation is as exact as its printed digits.
    pub fn from_summary(summary: &Summary) -> Histogram {
        let mut histogram =
            Histogram { counts: vec![0; Nanoseconds::COUNT], ..Histogram::default() };
        for &(low, count) in &summary.buckets {
            histogram.counts[Nanoseconds::of(low)] += count;
        }
        let n = summary.count as f64;
        let squares = summary.stddev_ns.powi(2) + summary.mean_ns.powi(2);
        histogram.count = summary.count;
        histogram.sum = whole((summary.mean_ns * n).round());
        histogram.sum_squares = squares * n;
        // In a summary that others made, it may be above the largest.
        histogram.min = summary.min_ns.min(summary.max_ns);
        histogram.max = summary.max_ns;
        histogram
    }

    /// Adds all of `other`'s values.
    pub fn merge(&mut self, other: &Histogram) {
        if other.count == 0 {
            return;
        }
        if self.counts.is_empty() {
            self.counts = vec![0; Nanoseconds::COUNT];
        }
        let (first, last) = (Nanoseconds::of(other.min), Nanoseconds::of(other.max));
        for (mine, theirs) in self.counts[first..=last].iter_mut().zip(&other.counts[first..=last])
        {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum = self.sum.wrapping_add(other.sum);
        self.sum_squares += other.sum_squares;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        if self.count > 0 {
            let (first, last) = (Nanoseconds::of(self.min), Nanoseconds::of(self.max));
            self.counts[first..=last].fill(0);
        }
        self.count = 0;
        self.sum = 0;
        self.sum_squares = 0.0;
        self.min = u64::MAX;
        self.max = 0;
    }

    /// How many values were recorded.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Sum of all values in nanoseconds.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// The percentile `quantile` (0 to 1, below 1), or `None` where [`enough_for`] says that there
    /// are too few values for it.
    pub fn percentile(&self, quantile: f64) -> Option<u64> {
        enough_for(quantile, self.count).then(|| self.at(quantile)).flatten()
    }

    /// Largest value, exact; of an interval ([`Histogram::since`]) within 0.8 %.
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// The values that came after `earlier`, an earlier reading of the same histogram. Their number
    /// and sum are exact; the extremes lie within 0.8 % where they are not new to the whole.
    pub fn since(&self, earlier: &Histogram) -> Histogram {
        if earlier.count == 0 || self.count == 0 {
            return self.clone();
        }
        let mut part = Histogram { counts: self.counts.clone(), ..Histogram::default() };
        for (mine, before) in part.counts.iter_mut().zip(&earlier.counts) {
            *mine = mine.saturating_sub(*before);
        }
        part.count = part.counts.iter().sum();
        if part.count == 0 {
            return Histogram::default();
        }
        part.sum = self.sum.wrapping_sub(earlier.sum);
        part.sum_squares = (self.sum_squares - earlier.sum_squares).max(0.0);
        let held = |count: &u64| *count > 0;
        let first = part.counts.iter().position(held).map(|index| Nanoseconds::bounds(index).0);
        let last = part.counts.iter().rposition(held).map(Nanoseconds::bounds);
        part.min = if self.min < earlier.min { self.min } else { first.unwrap_or(self.min) };
        part.min = part.min.max(self.min);
        part.max = match last {
            Some((low, width)) if self.max <= earlier.max => (low + width - 1).min(self.max),
            _ => self.max,
        };
        part
    }

    /// Adds counts of the buckets `held`, with sum and sum of squares, minimum and maximum of what
    /// was counted there.
    pub(crate) fn add_counts(
        &mut self,
        held: Range<usize>,
        counts: impl Iterator<Item = u64>,
        (sum, squares): (u64, f64),
        (min, max): (u64, u64),
    ) {
        if self.counts.is_empty() {
            self.counts = vec![0; Nanoseconds::COUNT];
        }
        for (mine, count) in self.counts[held].iter_mut().zip(counts) {
            *mine += count;
            self.count += count;
        }
        self.sum = self.sum.wrapping_add(sum);
        self.sum_squares += squares;
        self.min = self.min.min(min);
        self.max = self.max.max(max);
    }

    /// The value below or at which `quantile` (0 to 1) of the recorded values lie, or `None` when
    /// nothing was recorded. The middle of the bucket, kept within the exact minimum and maximum.
    fn at(&self, quantile: f64) -> Option<u64> {
        Some(Nanoseconds::at(&self.counts, quantile)?.clamp(self.min, self.max))
    }

    /// The least and the most that the mean of these powers of the values can be, by the buckets
    /// and the extremes; `None` when nothing was recorded.
    pub fn mean_bounds(&self, power: i32) -> Option<(f64, f64)> {
        let held = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        let sums = held.fold((0.0, 0.0), |(least, most), (index, count)| {
            let (low, width) = Nanoseconds::bounds(index);
            let is_last = index + 1 == Nanoseconds::COUNT;
            let high = if is_last { self.max } else { low + width - 1 };
            let end = |value: u64| {
                let value = value.max(self.min).min(self.max) as f64;
                value.powi(power) * *count as f64
            };
            (least + end(low), most + end(high))
        });
        let n = self.count as f64;
        (self.count > 0).then(|| (sums.0 / n, sums.1 / n))
    }

    /// The figures that reports show, or `None` when nothing was recorded.
    pub fn summary(&self) -> Option<Summary> {
        if self.count == 0 {
            return None;
        }
        let (n, sum) = (self.count as f64, self.sum as f64);
        let mean = sum / n;
        let variance = (self.sum_squares / n - mean * mean).max(0.0);
        let summary = Summary {
            count: self.count,
            min_ns: self.min,
            mean_ns: mean,
            stddev_ns: variance.sqrt(),
            max_ns: self.max,
            buckets: self.buckets(),
            ..Summary::default()
        };
        Some(summary.with(|at| self.percentile(at.quantile())))
    }

    /// The buckets that hold something: lowest value and count.
    fn buckets(&self) -> Vec<(u64, u64)> {
        let held = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        held.map(|(index, count)| (Nanoseconds::bounds(index).0, *count)).collect()
    }
}

#[cfg(test)]
mod tests;
