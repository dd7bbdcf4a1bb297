//! `gpuio exec`: another program with gpuio's `libcufile.so.0` in the place of NVIDIA's.
//!
//! `LD_PRELOAD` of an object whose SONAME is `libcufile.so.0` comes before DT_RPATH, before wheels
//! that look for their own copy, and before `dlopen("libcufile.so.0")`; `dlopen("libcufile.so")`
//! is answered through `LD_LIBRARY_PATH` (ld.so(8), dlopen(3)). Only a program that opens another
//! copy by its whole path gets that one.

mod library;
mod program;
mod variables;

use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use self::library::Library;
use self::program::{Missing, Program};
use self::variables::Variables;
use crate::args::Exec;
use crate::failure::Failure;
use crate::{output, unused};

pub(crate) fn run(asked: &Exec) -> Result<ExitCode, Failure> {
    unused::exec(asked)?;
    let library = Library::find()?;
    let variables = Variables::of(asked, &library)?;
    let Some((name, arguments)) = asked.command.split_first() else {
        output::put(&variables.printed(asked.json)?)?;
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
        tell!("note: {note}");
    }
    if asked.verbose {
        tell!("gpuio exec: {} for {}", variables.told(&library), program.path.display());
    }
    let mut command = Command::new(&program.path);
    command
        .arg0(name)
        .args(arguments)
        .envs(variables.set.iter().map(|(name, value)| (name, value)));
    // Does not come back where the program starts: it has this process's number from then on.
    let error = command.exec();
    Ok(refused(&Missing::refused(&program.path, &error)))
}

/// Ends as env(1) does for a program that can't be started.
fn refused(missing: &Missing) -> ExitCode {
    tell!("error: {missing}");
    ExitCode::from(missing.exit_code())
}
