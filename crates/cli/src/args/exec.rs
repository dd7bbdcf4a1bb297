//! Flags of `exec`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

/// Which program, and what it gets.
#[derive(Debug, Args)]
pub(crate) struct Exec {
    /// Print the variables as commands of a shell and run nothing: eval "$(gpuio exec --env)"
    #[arg(long, conflicts_with = "command")]
    pub(crate) env: bool,
    /// With --env: as JSON
    #[arg(long, conflicts_with = "command")]
    pub(crate) json: bool,
    /// Say in one line on standard error what is done
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// Who serves cuFile's calls: auto (NVIDIA's library for files that it has a direct path to,
    /// gpuio's for every other), gpuio or nvidia [GPUIO_CUFILE, or auto]
    #[arg(long, value_name = "WHO", value_parser = ["auto", "gpuio", "nvidia"])]
    pub(crate) cufile: Option<String>,
    /// cufile.json for the program: CUFILE_ENV_PATH_JSON, with the whole path
    #[arg(long, value_name = "FILE")]
    pub(crate) cufile_json: Option<PathBuf>,
    /// The program, and its arguments as they are
    #[arg(value_name = "PROGRAM", trailing_var_arg = true,
          required_unless_present_any = ["env", "json"])]
    pub(crate) command: Vec<OsString>,
}
