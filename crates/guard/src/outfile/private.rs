//! A directory below a shared one, `$TMPDIR` for instance, that only its maker may enter, with an
//! owner: a file in it whose lock dies with the process.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, flock, fstat, mkdirat};
use rustix::io::Errno;

use crate::outfile::directory::{AWAY, Directory, Identity, Removed};
use crate::outfile::draft::{Draft, is_draft_of};
use crate::outfile::random_name;

/// The file in the directory that is locked while its process lives.
const OWNER: &str = ".gpuio-owner";
/// How it begins, and the most bytes that are read of one.
const OWNER_TEXT: &str = "gpuio, process ";
const MOST_OWNER: u64 = 64;
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
        draft.fill(format!("{OWNER_TEXT}{}\n", std::process::id()).as_bytes())?;
        let owner = draft.give_name().map_err(|unnamed| unnamed.error)?;
        Ok((inside, owner))
    }

    pub fn path(&self) -> PathBuf {
        self.parent.path().join(&self.name)
    }

    /// It, open.
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
            let _ = remove_owner_on_its_way(&inside);
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

/// Removes the owner file of a process that was killed while it made or removed it: the first and
/// last file of all, under a name that it has for a moment.
fn remove_owner_on_its_way(inside: &Directory) -> io::Result<()> {
    let names = inside.names()?;
    let [name] = names.as_slice() else { return Ok(()) };
    let Some((text, owner)) = inside.read(name, MOST_OWNER)? else { return Ok(()) };
    let text = String::from_utf8_lossy(&text);
    let is_owner = text.starts_with(OWNER_TEXT)
        && name.to_str().is_some_and(|name| name.starts_with(AWAY))
        || (text.starts_with(OWNER_TEXT) || OWNER_TEXT.starts_with(&*text))
            && is_draft_of(name, OsStr::new(OWNER));
    if is_owner && flock(&owner, FlockOperation::NonBlockingLockExclusive).is_ok() {
        inside.remove(name, Identity::of(&owner)?)?;
    }
    Ok(())
}

/// The directory of this path, made with mode 0700 where nothing has its name: for names that
/// others can guess, and may have taken. Nothing in it was put there by another user.
///
/// # Errors
/// mkdirat(2), openat(2): of a link too; `EPERM` where it is another user's, or open to others.
pub fn own_directory(path: &Path) -> io::Result<Directory> {
    let (above, name) = Directory::of(path)?;
    match mkdirat(&above, &name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let inside = above.below(&name)?;
    own(&inside)?;
    Ok(inside)
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, symlink};

    use super::*;

    #[test]
    fn a_name_that_is_taken_is_not_used_as_an_own_directory() {
        let parent = tempfile::tempdir().unwrap();
        let at = |name: &str| parent.path().join(name);
        for _ in 0..2 {
            own_directory(&at("own")).unwrap();
            assert_eq!(std::fs::metadata(at("own")).unwrap().mode() & 0o7777, 0o700);
        }
        symlink(at("own"), at("link")).unwrap();
        symlink(at("absent"), at("nowhere")).unwrap();
        std::fs::write(at("file"), "").unwrap();
        for (name, mode) in [("group", 0o750), ("all", 0o1777), ("search", 0o701)] {
            std::fs::DirBuilder::new().mode(mode).create(at(name)).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
            std::fs::set_permissions(at(name), mode).unwrap();
        }
        for name in ["link", "nowhere", "file", "group", "all", "search"] {
            own_directory(&at(name)).unwrap_err();
        }
        assert!(!at("absent").exists());
    }

    /// The rest of a directory, by what a killed process had done to its owner file.
    fn left(of: impl Fn(&Path)) -> Vec<OsString> {
        let parent = tempfile::tempdir().unwrap();
        let private = Private::make(parent.path(), "test").unwrap();
        let path = private.path();
        drop(private);
        of(&path);
        assert!(Private::abandoned(parent.path(), "test").unwrap().is_empty());
        let found = std::fs::read_dir(path).into_iter().flatten();
        found.map(|one| one.unwrap().file_name()).collect()
    }

    #[test]
    fn a_process_that_was_killed_beside_its_owner_file_leaves_nothing() {
        let rename = |name: &'static str, text: Option<&'static str>| {
            move |path: &Path| {
                std::fs::rename(path.join(OWNER), path.join(name)).unwrap();
                if let Some(text) = text {
                    std::fs::write(path.join(name), text).unwrap();
                }
            }
        };
        let (away, draft) =
            (".gpuio-gone-0123456789abcdef", "..gpuio-owner.0123456789abcdef.draft");
        assert!(left(rename(away, None)).is_empty());
        assert!(left(rename(draft, None)).is_empty());
        assert!(left(rename(draft, Some(""))).is_empty());
        assert!(left(|path| std::fs::remove_file(path.join(OWNER)).unwrap()).is_empty());
        // A file that may be anybody's stays.
        assert_eq!(left(rename(away, Some("mine"))), [away]);
        assert_eq!(left(rename(draft, Some("mine"))), [draft]);
        assert_eq!(left(rename("own", None)), ["own"]);
        let two = |path: &Path| {
            rename(away, None)(path);
            std::fs::write(path.join("own"), "mine").unwrap();
        };
        assert_eq!(left(two).len(), 2);
    }
}
