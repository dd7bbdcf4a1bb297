//! How a transfer gets into a stream.

use gpuio_gpu::{RawStream, UserStream};

use super::enqueue::enqueue;
use super::latency::StreamKey;
use super::op::{Method, StreamOp};
use super::{OnCompletion, Param, Params, StreamDevice};
use crate::Op;
use crate::api::Transfer;
use crate::fault::Fault;
use crate::file::File;
use crate::memory::MemoryLocation;

/// How many adjacent mappings are queried, some 100 ns each: 128 GiB of the smallest.
const MAX_MAPPINGS: u32 = 1 << 16;

impl Transfer {
    /// Enqueues a transfer into a stream, between the file and the memory at `base`, whose location
    /// `location` is. It runs after all earlier and before all later work of the stream, and
    /// `on_completion` is called with its result. Does not wait for the stream, unless the driver
    /// does because the stream is full.
    ///
    /// A default stream is that of the calling thread's current context.
    ///
    /// # Errors
    /// Nothing was enqueued, or what was enqueued does nothing, and `on_completion` is not called:
    /// the stream is being captured, or the driver refused.
    ///
    /// # Safety
    /// The stream is live. Until it has passed the transfer, the addresses of parameters are valid
    /// for reads, and the memory from `base` on, as far as the resolved parameters reach, is live
    /// and used only by earlier and later work of the stream.
    pub unsafe fn enqueue(
        &self,
        stream: RawStream,
        (op, file): (Op, &File),
        (location, base): (MemoryLocation, u64),
        params: Params,
        on_completion: OnCompletion,
    ) -> Result<(), Fault> {
        let state = self.state();
        if state.forked {
            return Err(Fault::Forked);
        }
        let driver = state.devices.driver().ok_or(Fault::NoDriver)?;
        // SAFETY: the caller's promise.
        let stream = unsafe { UserStream::new(driver, stream) }?;
        if stream.entered(|| stream.is_capturing())?? {
            return Err(Fault::Captured);
        }
        let index = stream.device()?;
        if state.devices.current(index).is_some_and(|device| device.context().is_reset()) {
            state.devices.renew(index);
        }
        let streams = self.streams();
        let stream_device = streams.device(&state.devices, index)?;
        let method = self.method(stream_device, &stream, location, base, &params)?;
        let served = (streams.workers(&method), StreamKey::of(&stream));
        let stream_op = StreamOp::new(
            (state, stream_device),
            served,
            (op, file.clone()),
            (method, base),
            params,
            on_completion,
        )?;
        enqueue(&stream, stream_device, &stream_op)
    }

    /// Chooses how the bytes move.
    fn method(
        &self,
        stream_device: &'static StreamDevice,
        stream: &UserStream,
        location: MemoryLocation,
        base: u64,
        params: &Params,
    ) -> Result<Method, Fault> {
        let Some(device) = location.device() else {
            return Ok(Method::Host);
        };
        let context = stream_device.device.context();
        if stream.context() != context.raw() || context.device() != device {
            return Ok(Method::BlockingCall(location));
        }
        if !is_reached(location) {
            return Err(Fault::OtherContext);
        }
        // Only the kernel can move the bytes: a copy in a stream of ours could queue behind the
        // program's wait.
        stream_device.device.gather()?;
        let skip = u64::try_from(hint(params.buffer_offset)).unwrap_or(0);
        // A deferred offset may lead anywhere.
        let wanted = match params.buffer_offset {
            Param::Immediate(_) => skip.saturating_add(params.max_size as u64),
            Param::Deferred(_) => u64::MAX,
        };
        let reach = self.reach(location, base, wanted);
        let prefetch = location.managed.then(|| {
            let len = reach.saturating_sub(skip).min(params.max_size as u64);
            (base.saturating_add(skip), usize::try_from(len).unwrap_or(0))
        });
        Ok(Method::Kernel { reach, prefetch: prefetch.filter(|(_, len)| *len > 0) })
    }

    /// How many bytes from the base kernels can reach: one allocation, and mappings that follow
    /// each other without a gap (`cuMemMap`), up to `wanted`. Adjacent allocations of the driver
    /// may belong to others and do not count.
    fn reach(&self, location: MemoryLocation, base: u64, wanted: u64) -> u64 {
        let end_of = |location: MemoryLocation| {
            let (start, len) = location.range()?;
            is_reached(location).then(|| start.saturating_add(len))
        };
        let wanted = base.saturating_add(wanted);
        let mut end = end_of(location).unwrap_or(base);
        let mut mappings = 1;
        while location.contextless && end > base && end < wanted && mappings < MAX_MAPPINGS {
            mappings += 1;
            let next = self.locate(end).ok().filter(|next| next.contextless).and_then(end_of);
            match next {
                Some(next) if next > end => end = next,
                _ => break,
            }
        }
        end.saturating_sub(base)
    }
}

/// Whether our kernel may access it. Managed memory is prefetched to the GPU as far as its range is
/// known at that time; the GPU fetches the rest page by page.
fn is_reached(location: MemoryLocation) -> bool {
    location.is_primary() || location.managed
}

/// The value of a parameter when the transfer is enqueued; for a deferred one only a hint.
fn hint(param: Param<i64>) -> i64 {
    match param {
        Param::Immediate(value) => value,
        // SAFETY: the caller of the transfer keeps the address valid.
        Param::Deferred(at) => unsafe { at.read_volatile() },
    }
}
