//! Results of an unfinished run on disk: NVIDIA's library can end the process, and so can the
//! kernel. A journal is a record that is rewritten after every group of jobs, outside the measured
//! time, a few times in a long group ([`Due`]), and removed when the results are saved.
//!
//! A lock on the file (flock(2)) shows whether its run is still active: the kernel releases it with
//! the process, however that ends, and process IDs of other containers can't mislead. A journal is
//! locked before it gets its name, so the named file of an active run is always locked.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use gpuio_base::units::ShellLine;
use gpuio_guard::objects::trust;
use gpuio_guard::outfile::{Directory, Draft, Identity, Place, make_place};
use gpuio_io::CATALOG;
use gpuio_record::{Plan, Record};
use rustix::fs::{FlockOperation, Mode, flock};

/// Suffix of the file name.
const ENDING: &str = ".gpuio-journal.json";
/// After this time, a run has results worth a line that says where they are.
const WORTH_TELLING: Duration = Duration::from_secs(10);

/// The journal of this process's run. It stays on disk unless [`Journal::remove`] is called.
pub(crate) struct Journal {
    /// The file, or why there can't be one; absent if none is wanted.
    path: Option<Result<PathBuf, String>>,
    began: Instant,
    state: Mutex<State>,
}

/// Whether storage has the bytes before it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sync {
    Yes,
    No,
}

#[derive(Debug, Default)]
struct State {
    /// Holds the lock.
    file: Option<File>,
    reported: bool,
    /// Groups that are finished in what was saved last.
    groups: usize,
}

/// From the start of a group until its results so far are saved for the first time. A run of the
/// default length saves none: its journal could be on the drive that it measures.
const FIRST: Duration = Duration::from_secs(10);
/// Files of a plan that is saved while it runs, at most: a plan has a line for each.
const MOST_FILES: usize = 4096;

/// When results of a running group are saved. Each time is twice as late as the one before, so that
/// an hour has nine, and at most half of what was measured is lost.
#[derive(Debug)]
pub(crate) struct Due {
    began: Instant,
    next: Duration,
}

impl Due {
    /// A group begins now.
    pub(crate) fn begin() -> Due {
        Due { began: Instant::now(), next: FIRST }
    }

    /// Whether they are due now. If so, the next time is set.
    pub(crate) fn is_now(&mut self) -> bool {
        self.is_after(self.began.elapsed())
    }

    /// Whether results of this group were saved, or are about to be.
    pub(crate) fn has_been(&self) -> bool {
        self.next > FIRST
    }

    fn is_after(&mut self, elapsed: Duration) -> bool {
        let is_due = elapsed >= self.next;
        if is_due {
            self.next = elapsed.max(FIRST) * 2;
        }
        is_due
    }
}

/// Whether a run of this plan has a journal: it has several groups, or uses cuFile, which can end
/// the process even while it is closed.
pub(crate) fn is_due(plan: &Plan) -> bool {
    let groups = plan.jobs.first().map(|job| job.group) != plan.jobs.last().map(|job| job.group);
    groups || plan.takes_cufile(&CATALOG)
}

impl Journal {
    /// Creates no file yet. The file will be next to `output` if the record goes to a file, which
    /// may be the only place that outlives a container; else in the user's state directory.
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

    /// For one of several ranks, which save theirs side by side, maybe in one directory.
    pub(crate) fn of_rank(output: Option<&Path>, rank: u32, host: &str) -> Journal {
        let mut journal = Journal::new(output);
        if let Some(Ok(path)) = &mut journal.path {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let own = name.strip_suffix(ENDING).unwrap_or(&name);
            // A host name has letters, digits, '-' and '.' only (hostname(7)); others may not.
            let host = host.replace('/', "_");
            path.set_file_name(format!("{own}-rank{rank}-{host}{ENDING}"));
        }
        journal
    }

    /// For a run that is repeated if it crashes.
    pub(crate) fn none() -> Journal {
        Journal { path: None, began: Instant::now(), state: Mutex::default() }
    }

    /// Replaces the previous content by `record`. Returns a line for the user, once, if results are
    /// at risk: a cuFile path runs next or later, or the run has taken a while.
    pub(crate) fn keep(&self, record: &Record) -> Option<String> {
        self.path.as_ref()?;
        let written = self.put(record, Sync::Yes);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let line = match written {
            Ok(path) => {
                let path = path.display();
                format!("note: results so far are saved in {path} until this run ends")
            }
            Err(why) => format!(
                "warning: results so far are not saved and are lost if the process crashes: \
                 {why}; use -o FILE to save them next to FILE"
            ),
        };
        let next = record.plan.jobs.get(record.jobs.len()..).unwrap_or_default();
        let at_stake = next.iter().any(|job| job.takes_cufile(&CATALOG))
            || self.began.elapsed() >= WORTH_TELLING;
        if state.reported || next.is_empty() || !at_stake {
            return None;
        }
        state.reported = true;
        Some(line)
    }

    /// Whether results of this plan are kept while a group runs.
    pub(crate) fn takes_running(&self, plan: &Plan) -> bool {
        let files: usize = plan.jobs.iter().map(|job| job.targets.len()).sum();
        self.path.is_some() && files <= MOST_FILES
    }

    /// Replaces the previous content by `record`; where it lies now.
    pub(crate) fn save(&self, record: &Record) -> Result<PathBuf, String> {
        self.put(record, Sync::Yes)
    }

    /// The same without waiting for storage, while a load runs: what is saved outlives the process,
    /// not the machine.
    pub(crate) fn save_running(&self, record: &Record) -> Result<PathBuf, String> {
        self.put(record, Sync::No)
    }

    fn put(&self, record: &Record, sync: Sync) -> Result<PathBuf, String> {
        let path = self.path.clone().unwrap_or_else(|| Err("no journal is kept".to_owned()))?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // One of a group that has ended since comes too late.
        if record.totals.len() < state.groups {
            return Ok(path);
        }
        let text = gpuio_report::format::json::render(record);
        let file = put(&path, state.file.as_ref(), &text, sync)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        state.file = Some(file);
        state.groups = record.totals.len();
        Ok(path)
    }

    /// Where results are, if any are kept.
    pub(crate) fn kept(&self) -> Option<&Path> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.path.as_ref()?.as_deref().ok().filter(|_| state.file.is_some())
    }

    /// Removes it: its results are saved elsewhere now.
    pub(crate) fn remove(self) {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let (Some(Ok(path)), Some(file)) = (&self.path, &state.file) {
            // A remaining one is reported at the next run, with its path.
            let _ = Directory::of(path)
                .and_then(|(directory, name)| directory.remove(&name, Identity::of(file)?));
        }
    }
}

/// Writes this text to a file, completely, to disk and locked, replacing `old`, which this process
/// wrote, or under a new name.
fn put(path: &Path, old: Option<&File>, text: &str, sync: Sync) -> std::io::Result<File> {
    let above = directory_of(path);
    // That of the output was made with it; that of this user's state is made here.
    let directory = match state_directory().is_ok_and(|state| state == above) {
        true => make_place(&above)?,
        false => Directory::open(&above)?,
    };
    let name = path.file_name().ok_or(std::io::ErrorKind::IsADirectory)?;
    let draft = Draft::begin(directory, name)?;
    match sync {
        Sync::Yes => draft.fill(text.as_bytes())?,
        Sync::No => draft.fill_unsynced(text.as_bytes())?,
    }
    draft.replace(old).map_err(|unnamed| unnamed.error)
}

fn directory_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

fn state_directory() -> Result<PathBuf, String> {
    let unset = "neither XDG_STATE_HOME nor HOME is set to an absolute path";
    Place::STATE.path().ok_or_else(|| unset.to_owned())
}

/// One line about crashed runs, if journals of this user, or of runs with this `output`, exist that
/// no run has reported yet. They are marked: none is reported twice.
pub(crate) fn report_crashed_runs(output: Option<&Path>) -> Option<String> {
    let state = state_directory().ok().filter(|state| trust::way(state).is_ok());
    let directories = [state, output.map(directory_of)];
    let mut found: Vec<(std::time::SystemTime, PathBuf)> =
        directories.iter().flatten().flat_map(|directory| crashed_runs_in(directory)).collect();
    found.sort();
    let (_, newest) = found.last()?;
    let others = match found.len() - 1 {
        0 => String::new(),
        more => format!(" (and {more} more there)"),
    };
    let show = ShellLine::new("gpuio show").file(newest);
    let remove = ShellLine::new("rm").files(found.iter().map(|(_, path)| path));
    Some(format!(
        "note: an earlier run crashed. To see its results until then: {show}{others}. To remove \
         what such runs left: {remove}. This is said once"
    ))
}

/// Journals of this user in a directory whose runs have ended and that were not reported, with the
/// time of their last results. Marks them as reported.
fn crashed_runs_in(path: &Path) -> Vec<(std::time::SystemTime, PathBuf)> {
    let Ok(directory) = Directory::open(path) else { return Vec::new() };
    let names = directory.names().unwrap_or_default().into_iter();
    let named = names.filter(|name| name.as_encoded_bytes().ends_with(ENDING.as_bytes()));
    let crashed = named.filter_map(|name| {
        let since = crashed_since(&directory, &name)?;
        // The draft of a run that was killed while it replaced its journal. A remaining draft does
        // no harm.
        let _ = directory.clear_drafts(&name, begins_as_record);
        Some((since, path.join(name)))
    });
    crashed.collect()
}

/// When the last results were saved; `None` if the run may still be active.
fn crashed_since(directory: &Directory, name: &OsStr) -> Option<std::time::SystemTime> {
    let mine = directory.mine(name).ok()??;
    flock(mine.file(), FlockOperation::NonBlockingLockShared).ok()?;
    let found = mine.file().metadata().ok()?;
    // A file without a name was just replaced by its run.
    if found.nlink() == 0 || is_reported(&found) {
        return None;
    }
    // One that can't be marked is reported again.
    let _ = mine.make_read_only();
    found.modified().ok()
}

/// A journal that a run has reported can't be written: nobody writes it any more.
fn is_reported(found: &std::fs::Metadata) -> bool {
    found.mode() & Mode::WUSR.bits() == 0
}

/// Whether a file is empty, or holds the beginning of a record.
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
    fn a_journal_without_a_lock_is_of_a_crashed_run() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(format!("a{ENDING}"));
        let first = put(&path, None, "first", Sync::Yes).unwrap();
        assert_eq!(crashed_runs_in(directory.path()), []);
        let second = put(&path, Some(&first), "second", Sync::Yes).unwrap();
        drop(first);
        assert_eq!(crashed_runs_in(directory.path()), [], "the one that replaced it is held");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "second");
        drop(second);
        let crashed = crashed_runs_in(directory.path());
        assert_eq!(crashed.iter().map(|(_, path)| path).collect::<Vec<_>>(), [&path]);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "no draft stays");
    }

    /// In a directory where others may write, one of them gives a third user's file the name of a
    /// journal, or gives a file of his own one that a shell would obey.
    #[test]
    fn files_of_others_are_no_journals_and_keep_their_mode() {
        use std::os::unix::fs::PermissionsExt;

        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o777;
        std::fs::write(at("shared"), "").unwrap();
        std::fs::set_permissions(at("shared"), PermissionsExt::from_mode(0o666)).unwrap();
        std::fs::hard_link(at("shared"), at("linked.gpuio-journal.json")).unwrap();
        if rustix::process::geteuid().is_root() {
            std::fs::write(at("theirs.gpuio-journal.json"), "").unwrap();
            let theirs = at("theirs.gpuio-journal.json");
            std::os::unix::fs::chown(theirs, Some(65534), None).unwrap();
        }
        assert_eq!(crashed_runs_in(dir.path()), []);
        assert_eq!(mode(&at("shared")), 0o666);
        let hostile = at("x'; touch PWNED; echo '.gpuio-journal.json");
        std::fs::write(&hostile, "").unwrap();
        let said = report_crashed_runs(Some(&at("r.json"))).unwrap();
        let quoted = gpuio_base::units::shell_word(&hostile.to_string_lossy()).into_owned();
        let lines = [format!("gpuio show {quoted}. To"), format!("rm {quoted}. This")];
        assert!(lines.iter().all(|line| said.contains(line)), "{said}");
        assert_eq!(mode(&hostile), 0o400);
    }

    #[test]
    fn a_long_group_is_saved_a_few_times() {
        let mut due = Due::begin();
        let saved: Vec<u64> =
            (0..3600).filter(|at| due.is_after(Duration::from_secs(*at))).collect();
        assert_eq!(saved, [10, 20, 40, 80, 160, 320, 640, 1280, 2560]);
    }

    #[test]
    fn what_can_not_be_written_is_an_error_and_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(put(&file.join("gpuio").join("a"), None, "text", Sync::Yes).is_err());
        assert!(put(directory.path(), None, "a directory stands there", Sync::Yes).is_err());
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
