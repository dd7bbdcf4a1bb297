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
    let mut all = transports.chain(transport).peekable();
    // A capture has no transport. Then a PCI function shows that it is PCIe.
    if all.peek().is_none() && !device.pci.is_empty() {
        return Disk::Nvme;
    }
    match all.next() {
        Some("pcie") => Disk::Nvme,
        Some("rdma") => Disk::NvmeRdma,
        _ => Disk::NvmeOther,
    }
}

/// Whether it is a disk at the bottom.
pub(crate) fn is_disk(device: &BlockDevice) -> bool {
    device.facts.kind == BlockKind::Disk
}
