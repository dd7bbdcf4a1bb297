//! Where a verb's text goes.

use std::path::PathBuf;

use clap::Args;

/// A file instead of standard output.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Save {
    /// Write to this file, in the format that its ending says, instead of standard output; its
    /// directory is made if needed
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace the file if gpuio wrote it and nothing changed it since; never any other file
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
}
