//! The calls that a capture forbids to other threads.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::code::{Answer, INVALID_VALUE, STREAM_CAPTURE_UNSUPPORTED};
use crate::machine::Machine;

/// `CU_STREAM_CAPTURE_MODE_GLOBAL`: of a capture, that it forbids such calls to every thread; of a
/// thread, that it obeys.
const GLOBAL: i32 = 0;
/// `CU_STREAM_CAPTURE_MODE_RELAXED`.
const RELAXED: i32 = 2;

/// Calls that might wait for captured work, for which it would never come. The driver has more.
const UNSAFE: [&str; 8] = [
    "cuMemAlloc_v2",
    "cuMemFree_v2",
    "cuMemHostAlloc",
    "cuMemFreeHost",
    "cuMemHostRegister_v2",
    "cuMemHostUnregister",
    "cuMemcpyDtoH_v2",
    "cuMemcpyHtoD_v2",
];

thread_local! {
    static MODE: Cell<i32> = const { Cell::new(GLOBAL) };
}

/// How many captures forbid calls to every thread.
#[derive(Debug, Default)]
pub(crate) struct Captures(AtomicU32);

impl Captures {
    /// One more, or one less, in this mode.
    pub(crate) fn count(&self, mode: i32, more: bool) {
        if mode == GLOBAL && more {
            self.0.fetch_add(1, Ordering::AcqRel);
        } else if mode == GLOBAL {
            self.0.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// Sets the calling thread's mode and answers what it was.
pub(crate) fn exchange(mode: i32) -> Answer<i32> {
    if !(GLOBAL..=RELAXED).contains(&mode) {
        return Err(INVALID_VALUE);
    }
    Ok(MODE.replace(mode))
}

/// Refuses a call that a capture forbids to the calling thread, and spoils all captures.
pub(crate) fn allow(machine: &Machine, call: &str) -> Answer<()> {
    let forbids = machine.captures.0.load(Ordering::Acquire) > 0;
    if !forbids || MODE.get() != GLOBAL || !UNSAFE.contains(&call) {
        return Ok(());
    }
    machine.streams.all().iter().for_each(|stream| stream.spoil_capture());
    Err(STREAM_CAPTURE_UNSUPPORTED)
}
