//! The memory in which the bytes of a library end: one piece, which the slots share. The common
//! part of the paths of cuFile and of gpuio's own library core.

use std::ops::Range;

use gpuio_gpu::{Context, DevPtr, DeviceBuf};

use super::slot_buffers::{refused, stride};
use super::verifier::{self, Verifier};
use super::{GpuSide, Mismatch, PathConfig, PathError, PatternBlock};

pub(super) struct Destination {
    verifier: Verifier,
    memory: DeviceBuf,
    context: Context,
    stride: usize,
    path: &'static str,
}

impl Destination {
    /// Memory for all slots, which begin at multiples of `alignment` bytes. Makes the GPU's context
    /// current in this thread, which drives the path from then on.
    ///
    /// # Errors
    /// The driver's refusal; faults to inject, for which a path of a library has no engine.
    pub(super) fn open(
        path: &'static str,
        config: &PathConfig,
        gpu: &GpuSide,
        alignment: usize,
    ) -> Result<Destination, PathError> {
        if config.inject.is_some() {
            let what = "faults are injected at an engine's interface, and this path has no engine";
            return Err(PathError::Setup { path, what: what.into() });
        }
        let driver = |source| PathError::Gpu { path, source };
        gpu.context.make_current().map_err(driver)?;
        let stride = stride(config.block_max).next_multiple_of(alignment);
        let len = stride * config.slots as usize;
        let memory = DeviceBuf::alloc(&gpu.context, gpu.memory, len)
            .map_err(|source| refused(path, config, gpu.memory, source))?;
        let verifier = Verifier::new(gpu, &memory).map_err(driver)?;
        Ok(Destination { verifier, memory, context: gpu.context.clone(), stride, path })
    }

    /// The distance between slots, bytes.
    pub(super) fn stride(&self) -> usize {
        self.stride
    }

    /// Whether the memory is the host's.
    pub(super) fn is_host(&self) -> bool {
        self.memory.is_host()
    }

    /// Bytes of host memory and of GPU memory.
    pub(super) fn bytes(&self) -> (u64, u64) {
        let len = self.memory.len() as u64;
        if self.is_host() { (len, 0) } else { (0, len) }
    }

    /// Where `len` bytes of a slot begin.
    ///
    /// # Panics
    /// If they are more than the slot holds.
    pub(super) fn block(&self, slot: u32, len: u32) -> DevPtr {
        self.memory.ptr().byte_add(self.location(slot, len).start as u64)
    }

    fn location(&self, slot: u32, len: u32) -> Range<usize> {
        let at = slot as usize * self.stride;
        let inside = len as usize <= self.stride && at + self.stride <= self.memory.len();
        assert!(inside, "a block of {len} bytes does not fit slot {slot}");
        at..at + len as usize
    }

    /// Waits for everything on the GPU, also for copies that a library has in streams of its own.
    pub(super) fn quiet(&self) -> Result<(), PathError> {
        let waited = self.context.synchronize();
        waited.map_err(|source| PathError::Gpu { path: self.path, source })
    }

    /// See [`super::Path::generate`]; the slot is idle.
    pub(super) fn generate(&mut self, block: PatternBlock) -> Result<(), PathError> {
        let PatternBlock { slot, key, offset, len } = block;
        let location = self.location(slot, len);
        // SAFETY: the slot's own part of the memory; the slot is idle, so nothing uses it.
        let filled = unsafe { self.verifier.fill(location, key, offset) };
        filled.map_err(|source| PathError::Gpu { path: self.path, source })
    }

    /// See [`super::Path::check`]; the slot's read has completed.
    pub(super) fn check(&mut self, block: PatternBlock) -> Result<Option<Mismatch>, PathError> {
        let PatternBlock { slot, key, offset, len } = block;
        let location = self.location(slot, len);
        // SAFETY: as for `generate`; its read has completed.
        let found = unsafe { self.verifier.check(location, key, offset) };
        let found = found.map_err(|source| PathError::Gpu { path: self.path, source })?;
        Ok(found.map(|m| verifier::locate_mismatch(m, None, key, offset)))
    }

    /// See [`super::Path::copy_out`]; the slot's read has completed.
    pub(super) fn copy_out(&mut self, slot: u32, into: &mut [u8]) -> Result<(), PathError> {
        let location = self.location(slot, u32::try_from(into.len()).unwrap_or(u32::MAX));
        // SAFETY: as for `check`.
        let copied = unsafe { self.verifier.copy_out(location, into) };
        copied.map_err(|source| PathError::Gpu { path: self.path, source })
    }
}
