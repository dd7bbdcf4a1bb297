//! Makes and extends the files of a data set.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use gpuio_record::GuardNote;
use rustix::fs::{FallocateFlags, OFlags, fallocate};

use super::failure::MakeError;
use super::fill::Filling;
use super::judge::{Verdict, Wanted};
use super::manifest::{self, Holds};
use super::{Identity, Progress, clean, space};

/// What a file is made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contents {
    /// The pattern, over the whole length. Always really written: a file that is only allocated is
    /// read without touching the storage.
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
    /// What was judged: `Make`, `Remake` or `ForeignOverwrite`.
    pub guard: GuardNote,
    /// The file that was judged; `None` where there was none.
    pub identity: Option<Identity>,
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
            guard: verdict.note,
            identity: verdict.identity,
        })
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

/// Makes the files one after another, each with up to four threads, and lists them as ours.
///
/// Room is checked before the first byte. Files that hold the right pattern and are too short are
/// extended. New files have mode 0644. Writes go past the page cache where the file system can,
/// and all data is on storage (fsync(2)) when this returns.
///
/// # Errors
/// [`MakeError`]. Whatever this call created is removed then; a file that was there before stays,
/// listed as ours and as holding no pattern. Raising `stop` ends it within one block per thread,
/// as [`MakeError::Stopped`].
pub fn make(
    tasks: &[Task],
    progress: &dyn Progress,
    stop: &AtomicBool,
) -> Result<Vec<Made>, MakeError> {
    space::check(tasks)?;
    let mut made = Vec::with_capacity(tasks.len());
    for task in tasks {
        if let Err(error) = one(task, progress, stop, &mut made) {
            // What cannot be removed either is named by the next run's judge; the first error is
            // the one to tell.
            let _ = clean::clean(&made, &[]);
            return Err(error);
        }
    }
    Ok(made)
}

/// Makes one file. It is in `made` as soon as it exists.
fn one(
    task: &Task,
    progress: &dyn Progress,
    stop: &AtomicBool,
    made: &mut Vec<Made>,
) -> Result<(), MakeError> {
    let holds = Holds { salt: task.salt, file_number: task.file_number };
    let (file, found) = open(task)?;
    let created = task.guard == GuardNote::Make;
    // Without a real path the file could not be listed; its directory was opened a moment ago.
    let real = task.path.canonicalize().unwrap_or_else(|_| task.path.clone());
    made.push(Made { path: real.clone(), identity: Identity::of(&found), created });
    let ours = task.guard != GuardNote::ForeignOverwrite;
    let start = if created {
        manifest::adopt(&real, holds)?;
        0
    } else if ours {
        let kept = reuse(task, &real, holds)?;
        manifest::begin(&[&real])?;
        kept
    } else {
        0
    };
    if task.contents == Contents::Nothing {
        drop(file);
        // Nothing is known about bytes that the load has not written yet.
        return Ok(manifest::settle(&[(&real, None)])?);
    }
    if found.is_file() {
        prepare(task, &file, start, ours)?;
    }
    let key = gpuio_gpu::pattern::file_key(task.salt, task.file_number);
    let path = &task.path;
    Filling { path, file: &file, key, start, end: task.length, progress, stop }.run()?;
    let fail = |call, source| MakeError::call(call, path, None, source, None);
    file.sync_all().map_err(|source| fail("fsync", source))?;
    // Pages that stay are told by the run's own look at the page cache.
    let _ = gpuio_host::residency::drop_cache(&file);
    drop(file);
    if ours {
        manifest::settle(&[(&real, Some(holds))])?;
    }
    Ok(())
}

/// Opens the file and makes sure that it is the one that was judged.
fn open(task: &Task) -> Result<(File, Metadata), MakeError> {
    let path = &task.path;
    let fail = |call, source| MakeError::call(call, path, None, source, None);
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o644);
    let mut flags = OFlags::NOFOLLOW;
    if task.guard == GuardNote::Make {
        options.create_new(true);
    } else if fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_block_device()) {
        // Fails with EBUSY while a file system or another driver holds the device (open(2)).
        flags |= OFlags::EXCL;
    }
    options.custom_flags(flags.bits().cast_signed());
    let file = options.open(path).map_err(|source| fail("open", source))?;
    let found = file.metadata().map_err(|source| fail("fstat", source))?;
    if task.guard != GuardNote::Make && task.identity != Some(Identity::of(&found)) {
        return Err(MakeError::Replaced { path: path.clone() });
    }
    Ok((file, found))
}

/// How many bytes of a file of ours need not be written again.
fn reuse(task: &Task, real: &Path, holds: Holds) -> Result<u64, MakeError> {
    let entry = manifest::find(real)?;
    let entry = entry.filter(|entry| Some(entry.identity()) == task.identity);
    let entry = entry.ok_or_else(|| MakeError::Replaced { path: task.path.clone() })?;
    Ok(if entry.holds(holds) { entry.size.min(task.length) } else { 0 })
}

/// Gives the file its length and, where the file system can, its place in one piece.
fn prepare(task: &Task, file: &File, start: u64, ours: bool) -> Result<(), MakeError> {
    let left = task.length - start;
    let fail = |call, source| MakeError::call(call, &task.path, Some(start), source, Some(left));
    if ours && start == 0 {
        file.set_len(0).map_err(|source| fail("ftruncate", source))?;
    }
    if left == 0 {
        return Ok(());
    }
    use rustix::io::Errno;
    match fallocate(file, FallocateFlags::empty(), start, left) {
        Ok(()) => Ok(()),
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::INTR) => {
            let now = file.metadata().map_err(|source| fail("fstat", source))?.len();
            let longer = now.max(task.length);
            file.set_len(longer).map_err(|source| fail("ftruncate", source))
        }
        Err(errno) => Err(fail("fallocate", errno.into())),
    }
}
