//! The memory on both sides of a GPU leg: the pinned slots and their locations in the destination.

use gpuio_gpu::{DevPtr, DeviceBuf, GpuError, Stream};

use super::memory::{SlotMemory, refused, stride};
use super::two_legs::Slots;
use super::verifier::BlockLocation;
use super::{GpuSide, PathConfig, PathError, Request};
use crate::engine::{HostRegion, Io, Op};

pub(super) struct SlotBuffers {
    destination: DeviceBuf,
    memory: SlotMemory,
    /// The position of each slot in the destination; without, slot `n` has position `n`.
    positions: Option<Vec<u32>>,
}

/// The GPU that a path can't do without.
pub(super) fn gpu<'a>(
    path: &'static str,
    config: &'a PathConfig,
) -> Result<&'a GpuSide, PathError> {
    config.gpu.as_ref().ok_or_else(|| PathError::Setup {
        path,
        what: "this path needs a GPU; name one with --gpu, or --gpu software to try it".into(),
    })
}

impl SlotBuffers {
    /// Memory for all slots on both sides. The GPU's context must be current.
    ///
    /// # Errors
    /// Either memory could not be had.
    pub(super) fn new(
        path: &'static str,
        config: &PathConfig,
        gpu: &GpuSide,
        positions: Option<Vec<u32>>,
    ) -> Result<SlotBuffers, PathError> {
        let memory = SlotMemory::pinned(path, config)?;
        let len = stride(config.block_max) * config.slots as usize;
        let destination = DeviceBuf::alloc(&gpu.context, gpu.memory, len)
            .map_err(|source| refused(path, config, gpu.memory, source))?;
        Ok(SlotBuffers { destination, memory, positions })
    }

    pub(super) fn destination(&self) -> &DeviceBuf {
        &self.destination
    }

    /// The distance between slots and between positions, in bytes.
    pub(super) fn stride(&self) -> usize {
        self.memory.stride()
    }

    /// Address of a slot's location in the destination.
    pub(super) fn device(&self, slot: u32) -> DevPtr {
        self.destination.ptr().byte_add(self.location(slot, 0).offset as u64)
    }

    /// Where the slot itself begins, as the GPU sees it: an address of page-locked memory is the
    /// same on both sides.
    pub(super) fn host(&self, slot: u32) -> DevPtr {
        DevPtr(self.memory.slot(slot).as_ptr() as u64)
    }

    /// Where the slot itself begins, as the host sees it.
    pub(super) fn slot(&self, slot: u32) -> *mut u8 {
        self.memory.slot(slot).as_ptr()
    }

    /// Enqueues the copy of `len` bytes between a slot and its location into the stream: to the
    /// location for a read, from it for a write.
    ///
    /// # Errors
    /// The driver's refusal; nothing is in flight then.
    ///
    /// # Safety
    /// `len` is at most the stride, or the slots and positions that it reaches lie side by side in
    /// the same order. Nothing else uses either side, and `self` lives, until the stream has passed
    /// the copy.
    pub(super) unsafe fn copy(
        &self,
        stream: &Stream,
        op: Op,
        slot: u32,
        len: usize,
    ) -> Result<(), GpuError> {
        let (host, device) = (self.host(slot), self.device(slot));
        let ptr = self.memory.slot(slot).as_ptr();
        match (op, self.destination.is_host()) {
            // SAFETY: the caller's promise.
            (Op::Read, false) => unsafe { stream.h2d(device, ptr, len) },
            // SAFETY: the caller's promise.
            (Op::Write, false) => unsafe { stream.d2h(ptr, device, len) },
            // The calls above take device memory only.
            // SAFETY: the caller's promise.
            (Op::Read, true) => unsafe { stream.copy(device, host, len) },
            // SAFETY: the caller's promise.
            (Op::Write, true) => unsafe { stream.copy(host, device, len) },
        }
    }
}

impl Slots for SlotBuffers {
    fn region(&self) -> Option<HostRegion> {
        Some(self.memory.region())
    }

    fn bytes(&self) -> (u64, u64) {
        // Both sides are equally long.
        let bytes = self.memory.bytes();
        if self.destination.is_host() { (2 * bytes, 0) } else { (bytes, bytes) }
    }

    fn io(&self, request: &Request) -> Io {
        Io {
            op: request.op,
            file: request.file,
            offset: request.offset,
            span: self.memory.span(request.slot, request.len),
            token: request.slot,
        }
    }

    fn location(&self, slot: u32, len: u32) -> BlockLocation {
        assert!(len as usize <= self.stride(), "a block of {len} bytes does not fit its slot");
        let position = self.positions.as_ref().map_or(slot, |positions| positions[slot as usize]);
        BlockLocation { offset: position as usize * self.stride(), len }
    }

    fn held_from_file(&self, slot: u32, len: u32) -> Option<&[u8]> {
        Some(self.memory.bytes_of(slot, len))
    }
}
