//! How gpuio knows its own files.
//!
//! Each directory with such files has a `.gpuio-files.json`. A file is ours if its name, device
//! and inode are listed there and its size and time of last change are those that were listed; or
//! if it was listed as in use, which is what a run that crashed leaves behind. A file that someone
//! replaced or changed is not ours any more.
//!
//! The list is believed only where it could not have been written by somebody who may not write
//! the file itself: its owner must be the file's owner or this process's user. It is replaced as a
//! whole (rename(2)) under flock(2) of a lock file beside it, so readers need no lock. A list that
//! is malformed is never overwritten.
//!
//! Device numbers of network and some local file systems change when they are mounted anew. Files
//! on them are then not ours, which costs a `--overwrite` and no data.

mod store;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::Identity;
use store::List;

/// The name of the list in each directory.
pub const FILE_NAME: &str = ".gpuio-files.json";

/// One file of ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Name within the directory.
    pub name: String,
    /// Device, `st_dev` of stat(2).
    pub dev: u64,
    /// Inode number.
    pub ino: u64,
    /// Size in bytes when it was last settled.
    pub size: u64,
    /// Time of last change then, nanoseconds since 1970-01-01 UTC.
    pub mtime_ns: i64,
    /// Salt of the pattern.
    pub salt: u64,
    /// The file's number in the pattern.
    pub file_number: u64,
    /// Whether all of its bytes are that pattern.
    pub pattern: bool,
    /// Whether a run is writing it now, or crashed while it did.
    pub in_use: bool,
}

impl Entry {
    /// The file that the entry is about.
    #[must_use]
    pub fn identity(&self) -> Identity {
        Identity { dev: self.dev, ino: self.ino }
    }

    /// Whether the whole file is known to hold this pattern.
    #[must_use]
    pub fn holds(&self, pattern: Holds) -> bool {
        let Holds { salt, file_number } = pattern;
        self.pattern && !self.in_use && self.salt == salt && self.file_number == file_number
    }
}

/// The pattern that a file holds, from its first byte to its last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holds {
    /// Salt of the data set.
    pub salt: u64,
    /// The file's number in it.
    pub file_number: u64,
}

/// The list of a directory cannot be used.
#[derive(Debug, Error)]
pub enum ManifestError {
    /// Not the JSON that gpuio writes.
    #[error(
        "{}: line {line}, column {column}: {what}; gpuio cannot tell which files here are its own \
         and touches none; if they may all go, remove this file and pass --overwrite",
        path.display()
    )]
    Malformed {
        /// The list.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What is wrong.
        what: String,
    },
    /// JSON, but nothing that gpuio writes.
    #[error(
        "{}: {what}; gpuio cannot tell which files here are its own and touches none; \
         if they may all go, remove this file and pass --overwrite",
        path.display()
    )]
    Rejected {
        /// The list.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// A system call failed.
    #[error("{}: {call}: {source}; {meaning}", path.display())]
    Call {
        /// The system call.
        call: &'static str,
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
        /// What that means and what to do.
        meaning: String,
    },
    /// Another process keeps the lock.
    #[error(
        "{}: another gpuio has held this lock for {seconds} s; wait for it, or end it if it hangs",
        path.display()
    )]
    Busy {
        /// The lock file.
        path: PathBuf,
        /// How long was waited.
        seconds: u64,
    },
    /// A file that was ours is not any more.
    #[error(
        "{}: replaced or changed since it was checked; nothing was written to it; run again",
        path.display()
    )]
    NotOurs {
        /// The file.
        path: PathBuf,
    },
    /// A name that the list cannot hold.
    #[error(
        "{}: the name is not UTF-8, so gpuio could not list it as its own; use another name",
        path.display()
    )]
    Name {
        /// The file.
        path: PathBuf,
    },
}

/// Lists that were read, so that a look at many files of a directory reads its list once. They
/// say what was true when they were read: [`begin`] looks again, under the lock.
#[derive(Debug, Default)]
pub struct Lists(BTreeMap<PathBuf, Option<List>>);

impl Lists {
    /// The list of a real directory. Errors are not kept: the next look tells them again.
    fn of(&mut self, dir: &Path) -> Result<Option<&List>, ManifestError> {
        if !self.0.contains_key(dir) {
            self.0.insert(dir.to_owned(), store::read(dir)?);
        }
        Ok(self.0.get(dir).and_then(Option::as_ref))
    }

    /// As [`find`].
    ///
    /// # Errors
    /// As for [`find`].
    pub fn find(&mut self, path: &Path) -> Result<Option<Entry>, ManifestError> {
        let Ok(real) = path.canonicalize() else {
            return Ok(None);
        };
        let name = real.file_name().and_then(|name| name.to_str());
        let (Some(dir), Some(name)) = (real.parent(), name) else {
            return Ok(None);
        };
        let Some(list) = self.of(dir)? else {
            return Ok(None);
        };
        let Ok(found) = fs::symlink_metadata(&real) else {
            return Ok(None);
        };
        Ok(list.entry(name).filter(|entry| list.vouches(entry, &found)).cloned())
    }

    /// As [`check`].
    ///
    /// # Errors
    /// As for [`find`].
    pub fn check(&mut self, path: &Path) -> Result<(), ManifestError> {
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
        self.of(dir.unwrap_or(Path::new("."))).map(|_| ())
    }
}

/// The entry of a file that is ours; `None` for everybody else's and for no file. Links are
/// followed: what counts is the file at their end and the list beside it.
///
/// # Errors
/// [`ManifestError`] when the list is there and cannot be used: no file is known to be ours then.
pub fn find(path: &Path) -> Result<Option<Entry>, ManifestError> {
    Lists::default().find(path)
}

/// Whether the list beside `path`, which need not exist, can be used.
///
/// # Errors
/// As for [`find`].
pub fn check(path: &Path) -> Result<(), ManifestError> {
    Lists::default().check(path)
}

/// Marks files of ours as in use, before their first write. From here until [`settle`] they stay
/// ours whatever their time of change, and hold no pattern that anyone may rely on.
///
/// # Errors
/// [`ManifestError::NotOurs`] when a file is not ours, and the list's own errors. Files of other
/// directories may be marked then, which does no harm.
pub fn begin<P: AsRef<Path>>(files: &[P]) -> Result<(), ManifestError> {
    let files: Vec<_> = files.iter().map(|file| (file.as_ref(), Take::Again)).collect();
    take(&files)
}

/// Lists size and time of change anew after the last write, with the pattern that the whole file
/// holds, if it does. Call it after the file's last descriptor was closed.
///
/// # Errors
/// [`ManifestError::NotOurs`] when another file has taken the name, and the list's own errors.
pub fn settle<P: AsRef<Path>>(files: &[(P, Option<Holds>)]) -> Result<(), ManifestError> {
    let files = files.iter().map(|(file, holds)| (file.as_ref(), *holds));
    each_directory(files, |list, real, name, holds| {
        let found = look(real)?;
        let same = |entry: &&mut Entry| entry.identity() == Identity::of(&found);
        let entry = list.entry_mut(name).filter(same);
        let entry = entry.ok_or_else(|| ManifestError::NotOurs { path: real.to_owned() })?;
        entry.size = found.size();
        entry.mtime_ns = mtime_ns(&found);
        entry.in_use = false;
        entry.pattern = holds.is_some();
        if let Some(Holds { salt, file_number }) = holds {
            (entry.salt, entry.file_number) = (salt, file_number);
        }
        Ok(())
    })
}

/// How a file comes to be one that this process writes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Take {
    /// It has just been created; it is listed with the pattern that it will hold.
    New(Holds),
    /// It is ours already.
    Again,
}

/// Lists files as in use before their first write, with one change of each directory's list.
///
/// # Errors
/// As for [`begin`].
pub(super) fn take<P: AsRef<Path>>(files: &[(P, Take)]) -> Result<(), ManifestError> {
    let files = files.iter().map(|(file, how)| (file.as_ref(), *how));
    each_directory(files, |list, real, name, how| match how {
        Take::New(holds) => add(list, real, name, holds),
        Take::Again => mark(list, real, name),
    })
}

fn add(list: &mut List, real: &Path, name: &str, holds: Holds) -> Result<(), ManifestError> {
    let found = look(real)?;
    list.files.retain(|entry| entry.name != name);
    list.files.push(Entry {
        name: name.to_owned(),
        dev: found.dev(),
        ino: found.ino(),
        size: found.size(),
        mtime_ns: mtime_ns(&found),
        salt: holds.salt,
        file_number: holds.file_number,
        pattern: false,
        in_use: true,
    });
    Ok(())
}

fn mark(list: &mut List, real: &Path, name: &str) -> Result<(), ManifestError> {
    let found = look(real)?;
    let ours = list.entry(name).is_some_and(|entry| list.vouches(entry, &found));
    let entry = list.entry_mut(name).filter(|_| ours);
    let entry = entry.ok_or_else(|| ManifestError::NotOurs { path: real.to_owned() })?;
    entry.in_use = true;
    entry.pattern = false;
    Ok(())
}

/// Takes files off the list. Their names must be under real directories: the files themselves may
/// be gone. An empty list is removed.
pub(super) fn forget(files: &[(&Path, Identity)]) -> Result<(), ManifestError> {
    let mut directories: BTreeMap<&Path, Vec<_>> = BTreeMap::new();
    for (path, identity) in files {
        if let (Some(dir), Some(name)) = (path.parent(), path.file_name().and_then(|n| n.to_str()))
        {
            directories.entry(dir).or_default().push((name, *identity));
        }
    }
    for (dir, gone) in directories {
        store::change(dir, |list| {
            list.files.retain(|entry| {
                !gone.iter().any(|(name, id)| entry.name == *name && entry.identity() == *id)
            });
            Ok(())
        })?;
    }
    Ok(())
}

/// Applies `act` to each file, with one locked change for each directory.
fn each_directory<'a, T: Copy>(
    files: impl IntoIterator<Item = (&'a Path, T)>,
    act: impl Fn(&mut List, &Path, &str, T) -> Result<(), ManifestError>,
) -> Result<(), ManifestError> {
    let mut directories: BTreeMap<PathBuf, Vec<(PathBuf, T)>> = BTreeMap::new();
    for (path, with) in files {
        let real = path.canonicalize().map_err(|source| ManifestError::Call {
            call: "realpath",
            path: path.to_owned(),
            source,
            meaning: "the file was there and is gone; run again".to_owned(),
        })?;
        let dir = real.parent().unwrap_or(Path::new("/")).to_owned();
        directories.entry(dir).or_default().push((real, with));
    }
    for (dir, files) in directories {
        store::change(&dir, |list| {
            for (real, with) in &files {
                let name = real.file_name().and_then(|name| name.to_str());
                let name = name.ok_or_else(|| ManifestError::Name { path: real.clone() })?;
                act(list, real, name, *with)?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn look(path: &Path) -> Result<fs::Metadata, ManifestError> {
    fs::symlink_metadata(path).map_err(|source| ManifestError::Call {
        call: "lstat",
        path: path.to_owned(),
        source,
        meaning: "the file was there and is gone; run again".to_owned(),
    })
}

fn mtime_ns(found: &fs::Metadata) -> i64 {
    found.mtime().saturating_mul(1_000_000_000).saturating_add(found.mtime_nsec())
}
