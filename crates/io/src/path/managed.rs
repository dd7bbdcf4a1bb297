//! `managed`: the file is read into managed memory, whose pages then go to the GPU by a hint.
//! gdsio's `-x 3`.
//!
//! A slot is whole pages of one managed allocation: the same address on both sides, and no second
//! buffer. A read asks the pages back to the host (`cuMemPrefetchAsync` to the CPU), waits for
//! them, reads the file into them and sends them to the GPU with an event behind. A write begins in
//! GPU memory like on every GPU path: its pages, which the write before left on the host, are sent
//! to the GPU, prefetched back, waited for and written to the file.
//!
//! **Times.** Every hint and the wait for it belong to the GPU leg, the one before the file and the
//! one behind it; the file leg is the file alone.
//!
//! Engines do not register this memory: a registration pins the physical pages that are under it
//! at that moment, and these move. With O_DIRECT the kernel pins them for one I/O, in which no hint
//! is in flight for the slot; a driver whose pages the kernel can't pin makes it answer EFAULT.

use std::ops::Range;
use std::ptr::NonNull;

use gpuio_gpu::{GpuError, Managed, MemoryKind, Side, Stream};

use super::slot_buffers::{self, refused, stride};
use super::stream_queues::StreamQueues;
use super::two_legs::{self, Slots};
use super::verifier::Verifier;
use super::{Backend, OpenedPath, PathConfig, PathEntry, PathError, PathInfo, Request};
use crate::engine::{HostRegion, Io, Op, Span};

const NAME: &str = "managed";

pub(super) const ENTRY: PathEntry = PathEntry {
    info: PathInfo {
        name: NAME,
        gdsio: Some(3),
        gdsio_name: "CPU_ASYNC_GPU",
        summary: "file to managed memory, whose pages the driver then moves to the GPU by a hint",
        needs_gpu: true,
        buffered_because: Some(
            "the kernel may refuse O_DIRECT into managed memory (EFAULT); direct tries it",
        ),
        backend: Backend::Engine,
        streams: true,
        memory: &[MemoryKind::Managed],
        ..PathInfo::PLAIN
    },
    open,
};

struct ManagedSlots {
    memory: Managed,
    stride: usize,
    /// Its own: waiting for the hint before a kernel waits for no other slot's, and takes no other
    /// slot's failure.
    stream: Stream,
}

/// Opened on the worker's thread, which from then on has the GPU's context current.
fn open(config: PathConfig) -> Result<OpenedPath, PathError> {
    let gpu = slot_buffers::gpu(NAME, &config)?;
    let broken = |source| PathError::Gpu { path: NAME, source };
    gpu.context.make_current().map_err(broken)?;
    // Pages are what moves: slots share none, also where they are larger than 4 KiB.
    let stride = stride(config.block_max).next_multiple_of(rustix::param::page_size());
    let len = stride * config.slots as usize;
    let memory = Managed::alloc(&gpu.context, len)
        .map_err(|source| refused(NAME, &config, MemoryKind::Managed, source))?;
    let verifier = Verifier::on_gpu(&gpu.context, memory.ptr()).map_err(broken)?;
    let stream = Stream::new(&gpu.context).map_err(broken)?;
    let queues = StreamQueues::new(&gpu.context, gpu.streams, config.slots).map_err(broken)?;
    let pages = ManagedSlots { memory, stride, stream };
    two_legs::open(NAME, &config, verifier, pages, queues)
}

impl ManagedSlots {
    fn start(&self, slot: u32, len: u32) -> usize {
        let at = slot as usize * self.stride;
        let inside = len as usize <= self.stride && at + self.stride <= self.memory.len();
        assert!(inside, "a block of {len} bytes does not fit slot {slot}");
        at
    }

    fn hint(&self, stream: &Stream, slot: u32, len: u32, to: Side) -> Result<(), GpuError> {
        self.memory.prefetch(stream, self.start(slot, len), len as usize, to)
    }

    fn host(&self, slot: u32, len: u32) -> NonNull<u8> {
        // SAFETY: `start` checked that it lies inside the one allocation.
        unsafe { self.memory.as_ptr().add(self.start(slot, len)) }
    }
}

impl Slots for ManagedSlots {
    fn region(&self) -> Option<HostRegion> {
        None
    }

    fn bytes(&self) -> (u64, u64) {
        // Each page is on one side at a time and may be on either: both are needed in full.
        let bytes = self.memory.len() as u64;
        (bytes, bytes)
    }

    fn io(&self, request: &Request) -> Io {
        let start = self.host(request.slot, request.len);
        Io {
            op: request.op,
            file: request.file,
            offset: request.offset,
            // SAFETY: inside the allocation, which the path drops after its engine; a slot has one
            // I/O at a time, and no reference to its bytes is ever made.
            span: unsafe { Span::new(start, request.len) },
            token: request.slot,
        }
    }

    fn location(&self, slot: u32, len: u32) -> Range<usize> {
        let start = self.start(slot, len);
        start..start + len as usize
    }

    fn fillable(&self, slot: u32, len: u32) -> Result<(), GpuError> {
        self.hint(&self.stream, slot, len, Side::Device)?;
        self.stream.sync()
    }

    /// The pages went on to the GPU: no second copy shows what came from the file.
    fn held_from_file(&self, _slot: u32, _len: u32) -> Option<&[u8]> {
        None
    }

    fn ready(&self, stream: &Stream, request: &Request) -> Result<bool, GpuError> {
        self.hint(stream, request.slot, request.len, Side::Host)?;
        Ok(true)
    }

    unsafe fn transfer(&self, stream: &Stream, request: &Request) -> Result<(), GpuError> {
        let Request { op, slot, len, .. } = *request;
        self.hint(stream, slot, len, Side::Device)?;
        match op {
            Op::Read => Ok(()),
            Op::Write => self.hint(stream, slot, len, Side::Host),
        }
    }
}
