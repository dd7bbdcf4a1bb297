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
    pub fn as_ptr(&self) -> NonNull<u8> {
        self.start
    }

    /// The first byte as the device sees it.
    pub fn ptr(&self) -> DevPtr {
        self.seen
    }
}

impl Locked {
    /// Maps and page-locks `len` bytes, aligned to 4096, or to 2 MiB for [`PageSize::Huge`].
    ///
    /// # Errors
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
        mapping.populate();
        let seen = register(context, mapping.start, len)?;
        Ok(Self { context: context.clone(), mapping, seen })
    }

    /// The first byte.
    pub fn as_ptr(&self) -> NonNull<u8> {
        self.mapping.start
    }

    /// The first byte as the device sees it.
    pub fn ptr(&self) -> DevPtr {
        self.seen
    }

    /// The length in bytes, never 0.
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

/// Addresses for page-locked memory that is taken part by part, so that all parts are one range.
///
/// A child of `fork(2)` has none of it, as with [`Locked`]. Dropping it unregisters and unmaps it.
#[derive(Debug)]
pub(crate) struct Growing {
    context: Context,
    mapping: Mapping,
    /// Parts that are registered, by their first byte, and how far the device's addresses are from
    /// the host's: the same for all.
    parts: Vec<NonNull<u8>>,
    shift: u64,
}

// SAFETY: as for `Locked`.
unsafe impl Send for Growing {}
// SAFETY: as for `Locked`.
unsafe impl Sync for Growing {}

impl Growing {
    /// Reserves addresses for `len` bytes, and no memory.
    ///
    /// # Errors
    /// No such range is free (`mmap(2)`).
    pub(crate) fn new(context: &Context, len: usize) -> Result<Self, GpuError> {
        let mapping = Mapping::reserve(len).ok_or_else(|| {
            let error = context.table().error("mmap", table::OUT_OF_MEMORY);
            error.on(context.device()).with(format!("{len} bytes of addresses"))
        })?;
        Ok(Self { context: context.clone(), mapping, parts: Vec::new(), shift: 0 })
    }

    /// Takes memory for `len` bytes from byte `begin` on, whole pages, and locks it. It holds
    /// zeros. Locking the same bytes twice is refused by the driver.
    ///
    /// # Errors
    /// No memory, the limit of locked memory, or a device to which the parts are no one range.
    pub(crate) fn lock(&mut self, begin: usize, len: usize) -> Result<NonNull<u8>, GpuError> {
        let refused = |call, code| {
            let error = self.context.table().error(call, code).on(self.context.device());
            error.with(format!("{len} bytes of host memory to lock"))
        };
        let fits = begin.checked_add(len).is_some_and(|end| len > 0 && end <= self.mapping.len);
        if !fits || !begin.is_multiple_of(PAGE) || !len.is_multiple_of(PAGE) {
            return Err(refused("mmap", table::INVALID_VALUE));
        }
        // SAFETY: inside the mapping.
        let start = unsafe { self.mapping.start.add(begin) };
        let at = start.as_ptr().cast::<c_void>();
        // SAFETY: whole pages of our own mapping, which become usable.
        let code = unsafe { libc::mprotect(at, len, libc::PROT_READ | libc::PROT_WRITE) };
        if code != 0 {
            return Err(refused("mprotect", table::OUT_OF_MEMORY));
        }
        let _entered = self.context.enter()?;
        let seen = register(&self.context, start, len)?;
        let shift = seen.0.wrapping_sub(start.addr().get() as u64);
        if !self.parts.is_empty() && shift != self.shift {
            // SAFETY: registered just above.
            let _ = unsafe { (self.context.table().cuMemHostUnregister)(at) };
            return Err(refused("cuMemHostGetDevicePointer_v2", table::NOT_SUPPORTED));
        }
        self.shift = shift;
        self.parts.push(start);
        Ok(start)
    }

    /// How many parts are locked.
    pub(crate) fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Unlocks the parts behind the first `kept`. Nothing uses them.
    pub(crate) fn unlock_behind(&mut self, kept: usize) {
        let Ok(_entered) = self.context.enter() else {
            return;
        };
        for start in self.parts.drain(kept..) {
            // SAFETY: registered by `lock` and unregistered once.
            let _ = unsafe { (self.context.table().cuMemHostUnregister)(start.as_ptr().cast()) };
        }
    }

    /// The first byte.
    pub(crate) fn as_ptr(&self) -> NonNull<u8> {
        self.mapping.start
    }

    /// The first byte as the device sees it, once a part is locked.
    pub(crate) fn ptr(&self) -> DevPtr {
        DevPtr((self.mapping.start.addr().get() as u64).wrapping_add(self.shift))
    }
}

impl Drop for Growing {
    fn drop(&mut self) {
        self.unlock_behind(0);
    }
}

/// Locks a range of a mapping of ours, in the current context, and answers where the device sees
/// it: on some platforms at another address than the host (CUDA driver API manual,
/// `cuMemHostRegister`).
fn register(context: &Context, start: NonNull<u8>, len: usize) -> Result<DevPtr, GpuError> {
    let at = start.as_ptr().cast::<c_void>();
    let flags = table::MEMHOST_PORTABLE | table::MEMHOST_DEVICEMAP;
    // SAFETY: the range is a mapping of ours, unmapped after it is unregistered.
    let code = unsafe { (context.table().cuMemHostRegister_v2)(at, len, flags) };
    context
        .check("cuMemHostRegister_v2", code)
        .map_err(|e| e.with(format!("{len} bytes at {at:p}")))?;
    let Some(query) = context.table().cuMemHostGetDevicePointer_v2 else {
        return Ok(DevPtr(at.addr() as u64));
    };
    let mut seen: CUdeviceptr = 0;
    // SAFETY: `seen` is valid for the write of one address; the memory is registered.
    let code = unsafe { query(&raw mut seen, at, 0) };
    if let Err(error) = context.check("cuMemHostGetDevicePointer_v2", code) {
        // SAFETY: registered above, and unregistered once.
        let _ = unsafe { (context.table().cuMemHostUnregister)(at) };
        return Err(error);
    }
    Ok(DevPtr(seen))
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
        let first = map(whole, libc::PROT_READ | libc::PROT_WRITE, 0)?;
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
        Some(mapping)
    }

    /// Addresses alone.
    fn reserve(len: usize) -> Option<Self> {
        let whole = len.checked_next_multiple_of(PAGE)?;
        let start = map(whole, libc::PROT_NONE, libc::MAP_NORESERVE)?;
        Some(Self { start, len, whole: (start, whole) })
    }

    /// Takes the pages (`madvise(2)`, `MADV_POPULATE_WRITE`, Linux 5.14): the driver would, one
    /// thread at a time, while it registers them. A kernel without it leaves them to the driver.
    fn populate(&self) {
        let len = self.len.next_multiple_of(PAGE);
        // SAFETY: whole pages of a mapping of ours, which keep what they hold.
        let _ =
            unsafe { libc::madvise(self.start.as_ptr().cast(), len, libc::MADV_POPULATE_WRITE) };
    }
}

/// Maps whole pages, which a child of `fork(2)` does not have.
fn map(len: usize, access: libc::c_int, more: libc::c_int) -> Option<NonNull<u8>> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | more;
    // SAFETY: a new anonymous mapping at an address that the kernel chooses touches no other.
    let first = unsafe { libc::mmap(std::ptr::null_mut(), len, access, flags, -1, 0) };
    if first == libc::MAP_FAILED {
        return None;
    }
    // Otherwise parent and child shared the pages until one of them writes: the writer would get a
    // copy, and if that is the parent, the device would go on with what is the child's then.
    // SAFETY: the mapping that was just made.
    let _ = unsafe { libc::madvise(first, len, libc::MADV_DONTFORK) };
    NonNull::new(first.cast())
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let (first, whole) = self.whole;
        // SAFETY: mapped with this length and unmapped once.
        let _ = unsafe { libc::munmap(first.as_ptr().cast(), whole) };
    }
}
