//! The storage below a mount, in words.

use gpuio_record::facts::{BlockDevice, BlockKind, Machine, MountedStorage};

use super::layer;

/// A line for each layer, from the top down to each drive, or for the server and the card.
pub(super) fn lines(machine: &Machine, mount: &MountedStorage) -> Vec<String> {
    if let Some(nfs) = &mount.nfs {
        let transport = nfs.transport.as_deref().unwrap_or("an unknown transport");
        let interface = match nfs.interface.known() {
            Some(name) => format!("interface {name}"),
            None => format!("interface unknown: {}", nfs.interface.why().unwrap_or_default()),
        };
        let card = if mount.pci.is_empty() {
            String::new()
        } else {
            format!(" ({})", mount.pci.join(", "))
        };
        return vec![format!("{}:{} over {transport}, {interface}{card}", nfs.server, nfs.export)];
    }
    let all = layer::below(machine, mount);
    if all.is_empty() {
        return vec![match mount.mount.fs_type.as_str() {
            "" => mount.mount.source.clone(),
            fs_type => format!("{} ({fs_type})", mount.mount.source),
        }];
    }
    all.into_iter().map(|device| line(machine, device)).collect()
}

fn line(machine: &Machine, device: &BlockDevice) -> String {
    let name = &device.facts.name;
    let of = device.made_of.join(", ");
    match device.facts.kind {
        BlockKind::Disk => disk(machine, device),
        BlockKind::Partition => format!("{name}: a partition of {of}"),
        BlockKind::Md => {
            let level = device.array.as_ref().and_then(|array| array.level.as_deref());
            format!("{name}: {} of {}: {of}", level.unwrap_or("an array"), device.made_of.len())
        }
        BlockKind::DeviceMapper => {
            let mapper = device.mapper.as_deref().unwrap_or("device-mapper");
            let detail = device.facts.detail.as_deref().map(|detail| format!(" {detail}"));
            format!("{name}: {mapper}{} on {of}", detail.unwrap_or_default())
        }
        BlockKind::Loop => {
            format!("{name}: the file {}", device.backing_file.as_deref().unwrap_or("?"))
        }
        BlockKind::Virtual => format!("{name}: no hardware of its own"),
    }
}

fn disk(machine: &Machine, device: &BlockDevice) -> String {
    let name = &device.facts.name;
    let kind = match layer::disk(device) {
        layer::Disk::Nvme => "NVMe",
        layer::Disk::NvmeRdma => "NVMe over RDMA",
        layer::Disk::NvmeOther => "NVMe over a network",
        layer::Disk::NvmeUnknown => "NVMe, over PCIe or a network,",
        layer::Disk::Other => "a disk that is not NVMe,",
    };
    let at = device.pci.iter().map(|address| {
        let node = machine.function(address).and_then(|function| function.node);
        node.map_or_else(|| address.clone(), |node| format!("{address}, node {node}"))
    });
    let at: Vec<String> = at.collect();
    if at.is_empty() {
        format!("{name}: {}", kind.trim_end_matches(','))
    } else {
        format!("{name}: {kind} at {}", at.join(" and "))
    }
}
