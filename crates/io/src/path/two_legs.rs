//! A path of two legs: an engine between file and slots, a mover between slots and destination.
//!
//! A slot is a place in host memory and one in the destination. A read runs file → slot → mover, a
//! write mover → slot → file. Slots are independent, so the file leg of one overlaps the GPU leg of
//! others. Paths of this kind differ in their slots and their mover alone.

use std::time::Duration;

use gpuio_gpu::GpuError;

use super::file_leg::FileLeg;
use super::judge::{self, Judge, Place};
use super::lanes::Ended;
use super::requests::Requests;
use super::{Config, Fault, Landed, Mismatch, Opened, Path, PathError, Request, Start};
use crate::clock::{Clock, Nanos};
use crate::engine::{Area, Done, Io, Op, Push};

/// The memory of a path's slots at both ends.
pub(super) trait Slots {
    /// The host memory of all slots, if an engine may keep it registered.
    fn area(&self) -> Option<Area>;

    /// Bytes of host memory and of GPU memory.
    fn bytes(&self) -> (u64, u64);

    /// The file I/O of a request.
    fn io(&self, request: &Request) -> Io;

    /// The first `len` bytes of a slot where they were asked for.
    ///
    /// # Panics
    /// If they are more than the slot holds.
    fn place(&self, slot: u32, len: u32) -> Place;

    /// Makes the judge's kernels run on this thread, until [`Slots::judged`].
    ///
    /// # Errors
    /// The driver's refusal.
    fn judge(&self) -> Result<(), GpuError> {
        Ok(())
    }

    /// Makes an idle slot's place one that a kernel may fill, waiting for it. A place in which a
    /// read has landed is one that a kernel may look at without.
    ///
    /// # Errors
    /// The driver's refusal.
    fn fillable(&self, _slot: u32, _len: u32) -> Result<(), GpuError> {
        Ok(())
    }

    /// Ends what [`Slots::judge`] began.
    ///
    /// # Errors
    /// The driver's refusal.
    fn judged(&self) -> Result<(), GpuError> {
        Ok(())
    }

    /// What came from the file into a slot whose read has landed, if it still stands there.
    fn held_from_file(&self, slot: u32, len: u32) -> Option<&[u8]>;
}

/// Moves blocks between the two ends of slots.
///
/// [`TwoLegs`] drops it before the slots that it was given, and gives it a slot again only after
/// the slot came back: what a mover has under way may use both ends until it has waited in its own
/// `drop`.
pub(super) trait Mover {
    /// The slots that it can move.
    type Slots: Slots;

    /// Begins what must be over before a file may be read into the request's slot. True if there is
    /// anything: it comes back as from [`Mover::put`].
    fn ready(&mut self, _: &Self::Slots, _: &Request, _ended: &mut Vec<Ended>) -> bool {
        false
    }

    /// Takes a request whose GPU leg is next. It comes back through `ended`, here or in a later
    /// call, once and with its outcome.
    fn put(&mut self, slots: &Self::Slots, request: &Request, ended: &mut Vec<Ended>);

    /// Gives back what is over, without waiting.
    fn poll(&mut self, ended: &mut Vec<Ended>);

    /// Nothing has come back and the files have been asked: what waits for company, waits for
    /// nothing else if the GPU leg is idle.
    fn nudge(&mut self, _slots: &Self::Slots, _ended: &mut Vec<Ended>) {}

    /// Waits until something is over and gives it back; false if nothing is under way.
    fn wait(&mut self, ended: &mut Vec<Ended>) -> bool;

    /// Whether it has nothing.
    fn is_idle(&self) -> bool;

    /// Bytes of host memory beside the slots.
    fn bytes(&self) -> u64 {
        0
    }
}

struct TwoLegs<M: Mover> {
    name: &'static str,
    // Drop order: the mover waits for what it has under way, then the engine for its I/Os, and only
    // then does the memory go.
    mover: M,
    files: FileLeg,
    judge: Judge,
    slots: M::Slots,
    requests: Requests,
    /// By slot: whether what the mover has of it comes before the file leg of its read.
    readying: Vec<bool>,
    dones: Vec<Done>,
    ended: Vec<Ended>,
}

/// Opens a path over these slots. Called on the worker's thread, which has the mover's context
/// current.
pub(super) fn open<M: Mover<Slots: 'static> + 'static>(
    name: &'static str,
    config: &Config,
    judge: Judge,
    slots: M::Slots,
    mover: M,
) -> Result<Opened, PathError> {
    let engine = super::open_engine(config, slots.area())?;
    let (host_bytes, device_bytes) = slots.bytes();
    let host_bytes = host_bytes + mover.bytes();
    let count = config.slots as usize;
    let path = TwoLegs {
        name,
        mover,
        files: FileLeg::new(engine.engine, config.slots),
        judge,
        slots,
        requests: Requests::new(config.slots),
        readying: vec![false; count],
        dones: Vec::with_capacity(count),
        ended: Vec::with_capacity(count),
    };
    Ok(Opened {
        path: Box::new(path),
        engine_got: engine.got,
        steps_down: engine.steps_down,
        host_bytes,
        device_bytes,
        helpers: engine.helpers,
    })
}

impl<M: Mover> TwoLegs<M> {
    /// Takes what the mover gave back: a read has landed, a write goes on to its file, and so does
    /// a read whose slot is ready for it.
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
                    self.files.hold(self.slots.io(&request));
                }
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
            Ok(_) => self.mover.put(&self.slots, &request, &mut self.ended),
            Err(fault) => self.requests.land(slot, now, Err(Fault::File(fault))),
        }
    }

    /// Pushes the I/Os that are held, as far as the engine has room.
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

    fn start_read(&mut self, clock: &Clock, request: &Request) -> Start {
        if self.mover.ready(&self.slots, request, &mut self.ended) {
            self.readying[request.slot as usize] = true;
            return Start::Taken;
        }
        match self.files.push(self.slots.io(request)) {
            Push::Taken => {}
            Push::Full(_) => {
                self.requests.give_back(request.slot);
                return Start::Full;
            }
            Push::Done(done) => self.file_done(clock.now(), done),
        }
        Start::Taken
    }

    /// Runs the judge where its kernels can run.
    fn judging<T>(
        &mut self,
        work: impl FnOnce(&M::Slots, &mut Judge) -> Result<T, GpuError>,
    ) -> Result<T, PathError> {
        let TwoLegs { slots, judge, name: path, .. } = self;
        let found = slots.judge().and_then(|()| work(slots, judge));
        let over = slots.judged();
        let found = found.and_then(|found| over.map(|()| found));
        found.map_err(|source| PathError::Gpu { path, source })
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
                self.mover.nudge(&self.slots, &mut self.ended);
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
        self.requests.take(request);
        match request.op {
            Op::Read => self.start_read(clock, &request),
            Op::Write => {
                self.mover.put(&self.slots, &request, &mut self.ended);
                Start::Taken
            }
        }
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

    /// What the mover has takes microseconds and can't be waited for with an end: only without does
    /// the thread sleep, in the engine.
    fn doze(&mut self, patience: Duration) -> Result<(), PathError> {
        if self.mover.is_idle() && self.ended.is_empty() && self.requests.none_ready() {
            self.files.doze(patience)?;
        }
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.requests.out()
    }

    fn synchronous(&self) -> bool {
        self.files.synchronous()
    }

    fn generate(&mut self, slot: u32, key: u64, offset: u64, len: u32) -> Result<(), PathError> {
        let place = self.slots.place(slot, len);
        self.judging(|slots, judge| {
            slots.fillable(slot, len)?;
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
        let place = self.slots.place(slot, len);
        // SAFETY: the slot's own part of the destination; its read has landed.
        let found = self.judging(|_, judge| unsafe { judge.check(place, key, offset) })?;
        Ok(found.map(|m| judge::blame(m, self.slots.held_from_file(slot, len), key, offset)))
    }
}
