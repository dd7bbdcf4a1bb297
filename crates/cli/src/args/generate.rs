//! Arguments of `explain` and `generate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// What to explain.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The warning or rule
    pub(crate) name: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Generate {
    /// What to make
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
