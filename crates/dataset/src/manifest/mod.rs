//! How gpuio identifies its own files.
//!
//! Each directory with such files has a `.gpuio-files.json`. A file is known as ours if its name is
//! listed there with its device, inode and time of birth, and nothing of it changed since: size,
//! time of last change, and the time of the inode's last change, which only the kernel sets. Where
//! anything differs, or a run that died left it in use, what the file holds has to prove whose it
//! is (`Claim::Doubtful`, `content`).
//!
//! The list is trusted only where it could not have been written by a user who may not write the
//! file itself: its owner must be the file's owner or this process's user. It is read, locked and
//! replaced in the directory that is held open, no link being followed. It is replaced as a whole
//! (`RENAME_EXCHANGE`, rename(2)) under flock(2) of a lock file in the same directory, so readers
//! need no lock. The file that is replaced or removed is the very one that was read: a list that is
//! malformed, and any file that took its name at the same time, stays.
//!
//! Device numbers of network and some local file systems change when they are mounted anew, and
//! differ between hosts. So a file may also be on the device that its list is on now: the list is
//! its neighbour in the directory, and inode, time of birth and all else must agree as before. A
//! file system that numbers inodes anew on each host or mount makes them other files, which costs a
//! `--overwrite` and no data.

mod error;
mod store;

use std::collections::{BTreeMap, btree_map};
use std::ffi::OsStr;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gpuio_base::pattern::{Key, Repeats, Salt};
use gpuio_host::statx::Stamp;
use gpuio_host::target::{Directory, ReopenError, Tables};
use serde::{Deserialize, Serialize};

use super::content::{self, Looks};
use super::held::{DirEntry, Held};
use super::look::AbsentFiles;
use super::ranges::{covers, joined};
use super::{Identity, identity_of};
pub use error::ManifestError;
use store::List;
pub use store::{parse, print};

/// The name of the list in each directory.
pub const FILE_NAME: &str = ".gpuio-files.json";

/// The list of a directory and its lock, where it lists none but files of these names: who removes
/// them removes it too. Empty where it lists others or is not read.
pub fn lists_only(directory: &Path, names: &[&str]) -> Vec<PathBuf> {
    let list = directory.join(FILE_NAME);
    let read = || parse(&list, &std::fs::read(&list).ok()?).ok();
    let only = read().is_some_and(|all| all.iter().all(|one| names.contains(&&*one.name)));
    if only { vec![list, directory.join(store::LOCK_NAME)] } else { Vec::new() }
}

/// All bytes of a file, however long it is.
const ALL: Range<u64> = 0..u64::MAX;

/// Longest file that is looked at once more while the list is locked, where it changed since it was
/// checked; others wait 10 s for the lock. A longer one has to be checked again, by a new run.
const MOST_UNDER_LOCK: u64 = 1 << 30;

/// One file of ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Name within the directory.
    pub name: String,
    /// Device, `st_dev` of stat(2).
    pub dev: u64,
    /// Inode number.
    pub ino: u64,
    /// Size in bytes when it was last finalized.
    pub size: u64,
    /// Time of last change then, nanoseconds since 1970-01-01 UTC.
    pub mtime_ns: i64,
    /// Time of the inode's last change then, likewise; absent in lists of format 1.
    #[serde(default)]
    pub ctime_ns: Option<i64>,
    /// When the inode came to be, likewise; absent where the file system does not keep it.
    #[serde(default)]
    pub birth_ns: Option<i64>,
    /// Number of the pattern's salt.
    pub salt: u64,
    /// Which words of it repeat (`Repeats::bits`); absent where none does.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub repeats: u64,
    /// The file's number in the pattern.
    pub file_number: u64,
    /// Whether all of its bytes are that pattern.
    pub pattern: bool,
    /// Where it is that pattern, begin and end of each range, if not all of it is; absent where
    /// none is known to be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<(u64, u64)>,
    /// Whether a run is writing it now, or crashed while it did.
    pub in_use: bool,
    /// The run that has it in use, where several processes do: a random word that only they know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Entry {
    /// Salt of the pattern. Words that repeat as no pattern's do are taken for none: the file is
    /// then found not to hold it.
    fn salt(&self) -> Salt {
        let repeats = Repeats::from_bits(self.repeats).unwrap_or_default();
        Salt { number: self.salt, repeats }
    }

    /// The file that the entry is about.
    pub fn identity(&self) -> Identity {
        Identity { dev: self.dev, ino: self.ino }
    }

    /// Whether the entry is about this file, changed or not. `list_dev` is the device of the list.
    fn is_about(&self, found: &Stamp, list_dev: Option<u64>) -> bool {
        let born = self.birth_ns.zip(found.birth_ns);
        self.ino == found.ino
            && (self.dev == found.dev || list_dev == Some(found.dev))
            && born.is_none_or(|(listed, now)| listed == now)
    }

    /// Whether the file is unchanged since it was listed.
    fn is_unchanged(&self, found: &Stamp, list_dev: Option<u64>) -> bool {
        let times = (self.size, self.mtime_ns, self.ctime_ns);
        self.is_about(found, list_dev)
            && !self.in_use
            && times == (found.size, found.mtime_ns, Some(found.ctime_ns))
    }

    /// The key of the pattern that is listed.
    fn key(&self) -> Key {
        gpuio_base::pattern::file_key(self.salt(), self.file_number)
    }

    /// Notes which file it is, and in which state.
    fn note(&mut self, found: &Stamp) {
        Identity { dev: self.dev, ino: self.ino } = identity_of(found);
        (self.size, self.mtime_ns) = (found.size, found.mtime_ns);
        (self.ctime_ns, self.birth_ns) = (Some(found.ctime_ns), found.birth_ns);
    }

    /// Whether the file's bytes are ours, and all of them the pattern that is listed.
    pub(super) fn prove(
        &self,
        held: &Held,
        looks: Option<&Looks<'_>>,
    ) -> Result<content::Proof, ReopenError> {
        // A file that held its pattern from end to end had no unwritten part.
        let zeros = self.in_use || !self.pattern;
        content::prove(held, self.key(), zeros, looks)
    }

    /// Whether the whole file is known to hold this pattern.
    pub fn holds(&self, pattern: Holds) -> bool {
        self.pattern && !self.parts_of(pattern).is_empty()
    }

    /// The bytes that are known to be this pattern.
    pub(super) fn parts_of(&self, pattern: Holds) -> Vec<Range<u64>> {
        let Holds { salt, file_number } = pattern;
        let same = self.salt() == salt && self.file_number == file_number;
        if same { self.known() } else { Vec::new() }
    }

    /// The bytes that are known to be the pattern that is listed.
    fn known(&self) -> Vec<Range<u64>> {
        match (self.in_use, self.pattern) {
            (true, _) => Vec::new(),
            (false, true) => vec![ALL],
            (false, false) => self.parts.iter().map(|(begin, end)| *begin..*end).collect(),
        }
    }
}

/// The pattern that a file holds, from its first byte to its last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holds {
    /// Salt of the data set.
    pub salt: Salt,
    pub file_number: u64,
}

/// A pattern, and where a file is known to hold it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    pub holds: Holds,
    /// The bytes that are that pattern.
    pub parts: Vec<Range<u64>>,
}

impl Known {
    pub fn whole(holds: Holds) -> Known {
        Known { holds, parts: vec![ALL] }
    }
}

/// The entry in the list of a directory for a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Claim {
    /// Nothing: there is no list, or the file is not in it, or the list may not be trusted.
    None,
    /// It is ours, and it is unchanged since it was listed.
    Unchanged(Entry),
    /// It was ours: it changed since, or a run that died left it in use.
    Doubtful(Entry),
    /// A file of ours had its name, and this is another one.
    Another,
}

impl Claim {
    /// The key of the pattern that all of this part was when the file was last listed, whatever
    /// became of its bytes since; `None` where that is not known, or the file is another one.
    pub(super) fn key(&self, part: &Range<u64>) -> Option<Key> {
        match self {
            Claim::Unchanged(entry) | Claim::Doubtful(entry) => {
                covers(&entry.known(), part).then(|| entry.key())
            }
            Claim::None | Claim::Another => None,
        }
    }
}

/// Directories that are held, and their lists, so that a look at many files of a directory opens
/// it and reads its list once. The lists say what was true when they were read: [`begin`] looks
/// again, under the lock.
#[derive(Debug, Default)]
pub struct Lists<'a> {
    directories: BTreeMap<PathBuf, Arc<Directory>>,
    lists: BTreeMap<Identity, Option<List>>,
    /// The kernel's uses of files, and mounts.
    pub(super) tables: Tables,
    /// The common facts of the absent files of each directory, by its path as it is written.
    pub(super) absent: BTreeMap<PathBuf, AbsentFiles>,
    /// Block devices, by `st_rdev`, that this run holds exclusively.
    pub(super) claimed: Vec<u64>,
    /// Who is notified of looks at what files hold.
    pub(super) looks: Option<&'a Looks<'a>>,
}

impl<'a> Lists<'a> {
    /// For a run that holds these devices, by `st_rdev`, exclusively.
    pub fn with(looks: Option<&'a Looks<'a>>, claimed: Vec<u64>) -> Lists<'a> {
        Lists { claimed, looks, ..Lists::default() }
    }

    /// The directory of this name, opened when it is first requested.
    pub(super) fn directory(
        &mut self,
        path: &Path,
        open: impl FnOnce() -> io::Result<Directory>,
    ) -> io::Result<Arc<Directory>> {
        if let Some(known) = self.directories.get(path) {
            return Ok(Arc::clone(known));
        }
        let opened = Arc::new(open()?);
        self.directories.insert(path.to_owned(), Arc::clone(&opened));
        Ok(opened)
    }

    /// The list of a directory. Errors are not kept: the next look returns them again.
    fn of(&mut self, dir: &Directory) -> Result<Option<&List>, ManifestError> {
        let which = identity_of(&dir.stamp());
        Ok(match self.lists.entry(which) {
            btree_map::Entry::Occupied(known) => known.into_mut().as_ref(),
            btree_map::Entry::Vacant(new) => new.insert(store::read(dir)?).as_ref(),
        })
    }

    /// The list's entry for the file with this name, which was found like this.
    pub(super) fn claim(
        &mut self,
        dir_entry: &DirEntry,
        found: &Stamp,
    ) -> Result<Claim, ManifestError> {
        let Some(name) = dir_entry.name.to_str() else { return Ok(Claim::None) };
        let listed =
            self.of(&dir_entry.dir)?.and_then(|list| list.entry(name).map(|one| (list, one)));
        Ok(match listed {
            Some((list, entry)) if list.proves_ownership(found) => match entry.clone() {
                entry if entry.is_unchanged(found, list.dev()) => Claim::Unchanged(entry),
                entry if entry.is_about(found, list.dev()) => Claim::Doubtful(entry),
                _ => Claim::Another,
            },
            _ => Claim::None,
        })
    }

    /// Whether the directory's list, if there is one, can be used.
    ///
    /// # Errors
    /// [`ManifestError`] for a list that cannot be read or is malformed.
    pub(super) fn check(&mut self, dir: &Directory) -> Result<(), ManifestError> {
        self.of(dir).map(|_| ())
    }
}

/// Marks files of ours as in use, before their first write. From here until [`finalize`] what they
/// hold is what proves them ours, and no pattern is relied on.
///
/// # Errors
/// [`ManifestError::NotOurs`] when a file is not ours, and the list's own errors. Files of other
/// directories may be marked then, which does no harm.
pub fn begin(files: &[Arc<Held>]) -> Result<(), ManifestError> {
    let files: Vec<_> = files.iter().map(|file| (file.as_ref(), Take::Again)).collect();
    take(&files, None)
}

/// Lists size and times of change anew after the last write, with the pattern that the file holds,
/// and where. Call it after the last descriptor that could write was closed.
///
/// # Errors
/// [`ManifestError::Moved`] when another file has taken a name, after all others were listed, and
/// the list's own errors.
pub fn finalize(files: &[(Arc<Held>, Option<Known>)]) -> Result<(), ManifestError> {
    let moved = std::cell::RefCell::new(None);
    let files = files.iter().map(|(file, known)| (file.as_ref(), known.as_ref()));
    each_directory(files, |list, held, dir_entry, name, known| {
        let found = look(held)?;
        let stays = dir_entry.stamp().is_ok_and(|named| named.is_same_file(&found));
        let on = list.dev();
        let entry = list.entry_mut(name).filter(|entry| stays && entry.is_about(&found, on));
        let Some(entry) = entry else {
            moved.borrow_mut().get_or_insert(ManifestError::Moved { path: dir_entry.path() });
            return Ok(());
        };
        entry.note(&found);
        (entry.in_use, entry.run) = (false, None);
        (entry.pattern, entry.parts) = (false, Vec::new());
        if let Some(Known { holds: Holds { salt, file_number }, parts }) = known {
            (entry.salt, entry.repeats) = (salt.number, salt.repeats.bits());
            entry.file_number = *file_number;
            entry.pattern = covers(parts, &(0..found.size));
            if !entry.pattern {
                let cut = |part: &Range<u64>| part.start..part.end.min(found.size);
                let parts = joined(parts.iter().map(cut).collect());
                entry.parts = parts.into_iter().map(|part| (part.start, part.end)).collect();
            }
        }
        Ok(())
    })?;
    moved.into_inner().map_or(Ok(()), Err)
}

/// How a file comes to be one that this process writes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Take {
    /// It has just been created; it is listed with the pattern that it will hold.
    New(Holds),
    /// It is ours already.
    Again,
}

/// Lists files as in use before their first write, with one change of each directory's list.
/// `run` is the word of a run of several processes.
///
/// # Errors
/// As for [`begin`].
pub(super) fn take(files: &[(&Held, Take)], run: Option<&str>) -> Result<(), ManifestError> {
    each_directory(files.iter().copied(), |list, held, dir_entry, name, how| {
        match how {
            Take::New(holds) => add(list, held, name, holds)?,
            Take::Again => mark(list, held, dir_entry, name)?,
        }
        if let Some(entry) = list.entry_mut(name) {
            entry.run = run.map(str::to_owned);
        }
        Ok(())
    })
}

/// Whether the run of this word has the file of this name in use, by the list beside it as it is
/// now. The file's identity on the host that listed it is not compared: it is the same directory,
/// and a name in it is one file.
pub(super) fn is_in_use_by(
    run: &str,
    dir_entry: &DirEntry,
    found: &Stamp,
) -> Result<bool, ManifestError> {
    let Some(name) = dir_entry.name.to_str() else { return Ok(false) };
    let list = store::read(&dir_entry.dir)?;
    let of_run = |entry: &Entry| entry.in_use && entry.run.as_deref() == Some(run);
    Ok(list
        .is_some_and(|list| list.proves_ownership(found) && list.entry(name).is_some_and(of_run)))
}

fn add(list: &mut List, held: &Held, name: &str, holds: Holds) -> Result<(), ManifestError> {
    let mut entry = Entry {
        name: name.to_owned(),
        dev: 0,
        ino: 0,
        size: 0,
        mtime_ns: 0,
        ctime_ns: None,
        birth_ns: None,
        salt: holds.salt.number,
        repeats: holds.salt.repeats.bits(),
        file_number: holds.file_number,
        pattern: false,
        parts: Vec::new(),
        in_use: true,
        run: None,
    };
    entry.note(&look(held)?);
    list.files.retain(|entry| entry.name != name);
    list.files.push(entry);
    Ok(())
}

/// The file is still what was checked; or another run has it in hand, and it still holds what only
/// gpuio writes.
fn mark(
    list: &mut List,
    held: &Held,
    dir_entry: &DirEntry,
    name: &str,
) -> Result<(), ManifestError> {
    let not_ours = || ManifestError::NotOurs { path: held.path().to_owned() };
    let found = held.look().map_err(|_| not_ours())?;
    if !dir_entry.stamp().is_ok_and(|named| named.is_same_file(&found)) {
        return Err(not_ours());
    }
    let believed = list.proves_ownership(&found);
    let on = list.dev();
    let entry = list.entry_mut(name).filter(|entry| believed && entry.is_about(&found, on));
    let entry = entry.ok_or_else(not_ours)?;
    let same = entry.is_unchanged(&found, on) || found.is_unchanged(&held.stamp());
    let short = found.size <= MOST_UNDER_LOCK;
    let proven = || entry.in_use && short && entry.prove(held, None).is_ok_and(|p| p.is_ours());
    if !(same || proven()) {
        return Err(not_ours());
    }
    entry.in_use = true;
    (entry.pattern, entry.parts) = (false, Vec::new());
    Ok(())
}

/// Takes files off the list: the files themselves may be gone. So do entries whose names nothing
/// has any more: a run that was killed between removing a file and this left them. An empty list
/// is removed.
pub(super) fn forget(files: &[(&DirEntry, Identity)]) -> Result<(), ManifestError> {
    let mut directories: BTreeMap<Identity, (&DirEntry, Vec<_>)> = BTreeMap::new();
    for (dir_entry, identity) in files {
        let Some(name) = dir_entry.name.to_str() else { continue };
        let which = identity_of(&dir_entry.dir.stamp());
        directories.entry(which).or_insert((dir_entry, Vec::new())).1.push((name, *identity));
    }
    for (dir_entry, gone) in directories.into_values() {
        store::change(&dir_entry.dir, |list| {
            let absent = |name: &str| {
                let found = dir_entry.dir.stamp_of(OsStr::new(name));
                found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
            };
            list.files.retain(|entry| {
                let named =
                    |(name, id): &(&str, Identity)| entry.name == *name && entry.identity() == *id;
                !gone.iter().any(named) && !absent(&entry.name)
            });
            Ok(())
        })?;
    }
    Ok(())
}

/// As [`forget`], for files whose directories are not held.
pub(super) fn forget_named(files: &[(&Path, Identity)]) -> Result<(), ManifestError> {
    let mut lists = Lists::default();
    let mut gone = Vec::with_capacity(files.len());
    for (path, identity) in files {
        let (Some(above), Some(name)) = (path.parent(), path.file_name()) else { continue };
        let dir = lists.directory(above, || Directory::open(above));
        let dir = dir.map_err(|source| ManifestError::Call {
            call: "open",
            path: above.to_owned(),
            source,
            meaning: "the list of files there could not be brought up to date".to_owned(),
        })?;
        gone.push((DirEntry { dir, name: name.to_owned() }, *identity));
    }
    forget(&gone.iter().map(|(dir_entry, identity)| (dir_entry, *identity)).collect::<Vec<_>>())
}

/// Applies `act` to each file, with one locked change for each directory.
fn each_directory<'a, T: Copy>(
    files: impl IntoIterator<Item = (&'a Held, T)>,
    act: impl Fn(&mut List, &Held, &DirEntry, &str, T) -> Result<(), ManifestError>,
) -> Result<(), ManifestError> {
    let mut directories: BTreeMap<Identity, Vec<(&Held, &DirEntry, T)>> = BTreeMap::new();
    for (held, with) in files {
        let not_ours = || ManifestError::NotOurs { path: held.path().to_owned() };
        let dir_entry = held.dir_entry().ok_or_else(not_ours)?;
        let which = identity_of(&dir_entry.dir.stamp());
        directories.entry(which).or_default().push((held, dir_entry, with));
    }
    for files in directories.into_values() {
        let Some((_, first, _)) = files.first() else { continue };
        store::change(&first.dir, |list| {
            for (held, dir_entry, with) in &files {
                let name = dir_entry.name.to_str();
                let name = name.ok_or_else(|| ManifestError::Name { path: dir_entry.path() })?;
                act(list, held, dir_entry, name, *with)?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn look(held: &Held) -> Result<Stamp, ManifestError> {
    held.look().map_err(|source| ManifestError::Call {
        call: "statx",
        path: held.path().to_owned(),
        source,
        meaning: "the file was there and is gone; run again".to_owned(),
    })
}

#[cfg(test)]
impl Lists<'_> {
    /// The entry of an unchanged file, or that is in use.
    pub(crate) fn find(&mut self, path: &Path) -> Result<Option<Entry>, ManifestError> {
        let Ok(held) = Held::named(path) else { return Ok(None) };
        let Some(dir_entry) = held.dir_entry() else { return Ok(None) };
        Ok(match self.claim(dir_entry, &held.stamp())? {
            Claim::Unchanged(entry) => Some(entry),
            Claim::Doubtful(entry) if entry.in_use => Some(entry),
            _ => None,
        })
    }
}

/// Changes the entries of the list in the directory of a file.
#[cfg(test)]
pub(crate) fn change_list(
    held: &Held,
    act: impl FnOnce(&mut Vec<Entry>),
) -> Result<(), ManifestError> {
    let Some(dir_entry) = held.dir_entry() else { return Ok(()) };
    store::change(&dir_entry.dir, |list| {
        act(&mut list.files);
        Ok(())
    })
}

/// As [`Lists::find`], with the list as it is now.
#[cfg(test)]
pub(crate) fn find(path: &Path) -> Result<Option<Entry>, ManifestError> {
    Lists::default().find(path)
}
