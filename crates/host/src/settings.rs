//! Settings of the kernel that change I/O: its command line, IOMMU units (`/sys/class/iommu`),
//! `/proc/sys` and frequency governors (Documentation/admin-guide/pm/cpufreq.rst).

use std::collections::BTreeMap;

use gpuio_record::facts::{Fact, Settings};

use crate::parse::{keep, parse_cpu_list};
use crate::{HostError, Root, nvidia_fs, nvidia_gpu};

/// How arguments begin that are kept. A dot or `=` or nothing may follow, so `iommu` is not
/// `iommufoo`, but `iommu.passthrough` and `iommu=pt` are.
const KEPT: [&str; 21] = [
    "amd_iommu",
    "arm-smmu",
    "default_hugepagesz",
    "hugepages",
    "hugepagesz",
    "intel_idle",
    "intel_iommu",
    "iommu",
    "isolcpus",
    "mitigations",
    "nohz_full",
    "nouveau",
    "numa",
    "numa_balancing",
    "nvidia",
    "nvidia-drm",
    "nvme",
    "nvme_core",
    "pci",
    "pcie_acs_override",
    "transparent_hugepage",
];

/// Reads the settings. A value that cannot be understood goes to `problems`.
pub fn read(root: &Root, problems: &mut Vec<HostError>) -> Settings {
    let line = keep(root.read("proc/cmdline"), problems);
    Settings {
        command_line: line.map(|text| parse_command_line(&text.body)),
        iommu_units: keep(root.list("sys/class/iommu").map(Some), problems).unwrap_or_default(),
        numa_balancing: keep(root.number("proc/sys/kernel/numa_balancing"), problems),
        zone_reclaim_mode: keep(root.number("proc/sys/vm/zone_reclaim_mode"), problems),
        governors: governors(root, problems),
        udev_runtime: udev_runtime(root),
        nvidia_fs_drivers: nvidia_fs::drivers(root, problems),
        open_driver: open_driver(root, problems),
        cross_root_ports: nvidia_fs::cross_root_ports(root, problems),
        gpu_rings: Fact::unknown("it was not tried"),
    }
}

/// Unknown for a tree that was copied without `/run`.
fn udev_runtime(root: &Root) -> Fact<bool> {
    // Read on the live machine too, so that a capture of it has the answer.
    if root.exists("run") || root.is_live() {
        Fact::Known(root.exists("run/udev"))
    } else {
        Fact::unknown("the tree has no run")
    }
}

/// Whether NVIDIA's driver is the open one.
fn open_driver(root: &Root, problems: &mut Vec<HostError>) -> Fact<bool> {
    let text = keep(root.read("proc/driver/nvidia/version"), problems);
    let open = text.and_then(|text| nvidia_gpu::parse_is_open(&text.body));
    Fact::or_unknown(open, "/proc/driver/nvidia/version is missing, or does not show it")
}

/// The arguments of the kernel's command line that concern I/O.
pub fn parse_command_line(text: &str) -> Vec<String> {
    let kept = |argument: &&str| {
        let name = argument.split(['=', '.']).next().unwrap_or_default();
        KEPT.contains(&name) || argument.starts_with("pcie_")
    };
    text.split_whitespace().filter(kept).map(str::to_owned).collect()
}

/// Processors by governor. A policy may govern several processors.
fn governors(root: &Root, problems: &mut Vec<HostError>) -> BTreeMap<String, u32> {
    let base = "sys/devices/system/cpu/cpufreq";
    let mut counts = BTreeMap::new();
    let entries = keep(root.list(base).map(Some), problems).unwrap_or_default();
    for policy in entries.iter().filter(|name| name.starts_with("policy")) {
        let Some(governor) = keep(root.word(format!("{base}/{policy}/scaling_governor")), problems)
        else {
            continue;
        };
        // Blanks stand between numbers here, not commas.
        let governed = keep(root.word(format!("{base}/{policy}/affected_cpus")), problems);
        let list = governed.map(|words| words.replace(' ', ","));
        let count = list.and_then(|list| parse_cpu_list(&list).ok()).map_or(1, |cpus| cpus.len());
        *counts.entry(governor).or_insert(0) += u32::try_from(count).unwrap_or(u32::MAX);
    }
    counts
}
