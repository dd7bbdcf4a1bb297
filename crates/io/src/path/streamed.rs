//! A library's I/O in the order of streams, in groups with one event behind each: what `gds-stream`
//! and `library-stream` (groups of one) and `gds-batch-stream` share. How an I/O gets into a stream
//! is [`StreamCalls`].

use std::time::Duration;

use gpuio_gpu::{Context, GpuError, Stream};

use super::grouped::{self, Buffers, Groups, Queue};
use super::stream_queues::{Ended, StreamQueues};
use super::{Fault, Path, PathConfig, Request};
use crate::clock::Clock;

/// Looks at the streams in one wait, between two looks at the clock.
const LOOKS: u32 = 64;

/// Calls that put I/O into streams.
pub(super) trait StreamCalls {
    /// The buffers of the I/Os.
    type Buffers: Buffers;

    /// Enqueues what is left of a request of which `done` bytes have moved. Refused, it does
    /// nothing later.
    ///
    /// # Errors
    /// The refusal.
    ///
    /// # Safety
    /// The request's slot is its own until its outcome was taken, and `self`, the buffers and the
    /// stream live until the stream has passed the I/O.
    unsafe fn enqueue(
        &mut self,
        buffers: &Self::Buffers,
        request: &Request,
        done: u32,
        stream: &Stream,
    ) -> Result<(), Fault>;

    /// Bytes that the slot's last I/O moved, or why it failed.
    ///
    /// # Safety
    /// The stream has passed the I/O.
    unsafe fn outcome(&mut self, slot: u32) -> Result<usize, Fault>;
}

struct Streamed<C> {
    // `grouped` drops this once nothing is in flight. Registrations of the streams are dropped
    // before them.
    calls: C,
    queues: StreamQueues,
    /// Slots by group; a group is in flight, or idle and empty.
    groups: Vec<Vec<u32>>,
    idle: Vec<u32>,
    full: usize,
    /// The stream of the next group.
    next: usize,
}

/// Streams for groups of `full` requests of this configuration.
///
/// # Errors
/// The driver's refusal.
pub(super) fn queues(
    context: &Context,
    config: &PathConfig,
    full: u32,
) -> Result<StreamQueues, GpuError> {
    let streams = config.gpu.as_ref().map_or(1, |gpu| gpu.streams);
    StreamQueues::new(context, streams, config.slots.div_ceil(full))
}

/// The path whose requests go into these streams in groups of `full`.
pub(super) fn assemble<C: StreamCalls + 'static>(
    path: &'static str,
    config: &PathConfig,
    (full, stall_timeout): (u32, Duration),
    buffers: C::Buffers,
    (queues, calls): (StreamQueues, C),
) -> Box<dyn Path> {
    let groups = config.slots.div_ceil(full);
    let streamed = Streamed {
        queues,
        calls,
        groups: (0..groups).map(|_| Vec::with_capacity(full as usize)).collect(),
        idle: (0..groups).rev().collect(),
        full: full as usize,
        next: 0,
    };
    grouped::assemble(path, config, (full, stall_timeout), buffers, streamed)
}

impl<C: StreamCalls> Streamed<C> {
    /// A stream has passed a group: its requests have completed, or go on where they stopped short.
    fn group_done(&mut self, queue: &mut Queue<C::Buffers>, clock: &Clock, ended: Ended) {
        let (number, result) = ended;
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
    fn poll(&mut self, queue: &mut Queue<C::Buffers>, clock: &Clock) -> bool {
        let before = self.idle.len();
        for at in 0..self.queues.count() {
            while let Some(ended) = self.queues.poll_stream(at) {
                self.group_done(queue, clock, ended);
            }
        }
        self.idle.len() > before
    }
}

impl<C: StreamCalls> Groups for Streamed<C> {
    type Buffers = C::Buffers;

    /// The group goes into the next stream.
    fn submit(&mut self, queue: &mut Queue<C::Buffers>, clock: &Clock) -> bool {
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
            let stream = self.queues.stream(at);
            // SAFETY: the slot is the request's alone until it completes, and the streams are
            // waited for before anything is dropped.
            let put = unsafe { self.calls.enqueue(buffers, &request, done, stream) };
            match put {
                Ok(()) => group.push(slot),
                Err(fault) => progress.complete(slot, clock.now(), Err(fault)),
            }
        }
        let empty = group.is_empty();
        self.groups[number as usize] = group;
        if empty {
            self.idle.push(number);
            return true;
        }
        // It stays without memory of its own unless the mark was refused.
        let mut ended = Vec::new();
        self.queues.record(at, number, Ok(()), &mut ended);
        for one in ended {
            self.group_done(queue, clock, one);
        }
        true
    }

    fn is_idle(&self) -> bool {
        self.queues.none_in_flight()
    }

    fn look(&mut self, queue: &mut Queue<C::Buffers>, clock: &Clock, wait: bool) {
        for _ in 0..LOOKS {
            if self.poll(queue, clock) || !wait {
                return;
            }
            std::hint::spin_loop();
        }
        std::thread::yield_now();
    }
}
