//! Flags of `top`.

use clap::Args;

/// What to watch, and how to show it.
#[derive(Debug, Args)]
pub(crate) struct Top {
    /// Files, mounts, drives, arrays, interfaces, or GPUs (GPU0) [all that are not idle]
    #[arg(value_name = "FILE|MOUNT|DEVICE|GPU")]
    pub(crate) devices: Vec<String>,
    /// Print tables, one after another [a screen on a terminal]
    #[arg(long)]
    pub(crate) plain: bool,
    /// Print one JSON object per line and interval
    #[arg(long, conflicts_with = "plain")]
    pub(crate) json: bool,
    /// Time between two samples, 100 ms at least [1s]
    #[arg(long, value_name = "TIME")]
    pub(crate) interval: Option<String>,
    /// End after so many intervals [never]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
    /// Serve raw counters to Prometheus at http://ADDR:PORT/metrics; without ADDR on this machine
    /// alone. Others can read it where an address of the network is given
    #[arg(
        long,
        value_name = "[ADDR:]PORT",
        conflicts_with_all = ["plain", "json", "interval", "count"]
    )]
    pub(crate) serve: Option<String>,
}
