//! Flags of a run on several ranks.

use std::time::Duration;

use clap::Args;

use super::one_of;
use crate::failure::Failure;
use crate::ranks::Share;

/// Flags for runs that mpirun or srun starts (docs/mpi.md).
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Several ranks (mpirun, srun)")]
pub(crate) struct RankLimits {
    /// Let ranks share these on purpose: gpu, file (to read); comma-separated list [refused]
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = one_of(Share::WORDS))]
    pub(crate) share: Vec<String>,
    /// End the run if a rank does nothing, or completes no I/O, for this long [30 s; a rank of
    /// which nothing at all is heard: 10 s, or a third of TIME if that is more]
    #[arg(long, value_name = "TIME")]
    pub(crate) rank_timeout: Option<String>,
}

/// The same with what is printed.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Several ranks (mpirun, srun)")]
pub(crate) struct RankFlags {
    #[command(flatten)]
    pub(crate) limits: RankLimits,
    /// Add a table with a row for each rank to the text, and such rows to CSV
    #[arg(long)]
    pub(crate) per_rank: bool,
}

impl RankLimits {
    /// The flags as they are given.
    pub(crate) fn words(&self) -> Vec<String> {
        let share = self.share.iter().map(|what| format!("--share={what}"));
        let timeout = self.rank_timeout.iter().map(|time| format!("--rank-timeout={time}"));
        share.chain(timeout).collect()
    }

    /// The value of `--rank-timeout`.
    pub(crate) fn timeout(&self) -> Result<Option<Duration>, Failure> {
        let Some(text) = &self.rank_timeout else { return Ok(None) };
        let wrong = |why: String| Failure::Usage(format!("--rank-timeout {text}: {why}"));
        let ns =
            gpuio_base::units::parse_duration_ns(text).map_err(|error| wrong(error.to_string()))?;
        match Duration::from_nanos(ns) {
            time if time < Duration::from_secs(1) => Err(wrong("at least 1 s".to_owned())),
            time => Ok(Some(time)),
        }
    }

    /// The values of `--share`.
    pub(crate) fn share(&self) -> Result<Share, Failure> {
        Share::parse(&self.share).map_err(Failure::Usage)
    }
}
