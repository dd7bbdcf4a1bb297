//! The request.

use crate::pair::Load;

/// The devices to pair, and the load.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// GPUs by number, name, UUID or PCI address; all when empty.
    pub gpus: Vec<String>,
    /// Mount points or directories below them.
    pub mounts: Vec<String>,
    /// Drives and arrays by name. Where mounts and drives are both empty, the best of what is
    /// there is taken.
    pub drives: Vec<String>,
    /// Direction and block size.
    pub load: Load,
}

impl Wanted {
    /// Whether mounts or drives were named.
    pub(crate) fn names_storage(&self) -> bool {
        !(self.mounts.is_empty() && self.drives.is_empty())
    }
}

/// A requested device that is not there or can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{flag} {name}: {why}")]
pub struct DeviceAbsent {
    /// The flag that named it.
    pub flag: &'static str,
    pub name: String,
    /// The devices that are there, or why this one can't be used.
    pub why: String,
}
