//! Results of a run that has not ended, on disk: NVIDIA's library can end the process, and so can
//! the kernel. A journal is a record, written anew after every group of jobs, outside every clock,
//! and gone when the results are where they were asked for.
//!
//! Whose run still goes on is told by a lock on the file (flock(2)): the kernel takes it away with
//! the process, whatever ends that, and process numbers of other containers can't mislead. A
//! journal is locked before it takes its name, so the file of that name is never without the lock
//! of a living run.

use std::ffi::OsStr;
use std::fs::{DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use gpuio_outfile::{Directory, Draft, Identity};
use gpuio_record::{Plan, Record};
use rustix::fs::{FlockOperation, flock};

use crate::session::takes_cufile;

/// How the name of each ends.
const ENDING: &str = ".gpuio-journal.json";
/// From this long after its start on, a run has results that are worth a line about their place.
const WORTH_TELLING: Duration = Duration::from_secs(10);

/// The journal of this process's run. It stays on disk unless [`Journal::remove`] is called.
#[derive(Debug)]
pub(crate) struct Journal {
    /// The file, or why there can't be one; absent where nobody wants one.
    path: Option<Result<PathBuf, String>>,
    began: Instant,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Holds the lock.
    file: Option<File>,
    told: bool,
}

/// Whether a run of this plan has a journal: there is a group after the first, or cuFile, which
/// can end the process even while it is closed.
pub(crate) fn is_due(plan: &Plan) -> bool {
    let groups = plan.jobs.first().map(|job| job.group) != plan.jobs.last().map(|job| job.group);
    groups || plan.jobs.iter().any(takes_cufile)
}

impl Journal {
    /// Nothing is made yet. The file will be beside `output` where the record goes to a file,
    /// which may be the only place that outlives a container; else where the user's state is.
    pub(crate) fn new(output: Option<&Path>) -> Journal {
        let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%S.%6fZ");
        let own = format!("{now}-{}{ENDING}", std::process::id());
        let path = match output {
            Some(output) => {
                let name = output.file_name().unwrap_or_default().display();
                Ok(directory_of(output).join(format!("{name}.{own}")))
            }
            None => state_directory().map(|directory| directory.join(own)),
        };
        Journal { path: Some(path), began: Instant::now(), state: Mutex::default() }
    }

    /// For a run that is made again if it dies.
    pub(crate) fn none() -> Journal {
        Journal { path: None, began: Instant::now(), state: Mutex::default() }
    }

    /// Puts `record` in the place of the one before. Gives a line for the user, once, if results
    /// are at stake: a path of cuFile's comes next or later, or the run has gone on for a while.
    pub(crate) fn keep(&self, record: &Record) -> Option<String> {
        let path = self.path.clone()?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let written = path.and_then(|path| {
            let text = gpuio_report::format::json::render(record);
            let file = put(&path, state.file.as_ref(), &text)
                .map_err(|error| format!("{}: {error}", path.display()))?;
            Ok((path, file))
        });
        let line = match written {
            Ok((path, file)) => {
                state.file = Some(file);
                let path = path.display();
                format!("note: until this run ends, its results so far are kept in {path}")
            }
            Err(why) => format!(
                "warning: results so far are kept nowhere and go with the process if it dies: \
                 {why}; -o FILE keeps them beside FILE"
            ),
        };
        let next = record.plan.jobs.get(record.jobs.len()..).unwrap_or_default();
        let at_stake = next.iter().any(takes_cufile) || self.began.elapsed() >= WORTH_TELLING;
        if state.told || next.is_empty() || !at_stake {
            return None;
        }
        state.told = true;
        Some(line)
    }

    /// Where results are, if any are kept.
    pub(crate) fn kept(&self) -> Option<&Path> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.path.as_ref()?.as_deref().ok().filter(|_| state.file.is_some())
    }

    /// Takes it away: its results are elsewhere now.
    pub(crate) fn remove(self) {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let (Some(Ok(path)), Some(file)) = (&self.path, &state.file) {
            // One that stays is told at the next run, with its path.
            let _ = Directory::of(path)
                .and_then(|(directory, name)| directory.remove(&name, Identity::of(file)?));
        }
    }
}

/// Puts a file of this text, whole, on disk and locked, in the place of `old`, which this process
/// wrote, or under a name that nothing has.
fn put(path: &Path, old: Option<&File>, text: &str) -> std::io::Result<File> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory_of(path))?;
    let (directory, name) = Directory::of(path)?;
    let draft = Draft::begin(directory, &name)?;
    draft.fill(text.as_bytes())?;
    draft.replace(old).map_err(|unnamed| unnamed.error)
}

fn directory_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// `$XDG_STATE_HOME/gpuio`, by default `~/.local/state/gpuio` (XDG Base Directory Specification
/// 0.8, which takes absolute paths only).
fn state_directory() -> Result<PathBuf, String> {
    let from = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    from("XDG_STATE_HOME")
        .or_else(|| Some(from("HOME")?.join(".local/state")))
        .map(|state| state.join("gpuio"))
        .ok_or_else(|| "neither XDG_STATE_HOME nor HOME names a directory".to_owned())
}

/// One line about runs that ended without their results, if there are any where journals of this
/// user, or of runs with such an `output`, are.
pub(crate) fn told_of_the_dead(output: Option<&Path>) -> Option<String> {
    let directories = [state_directory().ok(), output.map(directory_of)];
    let mut found: Vec<(std::time::SystemTime, PathBuf)> =
        directories.iter().flatten().flat_map(|directory| dead_in(directory)).collect();
    found.sort();
    let (_, newest) = found.last()?;
    let others = match found.len() - 1 {
        0 => String::new(),
        more => format!(" (and {more} more there)"),
    };
    let newest = newest.display();
    Some(format!(
        "note: an earlier run died; its results until then: gpuio show {newest}{others}; remove \
         the file when it has served"
    ))
}

/// Journals in a directory whose runs are gone, with the time of their last results.
fn dead_in(path: &Path) -> Vec<(std::time::SystemTime, PathBuf)> {
    let Ok(directory) = Directory::open(path) else { return Vec::new() };
    let names = directory.names().unwrap_or_default().into_iter();
    let named = names.filter(|name| name.as_encoded_bytes().ends_with(ENDING.as_bytes()));
    let dead = named.filter_map(|name| {
        let since = dead_since(&directory, &name)?;
        // What a run was killed over while it replaced its journal. One that stays does no harm.
        let _ = directory.clear_drafts(&name, begins_as_record);
        Some((since, path.join(name)))
    });
    dead.collect()
}

/// When the last results were taken down; nothing if the run may still go on.
fn dead_since(directory: &Directory, name: &OsStr) -> Option<std::time::SystemTime> {
    let file = directory.file(name).ok()??;
    flock(&file, FlockOperation::NonBlockingLockShared).ok()?;
    let found = file.metadata().ok()?;
    // One without a name has just been replaced by its run.
    if found.nlink() == 0 { None } else { found.modified().ok() }
}

/// Whether nothing is in a file, or the beginning of a record.
pub(crate) fn begins_as_record(file: &File) -> bool {
    const BEGINNING: &[u8] = b"{\n  \"schema_version\":";
    let mut head = [0; BEGINNING.len()];
    let read = file.read_at(&mut head, 0);
    read.is_ok_and(|read| read == 0 || head == *BEGINNING)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_is_dead_when_nobody_holds_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(format!("a{ENDING}"));
        let first = put(&path, None, "first").unwrap();
        assert_eq!(dead_in(directory.path()), []);
        let second = put(&path, Some(&first), "second").unwrap();
        drop(first);
        assert_eq!(dead_in(directory.path()), [], "the one that replaced it is held");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "second");
        drop(second);
        let dead = dead_in(directory.path());
        assert_eq!(dead.iter().map(|(_, path)| path).collect::<Vec<_>>(), [&path]);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "no draft stays");
    }

    #[test]
    fn what_can_not_be_written_is_an_error_and_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(put(&file.join("gpuio").join("a"), None, "text").is_err());
        assert!(put(directory.path(), None, "a directory stands there").is_err());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn beside_the_output_if_there_is_one() {
        let journal = Journal::new(Some(Path::new("/results/r.json")));
        let path = journal.path.unwrap().unwrap().display().to_string();
        assert!(path.starts_with("/results/r.json.") && path.ends_with(ENDING), "{path}");
        let here = Journal::new(Some(Path::new("r.json"))).path.unwrap().unwrap();
        assert_eq!(here.parent(), Some(Path::new(".")));
    }
}
