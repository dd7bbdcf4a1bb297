//! Flags of `gpuio why`.

use std::path::PathBuf;

use clap::Args;

use super::{Save, one_of};
use crate::formats;

/// Lines behind the flags.
pub(super) const EXAMPLES: &str = "Examples:
  gpuio why                           # all mounts and GPUs, then this directory and the first GPU
  gpuio why /data --gpu 0             # the mount of a file or directory, and one GPU
  gpuio why --from machine.tar        # another machine: a file of gpuio topo --capture
  gpuio why 4711                      # a running program";

/// The subject of the question.
#[derive(Debug, Args)]
pub(crate) struct Why {
    /// Process ID of a running program, or a path as for --mount (`./4711` for a file of that name)
    #[arg(value_name = "PID|PATH", value_parser = subject,
          value_hint = clap::ValueHint::AnyPath, conflicts_with = "mount")]
    pub(crate) subject: Option<Subject>,
    /// File, directory or mount point [this directory; with --from the first mount of data]
    #[arg(long, alias = "file", value_name = "PATH")]
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

/// The one thing that the question is about.
#[derive(Debug, Clone)]
pub(crate) enum Subject {
    Process(u32),
    Place(PathBuf),
}

fn subject(word: &str) -> Result<Subject, String> {
    if word.is_empty() || !word.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(Subject::Place(word.into()));
    }
    match word.parse() {
        Ok(0) | Err(_) => Err("no process has this number".to_owned()),
        Ok(pid) => Ok(Subject::Process(pid)),
    }
}
