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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchedGroup {
    /// Group, as in the plan.
    pub group: u32,
    /// Ends of the intervals, nanoseconds from the moment at which the group's workers started
    /// (the clock of [`crate::Point`]s). The first interval began at the start.
    pub ends_ns: Vec<u64>,
    /// Devices behind the jobs, and the machine's CPUs and page cache.
    pub devices: Vec<DeviceSeries>,
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
