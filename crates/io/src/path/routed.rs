//! `routed`: the bytes end on a GPU that is far from the drive, by way of one that is near: file →
//! pinned ring → near GPU → far GPU. A write goes the other way.
//!
//! Both copies of a slot are in one stream of the near GPU, one behind the other, with one event
//! behind both: their times can't be told apart, their bytes are counted each by itself
//! ([`HopCounters`]).
//!
//! Copies between GPUs work without peer access too: the driver then takes them through host
//! memory, a way that nobody asked for. So a path that can't enable peer access does not open,
//! unless [`Via::any`] lets it, and then the way stands in [`Opened::steps_down`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use gpuio_gpu::{Context, DevPtr, DeviceBuf, GpuError, MemKind, Stream};

use super::crossing::Crossing;
use super::ends::{self, Ends};
use super::judge::{Judge, Place};
use super::lanes::{Lanes, Refused};
use super::memory::refused;
use super::ring::Ring;
use super::two_legs::{self, Slots};
use super::{Config, Mover, Opened, PathError, Request, Row};
use crate::engine::monitor::add;
use crate::engine::{Area, Io, Op};

const NAME: &str = "routed";

pub(super) const ROW: Row = Row {
    name: NAME,
    gdsio: None,
    gdsio_name: "CPU_GPU_GPU",
    summary: "file to a pinned ring, to a GPU near the drive, then from GPU to GPU",
    needs_gpu: true,
    via_gpu: true,
    buffered_only: false,
    buffered_because: None,
    mover: Mover::Engine,
    batches: false,
    streams: true,
    memory: &[MemKind::Device],
    open,
};

/// The way to a far GPU, resolved by the plan.
#[derive(Debug, Clone)]
pub struct Via {
    /// Context of the near GPU.
    pub near: Context,
    /// Whether the copy between the GPUs may go through host memory where they can't reach one
    /// another.
    pub any: bool,
    /// Counters of the two GPU legs, readable from other threads.
    pub counters: Arc<HopCounters>,
}

/// Bytes of one direction.
#[derive(Debug, Default)]
pub struct Hops {
    /// Between host memory and the near GPU.
    pub host_near: AtomicU64,
    /// Between the near and the far GPU.
    pub near_far: AtomicU64,
}

/// Bytes of the copies that the driver took, leg by leg. One thread writes.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct HopCounters {
    /// From the file to the far GPU.
    pub read: Hops,
    /// The other way.
    pub write: Hops,
    /// Whether the driver copies between the GPUs through host memory. Set when the path opens.
    pub through_host: AtomicBool,
}

struct Hop {
    ends: Ends,
    /// A place on the near GPU for each slot.
    between: DeviceBuf,
    near: Context,
    far: Context,
    counters: Arc<HopCounters>,
}

fn setup(what: impl Into<String>) -> PathError {
    PathError::Setup { path: NAME, what: what.into() }
}

/// Opened on the worker's thread, which from then on has the near GPU's context current.
fn open(config: Config) -> Result<Opened, PathError> {
    let gpu = ends::gpu(NAME, &config)?;
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
    let ends = Ends::new(NAME, &config, &gpu, None)?;
    let len = ends.destination().len();
    let between = DeviceBuf::alloc(near, MemKind::Device, len)
        .map_err(|source| refused(NAME, &config, MemKind::Device, source))?;
    let judge = Judge::new(&gpu, ends.destination()).map_err(broken)?;
    near.make_current().map_err(broken)?;
    let lanes = Lanes::new(near, gpu.streams, config.slots).map_err(broken)?;
    let hop = Hop { ends, between, near: near.clone(), far: far.clone(), counters: via.counters };
    let mut opened = two_legs::open(NAME, &config, judge, hop, Ring::over(lanes))?;
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

impl Hop {
    /// A slot's place on the near GPU.
    fn between(&self, slot: u32) -> DevPtr {
        self.between.ptr().byte_add(slot as u64 * self.ends.stride() as u64)
    }

    /// Puts the leg between host and near GPU into the stream.
    ///
    /// # Safety
    /// As for [`Crossing::cross`].
    unsafe fn first(&self, stream: &Stream, op: Op, slot: u32, len: usize) -> Result<(), GpuError> {
        let (near, host) = (self.between(slot), self.ends.slot(slot));
        match op {
            // SAFETY: the caller's promise; the place is as long as the slot.
            Op::Read => unsafe { stream.h2d(near, host, len) }?,
            // SAFETY: as above.
            Op::Write => unsafe { stream.d2h(host, near, len) }?,
        }
        add(&self.hops(op).host_near, len as u64);
        Ok(())
    }

    /// Puts the leg between the GPUs into the stream.
    ///
    /// # Safety
    /// As for [`Crossing::cross`].
    unsafe fn second(
        &self,
        stream: &Stream,
        op: Op,
        slot: u32,
        len: usize,
    ) -> Result<(), GpuError> {
        let near = (self.between(slot), &self.near);
        let far = (self.ends.device(slot), &self.far);
        match op {
            // SAFETY: the caller's promise; both places are as long as the slot.
            Op::Read => unsafe { stream.peer_copy(far, near, len) }?,
            // SAFETY: as above.
            Op::Write => unsafe { stream.peer_copy(near, far, len) }?,
        }
        add(&self.hops(op).near_far, len as u64);
        Ok(())
    }

    fn hops(&self, op: Op) -> &Hops {
        match op {
            Op::Read => &self.counters.read,
            Op::Write => &self.counters.write,
        }
    }
}

impl Slots for Hop {
    fn area(&self) -> Option<Area> {
        self.ends.area()
    }

    fn bytes(&self) -> (u64, u64) {
        let (host, far) = self.ends.bytes();
        (host, far + self.between.len() as u64)
    }

    fn io(&self, request: &Request) -> Io {
        self.ends.io(request)
    }

    fn place(&self, slot: u32, len: u32) -> Place {
        self.ends.place(slot, len)
    }

    /// Kernels run where the bytes were asked for: in the far GPU's context.
    fn judge(&self) -> Result<(), GpuError> {
        self.far.make_current()
    }

    fn judged(&self) -> Result<(), GpuError> {
        self.near.make_current()
    }

    fn held_from_file(&self, slot: u32, len: u32) -> Option<&[u8]> {
        self.ends.held_from_file(slot, len)
    }
}

impl Crossing for Hop {
    unsafe fn cross(&self, stream: &Stream, op: Op, slot: u32, len: u32) -> Result<(), Refused> {
        let len = self.ends.place(slot, len).len as usize;
        let refused = |begun| move |error| Refused { error, begun };
        match op {
            Op::Read => {
                // SAFETY: the caller's promise.
                unsafe { self.first(stream, op, slot, len) }.map_err(refused(false))?;
                // SAFETY: as above; the stream keeps the order.
                unsafe { self.second(stream, op, slot, len) }.map_err(refused(true))
            }
            Op::Write => {
                // SAFETY: the caller's promise.
                unsafe { self.second(stream, op, slot, len) }.map_err(refused(false))?;
                // SAFETY: as above; the stream keeps the order.
                unsafe { self.first(stream, op, slot, len) }.map_err(refused(true))
            }
        }
    }
}
