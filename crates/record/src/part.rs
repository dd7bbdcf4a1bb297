//! Jobs that are a part of a larger load, and jobs that run several times.

use gpuio_base::units::human_bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::JobPlan;

/// The larger load that a job is a part of.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PartPlan {
    /// Share of each thread's bytes that is used: 1 is all.
    pub scale: f64,
    /// Bytes of each thread in the whole load.
    pub full_size_bytes: u64,
    /// Threads of the whole load.
    pub full_threads: u32,
}

impl PartPlan {
    /// The larger load of which the job of this plan is a part, in words.
    pub fn words(&self, plan: &JobPlan) -> String {
        let Self { scale, full_size_bytes, full_threads } = self;
        let [size, full] = [plan.size_bytes, *full_size_bytes].map(|all| human_bytes(all as f64));
        let threads = plan.threads;
        format!(
            "scale {scale}: {size} of {full} for each thread; {threads} of {full_threads} threads"
        )
    }
}

/// A job that runs several times.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RepeatPlan {
    /// Name of the job that is repeated.
    pub of: String,
    /// Which time this is, from 1.
    pub nth: u32,
    /// How often it runs.
    pub times: u32,
}
