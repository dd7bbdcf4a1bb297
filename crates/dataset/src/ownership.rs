//! May this target be used, and what must happen to it first.
//!
//! The rule: bytes that gpuio did not write are overwritten only if a flag said so, and bytes that
//! the system relies on right now are not overwritten at all.
//!
//! Reading is always allowed. A file that gpuio made and that has a second hard link, a changed
//! one and a foreign one are read-only without `--overwrite`. A block device is never written
//! without `--destroy-data-on DEVICE`, and never while the kernel uses it; use is determined by
//! device and inode, of loop devices by `LOOP_GET_STATUS64` or by the target of sysfs's path.
//! A job that only reads and verifies writes no byte that is there: it makes absent files, and
//! makes files of ours longer that hold their pattern from end to end. A file of ours that was
//! listed with its pattern is verified against that, whatever its bytes are now. Any other is where
//! more than half of the checked part is one pattern at its offsets: that key is then expected.
//!
//! The list of own files is a file and no extended attribute, because NFS before 4.2, FUSE and FAT
//! have none.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gpuio_base::pattern::{Key, Repeats, Salt};
use gpuio_base::units::ShellLine;
use gpuio_host::Root;
use gpuio_host::target::Danger;
use gpuio_record::facts::{TargetFacts, TargetKind as Found};
use gpuio_record::{GuardNote, TargetKind};

use super::held::{Budget, DirEntry, Held};
use super::look::{Owner, look};
use super::manifest::{Entry, Holds, Lists, ManifestError};
use super::ranges::covers;
use super::refusal::Refusal;

/// The needs of a job for a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    pub path: PathBuf,
    /// The first byte that the job uses. In a file that gpuio did not make, and on a device,
    /// nothing before it is written.
    pub first: u64,
    /// The byte after the last that the job uses.
    pub length: u64,
    /// Whether it is a file of the user's own that is read whole, as it is: it was there with
    /// `length` bytes when the run was planned.
    pub as_planned: bool,
    /// Whether the job writes to it.
    pub writes: bool,
    /// Whether the job reads from it.
    pub reads: bool,
    /// Whether what is read will be compared with the pattern.
    pub needs_pattern: bool,
    /// Whether every byte must have been written before the load begins: no hole and no unwritten
    /// extent is then met by it. Holds of every job but one that writes its files from start to
    /// end, for certain and in full.
    pub laid_out: bool,
    /// The bytes that get other contents than the pattern before the load, where what its writes
    /// left is read back: a write that never arrived is then found.
    pub other: Option<Range<u64>>,
    /// Ranges that hold no data, in order and apart from each other: a file of ours is made anew
    /// with them.
    pub holes: Vec<Range<u64>>,
    /// Whether a file of ours must hold the pattern in the bytes that the job leaves out, so that
    /// all of it can be verified once the job's own bytes were. Says nothing about the files of
    /// others.
    pub rest: bool,
    /// The job's `--directory`, where it lies in it: gpuio may make and fill that, and follows no
    /// link below it. A file that the user named himself (`None`) is made for writing only.
    pub directory: Option<PathBuf>,
    pub salt: Salt,
    /// The file's number in the pattern.
    pub file_number: u64,
}

impl Wanted {
    /// Whether its bytes are read and verified and none that is there is written first. With holes
    /// of its own a file of ours is made anew.
    pub fn is_checked_as_it_lies(&self) -> bool {
        self.reads && self.needs_pattern && !self.writes && self.holes.is_empty()
    }
}

/// The user's permissions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Permit {
    /// `--overwrite`: regular files of others may be written.
    pub overwrite: bool,
    /// Devices named by `--destroy-data-on`.
    pub devices: Vec<PathBuf>,
    /// Whether files that a job only reads may be made first. gdsio's face does not: there the
    /// user runs the write command.
    pub make_missing: bool,
    /// The same of files that are named, as fio does: a name may be misspelt, so only for fio's
    /// jobs.
    pub make_named: bool,
}

/// A target that may be used.
#[derive(Debug, Clone)]
pub struct Verdict {
    pub note: GuardNote,
    pub kind: TargetKind,
    /// Where it is, links followed. For messages, and to find out whether two names are one target.
    pub path: PathBuf,
    /// The file that was checked, held open; `None` when absent. Code that reads or writes does it
    /// through this.
    pub target: Option<Arc<Held>>,
    /// Where an absent file is to be made; `None` where its directory is absent too.
    pub dir_entry: Option<DirEntry>,
    /// Its size in bytes; 0 when absent, `None` for a device that does not say.
    pub size_bytes: Option<u64>,
    /// Whether the pattern must be written before the load.
    pub fill: bool,
    /// Whether a file of ours is made anew, from its first byte to its last: no byte of it stays
    /// but those of its pattern.
    pub anew: bool,
    /// The first byte that it is written to; all of a file of ours is filled.
    pub fill_from: u64,
    /// Whether all of it is known to hold the wanted pattern now.
    pub holds_pattern: bool,
    /// The bytes that are known to be the wanted pattern now, of a file of ours.
    pub parts: Vec<Range<u64>>,
    /// How many of its first bytes are known to hold the wanted pattern.
    pub kept: u64,
    /// The length at which a run left this file of ours, where it is shorter now: someone cut it.
    pub cut_from: Option<u64>,
    /// The key of the pattern that was found in it, which is what verification can hold it against;
    /// `None` where that is the job's own.
    pub key: Option<Key>,
    /// The risks of writing although it is allowed, in plain words.
    pub dangers: Vec<String>,
}

/// Looks at a target and at the list of our files in its directory, and decides.
///
/// # Errors
/// [`Refusal`]: what is in the way and which flag or command would clear it.
pub fn check(wanted: &Wanted, permit: &Permit, root: &Root) -> Result<Verdict, Refusal> {
    check_with(&mut Lists::default(), wanted, permit, root)
}

/// [`check`] for one of many targets: `lists` keeps the lists of our files that were read.
///
/// # Errors
/// As for [`check`].
pub fn check_with(
    lists: &mut Lists<'_>,
    wanted: &Wanted,
    permit: &Permit,
    root: &Root,
) -> Result<Verdict, Refusal> {
    let seen = look(lists, wanted, permit, root)?;
    decide(wanted, permit, seen)
}

/// Everything that a decision rests on.
pub(super) struct Seen {
    pub(super) facts: TargetFacts,
    pub(super) dangers: Vec<Danger>,
    pub(super) held: Option<Held>,
    /// Where it lies, or would be made.
    pub(super) dir_entry: Option<DirEntry>,
    pub(super) owner: Result<Owner, ManifestError>,
    /// The key of the pattern that its bytes are of, where someone asked.
    pub(super) key: Option<Key>,
    /// Whether part of the file was never written, where that matters and is known.
    pub(super) has_holes: bool,
    /// Whether the file's directory, where it was absent, can be made or has been made since.
    pub(super) parent_can_be_made: bool,
}

impl Verdict {
    /// Lets the target go, where as many are held as the budget allows.
    pub fn within(&mut self, budget: &Budget) {
        if let Some(held) = self.target.take() {
            self.target = Some(match Arc::try_unwrap(held) {
                Ok(held) => budget.hold(held),
                Err(shared) => shared,
            });
        }
    }
}

impl Seen {
    /// The file that was looked at, to be held from here on.
    fn hold(&mut self) -> Option<Arc<Held>> {
        self.held.take().map(Arc::new)
    }

    fn path(&self) -> PathBuf {
        PathBuf::from(self.facts.resolved.as_ref().unwrap_or(&self.facts.path))
    }

    fn dangers(&self) -> Vec<String> {
        self.dangers.iter().map(ToString::to_string).collect()
    }

    /// Refuses a target with dangers that no flag clears. Reading harms nothing.
    fn in_use(&self, wanted: &Wanted) -> Result<(), Refusal> {
        let refused = |dangers| Refusal::InUse { path: wanted.path.clone(), dangers };
        self.writable().map_err(refused)
    }

    /// The dangers that no flag clears, where there are any.
    fn writable(&self) -> Result<(), Vec<String>> {
        let made = |danger: &&Danger| **danger == Danger::NoParent && self.parent_can_be_made;
        let is_final = |danger: &&Danger| danger.is_final() && !made(danger);
        let dangers: Vec<_> = self.dangers.iter().filter(is_final).map(Danger::to_string).collect();
        if dangers.is_empty() { Ok(()) } else { Err(dangers) }
    }
}

/// The decision alone, without looking at anything.
pub(super) fn decide(wanted: &Wanted, permit: &Permit, seen: Seen) -> Result<Verdict, Refusal> {
    let since =
        |size| Err(Refusal::Since { path: wanted.path.clone(), size, planned: wanted.length });
    match &seen.facts.kind {
        Found::Absent { .. } if wanted.as_planned => since(None),
        Found::File { size_bytes, .. } if wanted.as_planned && *size_bytes != wanted.length => {
            since(Some(*size_bytes))
        }
        Found::Absent { .. } => absent(wanted, permit, seen),
        Found::File { size_bytes, .. } => {
            let size = *size_bytes;
            file(wanted, permit, seen, size)
        }
        Found::Directory { .. } => Err(Refusal::Directory { path: wanted.path.clone() }),
        Found::Block(device) => {
            let size = device.size_bytes;
            block_device(wanted, permit, seen, size)
        }
        Found::Other { .. } => {
            Err(Refusal::NotStorage { path: wanted.path.clone(), dangers: seen.dangers() })
        }
    }
}

fn absent(wanted: &Wanted, permit: &Permit, mut seen: Seen) -> Result<Verdict, Refusal> {
    let in_place = wanted.directory.is_some() || permit.make_named;
    let may_make = wanted.writes || (in_place && permit.make_missing);
    if !may_make {
        return Err(Refusal::NeverWritten {
            path: wanted.path.clone(),
            command: seen.writable().map(|()| write_command(wanted, permit)),
        });
    }
    seen.in_use(wanted)?;
    let (path, dir_entry) = (seen.path(), seen.dir_entry.take());
    seen.owner?;
    Ok(Verdict {
        note: GuardNote::Make,
        kind: TargetKind::File,
        path,
        target: None,
        dir_entry,
        size_bytes: Some(0),
        fill: wanted.reads || wanted.rest || wanted.laid_out,
        anew: true,
        fill_from: 0,
        holds_pattern: false,
        parts: Vec::new(),
        kept: 0,
        cut_from: None,
        key: None,
        dangers: Vec::new(),
    })
}

fn file(wanted: &Wanted, permit: &Permit, seen: Seen, size: u64) -> Result<Verdict, Refusal> {
    match &seen.owner {
        Ok(Owner::Ours(entry)) => {
            let entry = entry.clone();
            our_file(wanted, permit, seen, size, &entry)
        }
        _ if wanted.writes => foreign_write(wanted, permit, seen, size),
        _ => only_read(wanted, seen, size),
    }
}

fn our_file(
    wanted: &Wanted,
    permit: &Permit,
    mut seen: Seen,
    size: u64,
    entry: &Entry,
) -> Result<Verdict, Refusal> {
    let pattern = Holds { salt: wanted.salt, file_number: wanted.file_number };
    let holds_pattern = entry.holds(pattern);
    let too_short = size < wanted.length;
    let parts = entry.parts_of(pattern);
    let verified = wanted.reads && wanted.needs_pattern;
    let covered = covers(&parts, &(wanted.first..wanted.length));
    let sparse = !wanted.holes.is_empty();
    if wanted.is_checked_as_it_lies() && (!covered || too_short && !holds_pattern) {
        return as_it_lies(wanted, permit, seen, size);
    }
    let other_data = wanted.rest && !holds_pattern || verified && !covered;
    // Where nothing may be made, what is read is read as it is, and the result reports holes.
    let holes = seen.has_holes && (wanted.writes || permit.make_missing && !verified);
    let anew = too_short || other_data || holes || sparse;
    let remake = anew || wanted.other.is_some();
    let writes = wanted.writes || remake;
    if remake && !wanted.writes && !permit.make_missing {
        return Err(lacking(wanted, permit, size));
    }
    if writes {
        seen.in_use(wanted)?;
    }
    Ok(Verdict {
        note: if remake { GuardNote::Remake } else { GuardNote::Ours },
        fill: wanted.other.is_some()
            || (remake && (wanted.reads || wanted.rest || wanted.laid_out)),
        anew,
        holds_pattern: holds_pattern && !too_short,
        parts,
        kept: if holds_pattern && !sparse { size.min(wanted.length) } else { 0 },
        cut_from: Some(entry.size).filter(|listed| size < *listed),
        ..unwritten(GuardNote::Ours, TargetKind::File, &mut seen, Some(size))
    })
}

/// A file of ours whose bytes are to be verified and are not listed as the wanted pattern: it is
/// held against the pattern that is in it, if that compresses as the wanted one. Nothing of it is
/// written, since a verification of what was just written would say nothing of what was there.
fn as_it_lies(
    wanted: &Wanted,
    permit: &Permit,
    mut seen: Seen,
    size: u64,
) -> Result<Verdict, Refusal> {
    let key = seen.key.filter(|key| key.repeats == wanted.salt.repeats);
    if size < wanted.length || key.is_none() {
        return Err(lacking(wanted, permit, size));
    }
    Ok(Verdict { key, ..unwritten(GuardNote::Ours, TargetKind::File, &mut seen, Some(size)) })
}

/// The refusal of a file of ours that is too short or holds something else than is wanted.
fn lacking(wanted: &Wanted, permit: &Permit, size: u64) -> Refusal {
    let (path, command) = (wanted.path.clone(), write_command(wanted, permit));
    if size < wanted.length {
        let wanted = wanted.length;
        Refusal::TooShort { path, size, wanted, changed: None, command: Some(command) }
    } else {
        Refusal::OtherData { path, command }
    }
}

fn foreign_write(
    wanted: &Wanted,
    permit: &Permit,
    mut seen: Seen,
    size: u64,
) -> Result<Verdict, Refusal> {
    seen.in_use(wanted)?;
    if !permit.overwrite {
        let (path, dangers) = (wanted.path.clone(), seen.dangers());
        let resolved = seen.facts.symlink.then(|| seen.path());
        return Err(match seen.owner {
            Ok(Owner::Changed(why)) => Refusal::Changed { path, why, dangers },
            owner => Refusal::Foreign { path, resolved, dangers, list: owner.err().map(Box::new) },
        });
    }
    Ok(Verdict {
        // Holes of a foreign file stay: bytes of it that no job writes are not ours.
        fill: wanted.other.is_some()
            || (wanted.reads && wanted.needs_pattern)
            || ((wanted.reads || wanted.laid_out) && size < wanted.length),
        // Old bytes that need not be verified stay.
        fill_from: match wanted.needs_pattern || wanted.other.is_some() {
            true => wanted.first,
            false => wanted.first.max(size),
        },
        dangers: seen.dangers(),
        ..unwritten(GuardNote::ForeignOverwrite, TargetKind::File, &mut seen, Some(size))
    })
}

/// A file that is not known to be ours as it is now. Reading it does no harm; verifying it reads.
fn only_read(wanted: &Wanted, mut seen: Seen, size: u64) -> Result<Verdict, Refusal> {
    let path = wanted.path.clone();
    let changed = match &seen.owner {
        Ok(Owner::Changed(why)) => Some(why.clone()),
        _ => None,
    };
    if size < wanted.length {
        // Nothing is proposed that would make a file longer that may be another owner's.
        let wanted = wanted.length;
        return Err(Refusal::TooShort { path, size, wanted, changed, command: None });
    }
    if wanted.needs_pattern && seen.key.is_none() {
        return Err(Refusal::NotVerifiable { path, changed });
    }
    let note = match changed {
        Some(_) => GuardNote::Changed,
        None => GuardNote::ForeignReadOnly,
    };
    Ok(Verdict { key: seen.key, ..unwritten(note, TargetKind::File, &mut seen, Some(size)) })
}

fn block_device(
    wanted: &Wanted,
    permit: &Permit,
    mut seen: Seen,
    size: Option<u64>,
) -> Result<Verdict, Refusal> {
    let path = wanted.path.clone();
    if let Some(size) = size.filter(|size| *size < wanted.length) {
        let wanted = wanted.length;
        return Err(Refusal::TooShort { path, size, wanted, changed: None, command: None });
    }
    if !wanted.writes {
        let kind = TargetKind::BlockDevice;
        return Ok(unwritten(GuardNote::ForeignReadOnly, kind, &mut seen, size));
    }
    seen.in_use(wanted)?;
    if !permit.devices.iter().any(|named| is_same(named, wanted, &seen)) {
        return Err(Refusal::Device { path, dangers: seen.dangers() });
    }
    Ok(Verdict {
        fill: wanted.other.is_some() || (wanted.reads && wanted.needs_pattern),
        fill_from: wanted.first,
        dangers: seen.dangers(),
        ..unwritten(GuardNote::ForeignOverwrite, TargetKind::BlockDevice, &mut seen, size)
    })
}

/// A target that is there, of which nothing is filled before the load.
fn unwritten(
    note: GuardNote,
    kind: TargetKind,
    seen: &mut Seen,
    size_bytes: Option<u64>,
) -> Verdict {
    Verdict {
        note,
        kind,
        path: seen.path(),
        target: seen.hold(),
        dir_entry: None,
        size_bytes,
        fill: false,
        anew: false,
        fill_from: 0,
        holds_pattern: false,
        parts: Vec::new(),
        kept: 0,
        cut_from: None,
        key: None,
        dangers: Vec::new(),
    }
}

/// Whether a flag named this very device, be it through a link such as `/dev/disk/by-id/…`: its
/// name is the target's, or leads to the device that was opened.
fn is_same(named: &Path, wanted: &Wanted, seen: &Seen) -> bool {
    let number = |stamp: gpuio_host::statx::Stamp| (stamp.kind, stamp.rdev);
    let held = seen.held.as_ref().map(|held| number(held.stamp()));
    let other = || gpuio_host::target::Opened::named(named).ok().map(|it| number(it.stamp()));
    named == wanted.path || held.is_some_and(|held| other() == Some(held))
}

/// Whether an absent directory of a file can be made. Another process of the same run, such as a
/// rank, may have made it after the facts were collected: it is there then, and nothing is to be
/// refused.
pub(super) fn parent_can_be_made(path: &Path) -> bool {
    let Some(parent) = path.parent() else {
        return false;
    };
    // The nearest that is there: what is absent is made below it.
    let there = parent.ancestors().find(|above| fs::symlink_metadata(above).is_ok());
    there.is_none_or(Path::is_dir)
}

/// The command that writes what a read misses.
fn write_command(wanted: &Wanted, permit: &Permit) -> String {
    let size = gpuio_base::units::format_bytes(wanted.length);
    let (flag, place) = match &wanted.directory {
        Some(directory) if directory.as_os_str().is_empty() => ("--directory", Path::new(".")),
        Some(directory) => ("--directory", directory.as_path()),
        None => ("--filename", wanted.path.as_path()),
    };
    if !permit.make_missing {
        let flag = if wanted.directory.is_some() { "-D" } else { "-f" };
        let write = ShellLine::new("gdsio").word(flag).file(place);
        return format!("{write} -I 1 with the same -w, -s and -o, and -V if the read has it");
    }
    let write = ShellLine::new("gpuio bench --rw write").word(flag).file(place);
    let verify = if wanted.needs_pattern { " --verify" } else { "" };
    let keep = if wanted.directory.is_some() { " --keep" } else { "" };
    let fill = match wanted.salt.repeats == Repeats::default() {
        true => "",
        false => " with the same buffer_compress keys",
    };
    format!("{write} --size {size}{verify}{keep}{fill}")
}
