//! One run: `gpuio bench` as a child process that ends with this one.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gpuio_guard::objects::environment;
use gpuio_guard::outfile::Draft;
use gpuio_record::{EndedHow, Record};
use gpuio_report::format::json;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, Signal, getppid, kill_process, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};

use super::directory::errors_of;
use crate::failure::Failure;
use crate::ranks::{Children, LIBRARY_VARIABLE, Wanted};

/// Time that a run has to end after SIGTERM before it is killed.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How a run ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// Completed, with a record; and the errors of the run, if any.
    Finished(Box<Record>, Option<String>),
    /// Without a record, and why.
    Without(String),
    /// Stopped by this process.
    Stopped,
}

/// Names the sweep to the run that it starts. A flag would be part of the record's command, which
/// could then not be run by hand.
const SWEEP: &str = "GPUIO_SWEEP_PID";
/// The same for `--ab`, which does not repeat runs.
const AB: &str = "GPUIO_AB_PID";

/// Whether a sweep started this run, and will repeat it if it crashes.
pub(crate) fn is_of_a_sweep() -> bool {
    environment::variable(SWEEP).is_some()
}

/// Whether `--ab` started this run.
pub(crate) fn is_of_ab() -> bool {
    environment::variable(AB).is_some()
}

/// In a run that another gpuio started: makes the kernel kill this process when that one ends.
/// Otherwise the run would continue and load the drives during the next one (prctl(2),
/// PR_SET_PDEATHSIG).
pub(crate) fn die_with_parent() -> Result<(), Failure> {
    let parents = || [SWEEP, AB].into_iter().filter_map(environment::text);
    let Some(parent) = parents().next() else { return Ok(()) };
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| Failure::Ran(format!("PR_SET_PDEATHSIG: {error}")))?;
    // A parent that ended earlier causes no signal.
    let now = getppid().map(|parent| Pid::as_raw(Some(parent)).to_string());
    if now.as_ref() == Some(&parent) {
        return Ok(());
    }
    Err(Failure::Ran(format!("the gpuio that started this run (process {parent}) has ended")))
}

/// The verb that starts a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ChildOf {
    Sweep,
    Ab,
}

/// This program again, as a child that ends with this process.
pub(crate) fn child_command(of: ChildOf) -> Result<Command, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::Ran(format!("gpuio's own executable: {error}")))?;
    let mut command = Command::new(program);
    let parent = match of {
        ChildOf::Sweep => SWEEP,
        ChildOf::Ab => AB,
    };
    command.env(parent, std::process::id().to_string());
    Ok(command)
}

/// A file in memory, for what a run prints.
pub(crate) fn memory() -> Result<File, Failure> {
    let could = |errno: rustix::io::Errno| {
        Failure::Ran(format!("memory for what a run prints: {}", std::io::Error::from(errno)))
    };
    memfd_create("gpuio-run", MemfdFlags::CLOEXEC).map(File::from).map_err(could)
}

/// The point to run.
pub(super) struct Point<'a> {
    /// The arguments of gpuio.
    pub(super) words: Vec<String>,
    /// How many ranks; all where this is not said.
    pub(super) ranks: Option<u32>,
    /// The sweep's folder, where the data set is in it.
    pub(super) folder: Option<&'a Path>,
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

/// The whole content of a file.
pub(crate) fn text(mut file: File) -> String {
    let mut bytes = Vec::new();
    // An unreadable file is no record and has no messages.
    let _ = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
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

/// Waits for the end of the child; `None` if this process stopped it.
/// `is_killed` says that it is to be killed at once.
pub(crate) fn end_of(
    child: &mut Child,
    stop: &AtomicBool,
    is_killed: &dyn Fn() -> bool,
) -> std::io::Result<Option<ExitStatus>> {
    let mut terminated_at: Option<Instant> = None;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(if terminated_at.is_some() { None } else { Some(status) });
        }
        match terminated_at {
            None if stop.load(Ordering::Relaxed) => {
                terminated_at = Some(Instant::now());
                // SIGTERM: a child that already got the terminal's Ctrl-C exits at once.
                let _ = kill_process(Pid::from_child(child), Signal::TERM);
            }
            Some(since) if since.elapsed() > TIMEOUT => child.kill()?,
            _ if is_killed() => child.kill()?,
            _ => {}
        }
        std::thread::sleep(super::LOOK);
    }
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
