//! Queues of work on a device.

use std::ffi::c_void;

use crate::DevPtr;
use crate::context::Context;
use crate::error::GpuError;
use crate::module::{Arg, Kernel};
use crate::table::{self, CUmemcpy2D, CUmemcpy2DSide, CUstream};

/// A queue of copies and kernels. Work in one stream runs in order; streams run beside one another.
/// A stream has no implicit order with the default stream.
///
/// The calling thread's current context must be the stream's ([`Context::make_current`]).
#[derive(Debug)]
pub struct Stream {
    context: Context,
    handle: CUstream,
}

// SAFETY: a stream may be used from any thread; the handle is only handed back to the driver.
unsafe impl Send for Stream {}
// SAFETY: the driver locks what concurrent calls on one stream need.
unsafe impl Sync for Stream {}

impl Stream {
    /// Makes an empty stream.
    ///
    /// # Errors
    /// The driver's refusal.
    pub fn new(context: &Context) -> Result<Self, GpuError> {
        let _entered = context.enter()?;
        let mut handle: CUstream = std::ptr::null_mut();
        // SAFETY: `handle` is valid for the write of one pointer.
        let code = unsafe {
            (context.table().cuStreamCreate)(&raw mut handle, table::STREAM_NON_BLOCKING)
        };
        context.check("cuStreamCreate", code)?;
        Ok(Self { context: context.clone(), handle })
    }

    /// The context it belongs to.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The driver's handle (`CUstream`), for another library that puts work into the stream. It is
    /// valid as long as `self`.
    pub fn as_raw(&self) -> *mut c_void {
        self.handle
    }

    pub(crate) fn handle(&self) -> CUstream {
        self.handle
    }

    /// Waits until everything in the stream is done.
    ///
    /// # Errors
    /// A failure of work in the stream, or the driver's refusal.
    pub fn sync(&self) -> Result<(), GpuError> {
        // SAFETY: the handle lives as long as `self`.
        let code = unsafe { (self.context.table().cuStreamSynchronize)(self.handle) };
        self.context.check("cuStreamSynchronize", code)
    }

    /// True if everything in the stream is done.
    ///
    /// # Errors
    /// A failure of work in the stream, or the driver's refusal.
    pub fn query(&self) -> Result<bool, GpuError> {
        // SAFETY: the handle lives as long as `self`.
        let code = unsafe { (self.context.table().cuStreamQuery)(self.handle) };
        if code == table::NOT_READY {
            return Ok(false);
        }
        self.context.check("cuStreamQuery", code).map(|()| true)
    }

    /// Puts a copy of `len` bytes from host memory to device memory into the stream.
    ///
    /// From pinned memory the call returns at once; from pageable memory the driver may copy first
    /// and return later.
    ///
    /// # Errors
    /// The driver's refusal. A failure of the copy itself comes with the next sync or query.
    ///
    /// # Safety
    /// Until the stream has passed this copy (seen by [`Stream::sync`], [`Stream::query`] or an
    /// [`Event`](crate::Event) recorded after it), or the process ends: `src` must be readable for
    /// `len` bytes and no one may write them, and `dst` must be `len` bytes of live memory of the
    /// device that no one else reads or writes.
    #[inline]
    pub unsafe fn h2d(&self, dst: DevPtr, src: *const u8, len: usize) -> Result<(), GpuError> {
        let call = self.context.table().cuMemcpyHtoDAsync_v2;
        // SAFETY: the caller keeps both ranges live until the stream has passed the copy.
        let code = unsafe { call(dst.0, src.cast::<c_void>(), len, self.handle) };
        self.copied("cuMemcpyHtoDAsync_v2", code, dst.0, src as u64, len)
    }

    /// Puts a copy of `len` bytes from device memory to host memory into the stream.
    ///
    /// # Errors
    /// As [`Stream::h2d`].
    ///
    /// # Safety
    /// As [`Stream::h2d`], with the parts changed: until the stream has passed this copy `dst` must
    /// be writable for `len` bytes and no one else may read or write them, and `src` must be `len`
    /// bytes of live memory of the device that no one writes.
    #[inline]
    pub unsafe fn d2h(&self, dst: *mut u8, src: DevPtr, len: usize) -> Result<(), GpuError> {
        let call = self.context.table().cuMemcpyDtoHAsync_v2;
        // SAFETY: the caller keeps both ranges live until the stream has passed the copy.
        let code = unsafe { call(dst.cast::<c_void>(), src.0, len, self.handle) };
        self.copied("cuMemcpyDtoHAsync_v2", code, dst as u64, src.0, len)
    }

    /// Puts a copy of `len` bytes into the stream whose direction the driver reads from the
    /// addresses: each may be device memory, pinned or plain host memory. This is the copy for
    /// [`DeviceBuf`](crate::DeviceBuf)s that are host memory.
    ///
    /// # Errors
    /// As [`Stream::h2d`].
    ///
    /// # Safety
    /// Until the stream has passed this copy `src` must be `len` live bytes that no one writes, and
    /// `dst` `len` live bytes that no one else reads or writes.
    #[inline]
    pub unsafe fn copy(&self, dst: DevPtr, src: DevPtr, len: usize) -> Result<(), GpuError> {
        let call = self.context.table().cuMemcpyAsync;
        // SAFETY: the caller keeps both ranges live until the stream has passed the copy.
        let code = unsafe { call(dst.0, src.0, len, self.handle) };
        self.copied("cuMemcpyAsync", code, dst.0, src.0, len)
    }

    /// Puts copies of `rows` rows of `len` bytes into the stream, of which each begins so many
    /// bytes (the pitch) after the one before it. The memory is that of any device which the
    /// stream's reaches.
    ///
    /// # Errors
    /// As [`Stream::h2d`].
    ///
    /// # Safety
    /// As [`Stream::copy`], for each row.
    pub unsafe fn copy_rows(
        &self,
        (dst, dst_pitch): (DevPtr, usize),
        (src, src_pitch): (DevPtr, usize),
        len: usize,
        rows: usize,
    ) -> Result<(), GpuError> {
        let call = self.context.table().cuMemcpy2DAsync_v2;
        let copy = CUmemcpy2D {
            src: CUmemcpy2DSide::unified(src.0, src_pitch),
            dst: CUmemcpy2DSide::unified(dst.0, dst_pitch),
            width_in_bytes: len,
            height: rows,
        };
        // SAFETY: `copy` is read during the call; the caller keeps all rows live until the stream
        // has passed the copies.
        let code = unsafe { call(&raw const copy, self.handle) };
        self.context
            .check("cuMemcpy2DAsync_v2", code)
            .map_err(|e| e.with(format!("{rows} rows of {len} bytes from {src} to {dst}")))
    }

    /// Puts a launch of `kernel` into the stream: `grid` blocks of `block` threads.
    ///
    /// # Errors
    /// The driver's refusal. A failure of the kernel itself comes with the next sync or query.
    ///
    /// # Safety
    /// `args` must have the number and the types that the kernel declares, and all memory that the
    /// kernel reaches through them must be live, and used by no one else, until the stream has
    /// passed the launch.
    pub unsafe fn launch(
        &self,
        kernel: &Kernel,
        grid: u32,
        block: u32,
        args: &[Arg],
    ) -> Result<(), GpuError> {
        // SAFETY: the caller's contract is the same.
        unsafe { kernel.launch(self, grid, block, args) }
    }

    #[inline]
    fn copied(
        &self,
        call: &'static str,
        code: i32,
        dst: u64,
        src: u64,
        len: usize,
    ) -> Result<(), GpuError> {
        self.context
            .check(call, code)
            .map_err(|e| e.with(format!("{len} bytes from {src:#x} to {dst:#x}")))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let Ok(_entered) = self.context.enter() else {
            return;
        };
        // SAFETY: made by cuStreamCreate and destroyed once; the driver lets pending work end.
        let _ = unsafe { (self.context.table().cuStreamDestroy_v2)(self.handle) };
    }
}
