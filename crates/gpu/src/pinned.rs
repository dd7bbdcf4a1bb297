//! Host memory that the device reaches by itself.

use std::ffi::c_void;
use std::ptr::NonNull;

use crate::DevPtr;
use crate::context::Context;
use crate::error::GpuError;
use crate::table;

/// The alignment that O_DIRECT and the pin of whole pages ask for, in bytes.
const PAGE: usize = 4096;

/// Page-locked host memory from the driver, in its pages, for every context of the process.
///
/// It is given back when dropped: no copy into or out of it may then be under way, which is the
/// contract of the copies in [`Stream`](crate::Stream).
#[derive(Debug)]
pub struct Pinned {
    context: Context,
    /// As the driver gave it.
    block: NonNull<u8>,
    /// The first multiple of a page in the block.
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: it owns its memory as a Box<[u8]> does; the driver allows the free on any thread.
unsafe impl Send for Pinned {}
// SAFETY: through a shared reference only addresses can be had.
unsafe impl Sync for Pinned {}

impl Pinned {
    /// Allocates `len` bytes, aligned to 4096. Their contents are not defined.
    ///
    /// The driver promises no alignment: a driver 580 cuts small blocks out of a larger one at
    /// multiples of 512 bytes. So one page more is allocated, and the start is moved up.
    ///
    /// # Errors
    /// The driver's refusal (no memory, the limit of locked memory, or a length of 0).
    pub fn alloc(context: &Context, len: usize) -> Result<Self, GpuError> {
        // The driver returns success and a null pointer.
        if len == 0 {
            let error = context.table().error("cuMemHostAlloc", table::INVALID_VALUE);
            return Err(error.on(context.device()).with("0 bytes of pinned memory"));
        }
        let named = |e: GpuError| e.with(format!("{len} bytes of pinned memory"));
        let Some(whole) = len.checked_add(PAGE) else {
            let error = context.table().error("cuMemHostAlloc", table::OUT_OF_MEMORY);
            return Err(named(error.on(context.device())));
        };
        let _entered = context.enter()?;
        let mut start: *mut c_void = std::ptr::null_mut();
        let call = context.table().cuMemHostAlloc;
        // SAFETY: `start` is valid for the write of one pointer.
        let code = unsafe { call(&raw mut start, whole, table::MEMHOST_PORTABLE) };
        context.check("cuMemHostAlloc", code).map_err(named)?;
        let Some(block) = NonNull::new(start.cast::<u8>()) else {
            let error = context.table().error("cuMemHostAlloc", table::OUT_OF_MEMORY);
            return Err(named(error.on(context.device())));
        };
        let up = block.addr().get().next_multiple_of(PAGE) - block.addr().get();
        // SAFETY: `up` is below a page, and the block is a page longer than `len`.
        let start = unsafe { block.add(up) };
        Ok(Self { context: context.clone(), block, start, len })
    }

    /// The same, all bytes 0, so that each page was touched: by this thread, on whose memory node
    /// the kernel then puts them unless the driver decided it.
    ///
    /// # Errors
    /// As [`Pinned::alloc`].
    pub fn zeroed(context: &Context, len: usize) -> Result<Self, GpuError> {
        let memory = Self::alloc(context, len)?;
        // SAFETY: the allocation has `len` bytes from there on, and nothing else knows it yet.
        unsafe { memory.start.write_bytes(0, len) };
        Ok(memory)
    }

    /// The first byte.
    pub fn as_ptr(&self) -> NonNull<u8> {
        self.start
    }

    /// The same address as the device sees it.
    pub fn ptr(&self) -> DevPtr {
        DevPtr(self.start.addr().get() as u64)
    }

    /// The length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True for a length of 0, which [`Pinned::alloc`] never gives.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let Ok(_entered) = self.context.enter() else {
            return;
        };
        // SAFETY: from cuMemHostAlloc and freed once; no copy is under way, by the contract of the
        // copies.
        let _ = unsafe { (self.context.table().cuMemFreeHost)(self.block.as_ptr().cast()) };
    }
}

/// Host memory of another owner, page-locked while this value lives.
#[derive(Debug)]
pub struct Registered {
    context: Context,
    start: NonNull<u8>,
}

// SAFETY: it only names memory; the driver allows the unregistering on any thread.
unsafe impl Send for Registered {}
// SAFETY: it has no method that uses the memory.
unsafe impl Sync for Registered {}

impl Registered {
    /// Page-locks `len` bytes at `start`, for every context of the process.
    ///
    /// # Errors
    /// The driver's refusal: memory registered already, the limit of locked memory, or a file
    /// mapping, which some drivers do not lock.
    ///
    /// # Safety
    /// The range must be mapped memory that stays mapped until the value is dropped.
    pub unsafe fn new(context: &Context, start: NonNull<u8>, len: usize) -> Result<Self, GpuError> {
        let _entered = context.enter()?;
        let call = context.table().cuMemHostRegister_v2;
        // SAFETY: the caller keeps the range mapped until this value unregisters it.
        let code = unsafe { call(start.as_ptr().cast(), len, table::MEMHOST_PORTABLE) };
        context
            .check("cuMemHostRegister_v2", code)
            .map_err(|e| e.with(format!("{len} bytes at {start:p}")))?;
        Ok(Self { context: context.clone(), start })
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let Ok(_entered) = self.context.enter() else {
            return;
        };
        // SAFETY: registered by `new` and unregistered once.
        let _ = unsafe { (self.context.table().cuMemHostUnregister)(self.start.as_ptr().cast()) };
    }
}
