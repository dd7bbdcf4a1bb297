//! Arguments of `explain`, `list` and `generate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use gpuio_machine::check::RULES;
use gpuio_record::warning_kinds;

use super::one_of;
use crate::formats;

/// Names of rules and warnings.
pub(crate) fn explained() -> Vec<String> {
    let rules = RULES.iter().map(|rule| rule.name.to_owned());
    rules.chain(warning_kinds().into_iter().map(|kind| kind.id)).collect()
}

/// The name or word to explain.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The warning, the rule, a key of job files, or a word of a table or report, such as: of best
    #[arg(value_parser = one_of(explained()))]
    pub(crate) name: Vec<String>,
    /// List all words of tables and reports, and all keys of job files, with their meanings
    #[arg(long, conflicts_with = "name")]
    pub(crate) all: bool,
    #[arg(long, value_name = "FORMAT", value_parser = one_of(formats::names(&[])),
        help = formats::help(&[], "[text]"))]
    pub(crate) format: Option<String>,
}

/// How to print what is built in.
#[derive(Debug, Args)]
pub(crate) struct List {
    #[arg(long, value_name = "FORMAT", value_parser = one_of(formats::names(&[])),
        help = formats::help(&[], "[text]"))]
    pub(crate) format: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Generate {
    /// bash, zsh or fish (completions), man (a manual page for gpuio and for each verb), or
    /// reference (pages of the documentation: commands, keys, metrics, checks, …)
    pub(crate) what: What,
    /// Directory to write to, created if missing; no file in it is replaced [completions: standard
    /// output]
    pub(crate) directory: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum What {
    Bash,
    Zsh,
    Fish,
    Man,
    Reference,
}
