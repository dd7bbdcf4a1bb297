//! One mount and one GPU: which data paths between them will work, and why the others will not.

mod gpu;
pub(super) mod layer;
mod mode;
mod narrow;
mod need;
mod ruled;
mod stack;
mod text;

use crate::check::machine::disks_below;
use crate::topo::Coherent;
use gpuio_record::facts::{BlockDevice, GpuFacts, Machine, MountedStorage};
use serde::Serialize;

pub use mode::{MODES, Mode};
pub use narrow::narrow;
pub use need::{About, Answer, Need};
pub(crate) use text::answer;
pub use text::section;

/// A mount and a GPU of one machine.
#[derive(Debug, Clone, Copy)]
pub struct Pair<'m> {
    /// The machine, whole.
    pub machine: &'m Machine,
    pub mount: &'m MountedStorage,
    pub gpu: Gpu<'m>,
}

#[derive(Debug, Clone, Copy)]
pub enum Gpu<'m> {
    Real(&'m GpuFacts),
    /// gpuio's software GPU: host memory that implements the driver's calls.
    Software,
    None,
}

/// Which modes work between a mount and a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    pub path: String,
    /// The mount that serves it.
    pub mount_point: String,
    /// Its file system.
    pub fs_type: String,
    /// Options of the mount and of its file system, each once, with commas between.
    pub mount_options: String,
    /// The storage below the mount, down to each drive or to the server.
    pub storage: Vec<String>,
    pub gpu: String,
    /// Its coherent link to the processor; `null` where none is known.
    pub coherent: Option<Coherent>,
    /// Each data path, in the order of [`MODES`].
    pub modes: Vec<ModeVerdict>,
}

impl Verdict {
    /// The path, its file system and the GPU, where there is one, in words.
    pub(crate) fn pair(&self) -> String {
        let fs_type =
            if self.fs_type.is_empty() { "file system unknown" } else { self.fs_type.as_str() };
        match self.gpu == gpu::NO_GPU {
            true => format!("{} ({fs_type})", self.path),
            false => format!("{} ({fs_type}) and {}", self.path, self.gpu),
        }
    }
}

/// Whether one data path will work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModeVerdict {
    pub mode: &'static str,
    pub is: &'static str,
    /// `yes` where every need is met, `no` where one is not, else `unknown`.
    pub works: Answer,
    /// The needs, each with the finding on it.
    pub needs: Vec<Need>,
    /// Where these needs are from.
    pub source: &'static str,
}

/// Evaluates every mode for a pair; `path` is what the user named.
pub fn verdict(pair: &Pair<'_>, path: &str) -> Verdict {
    let modes = MODES.iter().map(|mode| {
        let needs = (mode.needs)(pair);
        let works = Answer::of_all(needs.iter().map(|need| need.met));
        ModeVerdict { mode: mode.name, is: mode.is, works, needs, source: mode.source }
    });
    let mount = &pair.mount.mount;
    let options = mount.options.iter().chain(&mount.super_options);
    let options = gpuio_base::document::unique(options.map(String::as_str));
    Verdict {
        path: path.to_owned(),
        mount_point: pair.mount.mount.mount_point.clone(),
        fs_type: pair.mount.mount.fs_type.clone(),
        mount_options: options.join(","),
        storage: stack::lines(pair.machine, pair.mount),
        gpu: gpu::title(pair),
        coherent: match pair.gpu {
            Gpu::Real(gpu) => crate::check::coherent::of(pair.machine, gpu),
            Gpu::Software | Gpu::None => None,
        },
        modes: modes.collect(),
    }
}

/// The mount that serves an absolute path: the longest mount point above it, of two on one mount
/// point the later one, which covers the other.
pub fn mount_of<'m>(machine: &'m Machine, path: &str) -> Option<&'m MountedStorage> {
    let above = machine.mounts.iter().filter(|mount| {
        let point = mount.mount.mount_point.trim_end_matches('/');
        path.strip_prefix(point).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    above.max_by_key(|mount| mount.mount.mount_point.trim_end_matches('/').len())
}

/// The drives, on PCI as far as is known, below a device node or the mount that serves a path, each
/// once; none below the mount of `/`, which serves any path.
pub fn drives_of(machine: &Machine, path: &str) -> Vec<String> {
    let disks = disks_of(machine, path).into_iter();
    let mut names: Vec<String> =
        disks.filter(|disk| !disk.pci.is_empty()).map(|disk| disk.facts.name.clone()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Names of devices that together are all of a path's storage, at two levels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Whole<'m> {
    /// The devices of the mount, or the device node itself.
    pub top: Vec<&'m str>,
    /// The drives below them, each once.
    pub drives: Vec<&'m str>,
}

/// The whole storage below a device node or the mount that serves a path; `None` where texts do not
/// show all of it: an array without its members, or a pool that mounts name by one member.
pub fn whole_below<'m>(machine: &'m Machine, path: &str) -> Option<Whole<'m>> {
    let of_mount = |mount: &MountedStorage| match mount.mount.fs_type.as_str() {
        "btrfs" | "zfs" | "bcachefs" => None,
        _ => Some(mount.devices.clone()),
    };
    let devices = match path.strip_prefix("/dev/") {
        Some(name) => vec![name.to_owned()],
        None => of_mount(mount_of(machine, path)?)?,
    };
    let mount = MountedStorage { devices, ..MountedStorage::default() };
    let is_cut = mount.devices.is_empty() || layer::cut_off(machine, &mount).is_some();
    let all = (!is_cut).then(|| layer::below(machine, &mount))?;
    let name = |device: &&'m BlockDevice| device.facts.name.as_str();
    let is_top = |device: &&&BlockDevice| mount.devices.contains(&device.facts.name);
    let top = all.iter().filter(is_top).map(name).collect();
    let drives: Vec<&str> = all.iter().filter(|device| layer::is_disk(device)).map(name).collect();
    (!drives.is_empty()).then_some(Whole { top, drives })
}

/// Whether gdscheck printed the drives of [`drives_of`] as none that nvidia-fs serves.
pub fn is_without_nvidia_fs(machine: &Machine, path: &str) -> bool {
    let line = super::gdscheck::interpret::drives_by_nvidia_fs(machine, disks_of(machine, path));
    line.is_some_and(|(served, _)| !served)
}

fn disks_of<'m>(machine: &'m Machine, path: &str) -> Vec<&'m BlockDevice> {
    let device = path.strip_prefix("/dev/").map(|name| vec![name.to_owned()]);
    let mount = || mount_of(machine, path).filter(|mount| mount.mount.mount_point != "/");
    let devices = device.or_else(|| mount().map(|mount| mount.devices.clone()));
    devices.iter().flatten().flat_map(|name| disks_below(machine, name)).collect()
}

/// The GPU of this number (the driver's, else the position in the list by PCI address), PCI address
/// or UUID.
pub fn gpu_of<'m>(machine: &'m Machine, name: &str) -> Option<&'m GpuFacts> {
    let name = name.strip_prefix("GPU").filter(|rest| !rest.starts_with('-')).unwrap_or(name);
    let number: Option<u32> = name.parse().ok();
    let by_index =
        machine.gpus.iter().find(|gpu| number.is_some() && gpu.index.known() == number.as_ref());
    let reported = machine.gpus.iter().any(|gpu| gpu.index.known().is_some());
    let by_position = || {
        let position = number.filter(|_| !reported)?;
        machine.gpus.get(usize::try_from(position).ok()?)
    };
    let same = |gpu: &&GpuFacts| {
        gpu.pci.as_deref().is_some_and(|pci| pci == name || pci.strip_prefix("0000:") == Some(name))
            || gpu.uuid.known().is_some_and(|uuid| uuid == name)
    };
    by_index.or_else(by_position).or_else(|| machine.gpus.iter().find(same))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::sample;

    #[test]
    fn the_longest_and_latest_mount_serves_a_path() {
        let mounts = [("/", "a"), ("/data", "b"), ("/data/x", "c"), ("/data", "d")];
        let machine = Machine {
            mounts: mounts.map(|(at, device)| sample::mount(at, device)).to_vec(),
            ..Machine::default()
        };
        let device = |path| mount_of(&machine, path).unwrap().devices[0].as_str();
        assert_eq!(device("/data/x/y"), "c");
        assert_eq!(device("/data/xy"), "d");
        assert_eq!(device("/dat"), "a");
    }

    /// A device's rate is that of a file only where nothing else holds parts of it.
    #[test]
    fn the_whole_storage_below_a_path_is_known_or_not() {
        let mut machine = sample::gpu_and_drive_below_a_switch();
        machine.block =
            ["nvme0n1", "nvme1n1"].map(|name| sample::disk(name, "0000:80:00.0")).into();
        machine.mounts = vec![sample::mount("/a", "nvme0n1"), sample::mount("/m", "md0")];
        let whole = |machine: &Machine, path: &str| {
            whole_below(machine, path).map(|all| (all.top.concat(), all.drives.concat()))
        };
        let is = |top: &str, drives: &str| Some((top.to_owned(), drives.to_owned()));
        assert_eq!(whole(&machine, "/a/f"), is("nvme0n1", "nvme0n1"));
        assert_eq!(whole(&machine, "/dev/nvme1n1"), is("nvme1n1", "nvme1n1"));
        assert_eq!(whole(&machine, "/m/f"), None, "an array of which nothing is known");
        let mut array = machine.block[0].clone();
        array.facts.name = "md0".to_owned();
        array.facts.kind = gpuio_record::facts::BlockKind::Md;
        array.made_of = vec!["nvme0n1".to_owned(), "nvme1n1".to_owned()];
        machine.block.push(array);
        assert_eq!(whole(&machine, "/m/f"), is("md0", "nvme0n1nvme1n1"));
        machine.mounts[0].mount.fs_type = "btrfs".to_owned();
        assert_eq!(whole(&machine, "/a/f"), None, "mounts name one member of a pool");
        machine.block.remove(1);
        assert_eq!(whole(&machine, "/m/f"), None, "a member is missing");
    }

    #[test]
    fn gpus_by_number_address_and_position() {
        let mut machine = sample::gpu_and_drive_below_a_switch();
        for name in ["0", "GPU0", sample::GPU, "03:00.0"] {
            assert!(gpu_of(&machine, name).is_some(), "{name}");
        }
        assert!(gpu_of(&machine, "1").is_none());
        machine.gpus[0].index = gpuio_record::facts::Fact::Known(1);
        assert!(gpu_of(&machine, "0").is_none(), "the driver's number goes before the position");
        assert!(gpu_of(&machine, "1").is_some());
    }
}
