//! The frame of every exported function: no panic leaves it, and requested faults are injected.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::capture;
use crate::code::{Answer, Code, INVALID_VALUE, SUCCESS, UNKNOWN};
use crate::machine::{self, Machine};

/// Answers a call that is done when it returns.
pub(crate) fn call(name: &str, body: impl FnOnce(&'static Machine) -> Answer<()>) -> c_int {
    guarded(|| {
        let machine = machine::get()?;
        machine.frees.pass(name);
        capture::allow(machine, name)?;
        match machine.config.fault(name) {
            Some(code) => Err(code),
            None => body(machine),
        }
    })
}

/// In a context that the program created it waits for the work of that one, and others do not wait
/// for it (H200, driver 580.159). It is not known of the other calls.
const UNREGISTER: &str = "cuMemHostUnregister";

/// Answers a call that frees memory, as `frees` says.
pub(crate) fn free(name: &str, body: impl FnOnce(&'static Machine) -> Answer<()>) -> c_int {
    guarded(|| {
        let machine = machine::get()?;
        capture::allow(machine, name)?;
        if let Some(code) = machine.config.fault(name) {
            return Err(code);
        }
        let free = || {
            machine.streams_here().iter().for_each(|stream| stream.wait());
            body(machine)
        };
        if name == UNREGISTER && !machine.is_primary_here() {
            return free();
        }
        machine.frees.alone(free)
    })
}

/// Answers a call that puts work into a stream: the body is given the fault to put there instead.
pub(crate) fn later(
    name: &str,
    body: impl FnOnce(&'static Machine, Option<Code>) -> Answer<()>,
) -> c_int {
    guarded(|| {
        let machine = machine::get()?;
        machine.frees.pass(name);
        capture::allow(machine, name)?;
        body(machine, machine.config.fault(name))
    })
}

/// Answers for `body`, and for its panic.
pub(crate) fn guarded(body: impl FnOnce() -> Answer<()>) -> c_int {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => SUCCESS,
        Ok(Err(code)) => code.0,
        Err(_) => UNKNOWN.0,
    }
}

/// Stores a result.
///
/// # Safety
/// `to` must be null or valid for the write of a `T`.
pub(crate) unsafe fn put<T>(to: *mut T, value: T) -> Answer<()> {
    if to.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: not null, so valid by the caller's promise.
    unsafe { to.write(value) };
    Ok(())
}
