//! All jobs of a group together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cost::CpuCost;
use crate::direction::{Latency, TimeSpan};

/// Reads or writes of all jobs of a group: I/Os, bytes and latencies are all of theirs, rates are
/// over the time in which all of them ran.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DirectionTotal {
    /// I/Os that completed whole.
    pub ios: u64,
    /// Bytes of those.
    pub bytes: u64,
    /// I/Os that failed.
    pub failed: u64,
    /// Bytes per second over the common time; absent where there was none.
    pub bytes_per_s: Option<f64>,
    /// I/Os per second over the same.
    pub iops: Option<f64>,
    /// Latencies; absent when nothing completed.
    pub latency: Option<Latency>,
}

/// All jobs of one group together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunTotals {
    /// Group number.
    pub group: u32,
    /// Reads of all jobs.
    pub read: DirectionTotal,
    /// Writes of all jobs.
    pub write: DirectionTotal,
    /// From the first end of a ramp until the first worker of any job was done, nanoseconds.
    pub first_done_ns: u64,
    /// From the first end of a ramp until the last I/O of the last job was back.
    pub last_done_ns: u64,
    /// The time in which all jobs ran and counted, which the rates are over; absent where there was
    /// none, and in older records.
    #[serde(default)]
    pub common: Option<TimeSpan>,
    /// Why there is no such time, and so no rate.
    #[serde(default)]
    pub why_no_rate: Option<String>,
    /// CPU of the whole process over the group's time.
    pub cpu: CpuCost,
}
