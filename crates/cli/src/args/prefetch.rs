//! Flags of `prefetch`.

use std::path::PathBuf;

use clap::Args;

/// Which files, and how long.
#[derive(Debug, Args)]
pub(crate) struct Prefetch {
    /// A model's directory, a file, or a trace of gpuio exec --record; several one after the other
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// Return at once and go on in the background; what it did is then printed to standard error
    #[arg(long)]
    pub(crate) background: bool,
    /// Stop when this process has ended
    #[arg(long = "while", value_name = "PID",
          value_parser = clap::value_parser!(i32).range(1..))]
    pub(crate) process: Option<i32>,
}
