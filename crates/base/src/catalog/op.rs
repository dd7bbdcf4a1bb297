//! The direction of an I/O.

/// Direction of an I/O, seen from the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Op {
    /// File to memory.
    Read,
    /// Memory to file.
    Write,
}
