//! Flags of `gpuio replay`.

use std::path::PathBuf;

use clap::Args;

use super::{CufileFlags, FigureFlags, Keyed, Out, OwnFlags};

/// A trace, and how it is repeated.
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// The trace: of gpuio exec --record, or of fio's write_iolog (version 2 or 3)
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,
    #[command(flatten)]
    pub(crate) work: Keyed<ReplayFlags>,
    #[command(flatten)]
    pub(crate) figures: FigureFlags,
    #[command(flatten)]
    pub(crate) out: Out,
}

/// Flags that set no key.
#[derive(Debug, Args)]
#[command(next_help_heading = "Replay")]
pub(crate) struct ReplayFlags {
    /// When a call starts: asap (as soon as what it waits for is over) or recorded (after the pause
    /// that its thread made before it, too) [asap]
    #[arg(long, value_name = "PACE", value_parser = ["asap", "recorded"])]
    pub(crate) pace: Option<String>,
    /// Calls that a call waits for: observed (all calls that had ended when the program made it) or
    /// threads (those of its own thread or stream) [observed]
    #[arg(long, value_name = "ORDER", value_parser = ["observed", "threads"])]
    pub(crate) order: Option<String>,
    #[command(flatten)]
    pub(crate) cufile: CufileFlags,
}

impl OwnFlags for ReplayFlags {
    const VERB: &'static str = "replay";
    const HEADINGS: &'static [&'static str] = &["Replay", "Data", "Machine", "cuFile"];
    const BEHIND: &'static [(&'static str, &'static str)] = &[("pace", "path"), ("order", "pace")];
}
