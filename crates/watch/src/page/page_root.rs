//! The files of pages: `/dev/shm/gpuio-UID/PID`, a directory and files that only their owner may
//! open. Where another user has taken the directory's name, it is `gpuio-UID-RANDOM`, which readers
//! know by its owner.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use gpuio_guard::outfile::Private;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, fstat, mkdirat, openat, statat};
use rustix::io::Errno;
use thiserror::Error;

/// Names another directory for pages, an absolute path. Only processes with the same one see each
/// other.
const VARIABLE: &str = "GPUIO_PAGES";

/// The directory that holds the directories of users.
#[derive(Debug, Clone)]
pub struct LivePageRoot {
    base: PathBuf,
}

/// Why a page can't be made or read.
#[derive(Debug, Error)]
pub enum LivePageError {
    /// A system call failed.
    #[error("{call} {}: {source}", path.display())]
    Call {
        /// The system call.
        call: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// A file or directory there does not have gpuio's form.
    #[error("{}: {why}", path.display())]
    Refused {
        /// The file or directory.
        path: PathBuf,
        /// The error in it, and the remedy.
        why: String,
    },
    /// The process could not be identified, so readers could not identify the page's process.
    #[error("this process can't be identified in /proc: {0}")]
    Unidentified(String),
}

impl LivePageError {
    pub(crate) fn call(call: &'static str, path: &Path, errno: Errno) -> LivePageError {
        LivePageError::Call { call, path: path.to_owned(), source: errno.into() }
    }

    pub(crate) fn refused(path: &Path, why: impl Into<String>) -> LivePageError {
        LivePageError::Refused { path: path.to_owned(), why: why.into() }
    }
}

impl LivePageRoot {
    /// Shared memory of this system (`shm_overview(7)`), or the directory that `VARIABLE` names.
    pub fn live() -> LivePageRoot {
        let named = gpuio_guard::objects::environment::absolute(VARIABLE);
        LivePageRoot::at(named.unwrap_or_else(|| PathBuf::from("/dev/shm")))
    }

    /// Another directory, for tests.
    pub fn at(base: impl Into<PathBuf>) -> LivePageRoot {
        LivePageRoot { base: base.into() }
    }

    /// The directory of this user's pages.
    pub fn directory(&self, uid: u32) -> PathBuf {
        self.base.join(format!("gpuio-{uid}"))
    }

    /// The directories of pages here, by user and path: those that have a user's own name, and the
    /// others that are the user's by their owner.
    pub(crate) fn directories(&self) -> Vec<(u32, PathBuf)> {
        let Ok(entries) = std::fs::read_dir(&self.base) else {
            let own = rustix::process::geteuid().as_raw();
            return vec![(own, self.directory(own))];
        };
        let one = |entry: io::Result<std::fs::DirEntry>| {
            let (name, path) = entry.ok().map(|entry| (entry.file_name(), entry.path()))?;
            let rest = name.to_str()?.strip_prefix("gpuio-")?;
            let (uid, other) = rest.split_once('-').unwrap_or((rest, ""));
            let uid = number(uid)?;
            (other.is_empty() || owner(&path) == Some(uid)).then_some((uid, path))
        };
        let mut all: Vec<(u32, PathBuf)> = entries.filter_map(one).collect();
        all.sort_unstable();
        all
    }

    /// Opens a directory of a user, who must own it; `None` when there is none.
    pub(crate) fn open(path: &Path, uid: u32) -> Result<Option<OwnedFd>, LivePageError> {
        if let Some(other) = owner(path).filter(|owner| *owner != uid) {
            let why = format!("belongs to user {other}, not {uid}: nothing in it is used");
            return Err(LivePageError::refused(path, why));
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = match openat(CWD, path, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP | Errno::NOTDIR) => {
                return Err(LivePageError::refused(path, "is not a directory: pages need one"));
            }
            Err(errno) => return Err(LivePageError::call("openat", path, errno)),
        };
        let stat = fstat(&fd).map_err(|errno| LivePageError::call("fstat", path, errno))?;
        if stat.st_uid != uid {
            let why = format!("belongs to user {}, not {uid}: nothing in it is used", stat.st_uid);
            return Err(LivePageError::refused(path, why));
        }
        if stat.st_mode & 0o077 != 0 {
            let mode = stat.st_mode & 0o7777;
            let why = format!("has mode {mode:o} and must have 700: chmod 700, or remove it");
            return Err(LivePageError::refused(path, why));
        }
        Ok(Some(fd))
    }

    /// The directory of this user's pages, created where it is missing.
    pub(crate) fn make(&self, uid: u32) -> Result<(OwnedFd, PathBuf), LivePageError> {
        let path = self.directory(uid);
        match mkdirat(CWD, &path, Mode::RWXU) {
            Ok(()) => {}
            Err(Errno::EXIST) if owner(&path).is_some_and(|owner| owner != uid) => {
                return self.make_beside(uid, &path);
            }
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(LivePageError::call("mkdirat", &path, errno)),
        }
        LivePageRoot::made(path, uid)
    }

    /// The same where another user has the name.
    fn make_beside(&self, uid: u32, taken: &Path) -> Result<(OwnedFd, PathBuf), LivePageError> {
        let mut all = self.directories().into_iter();
        if let Some((_, path)) = all.find(|(user, path)| *user == uid && path != taken) {
            return LivePageRoot::made(path, uid);
        }
        let path = self.base.join(Private::name(&format!("gpuio-{uid}")));
        mkdirat(CWD, &path, Mode::RWXU)
            .map_err(|errno| LivePageError::call("mkdirat", &path, errno))?;
        LivePageRoot::made(path, uid)
    }

    fn made(path: PathBuf, uid: u32) -> Result<(OwnedFd, PathBuf), LivePageError> {
        let gone = || LivePageError::refused(&path, "disappeared while it was created");
        let directory = LivePageRoot::open(&path, uid)?.ok_or_else(gone)?;
        Ok((directory, path))
    }
}

/// The owner of a name, links not followed.
fn owner(path: &Path) -> Option<u32> {
    statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).ok().map(|stat| stat.st_uid)
}

/// Whether a mode is that of a regular file.
pub(crate) fn is_regular(mode: u32) -> bool {
    FileType::from_raw_mode(mode) == FileType::RegularFile
}

/// A number as gpuio writes it: no sign, no leading zero.
pub(crate) fn number(text: &str) -> Option<u32> {
    let number: u32 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}
