//! I/O in the order of streams, in groups with one event behind each: what `gds-stream` (groups of
//! one) and `gds-batch-stream` share.

use gpuio_cufile::{StreamIo, StreamRegistration};
use gpuio_gpu::GpuError;

use super::buffers::{GdsBuffers, direction, fault, setup, sides};
use super::grouped::{self, Groups, Queue};
use crate::clock::Clock;
use crate::path::stream_queues::{Ended, StreamQueues};
use crate::path::{Fault, OpenedPath, PathConfig, PathError};

/// Looks at the streams in one wait, between two looks at the clock.
const LOOKS: u32 = 64;

struct Streamed {
    // Drop order: registrations before their streams, and both before what the I/Os use.
    _registrations: Vec<StreamRegistration>,
    queues: StreamQueues,
    calls: StreamIo,
    /// Slots by group; a group is in flight, or idle and empty.
    groups: Vec<Vec<u32>>,
    idle: Vec<u32>,
    full: usize,
    /// The stream of the next group.
    next: usize,
}

/// Opens a path whose requests go into streams in groups of `full`.
pub(in crate::path) fn open(
    path: &'static str,
    config: &PathConfig,
    full: u32,
) -> Result<OpenedPath, PathError> {
    let buffers = GdsBuffers::open(path, config)?;
    let (gpu, cufile) = sides(path, config)?;
    let calls = StreamIo::new(&cufile.driver, config.slots);
    let calls = calls.map_err(|error| setup(path, error.to_string()))?;
    let full = full.clamp(1, config.slots);
    let groups = config.slots.div_ceil(full);
    let queues = StreamQueues::new(&gpu.context, gpu.streams, groups);
    let queues = queues.map_err(|source| PathError::Gpu { path, source })?;
    let mut registrations = Vec::new();
    for at in 0..queues.count() {
        // SAFETY: the registrations go before the streams, and `put` sets all parameters first.
        let made = unsafe { StreamRegistration::new(&cufile.driver, queues.stream(at).as_raw()) };
        registrations.extend(made.map_err(|error| setup(path, error.to_string()))?);
    }
    let mut steps_down = Vec::new();
    if registrations.is_empty() {
        steps_down
            .push("this cuFile has no cuFileStreamRegister: streams are not registered".into());
    }
    let streamed = Streamed {
        _registrations: registrations,
        queues,
        calls,
        groups: (0..groups).map(|_| Vec::with_capacity(full as usize)).collect(),
        idle: (0..groups).rev().collect(),
        full: full as usize,
        next: 0,
    };
    let opened = grouped::assemble(path, config, full, buffers, streamed)?;
    Ok(OpenedPath { steps_down, ..opened })
}

impl Streamed {
    /// A stream has passed a group: its requests have completed, or go on where they stopped short.
    fn group_done(&mut self, queue: &mut Queue, clock: &Clock, (number, result): Ended) {
        let now = clock.now();
        queue.stall.broken();
        let mut group = std::mem::take(&mut self.groups[number as usize]);
        for slot in group.drain(..) {
            match &result {
                Err(GpuError { code, .. }) => {
                    queue.progress.complete(slot, now, Err(Fault::Gpu(*code)));
                }
                Ok(()) => {
                    // SAFETY: the event behind the I/O was reached.
                    let outcome = unsafe { self.calls.outcome(slot) };
                    if queue.progress.moved(slot, now, outcome) {
                        queue.open.push(slot);
                    }
                }
            }
        }
        self.groups[number as usize] = group;
        self.idle.push(number);
    }

    /// Takes every group that its stream has passed; whether there was one.
    fn poll(&mut self, queue: &mut Queue, clock: &Clock) -> bool {
        let before = self.idle.len();
        for at in 0..self.queues.count() {
            while let Some(ended) = self.queues.poll(at) {
                self.group_done(queue, clock, ended);
            }
        }
        self.idle.len() > before
    }
}

impl Groups for Streamed {
    /// The group goes into the next stream.
    fn submit(&mut self, queue: &mut Queue, clock: &Clock) -> bool {
        let Some(number) = self.idle.pop() else {
            return false;
        };
        let at = self.next;
        self.next = (at + 1) % self.queues.count();
        let Queue { buffers, progress, open, .. } = queue;
        let mut group = std::mem::take(&mut self.groups[number as usize]);
        let count = open.len().min(self.full);
        for slot in open.drain(..count) {
            let Some((request, done)) = progress.of(slot) else { continue };
            let (piece, handle) = (buffers.rest(&request, done), buffers.handle(&request));
            let stream = self.queues.stream(at).as_raw();
            // SAFETY: the slot's place among the parameters and its part of the destination are the
            // request's alone until it completes, and both live until the streams were waited for.
            let put =
                unsafe { self.calls.enqueue(direction(request.op), handle, piece, slot, stream) };
            match put {
                Ok(()) => group.push(slot),
                Err(error) => progress.complete(slot, clock.now(), Err(fault(error))),
            }
        }
        let empty = group.is_empty();
        self.groups[number as usize] = group;
        if empty {
            self.idle.push(number);
            return true;
        }
        // It stays without memory of its own unless the mark was refused.
        let mut over = Vec::new();
        self.queues.mark(at, number, Ok(()), &mut over);
        for ended in over {
            self.group_done(queue, clock, ended);
        }
        true
    }

    fn is_idle(&self) -> bool {
        self.queues.is_idle()
    }

    fn look(&mut self, queue: &mut Queue, clock: &Clock, wait: bool) {
        for _ in 0..LOOKS {
            if self.poll(queue, clock) || !wait {
                return;
            }
            std::hint::spin_loop();
        }
        std::thread::yield_now();
    }
}
