//! The logs that a plan requests.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::is_false;

/// Logs in fio's format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogPlan {
    /// First part of the name of the log of throughput.
    pub bw: Option<String>,
    /// The same of latencies.
    pub lat: Option<String>,
    /// The same of I/Os per second.
    pub iops: Option<String>,
    /// Time that a line covers, nanoseconds; absent where a line is of one I/O.
    pub line_ns: Option<u64>,
    /// Whether a line of one I/O has its offset.
    #[serde(default, skip_serializing_if = "is_false")]
    pub offset: bool,
    /// Whether all threads' lines are in one file, which has no number in its name.
    #[serde(default, skip_serializing_if = "is_false")]
    pub joined: bool,
}
