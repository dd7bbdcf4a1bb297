//! Network cards.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One PCI function with network interfaces, RDMA devices or both, or a virtual interface.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct NicFacts {
    /// Its PCI function; `null` for bonds, VLANs and bridges, and where a capture does not report.
    pub pci: Option<String>,
    /// NUMA node of that function.
    pub node: Option<u32>,
    /// Interfaces of the network stack, by name.
    pub interfaces: Vec<InterfaceFacts>,
    /// RDMA devices, by name.
    pub rdma: Vec<RdmaFacts>,
}

/// An interface of the network stack.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceFacts {
    /// Name (`ib0`, `eno1`, `bond0`).
    pub name: String,
    /// The protocol that it carries.
    pub carries: Option<LinkLayer>,
    /// State of the interface (`operstate`): `up`, `down`, `unknown`, …
    pub state: Option<String>,
    /// Largest packet, in bytes.
    pub mtu_bytes: Option<u64>,
    /// Rate of the link, in Mbit/s; `null` while it is down, or not reported.
    pub megabits: Option<u64>,
    /// Interfaces below a bond, VLAN or bridge, by name.
    pub lower: Vec<String>,
}

/// An RDMA device.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RdmaFacts {
    /// Name (`mlx5_0`).
    pub name: String,
    /// Firmware.
    pub firmware: Option<String>,
    /// Ports, ascending.
    pub ports: Vec<RdmaPort>,
}

/// A port of an RDMA device.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RdmaPort {
    /// Number, from 1.
    pub port: u64,
    /// Logical state: `ACTIVE`, `DOWN`, `INIT`, …
    pub state: Option<String>,
    /// State of the wire: `LinkUp`, `Polling`, `Disabled`, …
    pub physical_state: Option<String>,
    /// Rate, in Mbit/s. Ports that are down show their lowest.
    pub megabits: Option<u64>,
    /// The rate as printed, with width and kind: `100 Gb/sec (4X EDR)`.
    pub rate: Option<String>,
    /// The protocol that it carries.
    pub carries: Option<LinkLayer>,
    /// The network interface that belongs to it, where it is reported.
    pub interface: Option<String>,
}

/// The protocol that a link carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LinkLayer {
    /// InfiniBand.
    Infiniband,
    /// Ethernet.
    Ethernet,
}
