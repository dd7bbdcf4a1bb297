//! Which run a record is of.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which of many runs a record is of, by the gpuio that started it: a run that is taken away or
/// stands in place of another is missed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct RunOf {
    /// The sweep or comparison, with the time of its start.
    pub of: String,
    /// The point of the sweep in words, or the side of the comparison.
    pub point: String,
    /// The number of the run there, from 1 on.
    pub run: u32,
    /// How many are made there, where that was known from the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<u32>,
}

impl RunOf {
    /// How `of` begins for a comparison of two job files.
    pub const AB: &str = "--ab";

    /// How `of` reads for the sweep that began then.
    pub fn sweep(started_at: &str) -> String {
        format!("sweep of {started_at}")
    }

    /// Whether the run is of the sweep that began then.
    pub fn is_of_sweep(&self, started_at: &str) -> bool {
        self.of == RunOf::sweep(started_at)
    }
}
