//! Arguments of `explain`, `list` and `generate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::formats;

/// The rules to explain.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The warning or rule
    pub(crate) name: Option<String>,
    #[arg(long, value_name = "FORMAT", help = formats::help(&[], "[text]"))]
    pub(crate) format: Option<String>,
}

/// How to print what is built in.
#[derive(Debug, Args)]
pub(crate) struct List {
    #[arg(long, value_name = "FORMAT", help = formats::help(&[], "[text]"))]
    pub(crate) format: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Generate {
    /// The files to make
    pub(crate) what: What,
    /// Directory for the files; none of them may exist
    pub(crate) directory: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum What {
    /// A manual page for gpuio and for each verb
    Man,
    /// Completions for bash: gpuio
    Bash,
    /// Completions for zsh: _gpuio
    Zsh,
    /// Completions for fish: gpuio.fish
    Fish,
    /// Pages of the documentation: commands, keys, checks
    Reference,
}
