//! When a job ends.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When a job ends: at whichever limit comes first; at least one is set. A training feed may have
/// none: it ends with its last epoch, and a replay with its last call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stop {
    /// Time after the ramp, nanoseconds.
    pub runtime_ns: Option<u64>,
    /// Bytes per thread.
    pub bytes_per_thread: Option<u64>,
    /// The time is no end: after it each thread goes on until it has moved as many bytes as the one
    /// that had moved most by then, of all ranks. False in older records.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wear_out: bool,
}

/// The key that says how many bytes a job moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BytesOf {
    /// `size`: each thread moves its part of the data once.
    Size,
    /// `io_size`.
    IoSize,
    /// `loops`.
    Loops,
    /// `number_ios`.
    NumberIos,
    /// `scale`: it is a part of a larger load, which is as long as it is.
    Scale,
}

impl BytesOf {
    /// How such a job becomes longer, as a sentence.
    pub(crate) fn longer(of: Option<BytesOf>, seconds: u64) -> String {
        let ends = match of {
            Some(BytesOf::Scale) => {
                return "It is a part of a larger load: raise scale, or leave out --try."
                    .to_owned();
            }
            Some(BytesOf::Size) => {
                "It ends when each thread has moved its size: raise size or loops, or set"
            }
            Some(BytesOf::IoSize) => "It ends by its bytes: raise io_size, or instead of it set",
            Some(BytesOf::Loops) => "It ends after its loops: raise loops, or instead of it set",
            Some(BytesOf::NumberIos) => {
                "It ends by its number of I/Os: raise number_ios, or instead of it set"
            }
            None => "It ends by its bytes: raise io_size or loops, or instead of them set",
        };
        format!("{ends} time_based with runtime={seconds}s and ramp_time=5s.")
    }
}
