//! The storage that can be given to GPUs: mounts, arrays, drives.

use std::collections::BTreeSet;

use crate::topo::{DeviceKind, Topology};
use gpuio_record::facts::{BlockDevice, BlockKind, Machine, MountKind, MountedStorage};

use crate::pair::{DeviceAbsent, Direction, NotUsed, StoreKind, Wanted};

/// Which stores are taken first where none is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tier {
    /// File systems on drives of this machine that hold nothing of the system.
    Files,
    Network,
    /// Arrays and drives that nothing uses: for reads only.
    Raw,
    /// File systems on the system's own disks.
    System,
}

/// Something that a job can open.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    /// Mount point, or `/dev/NAME`.
    pub(crate) name: String,
    pub(crate) kind: StoreKind,
    pub(crate) tier: Tier,
    /// Where data files go; `None` for what is opened raw.
    pub(crate) directory: Option<String>,
    /// Block devices right below, or the kind of file system.
    pub(crate) on: Vec<String>,
    /// Indices in the topology of the drives below, or of the card that leads to it.
    pub(crate) parts: Vec<usize>,
    pub(crate) card: bool,
}

/// All stores and what is none, with the reasons.
#[derive(Debug, Default)]
pub(crate) struct Stock {
    pub(crate) stores: Vec<Store>,
    pub(crate) not_used: Vec<NotUsed>,
}

/// The storage of the machine, or the part of it that was named.
pub(crate) fn stock(
    machine: &Machine,
    topology: &Topology,
    wanted: &Wanted,
) -> Result<Stock, DeviceAbsent> {
    let shop = Shop { machine, topology, write: wanted.load.direction == Direction::Write };
    if wanted.mounts.is_empty() && wanted.drives.is_empty() {
        return Ok(shop.all());
    }
    let mounts = wanted.mounts.iter().map(|path| shop.named_mount(path));
    let drives = wanted.drives.iter().map(|name| shop.named_drive(name));
    let mut stores: Vec<Store> = mounts.chain(drives).collect::<Result<_, _>>()?;
    sort(&mut stores);
    stores.dedup_by(|a, b| a.name == b.name);
    Ok(Stock { stores, not_used: Vec::new() })
}

struct Shop<'m> {
    machine: &'m Machine,
    topology: &'m Topology,
    write: bool,
}

impl Shop<'_> {
    fn all(&self) -> Stock {
        let mut stock = Stock::default();
        let mut seen: BTreeSet<Vec<&String>> = BTreeSet::new();
        for mount in self.mounts() {
            if is_systems_own(&mount.mount.mount_point) && mount.mount.mount_point != "/" {
                continue;
            }
            let devices: Vec<&String> = mount.devices.iter().collect();
            match self.check_mount(mount) {
                _ if seen.contains(&devices) => {}
                Ok(store) => {
                    stock.stores.push(store);
                    if !devices.is_empty() {
                        seen.insert(devices);
                    }
                }
                Err(Some(why)) => stock.refuse(&mount.mount.mount_point, why),
                Err(None) => {}
            }
        }
        let mut raw: Vec<&BlockDevice> = self.machine.block.iter().collect();
        raw.sort_by_key(|device| natural(&device.facts.name));
        for device in raw {
            let name = &device.facts.name;
            match self.check_raw(device) {
                Ok(_) if self.is_on_usb(std::slice::from_ref(name)) => {
                    stock.refuse(name, "on USB; --drive takes it".to_owned());
                }
                Ok(store) => stock.stores.push(store),
                Err(Some(why)) => stock.refuse(name, why),
                Err(None) => {}
            }
        }
        sort(&mut stock.stores);
        stock
    }

    /// Several mounts of the same devices: first the one that shows the whole file system, then the
    /// shortest.
    fn mounts(&self) -> Vec<&MountedStorage> {
        let mut mounts: Vec<&MountedStorage> = self.machine.mounts.iter().collect();
        mounts.sort_by_key(|mount| {
            let point = &mount.mount.mount_point;
            (mount.mount.fs_root != "/", point.len(), point)
        });
        mounts
    }

    /// The store, or why it is none; no reason where it would be obvious.
    fn check_mount(&self, mount: &MountedStorage) -> Result<Store, Option<String>> {
        let why = match mount.kind {
            MountKind::Memory | MountKind::Overlay => return Err(None),
            MountKind::Other => {
                Some(format!("{}: what lies beneath is not known", mount.mount.fs_type))
            }
            _ if is_read_only(mount) => Some("mounted read-only: no data can be made".to_owned()),
            MountKind::Block if mount.devices.is_empty() => Some("its device is not known".into()),
            _ if self.is_on_usb(&mount.devices) => Some("on USB; --mount takes it".to_owned()),
            _ => None,
        };
        match why {
            Some(why) => Err(Some(why)),
            None => Ok(self.of_mount(mount, self.directory(mount))),
        }
    }

    /// Where data goes on a mount that was not named: on the root, where any user may write and a
    /// restart keeps it (Filesystem Hierarchy Standard 3.0, 5.15).
    fn directory<'a>(&self, mount: &'a MountedStorage) -> &'a str {
        const KEPT: &str = "/var/tmp";
        let elsewhere = |other: &MountedStorage| {
            let point = other.mount.mount_point.as_str();
            point == "/var" || point == KEPT
        };
        match mount.mount.mount_point.as_str() {
            "/" if !self.machine.mounts.iter().any(elsewhere) => KEPT,
            point => point,
        }
    }

    fn of_mount(&self, mount: &MountedStorage, directory: &str) -> Store {
        let local = !is_network(mount.kind);
        let disks = leaves(self.machine, &mount.devices);
        let system = system_disks(self.machine);
        let tier = match (local, disks.iter().any(|disk| system.contains(disk))) {
            (true, true) => Tier::System,
            (true, false) => Tier::Files,
            (false, _) => Tier::Network,
        };
        let parts =
            if local { self.indices(&disks) } else { self.topology.cards_to(self.machine, mount) };
        let kind = if local { StoreKind::Mount } else { StoreKind::NetworkMount };
        let on = match mount.devices.as_slice() {
            [] => vec![mount.mount.fs_type.clone()],
            devices => devices.to_vec(),
        };
        let directory = Some(directory.to_owned());
        let name = mount.mount.mount_point.clone();
        Store { name, kind, tier, directory, on, parts, card: !local }
    }

    /// An array or drive that nothing uses.
    fn check_raw(&self, device: &BlockDevice) -> Result<Store, Option<String>> {
        let name = &device.facts.name;
        let array = device.facts.kind == BlockKind::Md;
        let no_disk = ["sr", "fd", "mmcblk0boot"].iter().any(|start| name.starts_with(start));
        if !(array || device.facts.kind == BlockKind::Disk) || no_disk || self.is_mounted(name) {
            return Err(None);
        }
        if device.facts.size_bytes == Some(0) {
            return Err(None);
        }
        if let Some(user) = self.user_of(name) {
            let part = user.facts.kind == BlockKind::Partition && !self.is_mounted_above(name);
            return Err(part.then(|| "it has partitions, and no mount of them is known".to_owned()));
        }
        if self.write {
            return Err(Some("raw: writes would destroy what it holds".to_owned()));
        }
        Ok(Store {
            name: if device.facts.has_kernel_name() {
                format!("/dev/{name}")
            } else {
                name.clone()
            },
            kind: if array { StoreKind::Array } else { StoreKind::Drive },
            tier: Tier::Raw,
            directory: None,
            on: vec![name.clone()],
            parts: self.indices(&leaves(self.machine, std::slice::from_ref(name))),
            card: false,
        })
    }

    fn named_mount(&self, path: &str) -> Result<Store, DeviceAbsent> {
        let bare = if path == "/" { path } else { path.trim_end_matches('/') };
        let holds = |mount: &&MountedStorage| {
            let point = mount.mount.mount_point.as_str();
            let below = bare.strip_prefix(point.trim_end_matches('/'));
            below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) || point == bare
        };
        let found = self.machine.mounts.iter().filter(holds);
        // The last of several mounts on the same point is on top.
        let Some(mount) = found.max_by_key(|mount| mount.mount.mount_point.len()) else {
            let known: Vec<String> = self.all().stores.into_iter().map(|one| one.name).collect();
            let why = format!("no mount is known that holds it; there are: {}", list(&known));
            return Err(DeviceAbsent { flag: "--mount", name: path.to_owned(), why });
        };
        if is_read_only(mount) {
            let why = "mounted read-only: no data can be made there".to_owned();
            return Err(DeviceAbsent { flag: "--mount", name: path.to_owned(), why });
        }
        Ok(self.of_mount(mount, bare))
    }

    fn named_drive(&self, given: &str) -> Result<Store, DeviceAbsent> {
        let refused = |why| DeviceAbsent { flag: "--drive", name: given.to_owned(), why };
        let bare = given.strip_prefix("/dev/").unwrap_or(given);
        let block = |name: &str| self.machine.block.iter().find(|one| one.facts.name == name);
        let index = self.topology.find(bare).map(|index| &self.topology.devices[index]);
        let alias = index.filter(|device| device.kind == DeviceKind::Drive);
        let Some(device) = block(bare).or_else(|| block(&alias?.name)) else {
            let kinds = [BlockKind::Disk, BlockKind::Md];
            let all = self.machine.block.iter().filter(|one| kinds.contains(&one.facts.kind));
            let known: Vec<String> = all.map(|one| one.facts.name.clone()).collect();
            return Err(refused(format!("no such drive or array; there are: {}", list(&known))));
        };
        let name = &device.facts.name;
        let mut mounts = self.mounts().into_iter();
        if let Some(mount) = mounts.find(|mount| mount.devices.contains(name)) {
            return self.named_mount(&mount.mount.mount_point);
        }
        if let Some(user) = self.user_of(name) {
            let user = &user.facts.name;
            return Err(refused(format!("it is part of {user}: name that, or a mount on it")));
        }
        self.check_raw(device).map_err(|why| {
            refused(why.unwrap_or_else(|| "it is no drive or array that can be read".to_owned()))
        })
    }

    /// Whether a drive below hangs on USB, where nobody keeps data for GPUs.
    fn is_on_usb(&self, devices: &[String]) -> bool {
        let disks = leaves(self.machine, devices);
        let below = self.machine.block.iter().filter(|one| disks.contains(&one.facts.name));
        below.into_iter().any(|one| one.facts.transport.as_deref() == Some("usb"))
    }

    fn indices(&self, disks: &[String]) -> Vec<usize> {
        disks.iter().filter_map(|disk| self.topology.find(disk)).collect()
    }

    fn is_mounted(&self, name: &String) -> bool {
        self.machine.mounts.iter().any(|mount| mount.devices.contains(name))
    }

    /// The first device that is made of this one.
    fn user_of(&self, name: &String) -> Option<&BlockDevice> {
        self.machine.block.iter().find(|device| device.made_of.contains(name))
    }

    fn is_mounted_above(&self, name: &String) -> bool {
        let users = self.machine.block.iter().filter(|device| device.made_of.contains(name));
        let above: Vec<&String> = users.map(|user| &user.facts.name).collect();
        self.is_mounted(name) || above.into_iter().any(|user| self.is_mounted_above(user))
    }
}

impl Stock {
    fn refuse(&mut self, name: &str, why: String) {
        self.not_used.push(NotUsed { name: name.to_owned(), why });
    }
}

fn sort(stores: &mut [Store]) {
    stores.sort_by_key(|store| (store.tier, natural(&store.name)));
}

fn list(known: &[String]) -> String {
    if known.is_empty() { "none".to_owned() } else { known.join(", ") }
}

/// Mount points where a system keeps its own, or a container's engine puts single files.
fn is_systems_own(point: &str) -> bool {
    const TREES: [&str; 9] =
        ["/boot", "/efi", "/etc", "/usr", "/snap", "/dev", "/run", "/proc", "/sys"];
    let in_tree = |tree: &&str| {
        point.strip_prefix(*tree).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    ["/", "/var", "/var/log"].contains(&point) || TREES.iter().any(in_tree)
}

/// Disks below the root and its kin; single files of a container are no sign of one.
fn system_disks(machine: &Machine) -> BTreeSet<String> {
    let is_own = |point: &str| is_systems_own(point) && !point.starts_with("/etc/");
    let own = machine.mounts.iter().filter(|mount| is_own(&mount.mount.mount_point));
    own.flat_map(|mount| leaves(machine, &mount.devices)).collect()
}

/// The disks at the bottom of block devices, each once, in natural order.
pub(crate) fn leaves(machine: &Machine, names: &[String]) -> Vec<String> {
    let mut found: BTreeSet<String> = BTreeSet::new();
    let mut seen: BTreeSet<&String> = BTreeSet::new();
    let mut open: Vec<&String> = names.iter().collect();
    while let Some(name) = open.pop() {
        let device = machine.block.iter().find(|device| device.facts.name == *name);
        let Some(device) = device.filter(|_| seen.insert(name)) else { continue };
        if device.facts.kind == BlockKind::Disk {
            found.insert(name.clone());
        }
        open.extend(&device.made_of);
    }
    let mut found: Vec<String> = found.into_iter().collect();
    found.sort_by_key(|name| natural(name));
    found
}

fn is_network(kind: MountKind) -> bool {
    match kind {
        MountKind::Nfs
        | MountKind::Lustre
        | MountKind::Beegfs
        | MountKind::Weka
        | MountKind::Gpfs => true,
        MountKind::Block | MountKind::Memory | MountKind::Overlay | MountKind::Other => false,
    }
}

fn is_read_only(mount: &MountedStorage) -> bool {
    let has = |options: &[String]| options.iter().any(|option| option == "ro");
    has(&mount.mount.options) || has(&mount.mount.super_options)
}

/// A key that sorts numbers as numbers: `nvme2n1` before `nvme10n1`.
pub(crate) fn natural(name: &str) -> Vec<(bool, u64, String)> {
    let mut parts: Vec<(bool, u64, String)> = Vec::new();
    for letter in name.chars() {
        let digit = letter.to_digit(10).map(u64::from);
        match (parts.last_mut(), digit) {
            (Some((true, number, _)), Some(digit)) => {
                *number = number.saturating_mul(10).saturating_add(digit);
            }
            (_, Some(digit)) => parts.push((true, digit, String::new())),
            (Some((false, _, text)), None) => text.push(letter),
            (_, None) => parts.push((false, 0, letter.to_string())),
        }
    }
    parts
}
