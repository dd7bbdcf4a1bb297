//! Finds a target and holds it, and says whose it is.

use std::io;
use std::path::{Path, PathBuf};

use gpuio_host::Root;
use gpuio_host::statx::Stamp;
use gpuio_host::target::{Danger, Directory, Opened, danger, examine_open};
use gpuio_record::facts::{TargetFacts, TargetKind as Found};
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::content::{Looks, find_key};
use super::held::{DirEntry, Held};
use super::manifest::{Claim, Entry, Lists, ManifestError};
use super::ownership::{Permit, Seen, Wanted, parent_can_be_made};
use super::refusal::Refusal;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Owner {
    /// Ours, with what is known of it.
    Ours(Entry),
    /// It was ours, or a file of ours had its name; what it holds now is not known to be ours, and
    /// why.
    Changed(String),
    /// Another owner's.
    Foreign,
}

/// The common facts of all absent files in one directory: nothing of it is found out twice.
#[derive(Debug)]
pub(crate) struct AbsentFiles {
    directory_exists: bool,
    /// The directory with its links followed.
    resolved: Option<PathBuf>,
    dangers: Vec<Danger>,
    parent_can_be_made: bool,
}

impl AbsentFiles {
    /// From what was found out about the first of them. Below a `--directory` no link is followed,
    /// so that an absent file is no link that leads nowhere.
    fn of(seen: &Seen, wanted: &Wanted) -> Option<AbsentFiles> {
        let Found::Absent { parent_exists } = seen.facts.kind else { return None };
        let resolved = seen.facts.resolved.as_deref().map(Path::new);
        (wanted.directory.is_some() && !seen.facts.symlink).then(|| AbsentFiles {
            directory_exists: parent_exists,
            resolved: resolved.and_then(|at| Some(at.parent()?.to_owned())),
            dangers: seen.dangers.clone(),
            parent_can_be_made: seen.parent_can_be_made,
        })
    }

    /// The same of another one, with its directory entry where the directory is there.
    fn seen(&self, wanted: &Wanted, dir_entry: Option<DirEntry>) -> Seen {
        let name = wanted.path.file_name().unwrap_or_default();
        let resolved = self.resolved.as_ref().map(|at| at.join(name));
        Seen {
            facts: TargetFacts {
                path: wanted.path.to_string_lossy().into_owned(),
                resolved: resolved.map(|at| at.to_string_lossy().into_owned()),
                symlink: false,
                kind: Found::Absent { parent_exists: self.directory_exists },
                mount: None,
                unchecked: Vec::new(),
            },
            dangers: self.dangers.clone(),
            held: None,
            dir_entry,
            owner: Ok(Owner::Foreign),
            key: None,
            has_holes: false,
            parent_can_be_made: self.parent_can_be_made,
        }
    }
}

/// A file that is absent like others of its directory, without another look at these. In a
/// directory that is there, its name is looked for.
fn absent(lists: &mut Lists<'_>, wanted: &Wanted) -> Option<Seen> {
    wanted.directory.as_ref()?;
    let known = lists.absent.get(wanted.path.parent()?)?;
    if !known.directory_exists {
        return Some(known.seen(wanted, None));
    }
    let (opened, dir_entry) = open(lists, wanted);
    let gone = opened.err().and_then(|error| Errno::from_io_error(&error)) == Some(Errno::NOENT);
    let known = lists.absent.get(wanted.path.parent()?).filter(|_| gone)?;
    Some(known.seen(wanted, Some(dir_entry?)))
}

/// Opens the target, once, and finds out all that a decision rests on. All reads go to the file
/// that was opened.
pub(super) fn look(
    lists: &mut Lists<'_>,
    wanted: &Wanted,
    permit: &Permit,
    root: &Root,
) -> Result<Seen, Refusal> {
    if let Some(seen) = absent(lists, wanted) {
        return Ok(seen);
    }
    let (opened, dir_entry) = open(lists, wanted);
    if opened.as_ref().is_err_and(|error| Errno::from_io_error(error) == Some(Errno::LOOP))
        && wanted.directory.is_some()
    {
        return Err(Refusal::Link { path: wanted.path.clone() });
    }
    if opened.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied) {
        // The names of files below a directory are ours, and not what the user named.
        let place = wanted.directory.as_ref().and_then(|_| wanted.path.parent());
        return Err(Refusal::Denied { path: place.unwrap_or(&wanted.path).to_owned() });
    }
    let facts = examine_open(root, &wanted.path, &opened, &lists.claimed, &lists.tables);
    let held = opened.ok().map(|opened| Held::new(opened, dir_entry.clone()));
    let file = held.as_ref().filter(|_| matches!(facts.kind, Found::File { .. }));
    let mut listed = None;
    let owner = match (file, &facts.kind, &dir_entry) {
        (Some(held), _, Some(dir_entry)) => {
            let claim = lists.claim(dir_entry, &held.stamp());
            listed =
                claim.as_ref().ok().and_then(|claim| claim.key(&(wanted.first..wanted.length)));
            claim.and_then(|claim| owner(claim, held, wanted, permit, lists.looks))
        }
        (_, Found::Absent { .. }, Some(dir_entry)) => {
            lists.check(&dir_entry.dir).map(|()| Owner::Foreign)
        }
        _ => Ok(Owner::Foreign),
    };
    let verifies = wanted.needs_pattern && !wanted.writes;
    let key = match file {
        // The list depends on none of the bytes that may be damaged.
        Some(_) if verifies && listed.is_some() => listed,
        Some(held) if verifies => {
            let key = gpuio_base::pattern::file_key(wanted.salt, wanted.file_number);
            // A file that can't be read can't be verified either; the load says why.
            find_key(held, key, wanted.first..wanted.length).unwrap_or(Some(key))
        }
        _ => None,
    };
    let ours = file.filter(|_| wanted.laid_out && matches!(owner, Ok(Owner::Ours(_))));
    let seen = Seen {
        dangers: danger(&facts),
        has_holes: ours.is_some_and(has_holes),
        parent_can_be_made: wanted.directory.is_some() && parent_can_be_made(&wanted.path),
        held,
        dir_entry,
        owner,
        key,
        facts,
    };
    if let (Some(all), Ok(_), Some(directory)) =
        (AbsentFiles::of(&seen, wanted), &seen.owner, wanted.path.parent())
    {
        lists.absent.insert(directory.to_owned(), all);
    }
    Ok(seen)
}

/// Whether part of a regular file was never written. An unknown range is no hole: the result of a
/// run reports it.
fn has_holes(held: &Held) -> bool {
    let Ok(file) = held.file(OFlags::RDONLY) else { return false };
    gpuio_host::extents::extents(&file, 0, u64::MAX).absent_bytes() > 0
}

/// Opens the target and the directory that it lies in.
pub(super) fn open(
    lists: &mut Lists<'_>,
    wanted: &Wanted,
) -> (io::Result<Opened>, Option<DirEntry>) {
    let below = wanted.directory.as_deref().and_then(|dir| {
        let rest = wanted.path.strip_prefix(dir).ok()?;
        Some((dir, rest))
    });
    match below {
        Some((dir, rest)) => match home_below(lists, dir, rest) {
            Ok(dir_entry) => (dir_entry.dir.target(Path::new(&dir_entry.name)), Some(dir_entry)),
            Err(error) => (Err(error), None),
        },
        None => {
            let opened = Opened::named(&wanted.path);
            let dir_entry = match &opened {
                Ok(opened) => home_of(lists, opened.path(), Some(opened.stamp())),
                Err(_) => home_of(lists, &wanted.path, None),
            };
            (opened, dir_entry)
        }
    }
}

/// The location of a file below the user's directory. The directory itself may be a link; nothing
/// below it may.
fn home_below(lists: &mut Lists<'_>, dir: &Path, rest: &Path) -> io::Result<DirEntry> {
    let name = rest.file_name().ok_or(Errno::INVAL)?.to_owned();
    let top = lists.directory(dir, || Directory::open(dir))?;
    let dir = match rest.parent().filter(|above| !above.as_os_str().is_empty()) {
        Some(above) => lists.directory(&dir.join(above), || top.below(above))?,
        None => top,
    };
    Ok(DirEntry { dir, name })
}

/// The location of a file that was found at `path`; of an absent one, that which its path names.
/// `None` where the directory can't be opened, or shows another file by now.
fn home_of(lists: &mut Lists<'_>, path: &Path, found: Option<Stamp>) -> Option<DirEntry> {
    let (above, name) = (path.parent()?, path.file_name()?.to_owned());
    let dir_entry = DirEntry { dir: lists.directory(above, || Directory::open(above)).ok()?, name };
    match found {
        Some(found) => {
            dir_entry.stamp().is_ok_and(|named| named.is_same_file(&found)).then_some(dir_entry)
        }
        None => Some(dir_entry),
    }
}

const TOUCHED: &str = "it was written, touched or renamed since";

/// The file's owner. Its contents are looked at only where something depends on them: a job that
/// writes to it, or needs it longer or filled anew.
fn owner(
    claim: Claim,
    held: &Held,
    wanted: &Wanted,
    permit: &Permit,
    looks: Option<&Looks<'_>>,
) -> Result<Owner, ManifestError> {
    let found = held.stamp();
    let changed = |why: &str| Ok(Owner::Changed(why.to_owned()));
    let cut = |entry: &Entry| {
        let text = format!("gpuio left it with {} bytes: it was cut", entry.size);
        (found.size < entry.size && !entry.in_use).then_some(text)
    };
    let entry = match claim {
        Claim::None => return Ok(Owner::Foreign),
        Claim::Another => {
            return changed("it is not the file that was made here, but a copy or another one");
        }
        Claim::Unchanged(_) | Claim::Doubtful(_) if found.links > 1 => {
            return changed("it got a second name (a hard link), whose content would change too");
        }
        Claim::Unchanged(entry) => return Ok(Owner::Ours(entry)),
        Claim::Doubtful(entry) => entry,
    };
    let remakes = permit.make_missing && (found.size < wanted.length || entry.in_use);
    let verifies = wanted.reads && wanted.needs_pattern;
    if !wanted.writes && (!remakes || verifies) {
        return match entry.in_use {
            true => changed("a run that wrote it did not end, or has not yet"),
            false => changed(cut(&entry).as_deref().unwrap_or(TOUCHED)),
        };
    }
    let proof = match entry.prove(held, looks) {
        Ok(proof) => proof,
        Err(error) => return Ok(Owner::Changed(format!("what it holds can't be read: {error}"))),
    };
    if let Some(at) = proof.foreign_at {
        let cut = cut(&entry).map(|cut| format!("{cut}, and ")).unwrap_or_default();
        return Ok(Owner::Changed(format!("{cut}at byte {at} is no pattern of gpuio's")));
    }
    if !proof.is_ours() {
        return changed("nothing that gpuio wrote is left in it");
    }
    // Its length as listed tells whether someone cut it.
    Ok(Owner::Ours(Entry { pattern: proof.whole, parts: Vec::new(), in_use: false, ..entry }))
}
