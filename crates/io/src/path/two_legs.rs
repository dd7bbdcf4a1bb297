//! A path of two legs: an engine between file and slots, a mover between slots and destination.
//!
//! Slot `n` is a place in page-locked host memory and its twin in the destination. A read runs file
//! → slot → mover, a write mover → slot → file. Slots are independent, so the file leg of one
//! overlaps the GPU leg of others. Paths of this kind differ in their mover alone.

use gpuio_gpu::GpuError;

use super::ends::Ends;
use super::file_leg::FileLeg;
use super::judge::{self, Judge};
use super::lanes::Ended;
use super::requests::Requests;
use super::{Config, Fault, GpuSide, Landed, Mismatch, Opened, Path, PathError, Request, Start};
use crate::clock::{Clock, Nanos};
use crate::engine::{Done, Op, Push};

/// Moves blocks between slots and the destination.
///
/// [`TwoLegs`] drops it before the [`Ends`] that it was given, and gives it a slot again only after
/// the slot came back: what a mover has under way may use both until it has waited in its own
/// `drop`.
pub(super) trait Mover {
    /// Takes a request whose GPU leg is next. It comes back through `ended`, here or in a later
    /// call, once and with its outcome.
    fn put(&mut self, ends: &Ends, request: &Request, ended: &mut Vec<Ended>);

    /// Gives back what is over, without waiting.
    fn poll(&mut self, ended: &mut Vec<Ended>);

    /// Nothing has come back and the files have been asked: what waits for company, waits for
    /// nothing else if the GPU leg is idle.
    fn nudge(&mut self, ends: &Ends, ended: &mut Vec<Ended>);

    /// Waits until something is over and gives it back; false if nothing is under way.
    fn wait(&mut self, ended: &mut Vec<Ended>) -> bool;

    /// Bytes of host memory beside the slots.
    fn bytes(&self) -> u64 {
        0
    }
}

struct TwoLegs<M> {
    name: &'static str,
    // Drop order: the mover waits for what it has under way, then the engine for its I/Os, and only
    // then does the memory go.
    mover: M,
    files: FileLeg,
    judge: Judge,
    ends: Ends,
    requests: Requests,
    dones: Vec<Done>,
    ended: Vec<Ended>,
}

/// Opens a path over these ends. Called on the worker's thread, which has the GPU's context
/// current.
pub(super) fn open<M: Mover + 'static>(
    name: &'static str,
    config: &Config,
    gpu: &GpuSide,
    ends: Ends,
    mover: M,
) -> Result<Opened, PathError> {
    let driver = |source| PathError::Gpu { path: name, source };
    let engine = super::open_engine(config, Some(ends.area()))?;
    let judge = Judge::new(gpu, ends.destination()).map_err(driver)?;
    let (host_bytes, device_bytes) = ends.bytes();
    let host_bytes = host_bytes + mover.bytes();
    let slots = config.slots as usize;
    let path = TwoLegs {
        name,
        mover,
        files: FileLeg::new(engine.engine, config.slots),
        judge,
        ends,
        requests: Requests::new(config.slots),
        dones: Vec::with_capacity(slots),
        ended: Vec::with_capacity(slots),
    };
    Ok(Opened {
        path: Box::new(path),
        engine_got: engine.got,
        steps_down: engine.steps_down,
        host_bytes,
        device_bytes,
    })
}

impl<M: Mover> TwoLegs<M> {
    fn gpu_error(&self, source: GpuError) -> PathError {
        PathError::Gpu { path: self.name, source }
    }

    /// Takes what the mover gave back: a read has landed, a write goes on to its file.
    fn settle(&mut self, clock: &Clock) {
        if self.ended.is_empty() {
            return;
        }
        let now = clock.now();
        let mut ended = std::mem::take(&mut self.ended);
        for (slot, result) in ended.drain(..) {
            let Some(request) = self.requests.of(slot) else {
                continue;
            };
            if request.op == Op::Write {
                self.requests.hand(slot, now);
            }
            match (result, request.op) {
                (Err(error), _) => self.requests.land(slot, now, Err(Fault::Gpu(error.code))),
                (Ok(()), Op::Read) => self.requests.land(slot, now, Ok(())),
                (Ok(()), Op::Write) => self.files.hold(self.ends.io(&request)),
            }
        }
        self.ended = ended;
        self.offer(clock);
    }

    /// A file I/O came back at `now`: a read goes on to the mover, a write has landed.
    fn file_done(&mut self, now: Nanos, done: Done) {
        let slot = done.io.token;
        if done.io.op == Op::Write {
            let result = done.result.map(|_| ()).map_err(Fault::File);
            return self.requests.land(slot, now, result);
        }
        let Some(request) = self.requests.hand(slot, now) else {
            return;
        };
        match done.result {
            Ok(_) => self.mover.put(&self.ends, &request, &mut self.ended),
            Err(fault) => self.requests.land(slot, now, Err(Fault::File(fault))),
        }
    }

    /// Pushes the writes that are held, as far as the engine has room.
    fn offer(&mut self, clock: &Clock) {
        while let Some(done) = self.files.offer() {
            self.file_done(clock.now(), done);
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
                self.file_done(now, done);
            }
        }
        self.dones = dones;
        self.settle(clock);
        reaped?;
        self.offer(clock);
        Ok(())
    }

    /// Moves requests on until one has landed; without `wait`, as far as they are.
    fn drive(&mut self, clock: &Clock, wait: bool) -> Result<(), PathError> {
        self.settle(clock);
        while self.requests.none_ready() {
            self.reap_files(clock, 0)?;
            if !wait || self.requests.none_ready() {
                self.mover.poll(&mut self.ended);
                self.settle(clock);
            }
            if self.requests.none_ready() {
                self.mover.nudge(&self.ends, &mut self.ended);
                self.settle(clock);
            }
            if !self.requests.none_ready() || !wait {
                return Ok(());
            }
            // What the mover has takes microseconds and file I/Os go on meanwhile, so it is the one
            // to wait for; only without does the thread sleep in the engine.
            if self.mover.wait(&mut self.ended) {
                self.settle(clock);
            } else {
                self.reap_files(clock, 1)?;
            }
        }
        Ok(())
    }
}

impl<M: Mover> Path for TwoLegs<M> {
    fn start(&mut self, clock: &Clock, request: Request) -> Start {
        assert!(request.len as usize <= self.ends.stride(), "a block does not fit its slot");
        self.requests.take(request);
        match request.op {
            Op::Read => match self.files.push(self.ends.io(&request)) {
                Push::Taken => {}
                Push::Full(_) => {
                    self.requests.give_back(request.slot);
                    return Start::Full;
                }
                Push::Done(done) => self.file_done(clock.now(), done),
            },
            Op::Write => self.mover.put(&self.ends, &request, &mut self.ended),
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
        Ok(found.map(|m| judge::blame(m, Some(self.ends.bytes_of(slot, len)), key, offset)))
    }
}
