//! Kinds of memory.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The memory of the bytes' destination (gdsio `-m`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemoryKind {
    /// GPU memory as cudaMalloc gives it (`-m 0`).
    #[default]
    Device,
    /// GPU memory through virtual memory management (`-m 1`).
    Vmm,
    /// Page-locked host memory (`-m 2`).
    Pinned,
    /// Page-aligned host memory (`-m 3`).
    Malloc,
    /// Anonymous mapping (`-m 4`).
    Mmap,
    /// Managed memory, whose pages the driver moves between host and GPU.
    Managed,
}

impl MemoryKind {
    /// Every kind.
    pub const ALL: [Self; 6] =
        [Self::Device, Self::Vmm, Self::Pinned, Self::Malloc, Self::Mmap, Self::Managed];

    /// True if it is host memory for good: the CPU can read and write it at any time.
    pub fn is_host(self) -> bool {
        matches!(self, Self::Pinned | Self::Malloc | Self::Mmap)
    }

    /// True if a kernel can read and write it on any machine.
    pub fn is_reachable_by_kernels(self) -> bool {
        matches!(self, Self::Device | Self::Vmm | Self::Pinned | Self::Managed)
    }

    /// Its name in job files, flags and records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::Vmm => "vmm",
            Self::Pinned => "pinned",
            Self::Malloc => "malloc",
            Self::Mmap => "mmap",
            Self::Managed => "managed",
        }
    }
}

impl fmt::Display for MemoryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that is no [`MemoryKind`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown kind of memory {0:?}: use device, vmm, pinned, malloc, mmap or managed")]
pub struct MemoryKindError(pub String);

impl FromStr for MemoryKind {
    type Err = MemoryKindError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| MemoryKindError(name.to_owned()))
    }
}
