//! A recorded program's calls, made again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The calls to repeat, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayPlan {
    /// Name of the trace.
    pub trace: String,
    /// Its format and version: `gpuio 1`, `fio 2`, `fio 3`.
    pub format: String,
    /// The program that was recorded; absent where the trace does not name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Calls that are repeated.
    pub calls: u64,
    /// Those of them that read.
    pub reads: u64,
    /// Bytes that are read.
    pub read_bytes: u64,
    /// Bytes that are written.
    pub written_bytes: u64,
    /// Calls of the trace that moved nothing and are left out.
    pub left_out: u64,
    /// The parts that the trace reports as missing, in words; absent where it is whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    /// Bytes of holes in the files.
    pub hole_bytes: u64,
    /// The calls that a call waits for.
    pub order: ReplayOrder,
    /// When it starts.
    pub pace: ReplayPace,
    /// From the first call's beginning to the last end when it was recorded, nanoseconds; absent in
    /// fio's traces, which have no durations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded_ns: Option<u64>,
    /// The recorded calls that are repeated; absent in fio's traces and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded_calls: Option<RecordedCalls>,
}

/// Calls as they were when they were recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedCalls {
    /// Time in which at least one of them was under way, nanoseconds: the rest of the recorded time
    /// are pauses of the program.
    pub in_calls_ns: u64,
    /// How long reads took; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<RecordedLatency>,
    /// How long writes took; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<RecordedLatency>,
    /// Bytes that were moved to or from GPU memory; the others were of host memory.
    pub gpu_bytes: u64,
}

/// How long recorded calls took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedLatency {
    /// Median, nanoseconds.
    pub p50_ns: u64,
    /// 99th percentile, nanoseconds; absent with too few calls for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_ns: Option<u64>,
}

/// The calls that a call waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReplayOrder {
    /// All calls that had ended when it was made, of all threads and streams.
    Observed,
    /// Those of its own thread or stream only.
    Threads,
}

impl ReplayOrder {
    /// The word of the flag.
    pub fn word(self) -> &'static str {
        match self {
            ReplayOrder::Observed => "observed",
            ReplayOrder::Threads => "threads",
        }
    }
}

/// When a call starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReplayPace {
    /// As soon as what it waits for is over.
    Asap,
    /// After the pause that its thread or stream made before it, too.
    Recorded,
}

impl ReplayPace {
    /// The word of the flag.
    pub fn word(self) -> &'static str {
        match self {
            ReplayPace::Asap => "asap",
            ReplayPace::Recorded => "recorded",
        }
    }
}

/// The outcome of a replay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayResult {
    /// Calls that were made again and ended, failed ones included.
    pub calls: u64,
    /// Time in which threads waited for calls of other threads, of all added up, nanoseconds.
    pub waited_ns: u64,
}
