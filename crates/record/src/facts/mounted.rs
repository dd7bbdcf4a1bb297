//! Mounts with the storage beneath them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Fact, MountFacts};

/// A mount and what is beneath it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct MountedStorage {
    /// The mount.
    pub mount: MountFacts,
    /// The kind of storage that serves it.
    pub kind: MountKind,
    /// Kernel names of the block devices that it lies on: one for most file systems, several for
    /// btrfs on several. Each is in the machine's list with what it is made of.
    pub devices: Vec<String>,
    /// PCI functions at the bottom, ascending, each once: of drives, or of the NIC that leads to
    /// the server. Empty when there is none or it is not known.
    pub pci: Vec<String>,
    /// Facts of an NFS mount.
    pub nfs: Option<NfsFacts>,
}

/// The kind of storage that serves a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MountKind {
    /// Block devices of this machine.
    Block,
    /// Memory.
    Memory,
    /// NFS.
    Nfs,
    /// Lustre.
    Lustre,
    /// BeeGFS.
    Beegfs,
    /// WEKA.
    Weka,
    /// IBM Storage Scale (GPFS).
    Gpfs,
    /// Layers over other mounts (overlayfs).
    Overlay,
    /// None of these, or not known: CephFS, SMB, FUSE, ZFS, ….
    #[default]
    Other,
}

/// An NFS mount.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct NfsFacts {
    /// Server as it was named to mount.
    pub server: String,
    /// Its export.
    pub export: String,
    /// Address of the server (`addr`).
    pub address: Option<String>,
    /// Version of the protocol: `3`, `4.1`, `4.2`.
    pub version: Option<String>,
    /// `rdma`, `rdma6`, `tcp`, `tcp6`, `udp`.
    pub transport: Option<String>,
    /// Port of the server; `null` when the options leave it out (2049, or 20049 for RDMA).
    pub port: Option<u32>,
    /// Most bytes of one read (`rsize`).
    pub read_bytes: Option<u64>,
    /// Most bytes of one write (`wsize`).
    pub write_bytes: Option<u64>,
    /// Connections to the server (`nconnect`, Linux 5.3); 1 when not given.
    pub connections: u32,
    /// The interface that the route to the server takes, or why it is not known.
    pub interface: Fact<String>,
}
