//! Reading and replacing one directory's list.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags, flock};
use serde::{Deserialize, Serialize};

use super::{Entry, FILE_NAME, ManifestError, mtime_ns};
use crate::dataset::Identity;

/// Beside the list; held while it is changed.
const LOCK_NAME: &str = ".gpuio-files.lock";
/// The next list while it is written, under the lock.
const NEXT_NAME: &str = ".gpuio-files.next";
const FORMAT: u32 = 1;
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

    /// Whether the entry is about the file that was found, unchanged, and may be believed.
    pub(super) fn vouches(&self, entry: &Entry, found: &Metadata) -> bool {
        let unchanged = entry.size == found.size() && entry.mtime_ns == mtime_ns(found);
        found.is_file()
            && entry.identity() == Identity::of(found)
            && (entry.in_use || unchanged)
            && self.owner.is_some_and(|owner| owner.may_vouch(found))
    }
}

impl Owner {
    /// Whether whoever could write the list could write the file too.
    fn may_vouch(self, found: &Metadata) -> bool {
        const GROUP_AND_OTHERS_WRITE: u32 = 0o022;
        let me = rustix::process::geteuid().as_raw();
        (self.uid == me || self.uid == found.uid())
            && self.mode & GROUP_AND_OTHERS_WRITE & !found.mode() == 0
    }
}

/// Reads the list of a directory; `None` where there is none.
pub(super) fn read(dir: &Path) -> Result<Option<List>, ManifestError> {
    let path = dir.join(FILE_NAME);
    // O_NONBLOCK: opening a pipe of that name must not wait for a writer.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(&path) {
        Ok(file) => file,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(source) => return Err(call("open", &path, source)),
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
    if document.format != FORMAT {
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
    dir: &Path,
    act: impl FnOnce(&mut List) -> Result<(), ManifestError>,
) -> Result<(), ManifestError> {
    let lock = Lock::take(dir)?;
    let before = read(dir)?;
    let existed = before.is_some();
    let mut list = before.unwrap_or_default();
    let result = act(&mut list).and_then(|()| match (list.files.is_empty(), existed) {
        (false, _) => replace(dir, &list.files),
        (true, true) => {
            let path = dir.join(FILE_NAME);
            fs::remove_file(&path).map_err(|source| call("unlink", &path, source))
        }
        (true, false) => Ok(()),
    });
    if !dir.join(FILE_NAME).exists() {
        lock.remove();
    }
    result
}

fn replace(dir: &Path, files: &[Entry]) -> Result<(), ManifestError> {
    let (path, next) = (dir.join(FILE_NAME), dir.join(NEXT_NAME));
    let fail = |name: &'static str| {
        let next = next.clone();
        move |source| call(name, &next, source)
    };
    match fs::remove_file(&next) {
        Ok(()) => {}
        Err(error) if is_absent(&error) => {}
        Err(source) => return Err(call("unlink", &next, source)),
    }
    let document = Document { format: FORMAT, files };
    let mut text = serde_json::to_vec_pretty(&document)
        .map_err(|error| fail("write")(io::Error::other(error)))?;
    text.push(b'\n');
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o644)
        .open(&next)
        .map_err(fail("open"))?;
    let written = file.write_all(&text).map_err(fail("write"));
    let renamed = written
        .and_then(|()| file.sync_all().map_err(fail("fsync")))
        .and_then(|()| fs::rename(&next, &path).map_err(fail("rename")));
    if let Err(error) = renamed {
        // The error that matters is the first one.
        let _ = fs::remove_file(&next);
        return Err(error);
    }
    sync_directory(dir)
}

/// Makes a new name durable. File systems that cannot sync a directory answer EINVAL.
fn sync_directory(dir: &Path) -> Result<(), ManifestError> {
    match File::open(dir).and_then(|dir| dir.sync_all()) {
        Err(error) if error.kind() != io::ErrorKind::InvalidInput => Err(call("fsync", dir, error)),
        _ => Ok(()),
    }
}

/// The lock file, held until dropped.
struct Lock {
    path: PathBuf,
    _file: File,
}

impl Lock {
    fn take(dir: &Path) -> Result<Lock, ManifestError> {
        let path = dir.join(LOCK_NAME);
        for _ in 0..LOCK_TRIES {
            if let Some(file) = try_lock(&path)? {
                return Ok(Lock { path, _file: file });
            }
            std::thread::sleep(LOCK_PAUSE);
        }
        let waited = LOCK_PAUSE.saturating_mul(u32::try_from(LOCK_TRIES).unwrap_or(u32::MAX));
        Err(ManifestError::Busy { path, seconds: waited.as_secs() })
    }

    /// Removes the lock file while the lock is held: whoever waits for it notices and makes anew.
    fn remove(self) {
        // A lock file that stays is only clutter.
        let _ = fs::remove_file(&self.path);
    }
}

/// One try; `None` when another has the lock, or removed the file while this one waited.
fn try_lock(path: &Path) -> Result<Option<File>, ManifestError> {
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o644)
        .custom_flags(flags)
        .open(path)
        .map_err(|source| call("open", path, source))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => return Ok(None),
        Err(errno) => return Err(call("flock", path, errno.into())),
    }
    let held = file.metadata().map_err(|source| call("fstat", path, source))?;
    let named = fs::symlink_metadata(path).ok();
    let same = named.is_some_and(|named| Identity::of(&named) == Identity::of(&held));
    Ok(same.then_some(file))
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn rejected(path: &Path, what: &str) -> ManifestError {
    ManifestError::Rejected { path: path.to_owned(), what: what.to_owned() }
}

fn call(call: &'static str, path: &Path, source: io::Error) -> ManifestError {
    let meaning = crate::dataset::failure::meaning(&source, path, None);
    ManifestError::Call { call, path: path.to_owned(), source, meaning }
}
