//! Marks in a stream that the host can ask about.

use std::ffi::c_uint;

use crate::context::Context;
use crate::error::GpuError;
use crate::stream::Stream;
use crate::table::{self, CUevent, CUstream};

/// How [`Event::sync`] waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wait {
    /// By polling: the least latency, one core busy.
    #[default]
    Spin,
    /// Asleep until the driver's interrupt: some ten microseconds later, no core busy.
    Block,
}

/// A mark that is reached when all work put into a stream before [`Event::record`] is done. It
/// keeps no time stamp unless it was made by [`Event::timed`].
#[derive(Debug)]
pub struct Event {
    context: Context,
    handle: CUevent,
}

// SAFETY: an event may be used from any thread; the handle is only handed back to the driver.
unsafe impl Send for Event {}
// SAFETY: the driver locks what concurrent calls on one event need.
unsafe impl Sync for Event {}

impl Event {
    /// Makes an event that counts as reached until it is first recorded.
    ///
    /// # Errors
    /// The driver's refusal.
    pub fn new(context: &Context, wait: Wait) -> Result<Self, GpuError> {
        Self::with(context, wait, table::EVENT_DISABLE_TIMING)
    }

    /// Makes an event that keeps the time at which it was reached, for [`Event::ns_since`].
    ///
    /// # Errors
    /// The driver's refusal.
    pub fn timed(context: &Context, wait: Wait) -> Result<Self, GpuError> {
        Self::with(context, wait, 0)
    }

    fn with(context: &Context, wait: Wait, mut flags: c_uint) -> Result<Self, GpuError> {
        let _entered = context.enter()?;
        if wait == Wait::Block {
            flags |= table::EVENT_BLOCKING_SYNC;
        }
        let mut handle: CUevent = std::ptr::null_mut();
        // SAFETY: `handle` is valid for the write of one pointer.
        let code = unsafe { (context.table().cuEventCreate)(&raw mut handle, flags) };
        context.check("cuEventCreate", code)?;
        Ok(Self { context: context.clone(), handle })
    }

    /// Nanoseconds from `earlier` to this mark by the device's clock, within about half a
    /// microsecond and seven digits (`cuEventElapsedTime`). Both must be timed, recorded and
    /// reached.
    ///
    /// # Errors
    /// The driver's refusal, or a result that is no time.
    pub fn ns_since(&self, earlier: &Event) -> Result<f64, GpuError> {
        const CALL: &str = "cuEventElapsedTime";
        let Some(elapsed) = self.context.table().cuEventElapsedTime else {
            return Err(self.context.table().lacking(CALL).on(self.context.device()));
        };
        let mut ms = 0.0_f32;
        // SAFETY: `ms` is valid for the write of one number; both events live during the call.
        let code = unsafe { elapsed(&raw mut ms, earlier.handle, self.handle) };
        self.context.check(CALL, code)?;
        if ms.is_finite() && ms >= 0.0 {
            return Ok(f64::from(ms) * 1e6);
        }
        let error = self.context.table().error(CALL, table::INVALID_VALUE);
        Err(error.on(self.context.device()).with(format!("the driver reports {ms} ms")))
    }

    /// Puts the mark behind everything that `stream` holds now. A mark recorded before is
    /// forgotten.
    ///
    /// # Errors
    /// The driver's refusal; both must be of one device.
    #[inline]
    pub fn record(&self, stream: &Stream) -> Result<(), GpuError> {
        self.record_raw(stream.handle())
    }

    /// As [`Event::record`], for a stream that lives: one that is borrowed, or a default stream of
    /// the current context, which must be the event's.
    #[inline]
    pub(crate) fn record_raw(&self, stream: CUstream) -> Result<(), GpuError> {
        // SAFETY: the event lives as long as `self`, the stream by the caller's promise.
        let code = unsafe { (self.context.table().cuEventRecord)(self.handle, stream) };
        self.context.check("cuEventRecord", code)
    }

    /// True if the mark is reached: what the stream did before it is then visible to the host.
    ///
    /// # Errors
    /// A failure of the work before the mark, or the driver's refusal.
    #[inline]
    pub fn query(&self) -> Result<bool, GpuError> {
        // SAFETY: the handle lives as long as `self`.
        let code = unsafe { (self.context.table().cuEventQuery)(self.handle) };
        if code == table::NOT_READY {
            return Ok(false);
        }
        self.context.check("cuEventQuery", code).map(|()| true)
    }

    /// Waits until the mark is reached.
    ///
    /// # Errors
    /// A failure of the work before the mark, or the driver's refusal.
    pub fn sync(&self) -> Result<(), GpuError> {
        // SAFETY: the handle lives as long as `self`.
        let code = unsafe { (self.context.table().cuEventSynchronize)(self.handle) };
        self.context.check("cuEventSynchronize", code)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let Ok(_entered) = self.context.enter() else {
            return;
        };
        // SAFETY: made by cuEventCreate and destroyed once; the driver waits for a pending record.
        let _ = unsafe { (self.context.table().cuEventDestroy_v2)(self.handle) };
    }
}
