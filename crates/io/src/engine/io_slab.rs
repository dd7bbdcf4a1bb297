//! The I/Os that the kernel has, by the number it gives back.

use super::Io;

/// A slab of I/Os of fixed size: no allocation after it is made.
pub(super) struct IoSlab {
    ios: Vec<Option<Io>>,
    free: Vec<u32>,
}

impl IoSlab {
    pub(super) fn new(depth: u32) -> IoSlab {
        IoSlab { ios: vec![None; depth as usize], free: (0..depth).rev().collect() }
    }

    /// Keeps `io` and names its slot; nothing when all are taken.
    #[inline]
    pub(super) fn put(&mut self, io: Io) -> Option<u32> {
        let slot = self.free.pop()?;
        self.ios[slot as usize] = Some(io);
        Some(slot)
    }

    /// Empties a slot. Nothing for a number that is not out: the kernel hands each back once.
    #[inline]
    pub(super) fn take(&mut self, slot: u64) -> Option<Io> {
        let slot = u32::try_from(slot).ok()?;
        let io = self.ios.get_mut(slot as usize)?.take()?;
        self.free.push(slot);
        Some(io)
    }

    /// I/Os held.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.ios.len() - self.free.len()
    }
}
