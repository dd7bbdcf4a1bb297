//! The common rules of all calls: no panic leaves, and errno stays unchanged.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::abi::CufileError;
use crate::code::{CUDA_DRIVER_ERROR, CallError, INTERNAL_ERROR};

/// This thread's errno.
pub(crate) fn errno() -> c_int {
    // SAFETY: the address of this thread's errno, which is always valid.
    let address = unsafe { libc::__errno_location() };
    // SAFETY: as above; only this thread uses it.
    unsafe { address.read() }
}

fn set_errno(value: c_int) {
    // SAFETY: the address of this thread's errno, which is always valid.
    let address = unsafe { libc::__errno_location() };
    // SAFETY: as above; only this thread uses it.
    unsafe { address.write(value) };
}

/// Runs a call. A panic is a defect of ours and becomes 5030. The caller's errno is restored.
fn run<T>(body: impl FnOnce() -> Result<T, CallError>) -> Result<T, CallError> {
    let before = errno();
    let result = catch_unwind(AssertUnwindSafe(body));
    set_errno(before);
    result.unwrap_or(Err(CallError::Code(INTERNAL_ERROR)))
}

/// The result of a call that returns success or a code. An errno does not fit; it becomes 5030.
pub(crate) fn as_error(body: impl FnOnce() -> Result<(), CallError>) -> CufileError {
    match run(body) {
        Ok(()) => CufileError { code: 0, cuda: 0 },
        Err(CallError::Code(code)) => CufileError { code, cuda: 0 },
        Err(CallError::Cuda(cuda)) => CufileError { code: CUDA_DRIVER_ERROR, cuda },
        Err(CallError::Errno(_)) => CufileError { code: INTERNAL_ERROR, cuda: 0 },
    }
}

/// The result of a call that moves bytes: how many, or -1 with the errno of a file system, or the
/// negative of a code.
pub(crate) fn as_count(body: impl FnOnce() -> Result<usize, CallError>) -> isize {
    match run(body) {
        // No range of memory is longer than isize::MAX.
        Ok(count) => count.cast_signed(),
        Err(CallError::Errno(value)) => {
            set_errno(value);
            -1
        }
        Err(error) => error.negative(),
    }
}

/// Runs a call that returns nothing.
pub(crate) fn run_void(body: impl FnOnce()) {
    // A failure can't be returned; the panic hook has printed it.
    let _ = run(|| {
        body();
        Ok(())
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_as_documented_and_errno_is_kept() {
        set_errno(7);
        assert_eq!(as_count(|| Ok(5)), 5);
        assert_eq!(as_count(|| Err(CallError::Code(5027))), -5027);
        assert_eq!(as_count(|| Err(CallError::Cuda(201))), -5011);
        assert_eq!(errno(), 7);
        assert_eq!(as_count(|| Err(CallError::Errno(libc::ENOSPC))), -1);
        assert_eq!(errno(), libc::ENOSPC);
        assert_eq!(as_error(|| Err(CallError::Cuda(201))), CufileError { code: 5011, cuda: 201 });
        assert_eq!(as_error(|| Ok(())), CufileError { code: 0, cuda: 0 });
        assert_eq!(CallError::Errno(5).negative(), -5);
    }

    #[test]
    fn a_panic_stays_inside() {
        assert_eq!(as_count(|| panic!("on purpose")), -5030);
        assert_eq!(as_error(|| panic!("on purpose")).code, 5030);
        run_void(|| panic!("on purpose"));
    }
}
