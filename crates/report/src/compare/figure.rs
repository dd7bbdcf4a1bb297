//! One metric of a pair.

use gpuio_record::Metric;
use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "from")]
pub enum Basis {
    /// Repeats on both sides: Welch's t on logarithms.
    Repeats,
    /// Alternating runs, the nth of one next to the nth of the other: t of the ratios' logarithms.
    Turns,
    /// One run against several: whether it is in their prediction interval.
    OneAgainstRepeats,
    /// One run each: the variation within them, by batch means. Does not predict another run.
    WithinRuns,
    /// One run each, with unknown variation within: the interval covers only rounding.
    Rounding,
}

impl Basis {
    /// The mark of an interval that is not based on repeats; empty for one that is.
    pub fn mark(self) -> &'static str {
        match self {
            Basis::Repeats | Basis::Turns => "",
            Basis::OneAgainstRepeats => " p",
            Basis::WithinRuns => " w",
            Basis::Rounding => " r",
        }
    }

    /// Whether there is one value of each side.
    pub(crate) fn is_one_run_each(self) -> bool {
        matches!(self, Basis::WithinRuns | Basis::Rounding)
    }

    /// In words, below a table.
    pub fn words(self) -> &'static str {
        match self {
            Basis::Repeats => "repeats on both sides (Welch's t on logarithms)",
            Basis::Turns => "alternating runs (t of the ratios' logarithms)",
            Basis::OneAgainstRepeats => {
                "one run against several, assumed to vary as they do (prediction interval)"
            }
            Basis::WithinRuns => {
                "one run each: based on the variation within the run, not on repeats"
            }
            Basis::Rounding => "one run each, variation within unknown: no interval",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The other side is better, and the interval is on one side of 1.
    Better,
    /// It is worse, likewise.
    Worse,
    /// The interval includes 1, and excludes both a gain and a loss of the threshold (10 % where
    /// none applies): any difference is too small to matter.
    Noise,
    /// Both keep the same requested rate: their difference is none of the storage.
    RequestedRate,
    /// Latencies that count from different moments, or a result that contradicts itself.
    NotComparable,
    /// Nothing can be concluded: the interval includes 1 and such a gain or loss, or there is one
    /// run each and a larger difference than the variation within them.
    NotEnoughRuns,
}

/// An interval whose ends are this far apart is not printed.
const NOTHING: f64 = 10.0;

impl Row {
    pub(crate) fn is_comparable(&self) -> bool {
        self.verdict != Verdict::NotComparable
    }

    /// Whether the interval is so wide that its ends mean nothing.
    pub(crate) fn is_boundless(&self) -> bool {
        self.high >= NOTHING * self.low
    }

    /// Whether the ends of the interval are printed: not if the figures are not comparable or those
    /// of some runs, if they cover rounding alone, or if they mean nothing (with two runs they
    /// would be 0 and a number of twenty digits), unless they decide over a threshold.
    pub(crate) fn has_ends(&self) -> bool {
        let decides = self.beyond == Some(true) || !self.is_boundless();
        self.is_comparable() && self.is_of_all && decides && self.basis != Basis::Rounding
    }

    /// Whether there is one run each, and only repeats would show whether their difference is one
    /// between runs.
    pub(crate) fn is_of_single_runs(&self) -> bool {
        let single = matches!(self.basis, Basis::WithinRuns | Basis::Rounding);
        single && self.verdict == Verdict::NotEnoughRuns
    }
}

/// A kind of doubt about the figures of one side of a pair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Doubted {
    /// Its name; never changes.
    pub doubt: &'static str,
    /// A sentence; where those of runs differ, that of the first.
    pub why: String,
    /// Runs of the side that have it.
    pub runs: usize,
}

/// A metric of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Row {
    pub metric: Metric,
    pub unit: &'static str,
    /// The baseline's value; of repeats the geometric mean.
    pub baseline: f64,
    /// The other side's.
    pub other: f64,
    pub baseline_runs: usize,
    pub other_runs: usize,
    /// Whether the values are those of all runs: some may be too short to have the metric.
    #[serde(skip)]
    pub is_of_all: bool,
    /// Other divided by baseline; not a number where they are not comparable, as are the ends.
    pub ratio: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    pub basis: Basis,
    pub verdict: Verdict,
    /// Runs of each side that would do, about, where there are not enough: with as much variation
    /// between runs, and this ratio. Absent where the variation is unknown, where some runs lack
    /// the metric, and above 1000.
    pub runs_needed: Option<usize>,
    /// Two-sided p of the rank-sum test, which assumes no distribution of runs; `None` if there are
    /// too few runs for it to get below 0.05.
    pub rank_p: Option<f64>,
    /// Whether it is worse by more than the threshold, with the whole interval beyond it; `None` if
    /// no threshold applies to this metric, or if others disturbed the runs of one side alone.
    pub beyond: Option<bool>,
}
