//! `fan-out`: each block is read once and ends in the memory of every GPU of the job: file →
//! pinned ring → the worker's own GPU → all other GPUs, from GPU to GPU. With workers on each of
//! the GPUs, each takes a share of the blocks over its own link, and the links between GPUs spread
//! it.
//!
//! All copies of a slot are in one stream of the worker's own GPU, the one from the host first,
//! with one event behind them: a block has completed when it is in the memory of all. Copies of
//! different slots overlap over the worker's streams. Bytes from the host and bytes from GPU to GPU
//! are counted each by themselves ([`FanOutCounters`]).
//!
//! The worker's own memory is the ring's destination, as on path `staged`; that of the others has
//! the same slots. Fills and checks are of all of them.
//!
//! Copies between GPUs work without peer access too: the driver then takes them through host
//! memory, which is what this path is to avoid. So it does not open where a GPU can't reach another
//! one's memory, unless [`FanOut::any`] lets it, and then [`OpenedPath::steps_down`] names the
//! route.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use gpuio_base::stat::add_single_writer;
use gpuio_gpu::{Context, DevPtr, DeviceBuf, GpuError, MemoryKind, Stream};

use super::slot_buffers::{self, SlotBuffers, refused, stride};
use super::stream_queues::StreamQueues;
use super::two_legs::{self, Slots};
use super::verifier::{self, Verifier};
use super::{
    Backend, Completion, Leg, Mismatch, OpenedPath, Path, PathConfig, PathEntry, PathError,
    PathInfo, PatternBlock, Request, Start,
};
use crate::clock::Clock;
use crate::engine::{HostRegion, Io, Op};

const NAME: &str = "fan-out";

pub(super) const ENTRY: PathEntry = PathEntry {
    info: PathInfo {
        name: NAME,
        gdsio_name: "FAN_OUT",
        summary: "file to a pinned ring and one GPU, then from GPU to GPU to all others: read once",
        needs_gpu: true,
        fans_out: true,
        backend: Backend::Engine,
        streams: true,
        memory: &[MemoryKind::Device],
        ..PathInfo::PLAIN
    },
    open,
};

/// The other GPUs in which blocks end, resolved by the plan.
#[derive(Debug, Clone)]
pub struct FanOut {
    /// Their contexts, without the worker's own.
    pub others: Vec<Context>,
    /// Whether copies between GPUs may go through host memory where these can't reach one another.
    pub any: bool,
    /// Counters of the copies, readable from other threads.
    pub counters: Arc<FanOutCounters>,
}

/// Bytes of the copies of reads that the driver took. One thread writes.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct FanOutCounters {
    /// From host memory to the worker's own GPU.
    pub from_host: AtomicU64,
    /// From there to the other GPUs, of all of them together.
    pub between: AtomicU64,
    /// Whether the driver copies between GPUs through host memory. Set when the path opens.
    pub through_host: AtomicBool,
}

/// The memory of another GPU, with all slots.
struct Other {
    context: Context,
    memory: DeviceBuf,
    verifier: Verifier,
}

/// The slots: the ring and the worker's own GPU, and where each of the others has its memory.
struct FanOutBuffers {
    buffers: SlotBuffers,
    own: Context,
    /// Their memory is [`FanOutPath::others`]'.
    others: Vec<(DevPtr, Context)>,
    counters: Arc<FanOutCounters>,
}

struct FanOutPath {
    // Drop order: the ring's path waits for what is in flight, then the others' memory goes.
    ring: Box<dyn Path>,
    others: Vec<Other>,
    own: Context,
    stride: usize,
}

fn setup(what: impl Into<String>) -> PathError {
    PathError::Setup { path: NAME, what: what.into() }
}

fn driver(source: GpuError) -> PathError {
    PathError::Gpu { path: NAME, source }
}

/// Opened on the worker's thread, which from then on has its own GPU's context current.
fn open(config: PathConfig) -> Result<OpenedPath, PathError> {
    let gpu = slot_buffers::gpu(NAME, &config)?;
    let fan_out = gpu.fan_out.clone().filter(|fan_out| !fan_out.others.is_empty());
    let fan_out = fan_out.ok_or_else(|| {
        setup("this path places blocks in several GPUs; name them with --gpu all or --gpu 0,1")
    })?;
    let own = gpu.context.clone();
    let mut unreached = Vec::new();
    for other in &fan_out.others {
        if !reach(&own, other).map_err(driver)? {
            unreached.push(format!("GPU {}", other.device()));
        }
    }
    let step_down = through_host(&own, &unreached, fan_out.any)?;
    fan_out.counters.through_host.store(step_down.is_some(), Ordering::Relaxed);
    own.make_current().map_err(driver)?;
    let buffers = SlotBuffers::new(NAME, &config, gpu, None)?;
    let verifier = Verifier::new(gpu, buffers.destination()).map_err(driver)?;
    let len = buffers.destination().len();
    let others = fan_out.others.iter().map(|context| Other::new(context, len, &config));
    let others: Vec<Other> = others.collect::<Result<_, _>>()?;
    own.make_current().map_err(driver)?;
    let queues = StreamQueues::new(&own, gpu.streams, config.slots).map_err(driver)?;
    let buffers = FanOutBuffers {
        buffers,
        own: own.clone(),
        others: others.iter().map(|other| (other.memory.ptr(), other.context.clone())).collect(),
        counters: fan_out.counters,
    };
    let mut opened = two_legs::open(NAME, &config, verifier, buffers, queues)?;
    opened.steps_down.extend(step_down);
    let stride = stride(config.block_max);
    opened.path = Box::new(FanOutPath { ring: opened.path, others, own, stride });
    Ok(opened)
}

/// Gives two GPUs access to each other's memory; false where they can't have it.
fn reach(one: &Context, other: &Context) -> Result<bool, GpuError> {
    if !one.can_access_peer(other)? || !other.can_access_peer(one)? {
        return Ok(false);
    }
    one.enable_peer_access(other)?;
    other.enable_peer_access(one)?;
    Ok(true)
}

/// The way through the host where GPUs can't be reached, if it may be used.
fn through_host(
    own: &Context,
    unreached: &[String],
    any: bool,
) -> Result<Option<String>, PathError> {
    if unreached.is_empty() {
        return Ok(None);
    }
    let (own, others) = (own.device(), unreached.join(", "));
    let why = format!("GPU {own} can't reach the memory of {others}");
    if any {
        return Ok(Some(format!("{why}: the driver copies between them through host memory")));
    }
    Err(setup(format!(
        "{why} (no NVLink between them and no peer access over PCIe): the driver would copy each \
         block through host memory, which is another way than this path's. Name other GPUs with \
         --gpu, allow it with via_peer=any, or read once for each GPU with --path staged"
    )))
}

impl Other {
    fn new(context: &Context, len: usize, config: &PathConfig) -> Result<Other, PathError> {
        context.make_current().map_err(driver)?;
        let memory = DeviceBuf::alloc(context, MemoryKind::Device, len)
            .map_err(|source| refused(NAME, config, MemoryKind::Device, source))?;
        let verifier = Verifier::on_gpu(context, memory.ptr()).map_err(driver)?;
        Ok(Other { context: context.clone(), memory, verifier })
    }
}

impl Slots for FanOutBuffers {
    fn region(&self) -> Option<HostRegion> {
        self.buffers.region()
    }

    fn bytes(&self) -> (u64, u64) {
        let (host, own) = self.buffers.bytes();
        (host, own * (1 + self.others.len() as u64))
    }

    fn io(&self, request: &Request) -> Io {
        self.buffers.io(request)
    }

    fn location(&self, slot: u32, len: u32) -> Range<usize> {
        self.buffers.location(slot, len)
    }

    fn held_from_file(&self, slot: u32, len: u32) -> Option<&[u8]> {
        self.buffers.held_from_file(slot, len)
    }

    /// A write, which no plan has, takes the block of the worker's own GPU.
    unsafe fn transfer(&self, stream: &Stream, request: &Request) -> Result<(), GpuError> {
        // SAFETY: the caller's promise.
        unsafe { self.buffers.transfer(stream, request) }?;
        if request.op == Op::Write {
            return Ok(());
        }
        let at = self.buffers.location(request.slot, request.len);
        add_single_writer(&self.counters.from_host, at.len() as u64);
        let from = (self.buffers.device(request.slot), &self.own);
        for (memory, context) in &self.others {
            let to = (memory.byte_add(at.start as u64), context);
            // SAFETY: as above; the stream keeps the order, all memory has the same slots, and the
            // others' goes after the streams were waited for.
            unsafe { stream.peer_copy(to, from, at.len()) }?;
            add_single_writer(&self.counters.between, at.len() as u64);
        }
        Ok(())
    }
}

impl FanOutPath {
    /// Does `work` with each of the other GPUs, whose context is then current, until it finds
    /// something.
    fn on_others<T>(
        &mut self,
        block: &PatternBlock,
        mut work: impl FnMut(&mut Verifier, Range<usize>) -> Result<Option<T>, GpuError>,
    ) -> Result<Option<(T, u32)>, PathError> {
        let start = block.slot as usize * self.stride;
        let at = start..start + block.len as usize;
        let mut found = Ok(None);
        for Other { context, verifier, .. } in &mut self.others {
            found = context.make_current().and_then(|()| work(verifier, at.clone()));
            if let Ok(Some(what)) = found {
                self.own.make_current().map_err(driver)?;
                return Ok(Some((what, context.device())));
            }
            if found.is_err() {
                break;
            }
        }
        let over = self.own.make_current();
        found.and(over).map_err(driver)?;
        Ok(None)
    }
}

impl Path for FanOutPath {
    fn start(&mut self, clock: &Clock, request: Request) -> Start {
        self.ring.start(clock, request)
    }

    fn advance(
        &mut self,
        clock: &Clock,
        completed: &mut Vec<Completion>,
        wait: bool,
    ) -> Result<(), PathError> {
        self.ring.advance(clock, completed, wait)
    }

    fn wait_timeout(&mut self, timeout: Duration) -> Result<(), PathError> {
        self.ring.wait_timeout(timeout)
    }

    fn in_flight(&self) -> usize {
        self.ring.in_flight()
    }

    fn synchronous(&self) -> bool {
        self.ring.synchronous()
    }

    fn generate(&mut self, block: PatternBlock) -> Result<(), PathError> {
        self.ring.generate(block)?;
        self.on_others(&block, |verifier, at| {
            // SAFETY: the slot's part of the memory; the slot is idle.
            unsafe { verifier.fill(at, block.key, block.offset) }.map(|()| None::<()>)
        })?;
        Ok(())
    }

    fn check(&mut self, block: PatternBlock) -> Result<Option<Mismatch>, PathError> {
        if let Some(found) = self.ring.check(block)? {
            return Ok(Some(found));
        }
        let found = self.on_others(&block, |verifier, at| {
            // SAFETY: the slot's part of the memory; its read has completed.
            unsafe { verifier.check(at, block.key, block.offset) }
        })?;
        Ok(found.map(|(bad, gpu)| Mismatch {
            // The block that was copied from is right.
            leg: Some(Leg::Gpu),
            gpu: Some(gpu),
            ..verifier::locate_mismatch(bad, None, block.key, block.offset)
        }))
    }

    fn copy_out(&mut self, slot: u32, into: &mut [u8]) -> Result<(), PathError> {
        self.ring.copy_out(slot, into)
    }
}
