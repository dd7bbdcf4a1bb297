//! One run of a sweep.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use gpuio_drivers::mpi::LIBRARY_VARIABLE;
use gpuio_guard::outfile::Draft;
use gpuio_record::{EndedHow, Record, RunOf};
use gpuio_report::format::json;

use super::directory::errors_of;
use crate::child::{ChildOf, memory, text};
use crate::failure::Failure;
use crate::ranks::{Children, Wanted};

/// How a run ended.
pub(super) enum Ended {
    /// Completed, with a record; and the errors of the run, if any.
    Finished(Box<Record>, Option<String>),
    /// Without a record, and why.
    Without(String),
    /// Stopped by this process.
    Stopped,
}

pub(super) struct Point<'a> {
    /// The arguments of gpuio.
    pub(super) words: Vec<String>,
    /// How many ranks; all where this is not said.
    pub(super) ranks: Option<u32>,
    /// The sweep's folder, where the data set is in it.
    pub(super) folder: Option<&'a Path>,
    pub(super) run_of: RunOf,
}

/// Runs gpuio with these arguments; the record goes into `draft`. Messages go to memory. Neither
/// leaves a file behind if this process crashes.
pub(super) fn run(
    children: &Children<'_>,
    point: Point<'_>,
    draft: &Draft,
    stop: &AtomicBool,
) -> Result<Ended, Failure> {
    let could =
        |what: &'static str| move |error: std::io::Error| Failure::Ran(format!("{what}: {error}"));
    let record = draft.file().try_clone().map_err(could("the file for the record"))?;
    let messages = memory()?;
    let to_memory = messages.try_clone().map_err(could("memory for the messages of a run"))?;
    let more = ["--quiet", "--format", "json"].map(OsString::from);
    let words = point.words.into_iter().map(OsString::from).chain(more).collect();
    let wanted = Wanted {
        of: ChildOf::Sweep,
        words,
        ranks: point.ranks,
        folder: point.folder,
        run_of: Some(point.run_of),
        stdout: record,
        stderr: Some(to_memory),
    };
    let Some(status) = children.run(wanted, stop)? else { return Ok(Ended::Stopped) };
    let record = text(draft.file().try_clone().map_err(could("the record"))?);
    let record = json::parse(&record).ok();
    // Ctrl-C at a terminal reaches both processes, and the run may have ended first.
    if stop.load(Ordering::Relaxed)
        && record.as_ref().is_none_or(|record| record.ended != EndedHow::Complete)
    {
        return Ok(Ended::Stopped);
    }
    Ok(outcome_of(status, record, &text(messages)))
}

/// Why gpuio can't run with these arguments on this machine; `None` if it can, or if something else
/// is wrong with them, which the run will report.
pub(super) fn unavailable(words: &[String]) -> Result<Option<String>, Failure> {
    let could = |error: std::io::Error| Failure::Ran(format!("gpuio bench --dry-run: {error}"));
    let program = std::env::current_exe().map_err(could)?;
    let mut command = Command::new(program);
    // One process tries for all.
    command.env(LIBRARY_VARIABLE, "off");
    command.args(words).args(["--size", "1m", "--directory", ".", "--dry-run"]);
    let output = command.stdin(Stdio::null()).output().map_err(could)?;
    let messages = String::from_utf8_lossy(&output.stderr);
    let why = messages.trim().trim_start_matches("error: ").to_owned();
    Ok((output.status.code() == Some(3)).then_some(why))
}

fn outcome_of(status: ExitStatus, record: Option<Record>, messages: &str) -> Ended {
    let words = || {
        let last =
            messages.split("error: ").nth(1).map(str::trim).filter(|words| !words.is_empty());
        last.map_or_else(|| format!("it ended with {status} and printed nothing"), str::to_owned)
    };
    match (status.code(), record) {
        (Some(0), Some(record)) => Ended::Finished(Box::new(record), None),
        (Some(1), Some(record)) if record.ended == EndedHow::Complete => {
            let error = errors_of(&record);
            Ended::Finished(Box::new(record), error)
        }
        (Some(2), _) => Ended::Without(format!("refused: {}", words())),
        (Some(3), _) => Ended::Without(format!("not available here: {}", words())),
        (_, Some(record)) if record.error.is_some() => {
            Ended::Without(format!("failed: {}", record.error.unwrap_or_default()))
        }
        _ => Ended::Without(format!("failed: {}", words())),
    }
}
