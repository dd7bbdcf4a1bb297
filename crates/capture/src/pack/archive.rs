//! A capture as a tar (POSIX.1-1988 ustar with GNU's long names), and back.

use std::collections::BTreeSet;
use std::io::{self, Read as _};
use std::path::Path;

use gpuio_host::{Entry, MOST_BYTES, Tree};
use tar::{Archive, Builder, EntryType, Header};
use thiserror::Error;

use super::manifest::manifest;
use super::{MANIFEST, Redacted};

/// More entries than the facts of any machine come from.
const MOST_ENTRIES: usize = 200_000;
/// More bytes than those have.
const MOST_TOTAL: u64 = 256 << 20;

/// Why a tar is no capture.
#[derive(Debug, Error)]
pub enum PackError {
    /// It is no tar, or is cut.
    #[error(
        "it can't be read as a tar: {0}; captures are tars as `gpuio topo --capture` writes \
             them, not compressed"
    )]
    Tar(#[from] io::Error),
    /// It holds more than a machine's kernel files.
    #[error("{path}: it holds {what}; no capture does")]
    TooMuch {
        path: String,
        /// The part that is too much.
        what: &'static str,
    },
    /// There is nothing of `/sys` or `/proc` in it.
    #[error("there is neither sys nor proc in it, so it is no capture of a machine")]
    NoMachine,
}

/// The tar of a capture, its manifest first.
///
/// # Errors
/// Refusals of the tar's writer: a name that does not fit.
pub fn write(redacted: &Redacted) -> io::Result<Vec<u8>> {
    let mut tar = Builder::new(Vec::new());
    let list = manifest(redacted);
    put(&mut tar, Path::new(MANIFEST), EntryType::Regular, list.as_bytes())?;
    for (path, entry) in redacted.tree.entries() {
        match entry {
            Entry::File(bytes) => put(&mut tar, path, EntryType::Regular, bytes)?,
            Entry::Directory(_) => put(&mut tar, path, EntryType::Directory, &[])?,
            Entry::Link(target) => {
                let mut header = header(EntryType::Symlink, 0);
                tar.append_link(&mut header, path, target)?;
            }
        }
    }
    tar.into_inner()
}

fn put(tar: &mut Builder<Vec<u8>>, path: &Path, kind: EntryType, bytes: &[u8]) -> io::Result<()> {
    tar.append_data(&mut header(kind, bytes.len() as u64), path, bytes)
}

/// No owner and no time: those would be of him who captured.
fn header(kind: EntryType, bytes: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(bytes);
    header.set_mode(if kind == EntryType::Directory { 0o755 } else { 0o644 });
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header
}

/// The kernel files in a tar. Devices, hard links and the like are passed over; names can't lead
/// out, as nothing is written anywhere.
///
/// # Errors
/// [`PackError`].
pub fn read(bytes: &[u8]) -> Result<Tree, PackError> {
    let mut tree = Tree::default();
    let mut total = 0u64;
    let mut count = 0usize;
    let mut machine = false;
    for entry in Archive::new(bytes).entries()? {
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        // As `tar -C DIRECTORY -c .` names them.
        let path = path.strip_prefix(".").map(Path::to_owned).unwrap_or(path);
        if path.as_os_str().is_empty() {
            continue;
        }
        let too_much =
            |what| PackError::TooMuch { path: path.to_string_lossy().into_owned(), what };
        count += 1;
        if count > MOST_ENTRIES {
            return Err(too_much("more than 200,000 entries"));
        }
        let new = match entry.header().entry_type() {
            EntryType::Regular | EntryType::Continuous => {
                let size = entry.size();
                if size > MOST_BYTES {
                    return Err(too_much("a file of more than 16 MiB"));
                }
                total = total.saturating_add(size);
                if total > MOST_TOTAL {
                    return Err(too_much("more than 256 MiB"));
                }
                let mut body = Vec::new();
                entry.by_ref().take(MOST_BYTES).read_to_end(&mut body)?;
                Entry::File(body)
            }
            EntryType::Directory => Entry::Directory(BTreeSet::new()),
            EntryType::Symlink => match entry.link_name()? {
                Some(target) => Entry::Link(target.into_owned()),
                None => continue,
            },
            _ => continue,
        };
        machine |= path.starts_with("sys") || path.starts_with("proc");
        if path != Path::new(MANIFEST) && !tree.put(&path, new) {
            return Err(too_much("longer names than a tree may have"));
        }
    }
    if machine { Ok(tree) } else { Err(PackError::NoMachine) }
}
