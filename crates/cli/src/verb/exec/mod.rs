//! `gpuio exec`: runs another program with gpuio's `libcufile.so.0` instead of NVIDIA's.
//!
//! An object in `LD_PRELOAD` whose SONAME is `libcufile.so.0` has priority over DT_RPATH, over
//! wheels that load their own copy, and over `dlopen("libcufile.so.0")`. `LD_LIBRARY_PATH` makes
//! `dlopen("libcufile.so")` find it too (ld.so(8), dlopen(3)). Only a program that opens another
//! copy by its full path gets that copy.

mod library;
mod program;
mod variables;

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};

use self::library::Library;
use self::program::{ExecError, Program};
use self::variables::{DRIVER, Variables};
use gpuio_gpu::{Driver, Which};
use gpuio_guard::objects::environment;

use crate::args::Exec;
use crate::failure::Failure;
use crate::verb::prefetch;
use crate::{output, unused};

pub(crate) fn run(args: &Exec) -> Result<ExitCode, Failure> {
    unused::exec(args)?;
    if environment::is_secure() {
        return Err(Failure::Unavailable(
            "exec would give a program of your choice the rights of this gpuio, which you lack \
             (set-user-ID, set-group-ID or file capabilities); use a gpuio without them"
                .to_owned(),
        ));
    }
    let library = Library::find()?;
    let mut variables = Variables::of(args, &library)?;
    let Some((name, arguments)) = args.command.split_first() else {
        output::put(&variables.printed(args.json)?)?;
        return Ok(ExitCode::SUCCESS);
    };
    let program = match Program::find(name) {
        Ok(program) => program,
        Err(missing) => return Ok(refused(&missing)),
    };
    if let Some(why) = program.hidden() {
        return Err(Failure::Unavailable(why));
    }
    if let Some(note) = program.note() {
        message!("note: {note}");
    }
    if let Some(runtime) = program.linked_to(variables::is_sanitizer) {
        variables.lead_with(&runtime);
    }
    if !args.prefetch.is_empty() {
        prefetch::beside(std::process::id(), &args.prefetch)?;
    }
    if args.verbose {
        message!("gpuio exec: {} for {}", variables.description(&library), program.path.display());
    }
    if let Some(line) = without_gpu(&variables, args.verbose) {
        message!("gpuio exec: {line}");
    }
    let mut command = Command::new(&program.path);
    command
        .arg0(name)
        .args(arguments)
        .envs(variables.set.iter().map(|(name, value)| (name, value)));
    if args.record.is_some() {
        // The program keeps this process's number: the library says at its end, once, where no
        // call was recorded.
        command.env("GPUIO_CUFILE_RECORD_PID", std::process::id().to_string());
    }
    if let Ok(facts) = rustix::fs::fstat(std::io::stderr()) {
        command.env("GPUIO_CUFILE_STDERR", format!("{}:{}", facts.st_dev, facts.st_ino));
    }
    // Returns only if the program can't be started; otherwise the program has replaced this
    // process.
    let error = command.exec();
    Ok(refused(&ExecError::refused(&program.path, &error)))
}

/// Device files of NVIDIA's driver, on Linux and under Windows.
const DEVICES: [&str; 2] = ["/dev/nvidiactl", "/dev/dxg"];

/// The line for a program that will find no GPU: both libraries answer numbers alone. To start a
/// driver that has devices takes a while, and is done only `for_sure`.
fn without_gpu(variables: &Variables, for_sure: bool) -> Option<String> {
    let set = variables.value(DRIVER).cloned();
    let which = Which::from_variable(set.or_else(|| environment::variable(DRIVER)));
    let is_software = matches!(which, Which::Software);
    let has_devices = DEVICES.iter().any(|file| Path::new(file).exists());
    if !for_sure && (is_software || has_devices) {
        return None;
    }
    let absent = Driver::load(&which).err()?;
    let instead = match is_software {
        true => String::new(),
        false => format!("; without a GPU: gpuio exec --gpu software ({DRIVER}=software)"),
    };
    Some(format!("calls will answer 5011 (CUDA driver error) here: {absent}{instead}"))
}

/// Exits as env(1) does for a program that can't be started.
fn refused(error: &ExecError) -> ExitCode {
    message!("error: {error}");
    ExitCode::from(error.exit_code())
}
