//! One metric of a pair.

use serde::Serialize;

/// What an interval rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "from")]
pub enum Basis {
    /// Repeats on both sides: Welch's t on logarithms.
    Repeats,
    /// Runs in turns, the nth of one beside the nth of the other: t of the ratios' logarithms.
    Turns,
    /// One run against several: would the one be at home among the others.
    OneAgainstRepeats,
    /// One run each: what went up and down within them, by batch means. Not what another run would
    /// give.
    WithinRuns,
    /// One run each, and nothing known of what went on within: the interval is of rounding alone.
    Rounding,
}

impl Basis {
    /// The mark beside an interval that does not rest on repeats; empty for one that does.
    #[must_use]
    pub fn mark(self) -> &'static str {
        match self {
            Basis::Repeats | Basis::Turns => "",
            Basis::OneAgainstRepeats => " p",
            Basis::WithinRuns => " w",
            Basis::Rounding => " r",
        }
    }

    /// In words, below a table.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Basis::Repeats => "repeats on both sides (Welch's t on logarithms)",
            Basis::Turns => "runs in turns (t of the ratios' logarithms)",
            Basis::OneAgainstRepeats => {
                "one run against several, taken to vary as they do (prediction interval)"
            }
            Basis::WithinRuns => {
                "one run each: the interval is of the intervals within the run, not of repeats"
            }
            Basis::Rounding => {
                "one run each, nothing told of what went on within: the interval is of printed \
                 digits and latency buckets alone"
            }
        }
    }
}

/// What can be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The other side is better, and the interval is on one side of 1.
    Better,
    /// It is worse, likewise.
    Worse,
    /// The interval holds 1: no difference that can be told from noise.
    Noise,
    /// The interval holds 1 and spans a factor of ten or more: there are too few runs to say
    /// anything.
    TooFew,
    /// One run each, and more of a difference than goes on within them: repeats would tell whether
    /// it is more than goes on between runs.
    CantTell,
}

/// A metric of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Row {
    /// Key of the metric.
    pub metric: &'static str,
    /// Unit of the values.
    pub unit: &'static str,
    /// The baseline's value; of repeats the geometric mean.
    pub baseline: f64,
    /// The other side's.
    pub other: f64,
    /// Runs of the baseline that have it.
    pub baseline_runs: usize,
    /// Runs of the other side.
    pub other_runs: usize,
    /// Other over baseline.
    pub ratio: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// What the interval rests on.
    pub basis: Basis,
    /// What can be said.
    pub verdict: Verdict,
    /// Two-sided p of the rank-sum test, which takes nothing for granted of how runs are spread;
    /// absent where there are too few runs for it to get below 0.05.
    pub rank_p: Option<f64>,
    /// Whether it is worse by more than the threshold, the whole interval beyond it; absent where
    /// no threshold is on this metric.
    pub beyond: Option<bool>,
}
