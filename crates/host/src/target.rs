//! The guard: what a path is, and what writing to it would destroy.
//!
//! [`examine`] looks, [`danger()`] judges. Neither opens anything for writing. What was looked at
//! can change before it is opened: a caller that then writes should compare device and inode of
//! the open file with the facts.

mod block;
mod danger;
mod swap;

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use gpuio_record::facts::{DeviceNumber, OtherKind, TargetFacts, TargetKind, Unchecked};
use rustix::fs::{Mode, OFlags};

use crate::mount::{self, Mount};
use crate::signature::Ends;
use crate::{HostError, Root, statx};

pub use block::{Contents, examine_block};
pub use danger::{Danger, danger};
pub use swap::{SwapArea, parse_swaps};

/// Directory entries are counted no further than this.
const MAX_ENTRIES: usize = 1000;

/// Looks at `path`, which is the path this process would open; `/proc` and `/sys` are taken from
/// `root`. Never fails: a question that the system does not answer is listed in `unchecked`.
///
/// A block device is opened for reading, with `O_EXCL` for a moment, to ask whether someone
/// claims it, and its first and last MiB are read.
#[must_use]
pub fn examine(root: &Root, path: &Path) -> TargetFacts {
    let mut unchecked = Vec::new();
    let symlink = fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_symlink());
    let resolved = resolve(path);
    let kind = match fs::metadata(path) {
        Ok(found) => present(root, path, &found, &mut unchecked),
        Err(error) if is_absent(&error) => {
            let parent = resolved.as_deref().and_then(Path::parent);
            TargetKind::Absent { parent_exists: parent.is_some_and(Path::is_dir) }
        }
        Err(error) => {
            note(&mut unchecked, "what it is", &error);
            TargetKind::Other { other: OtherKind::Unknown }
        }
    };
    let mount = resolved.as_deref().and_then(|resolved| {
        let near = resolved.ancestors().find(|part| part.exists())?;
        mount::of_path(root, near).unwrap_or_else(|error| {
            note(&mut unchecked, "which file system it is on", &error);
            None
        })
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
    root: &Root,
    path: &Path,
    found: &Metadata,
    unchecked: &mut Vec<Unchecked>,
) -> TargetKind {
    let kind = found.file_type();
    if kind.is_file() {
        return regular(root, path, found, unchecked);
    }
    if kind.is_dir() {
        let entries = fs::read_dir(path).map(|entries| entries.take(MAX_ENTRIES).count() as u64);
        let entries = entries.unwrap_or_else(|error| {
            note(unchecked, "whether the directory is empty", &error);
            0
        });
        return TargetKind::Directory { entries };
    }
    if kind.is_block_device() {
        let device = device_number(found.rdev());
        let contents = match open_contents(path) {
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
    } else if kind.is_char_device() {
        OtherKind::CharacterDevice
    } else if kind.is_socket() {
        OtherKind::Socket
    } else {
        OtherKind::Unknown
    };
    TargetKind::Other { other }
}

fn device_number(raw: u64) -> DeviceNumber {
    DeviceNumber { major: rustix::fs::major(raw), minor: rustix::fs::minor(raw) }
}

fn regular(
    root: &Root,
    path: &Path,
    found: &Metadata,
    unchecked: &mut Vec<Unchecked>,
) -> TargetKind {
    let canonical = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let in_swap = swap::read(root).map(|areas| {
        areas.iter().any(|area| area.path == canonical || same_file(root, &area.path, found))
    });
    let in_swap = in_swap.unwrap_or_else(|error| {
        note(unchecked, "whether the kernel swaps to it", &error);
        false
    });
    let loop_devices = loop_devices(root, &canonical).unwrap_or_else(|error| {
        note(unchecked, "whether a loop device uses it", &error);
        Vec::new()
    });
    TargetKind::File {
        size_bytes: found.size(),
        device: device_number(found.dev()),
        inode: found.ino(),
        mtime_ns: statx::file(&canonical).map_or(0, |facts| facts.mtime_ns),
        links: found.nlink(),
        in_swap,
        loop_devices,
    }
}

/// Whether the kernel's name for a file leads to `found`.
fn same_file(root: &Root, path: &Path, found: &Metadata) -> bool {
    fs::metadata(root.join(path))
        .is_ok_and(|other| other.dev() == found.dev() && other.ino() == found.ino())
}

/// Loop devices that have the file at `path` behind them.
fn loop_devices(root: &Root, path: &Path) -> Result<Vec<String>, HostError> {
    let mut names = Vec::new();
    for name in root.list("sys/block")?.into_iter().filter(|name| name.starts_with("loop")) {
        let file = root.word(format!("sys/block/{name}/loop/backing_file"))?;
        if file.is_some_and(|file| Path::new(&file) == path) {
            names.push(name);
        }
    }
    Ok(names)
}

/// Asks whether the device is claimed, and reads its ends.
fn open_contents(path: &Path) -> io::Result<Contents> {
    // O_NONBLOCK keeps a drive without a medium from waiting for one.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let (file, claimed) = match rustix::fs::open(path, flags | OFlags::EXCL, Mode::empty()) {
        Ok(file) => (file, false),
        Err(rustix::io::Errno::BUSY) => (rustix::fs::open(path, flags, Mode::empty())?, true),
        Err(errno) => return Err(errno.into()),
    };
    let ends = Ends::read(&File::from(file))?;
    Ok(Contents { claimed: Some(claimed), ends: Some(ends) })
}
