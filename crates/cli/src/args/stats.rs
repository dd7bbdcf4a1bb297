//! Flags of `gpuio stats`.

use clap::Args;

/// Which process, and how much detail.
#[derive(Debug, Args)]
pub(crate) struct Stats {
    /// Process ID [all processes, one line each]
    #[arg(value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) pid: Option<u32>,
    /// Level of detail: 1 totals, rates and percentiles; 2 also sizes; 3 also GPUs and paths [1].
    /// Needs PID or --json
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=3))]
    pub(crate) level: Option<u8>,
    /// Repeat at this interval until the process ends: 500ms [1 s if no time is given]
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true,
          default_missing_value = "1")]
    pub(crate) watch: Option<String>,
    /// Print JSON; with --watch one line per sample
    #[arg(long)]
    pub(crate) json: bool,
}
