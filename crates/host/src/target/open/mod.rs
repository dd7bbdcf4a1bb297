//! Opens a target once, so that the file that was checked is the one that is read and written.
//!
//! An [`Opened`] target is held by a descriptor with `O_PATH` (open(2)): it needs no right to
//! read or write, does not wait for a pipe's other end, and keeps the inode from being used for
//! another file. Readers and writers get a descriptor of that same file from
//! [`Opened::reopen`], whatever file has its name by then.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

use crate::statx::{self, Stamp};

/// For a descriptor that only identifies the file.
const MARK: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// A directory that is held open. Names in it are looked up in this directory, wherever it is
/// moved and whatever takes its name.
#[derive(Debug)]
pub struct Directory {
    fd: OwnedFd,
    stamp: Stamp,
    path: PathBuf,
}

impl Directory {
    /// Opens a directory that the user named. Links are followed, this one time.
    ///
    /// # Errors
    /// Those of open(2).
    pub fn open(path: &Path) -> io::Result<Directory> {
        // An empty path is what is left of a file's name without its directory.
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        Directory::of(rustix::fs::open(path, MARK | OFlags::DIRECTORY, Mode::empty())?, path)
    }

    /// Opens a directory below this one. No link is followed.
    ///
    /// # Errors
    /// Those of openat2(2): `ELOOP` for a link, `EXDEV` for a path that leads out.
    pub fn below(&self, relative: &Path) -> io::Result<Directory> {
        let fd = open_below(self.fd.as_fd(), relative, MARK | OFlags::DIRECTORY)?;
        Directory::of(fd, &self.path.join(relative))
    }

    fn of(fd: OwnedFd, requested: &Path) -> io::Result<Directory> {
        let stamp = statx::stamp(&fd)?;
        let path = path_of(fd.as_fd(), requested);
        Ok(Directory { fd, stamp, path })
    }

    /// Opens what has this name below this directory. No link is followed.
    ///
    /// # Errors
    /// As for [`Directory::below`].
    pub fn target(&self, relative: &Path) -> io::Result<Opened> {
        let fd = open_below(self.fd.as_fd(), relative, MARK)?;
        Opened::of(fd, &self.path.join(relative))
    }

    /// The stamp of the file that has this name in this directory now; a link counts as a link.
    ///
    /// # Errors
    /// Those of statx(2).
    pub fn stamp_of(&self, name: &OsStr) -> io::Result<Stamp> {
        statx::stamp_at(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW)
    }

    pub fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// Where it was when it was opened, its links followed.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A file or device that is held open.
#[derive(Debug)]
pub struct Opened {
    fd: OwnedFd,
    stamp: Stamp,
    path: PathBuf,
}

impl Opened {
    /// Opens what the user named. Links are followed, this one time: what counts from here on is
    /// what was opened.
    ///
    /// # Errors
    /// Those of open(2).
    pub fn named(path: &Path) -> io::Result<Opened> {
        Opened::of(rustix::fs::open(path, MARK, Mode::empty())?, path)
    }

    /// Opens the path of a file that was checked; a link at that path is opened as a link.
    ///
    /// # Errors
    /// Those of open(2), and [`ReopenError::Replaced`] for any other file.
    pub fn again(path: &Path, checked: &Stamp) -> Result<Opened, ReopenError> {
        let fd = rustix::fs::open(path, MARK | OFlags::NOFOLLOW, Mode::empty())?;
        Ok(Opened::of(same(checked, fd)?, path)?)
    }

    fn of(fd: OwnedFd, requested: &Path) -> io::Result<Opened> {
        let stamp = statx::stamp(&fd)?;
        let path = path_of(fd.as_fd(), requested);
        Ok(Opened { fd, stamp, path })
    }

    /// Its state when it was opened.
    pub fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// Its state now.
    ///
    /// # Errors
    /// Those of statx(2).
    pub fn look(&self) -> io::Result<Stamp> {
        statx::stamp(&self.fd)
    }

    /// Where it was when it was opened, its links followed.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A descriptor of the same file with these flags, for reading or writing.
    ///
    /// It is opened by `/proc/self/fd`, which leads to the file that is held whatever has its name
    /// (proc_pid_fd(5)), and by its path where that can't be had, no part of it being a link.
    /// The two are compared in both cases.
    ///
    /// The descriptor does not have `O_NOFOLLOW`, which NVIDIA's cuFile refuses and fcntl(2) can't
    /// clear, wherever there is a `/proc` or openat2(2) (Linux 5.6).
    ///
    /// # Errors
    /// [`ReopenError`].
    pub fn reopen(&self, flags: OFlags) -> Result<OwnedFd, ReopenError> {
        let link = format!("/proc/self/fd/{}", self.fd.as_raw_fd());
        match rustix::fs::open(link, flags | OFlags::CLOEXEC, Mode::empty()) {
            // No /proc, or none for a process that may not be looked into (PR_SET_DUMPABLE(2)).
            Err(Errno::NOENT | Errno::ACCESS | Errno::PERM) => self.reopen_by_path(flags),
            opened => self.compare(opened?),
        }
    }

    fn reopen_by_path(&self, flags: OFlags) -> Result<OwnedFd, ReopenError> {
        let flags = flags | OFlags::CLOEXEC;
        let links = ResolveFlags::NO_SYMLINKS;
        let opened = match openat2(CWD, &self.path, flags, Mode::empty(), links) {
            // LOOP: a path whose links could not be resolved when it was opened.
            Err(Errno::NOSYS | Errno::PERM | Errno::LOOP) => {
                rustix::fs::open(&self.path, flags | OFlags::NOFOLLOW, Mode::empty())
            }
            opened => opened,
        };
        self.compare(opened?)
    }

    fn compare(&self, fd: OwnedFd) -> Result<OwnedFd, ReopenError> {
        same(&self.stamp, fd)
    }
}

impl AsFd for Opened {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Returns a descriptor if it is of the file that was checked.
///
/// # Errors
/// [`ReopenError::Replaced`] for any other file.
pub fn same(checked: &Stamp, fd: OwnedFd) -> Result<OwnedFd, ReopenError> {
    if statx::stamp(&fd)?.is_same_file(checked) { Ok(fd) } else { Err(ReopenError::Replaced) }
}

/// A target that was checked could not be opened again.
#[derive(Debug, thiserror::Error)]
pub enum ReopenError {
    /// The kernel's answer.
    #[error(transparent)]
    Call(#[from] io::Error),
    /// Another file has the path of the one that was checked.
    #[error(
        "it is not the file that was checked: another process exchanged it. Nothing was \
         written to it"
    )]
    Replaced,
}

impl From<Errno> for ReopenError {
    fn from(errno: Errno) -> ReopenError {
        ReopenError::Call(errno.into())
    }
}

/// The kernel's path of an open file; where it has none, the requested path with its links
/// followed.
fn path_of(fd: BorrowedFd<'_>, requested: &Path) -> PathBuf {
    fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()))
        .or_else(|_| requested.canonicalize())
        .unwrap_or_else(|_| requested.to_owned())
}

/// Opens `relative` below `dir` without following any link (openat2(2), Linux 5.6). Kernels and
/// seccomp filters without that call get the same by one openat(2) for each part of the path.
fn open_below(dir: BorrowedFd<'_>, relative: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    match openat2(dir, relative, flags, Mode::empty(), resolve) {
        // EAGAIN: something was renamed during the call, so the kernel can't check the path.
        Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN) => Ok(walk(dir, relative, flags)?),
        opened => Ok(opened?),
    }
}

fn walk(dir: BorrowedFd<'_>, relative: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut parts: Vec<&OsStr> = Vec::new();
    for part in relative.components() {
        match part {
            Component::Normal(name) => parts.push(name),
            Component::CurDir => {}
            _ => return Err(Errno::XDEV),
        }
    }
    let Some((last, above)) = parts.split_last() else {
        return openat(dir, ".", flags, Mode::empty());
    };
    let mut at: Option<OwnedFd> = None;
    let inside = |at: &Option<OwnedFd>, name: &OsStr, flags: OFlags| {
        let here = at.as_ref().map_or(dir, AsFd::as_fd);
        let fd = openat(here, name, flags | OFlags::NOFOLLOW, Mode::empty())?;
        // With O_PATH a link is opened as itself.
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode);
        if kind == FileType::Symlink { Err(Errno::LOOP) } else { Ok(fd) }
    };
    for name in above {
        at = Some(inside(&at, name, MARK)?);
    }
    // A link with O_DIRECTORY is "not a directory"; it is opened without, to distinguish the two.
    if flags.contains(OFlags::DIRECTORY) {
        inside(&at, last, MARK)?;
    }
    inside(&at, last, flags)
}

/// The file that a path of this process leads to, links followed; `None` where it can't be seen.
pub(super) fn stamp_of(path: &Path) -> Option<Stamp> {
    statx::stamp_at(CWD, path, AtFlags::empty()).ok()
}

#[cfg(test)]
mod tests;
