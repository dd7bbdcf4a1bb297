//! `routed`: the bytes end on a GPU far from the drive and go through one that is near: file →
//! pinned ring → near GPU → far GPU. A write goes in the opposite direction.
//!
//! Both copies of a slot are in one stream of the near GPU, one behind the other, with one event
//! behind both: their times can't be distinguished, their bytes are counted each by itself
//! ([`RouteCounters`]).
//!
//! Copies between GPUs work without peer access too: the driver then takes them through host
//! memory, a route that was not requested. So a path that can't enable peer access does not open,
//! unless [`Via::any`] lets it, and then [`OpenedPath::steps_down`] names the route.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use gpuio_base::stat::add_single_writer;
use gpuio_gpu::{Context, DevPtr, DeviceBuf, GpuError, MemoryKind, Stream};

use super::slot_buffers::{self, SlotBuffers, refused};
use super::stream_queues::StreamQueues;
use super::two_legs::{self, Slots};
use super::verifier::Verifier;
use super::{Backend, OpenedPath, PathConfig, PathEntry, PathError, PathInfo, Request};
use crate::engine::{HostRegion, Io, Op};

const NAME: &str = "routed";

pub(super) const ENTRY: PathEntry = PathEntry {
    info: PathInfo {
        name: NAME,
        gdsio_name: "CPU_GPU_GPU",
        summary: "file to a pinned ring, to a GPU near the drive, then from GPU to GPU",
        needs_gpu: true,
        via_gpu: true,
        backend: Backend::Engine,
        streams: true,
        memory: &[MemoryKind::Device],
        ..PathInfo::PLAIN
    },
    open,
};

/// The route to a far GPU, resolved by the plan.
#[derive(Debug, Clone)]
pub struct Via {
    /// Context of the near GPU.
    pub near: Context,
    /// Whether the copy between the GPUs may go through host memory where they can't reach one
    /// another.
    pub any: bool,
    /// Counters of the two GPU legs, readable from other threads.
    pub counters: Arc<RouteCounters>,
}

/// Bytes of one direction.
#[derive(Debug, Default)]
pub struct SegmentCounters {
    /// Between host memory and the near GPU.
    pub host_near: AtomicU64,
    /// Between the near and the far GPU.
    pub near_far: AtomicU64,
}

/// Bytes of the copies that the driver took, leg by leg. One thread writes.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct RouteCounters {
    /// From the file to the far GPU.
    pub read: SegmentCounters,
    /// The opposite direction.
    pub write: SegmentCounters,
    /// Whether the driver copies between the GPUs through host memory. Set when the path opens.
    pub through_host: AtomicBool,
}

struct RoutedBuffers {
    buffers: SlotBuffers,
    /// Memory on the near GPU for each slot.
    between: DeviceBuf,
    near: Context,
    far: Context,
    counters: Arc<RouteCounters>,
}

fn setup(what: impl Into<String>) -> PathError {
    PathError::Setup { path: NAME, what: what.into() }
}

/// Opened on the worker's thread, which from then on has the near GPU's context current.
fn open(config: PathConfig) -> Result<OpenedPath, PathError> {
    let gpu = slot_buffers::gpu(NAME, &config)?;
    let broken = |source| PathError::Gpu { path: NAME, source };
    let via = gpu.via.clone().ok_or_else(|| {
        setup("this path needs a GPU near the drive to go through; name it with --via-gpu")
    })?;
    let (near, far) = (&via.near, &gpu.context);
    if near.device() == far.device() {
        return Err(setup(format!(
            "GPU {} is both the near and the far GPU: nothing to go through; use --path staged",
            far.device()
        )));
    }
    let step_down = peers(near, far, via.any)?;
    via.counters.through_host.store(step_down.is_some(), Ordering::Relaxed);
    let buffers = SlotBuffers::new(NAME, &config, gpu, None)?;
    let len = buffers.destination().len();
    let between = DeviceBuf::alloc(near, MemoryKind::Device, len)
        .map_err(|source| refused(NAME, &config, MemoryKind::Device, source))?;
    let verifier = Verifier::new(gpu, buffers.destination()).map_err(broken)?;
    near.make_current().map_err(broken)?;
    let queues = StreamQueues::new(near, gpu.streams, config.slots).map_err(broken)?;
    let buffers = RoutedBuffers {
        buffers,
        between,
        near: near.clone(),
        far: far.clone(),
        counters: via.counters,
    };
    let mut opened = two_legs::open(NAME, &config, verifier, buffers, queues)?;
    opened.steps_down.extend(step_down);
    Ok(opened)
}

/// Gives each of the two GPUs access to the other's memory. Answers with what happens instead,
/// where that can't be and may be so.
fn peers(near: &Context, far: &Context, any: bool) -> Result<Option<String>, PathError> {
    let broken = |source| PathError::Gpu { path: NAME, source };
    let reach = near.can_access_peer(far).map_err(broken)?;
    if reach && far.can_access_peer(near).map_err(broken)? {
        near.enable_peer_access(far).map_err(broken)?;
        far.enable_peer_access(near).map_err(broken)?;
        return Ok(None);
    }
    let (near, far) = (near.device(), far.device());
    let why = format!("GPU {near} and GPU {far} can't reach each other's memory");
    if any {
        return Ok(Some(format!("{why}: the driver copies between them through host memory")));
    }
    Err(setup(format!(
        "{why} (no NVLink between them and no peer access over PCIe): the driver would copy \
         through host memory, which is another way than this path's. Name another GPU with \
         --via-gpu, allow it with via_peer=any, or use --path staged"
    )))
}

impl RoutedBuffers {
    /// A slot's memory on the near GPU.
    fn between(&self, slot: u32) -> DevPtr {
        self.between.ptr().byte_add(slot as u64 * self.buffers.stride() as u64)
    }

    /// Puts the leg between host and near GPU into the stream.
    ///
    /// # Safety
    /// As for [`Slots::transfer`].
    unsafe fn first(&self, stream: &Stream, op: Op, slot: u32, len: usize) -> Result<(), GpuError> {
        let (near, host) = (self.between(slot), self.buffers.slot(slot));
        match op {
            // SAFETY: the caller's promise; the memory is as long as the slot.
            Op::Read => unsafe { stream.h2d(near, host, len) }?,
            // SAFETY: as above.
            Op::Write => unsafe { stream.d2h(host, near, len) }?,
        }
        add_single_writer(&self.segments(op).host_near, len as u64);
        Ok(())
    }

    /// Puts the leg between the GPUs into the stream.
    ///
    /// # Safety
    /// As for [`Slots::transfer`].
    unsafe fn second(
        &self,
        stream: &Stream,
        op: Op,
        slot: u32,
        len: usize,
    ) -> Result<(), GpuError> {
        let near = (self.between(slot), &self.near);
        let far = (self.buffers.device(slot), &self.far);
        match op {
            // SAFETY: the caller's promise; both sides are as long as the slot.
            Op::Read => unsafe { stream.peer_copy(far, near, len) }?,
            // SAFETY: as above.
            Op::Write => unsafe { stream.peer_copy(near, far, len) }?,
        }
        add_single_writer(&self.segments(op).near_far, len as u64);
        Ok(())
    }

    fn segments(&self, op: Op) -> &SegmentCounters {
        match op {
            Op::Read => &self.counters.read,
            Op::Write => &self.counters.write,
        }
    }
}

impl Slots for RoutedBuffers {
    fn region(&self) -> Option<HostRegion> {
        self.buffers.region()
    }

    fn bytes(&self) -> (u64, u64) {
        let (host, far) = self.buffers.bytes();
        (host, far + self.between.len() as u64)
    }

    fn io(&self, request: &Request) -> Io {
        self.buffers.io(request)
    }

    fn location(&self, slot: u32, len: u32) -> Range<usize> {
        self.buffers.location(slot, len)
    }

    /// Kernels run where the bytes were requested: in the far GPU's context.
    fn begin_verify(&self) -> Result<(), GpuError> {
        self.far.make_current()
    }

    fn end_verify(&self) -> Result<(), GpuError> {
        self.near.make_current()
    }

    fn held_from_file(&self, slot: u32, len: u32) -> Option<&[u8]> {
        self.buffers.held_from_file(slot, len)
    }

    unsafe fn transfer(&self, stream: &Stream, request: &Request) -> Result<(), GpuError> {
        let Request { op, slot, len, .. } = *request;
        let len = self.buffers.location(slot, len).len();
        match op {
            Op::Read => {
                // SAFETY: the caller's promise.
                unsafe { self.first(stream, op, slot, len) }?;
                // SAFETY: as above; the stream keeps the order.
                unsafe { self.second(stream, op, slot, len) }
            }
            Op::Write => {
                // SAFETY: the caller's promise.
                unsafe { self.second(stream, op, slot, len) }?;
                // SAFETY: as above; the stream keeps the order.
                unsafe { self.first(stream, op, slot, len) }
            }
        }
    }
}
