//! The exported functions, by the interface's names.
//!
//! Each documents what it does here, and the source of its contract where that is not the "cuFile
//! API Reference Guide" (docs.nvidia.com/gpudirect-storage). "Measured" is what release 1.15 or
//! 1.20 returned to us, "reported" what others report of 1.15 (docs/dropin.md). Unless stated
//! otherwise: pointers may be null, which is refused with 5022; calls may come from any thread;
//! they open the driver if it is not open.

mod batch;
mod buffer;
mod driver;
mod file;
mod parameter;
mod stats;
mod stream;

use crate::code::{CallError, INVALID_VALUE};

/// Writes a value to the caller's address.
///
/// # Safety
/// `to` is null or valid for the write.
unsafe fn write_out<T>(to: *mut T, value: T) -> Result<(), CallError> {
    if to.is_null() {
        return Err(INVALID_VALUE.into());
    }
    // SAFETY: not null, and the caller's promise.
    unsafe { to.write(value) };
    Ok(())
}

/// Defines a function of the interface: a cancellation point where it begins, and uncancelled then.
/// If all calls go to NVIDIA's library (`GPUIO_CUFILE=nvidia`), it is forwarded unchanged; a
/// function of `observed` that is named here has the call and its arguments.
macro_rules! export {
    (
        $(#[$doc:meta])*
        fn $name:ident($($arg:ident: $type:ty),*) -> $ret:ty $(, seen by $seen:ident)? $body:block
    ) => {
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C-unwind" fn $name($($arg: $type),*) -> $ret {
            gpuio_transfer::cancellation_point();
            gpuio_transfer::uncancelled(move || -> $ret {
                if let Some(nvidia) = $crate::nvidia::forward_all() {
                    type Call = unsafe extern "C" fn($($type),*) -> $ret;
                    static FOUND: std::sync::OnceLock<Option<Call>> = std::sync::OnceLock::new();
                    let name = const {
                        let name = concat!(stringify!($name), "\0").as_bytes();
                        match std::ffi::CStr::from_bytes_with_nul(name) {
                            Ok(name) => name,
                            Err(_) => panic!("a name"),
                        }
                    };
                    let found = FOUND.get_or_init(|| {
                        // SAFETY: the type is that of the interface.
                        nvidia.and_then(|nvidia| unsafe { nvidia.function(name) })
                    });
                    return match found {
                        Some(call) => {
                            // SAFETY: the caller's arguments, unchanged.
                            let call = || unsafe { call($($arg),*) };
                            $crate::export::export!(@run call, ($($arg),*) $($seen)?)
                        }
                        None => $crate::nvidia::FromAbsent::from_absent(nvidia.is_some()),
                    };
                }
                $body
            })
        }
    };
    (@run $call:ident, ($($arg:ident),*)) => { $call() };
    (@run $call:ident, ($($arg:ident),*) $seen:ident) => {
        $crate::observed::$seen($call, $($arg),*)
    };
}
pub(crate) use export;
