//! Block devices: `/sys/dev/block`, `/sys/class/block` and what they lead to.

mod sample;
mod topology;

use gpuio_record::facts::{BlockFacts, BlockKind, DeviceNumber};

pub use sample::{BlockSample, parse_stat, sample_named, samples};
pub(crate) use topology::{
    BlockDir, block_dir, block_dir_by_name, is_nvme_controller, last_pci_address,
};

use crate::parse::{chosen, keep};
use crate::{HostError, Root, numa, statx};

/// Devices stacked deeper than this are a loop in a broken tree.
const MAX_DEPTH: usize = 8;

/// A block device and, recursively, what it is made of; `None` when `device` has no entry in
/// sysfs, as network and memory file systems have not. A value that cannot be understood goes to
/// `problems` and stays `None`.
pub fn read(
    root: &Root,
    device: DeviceNumber,
    problems: &mut Vec<HostError>,
) -> Option<BlockFacts> {
    block_dir(root, device).map(|dir| describe(root, &dir, problems, MAX_DEPTH))
}

/// As [`read`], by kernel name (`nvme0n1p1`, `dm-0`).
pub fn read_name(root: &Root, name: &str, problems: &mut Vec<HostError>) -> Option<BlockFacts> {
    block_dir_by_name(root, name).map(|dir| describe(root, &dir, problems, MAX_DEPTH))
}

/// The device of this directory without its members.
pub(crate) fn shallow(root: &Root, dir: &BlockDir, problems: &mut Vec<HostError>) -> BlockFacts {
    describe(root, dir, problems, 0)
}

fn describe(
    root: &Root,
    dir: &BlockDir,
    problems: &mut Vec<HostError>,
    depth: usize,
) -> BlockFacts {
    let kind = kind(root, dir);
    // Partitions have no queue and no members of their own: those are the disk's.
    let disk = if dir.is_partition(root) { dir.parent() } else { None };
    let whole = disk.as_ref().unwrap_or(dir);
    let controller = whole.controller(root);
    let pci_address = controller.pci_address.clone();
    let locality = pci_address.as_deref().map(|address| numa::pci_locality(root, address));
    let mut number = |name: &str| keep(root.number(whole.file(name)), problems);
    let rotational = number("queue/rotational").map(|value| value != 0);
    let logical_block_bytes = number("queue/logical_block_size");
    let physical_block_bytes = number("queue/physical_block_size");
    let max_request_bytes = number("queue/max_sectors_kb").map(kib);
    let read_ahead_bytes = number("queue/read_ahead_kb").map(kib);
    let queue_requests = number("queue/nr_requests");
    let scheduler = keep(root.word(whole.file("queue/scheduler")), problems);
    BlockFacts {
        name: dir.name.clone(),
        device: dir.device(root).unwrap_or_default(),
        kind,
        disk: disk.as_ref().map(|disk| disk.name.clone()),
        detail: keep(dir.detail(root), problems),
        model: keep(model(root, whole), problems),
        transport: controller.transport,
        numa_node: locality.and_then(|found| keep(found, problems)?.node),
        pci_address,
        size_bytes: dir.size_bytes(root, problems),
        read_only: keep(root.number(dir.file("ro")), problems).map(|value| value != 0),
        rotational,
        logical_block_bytes,
        physical_block_bytes,
        max_request_bytes,
        read_ahead_bytes,
        scheduler: scheduler.as_deref().and_then(chosen),
        queue_requests,
        write_cache: keep(root.word(whole.file("queue/write_cache")), problems),
        members: members(root, whole, problems, depth),
    }
}

fn kib(count: u64) -> u64 {
    count.saturating_mul(1024)
}

fn kind(root: &Root, dir: &BlockDir) -> BlockKind {
    if dir.is_partition(root) {
        BlockKind::Partition
    } else if dir.has(root, "dm") {
        BlockKind::DeviceMapper
    } else if dir.has(root, "md") {
        BlockKind::Md
    } else if dir.name.starts_with("loop") {
        BlockKind::Loop
    } else if dir.is_virtual() {
        BlockKind::Virtual
    } else {
        BlockKind::Disk
    }
}

/// `device/model` for SCSI and NVMe, `device/name` for MMC; virtio disks have neither.
fn model(root: &Root, disk: &BlockDir) -> Result<Option<String>, HostError> {
    match root.word(disk.file("device/model"))? {
        Some(model) => Ok(Some(model)),
        None => root.word(disk.file("device/name")),
    }
}

fn members(
    root: &Root,
    dir: &BlockDir,
    problems: &mut Vec<HostError>,
    depth: usize,
) -> Vec<BlockFacts> {
    let Some(depth) = depth.checked_sub(1) else {
        return Vec::new();
    };
    let names = keep(root.list(dir.file("slaves")).map(Some), problems).unwrap_or_default();
    let mut dirs: Vec<BlockDir> =
        names.iter().filter_map(|name| block_dir_by_name(root, name)).collect();
    dirs.extend(loop_backing(root, dir));
    dirs.iter().map(|member| describe(root, member, problems, depth)).collect()
}

/// The device that holds a loop device's file. The path is that of the process which
/// set the device up, so this works only on the live system.
fn loop_backing(root: &Root, dir: &BlockDir) -> Option<BlockDir> {
    if !root.is_live() {
        return None;
    }
    let path = root.word(dir.file("loop/backing_file")).ok()??;
    let file = statx::file(std::path::Path::new(&path)).ok()?;
    block_dir(root, file.device)
}
