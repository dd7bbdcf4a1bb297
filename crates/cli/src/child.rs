//! Another gpuio that this one starts, which ends with this one.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gpuio_guard::objects::environment;
use gpuio_record::RunOf;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, Signal, getppid, kill_process, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// Interval at which a wait checks for Ctrl-C.
pub(crate) const LOOK: Duration = Duration::from_millis(20);
/// Time that a run has to end after SIGTERM before it is killed.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The data directory in a sweep's, unless a flag names another.
pub(crate) const DATA: &str = "data";

/// Names the sweep to the run that it starts. A flag would be part of the record's command, which
/// could then not be run by hand.
const SWEEP: &str = "GPUIO_SWEEP_PID";
/// The same for `--ab`, which does not repeat runs.
const AB: &str = "GPUIO_AB_PID";

/// Which of the runs it is, as the record says then.
const RUN_OF: &str = "GPUIO_RUN_OF";

/// Which run of those that another gpuio starts this is.
pub(crate) fn run_of() -> Option<RunOf> {
    serde_json::from_str(&environment::text(RUN_OF)?).ok()
}

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
pub(crate) fn child_command(of: ChildOf, run_of: Option<&RunOf>) -> Result<Command, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::Ran(format!("gpuio's own executable: {error}")))?;
    let mut command = Command::new(program);
    let parent = match of {
        ChildOf::Sweep => SWEEP,
        ChildOf::Ab => AB,
    };
    command.env(parent, std::process::id().to_string());
    if let Some(run_of) = run_of.and_then(|run_of| serde_json::to_string(run_of).ok()) {
        command.env(RUN_OF, run_of);
    }
    Ok(command)
}

/// A file in memory, for what a run prints.
pub(crate) fn memory() -> Result<File, Failure> {
    let could = |errno: rustix::io::Errno| {
        Failure::Ran(format!("memory for what a run prints: {}", std::io::Error::from(errno)))
    };
    memfd_create("gpuio-run", MemfdFlags::CLOEXEC).map(File::from).map_err(could)
}

/// The whole content of a file.
pub(crate) fn text(mut file: File) -> String {
    let mut bytes = Vec::new();
    // An unreadable file is no record and has no messages.
    let _ = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
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
        std::thread::sleep(LOOK);
    }
}
