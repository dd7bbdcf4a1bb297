//! Synchronous memory operations of the program, made to end before they return.
//!
//! A "synchronous" call of CUDA may return before its work has ended: a copy from pageable memory
//! to a device once the bytes are in a staging buffer, a copy on one device and a memset at once
//! (CUDA driver API manual, "API synchronization behavior"). An access
//! from another stream, or from the resident copy kernel, may then come before the work has ended.
//!
//! Two switches of the driver end that. `CU_POINTER_ATTRIBUTE_SYNC_MEMOPS` of an allocation: such
//! operations on it always synchronize. `CU_CTX_SYNC_MEMOPS` of a context (CUDA 12.1): such
//! operations issued in it do. Setting the first also waits for operations on that memory which are
//! under way. The manual does not say whether another thread finds it set before that wait has
//! ended. Driver 580.159 (H100) shows it afterwards, and a second thread that sets it meanwhile
//! waits as long; the software driver shows it before. Neither switch changes asynchronous calls,
//! kernels, or the order of streams.
//!
//! Memory of a pool takes the first and reads as if it had it, but nothing synchronizes: of 400
//! pageable copies of 64 KiB, each followed by a read in another stream, 398 were not there yet;
//! none with the second (`tools/benches/sync_memops.cu`, driver 580.159, H100).

use std::ffi::c_uint;
use std::time::Duration;

use crate::context::Context;
use crate::driver::Driver;
use crate::error::GpuError;
use crate::event::{Event, Wait};
use crate::table::{self, CUstream};

/// How long a thread sleeps between two queries of an event.
const PAUSE: Duration = Duration::from_micros(20);

impl Driver {
    /// Makes the synchronous memory operations on the allocation that holds `address` synchronize,
    /// from now on, and waits for those under way. False where the driver refuses that, as it does
    /// for mappings (`cuMemMap`), which have no such attribute. Memory of a pool takes it without
    /// effect, so don't ask for memory of no context.
    ///
    /// Any thread may call this, with or without a current context. While a stream is captured the
    /// caller is to be in [`Context::entered`].
    #[must_use]
    pub fn synchronize_memops(&self, address: u64) -> bool {
        let on: c_uint = 1;
        let call = self.table().cuPointerSetAttribute;
        // SAFETY: the attribute's value is an unsigned int, which `on` is.
        let code = unsafe { call((&raw const on).cast(), table::POINTER_SYNC_MEMOPS, address) };
        code == table::SUCCESS
    }
}

impl Context {
    /// Makes the synchronous memory operations that are issued in this context synchronize, from
    /// now on. False where the driver has no such flag (before CUDA 12.1).
    ///
    /// # Errors
    /// The driver's refusal.
    pub fn synchronize_memops(&self) -> Result<bool, GpuError> {
        let table = self.table();
        let (Some(get), Some(set)) = (table.cuCtxGetFlags, table.cuCtxSetFlags) else {
            return Ok(false);
        };
        let _entered = self.enter()?;
        let mut flags: c_uint = 0;
        // SAFETY: `flags` is valid for the write of one number.
        let code = unsafe { get(&raw mut flags) };
        self.check("cuCtxGetFlags", code)?;
        if flags & table::CTX_SYNC_MEMOPS != 0 {
            return Ok(true);
        }
        // SAFETY: takes a number; the context is current.
        let code = unsafe { set(flags | table::CTX_SYNC_MEMOPS) };
        match code {
            table::INVALID_VALUE | table::NOT_SUPPORTED => Ok(false),
            code => self.check("cuCtxSetFlags", code).map(|()| true),
        }
    }

    /// Waits until what the legacy default stream and the calling thread's own default stream hold
    /// now has ended, for so long or somewhat longer. False if it had not by then: a program may
    /// keep a kernel there that waits for the caller.
    ///
    /// # Errors
    /// The driver's refusal, or a failure of that work.
    pub fn wait_for_default_streams(&self, most: Duration) -> Result<bool, GpuError> {
        let _entered = self.enter()?;
        let mut pauses = most.as_nanos() / PAUSE.as_nanos();
        for stream in [table::STREAM_LEGACY, table::STREAM_PER_THREAD] {
            let handle: CUstream = std::ptr::without_provenance_mut(stream);
            let mut captures = 0;
            // SAFETY: `captures` is valid for the write of one int; a default stream always lives.
            let code = unsafe { (self.table().cuStreamIsCapturing)(handle, &raw mut captures) };
            // A mark would become part of the graph; and what is captured is not under way.
            if code != table::SUCCESS || captures != 0 {
                continue;
            }
            let event = Event::new(self, Wait::Spin)?;
            event.record_raw(handle)?;
            while !event.query()? {
                if pauses == 0 {
                    return Ok(false);
                }
                pauses -= 1;
                std::thread::sleep(PAUSE);
            }
        }
        Ok(true)
    }
}
