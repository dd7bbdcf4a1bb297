//! Needs of several modes.

use gpuio_record::facts::{BlockKind, Fact, Machine, MountKind};

use crate::check::configuration::{File, compat_forced, config, file};
use crate::check::gdscheck::interpret::{by_nvidia_fs, printed};
use crate::check::machine::{has_option, kernel_was_read};
use crate::check::rule::{iommu, nothing_direct as nothing_direct_by_rule};
use crate::check::verdict::layer::{self, Disk};
use crate::check::verdict::ruled::of_rule;
use crate::check::verdict::{About, Answer, Gpu, Need, Pair};

/// That no setting sends every I/O through host memory.
pub(super) fn not_forced(pair: &Pair<'_>) -> Need {
    let forced = compat_forced(pair.machine);
    match forced.value {
        Fact::Known(true) => Need::no(
            About::Configuration,
            format!("compatibility mode is forced ({})", forced.from),
        )
        .fix("set properties.force_compat_mode to false, unset CUFILE_FORCE_COMPAT_MODE"),
        Fact::Known(false) => Need::yes(
            About::Configuration,
            format!("compatibility mode is not forced ({})", forced.from),
        ),
        Fact::Unknown(why) => Need::unknown(About::Configuration, why),
    }
}

/// Why a file system's type is not known: `lsblk` without `-f` has none.
pub(super) const FS_TYPE_NOT_READ: &str =
    "the type of the file system is not among what was read: `mount` shows it";

/// ext4 or XFS on block devices, so that O_DIRECT gets through.
pub(super) fn local_file_system(pair: &Pair<'_>) -> Need {
    let mount = pair.mount;
    let fs_type = mount.mount.fs_type.as_str();
    let network = matches!(
        mount.kind,
        MountKind::Nfs | MountKind::Lustre | MountKind::Beegfs | MountKind::Weka | MountKind::Gpfs
    );
    match fs_type {
        "ext4" => {
            let other = ["data=journal", "data=writeback"];
            match other.into_iter().find(|option| has_option(mount, option)) {
                Some(option) => {
                    Need::no(About::FileSystem, format!("ext4 is mounted with {option}"))
                        .fix("mount it with data=ordered")
                }
                None => Need::yes(About::FileSystem, "ext4 in ordered mode"),
            }
        }
        "xfs" => Need::yes(About::FileSystem, "XFS"),
        _ if network => Need::no(
            About::FileSystem,
            format!("{fs_type} is reached over the network: see mode rdma"),
        ),
        "" => Need::unknown(About::FileSystem, FS_TYPE_NOT_READ),
        _ => Need::no(About::FileSystem, format!("{fs_type} is neither ext4 nor XFS"))
            .fix("put the data on ext4 or XFS on NVMe"),
    }
}

/// Each layer below the mount, down to each drive. `array` evaluates the level of a software array.
pub(super) fn layers(pair: &Pair<'_>, array: impl Fn(&str, &str) -> Need) -> Vec<Need> {
    let all = layer::below(pair.machine, pair.mount);
    if all.is_empty() {
        let on_network = pair.mount.kind != MountKind::Block && pair.mount.nfs.is_some();
        return if on_network {
            Vec::new()
        } else {
            let why = "the devices below the mount are not among what was read: `lsblk` shows them";
            vec![Need::unknown(About::Storage, why)]
        };
    }
    let mut needs = Vec::new();
    if let Some(name) = layer::cut_off(pair.machine, pair.mount) {
        let why =
            format!("the drives below {name} are not all among what was read: `lsblk` shows them");
        needs.push(Need::unknown(About::Storage, why));
    }
    for device in all {
        let name = device.facts.name.as_str();
        match device.facts.kind {
            BlockKind::Partition => {}
            BlockKind::Md => match device.array.as_ref().and_then(|array| array.level.as_deref()) {
                Some(level) => needs.push(array(name, level)),
                None => needs.push(Need::unknown(
                    About::Storage,
                    format!("the level of {name} is not reported"),
                )),
            },
            BlockKind::DeviceMapper => {
                let mapper = device.mapper.as_deref().unwrap_or("device-mapper");
                needs.push(
                    Need::no(
                        About::Storage,
                        format!(
                            "{name} is {mapper}, through which nvidia-fs and peer-to-peer \
                         DMA do not go"
                        ),
                    )
                    .fix("use the drives or a software RAID0 of them without it"),
                );
            }
            BlockKind::Loop => {
                needs.push(Need::no(About::Storage, format!("{name} is a file on a loop device")))
            }
            BlockKind::Virtual => {
                needs.push(Need::no(About::Storage, format!("{name} has no hardware of its own")))
            }
            BlockKind::Disk => needs.push(match layer::disk(device) {
                Disk::Nvme => Need::yes(About::Storage, format!("{name} is an NVMe drive")),
                Disk::NvmeRdma => {
                    Need::yes(About::Storage, format!("{name} is an NVMe drive over RDMA"))
                }
                Disk::NvmeOther => Need::no(
                    About::Storage,
                    format!("{name} is reached over a network without RDMA"),
                ),
                Disk::NvmeUnknown => Need::unknown(
                    About::Storage,
                    format!(
                        "whether {name} is reached over PCIe or over a network is not among what \
                         was read: `ls -l /dev/disk/by-path` shows it"
                    ),
                ),
                Disk::Other => Need::no(About::Storage, format!("{name} is not an NVMe drive")),
            }),
        }
    }
    needs
}

/// An IOMMU that translates may make direct DMA fail or slow.
pub(super) fn no_translation(pair: &Pair<'_>) -> Need {
    let disks = layer::below(pair.machine, pair.mount).into_iter().filter(|d| layer::is_disk(d));
    let mut addresses: Vec<&str> = disks.flat_map(|disk| &disk.pci).map(String::as_str).collect();
    if let Gpu::Real(gpu) = pair.gpu {
        addresses.extend(gpu.pci.as_deref());
    }
    let functions: Vec<_> =
        addresses.iter().filter_map(|address| pair.machine.function(address)).collect();
    let kind = |prefix: &str| {
        let of = |domain: &String| domain.starts_with(prefix);
        functions.iter().any(|function| function.iommu_domain.as_ref().is_some_and(of))
    };
    let units = &pair.machine.settings.iommu_units;
    if kind("DMA") && units.iter().any(|unit| unit.contains("smmu")) {
        return Need::yes(About::Pcie, "an SMMU translates their DMA, as NVIDIA wants it on Grace");
    }
    if kind("DMA") {
        return Need::unknown(
            About::Pcie,
            "an IOMMU translates the DMA of GPU or drives: direct I/O may fail",
        )
        .fix("boot with `iommu=pt`");
    }
    let silent = functions.iter().any(|f| f.iommu_group.is_some() && f.iommu_domain.is_none());
    // Without a group a function is free of translation only by the kernel's own files.
    let grouped = functions.iter().all(|function| function.iommu_group.is_some());
    let read = grouped || kernel_was_read(pair.machine) && pair.machine.listed.pci;
    let some = functions.is_empty() || functions.len() < addresses.len();
    let lost = layer::cut_off(pair.machine, pair.mount).is_some();
    if silent || !read || some || lost {
        let why = "whether an IOMMU translates the DMA of GPU and drives is not known";
        let by_gdscheck = || of_rule(About::Pcie, pair.machine, "iommu");
        return by_gdscheck().unwrap_or_else(|| Need::unknown(About::Pcie, why));
    }
    if iommu::is_absent(pair.machine) {
        return Need::yes(About::Pcie, iommu::absent(pair.machine));
    }
    Need::yes(About::Pcie, "no IOMMU translates the DMA of GPU and drives")
}

/// That gdscheck printed no storage that goes past host memory, as rule `nvidia-fs` says it.
pub(super) fn nothing_direct(pair: &Pair<'_>) -> Option<Need> {
    let found = nothing_direct_by_rule(pair.machine)?;
    Some(Need { about: About::NvidiaFs, met: Answer::No, found: found.observed, fix: found.fix })
}

/// udev's database, which cuFile queries about the device below a file.
pub(super) fn udev(pair: &Pair<'_>) -> Need {
    Need::of(
        About::Udev,
        &pair.machine.settings.udev_runtime,
        "/run/udev is there",
        "/run/udev is missing: cuFile fails with 5027",
        "whether /run/udev is there is not known",
    )
    .fix_if_unmet("in a container: start it with `-v /run/udev:/run/udev:ro`")
}

/// That cuFile's configuration does not keep it from this storage.
pub(super) fn not_denied(pair: &Pair<'_>) -> Need {
    if let Some(why) = crate::check::configuration::not_read(pair.machine) {
        let lists = match printed(pair.machine) {
            Some(_) => "gdscheck does not print the lists of what cufile.json denies; ",
            None => "",
        };
        return Need::unknown(About::Configuration, format!("{lists}{why}"));
    }
    match denied(pair.machine, pair) {
        Some(what) => {
            Need::no(About::Configuration, format!("{what} of cufile.json keeps cuFile from it"))
                .fix("take the entry out of the list")
        }
        None if file(pair.machine) == File::Absent => {
            Need::yes(About::Configuration, "no cufile.json denies any of it")
        }
        None => Need::yes(About::Configuration, "cufile.json denies none of it"),
    }
}

fn denied(machine: &Machine, pair: &Pair<'_>) -> Option<String> {
    let config = config(machine);
    let devices = layer::below(machine, pair.mount);
    let names: Vec<&str> = devices.iter().map(|device| device.facts.name.as_str()).collect();
    let mount = &pair.mount.mount;
    for group in ["denylist", "blacklist"] {
        let has = |list: &str, wanted: &dyn Fn(&str) -> bool| {
            let path = format!("{group}.{list}");
            config.texts(&path).into_iter().any(wanted).then_some(path)
        };
        let below = |point: &str| {
            let rest = mount.mount_point.strip_prefix(point.trim_end_matches('/'));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let device = |path: &str| names.contains(&path.strip_prefix("/dev/").unwrap_or(path));
        let nvme = names.iter().any(|name| name.starts_with("nvme"));
        let found = has("mounts", &below)
            .or_else(|| has("filesystems", &|fs| fs == mount.fs_type))
            .or_else(|| has("devices", &device))
            .or_else(|| has("drivers", &|driver| nvme && driver == "nvme"));
        if found.is_some() {
            return found;
        }
    }
    None
}

/// A storage driver that has registered with nvidia-fs.
pub(super) fn registered(pair: &Pair<'_>, driver: &str, fix: &str) -> Need {
    match &pair.machine.settings.nvidia_fs_drivers {
        Fact::Known(drivers) if drivers.iter().any(|one| one == driver) => {
            Need::yes(About::NvidiaFs, format!("{driver} has registered with nvidia-fs"))
        }
        Fact::Known(drivers) => {
            let others =
                if drivers.is_empty() { "none has".to_owned() } else { drivers.join(", ") };
            let words = format!("{driver} has not registered with nvidia-fs ({others})");
            Need::no(About::NvidiaFs, words).fix(fix)
        }
        Fact::Unknown(why) => match by_nvidia_fs(pair.machine, driver) {
            Some((true, line)) => Need::yes(About::NvidiaFs, line),
            Some((false, line)) => Need::no(About::NvidiaFs, line).fix(fix),
            None => Need::unknown(
                About::NvidiaFs,
                format!("whether {driver} has registered with nvidia-fs is not known: {why}"),
            )
            .fix("read /proc/driver/nvidia-fs/modules there"),
        },
    }
}
