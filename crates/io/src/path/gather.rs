//! `gather`: many blocks cross to or from GPU memory in one launch.
//!
//! A read runs file → pinned slot and then joins the open batch; a write joins it at once. A full
//! batch is one launch of a kernel with a list of (slot, destination, length), and one event. The
//! driver takes some 0.5 million calls a second from a whole process, so that paths with a copy
//! per block end there; a launch of 128 blocks takes the calls of one. Slots stay few, so that the
//! ring stays in the thread's share of cache: a block is read by the GPU from where the CPU just
//! wrote it.
//!
//! A batch that is not full is launched when it would wait for nothing but itself: when the GPU
//! leg is idle and the worker has looked at the files, or is about to sleep for them. A lone block
//! is one plain copy, as on `staged`.
//!
//! **Destinations.** With [`GpuSide::scatter`] slot `n` has a place in the destination that is not
//! behind that of slot `n − 1`: random blocks of an application have destinations of their own,
//! and a path that let them lie as they lie in its ring could move a batch of them by one copy
//! that no application could use. Without it places follow slots, as for a file that is read from
//! front to back into one buffer, and a batch whose slots lie side by side is one plain copy. The
//! plan scatters random loads and not sequential ones, and says so.
//!
//! [`GpuSide::scatter`]: super::GpuSide::scatter

mod batch;
mod carry;
mod spread;

use gpuio_gpu::GpuError;

use super::crossing::Refused;
use super::ends::{self, Ends};
use super::file_leg::FileLeg;
use super::judge::{self, Judge};
use super::lanes::{Ended, Lanes};
use super::requests::Requests;
use super::{
    ANY_MEMORY, Config, Fault, Landed, Mismatch, Mover, Opened, Path, PathError, Request, Row,
    Start,
};
use crate::clock::{Clock, Nanos};
use crate::engine::{Done, Op, Push};
use batch::Batch;
use carry::{Carry, Sizes};

const NAME: &str = "gather";

pub(super) const ROW: Row = Row {
    name: NAME,
    gdsio: None,
    gdsio_name: "GATHER",
    summary: "file to a pinned ring, then one launch for many blocks to GPU memory; both overlap",
    needs_gpu: true,
    via_gpu: false,
    buffered_only: false,
    buffered_because: None,
    mover: Mover::Engine,
    batches: true,
    memory: ANY_MEMORY,
    open,
};

struct Gather {
    // Drop order: the streams are waited for, then the engine waits for its I/Os, and only then
    // does the memory go.
    lanes: Lanes,
    files: FileLeg,
    judge: Judge,
    carry: Carry,
    ends: Ends,
    requests: Requests,
    /// By number; the number is also that of the batch's list and event.
    batches: Vec<Batch>,
    /// Parts at which a batch is launched.
    full: usize,
    /// The batch that requests join.
    open: u32,
    /// Batches that are neither open nor under way.
    idle: Vec<u32>,
    /// The stream of the next launch.
    next: usize,
    dones: Vec<Done>,
}

fn open(config: Config) -> Result<Opened, PathError> {
    let gpu = ends::gpu(NAME, &config)?;
    gpu.context.make_current().map_err(gpu_error)?;
    let places = gpu.scatter.then(|| spread::places(config.slots));
    let ends = Ends::new(NAME, &config, &gpu, places)?;
    let engine = super::open_engine(&config, Some(ends.area()))?;
    let parts = gpu.batch.clamp(1, config.slots);
    // Full batches hold all slots at most; beside them are the open one and one that was launched
    // before it was full, which happens only while no other is under way.
    let batches = config.slots / parts + 2;
    let lanes = Lanes::new(&gpu.context, gpu.streams, batches).map_err(gpu_error)?;
    let judge = Judge::new(&gpu, ends.destination()).map_err(gpu_error)?;
    let sizes = Sizes { batches, parts, block_max: config.block_max };
    let reachable = gpu.memory.is_reachable_by_kernels();
    let carry = Carry::new(&gpu.context, sizes, reachable, !gpu.scatter).map_err(gpu_error)?;
    let (host_bytes, device_bytes) = ends.bytes();
    let host_bytes = host_bytes + carry.bytes();
    let stride = ends.stride();
    let gather = Gather {
        lanes,
        files: FileLeg::new(engine.engine, config.slots),
        judge,
        carry,
        ends,
        requests: Requests::new(config.slots),
        batches: (0..batches).map(|_| Batch::new(parts, stride)).collect(),
        full: parts as usize,
        open: 0,
        idle: (1..batches).rev().collect(),
        next: 0,
        dones: Vec::with_capacity(config.slots as usize),
    };
    Ok(Opened {
        path: Box::new(gather),
        engine_got: engine.got,
        steps_down: engine.steps_down,
        host_bytes,
        device_bytes,
    })
}

fn gpu_error(source: GpuError) -> PathError {
    PathError::Gpu { path: NAME, source }
}

impl Gather {
    /// Puts a request whose GPU leg is next into the open batch, and launches that if it is full.
    fn join(&mut self, clock: &Clock, request: &Request) {
        let batch = &mut self.batches[self.open as usize];
        batch.push(request);
        if batch.parts().len() >= self.full {
            self.launch(clock);
        }
    }

    fn has_open(&self) -> bool {
        !self.batches[self.open as usize].parts().is_empty()
    }

    /// Launches the open batch, or lands its requests with the driver's refusal.
    fn launch(&mut self, clock: &Clock) {
        let number = self.open;
        let at = self.next;
        self.next = (at + 1) % self.lanes.count();
        let batch = &self.batches[number as usize];
        // SAFETY: slots are their requests' alone until these land, the list is the batch's until
        // its event is reached, and all of it is dropped after the streams were waited for.
        let put = unsafe { self.carry.put(self.lanes.stream(at), &self.ends, batch, number) };
        let marked = put.and_then(|()| {
            let marked = self.lanes.mark(at, number);
            marked.map_err(|error| Refused { error, begun: true })
        });
        if let Err(Refused { error, begun }) = marked {
            if begun {
                // Something is under way without a mark. Batches before it are taken by their own
                // marks first, so that the stream's answer is about this one, which failed anyway.
                while let Some(ended) = self.lanes.oldest(at) {
                    self.batch_done(clock, ended);
                }
                self.lanes.quiet(at);
            }
            self.batch_done(clock, (number, Err(error)));
        }
        self.open = self.next_open(clock);
    }

    /// A batch to be filled while others are under way.
    fn next_open(&mut self, clock: &Clock) -> u32 {
        loop {
            if let Some(number) = self.idle.pop() {
                return number;
            }
            // There are more batches than can be under way (see `open`), so one is idle; if ever
            // none were, the oldest under way would be the next to be.
            if let Some(ended) = self.lanes.any() {
                self.batch_done(clock, ended);
            }
        }
    }

    /// A batch ended, or was refused: its reads have landed, its writes go on to their files.
    fn batch_done(&mut self, clock: &Clock, (number, result): Ended) {
        let now = clock.now();
        let batch = &mut self.batches[number as usize];
        // A worker takes the slot first that it got back last, so it goes through them in the
        // order in which they came to this batch, and neighbours stay neighbours.
        for part in batch.parts().iter().rev() {
            if part.op == Op::Write {
                self.requests.hand(part.slot, now);
            }
            match (&result, part.op) {
                (Err(error), _) => {
                    self.requests.land(part.slot, now, Err(Fault::Gpu(error.code)));
                }
                (Ok(()), Op::Read) => self.requests.land(part.slot, now, Ok(())),
                (Ok(()), Op::Write) => {
                    let request = self.requests.of(part.slot);
                    if let Some(request) = request {
                        self.files.hold(self.ends.io(&request));
                    }
                }
            }
        }
        batch.clear();
        self.idle.push(number);
        self.offer(clock);
    }

    /// A file I/O came back at `now`: a read goes on to the open batch, a write has landed.
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
            Ok(_) => self.join(clock, &request),
            Err(fault) => self.requests.land(slot, now, Err(Fault::File(fault))),
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
            // One stamp for all that came back: launching a batch is no file time of the next.
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

    /// Takes every batch that is done.
    fn poll_batches(&mut self, clock: &Clock) {
        for at in 0..self.lanes.count() {
            while let Some(ended) = self.lanes.poll(at) {
                self.batch_done(clock, ended);
            }
        }
    }

    /// Moves requests on until one has landed; without `wait`, as far as they are.
    fn drive(&mut self, clock: &Clock, wait: bool) -> Result<(), PathError> {
        while self.requests.none_ready() {
            self.reap_files(clock, 0)?;
            if !wait || self.requests.none_ready() {
                self.poll_batches(clock);
            }
            // The GPU leg is idle: what has come so far gains nothing by waiting for more.
            if self.lanes.is_idle() && self.has_open() && self.requests.none_ready() {
                self.launch(clock);
            }
            if !self.requests.none_ready() || !wait {
                return Ok(());
            }
            // A launch takes tens of microseconds and file I/Os go on meanwhile, so the launch is
            // what to wait for; only without one does the thread sleep in the engine.
            match self.lanes.any() {
                Some(ended) => self.batch_done(clock, ended),
                None => self.reap_files(clock, 1)?,
            }
        }
        Ok(())
    }
}

impl Path for Gather {
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
                Push::Done(done) => self.file_done(clock, clock.now(), done),
            },
            Op::Write => self.join(clock, &request),
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
        filled.map_err(gpu_error)
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
        let found = found.map_err(gpu_error)?;
        Ok(found.map(|m| judge::blame(m, Some(self.ends.bytes_of(slot, len)), key, offset)))
    }
}
