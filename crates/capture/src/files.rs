//! Files of `/proc`, `/sys` and `/boot`, a line each with the file's name before it, as `grep -H ''
//! FILES` prints them and `gpuio collect`'s script does: settings of the kernel, queues of drives,
//! modules. They become a tree in memory, which the readers of a machine read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gpuio_host::{Entry, Root, Tree, block, build_config, kernel, module, settings};
use gpuio_record::facts::{BlockKind, Fact, Machine};

use crate::{CaptureError, Captured, Kind, MOST_DEVICES, lines, merge};

pub(crate) const KIND: Kind = Kind {
    command: "gpuio collect",
    gives: "files of `/proc`, `/sys` and `/boot`, also as `grep -H '' FILES` prints them: the \
        kernel's release, options and settings, limits, queues of drives, modules",
    most_bytes: crate::LOG,
    looks_like: |text| text.lines().any(|line| parts(line).is_some()),
    add,
};

const BELOW: [&str; 4] = ["/proc/", "/sys/", "/boot/config-", "/run/"];
const QUEUES: &str = "sys/class/block";
const MODULES: &str = "sys/module";

/// `/sys/class/block/sda/queue/scheduler:[none]`. A directory has nothing behind its slash.
fn parts(line: &str) -> Option<(&str, &str)> {
    let (path, value) = line.split_once(':')?;
    let plain = !path.contains(char::is_whitespace) && !path.contains("..");
    (plain && BELOW.iter().any(|start| path.starts_with(start))).then_some((path, value))
}

fn add(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    let mut files: BTreeMap<&str, String> = BTreeMap::new();
    for (index, line) in lines(text) {
        let Some((path, value)) = parts(line) else {
            captured.skip(CaptureError::new(index, line, 0, "a file's name, a colon and its line"));
            continue;
        };
        let body = files.entry(path).or_default();
        body.push_str(value);
        body.push('\n');
    }
    let mut tree = Tree::default();
    let mut drives: BTreeSet<&str> = BTreeSet::new();
    for (path, body) in &files {
        let inside = path.trim_start_matches('/');
        let entry = match path.ends_with('/') {
            true => Entry::Directory(BTreeSet::new()),
            false => Entry::File(body.clone().into_bytes()),
        };
        tree.put(Path::new(path), entry);
        let below = inside.strip_prefix(QUEUES).and_then(|rest| rest.strip_prefix('/'));
        drives.extend(below.and_then(|rest| rest.split_once("/queue/")).map(|(name, _)| name));
    }
    if drives.len() > MOST_DEVICES {
        return Err(CaptureError::new(0, "", 0, "fewer drives"));
    }
    take(&Root::of(tree), &drives, &mut captured.machine);
    Ok(())
}

/// Facts of the files replace those that are there; others stay.
fn take(root: &Root, drives: &BTreeSet<&str>, machine: &mut Machine) {
    fn option<T>(ours: &mut Option<T>, new: Option<T>) {
        if new.is_some() {
            *ours = new;
        }
    }
    fn fact<T>(ours: &mut Fact<T>, new: Fact<T>) {
        if new.known().is_some() {
            *ours = new;
        }
    }
    let problems = &mut Vec::new();
    let new = kernel::read(root, problems);
    let ours = &mut machine.host.kernel;
    option(&mut ours.release, new.release);
    option(&mut ours.version, new.version);
    option(&mut ours.io_uring_disabled, new.io_uring_disabled);
    option(&mut ours.aio_max_events, new.aio_max_events);
    option(&mut ours.aio_used_events, new.aio_used_events);
    option(&mut ours.memlock_bytes, new.memlock_bytes);
    option(&mut ours.open_files, new.open_files);
    option(&mut ours.transparent_huge_pages, new.transparent_huge_pages);
    option(&mut ours.capabilities, new.capabilities);
    let config = build_config::read(root, ours.release.as_deref(), problems);
    if config.source.known().is_some() {
        machine.config = config;
    }
    let new = settings::read(root, problems);
    let ours = &mut machine.settings;
    option(&mut ours.command_line, new.command_line);
    option(&mut ours.numa_balancing, new.numa_balancing);
    option(&mut ours.zone_reclaim_mode, new.zone_reclaim_mode);
    fact(&mut ours.udev_runtime, new.udev_runtime);
    fact(&mut ours.nvidia_fs_drivers, new.nvidia_fs_drivers);
    fact(&mut ours.open_driver, new.open_driver);
    if !new.governors.is_empty() {
        ours.governors = new.governors;
    }
    if !new.iommu_units.is_empty() {
        ours.iommu_units = new.iommu_units;
    }
    modules(root, machine, problems);
    for name in drives {
        let Some(new) = block::read_name(root, name, problems) else { continue };
        let ours = &mut merge::block(machine, name, kind_of_drive(name)).facts;
        option(&mut ours.rotational, new.rotational);
        option(&mut ours.logical_block_bytes, new.logical_block_bytes);
        option(&mut ours.physical_block_bytes, new.physical_block_bytes);
        option(&mut ours.max_request_bytes, new.max_request_bytes);
        option(&mut ours.read_ahead_bytes, new.read_ahead_bytes);
        option(&mut ours.queue_requests, new.queue_requests);
        option(&mut ours.scheduler, new.scheduler);
        option(&mut ours.write_cache, new.write_cache);
    }
}

/// Modules that a file or a directory is of; those that have none are absent where the whole
/// directory was listed, as its own line shows.
fn modules(root: &Root, machine: &mut Machine, problems: &mut Vec<gpuio_host::HostError>) {
    let whole = root.list(MODULES).is_ok_and(|all| all.iter().any(|name| name == "kernel"));
    let new = module::read(root, problems).into_iter();
    new.filter(|one| one.loaded || whole).for_each(|one| merge::module(machine, one));
}

fn kind_of_drive(name: &str) -> BlockKind {
    let is = |start: &str| name.starts_with(start);
    match () {
        () if is("dm-") => BlockKind::DeviceMapper,
        () if is("md") => BlockKind::Md,
        () if is("loop") => BlockKind::Loop,
        () => BlockKind::Disk,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_by_their_names_are_read_as_on_the_machine() {
        let text = "/proc/sys/kernel/osrelease:6.8.0-1-generic\n\
            /proc/self/limits:Limit                     Soft Limit           Hard Limit\n\
            /proc/self/limits:Max locked memory         8388608              unlimited  bytes\n\
            /boot/config-6.8.0-1-generic:CONFIG_PCI_P2PDMA=y\n\
            /sys/kernel/mm/transparent_hugepage/enabled:always [madvise] never\n\
            /sys/devices/system/cpu/cpufreq/policy0/scaling_governor:powersave\n\
            /sys/class/block/nvme0n1/queue/scheduler:[none] mq-deadline\n\
            /sys/class/block/nvme0n1/queue/nr_requests:1023\n\
            /sys/module/kernel/:\n/sys/module/nvme/:\n\
            /sys/module/nvidia_fs/parameters/rw_stats_enabled:1\n/run/udev/:\n";
        let mut captured = Captured::default();
        crate::read("text", text, &mut captured).unwrap();
        let machine = captured.machine;
        let kernel = &machine.host.kernel;
        assert_eq!(kernel.release.as_deref(), Some("6.8.0-1-generic"));
        assert_eq!(kernel.memlock_bytes.map(|limit| limit.soft), Some(Some(8 << 20)));
        assert_eq!(kernel.transparent_huge_pages.as_deref(), Some("madvise"));
        assert_eq!(machine.config.options["CONFIG_PCI_P2PDMA"], "y");
        assert_eq!(machine.settings.governors["powersave"], 1);
        assert_eq!(machine.settings.udev_runtime, Fact::Known(true));
        let drive = &machine.block[0].facts;
        assert_eq!((drive.scheduler.as_deref(), drive.queue_requests), (Some("none"), Some(1023)));
        let is = |name: &str| {
            let module = machine.modules.iter().find(|one| one.name == name);
            module.map(|module| module.loaded)
        };
        assert_eq!(["nvme", "nvidia_fs", "lustre"].map(is), [Some(true), Some(true), Some(false)]);
    }

    #[test]
    fn what_no_file_shows_stays_unknown() {
        let text = "/sys/module/nvidia_fs/parameters/rw_stats_enabled:1\n";
        let mut captured = Captured::default();
        crate::read("text", text, &mut captured).unwrap();
        let machine = captured.machine;
        assert_eq!(machine.modules.len(), 1, "{:?}", machine.modules);
        assert!(machine.config.source.known().is_none() && machine.host.kernel.release.is_none());
        assert!(machine.settings.udev_runtime.known().is_none());
        for other in ["/dev/sda on / type ext4 (rw)", "see /proc/x: it is", "/sys/a b:c"] {
            assert_eq!(parts(other), None, "{other}");
        }
    }
}
