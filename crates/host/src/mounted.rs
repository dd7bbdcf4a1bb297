//! Mounts with the storage beneath them: `/proc/self/mountinfo` joined with block devices,
//! `/sys/fs/btrfs` and network cards.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;

use gpuio_record::facts::{
    BlockDevice, BlockKind, Fact, MountKind, MountedStorage, NfsFacts, NicFacts,
};

use crate::mount::Mount;
use crate::parse::keep;
use crate::{HostError, Root, net, nfs, nic};

/// The kernel's own file systems: they hold no user data.
const KERNELS_OWN: [&str; 23] = [
    "autofs",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "fusectl",
    "hugetlbfs",
    "mqueue",
    "nfsd",
    "nsfs",
    "proc",
    "pstore",
    "resctrl",
    "rpc_pipefs",
    "securityfs",
    "selinuxfs",
    "sysfs",
    "tracefs",
];

/// Each of `mounts` that may hold data. A value that cannot be understood goes to `problems`.
pub fn read(
    root: &Root,
    mounts: &[Mount],
    block: &[BlockDevice],
    nics: &[NicFacts],
    problems: &mut Vec<HostError>,
) -> Vec<MountedStorage> {
    let mut routes = Routes { root, known: HashMap::new() };
    let data = mounts.iter().filter(|mount| !is_kernels_own(&mount.fs_type));
    data.map(|mount| describe(root, mount, block, nics, &mut routes, problems)).collect()
}

/// Whether a file system of this type shows the kernel and holds no data.
pub fn is_kernels_own(fs_type: &str) -> bool {
    KERNELS_OWN.contains(&fs_type)
}

/// The kind of storage by the file system's type; `on_devices` when it lies on block devices.
pub fn kind(fs_type: &str, on_devices: bool) -> MountKind {
    match fs_type {
        "nfs" | "nfs4" => MountKind::Nfs,
        "lustre" => MountKind::Lustre,
        "beegfs" | "beegfs_nodev" => MountKind::Beegfs,
        "wekafs" => MountKind::Weka,
        "gpfs" => MountKind::Gpfs,
        "tmpfs" | "ramfs" => MountKind::Memory,
        "overlay" => MountKind::Overlay,
        _ if on_devices => MountKind::Block,
        _ => MountKind::Other,
    }
}

fn describe(
    root: &Root,
    mount: &Mount,
    block: &[BlockDevice],
    nics: &[NicFacts],
    routes: &mut Routes<'_>,
    problems: &mut Vec<HostError>,
) -> MountedStorage {
    let facts = mount.facts();
    let devices = devices(root, mount, block);
    let kind = kind(&facts.fs_type, !devices.is_empty());
    let nfs = (kind == MountKind::Nfs).then(|| {
        let options = facts.super_options.iter().chain(&facts.options).map(String::as_str);
        let read = nfs::of_options(&facts.source, options);
        NfsFacts { interface: routes.to(read.address.as_deref(), problems), ..read }
    });
    let mut pci: Vec<String> = match nfs.as_ref().and_then(|nfs| nfs.interface.known()) {
        Some(interface) => nic::functions_of(nics, interface),
        None => {
            let beneath = block.iter().filter(|device| devices.contains(&device.facts.name));
            beneath.flat_map(|device| device.pci.iter().cloned()).collect()
        }
    };
    pci.sort();
    pci.dedup();
    MountedStorage { mount: facts, kind, devices, pci, nfs }
}

/// The block devices that a mount lies on: by device number; for file systems whose number no
/// device has (btrfs, bind mounts of it), by the device that was mounted.
fn devices(root: &Root, mount: &Mount, block: &[BlockDevice]) -> Vec<String> {
    let by_number = block.iter().find(|device| device.facts.device == mount.device);
    if let Some(device) = by_number.filter(|_| mount.device.major != 0) {
        return vec![device.facts.name.clone()];
    }
    let Some(name) = named(root, &mount.source.to_string_lossy(), block) else {
        return Vec::new();
    };
    if mount.fs_type == "btrfs"
        && let Some(all) = btrfs(root, &name)
    {
        return all;
    }
    vec![name]
}

/// The device that a source such as `/dev/nvme0n1p2` or `/dev/mapper/vg-data` names.
pub(crate) fn named(root: &Root, source: &str, block: &[BlockDevice]) -> Option<String> {
    let name = source.strip_prefix("/dev/")?;
    let full = root.resolve(source);
    let resolved = full.as_deref().and_then(Path::file_name).and_then(|name| name.to_str());
    let mapped = name.strip_prefix("mapper/");
    let is = |device: &&BlockDevice| {
        let facts = &device.facts;
        let by_mapper = facts.kind == BlockKind::DeviceMapper && facts.detail.as_deref() == mapped;
        facts.name == name || Some(facts.name.as_str()) == resolved || mapped.is_some() && by_mapper
    };
    block.iter().find(is).map(|device| device.facts.name.clone())
}

/// All devices of the btrfs file system that `name` is a part of.
fn btrfs(root: &Root, name: &str) -> Option<Vec<String>> {
    let base = "sys/fs/btrfs";
    let mut all = root.list(base).ok()?.into_iter().map(|one| {
        let devices = root.list(format!("{base}/{one}/devices"));
        devices.unwrap_or_default()
    });
    all.find(|devices| devices.iter().any(|device| device == name))
}

/// Interfaces by the server's address, each queried once.
struct Routes<'r> {
    root: &'r Root,
    known: HashMap<IpAddr, Fact<String>>,
}

impl Routes<'_> {
    fn to(&mut self, address: Option<&str>, problems: &mut Vec<HostError>) -> Fact<String> {
        let Some(address) = address else {
            return Fact::unknown("the mount's options name no address");
        };
        // An address of one link only carries the link's name: `fe80::1%ib0`.
        let (plain, scope) = address.split_once('%').unwrap_or((address, ""));
        if !scope.is_empty() {
            return Fact::Known(scope.to_owned());
        }
        let Ok(address) = plain.parse::<IpAddr>() else {
            return Fact::unknown(format!("{plain} is no IP address"));
        };
        let root = self.root;
        let known = self.known.entry(address).or_insert_with(|| {
            let found = keep(net::interface_to(root, address), problems);
            Fact::or_unknown(found, "the kernel's tables show no route there")
        });
        known.clone()
    }
}
