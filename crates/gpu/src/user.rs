//! Streams of the program that loaded this library.

use std::ffi::{c_int, c_void};

use crate::DevPtr;
use crate::context::RawContext;
use crate::driver::Driver;
use crate::error::GpuError;
use crate::table::{self, CUcontext, CUstream};

/// A function of the host's that a stream calls. It must not call the driver, and nothing else may
/// make it wait for work of the GPU (CUDA driver API manual, `cuLaunchHostFunc`).
pub type HostFn = unsafe extern "C" fn(*mut c_void);

/// A program's handle of a stream (`CUstream`, `cudaStream_t`): one that it made, or a default
/// stream (null and 1, the legacy one; 2, the calling thread's own).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawStream(pub(crate) CUstream);

// SAFETY: the handle is only handed back to the driver, which takes it from any thread. The meaning
// of the handle of a thread's own stream there is described in the documentation of
// `UserStream::new`.
unsafe impl Send for RawStream {}
// SAFETY: as for Send.
unsafe impl Sync for RawStream {}

impl RawStream {
    /// Takes the program's handle, and does nothing with it yet.
    pub fn new(handle: *mut c_void) -> Self {
        Self(handle)
    }

    /// True for the handles that mean a stream of the calling thread's current context.
    pub fn is_default(self) -> bool {
        self.0.addr() <= 2
    }
}

/// A stream of the program and the context that it belongs to. Dropping it does nothing.
///
/// Work that is put into it needs its context to be current: [`UserStream::entered`].
#[derive(Debug, Clone)]
pub struct UserStream {
    driver: Driver,
    stream: RawStream,
    context: RawContext,
}

impl UserStream {
    /// Asks for the stream's context (`cuStreamGetCtx`). For a default stream that is the calling
    /// thread's current one, so this and all that follows must happen on the program's own thread.
    ///
    /// # Errors
    /// The driver's refusal: a default stream where no context is current.
    ///
    /// # Safety
    /// The stream must be a default one, or live until the last use of the value and its clones,
    /// and so must its context: the driver follows the handles of both, and of what was destroyed
    /// it need not say so (CUDA driver API manual, `cuCtxDestroy`).
    pub unsafe fn new(driver: &Driver, stream: RawStream) -> Result<Self, GpuError> {
        let mut handle: CUcontext = std::ptr::null_mut();
        // SAFETY: `handle` is valid for the write of one pointer; the stream lives by the caller's
        // promise.
        let code = unsafe { (driver.table().cuStreamGetCtx)(stream.0, &raw mut handle) };
        driver.table().check("cuStreamGetCtx", code).map_err(|e| e.with(named(stream)))?;
        Ok(Self { driver: driver.clone(), stream, context: RawContext(handle.addr()) })
    }

    /// The handle.
    pub fn raw(&self) -> RawStream {
        self.stream
    }

    /// The context that the stream belongs to.
    pub fn context(&self) -> RawContext {
        self.context
    }

    /// The index of the device that its context is of (`cuCtxGetDevice`).
    ///
    /// # Errors
    /// The driver's refusal.
    pub fn device(&self) -> Result<u32, GpuError> {
        let mut device: c_int = 0;
        let code = self.entered(|| {
            // SAFETY: `device` is valid for the write of one number.
            unsafe { (self.driver.table().cuCtxGetDevice)(&raw mut device) }
        })?;
        self.check("cuCtxGetDevice", code)?;
        // A device's number is its index (CUDA driver API manual, `cuDeviceGet`).
        Ok(u32::try_from(device).unwrap_or(0))
    }

    /// Runs `work` with the stream's context current on the calling thread, and leaves the thread's
    /// stack of contexts as it was.
    ///
    /// # Errors
    /// The driver's refusal: `work` did not run.
    pub fn entered<T>(&self, work: impl FnOnce() -> T) -> Result<T, GpuError> {
        let context: CUcontext = std::ptr::without_provenance_mut(self.context.0);
        let table = self.driver.table();
        // SAFETY: the handle is from the driver, which follows it: the context lives as long as its
        // stream, which lives by the promise of `new`.
        let code = unsafe { (table.cuCtxPushCurrent_v2)(context) };
        self.check("cuCtxPushCurrent_v2", code)?;
        let _entered = Entered(&self.driver);
        Ok(work())
    }

    /// True if what is put into the stream is captured into a graph instead of being done.
    ///
    /// # Errors
    /// The driver's refusal: the legacy default stream, while another stream is being captured in a
    /// mode that forbids it. Nothing may be put into it then.
    pub fn is_capturing(&self) -> Result<bool, GpuError> {
        let mut status: c_int = 0;
        let call = self.driver.table().cuStreamIsCapturing;
        // SAFETY: `status` is valid for the write of one int; the stream lives.
        let code = unsafe { call(self.stream.0, &raw mut status) };
        self.check("cuStreamIsCapturing", code)?;
        // A capture that became invalid counts too, until it is ended.
        Ok(status != 0)
    }

    /// As [`Stream::copy`](crate::Stream::copy).
    ///
    /// # Errors
    /// As there.
    ///
    /// # Safety
    /// As there.
    pub unsafe fn copy(&self, dst: DevPtr, src: DevPtr, len: usize) -> Result<(), GpuError> {
        let call = self.driver.table().cuMemcpyAsync;
        // SAFETY: the caller keeps both ranges live until the stream has passed the copy.
        let code = unsafe { call(dst.0, src.0, len, self.stream.0) };
        self.check("cuMemcpyAsync", code)
            .map_err(|e| e.with(format!("{len} bytes from {src} to {dst}, {}", named(self.stream))))
    }

    /// Has the stream call `function` with `data` once it comes there, and wait for its return. It
    /// is not called if the context is lost before.
    ///
    /// # Errors
    /// The driver's refusal: it will not be called.
    ///
    /// # Safety
    /// The function may be called once from any thread with `data`, and keeps to what [`HostFn`]
    /// tells.
    pub unsafe fn call(&self, function: HostFn, data: *mut c_void) -> Result<(), GpuError> {
        // SAFETY: the stream lives; the function is the caller's promise.
        let code = unsafe { (self.driver.table().cuLaunchHostFunc)(self.stream.0, function, data) };
        self.check("cuLaunchHostFunc", code)
    }

    /// Holds the stream until the word at `word` is `value` or past it, going round: until the
    /// difference of the two is not negative as a number of 32 bits with a sign.
    ///
    /// Data that the host stored before it stored the word (with release) is then visible to the
    /// work that follows.
    ///
    /// # Errors
    /// The driver's refusal; see [`Driver::waits_for_words`].
    ///
    /// # Safety
    /// The word must be 4 bytes at a multiple of 4, in memory of the device or page-locked memory
    /// as the device sees it, no managed memory, and live until the stream has passed. A word that
    /// never comes holds the stream, and whoever waits for it, for ever.
    pub unsafe fn wait_for(&self, word: DevPtr, value: u32) -> Result<(), GpuError> {
        let table = self.driver.table();
        let (name, call) = match table.cuStreamWaitValue32_v2 {
            Some(call) => ("cuStreamWaitValue32_v2", call),
            None => {
                let name = "cuStreamWaitValue32";
                (name, table.cuStreamWaitValue32.ok_or_else(|| table.lacking(name))?)
            }
        };
        // SAFETY: the stream lives; the word is the caller's promise.
        let code = unsafe { call(self.stream.0, word.0, value, table::STREAM_WAIT_VALUE_GEQ) };
        self.check(name, code).map_err(|e| e.with(format!("the word at {word}")))
    }

    /// Has the stream store `value` in the word at `word`, after all that was put there before and
    /// visible to the host after it.
    ///
    /// # Errors
    /// The driver's refusal; see [`Driver::waits_for_words`].
    ///
    /// # Safety
    /// The word must be as for [`UserStream::wait_for`], and used atomically by the host.
    pub unsafe fn store(&self, word: DevPtr, value: u32) -> Result<(), GpuError> {
        let table = self.driver.table();
        let (name, call) = match table.cuStreamWriteValue32_v2 {
            Some(call) => ("cuStreamWriteValue32_v2", call),
            None => {
                let name = "cuStreamWriteValue32";
                (name, table.cuStreamWriteValue32.ok_or_else(|| table.lacking(name))?)
            }
        };
        // SAFETY: the stream lives; the word is the caller's promise.
        let code = unsafe { call(self.stream.0, word.0, value, table::STREAM_WRITE_VALUE_DEFAULT) };
        self.check(name, code).map_err(|e| e.with(format!("the word at {word}")))
    }

    /// Puts the hint into the stream that the pages of managed memory which hold `len` bytes from
    /// `start` on shall be on the stream's device (`cuMemPrefetchAsync`). They are there once the
    /// stream has passed it, until somebody else touches them.
    ///
    /// # Errors
    /// The driver's refusal: no managed memory, or a device without concurrent managed access,
    /// whose driver moves all managed memory at each launch by itself. Nothing was put into the
    /// stream.
    ///
    /// # Safety
    /// The memory must live until the stream has passed the hint.
    pub unsafe fn bring(&self, start: DevPtr, len: usize) -> Result<(), GpuError> {
        let table = self.driver.table();
        let device = self.driver.device(self.device()?)?;
        let (name, code) = if let Some(call) = table.cuMemPrefetchAsync {
            // SAFETY: the stream lives; the memory is the caller's promise.
            ("cuMemPrefetchAsync", unsafe { call(start.0, len, device, self.stream.0) })
        } else {
            let name = "cuMemPrefetchAsync_v2";
            let call = table.cuMemPrefetchAsync_v2.ok_or_else(|| table.lacking(name))?;
            let kind = table::MEM_LOCATION_TYPE_DEVICE;
            let location = table::CUmemLocation { kind, id: device };
            // SAFETY: as above.
            (name, unsafe { call(start.0, len, location, 0, self.stream.0) })
        };
        self.check(name, code).map_err(|e| e.with(format!("{len} bytes from {start} on")))
    }

    fn check(&self, call: &'static str, code: i32) -> Result<(), GpuError> {
        self.driver.table().check(call, code)
    }
}

impl Driver {
    /// Whether streams of this device can wait for words of 32 bits and store them
    /// (`cuStreamWaitValue32`, `cuStreamWriteValue32`; CUDA driver API manual, "Stream Memory
    /// Operations").
    ///
    /// The first form of the calls has an attribute of its own, which some devices that have the
    /// second form answer with 0; the second form has one for words of 64 bits only. Either counts.
    pub fn waits_for_words(&self, device: u32) -> bool {
        let has = |attribute| self.attribute(device, attribute).is_ok_and(|value| value != 0);
        let table = self.table();
        let first = table.cuStreamWaitValue32.is_some() && table.cuStreamWriteValue32.is_some();
        let second =
            table.cuStreamWaitValue32_v2.is_some() && table.cuStreamWriteValue32_v2.is_some();
        (first || second) && has(table::ATTRIBUTE_STREAM_MEM_OPS_V1)
            || second && has(table::ATTRIBUTE_64_BIT_STREAM_MEM_OPS)
    }
}

/// The stream in an error's words.
fn named(stream: RawStream) -> String {
    match stream.0.addr() {
        0 | 1 => "in the legacy default stream".into(),
        2 => "in the thread's default stream".into(),
        handle => format!("in stream {handle:#x}"),
    }
}

/// A context pushed on the calling thread's stack.
struct Entered<'a>(&'a Driver);

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let mut popped: CUcontext = std::ptr::null_mut();
        // SAFETY: `popped` is valid for the write of one pointer; the guard lives in one function,
        // on the thread that pushed.
        let _ = unsafe { (self.0.table().cuCtxPopCurrent_v2)(&raw mut popped) };
    }
}
