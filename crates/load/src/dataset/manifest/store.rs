//! Reading and replacing one directory's list.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use gpuio_host::statx::Stamp;
use gpuio_host::target::Directory;
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, flock, openat, renameat, unlinkat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::{Entry, FILE_NAME, ManifestError};

/// Beside the list; held while it is changed.
const LOCK_NAME: &str = ".gpuio-files.lock";
/// The next list while it is written, under the lock.
const NEXT_NAME: &str = ".gpuio-files.next";
/// Names that are tried for it, where somebody else's file has the first.
const NEXT_TRIES: u32 = 100;
/// How every list of ours begins, and so a draft that a run left which died.
const BEGINNING: &[u8] = b"{\n  \"format\": ";
const FORMAT: u32 = 2;
/// Lists without times of birth and of the inode's change.
const OLD_FORMAT: u32 = 1;
/// Far beyond any data set; a list that is longer is not ours.
const MAX_BYTES: u64 = 64 << 20;
const LOCK_TRIES: u64 = 2000;
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// The list of one directory.
#[derive(Debug, Default)]
pub(super) struct List {
    pub(super) files: Vec<Entry>,
    /// Owner and mode of the list itself; `None` before it is first written.
    owner: Option<Owner>,
}

#[derive(Debug, Clone, Copy)]
struct Owner {
    uid: u32,
    mode: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document<Files> {
    /// Version of this file's form.
    format: u32,
    files: Files,
}

impl List {
    pub(super) fn entry(&self, name: &str) -> Option<&Entry> {
        self.files.iter().find(|entry| entry.name == name)
    }

    pub(super) fn entry_mut(&mut self, name: &str) -> Option<&mut Entry> {
        self.files.iter_mut().find(|entry| entry.name == name)
    }

    /// Whether what the list says of the file that was found may be believed.
    pub(super) fn may_vouch(&self, found: &Stamp) -> bool {
        found.kind.is_file() && self.owner.is_some_and(|owner| owner.may_vouch(found))
    }
}

impl Owner {
    /// Whether whoever could write the list could write the file too.
    fn may_vouch(self, found: &Stamp) -> bool {
        const GROUP_AND_OTHERS_WRITE: u32 = 0o022;
        let me = rustix::process::geteuid().as_raw();
        (self.uid == me || self.uid == found.uid)
            && self.mode & GROUP_AND_OTHERS_WRITE & !found.mode == 0
    }
}

/// Opens a file of ours beside the data, not through a link. `O_NONBLOCK`: opening a pipe of that
/// name must not wait for the other end.
fn open(dir: &Directory, name: &str, flags: OFlags) -> Result<File, Errno> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
    openat(dir, name, flags, mode).map(File::from)
}

/// Reads the list of a directory; `None` where there is none.
pub(super) fn read(dir: &Directory) -> Result<Option<List>, ManifestError> {
    let path = dir.path().join(FILE_NAME);
    let file = match open(dir, FILE_NAME, OFlags::RDONLY) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(call("open", &path, errno.into())),
    };
    let found = file.metadata().map_err(|source| call("fstat", &path, source))?;
    if !found.is_file() {
        return Err(rejected(&path, "it is not a regular file"));
    }
    let mut text = Vec::new();
    let read = file.take(MAX_BYTES + 1).read_to_end(&mut text);
    read.map_err(|source| call("read", &path, source))?;
    if text.len() as u64 > MAX_BYTES {
        return Err(rejected(&path, "it is longer than any list that gpuio writes"));
    }
    let files = parse(&path, &text)?;
    Ok(Some(List { files, owner: Some(Owner { uid: found.uid(), mode: found.mode() }) }))
}

fn parse(path: &Path, text: &[u8]) -> Result<Vec<Entry>, ManifestError> {
    let document: Document<Vec<Entry>> =
        serde_json::from_slice(text).map_err(|error| ManifestError::Malformed {
            path: path.to_owned(),
            line: error.line(),
            column: error.column(),
            what: error.to_string(),
        })?;
    if ![OLD_FORMAT, FORMAT].contains(&document.format) {
        let what = format!("its format is {}, this gpuio knows {FORMAT}", document.format);
        return Err(rejected(path, &what));
    }
    let mut names: Vec<&str> = document.files.iter().map(|entry| entry.name.as_str()).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(rejected(path, &format!("it lists {:?} twice", pair[0])));
    }
    let leads_away =
        |name: &&str| name.is_empty() || *name == "." || *name == ".." || name.contains('/');
    if let Some(name) = names.iter().copied().find(leads_away) {
        return Err(rejected(
            path,
            &format!("{name:?} is not the name of a file in this directory"),
        ));
    }
    Ok(document.files)
}

/// Reads, changes and replaces the list under its lock. An error of `act` leaves it as it was.
pub(super) fn change(
    dir: &Directory,
    act: impl FnOnce(&mut List) -> Result<(), ManifestError>,
) -> Result<(), ManifestError> {
    let lock = Lock::take(dir)?;
    let before = read(dir)?;
    let existed = before.is_some();
    let mut list = before.unwrap_or_default();
    let result = act(&mut list).and_then(|()| match (list.files.is_empty(), existed) {
        (false, _) => replace(dir, &list.files),
        (true, true) => unlinkat(dir, FILE_NAME, AtFlags::empty())
            .map_err(|errno| call("unlink", &dir.path().join(FILE_NAME), errno.into())),
        (true, false) => Ok(()),
    });
    if dir.stamp_of(OsStr::new(FILE_NAME)).is_err() {
        if is_our_draft(dir, NEXT_NAME) {
            // One that stays is taken away by the next change.
            let _ = unlinkat(dir, NEXT_NAME, AtFlags::empty());
        }
        lock.remove();
    }
    result
}

fn replace(dir: &Directory, files: &[Entry]) -> Result<(), ManifestError> {
    let (next, mut file) = draft(dir)?;
    let path = dir.path().join(&next);
    let fail = |name: &'static str| move |source| (name, source);
    let document = Document { format: FORMAT, files };
    let written = serde_json::to_vec_pretty(&document).map_err(io::Error::other);
    let renamed = written
        .map_err(fail("write"))
        .and_then(|mut text| {
            text.push(b'\n');
            file.write_all(&text).map_err(fail("write"))
        })
        .and_then(|()| file.sync_all().map_err(fail("fsync")))
        .and_then(|()| {
            renameat(dir, next.as_str(), dir, FILE_NAME).map_err(|errno| ("rename", errno.into()))
        });
    if let Err((name, source)) = renamed {
        // The error that matters is the first one.
        let _ = unlinkat(dir, next.as_str(), AtFlags::empty());
        return Err(call(name, &path, source));
    }
    sync_directory(dir)
}

/// A new file for the next list. One that a run left which died is taken away; a file of somebody
/// else's, which has the name and is no list of ours, stays where it is.
fn draft(dir: &Directory) -> Result<(String, File), ManifestError> {
    let mut taken = None;
    for number in 0..NEXT_TRIES {
        let name = match number {
            0 => NEXT_NAME.to_owned(),
            _ => format!("{NEXT_NAME}.{number}"),
        };
        if is_our_draft(dir, &name) {
            let removed = unlinkat(dir, name.as_str(), AtFlags::empty());
            removed.map_err(|errno| call("unlink", &dir.path().join(&name), errno.into()))?;
        }
        match open(dir, &name, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL) {
            Ok(file) => return Ok((name, file)),
            Err(Errno::EXIST) => taken = Some(name),
            Err(errno) => return Err(call("open", &dir.path().join(&name), errno.into())),
        }
    }
    let path = dir.path().join(taken.unwrap_or_default());
    Err(call("open", &path, Errno::EXIST.into()))
}

/// Whether this is a list that gpuio began to write: by its first bytes, and by its owner.
fn is_our_draft(dir: &Directory, name: &str) -> bool {
    let Ok(mut file) = open(dir, name, OFlags::RDONLY) else { return false };
    let ours = |found: std::fs::Metadata| {
        let me = rustix::process::geteuid().as_raw();
        found.is_file() && found.nlink() == 1 && found.uid() == me
    };
    let mut head = [0; BEGINNING.len()];
    file.metadata().is_ok_and(ours) && file.read_exact(&mut head).is_ok() && head == BEGINNING
}

/// Makes a new name durable. File systems that cannot sync a directory answer EINVAL.
fn sync_directory(dir: &Directory) -> Result<(), ManifestError> {
    let opened = open(dir, ".", OFlags::RDONLY | OFlags::DIRECTORY);
    match opened.map_err(io::Error::from).and_then(|dir| dir.sync_all()) {
        Err(error) if error.kind() != io::ErrorKind::InvalidInput => {
            Err(call("fsync", dir.path(), error))
        }
        _ => Ok(()),
    }
}

/// The lock file, held until dropped.
struct Lock<'a> {
    dir: &'a Directory,
    file: File,
}

impl Lock<'_> {
    fn take(dir: &Directory) -> Result<Lock<'_>, ManifestError> {
        let path = dir.path().join(LOCK_NAME);
        for _ in 0..LOCK_TRIES {
            if let Some(file) = try_lock(dir, &path)? {
                return Ok(Lock { dir, file });
            }
            std::thread::sleep(LOCK_PAUSE);
        }
        let waited = LOCK_PAUSE.saturating_mul(u32::try_from(LOCK_TRIES).unwrap_or(u32::MAX));
        Err(ManifestError::Busy { path, seconds: waited.as_secs() })
    }

    /// Removes the lock file while the lock is held: whoever waits for it notices and makes anew.
    /// Ours are empty; one with anything in it is somebody else's and stays.
    fn remove(self) {
        if self.file.metadata().is_ok_and(|found| found.len() == 0 && found.nlink() == 1) {
            // A lock file that stays is only clutter.
            let _ = unlinkat(self.dir, LOCK_NAME, AtFlags::empty());
        }
    }
}

/// One try; `None` when another has the lock, or removed the file while this one waited.
fn try_lock(dir: &Directory, path: &Path) -> Result<Option<File>, ManifestError> {
    let file = open(dir, LOCK_NAME, OFlags::RDWR | OFlags::CREATE)
        .map_err(|errno| call("open", path, errno.into()))?;
    let held = gpuio_host::statx::stamp(&file).map_err(|source| call("statx", path, source))?;
    if !held.kind.is_file() {
        return Err(rejected(path, "it is not a regular file, so it is no lock of ours"));
    }
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK | Errno::INTR) => return Ok(None),
        Err(errno) => return Err(call("flock", path, errno.into())),
    }
    let named = dir.stamp_of(OsStr::new(LOCK_NAME));
    Ok(named.is_ok_and(|named| named.is_same_file(&held)).then_some(file))
}

fn rejected(path: &Path, what: &str) -> ManifestError {
    ManifestError::Rejected { path: path.to_owned(), what: what.to_owned() }
}

fn call(call: &'static str, path: &Path, source: io::Error) -> ManifestError {
    let meaning = crate::dataset::failure::meaning(&source, path, None);
    ManifestError::Call { call, path: path.to_owned(), source, meaning }
}
