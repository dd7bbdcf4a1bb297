//! Calls that a thread can't be cancelled in.

use std::ffi::c_int;

/// `PTHREAD_CANCEL_DISABLE` of Linux's C libraries.
const DISABLE: c_int = 1;

unsafe extern "C-unwind" {
    /// pthread_setcancelstate(3). The state before is stored, where `before` is not null.
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
    /// pthread_testcancel(3).
    fn pthread_testcancel();
}

/// Ends the calling thread if that was requested (`pthread_cancel(3)`), as `pread(2)` does at its
/// beginning. The thread is unwound from here: the C function that calls this is
/// `extern "C-unwind"`, and has nothing to drop at that time.
#[inline]
pub fn cancellation_point() {
    // SAFETY: takes nothing; see above for where it may unwind.
    unsafe { pthread_testcancel() };
}

/// Runs `work`, during which no `pthread_cancel(3)` ends the thread: the C library would unwind it
/// in the middle of an I/O, past what must not be left half done, and Rust ends the process then. A
/// request that came meanwhile takes effect at the thread's next cancellation point, or on return
/// where its type is asynchronous: see [`cancellation_point`] for what that needs of the caller.
///
/// `work` does not unwind.
#[inline]
pub fn uncancelled<T: Copy>(work: impl FnOnce() -> T) -> T {
    let mut before = DISABLE;
    // SAFETY: `before` is valid for the write of an int.
    unsafe { pthread_setcancelstate(DISABLE, &raw mut before) };
    let result = work();
    // SAFETY: a state that the C library gave, and no address.
    unsafe { pthread_setcancelstate(before, std::ptr::null_mut()) };
    result
}
