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

/// The content of a job's files before its clock started, by blocks of 4 KiB that lie spread over
/// what it uses of them. Storage that compresses or leaves out zeros is faster with what repeats.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContentReading {
    /// Blocks that were looked at. One in a hole is all zero, as its readers get it.
    pub blocks: u64,
    /// Those that are all zero.
    pub zero_blocks: u64,
    /// Words of 8 bytes in all blocks.
    pub words: u64,
    /// Those that another word before them in these blocks equals.
    pub repeated_words: u64,
}

impl ContentReading {
    /// The share of its words that repeat, from 0 to 1.
    pub fn repeated(&self) -> f64 {
        if self.words == 0 { 0.0 } else { self.repeated_words as f64 / self.words as f64 }
    }
}

impl std::ops::AddAssign for ContentReading {
    fn add_assign(&mut self, one: ContentReading) {
        self.blocks += one.blocks;
        self.zero_blocks += one.zero_blocks;
        self.words += one.words;
        self.repeated_words += one.repeated_words;
    }
}

impl HolesReading {
    /// Bytes that no device holds, as far as is known.
    pub fn absent_bytes(&self) -> u64 {
        self.hole_bytes.unwrap_or(0).saturating_add(self.unwritten_bytes.unwrap_or(0))
    }
}
