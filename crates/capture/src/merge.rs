//! Texts put together: each function, device and card once, with all that is known of it.

use gpuio_record::facts::{
    BlockDevice, BlockFacts, BlockKind, DeviceNumber, Fact, Lanes, Machine, MountKind, NicFacts,
    PciFacts,
};

/// A function whose address a tool shows; everything else is unknown for `why`.
pub(crate) fn function(address: String, why: &str) -> PciFacts {
    PciFacts { address, ..PciFacts::unknown(why) }
}

/// Adds functions: what they know stands, what they do not stays as it was.
pub(crate) fn functions(machine: &mut Machine, new: Vec<PciFacts>) {
    let mut known: std::collections::BTreeMap<String, PciFacts> =
        machine.pci.drain(..).map(|one| (one.address.clone(), one)).collect();
    for one in new {
        match known.get_mut(&one.address) {
            Some(ours) => take(ours, one),
            None => {
                known.insert(one.address.clone(), one);
            }
        }
    }
    machine.pci = known.into_values().collect();
}

fn take(ours: &mut PciFacts, new: PciFacts) {
    fn option<T>(ours: &mut Option<T>, new: Option<T>) {
        if new.is_some() {
            *ours = new;
        }
    }
    fn fact<T>(ours: &mut Fact<T>, new: Fact<T>) {
        if new.known().is_some() || ours.known().is_none() {
            *ours = new;
        }
    }
    fn lanes(ours: &mut Lanes, new: Lanes) {
        option(&mut ours.mega_transfers, new.mega_transfers);
        option(&mut ours.width, new.width);
    }
    let PciFacts { address: _, parent, host_bridge, class, vendor, device, .. } = &new;
    option(&mut ours.parent, parent.clone());
    option(&mut ours.host_bridge, host_bridge.clone());
    option(&mut ours.class, *class);
    option(&mut ours.vendor, *vendor);
    option(&mut ours.device, *device);
    option(&mut ours.subsystem_vendor, new.subsystem_vendor);
    option(&mut ours.subsystem_device, new.subsystem_device);
    option(&mut ours.name, new.name);
    option(&mut ours.driver, new.driver);
    option(&mut ours.node, new.node);
    option(&mut ours.secondary_bus, new.secondary_bus);
    option(&mut ours.subordinate_bus, new.subordinate_bus);
    fact(&mut ours.port, new.port);
    lanes(&mut ours.link_now, new.link_now);
    lanes(&mut ours.link_most, new.link_most);
    option(&mut ours.link_bytes_per_second, new.link_bytes_per_second);
    fact(&mut ours.acs, new.acs);
    option(&mut ours.iommu_group, new.iommu_group);
    option(&mut ours.iommu_domain, new.iommu_domain);
    fact(&mut ours.max_payload_bytes, new.max_payload_bytes);
    fact(&mut ours.max_payload_supported_bytes, new.max_payload_supported_bytes);
    fact(&mut ours.max_read_request_bytes, new.max_read_request_bytes);
    fact(&mut ours.relaxed_ordering, new.relaxed_ordering);
    option(&mut ours.p2p_memory_bytes, new.p2p_memory_bytes);
}

/// The device of a kernel name, added where it is not there yet.
pub(crate) fn block<'m>(
    machine: &'m mut Machine,
    name: &str,
    kind: BlockKind,
) -> &'m mut BlockDevice {
    let at = machine.block.iter().position(|device| device.facts.name == name);
    let at = at.unwrap_or_else(|| {
        machine.block.push(device(name, kind));
        machine.block.len() - 1
    });
    &mut machine.block[at]
}

fn device(name: &str, kind: BlockKind) -> BlockDevice {
    BlockDevice::of(BlockFacts::unread(name, DeviceNumber::default(), kind))
}

/// The disk of a partition's name (`nvme0n1p2`, `sda1`), `None` for a name that is none.
pub(crate) fn disk_of(name: &str) -> Option<&str> {
    let disk = name.trim_end_matches(|c: char| c.is_ascii_digit());
    if disk.len() == name.len() {
        return None;
    }
    let numbered =
        disk.strip_suffix('p').filter(|disk| disk.ends_with(|c: char| c.is_ascii_digit()));
    let lettered = ["sd", "vd", "xvd", "hd"].iter().any(|start| disk.starts_with(start));
    numbered.or_else(|| lettered.then_some(disk))
}

/// A device by name as disk, or as partition with the disk below it.
pub(crate) fn disk_or_partition<'m>(machine: &'m mut Machine, name: &str) -> &'m mut BlockDevice {
    let Some(disk) = disk_of(name) else { return block(machine, name, BlockKind::Disk) };
    block(machine, disk, BlockKind::Disk);
    let partition = block(machine, name, BlockKind::Partition);
    partition.facts.disk = Some(disk.to_owned());
    partition.made_of = vec![disk.to_owned()];
    partition
}

/// The card of an RDMA device or an interface: by its function, else by one of the names.
pub(crate) fn card<'m>(
    machine: &'m mut Machine,
    pci: Option<&str>,
    rdma: Option<&str>,
    interface: Option<&str>,
) -> &'m mut NicFacts {
    let is = |nic: &NicFacts| {
        let same = |ours: &str, wanted: Option<&str>| wanted == Some(ours);
        pci.is_some() && nic.pci.as_deref() == pci
            || nic.rdma.iter().any(|one| same(&one.name, rdma))
            || nic.interfaces.iter().any(|one| same(&one.name, interface))
    };
    let at = machine.nics.iter().position(is);
    let at = at.unwrap_or_else(|| {
        machine.nics.push(NicFacts::default());
        machine.nics.len() - 1
    });
    let card = &mut machine.nics[at];
    card.pci = card.pci.take().or(pci.map(str::to_owned));
    card
}

/// Gives parts what others know: arrays and mounts their functions, cards and GPUs their nodes.
pub(crate) fn complete(machine: &mut Machine) {
    gpuio_host::drive::inherit_pci_functions(&mut machine.block);
    let node = |address: Option<&String>| {
        let address = address?;
        machine.pci.iter().find(|function| function.address == *address)?.node
    };
    for gpu in &mut machine.gpus {
        gpu.node = gpu.node.or(node(gpu.pci.as_ref()));
    }
    for nic in &mut machine.nics {
        nic.node = nic.node.or(node(nic.pci.as_ref()));
    }
    machine.nics.sort_by(|a, b| (a.pci.is_none(), &a.pci).cmp(&(b.pci.is_none(), &b.pci)));
    for mount in &mut machine.mounts {
        let source = mount.mount.source.strip_prefix("/dev/").unwrap_or_default();
        let beneath = machine.block.iter().find(|device| device.facts.name == source);
        if let Some(device) = beneath {
            mount.devices = vec![device.facts.name.clone()];
            mount.pci.clone_from(&device.pci);
            mount.kind = gpuio_host::mounted::kind(&mount.mount.fs_type, true);
        } else if mount.kind == MountKind::Other && mount.mount.source.starts_with("/dev/") {
            mount.kind = MountKind::Block;
        }
    }
}
