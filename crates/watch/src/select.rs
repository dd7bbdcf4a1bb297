//! Which devices are watched.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use gpuio_host::Root;
use gpuio_record::facts::{BlockKind, Machine, MountedStorage, NicFacts};

use crate::probe::{PROBES, Reading};

/// Arrays and volumes nested deeper than this are a loop in broken facts.
const MAX_DEPTH: usize = 16;

/// Devices of the kernel's own making, by the beginnings of their names: facts leave out those of
/// them that are empty.
const MADE_UP: [&str; 3] = ["loop", "ram", "zram"];

/// Probes whose devices can be named; the others are always read whole.
const NAMED: [&str; 5] = ["block", "interface", "rdma", "nfs", "gpu"];

/// Which devices are watched.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selection {
    /// The requested devices, as (probe, device); `None` for all that are not idle or virtual.
    named: Option<BTreeSet<(&'static str, String)>>,
    /// Parts of disks and devices without hardware: left out where nothing was named.
    quiet: BTreeSet<String>,
    /// Probes that are left out.
    without: BTreeSet<&'static str>,
    /// Whether block devices are read from their own `stat` files.
    stat_files: bool,
}

/// A name that nothing here has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameAbsent {
    pub name: String,
    /// Names that there are.
    pub known: Vec<String>,
}

impl fmt::Display for NameAbsent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = if self.known.is_empty() { "none".to_owned() } else { self.known.join(", ") };
        let name = &self.name;
        write!(f, "'{name}' is no file, mount, block device, interface or GPU here; ")?;
        write!(f, "devices are: {known}")
    }
}

impl std::error::Error for NameAbsent {}

impl Selection {
    /// The same without these probes.
    #[must_use]
    pub fn without(mut self, probes: &[&'static str]) -> Selection {
        self.without.extend(probes);
        self
    }

    /// No device of any kind, until some are added with [`Selection::with`].
    pub fn nothing() -> Selection {
        let without = PROBES.iter().map(|probe| probe.name).collect();
        Selection { named: Some(Named::new()), without, ..Selection::default() }
    }

    /// The same with these devices, by probe and name. Without effect where nothing was named: then
    /// all are selected.
    #[must_use]
    pub fn with(mut self, devices: impl IntoIterator<Item = (&'static str, String)>) -> Selection {
        for (probe, name) in devices {
            self.without.remove(probe);
            if let Some(named) = &mut self.named {
                named.insert((probe, name));
            }
        }
        self
    }

    /// The same with the named block devices read from their own `stat` files:
    /// `/proc/diskstats` has the same counters, but a container may show its own account there
    /// (lxcfs).
    #[must_use]
    pub fn from_stat_files(mut self) -> Selection {
        self.stat_files = true;
        self
    }

    /// Names of the block devices whose `stat` files are to be read, paths of multipath included.
    pub(crate) fn stat_files(&self, root: &Root) -> Option<Vec<String>> {
        if !self.stat_files || self.named.is_none() {
            return None;
        }
        let mut names: Vec<String> = self.block().into_iter().map(str::to_owned).collect();
        let all = root.list("sys/class/block").unwrap_or_default();
        let paths =
            all.into_iter().filter(|name| way_to(name).is_some_and(|of| names.contains(&of)));
        let paths: Vec<String> = paths.collect();
        names.extend(paths);
        Some(names)
    }

    /// The block devices that were named, members of arrays included.
    pub fn block(&self) -> Vec<&str> {
        let named = self.named.iter().flatten().filter(|(probe, _)| *probe == "block");
        named.map(|(_, name)| name.as_str()).collect()
    }

    pub(crate) fn wants_probe(&self, probe: &str) -> bool {
        !self.without.contains(probe)
    }

    /// The same without probes of which no device is requested, so that nothing is read in vain.
    fn narrowed(mut self) -> Selection {
        let Some(named) = &self.named else { return self };
        let idle = NAMED.into_iter().filter(|probe| !named.iter().any(|(of, _)| of == probe));
        self.without.extend(idle);
        self
    }

    /// Whether any GPU may be wanted.
    pub(crate) fn wants_gpus(&self) -> bool {
        let named = self.named.as_ref();
        named.is_none_or(|named| named.iter().any(|(probe, _)| *probe == "gpu"))
    }

    pub(crate) fn wants(&self, probe: &'static str, reading: &Reading) -> bool {
        // A GPU's profile is the GPU's.
        let probe = if probe == "gpu_profile" { "gpu" } else { probe };
        if !NAMED.contains(&probe) {
            return true;
        }
        match &self.named {
            Some(named) if probe == "block" => {
                let name = way_to(&reading.name).unwrap_or_else(|| reading.name.clone());
                named.contains(&(probe, name))
            }
            Some(named) => named.contains(&(probe, reading.name.clone())),
            None => match probe {
                "block" => {
                    let made_up = MADE_UP.iter().any(|kind| reading.name.starts_with(kind));
                    !made_up && !self.quiet.contains(&reading.name) && has_counted(reading)
                }
                "interface" => reading.name != "lo" && has_counted(reading),
                _ => true,
            },
        }
    }
}

fn has_counted(reading: &Reading) -> bool {
    reading.values.iter().any(|value| value.is_some_and(|value| value > 0))
}

/// The devices behind these words: block devices with the members below them, network interfaces
/// with their RDMA devices, GPUs (`GPU2`, `2` or a PCI address), and paths, which must have no
/// links left, by the mount that they are on. No words: all that are not idle or virtual.
///
/// # Errors
/// A word that names nothing of this machine.
pub fn select(machine: &Machine, words: &[String]) -> Result<Selection, NameAbsent> {
    let quiet = machine.block.iter().filter(|device| {
        matches!(device.facts.kind, BlockKind::Partition | BlockKind::Loop | BlockKind::Virtual)
    });
    let mut selection = Selection {
        named: None,
        quiet: quiet.map(|device| device.facts.name.clone()).collect(),
        without: BTreeSet::new(),
        stat_files: false,
    };
    if words.is_empty() {
        return Ok(selection);
    }
    let mut named = BTreeSet::new();
    for word in words {
        let known = named.len();
        add_word(machine, word, &mut named);
        if named.len() == known && !found_before(machine, word, &named) {
            return Err(NameAbsent { name: word.clone(), known: names(machine) });
        }
    }
    selection.named = Some(named);
    Ok(selection)
}

/// The devices behind those of these words that name something here, and nothing else: for
/// programs, which no one can change. A list of words that names nothing watches no such device.
pub fn behind(machine: &Machine, words: &[String]) -> Selection {
    let mut named = Named::new();
    words.iter().for_each(|word| add_word(machine, word, &mut named));
    let selection = Selection { named: Some(named), ..Selection::default() };
    // Profiling counters that started with the run would be part of what is measured.
    selection.narrowed().without(&["gpu_profile"])
}

/// The NVMe namespace to which a device of this name is one of several paths: `nvme0n1` for
/// `nvme0c1n1`. The kernel counts each path, though it can't be opened
/// (drivers/nvme/host/multipath.c, `nvme_mpath_set_disk_name`).
pub fn way_to(name: &str) -> Option<String> {
    let (subsystem, rest) = name.strip_prefix("nvme")?.split_once('c')?;
    let (controller, namespace) = rest.split_once('n')?;
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let all = [subsystem, controller, namespace].into_iter().all(digits);
    all.then(|| format!("nvme{subsystem}n{namespace}"))
}

type Named = BTreeSet<(&'static str, String)>;

/// A second word may name what a first did.
fn found_before(machine: &Machine, word: &str, named: &Named) -> bool {
    let mut alone = Named::new();
    add_word(machine, word, &mut alone);
    !alone.is_empty() && alone.is_subset(named)
}

fn add_word(machine: &Machine, word: &str, named: &mut Named) {
    let plain = word.strip_prefix("/dev/").unwrap_or(word);
    if machine.block.iter().any(|device| device.facts.name == plain) {
        add_block(machine, plain, MAX_DEPTH, named);
        return;
    }
    for (nth, gpu) in machine.gpus.iter().enumerate() {
        let name = format!("GPU{}", gpu.index.known().copied().map_or(nth, |index| index as usize));
        let number = name.trim_start_matches("GPU");
        let uuid = gpu.uuid.known().map(String::as_str);
        if word == name || word == number || gpu.pci.as_deref() == Some(word) || uuid == Some(word)
        {
            named.insert(("gpu", name));
            return;
        }
    }
    if interface_of(machine, word).is_some() {
        add_interface(machine, word, MAX_DEPTH, named);
        return;
    }
    if let Some(mount) = mount_of(machine, word) {
        add_mount(machine, mount, named);
    }
}

fn add_block(machine: &Machine, name: &str, depth: usize, named: &mut Named) {
    let Some(depth) = depth.checked_sub(1) else { return };
    named.insert(("block", name.to_owned()));
    let device = machine.block.iter().find(|device| device.facts.name == name);
    for below in device.iter().flat_map(|device| &device.made_of) {
        add_block(machine, below, depth, named);
    }
}

fn interface_of<'m>(machine: &'m Machine, name: &str) -> Option<&'m NicFacts> {
    let has = |nic: &&NicFacts| {
        nic.interfaces.iter().any(|interface| interface.name == name)
            || nic.rdma.iter().any(|device| device.name == name)
    };
    machine.nics.iter().find(has)
}

fn add_interface(machine: &Machine, name: &str, depth: usize, named: &mut Named) {
    let (Some(depth), Some(nic)) = (depth.checked_sub(1), interface_of(machine, name)) else {
        return;
    };
    named.insert(("interface", name.to_owned()));
    for device in &nic.rdma {
        for port in &device.ports {
            named.insert(("rdma", format!("{}/{}", device.name, port.port)));
        }
    }
    let own = nic.interfaces.iter().filter(|interface| interface.name == name);
    for lower in own.flat_map(|interface| &interface.lower) {
        add_interface(machine, lower, depth, named);
    }
}

/// The last of the mounts whose mount point is the longest prefix of the path.
fn mount_of<'m>(machine: &'m Machine, path: &str) -> Option<&'m MountedStorage> {
    if !path.starts_with('/') {
        return None;
    }
    let above =
        machine.mounts.iter().filter(|one| Path::new(path).starts_with(&one.mount.mount_point));
    above.max_by_key(|one| Path::new(&one.mount.mount_point).components().count())
}

fn add_mount(machine: &Machine, mount: &MountedStorage, named: &mut Named) {
    for device in &mount.devices {
        add_block(machine, device, MAX_DEPTH, named);
    }
    if let Some(nfs) = &mount.nfs {
        named.insert(("nfs", mount.mount.mount_point.clone()));
        if let Some(interface) = nfs.interface.known() {
            add_interface(machine, interface, MAX_DEPTH, named);
        }
    }
}

fn names(machine: &Machine) -> Vec<String> {
    let gpus = (0..machine.gpus.len()).map(|nth| format!("GPU{nth}"));
    let block = machine.block.iter().map(|device| device.facts.name.clone());
    let nics = machine.nics.iter().flat_map(|nic| &nic.interfaces);
    gpus.chain(block).chain(nics.map(|interface| interface.name.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_to_a_namespace_are_known_by_their_names() {
        assert_eq!(way_to("nvme0c3n1").as_deref(), Some("nvme0n1"));
        assert_eq!(way_to("nvme12c0n34").as_deref(), Some("nvme12n34"));
        for other in ["nvme0n1", "nvme0c3", "nvmec1n1", "nvme0c3n1p1", "sda", "dm-0"] {
            assert_eq!(way_to(other), None, "{other}");
        }
    }

    #[test]
    fn a_namespace_brings_its_ways_and_words_that_name_nothing_bring_no_device() {
        let named = Named::from([("block", "nvme0n1".to_owned())]);
        let selection = Selection { named: Some(named), ..Selection::default() }.narrowed();
        let wants = |name: &str| selection.wants("block", &Reading::new(name, Vec::new()));
        assert!(wants("nvme0n1") && wants("nvme0c1n1"));
        assert!(!wants("nvme1n1") && !wants("nvme1c1n1"));
        assert!(selection.wants_probe("block") && selection.wants_probe("cpu"));
        assert!(!selection.wants_probe("gpu") && !selection.wants_probe("nfs"));
        let nothing = behind(&Machine::default(), &["/nowhere".to_owned()]);
        assert!(!nothing.wants_probe("block"));
    }
}
