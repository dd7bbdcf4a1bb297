//! Mounts, block devices, files and the page cache.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Everything between a path and the hardware that holds its bytes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct TargetStorage {
    /// The path that was asked about.
    pub path: String,
    /// The path that was looked at: links resolved, and the nearest parent that exists where
    /// the path itself does not.
    pub examined: Option<String>,
    /// The file, or the parent examined instead.
    pub file: Option<FileFacts>,
    /// The mount that serves the path.
    pub mount: Option<MountFacts>,
    /// The block device beneath the mount, or the device itself when the path names one; `null`
    /// for network and memory file systems.
    pub device: Option<BlockFacts>,
}

/// A file as `statx(2)` describes it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FileFacts {
    /// Size, in bytes; 0 for a device.
    pub size_bytes: u64,
    /// Space the file system has allocated to it, in bytes: less than the size for a sparse file.
    pub allocated_bytes: u64,
    /// Inode number.
    pub inode: u64,
    /// Device that holds the file.
    pub device: DeviceNumber,
    /// Hard links.
    pub links: u64,
    /// Last change of its bytes, in nanoseconds since 1970-01-01 UTC.
    pub mtime_ns: i64,
    /// The file system's preferred size of one I/O, in bytes.
    pub preferred_io_bytes: u64,
    /// The alignment that `O_DIRECT` needs of addresses and offsets; `null` when the kernel (before
    /// Linux 6.1) or the file system does not report it.
    pub direct: Option<DirectAlignment>,
}

/// The alignment that `O_DIRECT` needs of a transfer on one file (`STATX_DIOALIGN`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct DirectAlignment {
    /// Whether the file can be read and written with `O_DIRECT` at all.
    pub supported: bool,
    /// Alignment of the memory, in bytes; 0 when not supported.
    pub memory_bytes: u32,
    /// Alignment of offsets and lengths, in bytes; 0 when not supported.
    pub offset_bytes: u32,
}

/// A device number.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Default,
    Serialize,
    Deserialize,
    JsonSchema,
)]
pub struct DeviceNumber {
    /// Major number: the driver.
    pub major: u32,
    /// Minor number: the device.
    pub minor: u32,
}

/// One mount (a line of `/proc/self/mountinfo`).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct MountFacts {
    /// Where it is mounted.
    pub mount_point: String,
    /// File system type, such as `ext4`, `xfs`, `nfs4`.
    pub fs_type: String,
    /// The source of the mount: a device, or the server's name and export.
    pub source: String,
    /// The part of the file system that shows at the mount point: `/` unless a bind mount or a
    /// subvolume.
    pub fs_root: String,
    /// Device number the kernel gives the file system; major 0 when it has no block device.
    pub device: DeviceNumber,
    /// Options of the mount point, such as `rw` and `relatime`.
    pub options: Vec<String>,
    /// Options of the file system.
    pub super_options: Vec<String>,
}

/// The kind of a block device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BlockKind {
    /// A disk with a driver of its own (NVMe, SCSI, virtio, ...).
    Disk,
    /// A part of a disk.
    Partition,
    /// A device-mapper device: LVM, dm-crypt, multipath.
    DeviceMapper,
    /// A Linux software RAID array.
    Md,
    /// A file dressed as a device.
    Loop,
    /// A device with no hardware of its own: zram, nbd, rbd, brd, null_blk.
    Virtual,
}

/// A block device and what it is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlockFacts {
    /// Kernel name, such as `nvme0n1p2` or `dm-3`.
    pub name: String,
    /// Device number.
    pub device: DeviceNumber,
    /// Its kind.
    pub kind: BlockKind,
    /// The whole disk, when this is a partition. The queue's settings are that disk's.
    pub disk: Option<String>,
    /// Name given by the layer that made it: the logical volume, the array level, the file
    /// behind a loop device.
    pub detail: Option<String>,
    /// Model, as the device reports it.
    pub model: Option<String>,
    /// How an NVMe controller is reached: `pcie`, `tcp`, `rdma`, `fc`; `usb` of a disk on USB.
    pub transport: Option<String>,
    /// PCI address of the controller, lower case: `0000:3b:00.0`.
    pub pci_address: Option<String>,
    /// NUMA node of that controller.
    pub numa_node: Option<u32>,
    /// Size, in bytes.
    pub size_bytes: Option<u64>,
    /// Whether the kernel refuses writes.
    pub read_only: Option<bool>,
    /// Whether the device reports that it spins (a hard disk).
    pub rotational: Option<bool>,
    /// Smallest unit the device can address, in bytes.
    pub logical_block_bytes: Option<u64>,
    /// Smallest unit the device can write without reading first, in bytes.
    pub physical_block_bytes: Option<u64>,
    /// Largest request the kernel will send, in bytes (`max_sectors_kb`).
    pub max_request_bytes: Option<u64>,
    /// Read-ahead of buffered reads, in bytes (`read_ahead_kb`).
    pub read_ahead_bytes: Option<u64>,
    /// I/O scheduler in force: `none`, `mq-deadline`, `bfq`, `kyber`.
    pub scheduler: Option<String>,
    /// Requests the scheduler may hold (`nr_requests`).
    pub queue_requests: Option<u64>,
    /// `write back` when the device has a volatile cache to flush, else `write through`.
    pub write_cache: Option<String>,
    /// The devices this one is made of, each with its own members.
    pub members: Vec<BlockFacts>,
}

/// Whether this is the kernel's name of an optical drive: `sr0`.
pub fn is_optical(name: &str) -> bool {
    let number = name.strip_prefix("sr").unwrap_or_default();
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

impl BlockFacts {
    /// Whether it is an optical drive, by the kernel's name of them all.
    pub fn is_optical(&self) -> bool {
        is_optical(&self.name)
    }

    /// A device of which nothing else is known, made of no others.
    pub fn unread(name: &str, device: DeviceNumber, kind: BlockKind) -> BlockFacts {
        BlockFacts {
            name: name.to_owned(),
            device,
            kind,
            disk: None,
            detail: None,
            model: None,
            transport: None,
            pci_address: None,
            numa_node: None,
            size_bytes: None,
            read_only: None,
            rotational: None,
            logical_block_bytes: None,
            physical_block_bytes: None,
            max_request_bytes: None,
            read_ahead_bytes: None,
            scheduler: None,
            queue_requests: None,
            write_cache: None,
            members: Vec::new(),
        }
    }

    /// Whether the name is the kernel's: a drive that only PCI shows is called by its address,
    /// `nvme@36:00.0`, and can't be opened by that.
    pub fn has_kernel_name(&self) -> bool {
        !self.name.contains('@')
    }

    /// Whether completed writes may be lost from a volatile cache when power fails, by what the
    /// kernel says of the device, and of an array's or volume's members: `md` says "write back" of
    /// itself whatever they are (before Linux 6.11). `None` where it does not report it.
    pub fn volatile_cache(&self) -> Option<bool> {
        let stacked = matches!(self.kind, BlockKind::Md | BlockKind::DeviceMapper);
        if stacked && !self.members.is_empty() {
            let reported = |wanted| move |one: &BlockFacts| one.volatile_cache() == wanted;
            if self.members.iter().any(reported(Some(true))) {
                return Some(true);
            }
            return self.members.iter().all(reported(Some(false))).then_some(false);
        }
        match self.write_cache.as_deref() {
            Some("write back") => Some(true),
            Some("write through") => Some(false),
            _ => None,
        }
    }
}

/// The work of a block device between two samples of its `stat` file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct BlockCounters {
    /// Reads completed.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Time reads waited, summed over reads, in nanoseconds (counted in milliseconds).
    pub read_wait_ns: u64,
    /// Writes completed.
    pub writes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Time writes waited, summed over writes, in nanoseconds (counted in milliseconds).
    pub write_wait_ns: u64,
    /// Reads that were merged into a neighbour before they reached the device.
    pub reads_merged: u64,
    /// Writes that were merged into a neighbour before they reached the device.
    pub writes_merged: u64,
    /// Time at least one request was in flight, in nanoseconds (counted in milliseconds).
    pub busy_ns: u64,
    /// Requests in flight at the second sample.
    pub in_flight: u64,
    /// Flushes of its cache, most of which are writes of no bytes too; absent where the kernel does
    /// not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flushes: Option<u64>,
}

/// The bytes that this process moved between two samples of `/proc/self/io`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ProcessIo {
    /// Bytes that read calls returned, page cache included (`rchar`).
    pub read_call_bytes: u64,
    /// Bytes given to write calls (`wchar`).
    pub write_call_bytes: u64,
    /// Read calls (`syscr`).
    pub read_calls: u64,
    /// Write calls (`syscw`).
    pub write_calls: u64,
    /// Bytes fetched from storage for this process (`read_bytes`).
    pub storage_read_bytes: u64,
    /// Bytes this process caused to be sent to storage (`write_bytes`).
    pub storage_write_bytes: u64,
    /// Bytes of dirty page cache it made vanish by truncating (`cancelled_write_bytes`).
    pub cancelled_write_bytes: u64,
}

/// How page-cache residency was learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResidencyMethod {
    /// `cachestat(2)`, Linux 6.5.
    Cachestat,
    /// `mincore(2)` over a mapping of the file.
    Mincore,
}

/// How much of a range of a file is in the page cache.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Residency {
    /// Length of the range, cut at the end of the file, in bytes.
    pub range_bytes: u64,
    /// Part of the range in the page cache, 0 to 1; `null` when it cannot be learned, and 0 for
    /// an empty range.
    pub fraction: Option<f64>,
    /// Bytes of the range in the page cache, in whole pages cut to the range.
    pub cached_bytes: Option<u64>,
    /// Bytes of the cached pages that storage does not have yet (`cachestat(2)` only).
    pub dirty_bytes: Option<u64>,
    /// How it was learned.
    pub method: Option<ResidencyMethod>,
    /// Why it could not be learned.
    pub reason: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_has_the_caches_of_its_members() {
        let one = |kind, write_cache: Option<&str>, members: Vec<BlockFacts>| BlockFacts {
            write_cache: write_cache.map(str::to_owned),
            members,
            ..BlockFacts::unread("x", DeviceNumber::default(), kind)
        };
        let disk = |said| one(BlockKind::Disk, said, Vec::new());
        let (back, through) = (Some("write back"), Some("write through"));
        assert_eq!(disk(back).volatile_cache(), Some(true));
        assert_eq!(disk(through).volatile_cache(), Some(false));
        assert_eq!(disk(None).volatile_cache(), None);
        let array = |members| one(BlockKind::Md, back, members).volatile_cache();
        assert_eq!(array(vec![disk(through), disk(through)]), Some(false));
        assert_eq!(array(vec![disk(through), disk(back)]), Some(true));
        assert_eq!(array(vec![disk(through), disk(None)]), None);
        assert_eq!(array(vec![disk(None), disk(back)]), Some(true));
        assert_eq!(array(Vec::new()), Some(true), "no members are known");
        // The contents of a loop device are in the page cache of the file behind it.
        let behind = one(BlockKind::Loop, back, vec![disk(through)]);
        assert_eq!(behind.volatile_cache(), Some(true));
    }
}
