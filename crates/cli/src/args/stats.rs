//! Flags of `gpuio stats`.

use clap::Args;

use super::one_of;
use crate::formats;

/// Which process, and how much detail.
#[derive(Debug, Args)]
pub(crate) struct Stats {
    /// Process ID [all processes, one line each]
    #[arg(value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) pid: Option<u32>,
    /// Level of detail: 1 totals, rates and percentiles; 2 also sizes; 3 also GPUs and paths [1].
    /// Needs PID or --format json
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=3))]
    pub(crate) level: Option<u8>,
    /// Repeat at this interval, until the process ends or --count is reached: 500ms
    #[arg(long, value_name = "TIME")]
    pub(crate) interval: Option<String>,
    /// Exit after this many samples [never with --interval, else 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
    #[arg(long, value_name = "FORMAT", value_parser = one_of(formats::names(&[])),
        help = formats::help(
            &[], "[text]; with --interval text, or json with a line per sample"
        ))]
    pub(crate) format: Option<String>,
    /// Serve the counters of all processes to Prometheus at http://ADDR:PORT/metrics; without ADDR
    /// only to this machine. Programs on gpuio's libcufile are among them
    #[arg(
        long,
        value_name = "[ADDR:]PORT",
        conflicts_with_all = ["pid", "level", "interval", "count", "format", "watch", "json"]
    )]
    pub(crate) serve: Option<String>,
    /// The same as --interval TIME [1 s if no time is given]
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, hide = true,
          default_missing_value = "1", conflicts_with = "interval")]
    pub(crate) watch: Option<String>,
    /// The same as --format json
    #[arg(long, hide = true, conflicts_with = "format")]
    pub(crate) json: bool,
}

impl Stats {
    /// The name of the format, if one was given.
    pub(crate) fn format(&self) -> Option<&str> {
        if self.json { Some("json") } else { self.format.as_deref() }
    }

    /// The interval as given, with its flag.
    pub(crate) fn every(&self) -> Option<(&'static str, &str)> {
        let interval = self.interval.as_deref().map(|time| ("--interval", time));
        // One sample after the other needs a time between them.
        let counted = self.count.is_some_and(|count| count > 1).then_some(("--count", "1"));
        interval.or(self.watch.as_deref().map(|time| ("--watch", time))).or(counted)
    }
}
