//! A directory below a shared one, `$TMPDIR` for instance, that only its maker may enter, with an
//! owner: a file in it whose lock dies with the process.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, flock, fstat, mkdirat};
use rustix::io::Errno;

use crate::directory::{Directory, Identity, Removed};
use crate::draft::Draft;
use crate::random_name;

/// The file in the directory that is locked while its process lives.
const OWNER: &str = ".gpuio-owner";
/// Another process that clears up takes an empty directory at most once.
const TRIES: u32 = 100;

/// A directory of this process's own, mode 0700. It stays when this is dropped: what is in it goes
/// by [`Private::remove`].
#[derive(Debug)]
pub struct Private {
    parent: Directory,
    name: OsString,
    inside: Directory,
    /// Holds the lock.
    owner: File,
}

/// One whose process is gone, locked by this one.
pub type Abandoned = Private;

impl Private {
    /// Makes `PREFIX-RANDOM` in `parent`.
    ///
    /// # Errors
    /// As for [`Private::make_named`].
    pub fn make(parent: &Path, prefix: &str) -> io::Result<Private> {
        Private::make_named(parent, Private::name(prefix))
    }

    /// An unpredictable name of this prefix, which is free.
    #[must_use]
    pub fn name(prefix: &str) -> OsString {
        OsString::from(format!("{prefix}-{}", random_name()))
    }

    /// Makes a directory of this name, which [`Private::name`] chose earlier, in `parent`.
    ///
    /// # Errors
    /// mkdirat(2), openat(2), write(2).
    pub fn make_named(parent: &Path, name: OsString) -> io::Result<Private> {
        let parent = Directory::open(parent)?;
        for _ in 0..TRIES {
            mkdirat(&parent, &name, Mode::RWXU)?;
            match Private::write_owner(&parent, &name) {
                Ok((inside, owner)) => return Ok(Private { parent, name, inside, owner }),
                // Another process took the empty directory for an abandoned one.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Err(Errno::NOENT.into())
    }

    /// Puts the owner into a new directory. It is locked before it has its name.
    fn write_owner(parent: &Directory, name: &OsStr) -> io::Result<(Directory, File)> {
        let inside = parent.below(name)?;
        let (it, above) = (fstat(&inside)?, fstat(parent)?);
        // Some file systems give all files one owner, by mount option.
        if it.st_uid != rustix::process::geteuid().as_raw() && it.st_uid != above.st_uid {
            return Err(Errno::PERM.into());
        }
        let draft = Draft::begin(inside.try_clone()?, OsStr::new(OWNER))?;
        draft.fill(format!("gpuio, process {}\n", std::process::id()).as_bytes())?;
        let owner = draft.give_name().map_err(|unnamed| unnamed.error)?;
        Ok((inside, owner))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.parent.path().join(&self.name)
    }

    /// It, open.
    #[must_use]
    pub fn inside(&self) -> &Directory {
        &self.inside
    }

    /// Removes the regular files in it that are `ours` by their name, and the directory, if nothing
    /// else is in it. Whether all is gone.
    ///
    /// # Errors
    /// renameat2(2), unlinkat(2), getdents(2).
    pub fn remove(&self, ours: impl Fn(&OsStr) -> bool) -> io::Result<bool> {
        let mut all = true;
        for name in self.inside.names()?.iter().filter(|name| *name != OWNER) {
            let file = if ours(name) { self.inside.file(name).ok().flatten() } else { None };
            all &= match file {
                Some(file) => self.inside.remove(name, Identity::of(&file)?)? == Removed::Gone,
                None => false,
            };
        }
        // The owner stays with what is not ours, so that the next one finds it again.
        if !all {
            return Ok(false);
        }
        self.inside.remove(OsStr::new(OWNER), Identity::of(&self.owner)?)?;
        self.parent.remove_empty(&self.name)
    }

    /// Directories of this prefix in `parent` whose processes were killed: of this user, and with
    /// an owner file that no process has locked. Empty ones, of processes that were killed before
    /// they had one, are removed too.
    ///
    /// # Errors
    /// open(2), getdents(2).
    pub fn abandoned(parent: &Path, prefix: &str) -> io::Result<Vec<Abandoned>> {
        let names = Directory::open(parent)?.names()?;
        let ours = names.into_iter().filter(|name| is_named(name, prefix));
        Ok(ours.filter_map(|name| abandoned(parent, name)).collect())
    }
}

fn abandoned(parent: &Path, name: OsString) -> Option<Abandoned> {
    let parent = Directory::open(parent).ok()?;
    let inside = parent.below(&name).ok()?;
    own(&inside).ok()?;
    let owner = match inside.file(OsStr::new(OWNER)).ok()? {
        Some(owner) => owner,
        None => {
            // Whoever makes it just now makes another.
            let _ = parent.remove_empty(&name);
            return None;
        }
    };
    flock(&owner, FlockOperation::NonBlockingLockExclusive).ok()?;
    // It may have gone between open and lock.
    let same = inside.is(OsStr::new(OWNER), Identity::of(&owner).ok()?).ok()?;
    same.then_some(Private { parent, name, inside, owner })
}

/// That it belongs to this user and that no other user may enter it.
fn own(inside: &Directory) -> io::Result<()> {
    let stat = fstat(inside)?;
    let mine = stat.st_uid == rustix::process::geteuid().as_raw();
    if mine && stat.st_mode & 0o077 == 0 { Ok(()) } else { Err(Errno::PERM.into()) }
}

fn is_named(name: &OsStr, prefix: &str) -> bool {
    let rest = name.to_str().and_then(|name| name.strip_prefix(prefix)?.strip_prefix('-'));
    rest.is_some_and(|rest| rest.len() == 16 && rest.bytes().all(|byte| byte.is_ascii_hexdigit()))
}
