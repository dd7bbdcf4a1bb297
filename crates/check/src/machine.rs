//! Questions to a machine that several rules ask.

use gpuio_record::facts::{
    BlockDevice, BlockKind, GpuFacts, InterfaceFacts, Machine, ModuleFacts, MountFacts,
    MountedStorage, NfsFacts, NicFacts,
};

use crate::finding::Found;

/// Where the way up of `address` ends: its root port, and the host bridge above. `None` where the
/// way is not known.
pub(crate) fn root_port<'m>(machine: &'m Machine, address: &str) -> Option<(&'m str, &'m str)> {
    let way = machine.way_up(address);
    let top = way.last()?;
    if top.parent.is_some() {
        return None;
    }
    Some((top.host_bridge.as_deref()?, top.address.as_str()))
}

/// Disks at the bottom of `name`: itself, if it is one.
pub(crate) fn disks_below<'m>(machine: &'m Machine, name: &str) -> Vec<&'m BlockDevice> {
    let mut disks: Vec<&BlockDevice> = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    let mut open = vec![name];
    while let Some(name) = open.pop() {
        let Some(device) = machine.block.iter().find(|device| device.facts.name == name) else {
            continue;
        };
        if seen.contains(&device.facts.name.as_str()) {
            continue;
        }
        seen.push(&device.facts.name);
        if device.facts.kind == BlockKind::Disk {
            disks.push(device);
        }
        open.extend(device.made_of.iter().rev().map(String::as_str));
    }
    disks
}

/// Names of disks that the system itself lies on: beneath `/`, `/boot`, `/usr` and `/var`.
pub(crate) fn system_disks(machine: &Machine) -> Vec<&str> {
    let system = ["/", "/boot", "/boot/efi", "/usr", "/var"];
    let mounts = machine.mounts.iter();
    let mounts = mounts.filter(|mount| system.contains(&mount.mount.mount_point.as_str()));
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

/// Cards with RDMA or an interface that is up.
pub(crate) fn data_nics(machine: &Machine) -> Vec<&NicFacts> {
    let up = |nic: &&NicFacts| {
        let mut interfaces = nic.interfaces.iter();
        !nic.rdma.is_empty() || interfaces.any(|port| port.state.as_deref() == Some("up"))
    };
    machine.nics.iter().filter(|nic| nic.pci.is_some()).filter(up).collect()
}

/// What to call a card: its first RDMA device or interface, else its address.
pub(crate) fn nic_name(nic: &NicFacts) -> &str {
    let rdma = nic.rdma.first().map(|device| device.name.as_str());
    let interface = || nic.interfaces.first().map(|interface| interface.name.as_str());
    rdma.or_else(interface).or(nic.pci.as_deref()).unwrap_or("a card without a name")
}

/// What to call a GPU: its PCI address, which means the same to every tool.
pub(crate) fn gpu_name(gpu: &GpuFacts) -> &str {
    gpu.pci.as_deref().or(gpu.uuid.known().map(String::as_str)).unwrap_or("a GPU without address")
}

/// Whether the kernel's own files were read: of a machine made from tools' texts, they were not,
/// and then the absence of a module or of `/run/udev` says nothing.
pub(crate) fn kernel_was_read(machine: &Machine) -> bool {
    machine.host.kernel.release.is_some() && !machine.modules.is_empty()
}

/// Whether modules were looked at: a captured tree without `sys/module` has none of them loaded,
/// and a machine with a GPU in use has at least NVIDIA's.
pub(crate) fn modules_were_read(machine: &Machine) -> bool {
    kernel_was_read(machine) && machine.modules.iter().any(|module| module.loaded)
}

/// Why facts are not there where [`modules_were_read`] is false.
pub(crate) const MODULES_NOT_READ: &str =
    "no module for I/O to GPUs is loaded, not even NVIDIA's driver, or a capture left them out";

/// Why facts of the kernel are not there where [`kernel_was_read`] is false.
pub(crate) const KERNEL_NOT_READ: &str =
    "the kernel's own files are not among what was read; run it on the machine itself";

/// The kernel's release as two numbers.
pub(crate) fn linux(machine: &Machine) -> Option<(u32, u32)> {
    let release = machine.host.kernel.release.as_deref()?;
    let mut numbers = release.split(['.', '-']).map_while(|word| word.parse::<u32>().ok());
    Some((numbers.next()?, numbers.next()?))
}

/// What a rule about GPUs says where there is none; `None` where there are some.
pub(crate) fn without_gpu(machine: &Machine) -> Option<Found> {
    if !machine.gpus.is_empty() {
        None
    } else if machine.pci.is_empty() {
        Some(Found::unknown("no PCI function is known, so no GPU either"))
    } else {
        Some(Found::pass("no GPU here"))
    }
}

/// The module of this name; `None` where modules were not looked for.
pub(crate) fn module<'m>(machine: &'m Machine, name: &str) -> Option<&'m ModuleFacts> {
    machine.modules.iter().find(|module| module.name == name)
}

/// NFS mounts with what their options say.
pub(crate) fn nfs_mounts(machine: &Machine) -> Vec<(&str, &NfsFacts)> {
    let mounts = machine.mounts.iter();
    mounts.filter_map(|m| Some((m.mount.mount_point.as_str(), m.nfs.as_ref()?))).collect()
}

/// What a rule about NFS says where there is no such mount; `None` where there are some.
pub(crate) fn without_nfs(machine: &Machine) -> Option<Found> {
    if !nfs_mounts(machine).is_empty() {
        None
    } else if machine.mounts.is_empty() {
        Some(Found::unknown("no mount is known"))
    } else {
        Some(Found::pass("no NFS mount here"))
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
    use crate::sample;

    #[test]
    fn a_ring_of_bridges_ends() {
        let mut machine = sample::gpu_and_drive_below_a_switch();
        let up = machine.pci.iter_mut().find(|f| f.address == sample::ROOT).unwrap();
        up.parent = Some(sample::UP.to_owned());
        assert_eq!(machine.way_up(sample::GPU).len(), 4);
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
