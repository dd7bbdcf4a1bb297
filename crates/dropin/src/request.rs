//! The parameters of one read or write, as the program gives them.

use gpuio_transfer::Op;

/// The parameters of a transfer, before any check.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UncheckedRequest {
    pub(crate) op: Op,
    pub(crate) base: u64,
    pub(crate) len: usize,
    pub(crate) file_offset: i64,
    pub(crate) buffer_offset: i64,
}
