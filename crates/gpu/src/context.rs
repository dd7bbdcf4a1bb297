//! The primary context of a device, shared with every other user of it in the process, and
//! contexts of our own.

use std::ffi::c_int;
use std::fmt;
use std::sync::Arc;

use crate::driver::Driver;
use crate::error::GpuError;
use crate::table::{self, CAPTURE_MODE_RELAXED as RELAXED, CUcontext, CUdevice, Table};

/// The handle (`CUcontext`) of a context that the program or a library may own: a number to
/// compare, which says nothing of whether the context lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RawContext(pub(crate) usize);

/// Bytes of a kernel's stack in a context of our own.
const SMALL_STACK: usize = 16;

/// A device's primary context, or one of our own, kept alive until the last clone is dropped.
/// Cloning is cheap.
#[derive(Clone)]
pub struct Context(Arc<Inner>);

struct Inner {
    driver: Driver,
    index: u32,
    device: CUdevice,
    handle: CUcontext,
    /// It is of our own, and not the primary one.
    is_own: bool,
    /// The number that distinguishes a context from the one before a reset, where the driver
    /// has such numbers.
    id: Option<u64>,
}

// SAFETY: a context may be used from any thread and from several at once (CUDA driver API manual,
// "Context Management"; since CUDA 4.0); the handle itself is only handed back to the driver.
unsafe impl Send for Inner {}
// SAFETY: as for Send.
unsafe impl Sync for Inner {}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("device", &self.0.index).finish_non_exhaustive()
    }
}

impl Context {
    /// Retains the primary context of the device with this index. The first one of a process takes
    /// hundreds of milliseconds and some hundred MiB of the GPU's memory.
    ///
    /// # Errors
    /// No such device, or the driver cannot make the context.
    pub fn new(driver: &Driver, device: u32) -> Result<Self, GpuError> {
        let index = device;
        let device = driver.device(index)?;
        let mut handle: CUcontext = std::ptr::null_mut();
        // SAFETY: `handle` is valid for the write of one pointer.
        let code = unsafe { (driver.table().cuDevicePrimaryCtxRetain)(&raw mut handle, device) };
        driver.table().check("cuDevicePrimaryCtxRetain", code).map_err(|e| e.on(index))?;
        Ok(Self::with(driver, (index, device), handle, false))
    }

    /// Makes a context beside the primary one. The driver's calls that wait for the work of a
    /// context, and have other threads wait meanwhile, leave the work and the calls of the primary
    /// context alone here: `cuMemHostUnregister` took 0.6 ms beside a stream that was held
    /// (H200, driver 580.159). Copies reach memory of all contexts of the process
    /// ([`Stream::copy`](crate::Stream::copy)).
    ///
    /// It takes 0.14 s and 264 MiB of the GPU's memory there: kernels with large stacks can't run
    /// in it.
    ///
    /// # Errors
    /// The driver can't make it.
    pub fn own(driver: &Driver, device: u32) -> Result<Self, GpuError> {
        let index = device;
        let device = driver.device(index)?;
        let table = driver.table();
        let (Some(create), Some(limit)) = (table.cuCtxCreate_v2, table.cuCtxSetLimit) else {
            return Err(table.lacking("cuCtxCreate_v2").on(index));
        };
        let mut handle: CUcontext = std::ptr::null_mut();
        // SAFETY: `handle` is valid for the write of one pointer.
        let code = unsafe { create(&raw mut handle, 0, device) };
        table.check("cuCtxCreate_v2", code).map_err(|e| e.on(index))?;
        // It is current now, on top of what was. The stacks of its kernels would take another 260
        // MiB; that the limit can't be set is no fault.
        // SAFETY: numbers only.
        let _ = unsafe { limit(table::LIMIT_STACK_SIZE, SMALL_STACK) };
        let mut popped: CUcontext = std::ptr::null_mut();
        // SAFETY: `popped` is valid for the write of one pointer.
        let code = unsafe { (table.cuCtxPopCurrent_v2)(&raw mut popped) };
        table.check("cuCtxPopCurrent_v2", code).map_err(|e| e.on(index))?;
        Ok(Self::with(driver, (index, device), handle, true))
    }

    fn with(
        driver: &Driver,
        (index, device): (u32, CUdevice),
        handle: CUcontext,
        is_own: bool,
    ) -> Self {
        let id = id(driver.table(), handle);
        Self(Arc::new(Inner { driver: driver.clone(), index, device, handle, is_own, id }))
    }

    /// Makes this the calling thread's current context. Streams and events need that; it stays so
    /// until another is made current.
    ///
    /// # Errors
    /// The driver's refusal.
    pub fn make_current(&self) -> Result<(), GpuError> {
        // SAFETY: the handle is a retained context's, and lives as long as `self`.
        let code = unsafe { (self.table().cuCtxSetCurrent)(self.0.handle) };
        self.check("cuCtxSetCurrent", code)
    }

    /// Waits for all work put into the context so far, by anyone in the process: also by libraries,
    /// into streams that they keep to themselves. `cuCtxSynchronize`, CUDA driver API manual,
    /// "Context Management".
    ///
    /// # Errors
    /// The driver's refusal, or a failure of that work by which the context is lost.
    pub fn synchronize(&self) -> Result<(), GpuError> {
        let _entered = self.enter()?;
        // SAFETY: the call takes nothing; the guard made the context current.
        let code = unsafe { (self.table().cuCtxSynchronize)() };
        self.check("cuCtxSynchronize", code)
    }

    /// Whether the context was reset since it was retained (`cudaDeviceReset`): all that was made
    /// in it is gone. Drivers before CUDA 12 do not say so.
    pub fn is_reset(&self) -> bool {
        self.0.id.is_some() && id(self.table(), self.0.handle) != self.0.id
    }

    /// The index of the device.
    pub fn device(&self) -> u32 {
        self.0.index
    }

    /// The driver it came from.
    pub fn driver(&self) -> &Driver {
        &self.0.driver
    }

    /// The device's memory in bytes: free now, and in all.
    ///
    /// # Errors
    /// The driver's refusal.
    pub fn memory(&self) -> Result<(u64, u64), GpuError> {
        let _entered = self.enter()?;
        let (mut free, mut total) = (0_usize, 0_usize);
        // SAFETY: both are valid for the write of one size_t.
        let code = unsafe { (self.table().cuMemGetInfo_v2)(&raw mut free, &raw mut total) };
        self.check("cuMemGetInfo_v2", code)?;
        Ok((free as u64, total as u64))
    }

    /// Runs `work` with this context current on the calling thread, and leaves the thread's stack
    /// of contexts as it was, also where `work` panics. For threads of the program.
    ///
    /// Calls that `work` makes are allowed, and spoil nothing, while another thread captures a
    /// graph (`cuThreadExchangeStreamCaptureMode`, CUDA driver API manual, "Stream Management").
    ///
    /// # Errors
    /// The driver's refusal (the context was destroyed, the process is ending): `work` did not run.
    /// From CUDA 12 on also a context that was reset (`cudaDeviceReset`), by which all that was
    /// made in it is gone.
    pub fn entered<T>(&self, work: impl FnOnce() -> T) -> Result<T, GpuError> {
        let _entered = self.enter()?;
        Ok(work())
    }

    /// The driver's handle, to compare with that of a [`Pointer`](crate::Pointer) or a
    /// [`UserStream`](crate::UserStream).
    pub fn raw(&self) -> RawContext {
        RawContext(self.0.handle.addr())
    }

    /// Makes the context current until the guard is dropped, then puts back what was current.
    pub(crate) fn enter(&self) -> Result<Entered<'_>, GpuError> {
        // SAFETY: the handle is a retained context's, and lives as long as `self`.
        let code = unsafe { (self.table().cuCtxPushCurrent_v2)(self.0.handle) };
        self.check("cuCtxPushCurrent_v2", code)?;
        let entered = Entered { context: self, mode: exchange(self.table(), Some(RELAXED)) };
        if self.0.id.is_some() && id(self.table(), self.0.handle) != self.0.id {
            // Objects made in the former context may not even be named to the driver.
            let error = self.table().error("cuCtxGetId", table::CONTEXT_IS_DESTROYED);
            return Err(error.on(self.0.index).with("the primary context was reset"));
        }
        Ok(entered)
    }

    /// The driver's handle.
    pub(crate) fn handle(&self) -> CUcontext {
        self.0.handle
    }

    pub(crate) fn table(&self) -> &Table {
        self.0.driver.table()
    }

    /// An error that names the device, or `Ok`.
    #[inline]
    pub(crate) fn check(&self, call: &'static str, code: i32) -> Result<(), GpuError> {
        self.table().check(call, code).map_err(|e| e.on(self.0.index))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let table = self.driver.table();
        if self.is_own {
            if let Some(destroy) = table.cuCtxDestroy_v2 {
                // SAFETY: made by `Context::own`, and every owner made from the context holds a
                // clone, so none is left.
                let _ = unsafe { destroy(self.handle) };
            }
            return;
        }
        // SAFETY: `Context::new` retained once and this releases once; every owner made from the
        // context holds a clone, so none is left.
        let _ = unsafe { (table.cuDevicePrimaryCtxRelease_v2)(self.device) };
    }
}

/// The context's own number, where the driver has one.
fn id(table: &Table, handle: CUcontext) -> Option<u64> {
    let query = table.cuCtxGetId?;
    let mut id = 0_u64;
    // SAFETY: `id` is valid for the write of one number; the handle is a primary context's, which
    // the driver keeps for as long as the process lives.
    let code = unsafe { query(handle, &raw mut id) };
    (code == table::SUCCESS).then_some(id)
}

/// Sets what the calling thread may call while others capture, and returns what it was; does
/// nothing without a mode, or where the driver has none.
fn exchange(table: &Table, mode: Option<c_int>) -> Option<c_int> {
    let (exchange, mut mode) = (table.cuThreadExchangeStreamCaptureMode?, mode?);
    // SAFETY: `mode` is valid for reading and writing one int.
    let code = unsafe { exchange(&raw mut mode) };
    (code == table::SUCCESS).then_some(mode)
}

/// A context pushed on the calling thread's stack; bound to that thread by its raw borrow's use.
pub(crate) struct Entered<'a> {
    context: &'a Context,
    /// The thread's former mode: the calls that it might make while others capture.
    mode: Option<c_int>,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let _ = exchange(self.context.table(), self.mode);
        let mut popped: CUcontext = std::ptr::null_mut();
        // SAFETY: `popped` is valid for the write of one pointer; the guard lives in one function,
        // on the thread that pushed.
        let _ = unsafe { (self.context.table().cuCtxPopCurrent_v2)(&raw mut popped) };
    }
}
