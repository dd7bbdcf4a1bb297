//! Flags of `gpuio sweep`.

use std::path::PathBuf;

use clap::Args;

use super::Work;

/// What to vary, how often, and the load that all points share.
#[derive(Debug, Args)]
pub(crate) struct Sweep {
    /// Job file with one job, the load that all points share; flags of bench go on top of it
    pub(crate) job_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) vary: Vary,
    #[command(flatten)]
    pub(crate) work: Work,
}

/// Flags of `sweep` itself.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Sweep")]
pub(crate) struct Vary {
    /// An axis: a key of the job file, or target (directories, files, devices), and its values:
    /// threads=1,2,4..16*2, bs=4k..1M*4, depth=8..32+8; braces keep commas in a value: gpu=0,{0,1};
    /// repeat for more, slowest first
    #[arg(long, value_name = "KEY=VALUES")]
    pub(crate) vary: Vec<String>,
    /// Axes and load by name: quick, guide, paths, matrix, clients, gdsbench, routing; --vary and
    /// the load's flags replace its own
    #[arg(long, value_name = "NAME", conflicts_with = "latency_target")]
    pub(crate) preset: Option<String>,
    /// Vary one axis at a time, the others at their first value, instead of the full grid
    #[arg(long)]
    pub(crate) one_at_a_time: bool,
    /// Only points for which this holds: "bs*depth<=64M && path!=gds"
    #[arg(long, value_name = "CONDITION")]
    pub(crate) r#where: Option<String>,
    /// The highest load whose latency is at most this, in place of a grid: p50=, p99= or p99.9=TIME
    #[arg(long, value_name = "LATENCY", conflicts_with_all = ["vary", "where", "one_at_a_time"])]
    pub(crate) latency_target: Option<String>,
    /// What makes the load with --latency-target: depth, threads or rate_iops, and its range
    /// [depth=1..256]
    #[arg(long, value_name = "KEY=FROM..TO", requires = "latency_target")]
    pub(crate) over: Option<String>,
    /// Runs of each point: N, or MIN..MAX with --confidence [the preset's, else 3; with
    /// --confidence 5..10]
    #[arg(long, value_name = "N|MIN..MAX")]
    pub(crate) repeats: Option<String>,
    /// Repeat a point until the 95 % interval of its mean throughput is within this to either
    /// side: 2%
    #[arg(long, value_name = "PERCENT")]
    pub(crate) confidence: Option<String>,
    /// Start no run after this time; the same command goes on later
    #[arg(long, value_name = "TIME")]
    pub(crate) budget: Option<String>,
    /// Wait between runs [0]
    #[arg(long, value_name = "TIME")]
    pub(crate) cool_down: Option<String>,
    /// Seed of the order of runs [1]
    #[arg(long, value_name = "N")]
    pub(crate) order_seed: Option<u64>,
    /// Folder for sweep.json and the records; one that has them already is gone on with
    /// [./gpuio-sweep, with the preset's name behind it]
    #[arg(long, short, value_name = "FOLDER")]
    pub(crate) output: Option<PathBuf>,
    /// Print points, order and time, and end
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// No progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}
