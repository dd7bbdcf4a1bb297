//! The throughput that the hardware should deliver by its figures, compared with the measured one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Towards;

/// The expected rate of one direction of a job, or of all jobs together, by the figures of the
/// parts on the way. Nothing of it was measured in this run.
///
/// Either `bytes_per_s` is known, or `unknown` says what figure is missing; `at_most` may still
/// bound it then.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Expected {
    /// Bytes per second; `null` where a part's figure is missing.
    pub bytes_per_s: Option<f64>,
    /// I/Os per second at the stream's block size; `null` where `bytes_per_s` is, and for streams
    /// of different block sizes together.
    pub iops: Option<f64>,
    /// The part that saturates first, with its figure and where that is from; of a figure that is
    /// only bounded, the part that bounds it.
    pub bottleneck: Option<String>,
    /// Bytes per second that the parts with known figures allow at most, where others have none;
    /// `null` where `bytes_per_s` is known or nothing bounds it.
    pub at_most: Option<f64>,
    /// The least that one I/O takes, in nanoseconds: the access times of the parts plus the time
    /// of its bytes at their full rate; `null` where a part's access time is not known.
    pub latency_floor_ns: Option<f64>,
    /// Why there is no figure: what is missing and how to give it.
    pub unknown: Option<String>,
    /// The figures that it was made from, and what was left out of the count, as sentences.
    pub because: Vec<String>,
}

/// The throughput that one direction of a job should reach, compared with the measured one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobExpected {
    /// The job's name.
    pub job: String,
    /// Its reads or its writes.
    pub direction: Towards,
    /// Its expected rate while the other jobs of its group run.
    #[serde(flatten)]
    pub expected: Expected,
    /// The measured bytes per second in per cent of those expected, not rounded; `null` where one
    /// of them is missing.
    pub percent: Option<f64>,
}
