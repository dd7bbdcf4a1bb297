//! Pages of anonymous memory.

use crate::engine::{HostRegion, Span};
use std::io;
use std::ptr::NonNull;

/// No memory.
#[derive(Debug, thiserror::Error)]
#[error(
    "mmap of {len} bytes of anonymous memory: {source}; lower block size, depth or workers, or \
     raise the limit (ulimit -v, memory.max of the control group)"
)]
pub struct AllocError {
    /// Bytes requested, rounded up.
    pub len: usize,
    /// The kernel's answer.
    pub source: io::Error,
}

/// Zeroed memory on whole pages, aligned for O_DIRECT on any device.
///
/// Every page is touched by the thread that allocates, so it lies on that thread's NUMA node
/// under the kernel's default policy (numa(7), first touch) and the first I/O meets no page
/// fault. May be sent to another thread; unmapped on drop.
#[derive(Debug)]
pub struct Aligned {
    ptr: NonNull<u8>,
    len: usize,
}

// SAFETY: owns its pages alone, like a Box<[u8]>.
unsafe impl Send for Aligned {}

// SAFETY: shared references give the address and the length only, no byte.
unsafe impl Sync for Aligned {}

impl Aligned {
    /// At least `len` bytes, rounded up to whole pages; one page when `len` is 0.
    ///
    /// # Errors
    /// mmap(2) refused.
    pub fn new(len: usize) -> Result<Aligned, AllocError> {
        let page = rustix::param::page_size();
        let too_large = || AllocError { len, source: io::Error::from_raw_os_error(libc::ENOMEM) };
        let len = len.max(1).checked_next_multiple_of(page).ok_or_else(too_large)?;
        let ptr = map(len).map_err(|source| AllocError { len, source })?;
        let memory = Aligned { ptr, len };
        memory.touch(page);
        Ok(memory)
    }

    fn touch(&self, page: usize) {
        for offset in (0..self.len).step_by(page) {
            // SAFETY: offset is below the length.
            let byte = unsafe { self.ptr.add(offset) };
            // Volatile: storing the 0 that is there must not be optimised away.
            // SAFETY: our own byte, and nothing else has it yet.
            unsafe { byte.write_volatile(0) };
        }
    }

    /// First byte.
    pub fn as_ptr(&self) -> *mut u8 {
        self.ptr.as_ptr()
    }

    /// Length in bytes, a multiple of the page size.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Never: there is always a page.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// All of it, for [`crate::engine::EngineConfig::region`].
    pub fn region(&self) -> HostRegion {
        HostRegion { ptr: self.ptr, len: self.len }
    }

    /// The `len` bytes from `offset`, to give to an engine; nothing when they are not inside.
    ///
    /// # Safety
    /// As for [`Span::new`]: the memory is kept, and no reference to these bytes is used, while
    /// an I/O with the span is out.
    pub unsafe fn span(&self, offset: usize, len: u32) -> Option<Span> {
        if offset.checked_add(len as usize)? > self.len {
            return None;
        }
        // SAFETY: the offset is at most the length.
        let ptr = unsafe { self.ptr.add(offset) };
        // SAFETY: the caller's promise.
        Some(unsafe { Span::new(ptr, len) })
    }

    /// The bytes, to read.
    ///
    /// # Safety
    /// No I/O with a span of this memory is out while the slice is used, and no device writes
    /// to it.
    pub unsafe fn slice(&self) -> &[u8] {
        // SAFETY: mapped, initialised by the kernel, and unchanged by the caller's promise.
        unsafe { std::slice::from_raw_parts(self.as_ptr(), self.len) }
    }

    /// The bytes, to write. As with every `&mut`, nothing else may use them at the same time: spans
    /// that are out were made under that promise.
    pub fn slice_mut(&mut self) -> &mut [u8] {
        // SAFETY: mapped and initialised; exclusive by `&mut self` and `Span::new`'s promise.
        unsafe { std::slice::from_raw_parts_mut(self.as_ptr(), self.len) }
    }
}

impl Drop for Aligned {
    fn drop(&mut self) {
        // SAFETY: whole pages that `map` gave us and that are no longer used. A failure (too many
        // mappings) leaves them mapped, which does no harm.
        unsafe { libc::munmap(self.ptr.as_ptr().cast(), self.len) };
    }
}

/// Fresh anonymous pages.
fn map(len: usize) -> io::Result<NonNull<u8>> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping at an address of the kernel's choice touches no other.
    let address = unsafe { libc::mmap(std::ptr::null_mut(), len, access, flags, -1, 0) };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(address.cast()).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))
}

#[cfg(test)]
mod tests;
