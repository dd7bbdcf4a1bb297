//! Fills and checks the destination memory of a GPU path, by kernels or by the CPU.

use std::ops::Range;
use std::ptr::NonNull;

use gpuio_gpu::pattern::{self, Key};
use gpuio_gpu::{
    Checker, Context, DevPtr, DeviceBuf, GpuError, PatternKernels, PatternMismatch, Stream,
};

use super::{GpuSide, Leg, Mismatch};

/// The destination as kernels see it, or as the CPU does where it is host memory.
pub(super) enum Verifier {
    Gpu {
        base: DevPtr,
        kernels: PatternKernels,
        checker: Checker,
        /// Its own: waiting for a kernel then waits for no slot's copy, and takes no slot's
        /// failure for the kernel's.
        stream: Stream,
    },
    Cpu {
        base: NonNull<u8>,
    },
}

impl Verifier {
    pub(super) fn new(gpu: &GpuSide, destination: &DeviceBuf) -> Result<Verifier, GpuError> {
        if let Some(base) = destination.host_ptr() {
            return Ok(Verifier::Cpu { base });
        }
        Verifier::on_gpu(&gpu.context, destination.ptr())
    }

    /// For a destination that begins at `base` and that kernels of the context reach.
    pub(super) fn on_gpu(context: &Context, base: DevPtr) -> Result<Verifier, GpuError> {
        let kernels = PatternKernels::load(context)?;
        let checker = Checker::new(context, &kernels)?;
        let stream = Stream::new(context)?;
        Ok(Verifier::Gpu { base, kernels, checker, stream })
    }

    /// Writes the pattern into a part of the destination, a range of its bytes, and waits until it
    /// is there.
    ///
    /// # Safety
    /// The location is inside the destination, which lives, and nothing else uses it meanwhile.
    pub(super) unsafe fn fill(
        &self,
        location: Range<usize>,
        key: Key,
        offset: u64,
    ) -> Result<(), GpuError> {
        match self {
            Verifier::Gpu { base, kernels, stream, .. } => {
                let device = base.byte_add(location.start as u64);
                // SAFETY: the caller's promise; the stream is waited for.
                unsafe { kernels.fill(stream, device, location.len() as u64, key, offset) }?;
                stream.sync()
            }
            Verifier::Cpu { base } => {
                // SAFETY: the location is inside the allocation, by the caller's promise.
                let start = unsafe { base.add(location.start) };
                // SAFETY: `len` bytes there are nothing else's now, by the caller's promise.
                let bytes =
                    unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), location.len()) };
                pattern::fill(bytes, key, offset);
                Ok(())
            }
        }
    }

    /// Compares a part of the destination with the pattern.
    ///
    /// # Safety
    /// As for [`Verifier::fill`], and the bytes were written since they were allocated.
    pub(super) unsafe fn check(
        &mut self,
        location: Range<usize>,
        key: Key,
        offset: u64,
    ) -> Result<Option<PatternMismatch>, GpuError> {
        match self {
            Verifier::Gpu { base, checker, stream, .. } => {
                let device = base.byte_add(location.start as u64);
                // SAFETY: the caller's promise; the checker waits for the stream.
                unsafe { checker.check(stream, device, location.len() as u64, key, offset) }
            }
            Verifier::Cpu { base } => {
                // SAFETY: the location is inside the allocation, by the caller's promise.
                let start = unsafe { base.add(location.start) };
                // SAFETY: `len` bytes there are written and nothing else's now, by the caller's
                // promise.
                let bytes = unsafe { std::slice::from_raw_parts(start.as_ptr(), location.len()) };
                Ok(pattern::check(bytes, key, offset))
            }
        }
    }

    /// Copies a part of the destination, as long as `into`, to host memory, and waits for it.
    ///
    /// # Safety
    /// As for [`Verifier::check`].
    pub(super) unsafe fn copy_out(
        &mut self,
        location: Range<usize>,
        into: &mut [u8],
    ) -> Result<(), GpuError> {
        match self {
            Verifier::Gpu { base, stream, .. } => {
                let device = base.byte_add(location.start as u64);
                let host = DevPtr(into.as_mut_ptr().expose_provenance() as u64);
                // SAFETY: the caller's promise for the source; `into` is this call's alone until
                // the stream has passed the copy, which is waited for.
                unsafe { stream.copy(host, device, into.len()) }?;
                stream.sync()
            }
            Verifier::Cpu { base } => {
                // SAFETY: the location is inside the allocation, by the caller's promise.
                let start = unsafe { base.add(location.start) };
                // SAFETY: `len` bytes there are written and nothing else's now, by the caller's
                // promise.
                let bytes = unsafe { std::slice::from_raw_parts(start.as_ptr(), location.len()) };
                into.copy_from_slice(bytes);
                Ok(())
            }
        }
    }
}

/// A mismatch in the destination, with the leg in which it came about where `from_file`, the
/// block's slot in pinned memory, still holds what came from the file.
pub(super) fn locate_mismatch(
    m: PatternMismatch,
    from_file: Option<&[u8]>,
    key: Key,
    offset: u64,
) -> Mismatch {
    let in_file = from_file.map(|bytes| pattern::check(bytes, key, offset).is_some());
    Mismatch {
        offset: m.first_offset,
        expected: m.expected,
        found: m.found,
        bad_words: m.bad_words,
        checksum_of: None,
        leg: in_file.map(|in_file| if in_file { Leg::File } else { Leg::Gpu }),
        gpu: None,
    }
}
