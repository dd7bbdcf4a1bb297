//! Processors, memory, NUMA nodes and the kernel.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
