//! The facts about a path, looked at before anything may be written to it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DeviceNumber, MountFacts};

/// The facts about a path that is to be read or written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TargetFacts {
    /// The path as given.
    pub path: String,
    /// The path with every link followed; for an absent file, its parent followed and its own
    /// name kept. `null` when not even the parent exists.
    pub resolved: Option<String>,
    /// Whether the last part of the path is a symbolic link.
    pub symlink: bool,
    /// Its kind.
    pub kind: TargetKind,
    /// The mount that serves the path.
    pub mount: Option<MountFacts>,
    /// Questions that could not be answered. Silence about them proves nothing.
    pub unchecked: Vec<Unchecked>,
}

/// A question about a target that the system did not answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unchecked {
    /// The open question, such as `whether it is mounted`.
    pub question: String,
    /// Why it was not.
    pub reason: String,
}

/// The kind of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TargetKind {
    /// Nothing there.
    Absent {
        /// Whether the directory that would hold it exists.
        parent_exists: bool,
    },
    /// A regular file.
    File {
        /// Size, in bytes.
        size_bytes: u64,
        /// Device that holds it.
        device: DeviceNumber,
        /// Inode number.
        inode: u64,
        /// Last change, in nanoseconds since 1970-01-01 UTC.
        mtime_ns: i64,
        /// Hard links: more than one means that the bytes have another name too.
        links: u64,
        /// Whether the kernel swaps to it.
        in_swap: bool,
        /// Loop devices that have this file behind them.
        loop_devices: Vec<String>,
    },
    /// A directory.
    Directory {
        /// Entries, not counting `.` and `..`, counted up to 1000.
        entries: u64,
    },
    /// A block device.
    Block(BlockTarget),
    /// Something that no load may be aimed at.
    Other {
        /// Its kind.
        other: OtherKind,
    },
}

/// A file that is neither regular, directory nor block device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OtherKind {
    /// A named pipe.
    Fifo,
    /// A character device, such as a terminal or an NVMe controller.
    CharacterDevice,
    /// A socket.
    Socket,
    /// Anything else.
    Unknown,
}

/// A block device, and everything on this machine that seems to rely on its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct BlockTarget {
    /// Kernel name, such as `nvme0n1p2`.
    pub name: String,
    /// Device number.
    pub device: DeviceNumber,
    /// Size, in bytes.
    pub size_bytes: Option<u64>,
    /// Whether the kernel refuses writes.
    pub read_only: Option<bool>,
    /// The whole disk, when this is a partition.
    pub disk: Option<String>,
    /// Partitions of the device.
    pub partitions: Vec<String>,
    /// Devices built on this one, on its partitions or on its disk, at any depth.
    pub holders: Vec<Holder>,
    /// Where the device is mounted, itself or through a partition, a holder or its disk.
    pub mounted: Vec<MountedAt>,
    /// Devices among these that the kernel swaps to.
    pub swap: Vec<String>,
    /// Loop devices that have one of these behind them.
    #[serde(default)]
    pub loop_devices: Vec<String>,
    /// Whether the kernel reports that the device is claimed exclusively: opening it with
    /// `O_EXCL` fails with `EBUSY`. This sees mounts of other mount namespaces too.
    pub claimed: Option<bool>,
    /// File systems, volume managers and partition tables recognised on it.
    pub signatures: Vec<Signature>,
    /// Whether the parts that were read, its first and last MiB, are all zero.
    pub ends_are_zero: Option<bool>,
}

/// A device built on another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Holder {
    /// Kernel name of the device on top, such as `dm-0` or `md127`.
    pub name: String,
    /// Kernel name of the device beneath.
    pub on: String,
    /// The device's own word for itself: a logical volume's name or an array's level.
    pub detail: Option<String>,
}

/// A mount of a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MountedAt {
    /// Kernel name of the mounted device.
    pub device: String,
    /// Where. For a file system that is in use but not mounted in sight of this process, what
    /// shows it.
    pub mount_point: String,
    /// File system type.
    pub fs_type: String,
}

/// A mark on a device that says what its bytes are.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Signature {
    /// The owner of the mark, in plain words: `ext4 file system`, `LVM2 physical volume`.
    pub name: String,
    /// Where the mark was found, in bytes from the start of the device.
    pub offset_bytes: u64,
}
