//! Upper bounds of a load's throughput: measured in the same run, or computed from a link.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::verification::VerifyOutcome;

/// The subject of a ceiling.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum CeilingKind {
    /// The same load on path `host`: what storage gives to host memory.
    Storage,
    /// Large copies between page-locked memory and GPU memory, without a file.
    GpuLink,
    /// Launches of path `gather` from a ring that no file refills.
    Gather,
    /// Copies by the CPU, as between page cache and the job's own memory.
    CpuCopy,
    /// Generation and width of the PCIe links above a GPU.
    PcieGpu,
    /// Generation and width of the PCIe links above an NVMe drive.
    PcieNvme,
}

/// A direction of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Towards {
    /// File to memory.
    Read,
    /// Memory to file.
    Write,
}

/// Where a ceiling's figure comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "from")]
pub enum CeilingSource {
    /// A run of its own, outside every job's clock, this long, nanoseconds.
    Measured {
        /// Time of the measurement.
        runtime_ns: u64,
    },
    /// The result of a job of the same run, which did just this.
    Result {
        /// The job's name.
        job: String,
    },
    /// Computed from the kernel's facts about the hardware; nothing was moved.
    Theory,
    /// It is not available: the reason.
    Absent {
        /// The missing part.
        why: String,
    },
}

/// A ceiling that the run will look for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CeilingPlan {
    /// Name, unique in the plan for each direction.
    pub name: String,
    /// Its subject.
    pub kind: CeilingKind,
    /// Which reads or writes it bounds; absent for both alike.
    pub direction: Option<Towards>,
    /// Where the figure will come from.
    pub source: CeilingSource,
    /// The load to run or the facts to read, in words.
    pub what: String,
    /// Engine of the file leg; absent where no file has a part.
    pub engine: Option<String>,
    /// Driver indices of the GPUs that take part.
    pub gpus: Vec<u32>,
    /// Threads that take part; absent where none does.
    pub threads: Option<u32>,
    /// Whether it is measured on gpuio's software GPU: it tells nothing about hardware.
    pub software_gpu: bool,
    /// Whether what it writes is followed by a pass that writes the pattern again, so that
    /// verified files are left as the jobs left them.
    pub restores: bool,
    /// Jobs that it bounds, by name; the first is the one whose load it takes.
    pub jobs: Vec<String>,
}

/// A ceiling as it was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ceiling {
    /// The plan: which ceiling to find, and how.
    #[serde(flatten)]
    pub plan: CeilingPlan,
    /// Bytes per second; absent where there is no figure, `why` then says why.
    pub bytes_per_s: Option<f64>,
    /// I/Os (or copies) per second; absent in theory.
    pub iops: Option<f64>,
    /// More detail: the links that were read, the memory that was copied.
    pub detail: Option<String>,
    /// Why there is no figure.
    pub why: Option<String>,
    /// The findings of the pass that wrote the pattern again; absent where none ran.
    #[serde(default)]
    pub restored: Option<VerifyOutcome>,
}

/// A result compared with the lowest of its ceilings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OfCeiling {
    /// The ceiling's name.
    pub ceiling: String,
    /// The ceiling's subject.
    pub kind: CeilingKind,
    /// The result's bytes per second in per cent of the ceiling's, not rounded. Above 100 where
    /// the ceiling, measured at another moment, came out lower.
    pub percent: f64,
}
