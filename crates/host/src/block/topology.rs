//! A block device's directory, disk and controller in sysfs.

use std::path::{Path, PathBuf};

use gpuio_record::facts::DeviceNumber;

use crate::parse::keep;
use crate::{HostError, Root, mount, numa};

/// Sectors in sysfs are 512 bytes, whatever the device's blocks are.
const SECTOR_BYTES: u64 = 512;

/// A block device's directory in sysfs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BlockDir {
    /// Kernel name, as sysfs spells it (`cciss!c0d0` for `/dev/cciss/c0d0`).
    pub(crate) name: String,
    /// The directory, links resolved, relative to the root.
    dir: PathBuf,
}

/// How a disk is attached.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Controller {
    pub(crate) pci_address: Option<String>,
    pub(crate) transport: Option<String>,
}

pub(crate) fn block_dir(root: &Root, device: DeviceNumber) -> Option<BlockDir> {
    resolve(root, &format!("sys/dev/block/{}:{}", device.major, device.minor))
}

/// The directory of a kernel name.
pub(crate) fn block_dir_by_name(root: &Root, name: &str) -> Option<BlockDir> {
    // A name with a slash would leave the directory.
    let name = name.replace('/', "!");
    if name.is_empty() || name.starts_with('.') {
        return None;
    }
    resolve(root, &format!("sys/class/block/{name}"))
        .or_else(|| resolve(root, &format!("sys/block/{name}")))
}

fn resolve(root: &Root, link: &str) -> Option<BlockDir> {
    let dir = root.resolve(link)?;
    let name = dir.file_name()?.to_str()?.to_owned();
    Some(BlockDir { name, dir })
}

impl BlockDir {
    /// A file in the device's directory, relative to the root.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The device's directory, relative to the root.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Whether the directory holds an entry `name`.
    pub(crate) fn has(&self, root: &Root, name: &str) -> bool {
        root.exists(self.file(name))
    }

    /// Whether the device is a part of a disk.
    pub(crate) fn is_partition(&self, root: &Root) -> bool {
        self.has(root, "partition")
    }

    /// Whether the device has no hardware of its own. An NVMe disk that several controllers
    /// reach is among the virtual devices too.
    pub(crate) fn is_virtual(&self) -> bool {
        self.dir.starts_with("sys/devices/virtual")
            && !self.dir.starts_with("sys/devices/virtual/nvme-subsystem")
    }

    /// The directory above: of a partition, its disk.
    pub(crate) fn parent(&self) -> Option<BlockDir> {
        let dir = self.dir.parent()?;
        let name = dir.file_name()?.to_str()?.to_owned();
        Some(BlockDir { name, dir: dir.to_owned() })
    }

    /// The device number (`dev`).
    pub(crate) fn device(&self, root: &Root) -> Option<DeviceNumber> {
        mount::parse_device(&root.word(self.file("dev")).ok()??)
    }

    /// The size (`size`, in sectors).
    pub(crate) fn size_bytes(&self, root: &Root, problems: &mut Vec<HostError>) -> Option<u64> {
        let sectors = keep(root.number(self.file("size")), problems)?;
        Some(sectors.saturating_mul(SECTOR_BYTES))
    }

    /// The name given by the layer that made the device.
    pub(crate) fn detail(&self, root: &Root) -> Result<Option<String>, HostError> {
        for file in ["dm/name", "md/level", "loop/backing_file"] {
            if let Some(word) = root.word(self.file(file))? {
                return Ok(Some(word));
            }
        }
        Ok(None)
    }

    /// Partitions of the device, sorted.
    pub(crate) fn partitions(&self, root: &Root) -> Result<Vec<BlockDir>, HostError> {
        let names = root.list(&self.dir)?.into_iter();
        let dirs = names.map(|name| BlockDir { dir: self.dir.join(&name), name });
        Ok(dirs.filter(|dir| dir.is_partition(root)).collect())
    }

    /// Devices built directly on this one, sorted.
    pub(crate) fn holders(&self, root: &Root) -> Result<Vec<BlockDir>, HostError> {
        let names = root.list(self.file("holders"))?;
        Ok(names.iter().filter_map(|name| block_dir_by_name(root, name)).collect())
    }

    /// The controller of a whole disk: the last PCI address in its path. With NVMe
    /// multipath the disk hangs under its subsystem, whose links lead to the controllers; the
    /// first of them is taken.
    pub(crate) fn controller(&self, root: &Root) -> Controller {
        let word = |path: PathBuf| root.word(path).ok().flatten();
        let transport = word(self.file("device/transport"));
        let transport = transport.or_else(|| is_on_usb(&self.dir).then(|| "usb".to_owned()));
        if let Some(address) = last_pci_address(&self.dir) {
            return Controller { pci_address: Some(address), transport };
        }
        let Some(above) = self.dir.parent().filter(|dir| is_nvme_subsystem(dir)) else {
            return Controller { pci_address: None, transport };
        };
        let names = root.list(above).unwrap_or_default();
        let controllers = names.iter().filter(|name| is_nvme_controller(name));
        controllers
            .filter_map(|name| root.resolve(above.join(name)))
            .map(|dir| Controller {
                pci_address: last_pci_address(&dir),
                transport: word(dir.join("transport")),
            })
            .next()
            .unwrap_or(Controller { pci_address: None, transport })
    }
}

/// Whether a path goes through a USB host: `…/usb1/1-1/…`.
fn is_on_usb(dir: &Path) -> bool {
    let number = |part: &str| {
        let number = part.strip_prefix("usb").unwrap_or_default();
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    dir.iter().filter_map(|part| part.to_str()).any(number)
}

/// The last PCI address among a path's names.
pub(crate) fn last_pci_address(dir: &Path) -> Option<String> {
    let parts = dir.iter().rev().filter_map(|part| part.to_str());
    parts.filter_map(|part| numa::normalize_pci(part).filter(|address| address == part)).next()
}

fn is_nvme_subsystem(dir: &Path) -> bool {
    dir.file_name()
        .and_then(|name| name.to_str())
        .is_some_and(|name| name.starts_with("nvme-subsys"))
}

/// `nvme0`, and not `nvme0n1` or `nvme0c0n1`.
pub(crate) fn is_nvme_controller(name: &str) -> bool {
    name.strip_prefix("nvme")
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}
