//! One GPU's way to another's memory.

use std::ffi::c_int;

use crate::DevPtr;
use crate::context::Context;
use crate::error::GpuError;
use crate::stream::Stream;
use crate::table;

impl Context {
    /// Whether this context's GPU can reach the memory of `peer`'s by itself, over NVLink or PCIe.
    /// No GPU is its own peer.
    ///
    /// # Errors
    /// The driver's refusal.
    pub fn can_access_peer(&self, peer: &Context) -> Result<bool, GpuError> {
        let call = "cuDeviceCanAccessPeer";
        let query = self.table().cuDeviceCanAccessPeer;
        let query = query.ok_or_else(|| self.table().lacking(call))?;
        let (from, to) =
            (self.driver().device(self.device())?, self.driver().device(peer.device())?);
        let mut can: c_int = 0;
        // SAFETY: `can` is valid for the write of one int.
        let code = unsafe { query(&raw mut can, from, to) };
        self.check(call, code)?;
        Ok(can != 0)
    }

    /// Lets this context reach the memory of `peer`'s GPU, until the process ends. Copies between
    /// the two then go from one to the other; without, the driver takes them through host memory.
    /// Access that was enabled before stays enabled.
    ///
    /// # Errors
    /// The driver's refusal: GPUs that can't reach one another, or too many peers (8, where there
    /// is no NVSwitch).
    pub fn enable_peer_access(&self, peer: &Context) -> Result<(), GpuError> {
        let call = "cuCtxEnablePeerAccess";
        let enable = self.table().cuCtxEnablePeerAccess;
        let enable = enable.ok_or_else(|| self.table().lacking(call))?;
        let _entered = self.enter()?;
        // SAFETY: a retained context's handle, which the driver only reads.
        let code = unsafe { enable(peer.handle(), 0) };
        if code == table::PEER_ACCESS_ALREADY_ENABLED {
            return Ok(());
        }
        self.check(call, code)
            .map_err(|e| e.with(format!("to the memory of GPU {}", peer.device())))
    }
}

impl Stream {
    /// Puts a copy of `len` bytes from one GPU's memory to another's into the stream, whose context
    /// may be either's.
    ///
    /// # Errors
    /// As [`Stream::h2d`].
    ///
    /// # Safety
    /// Until the stream has passed this copy `src` must be `len` bytes of live memory of
    /// `src_context`'s GPU that no one writes, and `dst` `len` bytes of live memory of
    /// `dst_context`'s that no one else reads or writes.
    #[inline]
    pub unsafe fn peer_copy(
        &self,
        (dst, dst_context): (DevPtr, &Context),
        (src, src_context): (DevPtr, &Context),
        len: usize,
    ) -> Result<(), GpuError> {
        let name = "cuMemcpyPeerAsync";
        let table = self.context().table();
        let call = table.cuMemcpyPeerAsync.ok_or_else(|| table.lacking(name))?;
        let (to, from) = (dst_context.handle(), src_context.handle());
        // SAFETY: the caller keeps both ranges live until the stream has passed the copy.
        let code = unsafe { call(dst.0, to, src.0, from, len, self.handle()) };
        self.context().check(name, code).map_err(|e| {
            let (from, to) = (src_context.device(), dst_context.device());
            e.with(format!("{len} bytes from {src} on GPU {from} to {dst} on GPU {to}"))
        })
    }
}
