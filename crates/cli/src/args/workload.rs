//! Flags of `gpuio workload`.

use clap::{Args, ValueHint};
use gpuio_job::workload::preset::{PRESETS, models};

use super::{CufileFlags, FigureFlags, Keyed, Out, OwnFlags, one_of};

/// The words that may come first, besides a job file.
fn names() -> impl Iterator<Item = &'static str> {
    ["list", "show"].into_iter().chain(PRESETS.iter().map(|preset| preset.name))
}

fn model() -> String {
    let models = models();
    let (last, others) = models.split_last().unwrap_or((&"", &[]));
    format!(
        "The model of kv-cache: {} or {last}; kv-cache --model llama3-8b is the preset \
         kv-cache-llama3-8b",
        others.join(", ")
    )
}

/// A workload: a preset or a file of the user's own, and what is changed in it.
#[derive(Debug, Args)]
pub(crate) struct Workload {
    /// list; show, and a name; or the workload to run: a preset, or a job file of your own
    #[arg(value_name = "NAME", value_parser = one_of(names()))]
    pub(crate) name: String,
    /// With show: the preset. For a workload that reads files of yours, such as safetensors: their
    /// directory
    #[arg(value_name = "PRESET|DIRECTORY", value_hint = ValueHint::DirPath)]
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
    /// End each run within about 30 s on this machine, if nothing else loads its storage: less
    /// data, fewer passes, threads and seconds; what you set by other flags stays. Several values,
    /// and --accelerators auto, are several runs. A line says what was scaled
    #[arg(long = "try")]
    pub(crate) short: bool,
    /// Run the workload for each of these values of a key of the job file, as gpuio sweep does:
    /// readers=1..8*2, path=gather,gds; repeat for more keys. Several values of a number below,
    /// such as --batch 1..256*2, are the same
    #[arg(long, value_name = "KEY=VALUES")]
    pub(crate) vary: Vec<String>,
    /// With several values: runs of each [3]
    #[arg(long, value_name = "N")]
    pub(crate) repeats: Option<String>,
    #[arg(long, value_name = "MODEL", value_parser = one_of(models()), help = model())]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    pub(crate) cufile: CufileFlags,
}

impl OwnFlags for WorkloadFlags {
    const VERB: &'static str = "workload";
    const HEADINGS: &'static [&'static str] = &["Workload", "Data", "Machine", "cuFile"];
    const BEHIND: &'static [(&'static str, &'static str)] =
        &[("short", ""), ("vary", "short"), ("repeats", "vary"), ("model", "slo")];
}
