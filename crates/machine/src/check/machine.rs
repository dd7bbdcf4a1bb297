//! Queries on a machine that several rules share.

use gpuio_record::facts::{
    BlockDevice, BlockKind, GpuFacts, InterfaceFacts, Machine, ModuleFacts, MountFacts,
    MountedStorage, NfsFacts, NicFacts,
};
use std::borrow::Cow;

use crate::check::finding::Found;

/// The root port above `address`, and the host bridge above that. `None` where the route is not
/// known.
pub(crate) fn root_port<'m>(machine: &'m Machine, address: &str) -> Option<(&'m str, &'m str)> {
    let route = machine.upstream_path(address);
    let top = route.last()?;
    if top.parent.is_some() {
        return None;
    }
    Some((top.host_bridge.as_deref()?, top.address.as_str()))
}

/// Disks at the bottom of `name`: itself, if it is one.
pub(crate) fn disks_below<'m>(machine: &'m Machine, name: &str) -> Vec<&'m BlockDevice> {
    let mut disks: Vec<&BlockDevice> = Vec::new();
    let mut visited: Vec<&str> = Vec::new();
    let mut open = vec![name];
    while let Some(name) = open.pop() {
        let Some(device) = machine.block.iter().find(|device| device.facts.name == name) else {
            continue;
        };
        if visited.contains(&device.facts.name.as_str()) {
            continue;
        }
        visited.push(&device.facts.name);
        if device.facts.kind == BlockKind::Disk {
            disks.push(device);
        }
        open.extend(device.made_of.iter().rev().map(String::as_str));
    }
    disks
}

/// Whether the system itself lies there.
pub(crate) fn is_of_system(mount: &MountedStorage) -> bool {
    ["/", "/boot", "/boot/efi", "/usr", "/var"].contains(&mount.mount.mount_point.as_str())
}

/// Names of disks that the system itself lies on: beneath `/`, `/boot`, `/usr` and `/var`.
pub(crate) fn system_disks(machine: &Machine) -> Vec<&str> {
    let mounts = machine.mounts.iter().filter(|mount| is_of_system(mount));
    let devices = mounts.flat_map(|mount| &mount.devices);
    let disks = devices.flat_map(|device| disks_below(machine, device));
    disks.map(|disk| disk.facts.name.as_str()).collect()
}

/// Disks on PCI that the system does not lie on: those that data would be read from.
pub(crate) fn data_drives(machine: &Machine) -> Vec<&BlockDevice> {
    let system = system_disks(machine);
    let disks = machine.block.iter().filter(|device| device.facts.kind == BlockKind::Disk);
    let on_pci = disks.filter(|disk| !disk.pci.is_empty());
    on_pci.filter(|disk| !system.contains(&disk.facts.name.as_str())).collect()
}

/// Cards with RDMA or an interface that is up, or whose state is not known.
pub(crate) fn data_nics(machine: &Machine) -> Vec<&NicFacts> {
    let up = |nic: &&NicFacts| {
        let mut interfaces = nic.interfaces.iter();
        let may_be_up = |state: Option<&str>| state.is_none_or(|state| state == "up");
        !nic.rdma.is_empty() || interfaces.any(|port| may_be_up(port.state.as_deref()))
    };
    machine.nics.iter().filter(|nic| nic.pci.is_some()).filter(up).collect()
}

/// The name of a card: its first RDMA device or interface, else its address.
pub(crate) fn nic_name(nic: &NicFacts) -> &str {
    let rdma = nic.rdma.first().map(|device| device.name.as_str());
    let interface = || nic.interfaces.first().map(|interface| interface.name.as_str());
    rdma.or_else(interface).or(nic.pci.as_deref()).unwrap_or("a card without a name")
}

/// The name of a GPU: its PCI address, which means the same to every tool, else what is known.
pub(crate) fn gpu_name(gpu: &GpuFacts) -> Cow<'_, str> {
    match (gpu.pci.as_deref().or(gpu.uuid.known().map(String::as_str)), gpu.index.known()) {
        (Some(name), _) => name.into(),
        (None, Some(index)) => format!("GPU{index}").into(),
        (None, None) => "a GPU without address".into(),
    }
}

/// Whether a list of all NUMA nodes was read, and has one. Nodes that a matrix names are those near
/// to GPUs alone.
pub(crate) fn one_node(machine: &Machine) -> bool {
    machine.listed.nodes && machine.host.numa.nodes.len() == 1
}

/// Whether the kernel's own files were read: of a machine made from tools' texts, they were not,
/// and then the absence of a module means nothing.
pub(crate) fn kernel_was_read(machine: &Machine) -> bool {
    machine.listed.pci && machine.host.kernel.release.is_some() && !machine.modules.is_empty()
}

/// Whether modules were looked at: all of them, or some that are loaded. Facts without either are
/// of a captured tree without `sys/module`.
pub(crate) fn modules_were_read(machine: &Machine) -> bool {
    let any_loaded = || machine.modules.iter().any(|module| module.loaded);
    kernel_was_read(machine) && (machine.listed.modules || any_loaded())
}

/// Why facts are not there where [`modules_were_read`] is false.
pub(crate) fn modules_not_read(machine: &Machine) -> &'static str {
    if kernel_was_read(machine) {
        "/sys/module is not among what was read"
    } else if machine.modules.is_empty() {
        "kernel modules are not among what was read"
    } else {
        "not all kernel modules are among what was read"
    }
}

/// Why facts of the kernel are not there where [`kernel_was_read`] is false.
pub(crate) const KERNEL_NOT_READ: &str =
    "the kernel's own files are not among what was read; run it on the machine itself";

/// `CAP_IPC_LOCK` of capabilities(7): RLIMIT_MEMLOCK does not count.
pub(crate) const CAP_IPC_LOCK: u32 = 14;
/// `CAP_SYS_ADMIN` of capabilities(7).
pub(crate) const CAP_SYS_ADMIN: u32 = 21;

/// Whether this process has a capability; `None` where that was not read.
pub(crate) fn has_capability(machine: &Machine, capability: u32) -> Option<bool> {
    machine.host.kernel.capabilities.map(|mask| mask >> capability & 1 == 1)
}

/// The kernel's release as two numbers.
pub(crate) fn linux(machine: &Machine) -> Option<(u32, u32)> {
    let release = machine.host.kernel.release.as_deref()?;
    let mut numbers = release.split(['.', '-']).map_while(|word| word.parse::<u32>().ok());
    Some((numbers.next()?, numbers.next()?))
}

/// The finding of a rule about GPUs where there is no GPU or none is known; else `None`.
pub(crate) fn without_gpu(machine: &Machine) -> Option<Found> {
    if !machine.gpus.is_empty() {
        return None;
    }
    gpu_is_absent(machine).or_else(|| {
        Some(Found::unknown(if machine.pci.is_empty() {
            "no PCI function is known, so no GPU either"
        } else {
            "no NVIDIA GPU is among what was read"
        }))
    })
}

/// The finding of a rule about GPUs or NVIDIA's library where the kernel lists no GPU.
pub(crate) fn gpu_is_absent(machine: &Machine) -> Option<Found> {
    let absent = machine.gpus.is_empty() && machine.listed.pci;
    absent.then(|| Found::not_applicable("no NVIDIA GPU here"))
}

/// The machine has no part that a rule is about: the rule does not apply where the list is whole.
pub(crate) fn none_of(whole: bool, none: &str) -> Found {
    if whole {
        Found::not_applicable(format!("no {none} here"))
    } else {
        Found::unknown(format!("no {none} is among what was read"))
    }
}

/// A drive or a card with its name, its PCI functions and its NUMA node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) name: String,
    pub(crate) pci: Vec<String>,
    pub(crate) node: Option<u32>,
}

/// Data drives; where the list of them is not whole, also controllers of NVMe that are known by
/// their class alone, as `lspci` shows them.
pub(crate) fn placed_drives(machine: &Machine) -> Vec<Placed> {
    let named = data_drives(machine).into_iter().map(|drive| {
        let node = drive.pci.first().and_then(|pci| machine.function(pci)?.node);
        let name = drive.facts.name.clone();
        Placed { name, pci: drive.pci.clone(), node: node.or(drive.facts.numa_node) }
    });
    let known: Vec<&str> =
        machine.block.iter().flat_map(|device| &device.pci).map(String::as_str).collect();
    let by_class = by_class(machine, !machine.listed.block, &known, |class| class >> 8 == 0x0108);
    named.chain(by_class).collect()
}

/// Cards in use; where the list of them is not whole, also network controllers that are known by
/// their class alone.
pub(crate) fn placed_nics(machine: &Machine) -> Vec<Placed> {
    let named = data_nics(machine).into_iter().map(|nic| Placed {
        name: nic_name(nic).to_owned(),
        pci: nic.pci.iter().cloned().collect(),
        node: nic.node,
    });
    // Cards without a name are known by their class alone.
    let is_named = |nic: &&NicFacts| !nic.interfaces.is_empty() || !nic.rdma.is_empty();
    let known = machine.nics.iter().filter(is_named).filter_map(|nic| nic.pci.as_deref());
    let known: Vec<&str> = known.collect();
    let by_class = by_class(machine, !machine.listed.nics, &known, |class| class >> 16 == 2);
    named.chain(by_class).collect()
}

fn by_class(
    machine: &Machine,
    wanted: bool,
    known: &[&str],
    is: impl Fn(u32) -> bool,
) -> Vec<Placed> {
    let functions = machine.pci.iter().filter(|function| {
        wanted && function.class.is_some_and(&is) && !known.contains(&&*function.address)
    });
    let placed = functions.map(|function| Placed {
        name: function.address.clone(),
        pci: vec![function.address.clone()],
        node: function.node,
    });
    placed.collect()
}

/// GPUs of which no PCI function is known.
pub(crate) fn gpus_not_placed(machine: &Machine) -> impl Iterator<Item = &GpuFacts> {
    let placed =
        |gpu: &&GpuFacts| gpu.pci.as_deref().and_then(|pci| machine.function(pci)).is_some();
    machine.gpus.iter().filter(move |gpu| !placed(gpu))
}

/// Those of `addresses` whose route to the root complex is not fully known.
pub(crate) fn with_unknown_root_port<'a>(machine: &Machine, addresses: &[&'a str]) -> Vec<&'a str> {
    let open = |address: &&&str| root_port(machine, address).is_none();
    addresses.iter().filter(open).copied().collect()
}

/// The module of this name; `None` where modules were not looked for.
pub(crate) fn module<'m>(machine: &'m Machine, name: &str) -> Option<&'m ModuleFacts> {
    machine.modules.iter().find(|module| module.name == name)
}

/// The module of that name where it is known whether it is loaded. A text has the modules that it
/// shows, or shows to be absent, alone.
pub(crate) fn known_module<'m>(machine: &'m Machine, name: &str) -> Option<&'m ModuleFacts> {
    let known = !kernel_was_read(machine) || modules_were_read(machine);
    module(machine, name).filter(|_| known)
}

/// NFS mounts with the facts from their options.
pub(crate) fn nfs_mounts(machine: &Machine) -> Vec<(&str, &NfsFacts)> {
    let mounts = machine.mounts.iter();
    mounts.filter_map(|m| Some((m.mount.mount_point.as_str(), m.nfs.as_ref()?))).collect()
}

/// The finding of a rule about NFS where there is no NFS mount; else `None`.
pub(crate) fn without_nfs(machine: &Machine) -> Option<Found> {
    if !nfs_mounts(machine).is_empty() {
        None
    } else {
        Some(none_of(machine.listed.mounts, "NFS mount"))
    }
}

/// The network interface of this name.
pub(crate) fn interface<'m>(machine: &'m Machine, name: &str) -> Option<&'m InterfaceFacts> {
    let mut all = machine.nics.iter().flat_map(|nic| &nic.interfaces);
    all.find(|interface| interface.name == name)
}

/// Whether a mount has this option, be it of the mount or of the file system.
pub(crate) fn has_option(mount: &MountedStorage, option: &str) -> bool {
    let MountFacts { options, super_options, .. } = &mount.mount;
    options.iter().chain(super_options).any(|one| one == option)
}

/// `1 drive`, `2 drives`.
pub(crate) fn count(number: usize, one: &str) -> String {
    format!("{number} {one}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::sample;

    #[test]
    fn a_ring_of_bridges_ends() {
        let mut machine = sample::gpu_and_drive_below_a_switch();
        let up = machine.pci.iter_mut().find(|f| f.address == sample::ROOT).unwrap();
        up.parent = Some(sample::UP.to_owned());
        assert_eq!(machine.upstream_path(sample::GPU).len(), 4);
        assert_eq!(root_port(&machine, sample::GPU), None);
    }

    #[test]
    fn a_ring_of_devices_ends() {
        let mut machine = sample::gpu_and_drive_below_a_switch();
        machine.block[0].made_of = vec!["nvme0n1".to_owned()];
        assert_eq!(disks_below(&machine, "nvme0n1").len(), 1);
    }

    #[test]
    fn the_disk_of_the_system_is_no_data_drive() {
        let mut machine = sample::gpu_and_drive_below_a_switch();
        assert_eq!(data_drives(&machine).len(), 1);
        machine.mounts.push(sample::mount("/", "nvme0n1"));
        assert!(data_drives(&machine).is_empty());
    }
}
