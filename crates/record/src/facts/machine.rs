//! Processors, memory, NUMA nodes and the kernel.

use gpuio_base::units::{float, human_bytes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::storage::DeviceNumber;
use crate::Towards;

/// The machine as this process sees it, read once before a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct HostFacts {
    /// Processors.
    pub cpu: CpuFacts,
    /// NUMA nodes and the distances between them.
    pub numa: NumaFacts,
    /// Memory, and the limits put on this process.
    pub memory: MemoryFacts,
    /// Kernel release and the settings that decide which I/O engines can work.
    pub kernel: KernelFacts,
    /// Limits of this process's control group on its I/O; absent when they could not be read, and
    /// in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io_limits: Option<IoLimits>,
    /// Files that could not be read or understood. Interfaces that the kernel simply lacks are not
    /// listed: their fields are `null`.
    pub problems: Vec<ReadProblem>,
}

/// One kernel file that could not be read or did not have the form its documentation gives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReadProblem {
    /// The file, as it was opened.
    pub path: String,
    /// Line in that file, counted from 1; `null` when reading itself failed.
    pub line: Option<u64>,
    /// The error.
    pub message: String,
}

/// Processors.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CpuFacts {
    /// `model name` of the first processor in `/proc/cpuinfo`; on arm64 mostly the name of its
    /// design, and the numbers of implementer and part.
    pub model: Option<String>,
    /// Logical processors that are online, ascending.
    pub online: Option<Vec<u32>>,
    /// Logical processors this process may run on, ascending (`Cpus_allowed_list`).
    pub allowed: Option<Vec<u32>>,
    /// Size of the second-level cache of processor 0, in bytes.
    pub l2_cache_bytes: Option<u64>,
    /// Size of the third-level cache of processor 0, in bytes.
    pub l3_cache_bytes: Option<u64>,
}

/// NUMA nodes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct NumaFacts {
    /// Nodes that are online, ascending by number; empty when the kernel shows none.
    pub nodes: Vec<NumaNode>,
}

/// One NUMA node.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct NumaNode {
    /// Node number.
    pub node: u32,
    /// Logical processors of the node, ascending; empty for a node of memory only.
    pub cpus: Option<Vec<u32>>,
    /// Memory of the node, in bytes.
    pub total_bytes: Option<u64>,
    /// Memory of the node that is free (not counting page cache), in bytes.
    pub free_bytes: Option<u64>,
    /// Relative distances from this node to each online node, in the order of
    /// [`NumaFacts::nodes`]; 10 is the node itself (ACPI SLIT).
    pub distances: Option<Vec<u32>>,
}

/// Where a PCI device hangs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PciLocality {
    /// Address as sysfs spells it, lower case: `0000:3b:00.0`.
    pub address: String,
    /// NUMA node; `null` when the firmware does not report it (the kernel prints -1).
    pub node: Option<u32>,
    /// Logical processors near the device, ascending.
    pub local_cpus: Option<Vec<u32>>,
}

/// Memory.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct MemoryFacts {
    /// Memory of the machine, in bytes (`MemTotal`).
    pub total_bytes: Option<u64>,
    /// Memory that could be had without swapping, in bytes (`MemAvailable`).
    pub available_bytes: Option<u64>,
    /// Page cache waiting to be written back, in bytes (`Dirty`).
    pub dirty_bytes: Option<u64>,
    /// Huge pages of the default size.
    pub huge_pages: Option<HugePages>,
    /// The tightest control-group limit on this process; `null` when there is none.
    pub cgroup: Option<CgroupLimit>,
    /// The smaller of `total_bytes` and the control group's limit, in bytes: page cache beyond
    /// this cannot be charged to this process.
    pub usable_bytes: Option<u64>,
}

/// The pool of huge pages of the default size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct HugePages {
    /// Pages in the pool (`HugePages_Total`).
    pub total: u64,
    /// Pages in the pool that are not allocated (`HugePages_Free`).
    pub free: u64,
    /// Size of one page, in bytes (`Hugepagesize`).
    pub page_bytes: u64,
}

/// A control group's memory limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CgroupLimit {
    /// Version of the control-group interface, 1 or 2.
    pub version: u32,
    /// The file that sets the limit, as it was opened.
    pub path: String,
    /// The limit, in bytes.
    pub limit_bytes: u64,
}

/// Limits of control groups on this process's I/O at block devices.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct IoLimits {
    /// Those in sight.
    pub limits: Vec<IoLimit>,
    /// Whether groups that may have more are out of sight, as in a container.
    pub hidden: bool,
}

impl IoLimits {
    /// Those on a device.
    pub fn on<'l>(&'l self, device: &'l str) -> impl Iterator<Item = &'l IoLimit> {
        self.limits.iter().filter(move |limit| limit.device == device)
    }
}

/// A control group's limit on I/O in one direction at one device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IoLimit {
    /// Version of the control-group interface, 1 (`blkio.throttle.*`) or 2 (`io.max`).
    pub version: u32,
    /// The file that sets the limit, as it was opened.
    pub path: String,
    /// The device's number.
    pub number: DeviceNumber,
    /// Its kernel name; empty when the kernel has no such device.
    pub device: String,
    /// The direction.
    pub towards: Towards,
    /// The limit, in bytes per second.
    pub bytes_per_s: Option<u64>,
    /// The limit, in I/Os per second.
    pub ios_per_s: Option<u64>,
}

impl IoLimit {
    /// `reads on vda (254:0) to 30.0 MiB/s`.
    pub fn words(&self) -> String {
        let IoLimit { device, number: DeviceNumber { major, minor }, .. } = self;
        let device = match device.as_str() {
            "" => format!("{major}:{minor}"),
            name => format!("{name} ({major}:{minor})"),
        };
        format!("{} on {device} to {}", self.verb(), self.most())
    }

    /// `reads`.
    pub fn verb(&self) -> &'static str {
        match self.towards {
            Towards::Read => "reads",
            Towards::Write => "writes",
        }
    }

    /// `30.0 MiB/s`.
    pub fn most(&self) -> String {
        let bytes = self.bytes_per_s.map(|rate| human_bytes(float(rate)) + "/s");
        let ios = self.ios_per_s.map(|rate| format!("{rate} I/Os per second"));
        bytes.into_iter().chain(ios).collect::<Vec<_>>().join(" and ")
    }
}

/// The kernel and the settings that decide what I/O can be asked of it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct KernelFacts {
    /// Release, as `uname -r` prints it.
    pub release: Option<String>,
    /// Build, as `uname -v` prints it.
    pub version: Option<String>,
    /// `kernel.io_uring_disabled` (Linux 6.6): 0 anyone may create a ring, 1 only members of
    /// `io_uring_group` and privileged processes, 2 no one.
    pub io_uring_disabled: Option<u64>,
    /// `fs.aio-max-nr`: events all libaio contexts of the machine may hold together.
    pub aio_max_events: Option<u64>,
    /// `fs.aio-nr`: events held now.
    pub aio_used_events: Option<u64>,
    /// `RLIMIT_MEMLOCK`, in bytes: memory this process may lock.
    pub memlock_bytes: Option<ResourceLimit>,
    /// Capabilities in force (`CapEff` of `/proc/self/status`, bits by capabilities(7)) that count
    /// against the machine itself: 0 in a user namespace of its own, whose capabilities do not lift
    /// the machine's limits (user_namespaces(7)). `null` when not read.
    #[serde(default)]
    pub capabilities: Option<u64>,
    /// `RLIMIT_NOFILE`: descriptors this process may hold.
    pub open_files: Option<ResourceLimit>,
    /// Mode of transparent huge pages: `always`, `madvise` or `never`.
    pub transparent_huge_pages: Option<String>,
    /// Container and virtual machine this process seems to run in.
    pub containment: Containment,
}

/// A soft and a hard resource limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceLimit {
    /// The limit in force; `null` when unlimited.
    pub soft: Option<u64>,
    /// How far the process may raise it; `null` when unlimited.
    pub hard: Option<u64>,
}

/// Hints that this process does not run on the bare machine. Hints only: a container can hide.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Containment {
    /// `docker`, `podman`, `kubernetes`, `lxc`, or the value that systemd was given; `null` when no
    /// mark was found.
    pub container: Option<String>,
    /// Whether the processor reports that a hypervisor runs beneath the kernel (x86 only).
    pub hypervisor: Option<bool>,
    /// Maker of the machine by the firmware's tables, such as `QEMU` or `Amazon EC2`.
    pub system_vendor: Option<String>,
    /// Product name by the firmware's tables, such as `Standard PC (Q35 + ICH9, 2009)`.
    pub product: Option<String>,
}
