//! The files of a run, each held open from its check to its last I/O.
//!
//! A target is opened once (`gpuio_host::target::Opened`, a descriptor with `O_PATH`). Each use of
//! the file reopens that descriptor through `/proc/self/fd`; without `/proc` by name and
//! `openat2(2)` without links, then compared. So exchanging the name redirects no access. Neither
//! method leaves `O_NOFOLLOW` on the descriptor, which NVIDIA's library refuses and nothing can
//! clear; where both are missing it stays, and cuFile's error says why. A link that the user names
//! is resolved once; below a `--directory` none is followed.
//!
//! Where `ulimit -n` leaves less than one more descriptor per file ([`Budget`]), files are closed
//! after the check, and compared when they are opened again: device, inode, kind and time of
//! birth. A block device that is written is claimed with `O_EXCL` until the run ends.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gpuio_base::pattern::Key;
use gpuio_guard::outfile::Removed;
use gpuio_host::statx::Stamp;
use gpuio_host::target::{Directory, Opened, ReopenError};
use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use super::{Identity, identity_of};

/// A name in a directory that is held open.
#[derive(Debug, Clone)]
pub struct DirEntry {
    pub(super) dir: Arc<Directory>,
    pub(super) name: OsString,
}

impl DirEntry {
    pub fn new(dir: Directory, name: &OsStr) -> DirEntry {
        DirEntry { dir: Arc::new(dir), name: name.to_owned() }
    }

    /// The name in words.
    pub(super) fn path(&self) -> PathBuf {
        self.dir.path().join(&self.name)
    }

    /// The stamp of the file that has the name now; a link counts as a link.
    pub(super) fn stamp(&self) -> io::Result<Stamp> {
        self.dir.stamp_of(&self.name)
    }

    /// Makes a file that was not there, mode 0644, and holds it.
    pub(super) fn create(&self) -> Result<Held, ReopenError> {
        // With O_EXCL no link is followed either.
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
        let made = openat(&self.dir, &self.name, flags, mode).map_err(io::Error::from)?;
        let stamp = gpuio_host::statx::stamp(&made)?;
        let opened = self.dir.target(Path::new(&self.name))?;
        if !opened.stamp().is_same_file(&stamp) {
            return Err(ReopenError::Replaced);
        }
        Ok(Held::new(opened, Some(self.clone())))
    }

    /// The file that has the name, held, if it is the one that was checked.
    fn again(&self, checked: &Stamp) -> Result<Opened, ReopenError> {
        let opened = self.dir.target(Path::new(&self.name))?;
        if opened.stamp().is_same_file(checked) { Ok(opened) } else { Err(ReopenError::Replaced) }
    }

    /// Takes the file away, if it is this one, from the directory that is held.
    pub(super) fn remove(&self, which: Identity) -> io::Result<Removed> {
        let dir = gpuio_guard::outfile::Directory::of_open(&*self.dir, self.dir.path())?;
        dir.remove(&self.name, which)
    }
}

/// A file or device that was checked. Reads, writes, lists and removals apply to this one.
#[derive(Debug)]
pub struct Held {
    /// `None` once it was let go, in a data set of more files than there are descriptors.
    opened: Option<Opened>,
    stamp: Stamp,
    path: PathBuf,
    dir_entry: Option<DirEntry>,
}

impl Held {
    pub(super) fn new(opened: Opened, dir_entry: Option<DirEntry>) -> Held {
        let (stamp, path) = (opened.stamp(), opened.path().to_owned());
        Held { opened: Some(opened), stamp, path, dir_entry }
    }

    /// The file with this name, held, with its directory entry.
    #[cfg(test)]
    pub(crate) fn named(path: &Path) -> io::Result<Held> {
        let opened = Opened::named(path)?;
        let at = opened.path();
        let above = Directory::open(at.parent().unwrap_or(Path::new("/")))?;
        let dir_entry = DirEntry::new(above, at.file_name().unwrap_or_default());
        Ok(Held::new(opened, Some(dir_entry)))
    }

    /// Its state when it was checked.
    pub fn stamp(&self) -> Stamp {
        self.stamp
    }

    pub fn identity(&self) -> Identity {
        identity_of(&self.stamp)
    }

    /// Where it was when it was checked, links followed.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The name by which it is listed; `None` where it has none that could be found.
    pub(super) fn dir_entry(&self) -> Option<&DirEntry> {
        self.dir_entry.as_ref()
    }

    /// Lets the descriptor go: from here on the file is looked up by its name, a link not being
    /// followed, and compared with what was checked.
    pub(super) fn release(&mut self) {
        self.opened = None;
    }

    /// Its state now.
    ///
    /// # Errors
    /// Those of statx(2), and `ESTALE` where another file has the name of one that was let go.
    pub fn look(&self) -> io::Result<Stamp> {
        if let Some(opened) = &self.opened {
            return opened.look();
        }
        let found = match &self.dir_entry {
            Some(dir_entry) => dir_entry.stamp()?,
            None => Opened::named(&self.path)?.stamp(),
        };
        if found.is_same_file(&self.stamp) { Ok(found) } else { Err(Errno::STALE.into()) }
    }

    /// A descriptor of this very file, for reading or writing.
    ///
    /// # Errors
    /// As for [`Opened::reopen`].
    pub fn reopen(&self, flags: OFlags) -> Result<OwnedFd, ReopenError> {
        match (&self.opened, &self.dir_entry) {
            (Some(opened), _) => opened.reopen(flags),
            (None, Some(dir_entry)) => dir_entry.again(&self.stamp)?.reopen(flags),
            (None, None) => Opened::again(&self.path, &self.stamp)?.reopen(flags),
        }
    }

    /// As [`Held::reopen`].
    pub(super) fn file(&self, flags: OFlags) -> Result<File, ReopenError> {
        self.reopen(flags).map(File::from)
    }
}

/// How many files may stay held at once.
///
/// A held file is one descriptor in addition to those that the workers open of it. Where the limit
/// on descriptors (`RLIMIT_NOFILE`) leaves no more than twice what the workers need, files beyond
/// the budget are let go after they were checked.
#[derive(Debug)]
pub struct Budget(AtomicU64);

/// Descriptors for everything else: directories, libraries, devices.
const OTHERS: u64 = 64;

impl Budget {
    /// The descriptors that the limit leaves in addition to those of `workers` workers.
    pub fn beside(workers: u64) -> Budget {
        Budget::of(getrlimit(Resource::Nofile).current, workers)
    }

    pub(super) fn of(limit: Option<u64>, workers: u64) -> Budget {
        let needed = workers.saturating_mul(2).saturating_add(OTHERS);
        Budget(AtomicU64::new(limit.unwrap_or(u64::MAX).saturating_sub(needed)))
    }

    /// Keeps the file held, or lets it go where the budget is used up.
    pub fn hold(&self, mut held: Held) -> Arc<Held> {
        let one_less = |left: u64| left.checked_sub(1);
        if self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_err() {
            held.release();
        }
        Arc::new(held)
    }
}

/// The targets of a group, by the names that its plan has for them.
#[derive(Debug, Default)]
pub struct Targets {
    held: BTreeMap<String, Arc<Held>>,
    keys: BTreeMap<String, Key>,
}

/// The name that a ceiling's load without files uses: no bytes of anybody.
const NO_FILE: &str = "/dev/null";

impl Targets {
    /// Keeps the target that was checked under this name.
    pub fn hold(&mut self, name: &str, held: &Arc<Held>) {
        self.held.insert(name.to_owned(), Arc::clone(held));
    }

    /// Verification expects the pattern of this key in the file, not that of the job.
    pub fn expect(&mut self, name: &str, key: Key) {
        self.keys.insert(name.to_owned(), key);
    }

    /// The key of the pattern that was found in a file whose job did not write it.
    pub fn key(&self, name: &str) -> Option<Key> {
        self.keys.get(name).copied()
    }

    /// The target that was checked under this name, if there is one.
    pub fn get(&self, name: &str) -> Option<&Arc<Held>> {
        self.held.get(name)
    }

    /// A descriptor of the target that was checked under this name.
    ///
    /// # Errors
    /// [`ReopenError`]; what was not checked is not opened, as if it were not there.
    pub fn open(&self, name: &str, flags: OFlags) -> Result<OwnedFd, ReopenError> {
        if let Some(held) = self.held.get(name) {
            return held.reopen(flags);
        }
        if name != NO_FILE {
            return Err(Errno::NOENT.into());
        }
        let opened = Opened::named(Path::new(NO_FILE))?;
        let is_null = opened.stamp().rdev == rustix::fs::makedev(1, 3);
        if is_null { opened.reopen(flags) } else { Err(ReopenError::Replaced) }
    }

    /// As [`Targets::open`], for reading.
    ///
    /// # Errors
    /// As for [`Targets::open`].
    pub fn read(&self, name: &str) -> Result<File, ReopenError> {
        self.open(name, OFlags::RDONLY).map(File::from)
    }
}
