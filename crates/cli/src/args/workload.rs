//! Flags of `gpuio workload`.

use clap::Args;

use super::{CufileFlags, FigureFlags, Keyed, Out, OwnFlags};

/// A workload: a preset or a file of the user's own, and what is changed in it.
#[derive(Debug, Args)]
pub(crate) struct Workload {
    /// list; show, and a name; or the workload to run: a preset, or a job file of your own
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// With show: the preset. For a workload that reads files of yours, such as safetensors: their
    /// directory
    #[arg(value_name = "PRESET|DIRECTORY")]
    pub(crate) shown: Option<String>,
    #[command(flatten)]
    pub(crate) work: Keyed<WorkloadFlags>,
    #[command(flatten)]
    pub(crate) figures: FigureFlags,
    #[command(flatten)]
    pub(crate) out: Out,
}

/// Flags that set no key.
#[derive(Debug, Args)]
#[command(next_help_heading = "Workload")]
pub(crate) struct WorkloadFlags {
    /// Run the workload for each of these values of a key of the job file, as gpuio sweep does:
    /// readers=1..8*2, path=gather,gds; repeat for more keys. Several values of a number below,
    /// such as --batch 1..256*2, are the same
    #[arg(long, value_name = "KEY=VALUES")]
    pub(crate) vary: Vec<String>,
    /// With several values: runs of each [3]
    #[arg(long, value_name = "N")]
    pub(crate) repeats: Option<String>,
    /// The model of kv-cache: llama3-8b, llama3-8b-cpu, llama3-70b or deepseek-v3; kv-cache --model
    /// llama3-8b is the preset kv-cache-llama3-8b
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    pub(crate) cufile: CufileFlags,
}

impl OwnFlags for WorkloadFlags {
    const VERB: &'static str = "workload";
    const HEADINGS: &'static [&'static str] = &["Workload", "Data", "Machine", "cuFile"];
    const BEHIND: &'static [(&'static str, &'static str)] =
        &[("vary", ""), ("repeats", "vary"), ("model", "slo")];
}
