//! I/O in the order of streams, in groups with one event behind each: what `gds-stream` (groups of
//! one) and `gds-batch-stream` share.

use gpuio_cufile::{StreamIo, StreamRegistration};
use gpuio_gpu::GpuError;

use super::ends::{GdsEnds, fault, setup, sides, way};
use super::progress::Progress;
use super::silence::{Settle, Settled, Silence};
use crate::clock::Clock;
use crate::path::lanes::{Ended, Lanes};
use crate::path::{Config, Fault, Landed, Mismatch, Opened, Path, PathError, Request, Start};

/// Looks at the streams between two looks at the clock.
const LOOKS: u32 = 64;

struct Parts {
    // Drop order: registrations before their streams, and both before what the I/Os use.
    _registrations: Vec<StreamRegistration>,
    lanes: Lanes,
    calls: StreamIo,
    ends: GdsEnds,
    progress: Progress,
    /// Slots by group; a group is under way, or idle and empty.
    groups: Vec<Vec<u32>>,
    idle: Vec<u32>,
    /// Slots that wait to be put into a stream, oldest first.
    open: Vec<u32>,
    /// Slots at which a group is put into its stream.
    full: usize,
    /// The stream of the next group.
    next: usize,
    silence: Silence,
    stuck: bool,
    path: &'static str,
}

pub(in crate::path) struct Streamed(Settled<Parts>);

/// Opens a path whose requests go into streams in groups of `full`.
pub(in crate::path) fn open(
    path: &'static str,
    config: &Config,
    full: u32,
) -> Result<Opened, PathError> {
    let ends = GdsEnds::open(path, config)?;
    let (gpu, cufile) = sides(path, config)?;
    let calls = StreamIo::new(&cufile.driver, config.slots);
    let calls = calls.map_err(|error| setup(path, error.to_string()))?;
    let full = full.clamp(1, config.slots);
    let groups = config.slots.div_ceil(full);
    let lanes = Lanes::new(&gpu.context, gpu.streams, groups);
    let lanes = lanes.map_err(|source| PathError::Gpu { path, source })?;
    let mut registrations = Vec::new();
    for at in 0..lanes.count() {
        // SAFETY: the registrations go before the streams, and `put` sets all parameters first.
        let made = unsafe { StreamRegistration::new(&cufile.driver, lanes.stream(at).as_raw()) };
        registrations.extend(made.map_err(|error| setup(path, error.to_string()))?);
    }
    let mut steps_down = Vec::new();
    if registrations.is_empty() {
        steps_down.push("this cuFile has no cuFileStreamRegister: it is told of no stream".into());
    }
    let told = ends.told(&cufile.driver);
    let parts = Parts {
        _registrations: registrations,
        lanes,
        calls,
        ends,
        progress: Progress::new(config.slots, &config.counters),
        groups: (0..groups).map(|_| Vec::with_capacity(full as usize)).collect(),
        idle: (0..groups).rev().collect(),
        open: Vec::with_capacity(config.slots as usize),
        full: full as usize,
        next: 0,
        silence: Silence::new(cufile.silence_most),
        stuck: false,
        path,
    };
    Ok(told.of(Box::new(Streamed(Settled::new(parts))), steps_down))
}

impl Parts {
    /// Puts full groups into streams, as far as groups are idle.
    fn offer(&mut self, clock: &Clock) {
        while self.open.len() >= self.full && !self.idle.is_empty() {
            self.launch(clock);
        }
    }

    /// Puts the oldest slots that wait into the next stream, as one group.
    fn launch(&mut self, clock: &Clock) {
        let Some(number) = self.idle.pop() else { return };
        let at = self.next;
        self.next = (at + 1) % self.lanes.count();
        let mut group = std::mem::take(&mut self.groups[number as usize]);
        let count = self.open.len().min(self.full);
        for slot in self.open.drain(..count) {
            let Some((request, done)) = self.progress.of(slot) else { continue };
            let (piece, handle) = (self.ends.rest(&request, done), self.ends.handle(&request));
            let stream = self.lanes.stream(at).as_raw();
            // SAFETY: the slot's place among the parameters and its part of the destination are the
            // request's alone until it lands, and both live until the streams were waited for.
            let put = unsafe { self.calls.put(way(request.op), handle, piece, slot, stream) };
            match put {
                Ok(()) => group.push(slot),
                Err(error) => self.progress.land(slot, clock.now(), Err(fault(error))),
            }
        }
        let empty = group.is_empty();
        self.groups[number as usize] = group;
        if empty {
            self.idle.push(number);
        } else {
            // It stays without memory of its own unless the mark was refused.
            let mut over = Vec::new();
            self.lanes.mark(at, number, Ok(()), &mut over);
            for ended in over {
                self.group_done(clock, ended);
            }
        }
    }

    /// A stream has passed a group: its requests have landed, or go on where they stopped short.
    fn group_done(&mut self, clock: &Clock, (number, result): Ended) {
        let now = clock.now();
        self.silence.broken();
        let mut group = std::mem::take(&mut self.groups[number as usize]);
        for slot in group.drain(..) {
            match &result {
                Err(GpuError { code, .. }) => {
                    self.progress.land(slot, now, Err(Fault::Gpu(*code)));
                }
                Ok(()) => {
                    // SAFETY: the event behind the I/O was reached.
                    let outcome = unsafe { self.calls.outcome(slot) };
                    if self.progress.moved(slot, now, outcome) {
                        self.open.push(slot);
                    }
                }
            }
        }
        self.groups[number as usize] = group;
        self.idle.push(number);
    }

    /// Takes every group that its stream has passed.
    fn poll(&mut self, clock: &Clock) {
        for at in 0..self.lanes.count() {
            while let Some(ended) = self.lanes.poll(at) {
                self.group_done(clock, ended);
            }
        }
    }

    /// Moves requests on until one has landed; without `wait`, as far as they are.
    fn drive(&mut self, clock: &Clock, wait: bool) -> Result<(), PathError> {
        let mut looks = 0;
        loop {
            self.poll(clock);
            self.offer(clock);
            // Nothing is under way: what has come so far gains nothing by waiting for more.
            if self.lanes.is_idle() && !self.open.is_empty() {
                self.launch(clock);
            }
            if !wait || !self.progress.none_ready() || self.progress.out() == 0 {
                return Ok(());
            }
            looks += 1;
            if looks == LOOKS {
                looks = 0;
                self.patience(clock)?;
            }
            std::hint::spin_loop();
        }
    }

    /// Lets others run, and counts how long nothing has ended.
    fn patience(&mut self, clock: &Clock) -> Result<(), PathError> {
        std::thread::yield_now();
        let goes_on = self.silence.goes_on(clock, self.path, self.progress.out());
        self.stuck |= goes_on.is_err();
        goes_on
    }
}

impl Settle for Parts {
    fn settle(&mut self) -> bool {
        let clock = Clock::start();
        // It was counted on the run's clock.
        self.silence.broken();
        while !self.stuck && !self.lanes.is_idle() {
            self.poll(&clock);
            // An error is noted in `stuck`.
            let _ = self.patience(&clock);
        }
        !self.stuck
    }
}

impl Path for Streamed {
    fn start(&mut self, clock: &Clock, request: Request) -> Start {
        self.0.progress.take(request);
        self.0.open.push(request.slot);
        self.0.offer(clock);
        Start::Taken
    }

    fn advance(
        &mut self,
        clock: &Clock,
        landed: &mut Vec<Landed>,
        wait: bool,
    ) -> Result<(), PathError> {
        let outcome = self.0.drive(clock, wait);
        // Also after an error: these have landed.
        self.0.progress.deliver(landed);
        outcome
    }

    fn in_flight(&self) -> usize {
        self.0.progress.out()
    }

    fn synchronous(&self) -> bool {
        false
    }

    fn generate(&mut self, slot: u32, key: u64, offset: u64, len: u32) -> Result<(), PathError> {
        self.0.ends.generate(slot, key, offset, len)
    }

    fn check(
        &mut self,
        slot: u32,
        key: u64,
        offset: u64,
        len: u32,
    ) -> Result<Option<Mismatch>, PathError> {
        self.0.ends.check(slot, key, offset, len)
    }
}
