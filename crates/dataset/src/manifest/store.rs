//! Reading and replacing one directory's list.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use gpuio_guard::outfile::{Directory as ListDirectory, Draft, Identity, Removed};
use gpuio_host::statx::Stamp;
use gpuio_host::target::Directory;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, openat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::{Entry, FILE_NAME, ManifestError};

/// In the directory of the list; held while it is changed.
pub(super) const LOCK_NAME: &str = ".gpuio-files.lock";
const FORMAT: u32 = 4;
/// Lists without files of which parts hold the pattern; those that have none are still written so.
const FORMAT_WITHOUT_PARTS: u32 = 3;
/// The same without a run of several processes.
const FORMAT_OF_ONE: u32 = 2;
/// Lists without times of birth and of the inode's change.
const OLD_FORMAT: u32 = 1;
/// Far beyond any data set; a list that is longer is not ours.
const MAX_BYTES: u64 = 64 << 20;
const LOCK_TRIES: u64 = 2000;
const LOCK_PAUSE: Duration = Duration::from_millis(5);

#[derive(Debug, Default)]
pub(super) struct List {
    pub(super) files: Vec<Entry>,
    /// The list itself, and its owner and mode; `None` before it is first written.
    file: Option<(File, Owner)>,
}

#[derive(Debug, Clone, Copy)]
struct Owner {
    uid: u32,
    mode: u32,
    /// Device that the list is on, as this host numbers it.
    dev: u64,
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

    /// Device that it is on now; `None` before it is first written.
    pub(super) fn dev(&self) -> Option<u64> {
        self.file.as_ref().map(|(_, owner)| owner.dev)
    }

    /// Whether what the list says of the file that was found may be trusted.
    pub(super) fn proves_ownership(&self, found: &Stamp) -> bool {
        found.kind.is_file()
            && self.file.as_ref().is_some_and(|(_, owner)| owner.proves_ownership(found))
    }
}

impl Owner {
    /// Whether every user who could write the list could write the file too.
    fn proves_ownership(self, found: &Stamp) -> bool {
        const GROUP_AND_OTHERS_WRITE: u32 = 0o022;
        let me = rustix::process::geteuid().as_raw();
        (self.uid == me || self.uid == found.uid)
            && self.mode & GROUP_AND_OTHERS_WRITE & !found.mode == 0
    }
}

/// Opens a file of ours in the directory of the data, not through a link. `O_NONBLOCK`: opening a
/// pipe of that name must not wait for the other end.
fn open(dir: &Directory, name: &str, flags: OFlags) -> Result<File, Errno> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    openat(dir, name, flags, Mode::empty()).map(File::from)
}

/// Reads the list of a directory; `None` where there is none.
///
/// On a file system that can't exchange names the list has none for a moment while it is replaced:
/// as long as another process holds the lock it is looked for again.
pub(super) fn read(dir: &Directory) -> Result<Option<List>, ManifestError> {
    for _ in 0..LOCK_TRIES {
        let changes = is_locked(dir);
        let found = read_now(dir)?;
        if found.is_some() || !changes {
            return Ok(found);
        }
        std::thread::sleep(LOCK_PAUSE);
    }
    Ok(None)
}

/// Whether another process holds the lock now.
fn is_locked(dir: &Directory) -> bool {
    let Ok(file) = open(dir, LOCK_NAME, OFlags::RDONLY) else { return false };
    let owner = rustix::fs::fstat(dir).map(|stat| stat.st_uid);
    let owners = [Ok(rustix::process::geteuid().as_raw()), owner];
    let is_ours = |found: Metadata| found.is_file() && owners.contains(&Ok(found.uid()));
    file.metadata().is_ok_and(is_ours)
        && flock(&file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK)
}

fn read_now(dir: &Directory) -> Result<Option<List>, ManifestError> {
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
    let read = (&file).take(MAX_BYTES + 1).read_to_end(&mut text);
    read.map_err(|source| call("read", &path, source))?;
    if text.len() as u64 > MAX_BYTES {
        return Err(rejected(&path, "it is longer than any list that gpuio writes"));
    }
    let files = parse(&path, &text)?;
    let owner = Owner { uid: found.uid(), mode: found.mode(), dev: found.dev() };
    Ok(Some(List { files, file: Some((file, owner)) }))
}

/// The entries of a list; `path` is for errors.
///
/// # Errors
/// [`ManifestError::Malformed`] and [`ManifestError::Rejected`].
pub fn parse(path: &Path, text: &[u8]) -> Result<Vec<Entry>, ManifestError> {
    let document: Document<Vec<Entry>> =
        serde_json::from_slice(text).map_err(|error| ManifestError::Malformed {
            path: path.to_owned(),
            line: error.line(),
            column: error.column(),
            what: error.to_string(),
        })?;
    if !(OLD_FORMAT..=FORMAT).contains(&document.format) {
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

/// Reads, changes and replaces the list under its lock. An error of `act` leaves it as it was, and
/// a file that someone put in its place at the same time stays.
pub(super) fn change(
    dir: &Directory,
    act: impl FnOnce(&mut List) -> Result<(), ManifestError>,
) -> Result<(), ManifestError> {
    let lock = Lock::take(dir)?;
    let path = dir.path().join(FILE_NAME);
    let place = list_directory(dir)?;
    // Drafts of runs that were killed while they wrote one.
    let _ = place.clear_drafts(OsStr::new(FILE_NAME), is_our_draft);
    let mut list = read_now(dir)?.unwrap_or_default();
    let result = act(&mut list).and_then(|()| match (&list.file, list.files.is_empty()) {
        (None, true) => Ok(()),
        (Some((old, _)), true) => {
            remove(&place, old).map_err(|source| call("rename", &path, source))
        }
        (old, false) => replace(&place, &list.files, old.as_ref().map(|(old, _)| old))
            .map_err(|(name, source)| call(name, &path, source)),
    });
    if dir.stamp_of(OsStr::new(FILE_NAME)).is_err() {
        lock.remove(&place);
    }
    result
}

/// The directory, as files are put into it and taken away.
fn list_directory(dir: &Directory) -> Result<ListDirectory, ManifestError> {
    ListDirectory::of_open(dir, dir.path()).map_err(|source| call("open", dir.path(), source))
}

/// The text of a list, which [`parse`] reads.
///
/// # Errors
/// Nothing that an entry can hold fails.
pub fn print(files: &[Entry]) -> io::Result<Vec<u8>> {
    let has = |field: fn(&Entry) -> bool| files.iter().any(field);
    let format = match (has(|entry| !entry.parts.is_empty()), has(|entry| entry.run.is_some())) {
        (true, _) => FORMAT,
        (false, true) => FORMAT_WITHOUT_PARTS,
        (false, false) => FORMAT_OF_ONE,
    };
    let mut text = serde_json::to_vec_pretty(&Document { format, files })?;
    text.push(b'\n');
    Ok(text)
}

/// Replaces the list that was read. It is whole before it has the name.
fn replace(
    place: &ListDirectory,
    files: &[Entry],
    old: Option<&File>,
) -> Result<(), (&'static str, io::Error)> {
    let fail = |name: &'static str| move |source| (name, source);
    let text = print(files).map_err(fail("write"))?;
    let place = place.try_clone().map_err(fail("open"))?;
    let draft = Draft::begin_named(place, OsStr::new(FILE_NAME)).map_err(fail("open"))?;
    draft.fill(&text).map_err(fail("write"))?;
    draft.replace(old).map(drop).map_err(|unnamed| ("rename", unnamed.error))
}

/// Takes away the list that was read.
fn remove(place: &ListDirectory, old: &File) -> io::Result<()> {
    match place.remove(OsStr::new(FILE_NAME), Identity::of(old)?)? {
        Removed::Gone => Ok(()),
        Removed::Kept(_) => Err(Errno::EXIST.into()),
    }
}

/// Whether this is a list that gpuio made, by all of it, or nothing yet.
fn is_our_draft(file: &File) -> bool {
    let mut text = Vec::new();
    let read = file.take(MAX_BYTES + 1).read_to_end(&mut text);
    let parsed = parse(Path::new(FILE_NAME), &text);
    let printed = parsed.ok().and_then(|files| print(&files).ok());
    read.is_ok() && (text.is_empty() || printed.is_some_and(|printed| printed == text))
}

/// The lock file, held until dropped.
struct Lock {
    file: File,
}

impl Lock {
    fn take(dir: &Directory) -> Result<Lock, ManifestError> {
        let path = dir.path().join(LOCK_NAME);
        for _ in 0..LOCK_TRIES {
            if let Some(file) = try_lock(dir, &path)? {
                return Ok(Lock { file });
            }
            std::thread::sleep(LOCK_PAUSE);
        }
        let waited = LOCK_PAUSE.saturating_mul(u32::try_from(LOCK_TRIES).unwrap_or(u32::MAX));
        Err(ManifestError::Busy { path, seconds: waited.as_secs() })
    }

    /// Removes the lock file while the lock is held: a process that waits for it notices and makes
    /// anew. Ours are empty; one with anything in it is another owner's and stays.
    fn remove(self, place: &ListDirectory) {
        if self.file.metadata().is_ok_and(|found| found.len() == 0 && found.nlink() == 1)
            && let Ok(identity) = Identity::of(&self.file)
        {
            // A lock file that stays is only clutter.
            let _ = place.remove(OsStr::new(LOCK_NAME), identity);
        }
    }
}

/// One try; `None` when another has the lock, or removed the file while this one waited.
fn try_lock(dir: &Directory, path: &Path) -> Result<Option<File>, ManifestError> {
    let file = list_directory(dir)?.lock_file(OsStr::new(LOCK_NAME));
    let file = file.map_err(|source| match source.kind() {
        io::ErrorKind::InvalidInput => {
            rejected(path, "it is not a regular file, so it is no lock of ours")
        }
        _ => call("open", path, source),
    })?;
    let held = gpuio_host::statx::stamp(&file).map_err(|source| call("statx", path, source))?;
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
    let meaning = crate::error::meaning(&source, path, None);
    ManifestError::Call { call, path: path.to_owned(), source, meaning }
}
