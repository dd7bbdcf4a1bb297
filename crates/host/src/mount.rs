//! Mounts: `/proc/self/mountinfo`.

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use gpuio_record::facts::{DeviceNumber, MountFacts};

use crate::parse::unescape_octal;
use crate::{HostError, LineFault, Root, statx};

/// One line of `/proc/self/mountinfo` (proc_pid_mountinfo(5)), its escapes undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Number of the mount, as `statx(2)` gives it in `stx_mnt_id`.
    pub id: u64,
    /// Device number of the file system; major 0 when it has no block device.
    pub device: DeviceNumber,
    /// The part of the file system that shows here.
    pub fs_root: PathBuf,
    pub mount_point: PathBuf,
    /// File system type.
    pub fs_type: String,
    pub source: OsString,
    pub options: Vec<String>,
    /// Options of the file system.
    pub super_options: Vec<String>,
}

impl Mount {
    /// The mount as the record keeps it; names that are not UTF-8 lose their odd bytes.
    pub fn facts(&self) -> MountFacts {
        MountFacts {
            mount_point: self.mount_point.to_string_lossy().into_owned(),
            fs_type: self.fs_type.clone(),
            source: self.source.to_string_lossy().into_owned(),
            fs_root: self.fs_root.to_string_lossy().into_owned(),
            device: self.device,
            options: self.options.clone(),
            super_options: self.super_options.clone(),
        }
    }
}

/// Every mount this process can see, in the kernel's order: a later one covers an earlier one at
/// the same mount point. Empty when `/proc` is not mounted.
///
/// # Errors
/// [`HostError`] when the table cannot be read or understood.
pub fn read(root: &Root) -> Result<Vec<Mount>, HostError> {
    let Some((path, bytes)) = root.read_bytes("proc/self/mountinfo")? else {
        return Ok(Vec::new());
    };
    parse_mountinfo(&bytes).map_err(|source| HostError::Malformed { path, source })
}

/// Parses `/proc/self/mountinfo`. Paths may hold any byte, so the input is bytes.
///
/// # Errors
/// [`LineFault`] for the first line without its ten fields.
pub fn parse_mountinfo(text: &[u8]) -> Result<Vec<Mount>, LineFault> {
    let lines = text.split(|byte| *byte == b'\n').enumerate();
    lines
        .filter(|(_, line)| !line.is_empty())
        .map(|(index, line)| {
            parse_line(line).ok_or_else(|| {
                LineFault::new(index, &String::from_utf8_lossy(line), "a mount of ten fields")
            })
        })
        .collect()
}

/// `36 35 98:0 /root /mnt rw,noatime shared:1 - ext3 /dev/root rw,errors=continue`: any number
/// of optional fields stands before the hyphen.
fn parse_line(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let id = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    let _parent = fields.next()?;
    let device = parse_device(std::str::from_utf8(fields.next()?).ok()?)?;
    let fs_root = path_of(fields.next()?);
    let mount_point = path_of(fields.next()?);
    let options = words(fields.next()?);
    fields.by_ref().find(|field| *field == b"-")?;
    let fs_type = String::from_utf8_lossy(&unescape_octal(fields.next()?)).into_owned();
    let source = OsString::from_vec(unescape_octal(fields.next()?));
    // A file system without options of its own may leave the last field out.
    let super_options = fields.next().map(words).unwrap_or_default();
    Some(Mount { id, device, fs_root, mount_point, fs_type, source, options, super_options })
}

fn path_of(field: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(unescape_octal(field)))
}

fn words(field: &[u8]) -> Vec<String> {
    let text = unescape_octal(field);
    let parts = text.split(|byte| *byte == b',').filter(|part| !part.is_empty());
    parts.map(|part| String::from_utf8_lossy(part).into_owned()).collect()
}

/// A device number as the kernel prints it: `259:0`.
pub fn parse_device(text: &str) -> Option<DeviceNumber> {
    let (major, minor) = text.trim().split_once(':')?;
    Some(DeviceNumber { major: major.parse().ok()?, minor: minor.parse().ok()? })
}

/// The mount that serves `path`, an absolute path with its links resolved: the longest mount
/// point that leads to it, the last one mounted where several have the same mount point.
pub fn find<'m>(mounts: &'m [Mount], path: &Path) -> Option<&'m Mount> {
    let leading = mounts.iter().filter(|mount| path.starts_with(&mount.mount_point));
    leading.max_by_key(|mount| mount.mount_point.as_os_str().as_bytes().len())
}

/// The mount that serves an existing `path`, as [`Table::of_path`] finds it.
///
/// # Errors
/// [`HostError`] when the table cannot be read or understood.
pub fn of_path(root: &Root, path: &Path) -> Result<Option<Mount>, HostError> {
    Table::default().of_path(root, path)
}

/// The table of mounts, read when it is first needed and kept: for looks at many files.
#[derive(Debug, Default)]
pub struct Table {
    mounts: OnceLock<Vec<Mount>>,
}

impl Table {
    fn mounts(&self, root: &Root) -> Result<&[Mount], HostError> {
        known(&self.mounts, || read(root)).map(Vec::as_slice)
    }

    /// The mount that serves an existing `path`, which this process opens as it is written. On the
    /// live system the kernel's own answer comes first (`STATX_MNT_ID`, Linux 5.8), then the device
    /// number of the file, then the longest prefix.
    ///
    /// # Errors
    /// [`HostError`] when the table cannot be read or understood.
    pub fn of_path(&self, root: &Root, path: &Path) -> Result<Option<Mount>, HostError> {
        let canonical = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let identity = if root.is_live() { statx::mount_identity(&canonical) } else { None };
        Ok(serving(self.mounts(root)?, identity, &canonical))
    }

    /// The same, for a file that is open and was found at `path`.
    pub(crate) fn of_open<Fd: AsFd>(
        &self,
        root: &Root,
        file: &Fd,
        path: &Path,
    ) -> Result<Option<Mount>, HostError> {
        let identity = if root.is_live() { statx::open_mount_identity(file) } else { None };
        Ok(serving(self.mounts(root)?, identity, path))
    }
}

/// The value that is known already, or the one that `read` finds; an error is not kept.
pub(crate) fn known<T>(
    cell: &OnceLock<T>,
    read: impl FnOnce() -> Result<T, HostError>,
) -> Result<&T, HostError> {
    match cell.get() {
        Some(known) => Ok(known),
        None => {
            let found = read()?;
            Ok(cell.get_or_init(|| found))
        }
    }
}

fn serving(
    mounts: &[Mount],
    identity: Option<statx::MountIdentity>,
    canonical: &Path,
) -> Option<Mount> {
    if let Some(state) = identity {
        let by_id = mounts.iter().find(|mount| Some(mount.id) == state.mount_id);
        if by_id.is_some() {
            return by_id.cloned();
        }
        let of_device: Vec<Mount> =
            mounts.iter().filter(|mount| mount.device == state.device).cloned().collect();
        if let Some(mount) = find(&of_device, canonical) {
            return Some(mount.clone());
        }
    }
    find(mounts, canonical).cloned()
}
