//! Flags of `gpuio network`.

use std::net::IpAddr;
use std::time::Duration;

use clap::Args;

use super::{Save, one_of};
use crate::failure::Failure;
use crate::formats;

/// Connections of one client at most: each is a thread on both ends.
const MOST_STREAMS: u32 = 256;
/// Those that a server takes of one client by default.
const SERVED_STREAMS: u32 = 64;

/// Which machine, and how it is measured; or who may measure this one.
#[derive(Debug, Args)]
pub(crate) struct Network {
    /// The other machine, on which gpuio network --serve runs
    #[arg(value_name = "HOST:PORT", required_unless_present = "serve")]
    pub(crate) to: Option<String>,
    /// Number of TCP connections, each with a thread on both machines [8]
    #[arg(long, value_name = "N", visible_alias = "numjobs", default_value_t = 8,
          hide_default_value = true,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_STREAMS)))]
    pub(crate) streams: u32,
    /// read (server to client, as a client of storage reads), write (client to server), or both,
    /// one after the other [both]
    #[arg(long, value_name = "DIRECTION", value_parser = ["read", "write", "both"])]
    pub(crate) direction: Option<String>,
    /// Measured time of each direction [5s]
    #[arg(long, value_name = "TIME")]
    pub(crate) runtime: Option<String>,
    /// Warm-up time of each direction that is not measured [1s]
    #[arg(long, value_name = "TIME")]
    pub(crate) ramp: Option<String>,
    /// Connect from this address of this machine [chosen by the routes]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) bind: Option<IpAddr>,
    #[arg(long, value_name = "FORMAT", value_parser = one_of(formats::names(formats::NETWORK)),
        help = formats::help(
            formats::NETWORK, "[text; with -o by the file's extension, of spec .ini]"
        ))]
    pub(crate) format: Option<String>,
    #[command(flatten)]
    pub(crate) save: Save,
    /// Serve clients at this address, one after the other; without ADDR only those of this machine
    #[arg(
        long,
        value_name = "[ADDR:]PORT",
        conflicts_with_all = [
            "to", "streams", "direction", "runtime", "ramp", "bind", "format", "output"
        ]
    )]
    pub(crate) serve: Option<String>,
    /// Exit after this many clients [1]
    #[arg(long, value_name = "N", requires = "serve", conflicts_with = "to",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
    /// Streams of one client at most, each a thread here [64]
    #[arg(long, value_name = "N", requires = "serve", conflicts_with = "to",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_STREAMS)))]
    max_streams: Option<u32>,
    /// Exit after this time, also without a client [10min]
    #[arg(long, value_name = "TIME", requires = "serve", conflicts_with = "to")]
    pub(crate) timeout: Option<String>,
}

impl Network {
    /// Streams that a server takes of one client.
    pub(crate) fn served_streams(&self) -> u32 {
        self.max_streams.unwrap_or(SERVED_STREAMS)
    }

    /// A time as given, or the default; at least `least`.
    pub(crate) fn time(
        flag: &str,
        given: Option<&str>,
        default: Duration,
        least: Duration,
    ) -> Result<Duration, Failure> {
        let Some(text) = given else { return Ok(default) };
        let wrong = |why: String| Failure::Usage(format!("{flag} {text}: {why}"));
        let ns =
            gpuio_base::units::parse_duration_ns(text).map_err(|error| wrong(error.to_string()))?;
        let time = Duration::from_nanos(ns);
        if time < least {
            return Err(wrong(format!("at least {} s", least.as_secs())));
        }
        Ok(time)
    }
}
