//! Flags of `top`.

use clap::Args;

/// What to watch, and how to show it.
#[derive(Debug, Args)]
pub(crate) struct Top {
    /// Files, mounts, drives, arrays, network interfaces, or GPUs (GPU0) [all active devices]
    #[arg(value_name = "FILE|MOUNT|DEVICE|GPU")]
    pub(crate) devices: Vec<String>,
    /// Print a table per interval [a full screen on a terminal]
    #[arg(long)]
    pub(crate) plain: bool,
    /// Print one line of JSON per interval
    #[arg(long, conflicts_with = "plain")]
    pub(crate) json: bool,
    /// Time between two samples, at least 100 ms [1s]
    #[arg(long, value_name = "TIME")]
    pub(crate) interval: Option<String>,
    /// Exit after this many intervals [never]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
    /// Serve raw counters to Prometheus at http://ADDR:PORT/metrics; without ADDR only to this
    /// machine. With a network address, other machines can read the counters too
    #[arg(
        long,
        value_name = "[ADDR:]PORT",
        conflicts_with_all = ["plain", "json", "interval", "count"]
    )]
    pub(crate) serve: Option<String>,
}
