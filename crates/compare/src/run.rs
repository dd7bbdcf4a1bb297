//! One job and direction of one run.

use std::collections::BTreeMap;

use gpuio_foreign::Direction;
use gpuio_stat::infer::Spread;

/// A measured figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figure {
    /// The value, in the metric's unit.
    pub value: f64,
    /// How far the true one may be off by rounding or buckets, as a share of the value.
    pub off: f64,
    /// How far the mean may be off by what went up and down within the run, where its series tells.
    pub spread: Option<Spread>,
}

/// One job and direction of one run of one tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The file that it is from.
    pub from: String,
    /// The tool with its version.
    pub tool: String,
    /// The job's name; absent where the tool has none.
    pub job: Option<String>,
    /// Which way.
    pub direction: Direction,
    /// Its place in a sweep: axis and value, in the sweep's order.
    pub at: Vec<(String, String)>,
    /// What is known of it, by the keys of [`crate::ASPECTS`].
    pub told: BTreeMap<&'static str, String>,
    /// Its figures, by the keys of [`crate::METRICS`].
    pub figures: BTreeMap<&'static str, Figure>,
    /// What more to know.
    pub notes: Vec<String>,
}

/// All runs that stand for one thing: the baseline, or one of those held against it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Side {
    /// Its name: the file or folder, or a value of an axis.
    pub name: String,
    /// Its runs. Those of the same job and load are repeats.
    pub runs: Vec<Run>,
    /// What to know of all of them: how the tool measures, what was skipped.
    pub notes: Vec<String>,
}
