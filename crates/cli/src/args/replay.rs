//! Flags of `gpuio replay`.

use std::path::PathBuf;

use clap::Args;

use super::workload::WorkloadData;
use super::{CufileFlags, FigureFlags, MachineFlags, Out};

/// A trace, and how it is repeated.
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// The trace: of gpuio exec --record, or of fio's write_iolog (version 2 or 3)
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,
    #[command(flatten)]
    pub(crate) how: ReplayFlags,
    #[command(flatten)]
    pub(crate) data: WorkloadData,
    #[command(flatten)]
    pub(crate) machine: MachineFlags,
    #[command(flatten)]
    pub(crate) cufile: CufileFlags,
    #[command(flatten)]
    pub(crate) figures: FigureFlags,
    #[command(flatten)]
    pub(crate) out: Out,
}

/// How the calls are repeated. Values are parsed as the key of the same name, but for pace and
/// order.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Replay", allow_negative_numbers = true)]
pub(crate) struct ReplayFlags {
    /// Data paths, one after another, a row for each: gather,mapped,gds; or all, as in gpuio bench
    /// [staged; host with --gpu none]
    #[arg(long, value_name = "PATHS")]
    pub(crate) path: Vec<String>,
    /// When a call starts: asap (as soon as what it waits for is over) or recorded (after the pause
    /// that its thread made before it, too) [asap]
    #[arg(long, value_name = "PACE", value_parser = ["asap", "recorded"])]
    pub(crate) pace: Option<String>,
    /// What a call waits for: observed (all calls that had ended when the program made it) or
    /// threads (those of its own thread or stream) [observed]
    #[arg(long, value_name = "ORDER", value_parser = ["observed", "threads"])]
    pub(crate) order: Option<String>,
    /// I/O engine between file and host memory [auto]
    #[arg(long, value_name = "ENGINE")]
    pub(crate) engine: Option<String>,
    /// Longest part of a call that is one I/O [64M, less where memory would not do]
    #[arg(long, value_name = "SIZE")]
    pub(crate) bs: Option<String>,
    /// I/Os in flight per thread [as many calls as the program had, 1 of fio's traces]
    #[arg(long, value_name = "N")]
    pub(crate) depth: Option<String>,
    /// Verify the data where it ends: pass (all that was read or written, read once more after the
    /// run), inline (every block on arrival; not in latencies, but in the run time) or off [pass]
    #[arg(long, value_name = "MODE")]
    pub(crate) verify: Option<String>,
}

impl Replay {
    /// The flags as (job-file key, value, flag) in the order of the help.
    pub(crate) fn keys(&self) -> Vec<(&'static str, String, &'static str)> {
        let how = &self.how;
        let valued = [
            ("engine", &how.engine, "--engine"),
            ("bs", &how.bs, "--bs"),
            ("depth", &how.depth, "--depth"),
            ("verify", &how.verify, "--verify"),
        ];
        let some = |(key, value, flag): (&'static str, &Option<String>, &'static str)| {
            value.as_ref().map(|value| (key, value.clone(), flag))
        };
        let paths = how.path.iter().map(|path| ("path", path.clone(), "--path"));
        let machine = self.machine.keys();
        let rest = machine.into_iter().filter_map(some);
        let data = self.data.keys().into_iter();
        valued.into_iter().filter_map(some).chain(paths).chain(rest).chain(data).collect()
    }
}
