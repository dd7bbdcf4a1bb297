//! The block devices between a mount and its drives.

use gpuio_record::facts::{BlockDevice, BlockKind, Machine, MountedStorage};

/// Every device below a mount, from the top down, each once. Rings in captures end.
pub(crate) fn below<'m>(machine: &'m Machine, mount: &MountedStorage) -> Vec<&'m BlockDevice> {
    let mut all: Vec<&BlockDevice> = Vec::new();
    let mut open: std::collections::VecDeque<&str> =
        mount.devices.iter().map(String::as_str).collect();
    while let Some(name) = open.pop_front() {
        let device = machine.block.iter().find(|device| device.facts.name == name);
        let Some(device) = device else { continue };
        if all.iter().all(|known| known.facts.name != name) {
            all.push(device);
            open.extend(device.made_of.iter().map(String::as_str));
        }
    }
    all
}

/// How a disk is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disk {
    /// An NVMe drive on PCIe.
    Nvme,
    /// An NVMe drive over RDMA.
    NvmeRdma,
    /// An NVMe drive over TCP, or another transport without DMA between card and GPU.
    NvmeOther,
    /// An NVMe drive, and how it is reached is not among what was read.
    NvmeUnknown,
    /// SATA, SAS, virtio and others.
    Other,
}

pub(crate) fn disk(device: &BlockDevice) -> Disk {
    if device.nvme.is_none() && !device.facts.name.starts_with("nvme") {
        return Disk::Other;
    }
    let controllers = device.nvme.iter().flat_map(|nvme| &nvme.controllers);
    let transports = controllers.filter_map(|one| one.transport.as_deref());
    let transport = device.facts.transport.as_deref();
    match transports.chain(transport).next() {
        Some("pcie") => Disk::Nvme,
        Some("rdma") => Disk::NvmeRdma,
        Some(_) => Disk::NvmeOther,
        // Texts of tools have no transport. Then a PCI function shows that it is PCIe.
        None if !device.pci.is_empty() => Disk::Nvme,
        None => Disk::NvmeUnknown,
    }
}

/// The name of the first device below a mount of which it is not known what it is made of, so that
/// drives may be missing in [`below`].
pub(crate) fn cut_off<'m>(machine: &'m Machine, mount: &'m MountedStorage) -> Option<&'m str> {
    let known = |name: &String| machine.block.iter().any(|one| one.facts.name == *name);
    if let Some(lost) = mount.devices.iter().find(|name| !known(name)) {
        return Some(lost);
    }
    let cut = |one: &&BlockDevice| match one.facts.kind {
        BlockKind::Disk | BlockKind::Loop | BlockKind::Virtual => false,
        BlockKind::Md => {
            let wanted = one.array.as_ref().and_then(|array| array.disks);
            let there = u64::try_from(one.made_of.len()).ok();
            one.made_of.is_empty() || wanted > there || !one.made_of.iter().all(known)
        }
        BlockKind::Partition | BlockKind::DeviceMapper => {
            one.made_of.is_empty() || !one.made_of.iter().all(known)
        }
    };
    below(machine, mount).into_iter().find(cut).map(|one| one.facts.name.as_str())
}

/// Whether it is a disk at the bottom.
pub(crate) fn is_disk(device: &BlockDevice) -> bool {
    device.facts.kind == BlockKind::Disk
}
