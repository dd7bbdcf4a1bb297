//! The pinned ring between an engine and a GPU: what `staged` and `cached` have in common.
//!
//! Slot `n` is a place in page-locked host memory and its twin in the destination memory. A read
//! runs file → pinned slot, then an asynchronous copy on stream `n mod streams`; a write runs the
//! other way. Slots are independent, so the file leg of one overlaps the copies of the others.

use std::collections::VecDeque;

use gpuio_gpu::pattern;
use gpuio_gpu::{Checker, DevPtr, DeviceBuf, Event, GpuError, PatternKernels, Stream, Wait};

use super::memory::{SlotMemory, stride};
use super::{
    Config, Fault, GpuSide, Landed, Leg, Mismatch, Opened, Path, PathError, Request, Start,
};
use crate::clock::{Clock, Nanos};
use crate::engine::{Done, Engine, Io, Op, Push};

#[derive(Clone, Copy)]
struct Slot {
    request: Request,
    /// When the first of its two legs ended.
    handed: Nanos,
}

/// Fill and check kernels, or the reason to do it on the CPU: a destination in host memory.
enum Judge {
    Gpu { kernels: PatternKernels, checker: Checker },
    Cpu,
}

struct Ring {
    name: &'static str,
    // Drop order: `Drop` waits for the streams, then the engine waits for its I/Os, and only then
    // does the memory go.
    engine: Box<dyn Engine>,
    events: Vec<Event>,
    streams: Vec<Stream>,
    judge: Judge,
    destination: DeviceBuf,
    memory: SlotMemory,
    slots: Vec<Option<Slot>>,
    /// Slots whose copy is under way, oldest first, one queue per stream: a stream keeps order.
    copies: Vec<VecDeque<u32>>,
    copying: usize,
    /// The stream that was waited for last, so that waiting goes round.
    turn: usize,
    /// Writes that the engine had no room for.
    held: VecDeque<Io>,
    dones: Vec<Done>,
    ready: Vec<Landed>,
    out: usize,
}

/// Opens a ring. Called on the worker's thread, which from then on has the GPU's context current.
pub(super) fn open(name: &'static str, config: Config) -> Result<Opened, PathError> {
    let Some(gpu) = config.gpu.clone() else {
        return Err(PathError::Setup {
            path: name,
            what: "this path needs a GPU; name one with --gpu, or --gpu software to try it".into(),
        });
    };
    let driver = |source| PathError::Gpu { path: name, source };
    gpu.context.make_current().map_err(driver)?;
    let memory = SlotMemory::pinned(name, &config)?;
    let engine = super::open_engine(&config, memory.area())?;
    let slots = config.slots as usize;
    let len = stride(config.block_max) * slots;
    let destination = DeviceBuf::alloc(&gpu.context, gpu.memory, len).map_err(driver)?;
    let streams = make(gpu.streams.clamp(1, config.slots), || Stream::new(&gpu.context));
    let streams = streams.map_err(driver)?;
    let events = make(config.slots, || Event::new(&gpu.context, Wait::Spin)).map_err(driver)?;
    let judge = judge(&gpu, &destination).map_err(driver)?;
    let host_bytes = memory.bytes();
    let ring = Ring {
        name,
        engine: engine.engine,
        events,
        copies: vec![VecDeque::with_capacity(slots); streams.len()],
        streams,
        judge,
        destination,
        memory,
        slots: vec![None; slots],
        copying: 0,
        turn: 0,
        held: VecDeque::with_capacity(slots),
        dones: Vec::with_capacity(slots),
        ready: Vec::with_capacity(slots),
        out: 0,
    };
    Ok(Opened {
        path: Box::new(ring),
        engine_got: engine.got,
        steps_down: engine.steps_down,
        host_bytes,
        device_bytes: len as u64,
    })
}

fn make<T>(n: u32, mut one: impl FnMut() -> Result<T, GpuError>) -> Result<Vec<T>, GpuError> {
    (0..n).map(|_| one()).collect()
}

fn judge(gpu: &GpuSide, destination: &DeviceBuf) -> Result<Judge, GpuError> {
    if destination.is_host() {
        return Ok(Judge::Cpu);
    }
    let kernels = PatternKernels::load(&gpu.context)?;
    let checker = Checker::new(&gpu.context, &kernels)?;
    Ok(Judge::Gpu { kernels, checker })
}

impl Ring {
    fn stream_of(&self, slot: u32) -> usize {
        slot as usize % self.streams.len()
    }

    fn device(&self, slot: u32) -> DevPtr {
        let at = slot as usize * self.memory.stride();
        DevPtr(self.destination.ptr().0 + at as u64)
    }

    fn gpu_error(&self, source: GpuError) -> PathError {
        PathError::Gpu { path: self.name, source }
    }

    /// Queues the copy of a slot in the request's direction and the event behind it.
    fn copy(&mut self, slot: u32, request: &Request) -> Result<(), GpuError> {
        let at = self.stream_of(slot);
        let (stream, device) = (&self.streams[at], self.device(slot));
        let host = self.memory.slot(slot).as_ptr();
        let len = request.len as usize;
        match request.op {
            // SAFETY: both ranges are this slot's own, at least `len` long, live until `Drop` has
            // waited for the stream, and are not touched before the event behind is done.
            Op::Read => unsafe { stream.h2d(device, host, len) }?,
            // SAFETY: as above, the other way round.
            Op::Write => unsafe { stream.d2h(host, device, len) }?,
        }
        self.events[slot as usize].record(stream)?;
        self.copies[at].push_back(slot);
        self.copying += 1;
        Ok(())
    }

    fn land(&mut self, slot: u32, now: Nanos, result: Result<(), Fault>) {
        let Some(held) = self.slots[slot as usize].take() else { return };
        let request = held.request;
        let first = held.handed.saturating_sub(request.started);
        let second = now.saturating_sub(held.handed);
        let (file_ns, gpu_ns) = match request.op {
            Op::Read => (first, second),
            Op::Write => (second, first),
        };
        self.ready.push(Landed { request, result, ended: now, file_ns, gpu_ns });
    }

    /// A file I/O came back: a read goes on to its copy, a write has landed.
    fn file_done(&mut self, clock: &Clock, done: Done) {
        let slot = done.io.token;
        let now = clock.now();
        let Some(held) = self.slots[slot as usize].as_mut() else { return };
        if held.request.op == Op::Write {
            return self.land(slot, now, done.result.map(|_| ()).map_err(Fault::File));
        }
        held.handed = now;
        let request = held.request;
        if let Err(fault) = done.result {
            return self.land(slot, now, Err(Fault::File(fault)));
        }
        if let Err(error) = self.copy(slot, &request) {
            self.land(slot, clock.now(), Err(Fault::Gpu(error.code)));
        }
    }

    /// A copy ended: a read has landed, a write goes on to its file.
    fn copy_done(&mut self, clock: &Clock, slot: u32, result: Result<(), GpuError>) {
        let now = clock.now();
        let Some(held) = self.slots[slot as usize].as_mut() else { return };
        if let Err(error) = result {
            held.handed = if held.request.op == Op::Write { now } else { held.handed };
            return self.land(slot, now, Err(Fault::Gpu(error.code)));
        }
        if held.request.op == Op::Read {
            return self.land(slot, now, Ok(()));
        }
        held.handed = now;
        let request = held.request;
        let io = self.io(&request);
        self.offer(clock, io);
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

    /// Pushes a write, or holds it until the engine has room.
    fn offer(&mut self, clock: &Clock, io: Io) {
        match self.engine.push(io) {
            Push::Taken => {}
            Push::Full(io) => self.held.push_back(io),
            Push::Done(done) => self.file_done(clock, done),
        }
    }

    fn reap_files(&mut self, clock: &Clock, at_least: usize) -> Result<(), PathError> {
        if self.engine.in_flight() == 0 {
            return Ok(());
        }
        let mut dones = std::mem::take(&mut self.dones);
        let reaped = self.engine.reap(&mut dones, at_least);
        for done in dones.drain(..) {
            self.file_done(clock, done);
        }
        self.dones = dones;
        reaped?;
        for _ in 0..self.held.len() {
            let Some(io) = self.held.pop_front() else { break };
            self.offer(clock, io);
        }
        Ok(())
    }

    /// Takes every copy that is done, asking only for the oldest of each stream.
    fn poll_copies(&mut self, clock: &Clock) {
        for at in 0..self.copies.len() {
            while let Some(&slot) = self.copies[at].front() {
                let result = match self.events[slot as usize].query() {
                    Ok(false) => break,
                    Ok(true) => Ok(()),
                    Err(error) => Err(error),
                };
                self.copies[at].pop_front();
                self.copying -= 1;
                self.copy_done(clock, slot, result);
            }
        }
    }

    /// Waits for the oldest copy of the stream whose turn it is.
    fn await_copy(&mut self, clock: &Clock) {
        for step in 0..self.copies.len() {
            let at = (self.turn + step) % self.copies.len();
            let Some(slot) = self.copies[at].pop_front() else { continue };
            self.turn = (at + 1) % self.copies.len();
            self.copying -= 1;
            let result = self.events[slot as usize].sync();
            return self.copy_done(clock, slot, result);
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        for stream in &self.streams {
            // A broken driver has stopped its copies as well; there is nobody left to tell.
            let _ = stream.sync();
        }
    }
}

impl Path for Ring {
    fn start(&mut self, clock: &Clock, request: Request) -> Start {
        let slot = request.slot;
        self.slots[slot as usize] = Some(Slot { request, handed: request.started });
        match request.op {
            Op::Read => match self.engine.push(self.io(&request)) {
                Push::Taken => {}
                Push::Full(_) => {
                    self.slots[slot as usize] = None;
                    return Start::Full;
                }
                Push::Done(done) => self.file_done(clock, done),
            },
            Op::Write => {
                if let Err(error) = self.copy(slot, &request) {
                    self.land(slot, clock.now(), Err(Fault::Gpu(error.code)));
                }
            }
        }
        self.out += 1;
        Start::Taken
    }

    fn advance(
        &mut self,
        clock: &Clock,
        landed: &mut Vec<Landed>,
        wait: bool,
    ) -> Result<(), PathError> {
        let before = landed.len();
        loop {
            self.out -= self.ready.len();
            landed.append(&mut self.ready);
            if landed.len() > before || self.out == 0 {
                return Ok(());
            }
            self.reap_files(clock, 0)?;
            if !wait || self.ready.is_empty() {
                self.poll_copies(clock);
            }
            if !self.ready.is_empty() {
                continue;
            }
            if !wait {
                return Ok(());
            }
            // A copy takes tens of microseconds and file I/Os go on meanwhile, so the copy is
            // the one to wait for; only without copies does the thread sleep in the engine.
            if self.copying > 0 {
                self.await_copy(clock);
            } else {
                self.reap_files(clock, 1)?;
            }
        }
    }

    fn in_flight(&self) -> usize {
        self.out
    }

    fn synchronous(&self) -> bool {
        self.engine.synchronous()
    }

    fn generate(&mut self, slot: u32, key: u64, offset: u64, len: u32) -> Result<(), PathError> {
        let at = self.stream_of(slot);
        let device = self.device(slot);
        match &self.judge {
            Judge::Gpu { kernels, .. } => {
                let stream = &self.streams[at];
                // SAFETY: the slot's own part of the destination, idle until the sync below.
                let filled =
                    unsafe { kernels.fill(stream, device, u64::from(len), key, offset) };
                filled.and_then(|()| stream.sync()).map_err(|source| self.gpu_error(source))
            }
            Judge::Cpu => {
                let place = self.destination_bytes(slot, len)?;
                // SAFETY: `place` is the slot's own part of a host allocation, `len` bytes long,
                // and the slot is idle.
                let bytes = unsafe { std::slice::from_raw_parts_mut(place, len as usize) };
                pattern::fill(bytes, key, offset);
                Ok(())
            }
        }
    }

    fn check(
        &mut self,
        slot: u32,
        key: u64,
        offset: u64,
        len: u32,
    ) -> Result<Option<Mismatch>, PathError> {
        let at = self.stream_of(slot);
        let device = self.device(slot);
        let found = match &mut self.judge {
            Judge::Gpu { checker, .. } => {
                let stream = &self.streams[at];
                // SAFETY: the slot's own part of the destination; its read has landed.
                let found =
                    unsafe { checker.check(stream, device, u64::from(len), key, offset) };
                found.map_err(|source| PathError::Gpu { path: self.name, source })?
            }
            Judge::Cpu => {
                let place = self.destination_bytes(slot, len)?;
                // SAFETY: as in `generate`.
                let bytes = unsafe { std::slice::from_raw_parts(place, len as usize) };
                pattern::check(bytes, key, offset)
            }
        };
        // The pinned slot still holds what came from the file: it tells which leg went wrong.
        Ok(found.map(|m| {
            let from_file = pattern::check(self.memory.bytes_of(slot, len), key, offset);
            Mismatch {
                offset: m.first_offset,
                expected: m.expected,
                found: m.found,
                bad_words: m.bad_words,
                leg: Some(if from_file.is_some() { Leg::File } else { Leg::Gpu }),
            }
        }))
    }
}

impl Ring {
    fn destination_bytes(&self, slot: u32, len: u32) -> Result<*mut u8, PathError> {
        let at = slot as usize * self.memory.stride();
        let base = self.destination.host_ptr().ok_or_else(|| PathError::Setup {
            path: self.name,
            what: format!("{len} bytes of a host destination are not visible to the host"),
        })?;
        Ok(base.as_ptr().wrapping_add(at))
    }
}
