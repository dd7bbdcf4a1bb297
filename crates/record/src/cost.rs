//! CPU time of jobs and the threads that it covers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// CPU cost of a job or of all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuCost {
    /// Seconds in user mode.
    pub user_s: f64,
    /// Seconds in the kernel on behalf of the threads counted.
    pub system_s: f64,
    /// (user + system) over elapsed: CPUs kept busy.
    pub cores_busy: f64,
    /// Microseconds of CPU per MiB moved; absent when nothing moved.
    pub us_per_mib: Option<f64>,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
    /// Which threads were counted, and whether these are all.
    pub scope: CpuScope,
}

/// The scope of the CPU time that was counted (getrusage(2), clock_gettime(2)).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CpuScope {
    /// That of the job's workers and of the helper threads that are known to be its own, while
    /// others may have worked for it as well (threads of the kernel's io_uring, of NVIDIA's
    /// libraries, of the software GPU): the true figure is this or more. In records older than
    /// `all_threads` the workers' alone.
    #[default]
    Threads,
    /// That of the job's workers and of the threads of their engines. No other thread works for it.
    AllThreads,
    /// That of all threads of gpuio: of a job, the whole process while it alone ran.
    Process,
}

impl CpuScope {
    /// Whether the figures are a lower bound: threads that were not counted may have worked too.
    pub fn is_at_least(self) -> bool {
        self == CpuScope::Threads
    }

    /// The sign before a figure: `≥` where it is a lower bound.
    pub fn sign(self) -> &'static str {
        if self.is_at_least() { "≥" } else { "" }
    }
}
