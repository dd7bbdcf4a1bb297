//! A path of two legs: an engine between file and slots, a GPU stage between slots and destination.
//!
//! A slot has memory in the host and a location in the destination. A read runs file → slot → GPU
//! stage, a write GPU stage → slot → file. Slots are independent, so the file leg of one overlaps
//! the GPU leg of others. Paths of this kind differ in their slots and their GPU stage alone.
//!
//! The staging is not that of the library core (`transfer`), whose threads any caller may use:
//! there a thread borrows a ring for one call, moves a piece at a time, sleeps while it waits for
//! long, and page-locked memory is never freed. Here one worker owns as many slots as its depth, an
//! engine fills them in any order and may keep them registered, each slot has an event that is
//! polled without sleeping, and all of it goes with the path, of which a run opens many. The common
//! parts are in `gpu`: page-locked memory, streams, events, the cut of blocks into pieces, lists of
//! pieces, and the kernel that copies them.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use gpuio_gpu::{GpuError, Stream};

use super::stream_queues::Ended;
use super::verifier::{self, Verifier};
use super::{
    Completion, Fault, Mismatch, OpenedPath, Path, PathConfig, PathError, PatternBlock, Place,
    Request, Start,
};
use crate::clock::{Clock, Nanos};
use crate::engine::{Done, Engine, HostRegion, Io, Op, Push};

/// The memory of a path's slots on both sides.
pub(super) trait Slots {
    /// The host memory of all slots, if an engine may keep it registered.
    fn region(&self) -> Option<HostRegion>;

    /// Bytes of host memory and of GPU memory.
    fn bytes(&self) -> (u64, u64);

    /// The file I/O of a request.
    fn io(&self, request: &Request) -> Io;

    /// The range of the destination's bytes in which the first `len` bytes of a slot end.
    ///
    /// # Panics
    /// If they are more than the slot holds.
    fn location(&self, slot: u32, len: u32) -> Range<usize>;

    /// Makes the verifier's kernels run on this thread, until [`Slots::end_verify`].
    ///
    /// # Errors
    /// The driver's refusal.
    fn begin_verify(&self) -> Result<(), GpuError> {
        Ok(())
    }

    /// Prepares an idle slot's location so that a kernel may fill it, and waits for that. A kernel
    /// may look at a location in which a read has completed without this call.
    ///
    /// # Errors
    /// The driver's refusal.
    fn fillable(&self, _slot: u32, _len: u32) -> Result<(), GpuError> {
        Ok(())
    }

    /// Ends what [`Slots::begin_verify`] began.
    ///
    /// # Errors
    /// The driver's refusal.
    fn end_verify(&self) -> Result<(), GpuError> {
        Ok(())
    }

    /// Puts into the stream what must be over before a file may be read into the request's slot.
    /// Answers whether there was anything.
    ///
    /// # Errors
    /// The driver's refusal.
    fn ready(&self, _: &Stream, _: &Request) -> Result<bool, GpuError> {
        Ok(false)
    }

    /// Puts a request's GPU leg into the stream.
    ///
    /// # Errors
    /// The driver's refusal; a part of the leg may be in the stream.
    ///
    /// # Safety
    /// Nothing else uses the request's slot, and `self` lives, until the stream has passed it.
    unsafe fn transfer(&self, stream: &Stream, request: &Request) -> Result<(), GpuError>;

    /// The bytes from the file in a slot whose read has completed, if they still stand there. Asked
    /// for reads in [`Place::Slot`] only.
    fn held_from_file(&self, slot: u32, len: u32) -> Option<&[u8]>;
}

/// Moves blocks between the two sides of slots.
///
/// [`TwoLegs`] drops it before the slots that it was given, and gives it a slot again only after
/// the slot came back: what a GPU stage has in flight may use both sides until it has waited in its
/// own `drop`.
pub(super) trait GpuStage<S: Slots> {
    /// Begins what must be over before a file may be read into the request's slot. True if there is
    /// anything: it comes back as from [`GpuStage::enqueue`].
    fn ready(&mut self, _: &S, _: &Request, _ended: &mut Vec<Ended>) -> bool {
        false
    }

    /// Takes a request whose GPU leg is next. It comes back through `ended`, here or in a later
    /// call, once and with its outcome.
    fn enqueue(&mut self, slots: &S, request: &Request, ended: &mut Vec<Ended>);

    /// Gives back what is over, without waiting.
    fn poll(&mut self, ended: &mut Vec<Ended>);

    /// Called when nothing completed and the engine has been reaped: a batch that is not full need
    /// not wait for more blocks if the GPU is idle.
    fn flush(&mut self, _slots: &S, _ended: &mut Vec<Ended>) {}

    /// Waits until something is over and gives it back; false if nothing is in flight.
    fn wait(&mut self, ended: &mut Vec<Ended>) -> bool;

    /// Whether it has nothing.
    fn is_idle(&self) -> bool;

    /// Bytes of host memory in addition to the slots.
    fn bytes(&self) -> u64 {
        0
    }
}

#[derive(Clone, Copy)]
struct InFlightRequest {
    request: Request,
    /// When the first of its two legs ended.
    handed: Nanos,
    /// When the file leg of a read began, if something of the GPU leg came before it.
    prepared: Option<Nanos>,
}

/// Requests in flight, by slot, and those that have completed.
pub(super) struct Requests {
    slots: Vec<Option<InFlightRequest>>,
    completed: Vec<Completion>,
    /// Requests taken and not yet delivered.
    out: usize,
}

impl Requests {
    pub(super) fn new(slots: u32) -> Requests {
        let slots = slots as usize;
        Requests { slots: vec![None; slots], completed: Vec::with_capacity(slots), out: 0 }
    }

    /// Notes a request that starts.
    pub(super) fn take(&mut self, request: Request) {
        self.slots[request.slot as usize] =
            Some(InFlightRequest { request, handed: request.started, prepared: None });
        self.out += 1;
    }

    /// Forgets a request that was taken and found no space.
    fn give_back(&mut self, slot: u32) {
        self.slots[slot as usize] = None;
        self.out -= 1;
    }

    /// The request of a slot, if it is in use.
    pub(super) fn of(&self, slot: u32) -> Option<Request> {
        self.slots.get(slot as usize)?.map(|held| held.request)
    }

    /// Notes where in its file the bytes of a slot's request are.
    pub(super) fn move_to(&mut self, slot: u32, offset: u64) {
        if let Some(held) = self.slots[slot as usize].as_mut() {
            held.request.offset = offset;
        }
    }

    /// Notes that a slot's first leg ended; its request, if the slot is in use.
    fn hand(&mut self, slot: u32, now: Nanos) -> Option<Request> {
        let held = self.slots[slot as usize].as_mut()?;
        held.handed = now;
        Some(held.request)
    }

    /// Notes that the file leg of a slot's read begins only now: what was until then belongs to the
    /// GPU leg.
    fn prepared(&mut self, slot: u32, now: Nanos) {
        if let Some(held) = self.slots[slot as usize].as_mut() {
            (held.handed, held.prepared) = (now, Some(now));
        }
    }

    /// Ends a request and frees its slot.
    pub(super) fn complete(&mut self, slot: u32, now: Nanos, result: Result<(), Fault>) {
        let Some(held) = self.slots[slot as usize].take() else {
            return;
        };
        let request = held.request;
        let before = held.prepared.map_or(0, |at| at.saturating_sub(request.started));
        let first = held.handed.saturating_sub(request.started) - before;
        let second = now.saturating_sub(held.handed);
        let (file_ns, gpu_ns) = match request.op {
            Op::Read => (first, before + second),
            Op::Write => (second, first),
        };
        self.completed.push(Completion { request, result, ended: now, file_ns, gpu_ns });
    }

    /// The same for a request whose time in the file leg is known, or whose legs can't be
    /// distinguished: then all of its time is the file's.
    pub(super) fn complete_legs(
        &mut self,
        slot: u32,
        ended: Nanos,
        result: Result<(), Fault>,
        file_ns: Option<Nanos>,
    ) {
        let Some(held) = self.slots[slot as usize].take() else {
            return;
        };
        let request = held.request;
        let whole = ended.saturating_sub(request.started);
        // Another clock than the run's may be ahead of it by one of its steps.
        let file_ns = file_ns.unwrap_or(whole).min(whole);
        let gpu_ns = whole - file_ns;
        self.completed.push(Completion { request, result, ended, file_ns, gpu_ns });
    }

    /// Whether none has completed since the last [`Requests::deliver`].
    pub(super) fn none_completed(&self) -> bool {
        self.completed.is_empty()
    }

    /// Gives those that have completed to the worker.
    pub(super) fn deliver(&mut self, completed: &mut Vec<Completion>) {
        self.out -= self.completed.len();
        completed.append(&mut self.completed);
    }

    /// Requests taken and not yet delivered.
    pub(super) fn out(&self) -> usize {
        self.out
    }
}

struct TwoLegs<S: Slots, M: GpuStage<S>> {
    name: &'static str,
    // Drop order: the GPU stage waits for what it has in flight, then the engine for its I/Os, and
    // only then does the memory go.
    gpu_stage: M,
    engine: Box<dyn Engine>,
    verifier: Verifier,
    slots: S,
    requests: Requests,
    /// I/Os whose slot is ready and that the engine has not taken yet, oldest first.
    held: VecDeque<Io>,
    /// The engine had no space for a read, and was not reaped since.
    refused: bool,
    /// By slot: whether what the GPU stage has of it comes before the file leg of its read.
    preparing: Vec<bool>,
    /// By slot: whether its last read came through memory that is not its own.
    elsewhere: Vec<bool>,
    dones: Vec<Done>,
    ended: Vec<Ended>,
}

/// Opens a path over these slots. Called on the worker's thread, which has the GPU stage's context
/// current.
pub(super) fn open<S: Slots + 'static, M: GpuStage<S> + 'static>(
    name: &'static str,
    config: &PathConfig,
    verifier: Verifier,
    slots: S,
    gpu_stage: M,
) -> Result<OpenedPath, PathError> {
    let engine = super::open_engine(config, slots.region())?;
    let (host_bytes, device_bytes) = slots.bytes();
    let host_bytes = host_bytes + gpu_stage.bytes();
    let count = config.slots as usize;
    let path = TwoLegs {
        name,
        gpu_stage,
        engine: engine.engine,
        verifier,
        slots,
        requests: Requests::new(config.slots),
        held: VecDeque::with_capacity(count),
        refused: false,
        preparing: vec![false; count],
        elsewhere: vec![false; count],
        dones: Vec::with_capacity(count),
        ended: Vec::with_capacity(count),
    };
    Ok(OpenedPath {
        path: Box::new(path),
        actual_engine: engine.actual,
        steps_down: engine.steps_down,
        host_bytes,
        device_bytes,
        helpers: engine.helpers,
    })
}

impl<S: Slots, M: GpuStage<S>> TwoLegs<S, M> {
    /// Takes what the GPU stage gave back: a read has completed, a write goes on to its file, and
    /// so does a read whose slot is ready for it.
    fn take_gpu_completions(&mut self, clock: &Clock) {
        if self.ended.is_empty() {
            return;
        }
        let now = clock.now();
        let mut ended = std::mem::take(&mut self.ended);
        for (slot, result) in ended.drain(..) {
            let Some(request) = self.requests.of(slot) else {
                continue;
            };
            let preparing = std::mem::take(&mut self.preparing[slot as usize]);
            if request.op == Op::Write {
                self.requests.hand(slot, now);
            }
            match (result, request.op) {
                (Err(error), _) => self.requests.complete(slot, now, Err(Fault::Gpu(error.code))),
                (Ok(()), Op::Read) if !preparing => self.requests.complete(slot, now, Ok(())),
                (Ok(()), op) => {
                    if op == Op::Read {
                        self.requests.prepared(slot, now);
                    }
                    self.held.push_back(self.slots.io(&request));
                }
            }
        }
        self.ended = ended;
        self.offer(clock);
    }

    /// A file I/O came back at `now`: a read goes on to the GPU stage, a write has completed.
    fn file_done(&mut self, now: Nanos, done: Done) {
        let slot = done.io.token;
        if done.io.op == Op::Write {
            let result = done.result.map(|_| ()).map_err(Fault::File);
            return self.requests.complete(slot, now, result);
        }
        let Some(request) = self.requests.hand(slot, now) else {
            return;
        };
        match done.result {
            Ok(_) => self.gpu_stage.enqueue(&self.slots, &request, &mut self.ended),
            Err(fault) => self.requests.complete(slot, now, Err(Fault::File(fault))),
        }
    }

    /// Pushes the I/Os that are held, in their order, as far as the engine has space.
    fn offer(&mut self, clock: &Clock) {
        while let Some(io) = self.held.pop_front() {
            match self.engine.push(io) {
                Push::Taken => {}
                Push::Full(io) => return self.held.push_front(io),
                Push::Done(done) => self.file_done(clock.now(), done),
            }
        }
    }

    /// Takes what the engine has done. Waits for `at_least` I/Os; if none is in flight and some
    /// were refused, for space in the engine.
    fn reap_files(&mut self, clock: &Clock, at_least: usize) -> Result<(), PathError> {
        if self.engine.in_flight() == 0 && self.held.is_empty() && !self.refused {
            return Ok(());
        }
        let mut dones = std::mem::take(&mut self.dones);
        // After an error too, what the engine had done is there.
        let reaped = self.engine.reap(&mut dones, at_least);
        self.refused = false;
        if !dones.is_empty() {
            // One stamp for all that came back: queueing the copy of one is no file time of the
            // next.
            let now = clock.now();
            for done in dones.drain(..) {
                self.file_done(now, done);
            }
        }
        self.dones = dones;
        self.take_gpu_completions(clock);
        reaped?;
        self.offer(clock);
        Ok(())
    }

    fn start_read(&mut self, clock: &Clock, request: &Request) -> Start {
        self.elsewhere[request.slot as usize] = request.place != Place::Slot;
        if matches!(request.place, Place::Kept(_)) {
            // It has no file leg.
            self.gpu_stage.enqueue(&self.slots, request, &mut self.ended);
            return Start::Taken;
        }
        if self.gpu_stage.ready(&self.slots, request, &mut self.ended) {
            self.preparing[request.slot as usize] = true;
            return Start::Taken;
        }
        match self.engine.push(self.slots.io(request)) {
            Push::Taken => {}
            Push::Full(_) => {
                self.refused = true;
                self.requests.give_back(request.slot);
                return Start::Full;
            }
            Push::Done(done) => self.file_done(clock.now(), done),
        }
        Start::Taken
    }

    /// Runs the verifier where its kernels can run.
    fn verify_with<T>(
        &mut self,
        work: impl FnOnce(&S, &mut Verifier) -> Result<T, GpuError>,
    ) -> Result<T, PathError> {
        let TwoLegs { slots, verifier, name: path, .. } = self;
        let found = slots.begin_verify().and_then(|()| work(slots, verifier));
        let over = slots.end_verify();
        let found = found.and_then(|found| over.map(|()| found));
        found.map_err(|source| PathError::Gpu { path, source })
    }

    /// Moves requests on until one has completed; without `wait`, as far as they are.
    fn drive(&mut self, clock: &Clock, wait: bool) -> Result<(), PathError> {
        self.take_gpu_completions(clock);
        while self.requests.none_completed() {
            self.reap_files(clock, 0)?;
            if !wait || self.requests.none_completed() {
                self.gpu_stage.poll(&mut self.ended);
                self.take_gpu_completions(clock);
            }
            if self.requests.none_completed() {
                self.gpu_stage.flush(&self.slots, &mut self.ended);
                self.take_gpu_completions(clock);
            }
            if !self.requests.none_completed() || !wait {
                return Ok(());
            }
            // The GPU stage's work takes microseconds and file I/Os go on at the same time, so it
            // is the one to wait for; only without does the thread sleep in the engine.
            if self.gpu_stage.wait(&mut self.ended) {
                self.take_gpu_completions(clock);
            } else {
                self.reap_files(clock, 1)?;
            }
        }
        Ok(())
    }
}

impl<S: Slots, M: GpuStage<S>> Path for TwoLegs<S, M> {
    fn start(&mut self, clock: &Clock, request: Request) -> Start {
        self.requests.take(request);
        match request.op {
            Op::Read => self.start_read(clock, &request),
            Op::Write => {
                self.gpu_stage.enqueue(&self.slots, &request, &mut self.ended);
                Start::Taken
            }
        }
    }

    fn advance(
        &mut self,
        clock: &Clock,
        completed: &mut Vec<Completion>,
        wait: bool,
    ) -> Result<(), PathError> {
        let outcome = if self.requests.out() > 0 {
            self.drive(clock, wait)
        } else if wait && self.refused {
            self.reap_files(clock, 1)
        } else {
            Ok(())
        };
        // Also after an error: these have completed.
        self.requests.deliver(completed);
        outcome
    }

    /// The GPU stage's work takes microseconds and can't be waited for with an end: only without
    /// does the thread sleep, in the engine.
    fn wait_timeout(&mut self, timeout: Duration) -> Result<(), PathError> {
        if self.gpu_stage.is_idle() && self.ended.is_empty() && self.requests.none_completed() {
            self.engine.wait_timeout(timeout)?;
        }
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.requests.out()
    }

    fn synchronous(&self) -> bool {
        self.engine.synchronous()
    }

    fn generate(&mut self, block: PatternBlock) -> Result<(), PathError> {
        let PatternBlock { slot, key, offset, len } = block;
        let location = self.slots.location(slot, len);
        self.verify_with(|slots, verifier| {
            slots.fillable(slot, len)?;
            // SAFETY: the slot's own part of the destination; the slot is idle.
            unsafe { verifier.fill(location, key, offset) }
        })
    }

    fn check(&mut self, block: PatternBlock) -> Result<Option<Mismatch>, PathError> {
        let PatternBlock { slot, key, offset, len } = block;
        let location = self.slots.location(slot, len);
        // SAFETY: the slot's own part of the destination; its read has completed.
        let found =
            self.verify_with(|_, verifier| unsafe { verifier.check(location, key, offset) })?;
        Ok(found.map(|m| {
            // Memory that others share may hold another block by now.
            let held = match self.elsewhere[slot as usize] {
                true => None,
                false => self.slots.held_from_file(slot, len),
            };
            verifier::locate_mismatch(m, held, key, offset)
        }))
    }

    fn copy_out(&mut self, slot: u32, into: &mut [u8]) -> Result<(), PathError> {
        let len = u32::try_from(into.len()).unwrap_or(u32::MAX);
        let location = self.slots.location(slot, len);
        // SAFETY: the slot's own part of the destination; its read has completed.
        self.verify_with(|_, verifier| unsafe { verifier.copy_out(location, into) })
    }
}
