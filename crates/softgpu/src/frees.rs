//! Calls that free memory of the driver's: they wait for the device, and others wait for them.
//!
//! `cuMemFree`, `cuMemFreeHost` and `cuMemHostUnregister` return when all work has ended that the
//! context had when they were called, and meanwhile hold a lock that most other calls take:
//! launches, copies, allocations, events, in every thread. So a program whose work ends only after
//! another thread's next launch never ends. (Measured on an H100, driver of CUDA 13.0, with a
//! stream held by a host function, by a kernel, and by a wait for a value. Registering memory does
//! not wait.)

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// Families of calls that wait while memory is freed. Queries of pointers, and which context is
/// current, do not.
const WAITING: [&str; 5] = ["cuMem", "cuLaunch", "cuEvent", "cuStream", "cuModule"];
/// The exception.
const NOT_WAITING: &str = "cuMemHostGetDevicePointer_v2";

/// Whether a thread frees memory now.
#[derive(Debug, Default)]
pub(crate) struct Frees {
    /// A copy of `busy`, so that a call takes no lock while nothing is freed.
    any: AtomicBool,
    busy: Mutex<bool>,
    ended: Condvar,
}

impl Frees {
    /// Waits while another thread frees memory, if this call does that.
    pub(crate) fn pass(&self, call: &str) {
        let waits = call != NOT_WAITING && WAITING.iter().any(|family| call.starts_with(family));
        if waits && self.any.load(Ordering::Acquire) && !in_a_stream() {
            let busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
            drop(self.ended.wait_while(busy, |busy| *busy));
        }
    }

    /// Runs `free`, which waits for the device, while other calls wait for it. One at a time.
    pub(crate) fn alone<T>(&self, free: impl FnOnce() -> T) -> T {
        let busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        let mut busy =
            self.ended.wait_while(busy, |busy| *busy).unwrap_or_else(PoisonError::into_inner);
        *busy = true;
        drop(busy);
        self.any.store(true, Ordering::Release);
        // Also after a panic.
        let _end = End(self);
        free()
    }
}

/// Whether this is a stream's thread: a host function of softcufile's, in place of what NVIDIA's
/// library has the device do, calls the driver there. Who frees waits for it.
fn in_a_stream() -> bool {
    std::thread::current().name().is_some_and(|name| name.starts_with("softgpu"))
}

/// Lets the others on.
struct End<'a>(&'a Frees);

impl Drop for End<'_> {
    fn drop(&mut self) {
        *self.0.busy.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.0.any.store(false, Ordering::Release);
        self.0.ended.notify_all();
    }
}
