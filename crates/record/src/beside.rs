//! A computation that runs concurrently with a job: its plan, and what each cost the other.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::direction::{DirectionResult, TimeSpan};
use crate::verification::VerifyOutcome;

/// The computation that keeps the job's GPUs busy.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "BesidePlan")]
pub struct ComputationPlan {
    /// The work.
    pub with: ComputationKind,
    /// Share of each GPU's multiprocessors that was requested, per cent.
    pub share_percent: f64,
}

/// Work that keeps a GPU busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "BesideWith")]
pub enum ComputationKind {
    /// Fused multiply-adds of single precision in registers.
    Compute,
    /// Reads, changes and writes back GPU memory.
    Memory,
}

/// How much a job and the concurrent computation slow each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "BesideResult")]
pub struct ComputationCost {
    /// The computation on each of the job's GPUs, in the plan's order.
    pub gpus: Vec<GpuComputation>,
    /// The same job without it, run before.
    pub alone: JobAlone,
    /// Bytes per second while the computation ran, reads and writes together, divided by those of
    /// the job alone.
    pub io_ratio: Option<f64>,
    /// Why there is no such ratio.
    pub io_unknown: Option<String>,
}

/// A computation on one GPU. Rates are floating-point operations per second for `compute`, bytes
/// read and written per second for `memory`; over the time that launches were at work, of those
/// that began and ended in the span, by the GPU's clock.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "BesideGpu")]
pub struct GpuComputation {
    /// The driver's index.
    pub index: u32,
    /// The rank that it belongs to, in a record of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// Multiprocessors that the GPU has.
    pub multiprocessors: u32,
    /// Blocks of a launch: one for each multiprocessor that is to be busy.
    pub blocks: u32,
    /// Multiprocessors that blocks of one launch were seen on, before the job.
    pub occupied: u32,
    /// Work of a launch: floating-point operations, or bytes.
    pub launch_work: u64,
    /// Launches that ended while the job counted, and are in its rate.
    pub launches: u64,
    /// Share of the time in which the job counted that launches were at work, per cent. The rest is
    /// no loss of theirs: the thread that enqueues them was late.
    pub busy_percent: Option<f64>,
    /// Its rate before the job's first I/O.
    pub before_per_s: Option<f64>,
    /// Its rate while the job counted.
    pub beside_per_s: Option<f64>,
    /// Its rate after the job's last I/O.
    pub after_per_s: Option<f64>,
    /// The rate while the job ran, divided by the mean of those before and after it.
    pub ratio: Option<f64>,
    /// Why there is no ratio.
    pub unknown: Option<String>,
    /// Whether it failed: the job ran without a computation, or not with one to its end.
    pub failed: bool,
    /// CPU time of the thread that fills the stream, nanoseconds, the times alone included.
    pub thread_cpu_ns: u64,
}

/// A job as it ran without the computation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobAlone {
    /// Reads.
    pub read: DirectionResult,
    /// Writes.
    pub write: DirectionResult,
    /// The time that all rates are over; absent where a worker was lost.
    pub measured: Option<TimeSpan>,
    /// Share of the job's file bytes in the page cache before it.
    pub resident_before: Option<f64>,
    /// Failed I/Os.
    pub failed: u64,
    /// Verification, where requested.
    pub verify: Option<VerifyOutcome>,
}

impl ComputationPlan {
    /// As the key of a job file has it: `compute:50%`.
    pub fn key(&self) -> String {
        format!("{}:{}%", self.with.word(), self.share_percent)
    }
}

impl ComputationKind {
    /// Its name.
    pub fn word(self) -> &'static str {
        match self {
            ComputationKind::Compute => "compute",
            ComputationKind::Memory => "memory",
        }
    }
}

impl ComputationCost {
    /// The GPU whose computation lost the most, of those that have a ratio. None where one has
    /// none: it may have lost more.
    pub fn lowest(&self) -> Option<&GpuComputation> {
        if self.gpus.iter().any(|gpu| gpu.ratio.is_none()) {
            return None;
        }
        let ratio = |gpu: &&GpuComputation| gpu.ratio.unwrap_or(f64::INFINITY);
        self.gpus.iter().min_by(|a, b| ratio(a).total_cmp(&ratio(b)))
    }
}
