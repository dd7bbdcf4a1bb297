//! The load that a pairing is made for.

use gpuio_base::units::format_bytes;
use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From storage to memory.
    Read,
    /// From memory to storage.
    Write,
}

/// Direction, order and block size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Load {
    pub direction: Direction,
    /// Whether blocks come in random order.
    pub random: bool,
    pub block_bytes: u64,
}

impl Load {
    /// The words of [`Load::of`].
    pub const DIRECTIONS: [&str; 4] = ["read", "write", "randread", "randwrite"];

    /// The load of a job file's word, with that file's block size where none is given: 4 KiB in
    /// random order, else 1 MiB; `None` for mixes and what is no word.
    pub fn of(rw: &str, block_bytes: Option<u64>) -> Option<Load> {
        let (direction, random) = match rw {
            "read" => (Direction::Read, false),
            "randread" => (Direction::Read, true),
            "write" => (Direction::Write, false),
            "randwrite" => (Direction::Write, true),
            _ => return None,
        };
        let usual = if random { 4 << 10 } else { 1 << 20 };
        Some(Load { direction, random, block_bytes: block_bytes.unwrap_or(usual) })
    }

    /// The job file's word: `read`, `randread`, `write`, `randwrite`.
    pub fn rw(self) -> &'static str {
        match (self.direction, self.random) {
            (Direction::Read, false) => "read",
            (Direction::Read, true) => "randread",
            (Direction::Write, false) => "write",
            (Direction::Write, true) => "randwrite",
        }
    }

    /// `read, 1M`.
    pub fn text(self) -> String {
        format!("{}, {}", self.rw(), format_bytes(self.block_bytes))
    }
}

/// Reads of 1 MiB.
impl Default for Load {
    fn default() -> Self {
        Load { direction: Direction::Read, random: false, block_bytes: 1 << 20 }
    }
}
