//! A file that gets its name when it is whole.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Seek as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use rustix::fs::{
    AtFlags, CWD, FallocateFlags, FlockOperation, Mode, OFlags, RenameFlags, fallocate, fchmod,
    flock, fstat, linkat, openat, renameat_with, unlinkat,
};
use rustix::io::Errno;

use crate::outfile::directory::{Directory, Identity, Removed};
use crate::outfile::random_name;

/// How names of drafts end. They begin with a dot and the name that the file is to have, with a
/// random part between.
const ENDING: &str = ".draft";
/// 0644, less the umask.
const MODE: Mode = Mode::from_bits_truncate(0o644);

/// A file without a name, or with a draft's where the file system knows no files without one. A
/// draft that is dropped is gone; one of a killed process is found by
/// [`Directory::abandoned_drafts`].
#[derive(Debug)]
pub struct Draft {
    file: File,
    at: DraftName,
    wanted: OsString,
}

/// Where a draft is; its name goes with this, if the draft has it still.
#[derive(Debug)]
struct DraftName {
    directory: Directory,
    /// The draft's own name, where it has one.
    name: Option<OsString>,
    identity: Option<Identity>,
}

impl Drop for DraftName {
    fn drop(&mut self) {
        if let Some((name, identity)) = self.name.as_ref().zip(self.identity) {
            // One that stays is found by the next search for abandoned drafts.
            let _ = self.directory.remove(name, identity);
        }
    }
}

/// A draft that could not get its name, whole as it was.
#[derive(Debug)]
pub struct Unnamed {
    pub draft: Draft,
    /// Why: EEXIST where anything has the name.
    pub error: io::Error,
}

/// A draft of a process that is gone.
#[derive(Debug)]
pub struct AbandonedDraft {
    pub name: OsString,
    /// Its content, open and locked.
    pub file: File,
}

impl Draft {
    /// Begins a file that is to be `wanted` in `directory`, mode 0644 less the umask.
    ///
    /// # Errors
    /// openat(2).
    pub fn begin(directory: Directory, wanted: &OsStr) -> io::Result<Draft> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::TMPFILE;
        match openat(&directory, ".", flags, MODE) {
            Ok(file) => Ok(Draft::of(File::from(file), directory, None, wanted)),
            // The answers of file systems without unnamed files (open(2)): NFS, FUSE, FAT.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT) => {
                Draft::begin_named(directory, wanted)
            }
            // A directory that another process has just removed: ext4 answers EPERM there (Linux
            // 6.18), tmpfs only when the file gets its name.
            Err(Errno::PERM) if fstat(&directory).is_ok_and(|stat| stat.st_nlink == 0) => {
                Err(Errno::NOENT.into())
            }
            Err(errno) => Err(errno.into()),
        }
    }

    /// The same, with a draft's name from the beginning: for files that others open by it.
    ///
    /// # Errors
    /// openat(2).
    pub fn begin_named(directory: Directory, wanted: &OsStr) -> io::Result<Draft> {
        let name = draft_name(wanted);
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(openat(&directory, &name, flags, MODE)?);
        Ok(Draft::of(file, directory, Some(name), wanted))
    }

    fn of(file: File, directory: Directory, name: Option<OsString>, wanted: &OsStr) -> Draft {
        // A file system without locks keeps the file all the same; no run removes it as abandoned.
        let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
        let identity = Identity::of(&file).ok();
        Draft { file, at: DraftName { directory, name, identity }, wanted: wanted.to_owned() }
    }

    /// The draft's own name in its directory, where it has one.
    pub fn name(&self) -> Option<&OsStr> {
        self.at.name.as_deref()
    }

    /// To be written, by position or from its start.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Gives it this mode.
    ///
    /// # Errors
    /// fchmod(2).
    pub fn set_mode(&self, mode: Mode) -> io::Result<()> {
        Ok(fchmod(&self.file, mode)?)
    }

    /// Allocates so many bytes now, so that a full file system shows before a long run and not
    /// at its end (fallocate(2), `FALLOC_FL_KEEP_SIZE`). Where that is not known nothing happens.
    ///
    /// # Errors
    /// ENOSPC, EDQUOT and EFBIG.
    pub fn reserve(&self, bytes: u64) -> io::Result<()> {
        match fallocate(&self.file, FallocateFlags::KEEP_SIZE, 0, bytes) {
            Err(errno @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) => Err(errno.into()),
            _ => Ok(()),
        }
    }

    /// Writes `bytes` as all of the file and puts them on storage.
    ///
    /// # Errors
    /// write(2), ftruncate(2), fsync(2).
    pub fn fill(&self, bytes: &[u8]) -> io::Result<()> {
        self.fill_unsynced(bytes)?;
        self.file.sync_all()
    }

    /// The same without waiting for storage: it outlives this process, not the machine.
    ///
    /// # Errors
    /// The kernel's.
    pub fn fill_unsynced(&self, bytes: &[u8]) -> io::Result<()> {
        use std::os::unix::fs::FileExt as _;
        self.file.write_all_at(bytes, 0)?;
        // Gives back what was reserved behind them as well.
        self.file.set_len(bytes.len() as u64)
    }

    /// Gives it the name that it is to have, if nothing has that. Its lock is held until the file
    /// is closed.
    ///
    /// # Errors
    /// [`Unnamed`], with the draft.
    pub fn give_name(self) -> Result<File, Box<Unnamed>> {
        let wanted = self.wanted.clone();
        self.give_name_as(&wanted)
    }

    /// The same with another name.
    ///
    /// # Errors
    /// As for [`Draft::give_name`].
    pub fn give_name_as(mut self, name: &OsStr) -> Result<File, Box<Unnamed>> {
        let named = match &self.at.name {
            Some(own) => self.at.directory.rename_new(own, name),
            None => match self.link(name) {
                Err(errno) if errno != Errno::EXIST => self.copy(name),
                linked => linked,
            },
        };
        if let Err(errno) = named {
            return Err(Box::new(Unnamed { draft: self, error: errno.into() }));
        }
        Ok(self.named())
    }

    /// Replaces the file `old` that the caller made, or under its name where nothing
    /// has that. Any other file of that name stays as it is.
    ///
    /// # Errors
    /// [`Unnamed`]; EEXIST where another file has the name.
    pub fn replace(mut self, old: Option<&File>) -> Result<File, Box<Unnamed>> {
        let wanted = self.wanted.clone();
        let Some(old) = old else { return self.give_name() };
        match self.exchange(&wanted, old) {
            Ok(true) => Ok(self.named()),
            Ok(false) => self.give_name(),
            Err(error) => Err(Box::new(Unnamed { draft: self, error })),
        }
    }

    /// Whether it replaced `old`; false where nothing has the name.
    fn exchange(&mut self, wanted: &OsStr, old: &File) -> io::Result<bool> {
        let old = Identity::of(old)?;
        match self.at.directory.look(wanted)? {
            None => return Ok(false),
            Some(found) if found.identity != old => return Err(Errno::EXIST.into()),
            Some(_) => {}
        }
        let own = self.own_name()?;
        self.swap(&own, wanted, old)
    }

    /// The draft's own name; it gets one where it has none.
    fn own_name(&mut self) -> io::Result<OsString> {
        if self.at.name.is_none() {
            let own = draft_name(&self.wanted);
            match self.link(&own) {
                Ok(()) => self.at.name = Some(own),
                Err(_) => self.become_named()?,
            }
        }
        Ok(self.at.name.clone().ok_or(Errno::NOENT)?)
    }

    /// Exchanges the names and then looks at what came out, so that a file which took the name a
    /// moment before is not lost. Where the file system can't exchange (`RENAME_EXCHANGE`, Linux
    /// 3.15; NFS), the old file goes first, and for a moment nothing has the name.
    fn swap(&self, own: &OsStr, wanted: &OsStr, old: Identity) -> io::Result<bool> {
        let directory = &self.at.directory;
        let exchange = || renameat_with(directory, own, directory, wanted, RenameFlags::EXCHANGE);
        match exchange() {
            Ok(()) => {}
            Err(Errno::INVAL | Errno::NOSYS) => return self.step_in(wanted, old),
            Err(Errno::NOENT) => return Ok(false),
            Err(errno) => return Err(errno.into()),
        }
        if directory.is(own, old)? {
            unlinkat(directory, own, AtFlags::empty())?;
            return Ok(true);
        }
        let back = exchange();
        Err(self.put_back(own, wanted, back))
    }

    /// Makes sure that no other file keeps the draft's own name, by which the next run would
    /// take it for an abandoned draft. `back` is what came of the second exchange. The answer is
    /// why the draft has no name.
    fn put_back(&self, own: &OsStr, wanted: &OsStr, back: Result<(), Errno>) -> io::Error {
        let directory = &self.at.directory;
        let is_ours = self
            .at
            .identity
            .is_some_and(|identity| back.is_ok() && directory.is(own, identity).unwrap_or(false));
        // Where another process removed what had the name, it is free again.
        if is_ours || directory.rename_new(own, wanted).is_ok() {
            return Errno::EXIST.into();
        }
        for number in 1..1000 {
            let mut name = wanted.to_owned();
            name.push(format!(".{number}"));
            match directory.rename_new(own, &name) {
                Err(Errno::EXIST) => {}
                Err(Errno::NOENT) => return Errno::EXIST.into(),
                Err(_) => break,
                Ok(()) => return stays_as(directory.path().join(name)),
            }
        }
        stays_as(directory.path().join(own))
    }

    /// The same without an exchange: whether that of the draft is to come, under a name that is
    /// free now.
    fn step_in(&self, wanted: &OsStr, old: Identity) -> io::Result<bool> {
        match self.at.directory.take_away(wanted, old)? {
            Removed::Gone => Ok(false),
            Removed::Kept(path) if path == self.at.directory.path().join(wanted) => {
                Err(Errno::EXIST.into())
            }
            Removed::Kept(path) => Err(stays_as(path)),
        }
    }

    /// Gives a file without a name this one (open(2), `O_TMPFILE`).
    fn link(&self, name: &OsStr) -> Result<(), Errno> {
        let link = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        linkat(CWD, link, &self.at.directory, name, AtFlags::SYMLINK_FOLLOW)
    }

    /// The same where a file without a name can't get one, as without `/proc`: by a copy that has a
    /// draft's name first.
    fn copy(&mut self, name: &OsStr) -> Result<(), Errno> {
        let copied = self.become_named();
        copied.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        if let Some(own) = self.at.name.clone() {
            self.at.directory.rename_new(&own, name)?;
        }
        self.at.name = None;
        Ok(())
    }

    /// Becomes a copy of itself that has a draft's name.
    fn become_named(&mut self) -> io::Result<()> {
        let mut copy = Draft::begin_named(self.at.directory.try_clone()?, &self.wanted)?;
        self.file.rewind()?;
        io::copy(&mut self.file, &mut copy.file)?;
        copy.file.sync_all()?;
        *self = copy;
        Ok(())
    }

    /// The file, now that its name is the one that was wanted.
    fn named(mut self) -> File {
        self.at.name = None;
        self.at.directory.sync();
        self.file
    }
}

impl Directory {
    /// Drafts of files of this name that processes of this user left when they were killed, open
    /// and locked. Only the caller can judge their contents: [`Directory::remove`] takes one away.
    ///
    /// # Errors
    /// getdents(2).
    pub fn abandoned_drafts(&self, wanted: &OsStr) -> io::Result<Vec<AbandonedDraft>> {
        let names = self.names()?;
        let drafts = names.into_iter().filter(|name| is_draft_of(name, wanted));
        Ok(drafts.filter_map(|name| self.abandoned(name)).collect())
    }

    /// Removes the abandoned drafts of this name that are `ours` by what is in them; where the
    /// others are.
    pub fn clear_drafts(&self, wanted: &OsStr, ours: impl Fn(&File) -> bool) -> Vec<PathBuf> {
        let mut stay = Vec::new();
        for abandoned in self.abandoned_drafts(wanted).unwrap_or_default() {
            let removed = ours(&abandoned.file)
                && Identity::of(&abandoned.file)
                    .and_then(|identity| self.remove(&abandoned.name, identity))
                    .is_ok_and(|removed| removed == Removed::Gone);
            if !removed {
                stay.push(self.path().join(&abandoned.name));
            }
        }
        stay
    }

    fn abandoned(&self, name: OsString) -> Option<AbandonedDraft> {
        let file = self.mine(&name).ok()??.into_file();
        flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
        Some(AbandonedDraft { name, file })
    }
}

/// Two files of others had the name, one after the other.
fn stays_as(path: PathBuf) -> io::Error {
    let what = "another file took the name during the run, and is kept as";
    io::Error::new(io::ErrorKind::AlreadyExists, format!("{what} {}", path.display()))
}

fn draft_name(wanted: &OsStr) -> OsString {
    let mut name = OsString::from(".");
    name.push(wanted);
    name.push(format!(".{}{ENDING}", random_name()));
    name
}

/// Whether a name is one that [`draft_name`] makes.
pub(crate) fn is_draft_of(name: &OsStr, wanted: &OsStr) -> bool {
    let middle = || {
        let rest = name.as_bytes().strip_prefix(b".")?.strip_prefix(wanted.as_bytes())?;
        rest.strip_prefix(b".")?.strip_suffix(ENDING.as_bytes())
    };
    middle().is_some_and(|part| part.len() == 16 && part.iter().all(u8::is_ascii_hexdigit))
}

#[cfg(test)]
mod tests;
