//! What a machine is: its processors, memory, kernel, storage, and the file or device under test.
//!
//! These are plain values. Crate `host` reads them from the kernel; nothing here reads anything.
//! A field is `null` when the kernel did not say, because it is too old, because the interface is
//! hidden from this process, or because the thing does not exist. A unit is the last word of a
//! field's name: `_bytes`, `_ns`, `_kib`; a field without one is a count or a name.

mod machine;
mod storage;
mod target;

pub use machine::{
    CgroupLimit, Containment, CpuFacts, HostFacts, HugePages, KernelFacts, MemoryFacts, NumaFacts,
    NumaNode, PciLocality, ReadProblem, ResourceLimit,
};
pub use storage::{
    BlockCounters, BlockFacts, BlockKind, DeviceNumber, DirectAlignment, FileFacts, MountFacts,
    ProcessIo, Residency, ResidencyMethod, TargetStorage,
};
pub use target::{
    BlockTarget, Holder, MountedAt, OtherKind, Signature, TargetFacts, TargetKind, Unchecked,
};
