//! Makes and extends the files of a data set.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use gpuio_record::GuardNote;
use rustix::fs::{FallocateFlags, OFlags, fallocate};

use super::failure::MakeError;
use super::fill::Filling;
use super::judge::{Verdict, Wanted};
use super::manifest::{self, Holds, Lists, Take};
use super::{Identity, Progress, clean, space};
use crate::plan::read_back::other_salt;

/// What a file is made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contents {
    /// The pattern: over the whole length of a file of ours, over the task's parts of any other.
    /// Always really written: a file that is only allocated is read without touching the storage.
    Pattern,
    /// What the load will write. A new file has length 0, an old one is left alone.
    Nothing,
}

/// A file to be made, or to be filled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Where. Not a link.
    pub path: PathBuf,
    /// Bytes that must be there.
    pub length: u64,
    /// Salt of the pattern.
    pub salt: u64,
    /// The file's number in the pattern.
    pub file_number: u64,
    /// What it is made with.
    pub contents: Contents,
    /// Whether nothing stays of a file of ours but the bytes of its pattern.
    pub anew: bool,
    /// What was judged: `Make`, `Remake` or `ForeignOverwrite`.
    pub guard: GuardNote,
    /// The file that was judged; `None` where there was none.
    pub identity: Option<Identity>,
    /// Its size in bytes then; `None` for a device that does not say.
    pub size_bytes: Option<u64>,
    /// The bytes of a `ForeignOverwrite` that are filled. All others of it stay as they are.
    pub parts: Vec<Range<u64>>,
    /// Bytes that get [`other_salt`]'s contents and not the pattern, apart from each other.
    pub other: Vec<Range<u64>>,
}

impl Task {
    /// The work that a verdict asks for; `None` where the target is used as it is.
    #[must_use]
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
            identity: verdict.identity,
            size_bytes: verdict.size_bytes,
            parts: foreign_part(wanted, verdict).into_iter().collect(),
            other: wanted.other.clone().filter(|_| verdict.fill).into_iter().collect(),
        })
    }

    /// Makes the file suit another job of the same group too.
    pub fn join(&mut self, other: Task) {
        self.length = self.length.max(other.length);
        self.anew |= other.anew;
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
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match self.contents {
            Contents::Nothing => 0,
            Contents::Pattern if self.guard == GuardNote::ForeignOverwrite => {
                self.parts.iter().map(|part| part.end - part.start).sum()
            }
            Contents::Pattern => self.length,
        }
    }

    fn ours(&self) -> bool {
        self.guard != GuardNote::ForeignOverwrite
    }

    fn holds(&self) -> Holds {
        Holds { salt: self.salt, file_number: self.file_number }
    }
}

/// A file that was made or filled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// Its real path, links of its directories followed.
    pub path: PathBuf,
    /// Which file it is.
    pub identity: Identity,
    /// Whether this call created it; only such files are ever removed.
    pub created: bool,
}

/// What is left of `part` without `others`, in order.
fn without(part: &Range<u64>, others: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut left = vec![part.clone()];
    for other in others {
        let cut = |piece: Range<u64>| {
            let before = piece.start..other.start.clamp(piece.start, piece.end);
            let behind = other.end.clamp(piece.start, piece.end)..piece.end;
            // What does not meet is kept once.
            let meets = other.start < piece.end && piece.start < other.end;
            if meets { vec![before, behind] } else { vec![piece] }
        };
        left = left.into_iter().flat_map(cut).filter(|piece| !piece.is_empty()).collect();
    }
    left
}

/// The bytes of somebody else's file that a job needs filled: its own, and no more.
fn foreign_part(wanted: &Wanted, verdict: &Verdict) -> Option<Range<u64>> {
    let fills = verdict.note == GuardNote::ForeignOverwrite && verdict.fill;
    let part = verdict.fill_from..wanted.length;
    (fills && !part.is_empty()).then_some(part)
}

/// Makes one directory, mode 0755, whose parent exists. Whether it was absent before.
///
/// # Errors
/// [`MakeError::Call`] with `mkdir`.
pub fn make_directory(path: &Path) -> Result<bool, MakeError> {
    match DirBuilder::new().mode(0o755).create(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(false),
        Err(source) => Err(MakeError::call("mkdir", path, None, source, None)),
    }
}

/// The list of our files is replaced, and synced, twice for so many files: once for each would
/// take time with the square of their number.
const CHUNK: usize = 64;

/// Makes the files one after another, each with up to four threads, and lists them as ours.
///
/// Room is checked before the first byte. Files that hold the right pattern and are too short are
/// extended. New files have mode 0644. Writes go past the page cache where the file system can,
/// and all data is on storage (fsync(2)) when this returns. Files are created and listed some
/// dozens at a time, all before the first byte of any of them, and one is open at a time.
///
/// # Errors
/// [`MakeError`]. Whatever this call created is removed then; a file that was there before stays,
/// listed as ours and as holding no pattern unless it was done. Raising `stop` ends it within one
/// block per thread, as [`MakeError::Stopped`].
pub fn make(
    tasks: &[Task],
    progress: &dyn Progress,
    stop: &AtomicBool,
) -> Result<Vec<Made>, MakeError> {
    space::check(tasks)?;
    let mut made = Vec::with_capacity(tasks.len());
    for tasks in tasks.chunks(CHUNK) {
        if let Err(error) = chunk(tasks, progress, stop, &mut made) {
            // What cannot be removed either is named by the next run's judge; the first error is
            // the one to tell.
            let _ = clean::clean(&made, &[]);
            return Err(error);
        }
    }
    Ok(made)
}

/// A file that is there and listed, to be filled.
struct Listed<'a> {
    task: &'a Task,
    identity: Identity,
    real: PathBuf,
    /// How many of its bytes hold the pattern already.
    kept: u64,
}

/// Makes some files. Each is in `made` as soon as it exists.
fn chunk(
    tasks: &[Task],
    progress: &dyn Progress,
    stop: &AtomicBool,
    made: &mut Vec<Made>,
) -> Result<(), MakeError> {
    let mut lists = Lists::default();
    let mut listed = Vec::with_capacity(tasks.len());
    for task in tasks {
        let created = task.guard == GuardNote::Make;
        let identity = Identity::of(&open(task, task.identity)?.1);
        // Without a real path the file could not be listed; it was opened a moment ago.
        let real = task.path.canonicalize().unwrap_or_else(|_| task.path.clone());
        made.push(Made { path: real.clone(), identity, created });
        let known = task.ours() && !created;
        let kept = if known { reuse(task, &mut lists, &real)? } else { 0 };
        listed.push(Listed { task, identity, real, kept });
    }
    let taken: Vec<(PathBuf, Take)> = listed.iter().filter_map(Listed::take).collect();
    manifest::take(&taken)?;
    let mut settled = Vec::with_capacity(taken.len());
    let mut result = Ok(());
    for Listed { task, real, .. } in listed.iter().take_while(|listed| {
        result = listed.fill(progress, stop);
        result.is_ok()
    }) {
        if task.ours() {
            // Nothing is known about bytes that the load has not written yet.
            let all = task.contents == Contents::Pattern && task.other.is_empty();
            let holds = all.then(|| task.holds());
            settled.push((real, holds));
        }
    }
    // Files that were done before another failed are ours with what they hold.
    let told = manifest::settle(&settled).map_err(MakeError::from);
    result.and(told)
}

impl Listed<'_> {
    fn take(&self) -> Option<(PathBuf, Take)> {
        let new = self.task.guard == GuardNote::Make;
        let how = if new { Take::New(self.task.holds()) } else { Take::Again };
        self.task.ours().then(|| (self.real.clone(), how))
    }

    /// Writes what is missing.
    fn fill(&self, progress: &dyn Progress, stop: &AtomicBool) -> Result<(), MakeError> {
        let Listed { task, kept, .. } = *self;
        if task.contents == Contents::Nothing {
            return Ok(());
        }
        let (file, found) = open(task, Some(self.identity))?;
        if task.ours() && task.anew && kept == 0 {
            let fail = |source| MakeError::call("ftruncate", &task.path, None, source, None);
            file.set_len(0).map_err(fail)?;
        }
        let key = |salt| gpuio_gpu::pattern::file_key(salt, task.file_number);
        let path = &task.path;
        let fill = |key, part: &Range<u64>| {
            let (start, end) = (part.start, part.end);
            Filling { path, file: &file, key, start, end, progress, stop }.run()
        };
        let all = kept..task.length;
        for part in if task.ours() { std::slice::from_ref(&all) } else { &task.parts[..] } {
            if found.is_file() {
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
        file.sync_all().map_err(|source| fail("fsync", source))?;
        // Pages that stay are told by the run's own look at the page cache.
        let _ = gpuio_host::residency::drop_cache(&file);
        Ok(())
    }
}

/// Opens the file and makes sure that it is the one that is `known`; creates it where none is.
fn open(task: &Task, known: Option<Identity>) -> Result<(File, Metadata), MakeError> {
    let path = &task.path;
    let fail = |call, source| MakeError::call(call, path, None, source, None);
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o644);
    let mut flags = OFlags::NOFOLLOW;
    let creates = task.guard == GuardNote::Make && known.is_none();
    if creates {
        options.create_new(true);
    } else if fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_block_device()) {
        // Fails with EBUSY while a file system or another driver holds the device (open(2)).
        flags |= OFlags::EXCL;
    }
    options.custom_flags(flags.bits().cast_signed());
    let file = options.open(path).map_err(|source| fail("open", source))?;
    let found = file.metadata().map_err(|source| fail("fstat", source))?;
    // What has been appended to a foreign file since is nothing that a flag gave away.
    let changed = !task.ours() && found.is_file() && task.size_bytes != Some(found.len());
    if !creates && (known != Some(Identity::of(&found)) || changed) {
        return Err(MakeError::Replaced { path: path.clone() });
    }
    Ok((file, found))
}

/// How many bytes of a file of ours need not be written again.
fn reuse(task: &Task, lists: &mut Lists, real: &Path) -> Result<u64, MakeError> {
    let entry = lists.find(real)?;
    let entry = entry.filter(|entry| Some(entry.identity()) == task.identity);
    let entry = entry.ok_or_else(|| MakeError::Replaced { path: task.path.clone() })?;
    Ok(if entry.holds(task.holds()) { entry.size.min(task.length) } else { 0 })
}

/// Makes the file as long as it must be and, where the file system can, gives it its place in one
/// piece. Bytes that are there stay.
fn allocate(task: &Task, file: &File, part: &Range<u64>) -> Result<(), MakeError> {
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
