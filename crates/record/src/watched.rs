//! Device activity during the jobs, sampled while they run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Samples of the devices taken during the run, and their cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Watched {
    /// Time between samples that was requested, nanoseconds.
    pub interval_ns: u64,
    /// Samples taken, in all groups.
    pub samples: u64,
    /// CPU time of the sampler's thread while clocks ran, nanoseconds; absent where the kernel did
    /// not report it.
    pub cpu_ns: Option<u64>,
    /// One per group of jobs that began, in order.
    pub groups: Vec<WatchedGroup>,
}

/// Devices during one group of jobs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchedGroup {
    /// Group, as in the plan.
    pub group: u32,
    /// When the first interval began, nanoseconds from the moment at which the group's workers
    /// started: when the first of its jobs began to count, after its start delay and its ramp.
    /// Absent where that was the start, and in older records.
    #[serde(default, skip_serializing_if = "is_start")]
    pub began_ns: u64,
    /// Ends of the intervals on the same clock (that of [`crate::Point`]s).
    pub ends_ns: Vec<u64>,
    /// Devices behind the jobs, and the machine's CPUs and page cache.
    pub devices: Vec<DeviceSeries>,
}

fn is_start(ns: &u64) -> bool {
    *ns == 0
}

impl WatchedGroup {
    /// How long the devices were watched, nanoseconds.
    pub fn length_ns(&self) -> u64 {
        self.ends_ns.last().map_or(0, |end| end.saturating_sub(self.began_ns))
    }
}

/// One device during one group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceSeries {
    /// Kind of device: the name of a probe of `gpuio top` (`block`, `gpu`, `interface`).
    pub probe: String,
    /// The device, as the probe names it.
    pub device: String,
    /// Figures, a column each.
    pub figures: Vec<FigureSeries>,
}

/// One figure of one device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FigureSeries {
    /// Name with its base unit, as `gpuio top --json` has it: `read_bytes_per_second`.
    pub key: String,
    /// The figure over the whole group, from counters at its start and end, where the figure can
    /// be made of them; for a gauge, its last value.
    pub whole: Option<f64>,
    /// Per interval, as many as [`WatchedGroup::ends_ns`]; absent where it is not known.
    pub values: Vec<Option<f64>>,
}
