//! Flags of `top`.

use clap::{Args, ValueHint};

/// The run to watch, and the form of its display.
#[derive(Debug, Args)]
pub(crate) struct Top {
    /// Files, mounts, drives, arrays, network interfaces, or GPUs (GPU0) [all active devices]
    #[arg(value_name = "FILE|MOUNT|DEVICE|GPU", value_hint = ValueHint::AnyPath)]
    pub(crate) devices: Vec<String>,
    /// Output format: text (a table per interval) or json (a line per interval) [a full screen on a
    /// terminal, else text]
    #[arg(long, value_name = "FORMAT", value_parser = ["text", "json"])]
    pub(crate) format: Option<String>,
    /// The same as --format text
    #[arg(long, hide = true, conflicts_with = "format")]
    pub(crate) plain: bool,
    /// The same as --format json
    #[arg(long, hide = true, conflicts_with_all = ["plain", "format"])]
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
        conflicts_with_all = ["format", "plain", "json", "interval", "count"]
    )]
    pub(crate) serve: Option<String>,
}

impl Top {
    /// Whether JSON is printed where there is no screen; none where no format was named.
    pub(crate) fn is_json(&self) -> Option<bool> {
        let named = self.format.as_deref().map(|name| name == "json");
        named.or(self.json.then_some(true)).or(self.plain.then_some(false))
    }
}
