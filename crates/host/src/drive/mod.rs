//! All block devices of a machine: `/sys/class/block`, with what NVMe
//! (Documentation/ABI/testing/sysfs-nvme), libata (Documentation/ABI/testing/sysfs-ata), SAS
//! (`/sys/class/sas_phy`) and md (Documentation/admin-guide/md.rst) show besides.

mod link;
mod nvme;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gpuio_record::facts::{ArrayFacts, BlockDevice, BlockKind};

use crate::block::{BlockDir, block_dir_by_name, shallow};
use crate::mount::{self, Mount};
use crate::parse::{devices_in, keep};
use crate::{HostError, Root};

/// Reads every block device, except loop and virtual devices without storage.
/// `mounts` show which device holds a loop device's file. A value that cannot be understood goes to
/// `problems`.
pub fn read(root: &Root, mounts: &[Mount], problems: &mut Vec<HostError>) -> Vec<BlockDevice> {
    let names = devices_in(root, "sys/class/block", problems);
    let mut all: Vec<BlockDevice> =
        names.iter().filter_map(|name| device(root, name, problems)).collect();
    let loops: Vec<(usize, String)> = all
        .iter()
        .enumerate()
        .filter_map(|(at, device)| {
            let file = device.backing_file.as_deref()?;
            let file = file.strip_suffix(" (deleted)").unwrap_or(file);
            let number = mount::find(mounts, Path::new(file))?.device;
            let below = all.iter().find(|device| device.facts.device == number)?;
            Some((at, below.facts.name.clone()))
        })
        .collect();
    for (at, below) in loops {
        all[at].made_of.push(below);
    }
    inherit_pci_functions(&mut all);
    all
}

fn device(root: &Root, name: &str, problems: &mut Vec<HostError>) -> Option<BlockDevice> {
    let dir = block_dir_by_name(root, name)?;
    // One of several paths of a multipath namespace: it can't be opened.
    if name.starts_with("nvme") && root.number(dir.file("hidden")).ok().flatten() == Some(1) {
        return None;
    }
    let facts = shallow(root, &dir, problems);
    let hollow = matches!(facts.kind, BlockKind::Loop | BlockKind::Virtual);
    if hollow && facts.size_bytes.unwrap_or(0) == 0 {
        return None;
    }
    let partition = facts.kind == BlockKind::Partition;
    let made_of = match &facts.disk {
        Some(disk) => vec![disk.clone()],
        None => keep(root.list(dir.file("slaves")).map(Some), problems).unwrap_or_default(),
    };
    let disk = (facts.kind == BlockKind::Disk).then_some(&dir);
    let nvme = disk.and_then(|dir| nvme::read(root, dir, problems));
    let pci = match &nvme {
        Some(nvme) => nvme.controllers.iter().filter_map(|one| one.pci.clone()).collect(),
        None => facts.pci_address.iter().filter(|_| disk.is_some()).cloned().collect(),
    };
    let array = (facts.kind == BlockKind::Md).then(|| array(root, &dir, problems));
    let start = partition.then(|| keep(root.number(dir.file("start")), problems)).flatten();
    let mapper = root.word(dir.file("dm/uuid")).ok().flatten();
    Some(BlockDevice {
        nvme,
        pci,
        made_of,
        link: disk.and_then(|dir| link::read(root, dir, problems)),
        array,
        mapper: mapper.map(|uuid| uuid.split('-').next().unwrap_or_default().to_owned()),
        backing_file: (facts.kind == BlockKind::Loop).then(|| facts.detail.clone()).flatten(),
        start_bytes: start.map(|sectors| sectors.saturating_mul(512)),
        contents: None,
        serial_mark: disk.and_then(|dir| serial(root, dir)).map(|serial| mark(&serial)),
        facts,
    })
}

fn array(root: &Root, dir: &BlockDir, problems: &mut Vec<HostError>) -> ArrayFacts {
    let mut word = |name: &str| keep(root.word(dir.file(name)), problems);
    let (level, state) = (word("md/level"), word("md/array_state"));
    let action = word("md/sync_action");
    let mut number = |name: &str| keep(root.number(dir.file(name)), problems);
    ArrayFacts {
        level,
        chunk_bytes: number("md/chunk_size"),
        disks: number("md/raid_disks"),
        degraded: number("md/degraded"),
        state,
        action,
    }
}

/// An NVMe controller's serial number, a virtio disk's, or a SCSI disk's name of the world.
fn serial(root: &Root, dir: &BlockDir) -> Option<String> {
    let files = ["device/serial", "serial", "device/wwid"];
    files.iter().find_map(|file| root.word(dir.file(file)).ok().flatten())
}

/// FNV-1a of 32 bits (Fowler, Noll, Vo): too short to be turned round, long enough for a machine.
fn mark(serial: &str) -> String {
    let hash = serial
        .bytes()
        .fold(0x811c_9dc5u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("{hash:08x}")
}

/// Adds to each device's PCI functions those of its members, in this order:
/// by name, numbers as numbers.
pub fn inherit_pci_functions(all: &mut [BlockDevice]) {
    all.sort_by_cached_key(|device| natural(&device.facts.name));
    let index: BTreeMap<String, usize> =
        all.iter().enumerate().map(|(at, device)| (device.facts.name.clone(), at)).collect();
    for at in 0..all.len() {
        let mut found = BTreeSet::new();
        // A device may be reached over several paths, and in a broken tree from itself.
        let mut seen = BTreeSet::from([at]);
        let mut left = vec![at];
        while let Some(at) = left.pop() {
            found.extend(all[at].pci.iter().cloned());
            let below = all[at].made_of.iter().filter_map(|name| index.get(name));
            left.extend(below.filter(|below| seen.insert(**below)));
        }
        all[at].pci = found.into_iter().collect();
    }
}

/// A name cut into words and numbers, so that `nvme10n1` comes after `nvme2n1`.
fn natural(name: &str) -> Vec<(String, u64)> {
    let mut parts: Vec<(String, u64)> = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (word, tail) = rest.split_at(digits);
        let end = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
        let (number, tail) = tail.split_at(end);
        parts.push((word.to_owned(), number.parse().unwrap_or(0)));
        rest = tail;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_sort_as_numbers() {
        let mut names = vec!["nvme10n1", "sda10", "nvme2n1p2", "nvme2n1", "sda", "sda2", "dm-0"];
        names.sort_by_cached_key(|name| natural(name));
        assert_eq!(names, ["dm-0", "nvme2n1", "nvme2n1p2", "nvme10n1", "sda", "sda2", "sda10"]);
    }

    #[test]
    fn a_mark_is_fnv1a() {
        // The algorithm's own test vectors.
        assert_eq!(mark(""), "811c9dc5");
        assert_eq!(mark("a"), "e40c292c");
        assert_eq!(mark("foobar"), "bf9cf968");
    }
}
