//! Block devices with what they are made of and their PCI functions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::BlockFacts;

/// A block device among all of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlockDevice {
    /// The device and its queue. `members` is empty here: `made_of` names them, and each is in
    /// the same list.
    pub facts: BlockFacts,
    /// Kernel names of the devices right below: of a partition its disk, of an array or a volume
    /// its members, of a loop device the device that holds the file.
    pub made_of: Vec<String>,
    /// PCI functions that its bytes go through at the bottom, ascending, each once: one for a
    /// plain disk, several for an array or a disk with several controllers. Empty when there is
    /// no such function or it is not known.
    pub pci: Vec<String>,
    /// Facts of an NVMe namespace.
    pub nvme: Option<NvmeFacts>,
    /// Negotiated link of a SATA or SAS disk.
    pub link: Option<DriveLink>,
    /// Facts of a Linux software array.
    pub array: Option<ArrayFacts>,
    /// The part of a device-mapper device's UUID that names the maker (`LVM`, `CRYPT`, `mpath`).
    pub mapper: Option<String>,
    /// The file behind a loop device.
    pub backing_file: Option<String>,
    /// The start of a partition on its disk, in bytes.
    pub start_bytes: Option<u64>,
    /// The file system, volume or membership of an array that lsblk finds on it (`FSTYPE`), empty
    /// where it finds none; `null` when not read.
    #[serde(default)]
    pub contents: Option<String>,
    /// A hash of 32 bits of the serial number, in hexadecimal: it distinguishes drives and does not
    /// give the number away.
    pub serial_mark: Option<String>,
}

impl BlockDevice {
    /// A device of which nothing else is known.
    pub fn of(facts: BlockFacts) -> BlockDevice {
        BlockDevice {
            facts,
            made_of: Vec::new(),
            pci: Vec::new(),
            nvme: None,
            link: None,
            array: None,
            mapper: None,
            backing_file: None,
            start_bytes: None,
            contents: None,
            serial_mark: None,
        }
    }
}

/// An NVMe namespace.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct NvmeFacts {
    /// Number of the namespace.
    pub namespace: Option<u32>,
    /// Whether the kernel joins several paths into this one device (native multipath); then the
    /// disk hangs under its subsystem, even with one controller.
    pub multipath: bool,
    /// How paths are chosen (`iopolicy`): `numa`, `round-robin`, `queue-depth`.
    pub policy: Option<String>,
    /// Controllers that lead to it, by name.
    pub controllers: Vec<NvmeController>,
}

/// An NVMe controller.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct NvmeController {
    /// Kernel name (`nvme3`).
    pub name: String,
    /// PCI function; `null` for controllers over a network.
    pub pci: Option<String>,
    /// `pcie`, `tcp`, `rdma`, `fc`, `loop`.
    pub transport: Option<String>,
    /// The PCI address, or the far end (`traddr=10.0.0.7,trsvcid=4420`).
    pub address: Option<String>,
    /// `live`, `connecting`, …
    pub state: Option<String>,
    /// Firmware.
    pub firmware: Option<String>,
}

/// A SATA or SAS link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DriveLink {
    /// Port (`ata4`) or phy (`phy-0:3`).
    pub port: String,
    /// Signalling rate as negotiated, in Mbit/s (6000 for 6 Gb/s); `null` when not reported.
    pub now_megabits: Option<u64>,
    /// The most that the port can do, in Mbit/s; `null` when not reported.
    pub most_megabits: Option<u64>,
    /// Lanes of the port: SAS may have several.
    pub lanes: u32,
}

/// A Linux software array.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ArrayFacts {
    /// `raid0`, `raid1`, `raid5`, `raid10`, `linear`, …
    pub level: Option<String>,
    /// Chunk, in bytes; 0 or `null` for levels without.
    pub chunk_bytes: Option<u64>,
    /// Members that it should have.
    pub disks: Option<u64>,
    /// Members that it lacks.
    pub degraded: Option<u64>,
    /// `clean`, `active`, `readonly`, `inactive`, …
    pub state: Option<String>,
    /// The current action in it: `idle`, `resync`, `check`, …
    pub action: Option<String>,
}
