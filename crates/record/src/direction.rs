//! Reads or writes of a job, and the time that they are over.

use gpuio_base::stat::Summary;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ceiling::OfCeiling;

/// A time on the run's clock, which begins before the first group: jobs of one run may be compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TimeSpan {
    /// Its begin, nanoseconds.
    pub begin_ns: u64,
    /// Its end, nanoseconds.
    pub end_ns: u64,
}

impl TimeSpan {
    /// Its length, nanoseconds.
    pub fn length_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.begin_ns)
    }
}

/// Reads or writes of a job.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DirectionResult {
    /// I/Os that completed in full.
    pub ios: u64,
    /// Bytes of those.
    pub bytes: u64,
    /// I/Os that failed.
    pub failed: u64,
    /// Bytes per second over `last_done_ns`.
    pub bytes_per_s: f64,
    /// I/Os per second over the same.
    pub iops: f64,
    /// Latencies; absent when nothing completed.
    pub latency: Option<Latency>,
    /// The rate compared with the lowest of its ceilings; absent where none was found.
    #[serde(default)]
    pub of_ceiling: Option<OfCeiling>,
}

/// Latency, part by part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// Due until started; absent when no rate was requested (nothing can queue then).
    pub queue: Option<Summary>,
    /// Between file and host memory.
    pub file: Option<Summary>,
    /// Between host memory and GPU memory; absent on paths without a GPU leg.
    pub gpu: Option<Summary>,
    /// Due until completed.
    pub total: Summary,
}
