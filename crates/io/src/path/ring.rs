//! The pinned ring between an engine and a GPU: what `staged` and `cached` have in common.
//!
//! Slot `n` is a place in page-locked host memory and its twin in the destination memory. A read
//! runs file → pinned slot, then an asynchronous copy on stream `n mod streams`; a write runs the
//! other way. Slots are independent, so the file leg of one overlaps the copies of the others.

use gpuio_gpu::GpuError;

use super::ends::{self, Ends};
use super::file_leg::FileLeg;
use super::judge::{self, Judge};
use super::lanes::{Ended, Lanes};
use super::requests::Requests;
use super::{Config, Fault, Landed, Mismatch, Opened, Path, PathError, Request, Start};
use crate::clock::{Clock, Nanos};
use crate::engine::{Done, Op, Push};

struct Ring {
    name: &'static str,
    // Drop order: the streams are waited for, then the engine waits for its I/Os, and only then
    // does the memory go.
    lanes: Lanes,
    files: FileLeg,
    judge: Judge,
    ends: Ends,
    requests: Requests,
    dones: Vec<Done>,
}

/// Opens a ring. Called on the worker's thread, which from then on has the GPU's context current.
pub(super) fn open(name: &'static str, config: Config) -> Result<Opened, PathError> {
    let gpu = ends::gpu(name, &config)?;
    let driver = |source| PathError::Gpu { path: name, source };
    gpu.context.make_current().map_err(driver)?;
    let ends = Ends::new(name, &config, &gpu, None)?;
    let engine = super::open_engine(&config, ends.area())?;
    let lanes = Lanes::new(&gpu.context, gpu.streams, config.slots).map_err(driver)?;
    let judge = Judge::new(&gpu, ends.destination()).map_err(driver)?;
    let (host_bytes, device_bytes) = ends.bytes();
    let ring = Ring {
        name,
        lanes,
        files: FileLeg::new(engine.engine, config.slots),
        judge,
        ends,
        requests: Requests::new(config.slots),
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

    /// Queues the copy of a slot in the request's direction and the event behind it. After an
    /// error nothing of it is under way.
    fn copy(&mut self, clock: &Clock, request: &Request) -> Result<(), GpuError> {
        let at = request.slot as usize % self.lanes.count();
        let (slot, len) = (request.slot, self.ends.place(request.slot, request.len).len as usize);
        // SAFETY: `place` checked the length; the slot is this request's alone until the event
        // behind is done, and its memory is dropped after the streams were waited for.
        unsafe { self.ends.copy(self.lanes.stream(at), request.op, slot, len) }?;
        if let Err(error) = self.lanes.mark(at, slot) {
            // The copy is under way without a mark. Those before it are taken by their own marks
            // first, so that the stream's answer is about this one, which failed anyway.
            while let Some(ended) = self.lanes.oldest(at) {
                self.copy_done(clock, ended);
            }
            self.lanes.quiet(at);
            return Err(error);
        }
        Ok(())
    }

    /// Starts the copy of a request, or lands it.
    fn start_copy(&mut self, clock: &Clock, request: &Request) {
        if let Err(error) = self.copy(clock, request) {
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

    /// A copy ended: a read has landed, a write goes on to its file.
    fn copy_done(&mut self, clock: &Clock, (slot, result): Ended) {
        let now = clock.now();
        let Some(request) = self.requests.of(slot) else {
            return;
        };
        if request.op == Op::Write {
            self.requests.hand(slot, now);
        }
        match (result, request.op) {
            (Err(error), _) => self.requests.land(slot, now, Err(Fault::Gpu(error.code))),
            (Ok(()), Op::Read) => self.requests.land(slot, now, Ok(())),
            (Ok(()), Op::Write) => {
                self.files.hold(self.ends.io(&request));
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
            Op::Read => match self.files.push(self.ends.io(&request)) {
                Push::Taken => {}
                Push::Full(_) => {
                    self.requests.give_back(request.slot);
                    return Start::Full;
                }
                Push::Done(done) => self.file_done(clock, clock.now(), done),
            },
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
        let place = self.ends.place(slot, len);
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
        let place = self.ends.place(slot, len);
        // SAFETY: the slot's own part of the destination; its read has landed.
        let found = unsafe { self.judge.check(place, key, offset) };
        let found = found.map_err(|source| self.gpu_error(source))?;
        Ok(found.map(|m| judge::blame(m, self.ends.bytes_of(slot, len), key, offset)))
    }
}
