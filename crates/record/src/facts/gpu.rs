//! GPUs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Fact, Lanes};

/// A GPU.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct GpuFacts {
    /// Its PCI function; `null` in captures without it.
    pub pci: Option<String>,
    /// Number by which NVIDIA's driver and `nvidia-smi` call it. CUDA may count otherwise
    /// (`CUDA_DEVICE_ORDER`, `CUDA_VISIBLE_DEVICES`).
    pub index: Fact<u32>,
    /// Number of its node `/dev/nvidiaN`.
    pub minor: Option<u32>,
    /// Product's name.
    pub name: Fact<String>,
    /// UUID (`GPU-…`).
    pub uuid: Fact<String>,
    /// NUMA node.
    pub node: Option<u32>,
    /// NUMA nodes that the driver calls near, where those are several (`NUMA Affinity` of
    /// `nvidia-smi topo -m`, such as `0-1`); empty elsewhere, and where not known.
    #[serde(default)]
    pub near_nodes: Vec<u32>,
    /// Processors that the driver calls near (`CPU Affinity` of `nvidia-smi topo -m`), ascending;
    /// `null` where not known.
    #[serde(default)]
    pub near_cpus: Option<Vec<u32>>,
    /// The window through which other devices reach its memory.
    pub bar1: Fact<Bar1Facts>,
    /// The neighbours on its NVLinks; empty when it has none.
    pub nvlinks: Fact<Vec<NvLinkPeer>>,
    /// Whether NVLink-C2C joins it to its processor (`C2C Mode` of `nvidia-smi -q`).
    #[serde(default)]
    pub c2c: Fact<bool>,
    /// The NUMA node that its own memory is, where the processor reaches it as memory (`GPU NUMA
    /// ID` of `nvidia-smi topo -m`); `null` elsewhere, and where not known.
    #[serde(default)]
    pub memory_node: Option<u32>,
    /// Whether the driver stays awake without a user (persistence mode).
    pub persistence: Fact<bool>,
    /// PCIe link as it is now, in the driver's words: idle GPUs save power at a lower generation.
    pub pcie_now: Fact<Lanes>,
    /// The most that GPU and slot can do together.
    pub pcie_most: Fact<Lanes>,
}

/// BAR1 of a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Bar1Facts {
    /// All of it, in bytes.
    pub total_bytes: u64,
    /// In use, in bytes; `null` without NVML.
    pub used_bytes: Option<u64>,
}

/// NVLinks from one GPU to one neighbour.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NvLinkPeer {
    /// PCI address of the neighbour; `null` when the driver does not report it.
    pub pci: Option<String>,
    /// The kind of the neighbour.
    pub kind: NvLinkEnd,
    /// Links that are up.
    pub links: u32,
    /// Generation of NVLink; `null` when the driver does not report it.
    pub version: Option<u32>,
    /// Bytes per second of one link in one direction; `null` when the driver does not report it.
    pub bytes_per_second: Option<u64>,
}

/// The device at the other end of an NVLink.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NvLinkEnd {
    /// A GPU.
    Gpu,
    /// An NVSwitch, which leads to all GPUs.
    Switch,
    /// A processor.
    Cpu,
    /// The driver does not report it.
    Unknown,
}
