//! One file's size, identity and `O_DIRECT` alignment: `statx(2)`.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use gpuio_record::facts::{DeviceNumber, DirectAlignment, FileFacts};
use rustix::fs::{AtFlags, CWD, FileType, Statx, StatxFlags, StatxTimestamp, statx};

use crate::HostError;

/// Describes an existing file, following links.
///
/// # Errors
/// [`HostError::Call`] when the file cannot be looked at.
pub fn file(path: &Path) -> Result<FileFacts, HostError> {
    look(path).map(|found| file_facts(&found))
}

/// As [`file()`], for a file that is open already.
///
/// # Errors
/// [`HostError::Call`]; its path is `/proc/self/fd/N`'s target.
pub fn open_file(file: &std::fs::File) -> Result<FileFacts, HostError> {
    let found =
        statx(file, c"", AtFlags::EMPTY_PATH, wanted()).map_err(|errno| HostError::Call {
            call: "statx",
            path: path_of(file),
            source: errno.into(),
            advice: "the descriptor should be good; report it with the file system's type",
        })?;
    Ok(file_facts(&found))
}

/// Which file it is, and in which state: enough to detect that another file has taken its name, or
/// whether anybody changed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Device that holds it, as `st_dev` of stat(2).
    pub dev: u64,
    /// Inode number on that device.
    pub ino: u64,
    pub kind: FileType,
    /// The device that a device node stands for, as `st_rdev`; 0 for anything else.
    pub rdev: u64,
    /// When the inode came to be, nanoseconds since 1970-01-01 UTC; `None` where the file system
    /// does not keep it. It distinguishes two files that had the same inode number one after the
    /// other.
    pub birth_ns: Option<i64>,
    /// Names that it has.
    pub links: u64,
    pub uid: u32,
    /// Permissions, as `st_mode`.
    pub mode: u32,
    /// Size in bytes.
    pub size: u64,
    /// Last change of its bytes, which anybody who may write it can set.
    pub mtime_ns: i64,
    /// Last change of bytes or inode, which only the kernel sets.
    pub ctime_ns: i64,
}

impl Stamp {
    /// Whether both are of one file: device, inode, kind, device number, and time of birth where
    /// both have one.
    pub fn is_same_file(&self, other: &Stamp) -> bool {
        let born = self.birth_ns.zip(other.birth_ns);
        (self.dev, self.ino, self.kind, self.rdev) == (other.dev, other.ino, other.kind, other.rdev)
            && born.is_none_or(|(one, other)| one == other)
    }

    /// Whether both are of one file, and it did not change between the two.
    pub fn is_unchanged(&self, other: &Stamp) -> bool {
        self.is_same_file(other)
            && (self.size, self.mtime_ns, self.ctime_ns)
                == (other.size, other.mtime_ns, other.ctime_ns)
    }
}

/// The stamp of an open file; a descriptor with `O_PATH` will do.
///
/// # Errors
/// Those of statx(2).
pub fn stamp<Fd: AsFd>(file: &Fd) -> io::Result<Stamp> {
    stamp_at(file, c"", AtFlags::EMPTY_PATH)
}

/// The stamp of what has this name in a directory.
///
/// # Errors
/// Those of statx(2).
pub(crate) fn stamp_at<Fd: AsFd, P: rustix::path::Arg>(
    dir: Fd,
    name: P,
    flags: AtFlags,
) -> io::Result<Stamp> {
    // Attributes that a client of a network file system remembers may be old.
    let flags = flags | AtFlags::STATX_FORCE_SYNC;
    let found = statx(dir, name, flags, StatxFlags::BASIC_STATS | StatxFlags::BTIME)?;
    let number = rustix::fs::makedev;
    Ok(Stamp {
        dev: number(found.stx_dev_major, found.stx_dev_minor),
        ino: found.stx_ino,
        kind: FileType::from_raw_mode(found.stx_mode.into()),
        rdev: number(found.stx_rdev_major, found.stx_rdev_minor),
        birth_ns: has(&found, StatxFlags::BTIME).then(|| nanoseconds(&found.stx_btime)),
        links: found.stx_nlink.into(),
        uid: found.stx_uid,
        mode: found.stx_mode.into(),
        size: found.stx_size,
        mtime_ns: nanoseconds(&found.stx_mtime),
        ctime_ns: nanoseconds(&found.stx_ctime),
    })
}

/// The kernel's current path of an open file.
pub(crate) fn path_of(file: &std::fs::File) -> std::path::PathBuf {
    use std::os::fd::AsRawFd;
    let link = std::path::PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    std::fs::read_link(&link).unwrap_or(link)
}

/// Which mount and device a path is on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MountIdentity {
    /// `stx_mnt_id`; `None` before Linux 5.8.
    pub(crate) mount_id: Option<u64>,
    pub(crate) device: DeviceNumber,
}

/// Which mount and device an existing path is on; `None` when it cannot be looked at.
pub(crate) fn mount_identity(path: &Path) -> Option<MountIdentity> {
    look(path).ok().map(|found| identity_of_mount(&found))
}

/// As [`mount_identity`], for what is open.
pub(crate) fn open_mount_identity<Fd: AsFd>(file: &Fd) -> Option<MountIdentity> {
    let found = statx(file, c"", AtFlags::EMPTY_PATH, wanted()).ok()?;
    Some(identity_of_mount(&found))
}

fn identity_of_mount(found: &Statx) -> MountIdentity {
    MountIdentity {
        mount_id: has(found, StatxFlags::MNT_ID).then_some(found.stx_mnt_id),
        device: device_of(found),
    }
}

/// Device number that a device node stands for; `None` when the path is no device node.
pub(crate) fn node_device(path: &Path) -> Option<DeviceNumber> {
    let found = look(path).ok()?;
    let kind = rustix::fs::FileType::from_raw_mode(found.stx_mode.into());
    kind.is_block_device()
        .then_some(DeviceNumber { major: found.stx_rdev_major, minor: found.stx_rdev_minor })
}

fn wanted() -> StatxFlags {
    StatxFlags::BASIC_STATS | StatxFlags::MNT_ID | StatxFlags::DIOALIGN
}

fn look(path: &Path) -> Result<Statx, HostError> {
    statx(CWD, path, AtFlags::empty(), wanted()).map_err(|errno| HostError::Call {
        call: "statx",
        path: path.to_owned(),
        source: errno.into(),
        advice: "check that the path exists and that each directory above it may be searched",
    })
}

fn has(found: &Statx, flag: StatxFlags) -> bool {
    StatxFlags::from_bits_retain(found.stx_mask).contains(flag)
}

fn device_of(found: &Statx) -> DeviceNumber {
    DeviceNumber { major: found.stx_dev_major, minor: found.stx_dev_minor }
}

fn file_facts(found: &Statx) -> FileFacts {
    // Kernels before 6.1, and file systems that never answer, leave the flag out of the mask.
    // Both values 0 means that O_DIRECT does not work on this file (statx(2)).
    let direct = has(found, StatxFlags::DIOALIGN).then_some(DirectAlignment {
        supported: found.stx_dio_mem_align != 0 && found.stx_dio_offset_align != 0,
        memory_bytes: found.stx_dio_mem_align,
        offset_bytes: found.stx_dio_offset_align,
    });
    FileFacts {
        size_bytes: found.stx_size,
        allocated_bytes: found.stx_blocks.saturating_mul(512),
        inode: found.stx_ino,
        device: device_of(found),
        links: found.stx_nlink.into(),
        mtime_ns: nanoseconds(&found.stx_mtime),
        preferred_io_bytes: found.stx_blksize.into(),
        direct,
    }
}

/// Nanoseconds since 1970, held at the ends of the range for dates beyond the years 1678 to 2262.
fn nanoseconds(time: &StatxTimestamp) -> i64 {
    time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec.into())
}
