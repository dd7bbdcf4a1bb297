//! The guard: what a path is, and what a write to it would destroy.
//!
//! A target is opened once ([`Opened`]); [`examine_open`] examines it, and [`danger()`]
//! lists the dangers. Neither opens anything for writing. Reads and writes then go through a
//! descriptor of the same file that was examined ([`Opened::reopen`]).

mod block;
mod danger;
mod loops;
mod open;
mod swap;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use gpuio_record::facts::{DeviceNumber, OtherKind, TargetFacts, TargetKind, Unchecked};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::Root;
use crate::mount::{Mount, Table, known};
use crate::signature::Ends;
use crate::statx::Stamp;

pub use block::{Contents, examine_block};
pub use danger::{Danger, danger};
pub use open::{Directory, Opened, ReopenError, same};
pub use swap::{SwapArea, parse_swaps};

/// Directory entries are counted no further than this.
const MAX_ENTRIES: usize = 1000;

/// The kernel's uses of files, and the mounts: each table is read when it is first needed and kept.
/// One value serves a look at many targets, at about the same time.
#[derive(Debug, Default)]
pub struct Tables {
    mounts: Table,
    swaps: OnceLock<Vec<SwapArea>>,
    loops: OnceLock<Vec<loops::Loop>>,
}

/// Looks at `path`, which this process opened; `/proc` and `/sys` are taken from `root`. Never
/// fails: a check that can't be made is listed in `unchecked`.
///
/// A block device is opened for reading, with `O_EXCL` for a moment, to check whether it is in use,
/// and its first and last MiB are read. All facts of a file or device are those of the open one.
/// `claimed` are devices, by `st_rdev`, that this process itself has open with
/// `O_EXCL`, so that the kernel's refusal of another such descriptor has no meaning.
pub fn examine_open(
    root: &Root,
    path: &Path,
    opened: &io::Result<Opened>,
    claimed: &[u64],
    tables: &Tables,
) -> TargetFacts {
    let mut unchecked = Vec::new();
    let symlink = fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_symlink());
    let resolved = match opened {
        Ok(opened) => Some(opened.path().to_owned()),
        Err(_) => resolve(path),
    };
    let kind = match opened {
        Ok(opened) => present((root, tables), opened, claimed, &mut unchecked),
        Err(error) if is_absent(error) => {
            let parent = resolved.as_deref().and_then(Path::parent);
            TargetKind::Absent { parent_exists: parent.is_some_and(Path::is_dir) }
        }
        Err(error) => {
            note(&mut unchecked, "what it is", error);
            TargetKind::Other { other: OtherKind::Unknown }
        }
    };
    let mount = match opened {
        Ok(opened) => tables.mounts.of_open(root, opened, opened.path()),
        Err(_) => match resolved.as_deref().and_then(|at| at.ancestors().find(|at| at.exists())) {
            Some(near) => tables.mounts.of_path(root, near),
            None => Ok(None),
        },
    };
    let mount = mount.unwrap_or_else(|error| {
        note(&mut unchecked, "which file system it is on", &error);
        None
    });
    TargetFacts {
        path: path.to_string_lossy().into_owned(),
        resolved: resolved.map(|resolved| resolved.to_string_lossy().into_owned()),
        symlink,
        kind,
        mount: mount.as_ref().map(Mount::facts),
        unchecked,
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn note(unchecked: &mut Vec<Unchecked>, question: &str, reason: &dyn std::fmt::Display) {
    unchecked.push(Unchecked { question: question.to_owned(), reason: reason.to_string() });
}

/// The path with its links followed; for an absent file, the directory followed and the name
/// kept, through one link that leads nowhere.
fn resolve(path: &Path) -> Option<PathBuf> {
    if let Ok(found) = path.canonicalize() {
        return Some(found);
    }
    let full = std::path::absolute(path).ok()?;
    let aimed = match fs::read_link(&full) {
        Ok(aim) => full.parent()?.join(aim),
        Err(_) => full,
    };
    Some(aimed.parent()?.canonicalize().ok()?.join(aimed.file_name()?))
}

fn present(
    (root, tables): (&Root, &Tables),
    opened: &Opened,
    claimed: &[u64],
    unchecked: &mut Vec<Unchecked>,
) -> TargetKind {
    let found = opened.stamp();
    let kind = found.kind;
    if kind.is_file() {
        return regular(root, tables, opened, unchecked);
    }
    if kind.is_dir() {
        let entries = rustix::fs::openat(opened, ".", LIST, Mode::empty())
            .and_then(rustix::fs::Dir::new)
            .map(|entries| entries.filter_map(Result::ok).filter(is_entry).take(MAX_ENTRIES));
        let entries = match entries {
            Ok(entries) => entries.count() as u64,
            Err(errno) => {
                note(unchecked, "whether the directory is empty", &errno);
                0
            }
        };
        return TargetKind::Directory { entries };
    }
    if kind.is_block_device() {
        let device = device_number(found.rdev);
        let contents = match open_contents(opened, claimed.contains(&found.rdev)) {
            Ok(contents) => contents,
            Err(error) => {
                note(unchecked, "what is on it", &error);
                Contents::default()
            }
        };
        return TargetKind::Block(examine_block(root, device, contents, unchecked));
    }
    let other = if kind.is_fifo() {
        OtherKind::Fifo
    } else if kind == FileType::CharacterDevice {
        OtherKind::CharacterDevice
    } else if kind.is_socket() {
        OtherKind::Socket
    } else {
        OtherKind::Unknown
    };
    TargetKind::Other { other }
}

/// For a list of a directory's entries.
const LIST: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

fn is_entry(entry: &rustix::fs::DirEntry) -> bool {
    ![c".", c".."].contains(&entry.file_name())
}

fn device_number(raw: u64) -> DeviceNumber {
    DeviceNumber { major: rustix::fs::major(raw), minor: rustix::fs::minor(raw) }
}

fn regular(
    root: &Root,
    tables: &Tables,
    opened: &Opened,
    unchecked: &mut Vec<Unchecked>,
) -> TargetKind {
    let found = opened.stamp();
    let in_swap = known(&tables.swaps, || swap::read(root)).map(|areas| {
        areas.iter().any(|area| area.path == opened.path() || same_file(root, &area.path, &found))
    });
    let in_swap = in_swap.unwrap_or_else(|error| {
        note(unchecked, "whether it is swap space in use", &error);
        false
    });
    let loops = known(&tables.loops, || loops::read(root)).map_or_else(
        |error| {
            note(unchecked, "whether a loop device uses it", &error);
            &[][..]
        },
        Vec::as_slice,
    );
    if let Some(reason) = loops::unknown_backing(loops) {
        note(unchecked, "whether a loop device uses it", &reason);
    }
    TargetKind::File {
        size_bytes: found.size,
        device: device_number(found.dev),
        inode: found.ino,
        mtime_ns: found.mtime_ns,
        links: found.links,
        in_swap,
        loop_devices: loops::named(loops, |one| one.uses_file(&found, opened.path())),
    }
}

/// Whether the kernel's name for a file leads to `found`.
fn same_file(root: &Root, path: &Path, found: &Stamp) -> bool {
    open::stamp_of(&root.join(path))
        .is_some_and(|other| (other.dev, other.ino) == (found.dev, found.ino))
}

/// Checks whether another program has the device open exclusively, and reads its ends.
fn open_contents(opened: &Opened, ours: bool) -> io::Result<Contents> {
    // O_NONBLOCK keeps a drive without a medium from waiting for one.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK;
    let exclusive = if ours { Err(BUSY.into()) } else { opened.reopen(flags | OFlags::EXCL) };
    let (file, claimed) = match exclusive {
        Err(ReopenError::Call(error)) if Errno::from_io_error(&error) == Some(BUSY) => {
            (opened.reopen(flags).map_err(io::Error::other)?, !ours)
        }
        exclusive => (exclusive.map_err(io::Error::other)?, false),
    };
    let ends = Ends::read(&File::from(file))?;
    Ok(Contents { claimed: Some(claimed), ends: Some(ends) })
}

const BUSY: Errno = Errno::BUSY;
