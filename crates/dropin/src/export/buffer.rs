//! Buffers.

use std::ffi::c_int;

use super::export;
use crate::abi::CufileError;
use crate::call::as_error;
use crate::library;

export! {
    /// Registers a buffer of GPU or host memory. Nothing is pinned or mapped for it, so it never
    /// fails for lack of resources (5016 and 5036 of NVIDIA's library), and our transfers are no
    /// faster with it. A base that is registered already is 5023; one inside a registered buffer is
    /// a buffer of its own. Null and a length of 0 are 5022. Flags are ignored. If files are
    /// forwarded, NVIDIA's library registers GPU memory too, and may fail to.
    fn cuFileBufRegister(
        base: u64,
        len: usize,
        flags: c_int
    ) -> CufileError, seen by register_buffer {
        as_error(|| library::get().register_buffer(base, len, flags))
    }
}

export! {
    /// Deregisters a buffer by its base; 5024 for one that is not registered, 5022 for null. I/O in
    /// flight continues, in streams too: it needs the memory, not its registration.
    fn cuFileBufDeregister(base: u64) -> CufileError, seen by deregister_buffer {
        as_error(|| library::get().deregister_buffer(base))
    }
}
