//! The direction of a transfer.

/// Direction of an I/O, seen from the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Op {
    /// File to memory.
    Read,
    /// Memory to file.
    Write,
}
