//! Flags of `gpuio why`.

use std::path::PathBuf;

use clap::Args;

use super::{Save, one_of};
use crate::formats;

/// Lines behind the flags.
pub(super) const EXAMPLES: &str = "Examples:
  gpuio why                           # all mounts and GPUs, then this directory and the first GPU
  gpuio why --mount /data --gpu 0     # one mount and one GPU
  gpuio why --from machine.tar        # another machine: a file of gpuio topo --capture
  gpuio why 4711                      # a running program";

/// The subject of the question.
#[derive(Debug, Args)]
pub(crate) struct Why {
    /// Process ID of a running program
    #[arg(value_name = "PID", value_parser = clap::value_parser!(u32).range(1..),
          conflicts_with_all = ["mount", "gpu", "from"])]
    pub(crate) pid: Option<u32>,
    /// File, directory or mount point [this directory; with --from the first mount of data]
    #[arg(long, value_name = "PATH")]
    pub(crate) mount: Option<PathBuf>,
    /// GPU: number, PCI address, UUID, or software [the first]
    #[arg(long, value_name = "GPU")]
    pub(crate) gpu: Option<String>,
    /// Describe another machine, as for gpuio check --from [this machine]
    #[arg(long, value_name = "PATH", num_args = 1..)]
    pub(crate) from: Vec<PathBuf>,
    /// One of several machines in the texts, by its host's name
    #[arg(long, value_name = "NAME", requires = "from")]
    pub(crate) machine: Option<String>,
    #[arg(long, value_name = "FORMAT", value_parser = one_of(formats::names(&[])),
        help = formats::help(&[], "[text]"))]
    pub(crate) format: Option<String>,
    #[command(flatten)]
    pub(crate) save: Save,
}
