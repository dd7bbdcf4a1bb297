//! The ring between an engine and a GPU: what `staged`, `cached`, `managed` and `routed` have in
//! common. How bytes cross between a slot and its place on the GPU is a [`Crossing`].
//!
//! A read runs file → slot, then an asynchronous GPU leg on stream `n mod streams`; a write runs
//! the other way. Slots are independent, so the file leg of one overlaps the copies of the others.

use gpuio_gpu::{Context, GpuError};

use super::crossing::{Crossing, Refused};
use super::ends::{self, Ends};
use super::file_leg::FileLeg;
use super::judge::{self, Judge};
use super::lanes::{Ended, Lanes};
use super::requests::Requests;
use super::{Config, Fault, Landed, Mismatch, Opened, Path, PathError, Request, Start};
use crate::clock::{Clock, Nanos};
use crate::engine::{Done, Op, Push};

/// What a path brings to its ring.
pub(super) struct Parts {
    pub(super) crossing: Box<dyn Crossing>,
    pub(super) judge: Judge,
    /// Context and number of the streams.
    pub(super) lanes: (Context, u32),
    pub(super) host_bytes: u64,
    pub(super) device_bytes: u64,
}

struct Ring {
    name: &'static str,
    // Drop order: the streams are waited for, then the engine waits for its I/Os, and only then
    // does the memory go.
    lanes: Lanes,
    files: FileLeg,
    judge: Judge,
    crossing: Box<dyn Crossing>,
    requests: Requests,
    /// By slot: whether what is under way for it comes before the file leg of its read.
    readying: Vec<bool>,
    dones: Vec<Done>,
}

/// What is put into a stream for a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// What comes before the file leg of a read.
    Ready,
    /// The GPU leg.
    Cross,
}

/// Opens a ring with one copy per block. Called on the worker's thread, which from then on has the
/// GPU's context current.
pub(super) fn open(name: &'static str, config: &Config) -> Result<Opened, PathError> {
    let gpu = ends::gpu(name, config)?;
    let driver = |source| PathError::Gpu { path: name, source };
    gpu.context.make_current().map_err(driver)?;
    let ends = Ends::new(name, config, &gpu, None)?;
    let judge = Judge::new(&gpu, ends.destination()).map_err(driver)?;
    let (host_bytes, device_bytes) = ends.bytes();
    let lanes = (gpu.context, gpu.streams);
    let crossing = Box::new(ends);
    assemble(name, config, Parts { crossing, judge, lanes, host_bytes, device_bytes })
}

/// Opens the engine and the streams around a path's parts.
pub(super) fn assemble(
    name: &'static str,
    config: &Config,
    parts: Parts,
) -> Result<Opened, PathError> {
    let Parts { crossing, judge, lanes: (context, streams), host_bytes, device_bytes } = parts;
    let engine = super::open_engine(config, crossing.area())?;
    let lanes = Lanes::new(&context, streams, config.slots);
    let ring = Ring {
        name,
        lanes: lanes.map_err(|source| PathError::Gpu { path: name, source })?,
        files: FileLeg::new(engine.engine, config.slots),
        judge,
        crossing,
        requests: Requests::new(config.slots),
        readying: vec![false; config.slots as usize],
        dones: Vec::with_capacity(config.slots as usize),
    };
    Ok(Opened {
        path: Box::new(ring),
        engine_got: engine.got,
        steps_down: engine.steps_down,
        host_bytes,
        device_bytes,
    })
}

impl Ring {
    fn gpu_error(&self, source: GpuError) -> PathError {
        PathError::Gpu { path: self.name, source }
    }

    /// Queues the GPU leg of a slot in the request's direction, or what has to come before the
    /// file leg of a read, and the event behind it. Answers whether anything is under way; after an
    /// error nothing of it is.
    fn queue(&mut self, clock: &Clock, request: &Request, what: Step) -> Result<bool, GpuError> {
        let at = request.slot as usize % self.lanes.count();
        let (stream, slot, len) = (self.lanes.stream(at), request.slot, request.len);
        let put = match what {
            Step::Ready => self.crossing.ready(stream, slot, len),
            Step::Cross => {
                // SAFETY: the slot is this request's alone until the event behind is done, and its
                // memory is dropped after the streams were waited for.
                let put = unsafe { self.crossing.cross(stream, request.op, slot, len) };
                put.map(|()| true)
            }
        };
        let marked = match put {
            Ok(false) => return Ok(false),
            Ok(true) => self.lanes.mark(at, slot).map_err(|error| Refused { error, begun: true }),
            Err(refused) => Err(refused),
        };
        let Err(Refused { error, begun }) = marked else {
            return Ok(true);
        };
        if begun {
            // Something is under way without a mark. What was before it is taken by its own marks
            // first, so that the stream's answer is about this one, which failed anyway.
            while let Some(ended) = self.lanes.oldest(at) {
                self.copy_done(clock, ended);
            }
            self.lanes.quiet(at);
        }
        Err(error)
    }

    /// Starts the GPU leg of a request, or lands it.
    fn start_copy(&mut self, clock: &Clock, request: &Request) {
        if let Err(error) = self.queue(clock, request, Step::Cross) {
            let now = clock.now();
            if request.op == Op::Write {
                self.requests.hand(request.slot, now);
            }
            self.requests.land(request.slot, now, Err(Fault::Gpu(error.code)));
        }
    }

    /// A file I/O came back at `now`: a read goes on to its copy, a write has landed.
    fn file_done(&mut self, clock: &Clock, now: Nanos, done: Done) {
        let slot = done.io.token;
        if done.io.op == Op::Write {
            let result = done.result.map(|_| ()).map_err(Fault::File);
            return self.requests.land(slot, now, result);
        }
        let Some(request) = self.requests.hand(slot, now) else {
            return;
        };
        match done.result {
            Ok(_) => self.start_copy(clock, &request),
            Err(fault) => self.requests.land(slot, now, Err(Fault::File(fault))),
        }
    }

    /// A GPU leg ended: a read has landed, a write goes on to its file; or a slot is ready for the
    /// file of its read.
    fn copy_done(&mut self, clock: &Clock, (slot, result): Ended) {
        let now = clock.now();
        let Some(request) = self.requests.of(slot) else {
            return;
        };
        let readying = std::mem::take(&mut self.readying[slot as usize]);
        if request.op == Op::Write {
            self.requests.hand(slot, now);
        }
        match (result, request.op) {
            (Err(error), _) => self.requests.land(slot, now, Err(Fault::Gpu(error.code))),
            (Ok(()), Op::Read) if !readying => self.requests.land(slot, now, Ok(())),
            (Ok(()), op) => {
                if op == Op::Read {
                    self.requests.readied(slot, now);
                }
                self.files.hold(self.crossing.io(&request));
                self.offer(clock);
            }
        }
    }

    /// Pushes the writes that are held, as far as the engine has room.
    fn offer(&mut self, clock: &Clock) {
        while let Some(done) = self.files.offer() {
            self.file_done(clock, clock.now(), done);
        }
    }

    /// Takes what the engine has done, waiting as [`FileLeg::reap`] does.
    fn reap_files(&mut self, clock: &Clock, at_least: usize) -> Result<(), PathError> {
        if self.files.is_idle() {
            return Ok(());
        }
        let mut dones = std::mem::take(&mut self.dones);
        let reaped = self.files.reap(&mut dones, at_least);
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

    /// Takes every copy that is done.
    fn poll_copies(&mut self, clock: &Clock) {
        for at in 0..self.lanes.count() {
            while let Some(ended) = self.lanes.poll(at) {
                self.copy_done(clock, ended);
            }
        }
    }

    fn start_read(&mut self, clock: &Clock, request: &Request) -> Start {
        self.readying[request.slot as usize] = true;
        match self.queue(clock, request, Step::Ready) {
            Ok(true) => return Start::Taken,
            Ok(false) => self.readying[request.slot as usize] = false,
            Err(error) => {
                self.readying[request.slot as usize] = false;
                self.requests.land(request.slot, clock.now(), Err(Fault::Gpu(error.code)));
                return Start::Taken;
            }
        }
        match self.files.push(self.crossing.io(request)) {
            Push::Taken => {}
            Push::Full(_) => {
                self.requests.give_back(request.slot);
                return Start::Full;
            }
            Push::Done(done) => self.file_done(clock, clock.now(), done),
        }
        Start::Taken
    }

    /// Runs the judge where its kernels can run.
    fn judging<T>(
        &mut self,
        work: impl FnOnce(&dyn Crossing, &mut Judge) -> Result<T, GpuError>,
    ) -> Result<T, PathError> {
        let Ring { crossing, judge, .. } = self;
        let found = crossing.judge().and_then(|()| work(crossing.as_ref(), judge));
        let over = self.crossing.judged();
        found.and_then(|found| over.map(|()| found)).map_err(|source| self.gpu_error(source))
    }

    /// Moves requests on until one has landed; without `wait`, as far as they are.
    fn drive(&mut self, clock: &Clock, wait: bool) -> Result<(), PathError> {
        while self.requests.none_ready() {
            self.reap_files(clock, 0)?;
            if !wait || self.requests.none_ready() {
                self.poll_copies(clock);
            }
            if !self.requests.none_ready() || !wait {
                return Ok(());
            }
            // A copy takes tens of microseconds and file I/Os go on meanwhile, so the copy is
            // the one to wait for; only without copies does the thread sleep in the engine.
            match self.lanes.any() {
                Some(ended) => self.copy_done(clock, ended),
                None => self.reap_files(clock, 1)?,
            }
        }
        Ok(())
    }
}

impl Path for Ring {
    fn start(&mut self, clock: &Clock, request: Request) -> Start {
        self.requests.take(request);
        match request.op {
            Op::Read => return self.start_read(clock, &request),
            Op::Write => self.start_copy(clock, &request),
        }
        Start::Taken
    }

    fn advance(
        &mut self,
        clock: &Clock,
        landed: &mut Vec<Landed>,
        wait: bool,
    ) -> Result<(), PathError> {
        let outcome = if self.requests.out() > 0 {
            self.drive(clock, wait)
        } else if wait && self.files.has_refused() {
            self.reap_files(clock, 1)
        } else {
            Ok(())
        };
        // Also after an error: these have landed.
        self.requests.deliver(landed);
        outcome
    }

    fn in_flight(&self) -> usize {
        self.requests.out()
    }

    fn synchronous(&self) -> bool {
        self.files.synchronous()
    }

    fn generate(&mut self, slot: u32, key: u64, offset: u64, len: u32) -> Result<(), PathError> {
        let place = self.crossing.place(slot, len);
        self.judging(|crossing, judge| {
            crossing.fillable(slot, len)?;
            // SAFETY: the slot's own part of the destination; the slot is idle.
            unsafe { judge.fill(place, key, offset) }
        })
    }

    fn check(
        &mut self,
        slot: u32,
        key: u64,
        offset: u64,
        len: u32,
    ) -> Result<Option<Mismatch>, PathError> {
        let place = self.crossing.place(slot, len);
        // SAFETY: the slot's own part of the destination; its read has landed.
        let found = self.judging(|_, judge| unsafe { judge.check(place, key, offset) })?;
        Ok(found.map(|m| judge::blame(m, self.crossing.held_from_file(slot, len), key, offset)))
    }
}
