//! The files of pages: `/dev/shm/gpuio-UID/PID`, a directory and files that only their owner may
//! open.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, mkdirat, openat};
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

    /// Users who have a directory here.
    pub(crate) fn users(&self) -> Vec<u32> {
        let Ok(entries) = std::fs::read_dir(&self.base) else { return Vec::new() };
        let uid = |entry: io::Result<std::fs::DirEntry>| {
            let name = entry.ok()?.file_name();
            number(name.to_str()?.strip_prefix("gpuio-")?)
        };
        let mut users: Vec<u32> = entries.filter_map(uid).collect();
        users.sort_unstable();
        users
    }

    /// Opens the directory of a user, who must own it; `None` when there is none.
    pub(crate) fn open(&self, uid: u32) -> Result<Option<OwnedFd>, LivePageError> {
        let path = self.directory(uid);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = match openat(CWD, &path, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP | Errno::NOTDIR) => {
                return Err(LivePageError::refused(&path, "is not a directory: pages need one"));
            }
            Err(errno) => return Err(LivePageError::call("openat", &path, errno)),
        };
        let stat = fstat(&fd).map_err(|errno| LivePageError::call("fstat", &path, errno))?;
        if stat.st_uid != uid {
            let why = format!("belongs to user {}, not {uid}: nothing in it is used", stat.st_uid);
            return Err(LivePageError::refused(&path, why));
        }
        if stat.st_mode & 0o077 != 0 {
            let mode = stat.st_mode & 0o7777;
            let why = format!("has mode {mode:o} and must have 700: chmod 700, or remove it");
            return Err(LivePageError::refused(&path, why));
        }
        Ok(Some(fd))
    }

    /// As [`Self::open`]; creates it where it is missing.
    pub(crate) fn make(&self, uid: u32) -> Result<OwnedFd, LivePageError> {
        let path = self.directory(uid);
        match mkdirat(CWD, &path, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(LivePageError::call("mkdirat", &path, errno)),
        }
        let gone = || LivePageError::refused(&path, "disappeared while it was created");
        self.open(uid)?.ok_or_else(gone)
    }
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
