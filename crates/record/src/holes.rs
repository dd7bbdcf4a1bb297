//! Bytes of files that no device stores.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes of a job's files that no device holds, before its clock started (FIEMAP, or `SEEK_HOLE`
/// where the file system lacks it).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HolesReading {
    /// Bytes looked at: what the job uses of its files, each file's once.
    pub range_bytes: u64,
    /// Bytes in holes; absent where a file system does not report it.
    pub hole_bytes: Option<u64>,
    /// Bytes in extents that were allocated and never written; absent where one does not report.
    pub unwritten_bytes: Option<u64>,
}

impl HolesReading {
    /// Bytes that no device holds, as far as is known.
    pub fn absent_bytes(&self) -> u64 {
        self.hole_bytes.unwrap_or(0).saturating_add(self.unwritten_bytes.unwrap_or(0))
    }
}
