//! Page-locked host memory of our own mapping, which may outlive the driver.

use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use crate::DevPtr;
use crate::context::Context;
use crate::error::GpuError;
use crate::table::{self, CUdeviceptr};

/// The page size that a mapping requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PageSize {
    /// The kernel's own choice.
    #[default]
    Plain,
    /// Huge ones where there are (`madvise(2)`, `MADV_HUGEPAGE`): the mapping begins at a multiple
    /// of 2 MiB. A kernel without them gives plain ones, and that is no error.
    Huge,
}

/// The size of a huge page on x86-64, and on arm64 with pages of 4 KiB, in bytes.
const HUGE: usize = 2 << 20;
/// The size of a page at the least, in bytes.
const PAGE: usize = 4096;

/// Page-locked host memory: an anonymous mapping (`mmap(2)`), registered with the driver for every
/// context of the process. It holds zeros.
///
/// Other than [`Pinned`](crate::Pinned) it is no memory of the driver's: it stays mapped for as
/// long as the process lives if it is leaked, whatever becomes of the driver. Its pages are taken
/// by the thread that makes it, so they come from that thread's NUMA node while there are any.
///
/// A child of `fork(2)` does not have the mapping (`madvise(2)`, `MADV_DONTFORK`), and must not
/// touch it.
///
/// Dropping it unregisters and unmaps it: no copy into or out of it may then be under way, which is
/// the contract of the copies in [`Stream`](crate::Stream).
#[derive(Debug)]
pub struct Locked {
    context: Context,
    mapping: Mapping,
    /// As the device sees the first byte.
    seen: DevPtr,
}

// SAFETY: it owns its memory as a Box<[u8]> does; the driver allows the unregistering on any
// thread.
unsafe impl Send for Locked {}
// SAFETY: through a shared reference only addresses can be had.
unsafe impl Sync for Locked {}

/// Page-locked memory that is never given back, so that threads which the process's end finds at
/// work still have it.
#[derive(Debug, Clone, Copy)]
pub struct Leaked {
    start: NonNull<u8>,
    seen: DevPtr,
}

// SAFETY: it only names memory, which lives as long as the process.
unsafe impl Send for Leaked {}
// SAFETY: as for Send; it has no method that uses the memory.
unsafe impl Sync for Leaked {}

impl Leaked {
    /// The first byte.
    #[must_use]
    pub fn as_ptr(&self) -> NonNull<u8> {
        self.start
    }

    /// The first byte as the device sees it.
    #[must_use]
    pub fn ptr(&self) -> DevPtr {
        self.seen
    }
}

impl Locked {
    /// Maps and page-locks `len` bytes, aligned to 4096, or to 2 MiB for [`PageSize::Huge`].
    ///
    /// # Errors
    ///
    /// No memory (`mmap(2)`), a length of 0, or the driver's refusal (the limit of locked memory).
    pub fn new(context: &Context, len: usize, pages: PageSize) -> Result<Self, GpuError> {
        let _entered = context.enter()?;
        let refused = |code| {
            let error = context.table().error("mmap", code).on(context.device());
            error.with(format!("{len} bytes of host memory to lock"))
        };
        if len == 0 {
            return Err(refused(table::INVALID_VALUE));
        }
        let mapping = Mapping::new(len, pages).ok_or_else(|| refused(table::OUT_OF_MEMORY))?;
        let start = mapping.start.as_ptr().cast::<c_void>();
        let register = context.table().cuMemHostRegister_v2;
        let flags = table::MEMHOST_PORTABLE | table::MEMHOST_DEVICEMAP;
        // SAFETY: the range is a mapping of ours, unmapped after it is unregistered.
        let code = unsafe { register(start, len, flags) };
        context
            .check("cuMemHostRegister_v2", code)
            .map_err(|e| e.with(format!("{len} bytes at {start:p}")))?;
        // From here on dropping it unregisters it.
        let seen = DevPtr(start.addr() as u64);
        let mut made = Self { context: context.clone(), mapping, seen };
        made.seen = made.seen_by_device()?;
        Ok(made)
    }

    /// The device's address of memory that was registered, which on some platforms is another than
    /// the host's (CUDA driver API manual, `cuMemHostRegister`).
    fn seen_by_device(&self) -> Result<DevPtr, GpuError> {
        let Some(query) = self.context.table().cuMemHostGetDevicePointer_v2 else {
            return Ok(self.seen);
        };
        let mut seen: CUdeviceptr = 0;
        // SAFETY: `seen` is valid for the write of one address; the memory is registered.
        let code = unsafe { query(&raw mut seen, self.mapping.start.as_ptr().cast(), 0) };
        self.context.check("cuMemHostGetDevicePointer_v2", code)?;
        Ok(DevPtr(seen))
    }

    /// The first byte.
    #[must_use]
    pub fn as_ptr(&self) -> NonNull<u8> {
        self.mapping.start
    }

    /// The first byte as the device sees it.
    #[must_use]
    pub fn ptr(&self) -> DevPtr {
        self.seen
    }

    /// The length in bytes, never 0.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.mapping.len
    }

    /// Gives the memory to the process for good: it is neither unregistered nor unmapped, its
    /// context is never released, and the driver is not called for it again.
    #[must_use]
    pub fn leak(self) -> Leaked {
        let kept = ManuallyDrop::new(self);
        Leaked { start: kept.mapping.start, seen: kept.seen }
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        let Ok(_entered) = self.context.enter() else {
            return;
        };
        let start = self.mapping.start.as_ptr().cast();
        // SAFETY: registered by `new` and unregistered once.
        let _ = unsafe { (self.context.table().cuMemHostUnregister)(start) };
    }
}

/// An anonymous private mapping.
#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    len: usize,
    /// The mapping itself: more than what is used where that was moved up.
    whole: (NonNull<u8>, usize),
}

impl Mapping {
    fn new(len: usize, pages: PageSize) -> Option<Self> {
        let align = if pages == PageSize::Huge { HUGE } else { PAGE };
        // The kernel aligns to a page by itself.
        let whole = len.checked_next_multiple_of(PAGE)?.checked_add(align - PAGE)?;
        let (prot, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new anonymous mapping at an address that the kernel chooses touches no other.
        let first = unsafe { libc::mmap(std::ptr::null_mut(), whole, prot, flags, -1, 0) };
        if first == libc::MAP_FAILED {
            return None;
        }
        let first = NonNull::new(first.cast::<u8>())?;
        let up = first.addr().get().next_multiple_of(align) - first.addr().get();
        // SAFETY: `up` is at most what the mapping is longer than `len`.
        let start = unsafe { first.add(up) };
        let mapping = Self { start, len, whole: (first, whole) };
        if pages == PageSize::Huge {
            let whole_len = len.next_multiple_of(PAGE);
            // A hint: the result does not matter.
            // SAFETY: whole pages of the mapping that was just made.
            let _ = unsafe { libc::madvise(start.as_ptr().cast(), whole_len, libc::MADV_HUGEPAGE) };
        }
        // Otherwise parent and child shared the pages until one of them writes: the writer would
        // get a copy, and if that is the parent, the device would go on with what is the child's
        // then.
        // SAFETY: the mapping that was just made.
        let _ = unsafe { libc::madvise(first.as_ptr().cast(), whole, libc::MADV_DONTFORK) };
        Some(mapping)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let (first, whole) = self.whole;
        // SAFETY: mapped with this length and unmapped once.
        let _ = unsafe { libc::munmap(first.as_ptr().cast(), whole) };
    }
}
