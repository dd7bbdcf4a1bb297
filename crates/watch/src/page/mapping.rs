//! The page's memory in the process that writes it: all the `unsafe` of this crate.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::{NonNull, null_mut};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::page::layout::{Cells, HEADER_BYTES, SLOT_BYTES, page_bytes};

/// A mapped page. Only references to its slots are handed out, and those are atomics alone, for
/// which any bits are a value: whoever else writes the file can falsify counts and no more.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    worker_slots: u32,
}

// SAFETY: the mapping belongs to this value, is unmapped once, and is read and written through
// atomics only, so that any thread may hold it.
unsafe impl Send for Mapping {}
// SAFETY: as above; shared references give out nothing but atomics.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps a file that has [`page_bytes`] of so many slots, which are all allocated.
    ///
    /// # Errors
    /// Those of mmap(2).
    pub(crate) fn new(file: BorrowedFd<'_>, worker_slots: u32) -> io::Result<Mapping> {
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: no address is requested, so nothing that is mapped is replaced; the memory is
        // reached through this value alone. The file is this process's own, has been allocated to
        // its whole length, and only its owner could cut it.
        let base =
            unsafe { mmap(null_mut(), page_bytes(worker_slots), protection, flags, file, 0) }?;
        let base = NonNull::new(base.cast()).ok_or_else(|| io::Error::other("mapped at 0"))?;
        Ok(Mapping { base, worker_slots })
    }

    pub(crate) fn worker_slot(&self, number: u32) -> Option<&Cells> {
        if number >= self.worker_slots {
            return None;
        }
        let at = HEADER_BYTES + number as usize * SLOT_BYTES;
        let cells = self.base.as_ptr().wrapping_add(at).cast::<Cells>();
        // SAFETY: the slot is inside the mapping, which lives as long as `self`; mappings begin
        // on a page and header and slots are multiples of 64 bytes, so it is aligned; it consists
        // of atomics, for which all bits are valid and writes of others are no data race.
        Some(unsafe { &*cells })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `new` mapped exactly this, and the references handed out end before `self`.
        // Failure would mean that it is not mapped: nothing is left to do.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), page_bytes(self.worker_slots)) };
    }
}
