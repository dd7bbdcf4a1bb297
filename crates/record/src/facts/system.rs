//! A whole machine, and its kernel's modules and settings.

use std::collections::BTreeMap;

use gpuio_base::catalog::RingAnswer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    BlockDevice, CufileFacts, Diagnosis, Fact, GdsCheck, GpuFacts, HostFacts, MountedStorage,
    NicFacts, PciFacts, ReadProblem,
};

/// A machine for questions of topology: what hangs where, and how the kernel is set up.
///
/// Lists refer to each other by PCI address (spelled as sysfs spells it) and by kernel name, and
/// each name stands in its list once. A name that leads nowhere is possible: captures are
/// incomplete.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    /// Processors, NUMA nodes, memory, kernel, and limits of this process.
    pub host: HostFacts,
    /// PCI functions, by address.
    pub pci: Vec<PciFacts>,
    /// NVIDIA GPUs by PCI address, which is the order of `nvidia-smi`; [`GpuFacts::index`] holds
    /// the driver's own number where it is known.
    pub gpus: Vec<GpuFacts>,
    /// Block devices in the order of their names with numbers as numbers (`nvme2n1` before
    /// `nvme10n1`), without empty loop devices.
    pub block: Vec<BlockDevice>,
    /// Network cards by PCI address, then virtual interfaces by name; `lo` is left out.
    pub nics: Vec<NicFacts>,
    /// Mounts in the kernel's order, without those of the kernel's own file systems.
    pub mounts: Vec<MountedStorage>,
    /// Mount points that are known from `/etc/fstab` alone, which shows what is mounted at boot and
    /// not what is mounted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at_boot: Vec<String>,
    /// The modules that matter, loaded or not.
    pub modules: Vec<ModuleFacts>,
    /// How the kernel was built.
    pub config: KernelConfig,
    /// Settings that change I/O.
    pub settings: Settings,
    /// The facts that gdscheck printed of it; `null` when its output is not among what was read.
    pub gdscheck: Option<GdsCheck>,
    /// Results of DCGM's tests, in their order; empty where its output is not among what was read.
    #[serde(default)]
    pub diagnoses: Vec<Diagnosis>,
    /// Cells of the matrices that `nvidia-smi topo` printed; empty where none is among what was
    /// read.
    #[serde(default)]
    pub printed: Vec<PrintedCell>,
    /// How NVIDIA's cuFile library is configured.
    pub cufile: CufileFacts,
    /// Which of the lists above are whole.
    #[serde(default)]
    pub listed: Listed,
    /// Files that could not be read or understood, in addition to [`HostFacts::problems`].
    pub problems: Vec<ReadProblem>,
}

/// One cell of a matrix that `nvidia-smi topo` printed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PrintedCell {
    /// The device of the row: `GPU0`, `mlx5_0`.
    pub row: String,
    /// That of the column.
    pub column: String,
    /// The cell: `PIX`, `NV6`.
    pub cell: String,
}

/// Which lists of a [`Machine`] are whole, because the kernel's own list was read to its end. A
/// device that is not in such a list is not there. Texts of tools show a part: what is not in a
/// list made from them is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Listed {
    /// PCI functions, and so GPUs (`/sys/bus/pci/devices`).
    pub pci: bool,
    /// Block devices (`/sys/class/block`).
    pub block: bool,
    /// Network cards (`/sys/class/net`).
    pub nics: bool,
    /// Mounts (`/proc/self/mountinfo`).
    pub mounts: bool,
    /// NUMA nodes (`/sys/devices/system/node`, or a tool that prints all: `numactl -H`, `lscpu`,
    /// `lstopo`). A matrix of `nvidia-smi` names those alone that GPUs are near to.
    #[serde(default)]
    pub nodes: bool,
    /// Kernel modules (`/sys/module`): those that are not there are not loaded.
    #[serde(default)]
    pub modules: bool,
}

/// A kernel module.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ModuleFacts {
    /// Name with underscores (`nvidia_fs`).
    pub name: String,
    /// Whether it is there, as a module or built in with something to show (`/sys/module`).
    pub loaded: bool,
    /// Version; `null` for most of the kernel's own.
    pub version: Option<String>,
    /// Parameters as the kernel prints them; those that only root may read are missing for others.
    pub parameters: BTreeMap<String, String>,
}

/// How the kernel was built.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct KernelConfig {
    /// the file with the configuration, or why there is none.
    pub source: Fact<String>,
    /// Options that matter: `CONFIG_…` with `y`, `m`, `n` or a value. Empty without a source.
    pub options: BTreeMap<String, String>,
}

/// Settings of the kernel and the system.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Settings {
    /// Arguments of the kernel's command line that concern PCI, the IOMMU, NUMA, huge pages, NVMe
    /// and NVIDIA; the others are left out, as they may name things that are private.
    pub command_line: Option<Vec<String>>,
    /// IOMMU units that are at work, by name (`dmar0`, `ivhd0`, `smmu3.0x…`).
    pub iommu_units: Vec<String>,
    /// `kernel.numa_balancing`: 0 is off.
    pub numa_balancing: Option<u64>,
    /// `vm.zone_reclaim_mode`.
    pub zone_reclaim_mode: Option<u64>,
    /// Processors by frequency governor; empty where the kernel does not set frequencies.
    pub governors: BTreeMap<String, u32>,
    /// Whether `/run/udev` is there: libraries that ask udev about devices fail without it.
    pub udev_runtime: Fact<bool>,
    /// Storage drivers that are registered with nvidia-fs (`nvme`, `nvme_rdma`, `rpcrdma`,
    /// `lnet`, …): `/proc/driver/nvidia-fs/modules`. Others can't move bytes through it.
    pub nvidia_fs_drivers: Fact<Vec<String>>,
    /// Whether NVIDIA's driver is the open one (`/proc/driver/nvidia/version`).
    pub open_driver: Fact<bool>,
    /// How much of each GPU's I/O through nvidia-fs went between root ports of the processor since
    /// the module was loaded or its statistics were reset (`/proc/driver/nvidia-fs/stats`).
    #[serde(default)]
    pub cross_root_ports: Fact<Vec<CrossRootPort>>,
    /// The kernel's answer to this process, which wanted a ring that a GPU could fill (path
    /// `initiated`): tried on the running machine.
    #[serde(default)]
    pub gpu_rings: Fact<RingAnswer>,
}

/// A GPU's I/O through nvidia-fs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CrossRootPort {
    /// PCI address of the GPU.
    pub gpu: String,
    /// Share of its I/O with drives and cards below another root port than its own, in percent.
    pub percent: u64,
}
