//! A directory that is held open: names in it are looked up in it, wherever its own name leads
//! meanwhile.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, RenameFlags, Stat, fchmod, flock, fstat,
    openat, renameat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;

use crate::outfile::random_name;

/// How a file's name begins between the old one and its end.
pub(crate) const AWAY: &str = ".gpuio-gone-";

/// Which file a name stands for: `st_dev` and `st_ino` of stat(2). True as long as the file is
/// open or has a name; its number is given to another afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    /// Device that holds the file.
    pub dev: u64,
    /// Inode number on that device.
    pub ino: u64,
}

impl Identity {
    /// The identity of an open file.
    ///
    /// # Errors
    /// fstat(2).
    pub fn of(file: impl AsFd) -> io::Result<Identity> {
        Ok(Identity::from_stat(&fstat(file)?))
    }

    pub(crate) fn from_stat(stat: &Stat) -> Identity {
        Identity { dev: stat.st_dev, ino: stat.st_ino }
    }
}

/// The file that has a name, links not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    pub identity: Identity,
    /// Its size in bytes.
    pub size: u64,
    mine: bool,
}

impl Found {
    /// Whether it is a regular file of this user's with this name alone.
    pub fn is_mine(&self) -> bool {
        self.mine
    }
}

/// Whether a file is a regular one of this user's that has one name. Another user can give more
/// names to a file, in a directory where both may write (link(2)).
fn is_mine(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
        && stat.st_uid == rustix::process::geteuid().as_raw()
        && stat.st_nlink == 1
}

/// A file that this user made: regular, and with one name when it was opened.
#[derive(Debug)]
pub struct Mine(File);

impl Mine {
    /// It, to be read.
    pub fn file(&self) -> &File {
        &self.0
    }

    /// It, to be kept.
    pub fn into_file(self) -> File {
        self.0
    }

    /// Takes the right to write from everyone (fchmod(2)).
    ///
    /// # Errors
    /// fchmod(2).
    pub fn make_read_only(&self) -> io::Result<()> {
        Ok(fchmod(&self.0, Mode::RUSR)?)
    }
}

/// The outcome of a removal.
#[derive(Debug, PartialEq, Eq)]
pub enum Removed {
    /// It is gone, by this call or before it.
    Gone,
    /// Another file has the name. It stays, under this path.
    Kept(PathBuf),
}

/// A directory, open.
#[derive(Debug)]
pub struct Directory {
    fd: OwnedFd,
    path: PathBuf,
}

impl Directory {
    /// Opens a directory that the user named: links in its path are followed.
    ///
    /// # Errors
    /// open(2).
    pub fn open(path: &Path) -> io::Result<Directory> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::empty())?;
        Ok(Directory { fd, path: path.to_owned() })
    }

    /// Opens the directory that holds a file of this path, and gives the file's own name.
    ///
    /// # Errors
    /// open(2), or a path without a file's name.
    pub fn of(path: &Path) -> io::Result<(Directory, OsString)> {
        let name = path.file_name().ok_or(Errno::ISDIR)?;
        Ok((Directory::open(path.parent().unwrap_or(Path::new(".")))?, name.to_owned()))
    }

    /// A directory below, no link.
    ///
    /// # Errors
    /// openat(2).
    pub fn below(&self, name: &OsStr) -> io::Result<Directory> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = openat(&self.fd, name, flags, Mode::empty())?;
        Ok(Directory { fd, path: self.path.join(name) })
    }

    /// A directory that is open already, with `O_PATH` (open(2)) or to be read.
    ///
    /// # Errors
    /// openat(2).
    pub fn of_open(dir: impl AsFd, path: &Path) -> io::Result<Directory> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = match openat(&dir, ".", flags, Mode::empty()) {
            // Whoever may not read it can work in it all the same.
            Err(Errno::ACCESS) => dir.as_fd().try_clone_to_owned()?,
            opened => opened?,
        };
        Ok(Directory { fd, path: path.to_owned() })
    }

    /// Another descriptor of it.
    ///
    /// # Errors
    /// fcntl(2).
    pub fn try_clone(&self) -> io::Result<Directory> {
        Ok(Directory { fd: self.fd.try_clone()?, path: self.path.clone() })
    }

    /// As it was named.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file with this name, links not followed; `None` where nothing has it.
    ///
    /// # Errors
    /// fstatat(2).
    pub fn look(&self, name: &OsStr) -> io::Result<Option<Found>> {
        match statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(Found {
                identity: Identity::from_stat(&stat),
                size: u64::try_from(stat.st_size).unwrap_or(0),
                mine: is_mine(&stat),
            })),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Whether this file has the name.
    ///
    /// # Errors
    /// fstatat(2).
    pub fn is(&self, name: &OsStr, identity: Identity) -> io::Result<bool> {
        Ok(self.look(name)?.is_some_and(|found| found.identity == identity))
    }

    /// Opens a regular file to be read; `None` where nothing has the name.
    ///
    /// # Errors
    /// openat(2); ELOOP for a symbolic link, EINVAL for what is no regular file.
    pub fn file(&self, name: &OsStr) -> io::Result<Option<File>> {
        // O_NONBLOCK: a FIFO of that name must not wait for a writer.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(&self.fd, name, flags, Mode::empty()) {
            Ok(fd) => File::from(fd),
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        };
        regular(&file)?;
        Ok(Some(file))
    }

    /// Opens a file that this user made; `None` where nothing has the name, or what has it is
    /// another user's or has a second name.
    ///
    /// # Errors
    /// As for [`Directory::file`].
    pub fn mine(&self, name: &OsStr) -> io::Result<Option<Mine>> {
        let Some(file) = self.file(name)? else { return Ok(None) };
        Ok(is_mine(&fstat(&file)?).then_some(Mine(file)))
    }

    /// The text of a file of at most `most` bytes, and the file.
    ///
    /// # Errors
    /// As for [`Directory::file`]; EFBIG where it is longer.
    pub fn read(&self, name: &OsStr, most: u64) -> io::Result<Option<(Vec<u8>, File)>> {
        let Some(file) = self.file(name)? else { return Ok(None) };
        let mut bytes = Vec::new();
        (&file).take(most.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > most {
            return Err(Errno::FBIG.into());
        }
        Ok(Some((bytes, file)))
    }

    /// Names of everything in it, without order.
    ///
    /// # Errors
    /// getdents(2).
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.fd)? {
            let entry = entry?;
            let bytes = entry.file_name().to_bytes();
            if bytes != b"." && bytes != b".." {
                use std::os::unix::ffi::OsStrExt as _;
                names.push(OsStr::from_bytes(bytes).to_owned());
            }
        }
        Ok(names)
    }

    /// A new file, mode 0600.
    ///
    /// # Errors
    /// openat(2); EEXIST where anything has the name, a dangling link included.
    pub fn create(&self, name: &OsStr) -> io::Result<File> {
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(openat(&self.fd, name, flags, Mode::RUSR | Mode::WUSR)?))
    }

    /// Takes the lock of this name, which is made where nothing has it; `None` while another
    /// process has the lock. It is never removed.
    ///
    /// # Errors
    /// As for [`Directory::lock_file`]; flock(2).
    pub fn lock(&self, name: &OsStr) -> io::Result<Option<File>> {
        let file = self.lock_file(name)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(file)),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// A file to be locked, made with mode 0600 where nothing has the name: who may read a file may
    /// lock it (flock(2)), and so stop everyone else. Nothing is written to it.
    ///
    /// # Errors
    /// openat(2); EINVAL for what is no regular file, EPERM where it is neither this user's nor the
    /// directory's owner's: on some file systems all files have that one.
    pub fn lock_file(&self, name: &OsStr) -> io::Result<File> {
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(openat(&self.fd, name, flags, Mode::RUSR | Mode::WUSR)?);
        regular(&file)?;
        let stat = fstat(&file)?;
        if is_mine(&stat) && stat.st_mode & 0o077 != 0 {
            fchmod(&file, Mode::RUSR | Mode::WUSR)?;
        }
        let owners = [rustix::process::geteuid().as_raw(), fstat(&self.fd)?.st_uid];
        if owners.contains(&stat.st_uid) {
            return Ok(file);
        }
        let why = format!("it belongs to user {}, who can hold it for ever", stat.st_uid);
        Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
    }

    /// Removes the file of this name if it is this one. It gets an unpredictable name and
    /// is looked at once more, so that what another process puts under the old name between look
    /// and unlink(2) is not what goes.
    ///
    /// # Errors
    /// renameat2(2), fstatat(2) or unlinkat(2).
    pub fn remove(&self, name: &OsStr, identity: Identity) -> io::Result<Removed> {
        match self.look(name)? {
            None => Ok(Removed::Gone),
            Some(found) if found.identity != identity => Ok(Removed::Kept(self.path.join(name))),
            Some(_) => self.take_away(name, identity),
        }
    }

    /// Whatever has the name gets another, and only then it is looked at: this file goes, any other
    /// gets its name back. Nothing is lost by an exchange at any moment.
    pub(crate) fn take_away(&self, name: &OsStr, identity: Identity) -> io::Result<Removed> {
        let away = OsString::from(format!("{AWAY}{}", random_name()));
        let moved = match renameat_with(&self.fd, name, &self.fd, &away, RenameFlags::NOREPLACE) {
            // Nothing has the new name: it is unpredictable.
            Err(Errno::INVAL | Errno::NOSYS) => renameat(&self.fd, name, &self.fd, &away),
            done => done,
        };
        match moved {
            Ok(()) => {}
            Err(Errno::NOENT) => return Ok(Removed::Gone),
            Err(errno) => return Err(errno.into()),
        }
        if self.is(&away, identity)? {
            unlinkat(&self.fd, &away, AtFlags::empty())?;
            return Ok(Removed::Gone);
        }
        // Another process exchanged it in between. It gets its name back, unless the name is taken
        // again.
        match self.rename_new(&away, name) {
            Ok(()) => Ok(Removed::Kept(self.path.join(name))),
            Err(_) => Ok(Removed::Kept(self.path.join(&away))),
        }
    }

    /// Removes a directory below if it is empty. Whether it is gone.
    ///
    /// # Errors
    /// unlinkat(2), but for a directory that holds something or is gone already.
    pub fn remove_empty(&self, name: &OsStr) -> io::Result<bool> {
        match unlinkat(&self.fd, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(true),
            Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Renames a file whose name only this process uses to a name that nothing has
    /// (`RENAME_NOREPLACE`, Linux 3.15), by a hard link where the file system does not know that.
    pub(crate) fn rename_new(&self, from: &OsStr, to: &OsStr) -> Result<(), Errno> {
        match renameat_with(&self.fd, from, &self.fd, to, RenameFlags::NOREPLACE) {
            Err(Errno::INVAL | Errno::NOSYS) => self.link_new(from, to),
            done => done,
        }
    }

    fn link_new(&self, from: &OsStr, to: &OsStr) -> Result<(), Errno> {
        match rustix::fs::linkat(&self.fd, from, &self.fd, to, AtFlags::empty()) {
            Ok(()) => unlinkat(&self.fd, from, AtFlags::empty()),
            // As on FAT, and for directories.
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS) => self.claim_new(from, to),
            Err(errno) => Err(errno),
        }
    }

    /// The same without hard links: an empty file of ours has the name first (`O_EXCL`).
    pub(crate) fn claim_new(&self, from: &OsStr, to: &OsStr) -> Result<(), Errno> {
        if FileType::from_raw_mode(statat(&self.fd, from, AtFlags::SYMLINK_NOFOLLOW)?.st_mode)
            == FileType::Directory
        {
            // rename(2) replaces a directory at most by an empty one.
            return renameat(&self.fd, from, &self.fd, to);
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        drop(openat(&self.fd, to, flags, Mode::RUSR | Mode::WUSR)?);
        renameat(&self.fd, from, &self.fd, to)
    }

    /// Makes names durable, where the file system can (fsync(2) of a directory).
    pub fn sync(&self) {
        let _ = rustix::fs::fsync(&self.fd);
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn regular(file: &File) -> io::Result<()> {
    match FileType::from_raw_mode(fstat(file)?.st_mode) {
        FileType::RegularFile => Ok(()),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file")),
    }
}

#[cfg(test)]
mod tests;
