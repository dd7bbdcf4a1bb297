//! The pinned ring between an engine and a GPU: what `staged` and `cached` have in common.
//!
//! Slot `n` is a place in page-locked host memory and its twin in the destination memory. A read
//! runs file → pinned slot, then an asynchronous copy on stream `n mod streams`; a write runs the
//! other way. Slots are independent, so the file leg of one overlaps the copies of the others.

mod judge;

use std::collections::VecDeque;

use gpuio_gpu::pattern;
use gpuio_gpu::{DevPtr, DeviceBuf, Event, GpuError, Stream, Wait};

use super::memory::{SlotMemory, refused, stride};
use super::{Config, Fault, Landed, Leg, Mismatch, Opened, Path, PathError, Request, Start};
use crate::clock::{Clock, Nanos};
use crate::engine::{Done, Engine, Io, Op, Push};
use judge::{Judge, Place};

#[derive(Clone, Copy)]
struct Slot {
    request: Request,
    /// When the first of its two legs ended.
    handed: Nanos,
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
    /// Writes that the engine had no room for, oldest first.
    held: VecDeque<Io>,
    /// The engine had no room for a read, and nothing has come back of it since.
    refused: bool,
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
    let destination = DeviceBuf::alloc(&gpu.context, gpu.memory, len)
        .map_err(|source| refused(name, &config, gpu.memory, source))?;
    let streams = gpu.streams.min(config.slots).max(1);
    let streams = make(streams, || Stream::new(&gpu.context));
    let streams = streams.map_err(driver)?;
    let events = make(config.slots, || Event::new(&gpu.context, Wait::Spin)).map_err(driver)?;
    let judge = Judge::new(&gpu, &destination).map_err(driver)?;
    let (host_bytes, device_bytes) = if destination.is_host() {
        (memory.bytes() + len as u64, 0)
    } else {
        (memory.bytes(), len as u64)
    };
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
        refused: false,
        dones: Vec::with_capacity(slots),
        ready: Vec::with_capacity(slots),
        out: 0,
    };
    Ok(Opened {
        path: Box::new(ring),
        engine_got: engine.got,
        steps_down: engine.steps_down,
        host_bytes,
        device_bytes,
    })
}

fn make<T>(n: u32, mut one: impl FnMut() -> Result<T, GpuError>) -> Result<Vec<T>, GpuError> {
    (0..n).map(|_| one()).collect()
}

impl Ring {
    fn stream_of(&self, slot: u32) -> usize {
        slot as usize % self.streams.len()
    }

    fn place(&self, slot: u32, len: u32) -> Place {
        assert!(
            len as usize <= self.memory.stride(),
            "a block of {len} bytes does not fit its slot"
        );
        let at = slot as usize * self.memory.stride();
        Place { at, len }
    }

    fn gpu_error(&self, source: GpuError) -> PathError {
        PathError::Gpu { path: self.name, source }
    }

    /// Queues the copy of a slot in the request's direction and the event behind it. After an
    /// error nothing of it is under way.
    fn copy(&mut self, clock: &Clock, slot: u32, request: &Request) -> Result<(), GpuError> {
        let at = self.stream_of(slot);
        let stream = &self.streams[at];
        let place = self.place(slot, request.len);
        let device = self.destination.ptr().byte_add(place.at as u64);
        let host = self.memory.slot(slot).as_ptr();
        let len = request.len as usize;
        match (request.op, self.destination.is_host()) {
            // SAFETY: both ranges are this slot's own, at least `len` long, live until `Drop` has
            // waited for the stream, and are not touched before the event behind is done.
            (Op::Read, false) => unsafe { stream.h2d(device, host, len) }?,
            // SAFETY: as above, the other way round.
            (Op::Write, false) => unsafe { stream.d2h(host, device, len) }?,
            // The calls above take device memory only.
            // SAFETY: as above.
            (Op::Read, true) => unsafe { stream.copy(device, DevPtr(host as u64), len) }?,
            // SAFETY: as above.
            (Op::Write, true) => unsafe { stream.copy(DevPtr(host as u64), device, len) }?,
        }
        if let Err(error) = self.events[slot as usize].record(stream) {
            // The copy is under way without a mark. Those before it are taken by their own marks
            // first, so that the stream's answer is about this one, which failed anyway.
            while self.await_oldest(clock, at) {}
            let _ = self.streams[at].sync();
            return Err(error);
        }
        self.copies[at].push_back(slot);
        self.copying += 1;
        Ok(())
    }

    fn land(&mut self, slot: u32, now: Nanos, result: Result<(), Fault>) {
        let Some(held) = self.slots[slot as usize].take() else {
            return;
        };
        let request = held.request;
        let first = held.handed.saturating_sub(request.started);
        let second = now.saturating_sub(held.handed);
        let (file_ns, gpu_ns) = match request.op {
            Op::Read => (first, second),
            Op::Write => (second, first),
        };
        self.ready.push(Landed { request, result, ended: now, file_ns, gpu_ns });
    }

    /// Notes that a slot's first leg ended; its request, if the slot is in use.
    fn hand(&mut self, slot: u32, now: Nanos) -> Option<Request> {
        let held = self.slots[slot as usize].as_mut()?;
        held.handed = now;
        Some(held.request)
    }

    /// Starts the copy of a request, or lands it.
    fn start_copy(&mut self, clock: &Clock, request: &Request) {
        if let Err(error) = self.copy(clock, request.slot, request) {
            let now = clock.now();
            if request.op == Op::Write {
                self.hand(request.slot, now);
            }
            self.land(request.slot, now, Err(Fault::Gpu(error.code)));
        }
    }

    /// A file I/O came back at `now`: a read goes on to its copy, a write has landed.
    fn file_done(&mut self, clock: &Clock, now: Nanos, done: Done) {
        let slot = done.io.token;
        if done.io.op == Op::Write {
            return self.land(slot, now, done.result.map(|_| ()).map_err(Fault::File));
        }
        let Some(request) = self.hand(slot, now) else {
            return;
        };
        match done.result {
            Ok(_) => self.start_copy(clock, &request),
            Err(fault) => self.land(slot, now, Err(Fault::File(fault))),
        }
    }

    /// A copy ended: a read has landed, a write goes on to its file.
    fn copy_done(&mut self, clock: &Clock, slot: u32, result: Result<(), GpuError>) {
        if result.is_err() {
            // Whether the copy failed or only the question, it must be over before the slot is
            // used again. A stream that can't be waited for is one of a lost context.
            let event = &self.events[slot as usize];
            let _ = event.sync().or_else(|_| self.streams[self.stream_of(slot)].sync());
        }
        let now = clock.now();
        let Some(held) = self.slots[slot as usize] else {
            return;
        };
        let request = held.request;
        if request.op == Op::Write {
            self.hand(slot, now);
        }
        match (result, request.op) {
            (Err(error), _) => self.land(slot, now, Err(Fault::Gpu(error.code))),
            (Ok(()), Op::Read) => self.land(slot, now, Ok(())),
            (Ok(()), Op::Write) => {
                let io = self.io(&request);
                self.held.push_back(io);
                self.offer(clock);
            }
        }
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

    /// Pushes the writes that are held, in their order, as far as the engine has room.
    fn offer(&mut self, clock: &Clock) {
        while let Some(io) = self.held.pop_front() {
            match self.engine.push(io) {
                Push::Taken => {}
                Push::Full(io) => return self.held.push_front(io),
                Push::Done(done) => self.file_done(clock, clock.now(), done),
            }
        }
    }

    /// Takes what the engine has done. With `at_least`, waits for as many of those out, or for
    /// room if it has none out and refused some.
    fn reap_files(&mut self, clock: &Clock, at_least: usize) -> Result<(), PathError> {
        if self.engine.in_flight() == 0 && self.held.is_empty() && !self.refused {
            return Ok(());
        }
        let mut dones = std::mem::take(&mut self.dones);
        let reaped = self.engine.reap(&mut dones, at_least);
        self.refused = false;
        if !dones.is_empty() {
            // One stamp for all that came back: queueing the copy of one is no file time of the
            // next.
            let now = clock.now();
            for done in dones.drain(..) {
                self.file_done(clock, now, done);
            }
        }
        self.dones = dones;
        reaped?;
        self.offer(clock);
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

    /// Waits for the oldest copy of a stream; false if it has none.
    fn await_oldest(&mut self, clock: &Clock, at: usize) -> bool {
        let Some(slot) = self.copies[at].pop_front() else {
            return false;
        };
        self.copying -= 1;
        let result = self.events[slot as usize].sync();
        self.copy_done(clock, slot, result);
        true
    }

    /// Waits for the oldest copy of the stream whose turn it is.
    fn await_copy(&mut self, clock: &Clock) {
        for _ in 0..self.copies.len() {
            let at = self.turn;
            self.turn = (at + 1) % self.copies.len();
            if self.await_oldest(clock, at) {
                return;
            }
        }
    }

    /// Moves requests on until one has landed; without `wait`, as far as they are.
    fn drive(&mut self, clock: &Clock, wait: bool) -> Result<(), PathError> {
        while self.ready.is_empty() {
            self.reap_files(clock, 0)?;
            if !wait || self.ready.is_empty() {
                self.poll_copies(clock);
            }
            if !self.ready.is_empty() || !wait {
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
        Ok(())
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        for (stream, copies) in self.streams.iter().zip(&self.copies) {
            if stream.sync().is_ok() {
                continue;
            }
            // The answer may be a copy's failure, or a refusal to wait. A broken driver has
            // stopped its copies as well; there is nobody left to tell.
            for &slot in copies {
                let _ = self.events[slot as usize].sync();
            }
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
                    self.refused = true;
                    self.slots[slot as usize] = None;
                    return Start::Full;
                }
                Push::Done(done) => self.file_done(clock, clock.now(), done),
            },
            Op::Write => self.start_copy(clock, &request),
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
        let outcome = if self.out > 0 {
            self.drive(clock, wait)
        } else if wait && self.refused {
            self.reap_files(clock, 1)
        } else {
            Ok(())
        };
        // Also after an error: these have landed.
        self.out -= self.ready.len();
        landed.append(&mut self.ready);
        outcome
    }

    fn in_flight(&self) -> usize {
        self.out
    }

    fn synchronous(&self) -> bool {
        self.engine.synchronous()
    }

    fn generate(&mut self, slot: u32, key: u64, offset: u64, len: u32) -> Result<(), PathError> {
        let place = self.place(slot, len);
        // SAFETY: the slot's own part of the destination; the slot is idle.
        let filled = unsafe { self.judge.fill(place, key, offset) };
        filled.map_err(|source| self.gpu_error(source))
    }

    fn check(
        &mut self,
        slot: u32,
        key: u64,
        offset: u64,
        len: u32,
    ) -> Result<Option<Mismatch>, PathError> {
        let place = self.place(slot, len);
        // SAFETY: the slot's own part of the destination; its read has landed.
        let found = unsafe { self.judge.check(place, key, offset) };
        let found = found.map_err(|source| self.gpu_error(source))?;
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
