//! NVIDIA's kernel module nvidia-fs.

use std::collections::BTreeSet;

use gpuio_record::facts::{GdsCheck, Machine, ModuleFacts, MountKind};

use super::Rule;
use crate::check::finding::{Found, Severity};
use crate::check::gdscheck::NOT_LOADED;
use crate::check::gdscheck::interpret::{
    DataPath, by_nvidia_fs, data_path, drives_by_nvidia_fs, or_printed, printed, storage, torn,
};
use crate::check::machine::{known_module, modules_not_read, modules_were_read, without_gpu};
use crate::check::verdict::layer;

pub(super) const RULE: Rule = Rule {
    name: "nvidia-fs",
    question: "Is nvidia-fs loaded, and are its statistics of reads and writes off?",
    why: "Without the module cuFile goes through host memory (compatibility mode), unless the \
          kernel's own peer-to-peer DMA is set up; with rw_stats_enabled every I/O updates shared \
          counters, which costs small blocks.",
    fix: "`modprobe nvidia-fs` (package nvidia-fs or nvidia-gds), and \
           `echo 0 > /sys/module/nvidia_fs/parameters/rw_stats_enabled`.",
    source: "NVIDIA, GPUDirect Storage Installation and Troubleshooting Guide, Displaying GDS \
             NVIDIA FS Driver Statistics (IO stats); NVIDIA, nvidia-fs",
    shown_by: "lsmod",
    evaluate,
};

fn evaluate(machine: &Machine) -> Vec<Found> {
    let mut found = of_module(machine);
    // Where none goes by it, that has been said.
    if !found.iter().any(|found| found.severity == Severity::Warn) {
        found.extend(of_mounts(machine));
    }
    found
}

/// Mounts of kinds that gdscheck printed as none of nvidia-fs, whatever other kinds are.
fn of_mounts(machine: &Machine) -> Option<Found> {
    let line = |kind| match kind {
        MountKind::Nfs => by_nvidia_fs(machine, "rpcrdma"),
        MountKind::Lustre => by_nvidia_fs(machine, "lnet"),
        MountKind::Beegfs => by_nvidia_fs(machine, "beegfs"),
        MountKind::Weka => by_nvidia_fs(machine, "wekafsio"),
        MountKind::Gpfs => by_nvidia_fs(machine, "mmfslinux"),
        MountKind::Block | MountKind::Memory | MountKind::Overlay | MountKind::Other => None,
    };
    let (mut lines, mut points) = (BTreeSet::new(), Vec::new());
    for one in &machine.mounts {
        if let Some((false, words)) =
            line(one.kind).or_else(|| drives_by_nvidia_fs(machine, layer::below(machine, one)))
        {
            lines.insert(words);
            points.push(one.mount.mount_point.as_str());
        }
    }
    let lines = lines.into_iter().collect::<Vec<_>>().join(", ");
    let observed = format!("{lines}: cuFile reaches the mount through host memory, or not at all");
    let fix = "`gpuio why --mount MOUNT` names what is missing";
    (!points.is_empty()).then(|| Found::warn(observed, fix).at(points))
}

fn of_module(machine: &Machine) -> Vec<Found> {
    let known = known_module(machine, "nvidia_fs");
    or_printed(machine, by_facts(machine, known), |check, printed, mut open| match known {
        Some(module) => {
            // A module that is loaded does nothing for storage whose driver has not registered.
            let found = from_gdscheck(check, printed).filter(|_| module.loaded);
            open.extend(found.filter(|found| found.severity == Severity::Warn));
            open
        }
        None => from_gdscheck(check, printed).map_or(open, |found| vec![found]),
    })
}

fn by_facts(machine: &Machine, known: Option<&ModuleFacts>) -> Vec<Found> {
    // Its statistics as a text show that it is loaded, whatever is known of the GPUs.
    if let Some(module) = known.filter(|module| module.loaded && !modules_were_read(machine)) {
        return vec![loaded(module), statistics(module)];
    }
    if let Some(found) = without_gpu(machine) {
        return vec![found];
    }
    let Some(module) = known else {
        return vec![Found::unknown(modules_not_read(machine))];
    };
    if !module.loaded {
        let observed = "it is not loaded: cuFile works in compatibility mode or by the kernel's \
                    peer-to-peer DMA; gpuio's own paths do not need it";
        return vec![Found::warn(
            observed,
            "`modprobe nvidia-fs` (package nvidia-fs or nvidia-gds)",
        )];
    }
    vec![loaded(module), statistics(module)]
}

fn loaded(module: &ModuleFacts) -> Found {
    let version = module.version.as_ref();
    Found::pass(match version {
        Some(version) => format!("it is loaded, version {version}"),
        None => "it is loaded, and reports no version".to_owned(),
    })
}

/// The finding by gdscheck's lines about storage, where modules were not read. Its version of
/// nvidia-fs does not show whether that is loaded.
fn from_gdscheck(check: &GdsCheck, printed: &str) -> Option<Found> {
    let paths: Vec<(DataPath, &str)> =
        storage(check).map(|line| (data_path(line), &line.name[..])).collect();
    let by = |wanted: DataPath| {
        let names = paths.iter().filter(|(path, _)| *path == wanted).map(|(_, name)| *name);
        names.collect::<Vec<&str>>().join(", ")
    };
    let version = check.nvidia_fs.known().map_or("not reported", String::as_str);
    if paths.is_empty() {
        return None;
    }
    let (direct, other) = (by(DataPath::NvidiaFs), by(DataPath::Other));
    Some(if !direct.is_empty() {
        Found::pass(format!("{printed} {direct} as supported by nvidia-fs, version {version}"))
    } else if !torn(check).is_empty() {
        let lines: Vec<String> = torn(check).iter().map(u64::to_string).collect();
        let observed = format!(
            "{printed} no storage by nvidia-fs on the lines that are whole; names and values are \
             torn apart on lines {}",
            lines.join(", ")
        );
        Found::unknown(observed).fix("save `gdscheck -p` itself to a file, and read that")
    } else if !is_whole(&paths) {
        let observed = "and not all kinds of storage are among its lines";
        Found::unknown(format!("{printed} no storage by nvidia-fs, {observed}"))
    } else if !by(DataPath::Unknown).is_empty() {
        Found::unknown(format!("{printed} no known path for {}", by(DataPath::Unknown)))
    } else if !other.is_empty() {
        Found::info(format!("{printed} no storage by nvidia-fs, and peer-to-peer DMA for {other}"))
    } else {
        let observed = "no storage that goes past host memory: cuFile works in compatibility mode \
                    or not at all";
        Found::warn(format!("{printed} {observed}"), fix_of(check))
    })
}

/// Whether gdscheck printed all kinds of storage, and none that goes past host memory.
pub fn all_through_host(machine: &Machine) -> bool {
    let none = |check: &GdsCheck| {
        let paths: Vec<(DataPath, &str)> =
            storage(check).map(|line| (data_path(line), &line.name[..])).collect();
        let host =
            |(path, _): &(DataPath, &str)| matches!(path, DataPath::Host | DataPath::Nothing);
        torn(check).is_empty() && is_whole(&paths) && paths.iter().all(host)
    };
    printed(machine).is_some_and(|(check, _)| none(check))
}

/// The finding where that is so.
pub(crate) fn nothing_direct(machine: &Machine) -> Option<Found> {
    let (check, printed) = printed(machine).filter(|_| all_through_host(machine))?;
    from_gdscheck(check, printed)
}

/// The advice where no storage goes by nvidia-fs. A version that NVIDIA's gdscheck prints does not
/// show whether the module is loaded, and a loaded one may have no storage driver registered.
fn fix_of(check: &GdsCheck) -> &'static str {
    // From 1.16 on it prints the least version instead of one where the module is not loaded.
    let absent = match check.nvidia_fs.known() {
        Some(version) => version == NOT_LOADED,
        None => check.nvidia_fs_least.known().is_some(),
    };
    if absent {
        "`modprobe nvidia-fs`, then gdscheck -p again"
    } else {
        "`cat /proc/driver/nvidia-fs/modules` on that machine: without that file nvidia-fs is not \
         loaded (`modprobe nvidia-fs`); with it, a driver that it does not list has not registered \
         (install the NVMe driver of MLNX_OFED or DOCA, with GDS)"
    }
}

/// Whether the table has the kinds that every release prints first and last of the common ones:
/// people filter it.
fn is_whole(paths: &[(DataPath, &str)]) -> bool {
    let has = |wanted: &str| paths.iter().any(|(_, name)| name.eq_ignore_ascii_case(wanted));
    has("NVMe") && has("NFS") && has("WekaFS")
}

fn statistics(module: &ModuleFacts) -> Found {
    let location = "/sys/module/nvidia_fs/parameters/rw_stats_enabled";
    match module.parameters.get("rw_stats_enabled").map(String::as_str) {
        Some("0" | "N") => Found::pass("its statistics of reads and writes are off"),
        Some(_) => {
            let observed = "it counts every read and write (gpuio's proof of path reads these \
                        counts; switch them off for the fastest small blocks)";
            Found::warn(observed, format!("`echo 0 > {location}`")).at([location])
        }
        None => Found::unknown("whether it counts reads and writes is not known").at([location]),
    }
}

#[cfg(test)]
mod tests {
    use gpuio_record::facts::{Fact, GdsLine, MountedStorage};

    use super::*;
    use crate::check::{Severity, sample};

    fn of(loaded: bool, statistics: Option<&str>) -> Vec<Severity> {
        let mut machine = sample::gpu_and_drive_below_a_switch();
        let mut module = sample::module("nvidia_fs", loaded);
        let parameter = statistics.map(|value| ("rw_stats_enabled".to_owned(), value.to_owned()));
        module.parameters.extend(parameter);
        machine.modules.push(module);
        evaluate(&machine).into_iter().map(|found| found.severity).collect()
    }

    #[test]
    fn absent_and_counting_are_warnings() {
        assert_eq!(of(false, None), [Severity::Warn]);
        assert_eq!(of(true, Some("1")), [Severity::Pass, Severity::Warn]);
        assert_eq!(of(true, Some("0")), [Severity::Pass, Severity::Pass]);
        assert_eq!(of(true, None), [Severity::Pass, Severity::Unknown]);
    }

    /// A loaded module with no driver registered prints the same table as an absent one.
    #[test]
    fn a_table_without_direct_paths_sends_nobody_to_load_what_may_be_loaded() {
        let row = |name: &str| GdsLine {
            name: name.to_owned(),
            value: Fact::Known("Unsupported".to_owned()),
        };
        let check = |version: Option<&str>, least: Option<&str>| GdsCheck {
            drivers: ["NVMe", "NFS", "WekaFS"].map(row).to_vec(),
            nvidia_fs: Fact::or_unknown(version.map(str::to_owned), "not printed"),
            nvidia_fs_least: Fact::or_unknown(least.map(str::to_owned), "not printed"),
            ..GdsCheck::default()
        };
        let fix = |check| {
            let machine = Machine { gdscheck: Some(check), ..Machine::default() };
            evaluate(&machine).remove(0).fix.unwrap()
        };
        for open in [check(Some("2.27"), None), check(None, None)] {
            assert!(fix(open).starts_with("`cat /proc/driver/nvidia-fs/modules`"));
        }
        for absent in [check(Some(NOT_LOADED), None), check(None, Some("2.12"))] {
            assert!(fix(absent).starts_with("`modprobe nvidia-fs`"));
        }
        // The module's own line does not hide it.
        let modules = vec![sample::module("nvidia_fs", true)];
        let gdscheck = Some(check(Some("2.25"), None));
        let machine = Machine { modules, gdscheck, ..sample::gpu_and_drive_below_a_switch() };
        let found = evaluate(&machine);
        let severities: Vec<Severity> = found.iter().map(|found| found.severity).collect();
        assert_eq!(severities, [Severity::Pass, Severity::Unknown, Severity::Warn]);
        assert!(found[2].observed.contains("no storage that goes past host memory"));
    }

    #[test]
    fn a_mount_whose_kind_is_not_supported_is_named_beside_others_that_are() {
        let row = |name: &str, value: &str| GdsLine {
            name: name.to_owned(),
            value: Fact::Known(value.to_owned()),
        };
        let check = |nvme: &str, nfs: &str| GdsCheck {
            drivers: vec![row("NVMe", nvme), row("NFS", nfs), row("WekaFS", "Supported")],
            ..GdsCheck::default()
        };
        let of = |nfs: &str| {
            let mut mount = MountedStorage { kind: MountKind::Nfs, ..MountedStorage::default() };
            mount.mount.mount_point = "/mnt/nfs".to_owned();
            let gdscheck = Some(check("Supported", nfs));
            let mut found =
                evaluate(&Machine { gdscheck, mounts: vec![mount], ..Machine::default() });
            found.pop().unwrap()
        };
        let local = |nvme: &str| {
            let devices = vec!["nvme0n1".to_owned()];
            let mounts = vec![MountedStorage { kind: MountKind::Block, devices, ..<_>::default() }];
            let gdscheck = Some(check(nvme, "Supported"));
            let machine = sample::gpu_and_drive_below_a_switch();
            evaluate(&Machine { gdscheck, mounts, ..machine }).pop().unwrap()
        };
        let found = local("Unsupported");
        assert_eq!(found.severity, Severity::Warn);
        assert!(found.observed.contains("`NVMe : Unsupported`"), "{}", found.observed);
        assert_eq!(local("Supported").severity, Severity::Pass);
        let found = of("Unsupported");
        assert_eq!(
            (found.severity, &found.locations[..]),
            (Severity::Warn, &["/mnt/nfs".to_owned()][..])
        );
        assert!(found.observed.contains("`NFS : Unsupported`"), "{}", found.observed);
        assert_eq!(of("Supported").severity, Severity::Pass);
    }

    #[test]
    fn where_modules_were_not_read_it_is_unknown() {
        let found = evaluate(&sample::gpu_and_drive_below_a_switch());
        assert_eq!(found[0].severity, Severity::Unknown);
    }
}
