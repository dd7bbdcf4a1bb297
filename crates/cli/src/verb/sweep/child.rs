//! One run: `gpuio bench` as a process that dies with this one.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gpuio_outfile::Draft;
use gpuio_record::{EndedHow, Record};
use gpuio_report::format::json;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, Signal, getppid, kill_process, set_parent_process_death_signal};

use super::folder::errors_of;
use crate::failure::Failure;

/// A run that was told to end, and to remove nothing, has this long.
const PATIENCE: Duration = Duration::from_secs(10);

/// How a run ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// With a record of a whole run; what went wrong in it, where something did.
    Finished(Box<Record>, Option<String>),
    /// Without one, and why.
    Without(String),
    /// We stopped it.
    Stopped,
}

/// Names the sweep to the run that it starts. A flag would stand in the record's command, which
/// then could not be run by hand.
const SWEEP: &str = "GPUIO_SWEEP_PID";
/// The same of `--ab`, which makes no run again.
const AB: &str = "GPUIO_AB_PID";

/// Whether a sweep started this run, which makes it again if it dies.
pub(crate) fn is_of_a_sweep() -> bool {
    std::env::var_os(SWEEP).is_some()
}

/// Whether `--ab` started this run.
pub(crate) fn is_of_ab() -> bool {
    std::env::var_os(AB).is_some()
}

/// In a run that another gpuio started: makes the kernel kill this process when that is gone, as a
/// run that went on by itself would load the drives under the next one (prctl(2),
/// PR_SET_PDEATHSIG).
pub(crate) fn die_with_parent() -> Result<(), Failure> {
    let parents = || [SWEEP, AB].into_iter().filter_map(|name| std::env::var(name).ok());
    let Some(parent) = parents().next() else { return Ok(()) };
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| Failure::Ran(format!("PR_SET_PDEATHSIG: {error}")))?;
    // One that was gone before is not told of.
    let now = getppid().map(|parent| Pid::as_raw(Some(parent)).to_string());
    if now.as_ref() == Some(&parent) {
        return Ok(());
    }
    Err(Failure::Ran(format!("the gpuio that started this run (process {parent}) is gone")))
}

/// A run of `--ab`.
pub(crate) fn command_of_ab() -> Result<Command, Failure> {
    command(AB)
}

/// This program again, to run as long as this process does and no longer. It reads nothing.
fn command(parent: &str) -> Result<Command, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::Ran(format!("this program's own file: {error}")))?;
    let mut command = Command::new(program);
    command.env(parent, std::process::id().to_string()).stdin(Stdio::null());
    Ok(command)
}

/// Runs these words of gpuio, whose record goes into `draft`. What it says goes into memory:
/// neither leaves a name behind if this process dies.
pub(super) fn run(words: &[String], draft: &Draft, stop: &AtomicBool) -> Result<Ended, Failure> {
    let could =
        |what: &'static str| move |error: std::io::Error| Failure::Ran(format!("{what}: {error}"));
    let record = draft.file().try_clone().map_err(could("the file for the record"))?;
    let said = memfd_create("gpuio-sweep", MemfdFlags::CLOEXEC).map(File::from);
    let said = said.map_err(|errno| could("memory for what a run says")(errno.into()))?;
    let mut command = command(SWEEP)?;
    command.args(words).args(["--quiet", "--format", "json"]);
    let to_memory = said.try_clone().map_err(could("memory for what a run says"))?;
    command.stdout(record).stderr(to_memory);
    let mut child = command.spawn().map_err(could("gpuio bench could not be started"))?;
    let Some(status) = end_of(&mut child, stop).map_err(could("waiting for gpuio bench"))? else {
        return Ok(Ended::Stopped);
    };
    let record = text(draft.file().try_clone().map_err(could("the record"))?);
    let record = json::parse(&record).ok();
    // Ctrl-C at a terminal reaches both, and the run may have ended first.
    if stop.load(Ordering::Relaxed)
        && record.as_ref().is_none_or(|record| record.ended != EndedHow::Complete)
    {
        return Ok(Ended::Stopped);
    }
    Ok(judge(status, record, &text(said)))
}

/// All that was written to a file.
fn text(mut file: File) -> String {
    let mut bytes = Vec::new();
    // What can't be read is no record, and says nothing.
    let _ = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Why these words of gpuio can't run on this machine; `None` where they can, or where something
/// else is wrong with them, which their run will tell.
pub(super) fn unavailable(words: &[String]) -> Result<Option<String>, Failure> {
    let could = |error: std::io::Error| Failure::Ran(format!("gpuio bench --dry-run: {error}"));
    let program = std::env::current_exe().map_err(could)?;
    let mut command = Command::new(program);
    command.args(words).args(["--size", "1m", "--directory", ".", "--dry-run"]);
    let output = command.stdin(Stdio::null()).output().map_err(could)?;
    let said = String::from_utf8_lossy(&output.stderr);
    let why = said.trim().trim_start_matches("error: ").to_owned();
    Ok((output.status.code() == Some(3)).then_some(why))
}

/// Waits for its end; `None` where we stopped it.
pub(crate) fn end_of(child: &mut Child, stop: &AtomicBool) -> std::io::Result<Option<ExitStatus>> {
    let mut told: Option<Instant> = None;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(if told.is_some() { None } else { Some(status) });
        }
        match told {
            None if stop.load(Ordering::Relaxed) => {
                told = Some(Instant::now());
                // TERM: one that has had the terminal's Ctrl-C already ends at once.
                let _ = kill_process(Pid::from_child(child), Signal::TERM);
            }
            Some(since) if since.elapsed() > PATIENCE => child.kill()?,
            _ => {}
        }
        std::thread::sleep(super::LOOK);
    }
}

fn judge(status: ExitStatus, record: Option<Record>, said: &str) -> Ended {
    let words = || {
        let last = said.split("error: ").nth(1).map(str::trim).filter(|words| !words.is_empty());
        last.map_or_else(|| format!("it ended with {status} and without a word"), str::to_owned)
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
