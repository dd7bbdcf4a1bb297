//! The memory that the kernels of one device reach.

use crate::backing::MemoryRange;
use crate::code::{Answer, ILLEGAL_ADDRESS};
use crate::memory::{Memory, owner};
use crate::peer::Peers;

/// The memory as a kernel of a device sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reach<'a> {
    pub(crate) memory: &'a Memory,
    pub(crate) peers: &'a Peers,
    pub(crate) multiprocessors: u32,
    pub(crate) device: u32,
}

impl Reach<'_> {
    /// Memory of the kernel's own device, of a device to which its context has peer access,
    /// pinned or registered memory, and managed memory whose pages are there.
    pub(crate) fn on_device(&self, start: u64, len: u64) -> Answer<MemoryRange> {
        if let Some(range) = self.memory.managed_by_kernel(self.device, start, len) {
            return range;
        }
        if let Some(owner) = owner(start)
            && owner != self.device
            && !self.peers.granted(self.device, owner)
        {
            return Err(ILLEGAL_ADDRESS);
        }
        self.memory.on_device(start, len).map_err(|_| ILLEGAL_ADDRESS)
    }
}
