//! Makes and extends the files of a data set.

use std::fs::{DirBuilder, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use gpuio_guard::outfile::own_directory;
use gpuio_record::GuardNote;
use rustix::fs::{FallocateFlags, OFlags, fallocate};

use super::error::MakeError;
use super::fill::Filling;
use super::held::{Budget, DirEntry, Held};
use super::manifest::{self, Holds, Known, Take};
use super::ownership::{Verdict, Wanted};
use super::ranges::without;
use super::{Identity, Progress, clean, space};
use gpuio_base::pattern::{Salt, other_salt};

/// The contents that a file is made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contents {
    /// The pattern: over the whole length of a file of ours, over the task's parts of any other.
    /// Always really written: a file that is only allocated is read without touching the storage.
    Pattern,
    /// Nothing: the load itself will write. A new file has length 0, an old one is left alone.
    Nothing,
}

/// A file to be made, or to be filled.
#[derive(Debug, Clone)]
pub struct Task {
    /// Where, in words.
    pub path: PathBuf,
    /// Bytes that must be there.
    pub length: u64,
    pub salt: Salt,
    /// The file's number in the pattern.
    pub file_number: u64,
    pub contents: Contents,
    /// Whether nothing stays of a file of ours but the bytes of its pattern.
    pub anew: bool,
    /// The result of the check: `Make`, `Remake` or `ForeignOverwrite`.
    pub guard: GuardNote,
    /// The file that was checked; `None` where there was none.
    pub target: Option<Arc<Held>>,
    /// Where a new one is made.
    pub dir_entry: Option<DirEntry>,
    /// How many of the first bytes of a file of ours hold the pattern already.
    pub kept: u64,
    /// The bytes of a `ForeignOverwrite` that are filled. All others of it stay as they are.
    pub parts: Vec<Range<u64>>,
    /// Bytes that get `other_salt`'s contents and not the pattern, apart from each other.
    pub other: Vec<Range<u64>>,
    /// Bytes of a file of ours that are never written, in order and apart from each other.
    pub holes: Vec<Range<u64>>,
}

impl Task {
    /// The work that a verdict asks for; `None` where the target is used as it is.
    pub fn of(wanted: &Wanted, verdict: &Verdict) -> Option<Task> {
        let new = matches!(verdict.note, GuardNote::Make | GuardNote::Remake);
        (new || verdict.fill).then(|| Task {
            path: verdict.path.clone(),
            length: wanted.length,
            salt: wanted.salt,
            file_number: wanted.file_number,
            contents: if verdict.fill { Contents::Pattern } else { Contents::Nothing },
            anew: verdict.anew,
            guard: verdict.note,
            target: verdict.target.clone(),
            dir_entry: verdict.dir_entry.clone(),
            kept: verdict.kept,
            parts: foreign_part(wanted, verdict).into_iter().collect(),
            other: wanted.other.clone().filter(|_| verdict.fill).into_iter().collect(),
            holes: wanted.holes.clone(),
        })
    }

    /// Makes the file suit another job of the same group too.
    pub fn join(&mut self, other: Task) {
        self.length = self.length.max(other.length);
        self.anew |= other.anew;
        // A hole is one that both want.
        self.holes.retain(|hole| other.holes.contains(hole));
        if other.contents == Contents::Pattern {
            self.contents = Contents::Pattern;
        }
        let known = |part: &Range<u64>| {
            self.parts.iter().any(|held| held.start <= part.start && part.end <= held.end)
        };
        let more: Vec<_> = other.parts.into_iter().filter(|part| !known(part)).collect();
        self.parts.extend(more);
        for part in other.other {
            let more = without(&part, &self.other);
            self.other.extend(more);
        }
    }

    /// Bytes of pattern that are written at most.
    pub fn bytes(&self) -> u64 {
        match self.contents {
            Contents::Nothing => 0,
            Contents::Pattern if self.guard == GuardNote::ForeignOverwrite => {
                self.parts.iter().map(|part| part.end - part.start).sum()
            }
            Contents::Pattern => {
                let holes = self.holes.iter().map(|hole| hole.end.saturating_sub(hole.start));
                self.length.saturating_sub(holes.sum())
            }
        }
    }

    pub(super) fn ours(&self) -> bool {
        self.guard != GuardNote::ForeignOverwrite
    }

    pub(super) fn holds(&self) -> Holds {
        Holds { salt: self.salt, file_number: self.file_number }
    }
}

/// A file that was made or filled.
#[derive(Debug, Clone)]
pub struct Made {
    /// Its real path, links of its directories followed.
    pub path: PathBuf,
    pub identity: Identity,
    /// The file itself.
    pub target: Arc<Held>,
    /// Whether this call created it; only such files are ever removed.
    pub created: bool,
}

/// The bytes of another owner's file that a job needs filled: its own, and no more.
fn foreign_part(wanted: &Wanted, verdict: &Verdict) -> Option<Range<u64>> {
    let fills = verdict.note == GuardNote::ForeignOverwrite && verdict.fill;
    let part = verdict.fill_from..wanted.length;
    (fills && !part.is_empty()).then_some(part)
}

/// Makes a directory and those above it that are absent, mode 0755. Those that were absent before,
/// the outermost first.
///
/// # Errors
/// [`MakeError::Call`] with `mkdir`. Directories made until then stay.
pub fn make_directories(path: &Path) -> Result<Vec<PathBuf>, MakeError> {
    let absent = |path: &&Path| !path.as_os_str().is_empty() && !path.is_dir();
    let mut coming: Vec<&Path> = path.ancestors().take_while(absent).collect();
    coming.reverse();
    let mut made = Vec::new();
    for path in coming {
        match DirBuilder::new().mode(0o755).create(path) {
            Ok(()) => made.push(path.to_owned()),
            // Another process of the same run, such as a rank, was first.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
            Err(source) => return Err(MakeError::call("mkdir", path, None, source, None)),
        }
    }
    Ok(made)
}

/// Makes a directory whose name others can guess, where it is absent.
///
/// # Errors
/// [`MakeError::NotOwn`].
pub fn make_own_directory(path: &Path) -> Result<(), MakeError> {
    let not_own = |source| MakeError::NotOwn { path: path.to_owned(), source };
    own_directory(path).map(drop).map_err(not_own)
}

/// The list of our files is replaced, and synced, twice for so many files: once for each would
/// take time with the square of their number.
const CHUNK: usize = 64;

/// Makes the files one after another, each with up to four threads, and lists them as ours.
///
/// Room is checked before the first byte. Files that hold the right pattern and are too short are
/// extended. New files have mode 0644. Writes go past the page cache where the file system can,
/// and all data is on storage (fsync(2)) when this returns. Files are created and listed some
/// dozens at a time, all before the first byte of any of them; one is open for writing at a time,
/// and `budget` says how many stay held.
///
/// # Errors
/// [`MakeError`]. Whatever this call created is removed then; a file that was there before stays,
/// listed as ours and as holding no pattern unless it was done. Raising `stop` ends it within one
/// block per thread, as [`MakeError::Stopped`].
pub fn make(
    tasks: &[Task],
    progress: &dyn Progress,
    stop: &AtomicBool,
    budget: &Budget,
) -> Result<Vec<Made>, MakeError> {
    space::check(tasks)?;
    let mut made = Vec::with_capacity(tasks.len());
    for tasks in tasks.chunks(CHUNK) {
        if let Err(error) = chunk(tasks, progress, stop, budget, &mut made) {
            // A file that can't be removed either is named by the next run's check; the first error
            // is the one to tell.
            let _ = clean::clean(&made, &[]);
            return Err(error);
        }
    }
    Ok(made)
}

/// A file that is there and listed, to be filled.
struct Listed<'a> {
    task: &'a Task,
    target: Arc<Held>,
}

/// Makes some files. Each is in `made` as soon as it exists.
fn chunk(
    tasks: &[Task],
    progress: &dyn Progress,
    stop: &AtomicBool,
    budget: &Budget,
    made: &mut Vec<Made>,
) -> Result<(), MakeError> {
    let mut listed = Vec::with_capacity(tasks.len());
    for task in tasks {
        let created = task.guard == GuardNote::Make;
        let target = if created { create(task, budget)? } else { checked(task)? };
        let (path, identity) = (target.path().to_owned(), target.identity());
        made.push(Made { path, identity, target: Arc::clone(&target), created });
        listed.push(Listed { task, target });
    }
    let taken: Vec<(&Held, Take)> = listed.iter().filter_map(Listed::take).collect();
    manifest::take(&taken, None)?;
    let mut finalized = Vec::with_capacity(taken.len());
    let mut result = Ok(());
    for Listed { task, target } in listed.iter().take_while(|listed| {
        result = listed.fill(progress, stop);
        result.is_ok()
    }) {
        if task.ours() {
            // Nothing is known about bytes that the load has not written yet.
            let all = task.contents == Contents::Pattern && task.other.is_empty();
            let all = all && task.holes.is_empty();
            let known = all.then(|| Known::whole(task.holds()));
            finalized.push((Arc::clone(target), known));
        }
    }
    // Files that were done before another failed are ours with what they hold.
    let reported = manifest::finalize(&finalized).map_err(MakeError::from);
    result.and(reported)
}

impl Listed<'_> {
    fn take(&self) -> Option<(&Held, Take)> {
        let new = self.task.guard == GuardNote::Make;
        let how = if new { Take::New(self.task.holds()) } else { Take::Again };
        self.task.ours().then_some((self.target.as_ref(), how))
    }

    /// Writes what is missing.
    fn fill(&self, progress: &dyn Progress, stop: &AtomicBool) -> Result<(), MakeError> {
        let task = self.task;
        if task.contents == Contents::Nothing {
            return Ok(());
        }
        let kept = task.kept.min(task.length);
        let opened = self.target.file(OFlags::RDWR);
        let file = opened.map_err(|error| MakeError::reopen(&task.path, error))?;
        if task.ours() && task.anew && kept == 0 {
            let fail = |source| MakeError::call("ftruncate", &task.path, None, source, None);
            file.set_len(0).map_err(fail)?;
        }
        let key = |salt| gpuio_base::pattern::file_key(salt, task.file_number);
        let path = &task.path;
        let fill = |key, part: &Range<u64>| {
            let (start, end) = (part.start, part.end);
            Filling { path, file: &file, key, start, end, progress, stop }.run()
        };
        let all = without(&(kept..task.length), &task.holes);
        for part in if task.ours() { &all[..] } else { &task.parts[..] } {
            if self.target.stamp().kind.is_file() {
                allocate(task, &file, part)?;
            }
            for piece in without(part, &task.other) {
                fill(key(task.salt), &piece)?;
            }
        }
        for part in &task.other {
            fill(key(other_salt(task.salt)), part)?;
        }
        let fail = |call, source| MakeError::call(call, path, None, source, None);
        if task.ours() && task.holes.last().is_some_and(|hole| hole.end == task.length) {
            file.set_len(task.length).map_err(|source| fail("ftruncate", source))?;
        }
        file.sync_all().map_err(|source| fail("fsync", source))?;
        // Pages that stay are reported by the run's own look at the page cache.
        let _ = gpuio_host::residency::drop_cache(&file);
        Ok(())
    }
}

/// Creates the file, and holds it from here on.
pub(super) fn create(task: &Task, budget: &Budget) -> Result<Arc<Held>, MakeError> {
    let path = &task.path;
    let gone = || MakeError::call("open", path, None, io::ErrorKind::NotFound.into(), None);
    let dir_entry = task.dir_entry.as_ref().ok_or_else(gone)?;
    let held = dir_entry.create().map_err(|error| MakeError::reopen(path, error))?;
    Ok(budget.hold(held))
}

/// The file that was checked. Bytes appended to a foreign file since are nothing that a flag gave
/// away.
pub(super) fn checked(task: &Task) -> Result<Arc<Held>, MakeError> {
    let replaced = || MakeError::Replaced { path: task.path.clone() };
    let target = task.target.as_ref().ok_or_else(replaced)?;
    let now = target.look();
    let now = now.map_err(|source| MakeError::call("statx", &task.path, None, source, None))?;
    let moved =
        |dir_entry: &DirEntry| !dir_entry.stamp().is_ok_and(|named| named.is_same_file(&now));
    let grown = !task.ours() && now.kind.is_file() && now.size != target.stamp().size;
    let changed = grown || target.dir_entry().is_some_and(moved);
    if changed { Err(replaced()) } else { Ok(Arc::clone(target)) }
}

/// Makes the file as long as it must be and, where the file system can, gives it its place in one
/// piece. Bytes that are there stay.
pub(super) fn allocate(task: &Task, file: &File, part: &Range<u64>) -> Result<(), MakeError> {
    let left = part.end.saturating_sub(part.start);
    if left == 0 {
        return Ok(());
    }
    let start = Some(part.start);
    let fail = |call, source| MakeError::call(call, &task.path, start, source, Some(left));
    use rustix::io::Errno;
    match fallocate(file, FallocateFlags::empty(), part.start, left) {
        Ok(()) => Ok(()),
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::INTR) => {
            let now = file.metadata().map_err(|source| fail("fstat", source))?.len();
            file.set_len(now.max(part.end)).map_err(|source| fail("ftruncate", source))
        }
        Err(errno) => Err(fail("fallocate", errno.into())),
    }
}
