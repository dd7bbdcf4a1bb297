//! Steady state: the criterion of a job, and whether it was met.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A criterion that ends a job once it is met, by the rules of fio's `steadystate`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SteadyPlan {
    /// The criterion as requested, such as `iops_slope:1%`.
    #[serde(alias = "asked")]
    pub requested: String,
    /// The figure that is watched.
    pub of: SteadyFigure,
    /// The slope of the line of least squares through the window, in place of the largest deviation
    /// from its mean.
    pub slope: bool,
    /// The limit that the observed value must stay below: in the figure's unit (for a slope, per
    /// check), or with `percent` in per cent of the window's mean.
    pub limit: f64,
    /// Whether the limit is in per cent of the window's mean.
    pub percent: bool,
    /// Length of the window, nanoseconds.
    pub window_ns: u64,
    /// Time after the job's ramp of which nothing is looked at, nanoseconds.
    pub ramp_ns: u64,
    /// Time between two values of the window, nanoseconds.
    pub check_ns: u64,
}

/// A figure that may become steady; reads and writes of all threads of the job together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SteadyFigure {
    /// I/Os per second.
    Iops,
    /// Bytes per second.
    Bandwidth,
    /// Mean total latency of the I/Os of an interval, nanoseconds.
    Latency,
}

/// The outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Steady {
    /// When it was met, nanoseconds after the end of the job's ramp; absent where it never was.
    pub attained_at_ns: Option<u64>,
    /// How often a full window was checked.
    pub checks: u32,
    /// Mean of the last window checked, in the figure's unit; absent where none was full.
    pub mean: Option<f64>,
    /// Slope or largest deviation of that window, in the limit's unit.
    #[serde(alias = "seen")]
    pub observed: Option<f64>,
}
