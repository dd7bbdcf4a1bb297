//! Flags of `exec`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueHint};

/// Which program to run, and its settings.
#[derive(Debug, Args)]
pub(crate) struct Exec {
    /// Print the environment variables as shell commands and run nothing: eval "$(gpuio exec
    /// --env)"
    #[arg(long, conflicts_with = "command")]
    pub(crate) env: bool,
    /// With --env: as JSON
    #[arg(long, conflicts_with = "command")]
    pub(crate) json: bool,
    /// Print one line to standard error that says what is run and with which library
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// Library that serves cuFile calls: auto (NVIDIA's for files that it can access directly,
    /// gpuio's for all others), gpuio or nvidia [GPUIO_CUFILE, or auto]
    #[arg(long, value_name = "WHO", value_parser = ["auto", "gpuio", "nvidia"])]
    pub(crate) cufile: Option<String>,
    /// GPU of cuFile calls: software is gpuio's software GPU, for tests without one; sets
    /// GPUIO_CUFILE_DRIVER=software [the CUDA driver's]
    #[arg(long, value_name = "GPU", value_parser = ["software"])]
    pub(crate) gpu: Option<String>,
    /// cufile.json for the program; sets CUFILE_ENV_PATH_JSON to its absolute path
    #[arg(long, value_name = "FILE")]
    pub(crate) cufile_json: Option<PathBuf>,
    /// Record the program's cuFile calls in a new file of this name, for gpuio replay: file,
    /// offset, size, time, thread and stream, never content (docs/replay.md)
    #[arg(long, value_name = "TRACE")]
    pub(crate) record: Option<PathBuf>,
    /// With --record: without names of files and of the program
    #[arg(long, requires = "record")]
    pub(crate) anonymous: bool,
    /// Read these files into the page cache while the program starts (gpuio prefetch): a model's
    /// directory, a file, or a trace of the last start; repeat for more
    #[arg(long, value_name = "PATH")]
    pub(crate) prefetch: Vec<PathBuf>,
    /// The program and its arguments
    #[arg(value_name = "PROGRAM", trailing_var_arg = true,
          value_hint = ValueHint::CommandWithArguments,
          required_unless_present_any = ["env", "json"])]
    pub(crate) command: Vec<OsString>,
}
