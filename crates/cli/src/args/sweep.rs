//! Flags of `gpuio sweep`.

use std::path::PathBuf;

use clap::Args;
use gpuio_job::spec::searched;
use gpuio_job::sweep::{Bound, PRESETS};
use gpuio_job::workload::preset::Preset;

use super::{RankLimits, Work, one_of};
use crate::formats;

fn latency_target() -> String {
    format!(
        "Search for the highest load with at most this latency, instead of a grid: a percentile \
         and a time, such as {}",
        Bound::example()
    )
}

fn over() -> String {
    let keys: Vec<&str> = searched().iter().map(|key| key.name).collect();
    let (last, others) = keys.split_last().unwrap_or((&"", &[]));
    let keys = format!("{} or {last}", others.join(", "));
    format!("Key that sets the load for --latency-target: {keys}, and its range [depth=1..256]")
}

/// The parameters to vary, how often, and the load that all points share.
#[derive(Debug, Args)]
pub(crate) struct Sweep {
    /// Job file with one job: the load that all points share; bench flags override it
    pub(crate) job_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) vary: Vary,
    #[command(flatten)]
    pub(crate) work: Work,
    #[command(flatten)]
    pub(crate) ranks: RankLimits,
    /// The preset that is the job file, for `gpuio workload`.
    #[arg(skip)]
    pub(crate) workload: Option<&'static Preset>,
}

/// Flags of `sweep` only.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Sweep")]
pub(crate) struct Vary {
    /// Axis: a job-file key, target (directories, files, devices), or ranks (with mpirun or srun:
    /// how many of them take part), and its values:
    /// threads=1,2,4..16*2, bs=4k..1M*4, depth=8..32+8; braces keep commas in a value:
    /// 'gpu=0,{0,1}', quoted, as a shell expands them; 4k..1M*4 multiplies by 4, 8..32+8 adds 8;
    /// repeat for more axes
    #[arg(long, value_name = "KEY=VALUES")]
    pub(crate) vary: Vec<String>,
    /// Use predefined axes and load: quick, guide, paths, matrix, clients, gdsbench, routing;
    /// --vary and load flags override them
    #[arg(long, value_name = "NAME", conflicts_with = "latency_target",
        value_parser = one_of(PRESETS.iter().map(|preset| preset.name)))]
    pub(crate) preset: Option<String>,
    /// Vary one axis at a time and keep the others at their first value, instead of the full grid
    #[arg(long)]
    pub(crate) one_at_a_time: bool,
    /// Run only points that meet this condition: "bs*depth<=64M && path!=gds"
    #[arg(long, value_name = "CONDITION")]
    pub(crate) r#where: Option<String>,
    #[arg(long, value_name = "LATENCY", conflicts_with_all = ["vary", "where", "one_at_a_time"],
        help = latency_target())]
    pub(crate) latency_target: Option<String>,
    #[arg(long, value_name = "KEY=FROM..TO", requires = "latency_target", help = over())]
    pub(crate) over: Option<String>,
    /// Runs per point: N, or MIN..MAX with --confidence [the preset's, else 3; with --confidence
    /// 5..10]
    #[arg(long, value_name = "N|MIN..MAX")]
    pub(crate) repeats: Option<String>,
    /// Repeat each point until the 95 % confidence interval of its mean throughput is within this
    /// percentage on both sides: 2%
    #[arg(long, value_name = "PERCENT")]
    pub(crate) confidence: Option<String>,
    /// Start no run after this time; the same command resumes the sweep later
    #[arg(long, value_name = "TIME")]
    pub(crate) budget: Option<String>,
    /// Pause between runs [0]
    #[arg(long, value_name = "TIME")]
    pub(crate) cool_down: Option<String>,
    /// Seed of the order of the runs [1]
    #[arg(long, value_name = "N")]
    pub(crate) order_seed: Option<u64>,
    /// Directory for sweep.json and the records; an existing sweep in it is resumed [./gpuio-sweep,
    /// with the preset's name appended]
    #[arg(long, short, value_name = "FOLDER")]
    pub(crate) output: Option<PathBuf>,
    #[arg(long, value_name = "FORMAT", value_parser = one_of(formats::names(&[])),
        help = formats::help(&[], "[text]; records in the folder are always JSON"))]
    pub(crate) format: Option<String>,
    /// Print the points, their order and the estimated time, and exit
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// No progress display
    #[arg(long, short)]
    pub(crate) quiet: bool,
}
