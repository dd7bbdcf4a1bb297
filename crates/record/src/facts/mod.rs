//! The facts about a machine: its processors, memory, kernel, storage, and the file or device under
//! test.
//!
//! These are plain values. Crate `host` reads them from the kernel; nothing here reads anything. A
//! field is `null` when the kernel did not report it, because it is too old, because the interface
//! is hidden from this process, or because the thing does not exist. A unit is the last word of a
//! field's name: `_bytes`, `_ns`, `_kib`; a field without one is a count or a name.

mod cufile;
mod drive;
mod gdscheck;
mod gpu;
mod known;
mod machine;
mod mounted;
mod nic;
mod pci;
mod process;
mod server_route;
mod storage;
mod system;
mod target;
mod upstream;

pub use cufile::CufileFacts;
pub use drive::{ArrayFacts, BlockDevice, DriveLink, NvmeController, NvmeFacts};
pub use gdscheck::{Diagnosis, GdsCheck, GdsGpu, GdsLine, GdsNote, Verdict};
pub use gpu::{Bar1Facts, GpuFacts, NvLinkEnd, NvLinkPeer};
pub use known::Fact;
pub use machine::{
    CgroupLimit, Containment, CpuFacts, HostFacts, HugePages, IoLimit, IoLimits, KernelFacts,
    MemoryFacts, NumaFacts, NumaNode, PciLocality, ReadProblem, ResourceLimit,
};
pub use mounted::{MountKind, MountedStorage, NfsFacts};
pub use nic::{InterfaceFacts, LinkLayer, NicFacts, RdmaFacts, RdmaPort};
pub use pci::{Acs, AcsControl, Lanes, PciFacts, PciPort};
pub use process::{LibraryMaker, MappedLibrary, OpenFile, ProcessUse};
pub use server_route::ServerRoute;
pub use storage::{
    BlockCounters, BlockFacts, BlockKind, DeviceNumber, DirectAlignment, FileFacts, MountFacts,
    ProcessIo, Residency, ResidencyMethod, TargetStorage, is_optical,
};
pub use system::{
    CrossRootPort, KernelConfig, Listed, Machine, ModuleFacts, PrintedCell, Settings,
};
pub use target::{
    BlockTarget, Holder, MountedAt, OtherKind, Signature, TargetFacts, TargetKind, Unchecked,
};
pub use upstream::upstream_path;
