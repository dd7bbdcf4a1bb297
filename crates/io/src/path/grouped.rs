//! A path that has many I/Os of a library in flight at once: requests wait until they are a group,
//! groups go to the library, and come back in any order. How is [`Groups`].

use std::mem::ManuallyDrop;
use std::time::Duration;

use super::destination::Destination;
use super::progress::Progress;
use super::stall::StallTimer;
use super::{Completion, Mismatch, Path, PathConfig, PathError, PatternBlock, Request, Start};
use crate::clock::Clock;

/// The files and memory of a path's I/Os: files, and the memory of the slots.
pub(super) trait Buffers {
    /// The memory of the slots.
    fn destination(&mut self) -> &mut Destination;
}

/// The parts of groups, and the counters that they report to.
pub(super) struct Queue<B> {
    pub(super) buffers: B,
    pub(super) progress: Progress,
    /// Slots that wait to be put in flight, oldest first.
    pub(super) open: Vec<u32>,
    pub(super) stall: StallTimer,
    /// A failure outside [`Path::advance`], which returns it.
    pub(super) broken: Option<PathError>,
    /// The library may still write to the memory, and nothing reports until when.
    pub(super) stuck: bool,
    /// Slots at which a group is put in flight.
    full: usize,
    path: &'static str,
}

/// Submits groups of I/Os and collects their completions. Dropped before the queue's buffers.
pub(super) trait Groups {
    /// The buffers of their I/Os.
    type Buffers: Buffers;

    /// Submits the oldest waiting slots, at most a full group. False if there is no space for a
    /// group.
    fn submit(&mut self, queue: &mut Queue<Self::Buffers>, clock: &Clock) -> bool;

    /// Whether none is in flight.
    fn is_idle(&self) -> bool;

    /// Collects completions. With `wait`, waits for one, or until the stall timeout must be
    /// checked.
    fn look(&mut self, queue: &mut Queue<Self::Buffers>, clock: &Clock, wait: bool);

    /// Before idle slots are filled or looked at, outside the clock.
    ///
    /// # Errors
    /// The driver's refusal.
    fn synchronize(&self, _destination: &Destination) -> Result<(), PathError> {
        Ok(())
    }
}

struct Parts<G: Groups> {
    // Drop order: what is in flight goes before what it uses.
    groups: G,
    queue: Queue<G::Buffers>,
}

/// Its parts are dropped once the library is done with them, and else left where they are: memory
/// that it may still write must not be reused.
struct Grouped<G: Groups>(ManuallyDrop<Parts<G>>);

/// The path of these groups over these buffers, at most `full` slots in each. It gives up where the
/// library completes nothing for `stall_timeout` with I/O in flight.
pub(super) fn assemble<G: Groups + 'static>(
    path: &'static str,
    config: &PathConfig,
    (full, stall_timeout): (u32, Duration),
    buffers: G::Buffers,
    groups: G,
) -> Box<dyn Path> {
    let queue = Queue {
        buffers,
        progress: Progress::new(config.slots, &config.counters),
        open: Vec::with_capacity(config.slots as usize),
        stall: StallTimer::new(stall_timeout),
        broken: None,
        stuck: false,
        full: full as usize,
        path,
    };
    Box::new(Grouped(ManuallyDrop::new(Parts { groups, queue })))
}

impl<B> Queue<B> {
    /// Slots at which a group is put in flight, at least 1.
    pub(super) fn full(&self) -> usize {
        self.full
    }

    /// Nothing has ended again.
    ///
    /// # Errors
    /// That for too long.
    fn goes_on(&mut self, clock: &Clock) -> Result<(), PathError> {
        let goes_on = self.stall.goes_on(clock, self.path, self.progress.requests.out());
        self.stuck |= goes_on.is_err();
        goes_on
    }
}

impl<G: Groups> Parts<G> {
    /// Puts full groups in flight, as far as there is space.
    fn offer(&mut self, clock: &Clock) {
        let Parts { groups, queue } = self;
        while queue.broken.is_none()
            && queue.open.len() >= queue.full
            && groups.submit(queue, clock)
        {}
    }

    /// Moves requests on until one has completed; without `wait`, as far as they are.
    fn drive(&mut self, clock: &Clock, wait: bool) -> Result<(), PathError> {
        let mut first = true;
        loop {
            self.offer(clock);
            let Parts { groups, queue } = self;
            // Nothing is in flight: what has come so far gains nothing by waiting for more.
            if queue.broken.is_none() && groups.is_idle() && !queue.open.is_empty() {
                groups.submit(queue, clock);
            }
            if let Some(error) = queue.broken.take() {
                queue.stuck |= !groups.is_idle();
                return Err(error);
            }
            let done =
                !queue.progress.requests.none_completed() || queue.progress.requests.out() == 0;
            if done || (!wait && !first) {
                return Ok(());
            }
            groups.look(queue, clock, wait);
            first = false;
            if queue.progress.requests.none_completed() && !groups.is_idle() {
                queue.goes_on(clock)?;
            }
        }
    }

    /// Waits, within limits, until the library is done with the memory. False if it is not.
    fn drain(&mut self) -> bool {
        let Parts { groups, queue } = self;
        let clock = Clock::start();
        // It was counted on the run's clock.
        queue.stall.broken();
        while !queue.stuck && !groups.is_idle() {
            groups.look(queue, &clock, true);
            // An error is noted in `stuck`.
            let _ = queue.goes_on(&clock);
        }
        !queue.stuck
    }
}

impl<G: Groups> Path for Grouped<G> {
    fn start(&mut self, clock: &Clock, request: Request) -> Start {
        self.0.queue.progress.take(request);
        self.0.queue.open.push(request.slot);
        self.0.offer(clock);
        Start::Taken
    }

    fn advance(
        &mut self,
        clock: &Clock,
        completed: &mut Vec<Completion>,
        wait: bool,
    ) -> Result<(), PathError> {
        let outcome = self.0.drive(clock, wait);
        // Also after an error: these have completed.
        self.0.queue.progress.requests.deliver(completed);
        outcome
    }

    fn in_flight(&self) -> usize {
        self.0.queue.progress.requests.out()
    }

    fn generate(&mut self, block: PatternBlock) -> Result<(), PathError> {
        let Parts { groups, queue } = &mut *self.0;
        let destination = queue.buffers.destination();
        groups.synchronize(destination)?;
        destination.generate(block)
    }

    fn check(&mut self, block: PatternBlock) -> Result<Option<Mismatch>, PathError> {
        let Parts { groups, queue } = &mut *self.0;
        let destination = queue.buffers.destination();
        groups.synchronize(destination)?;
        destination.check(block)
    }

    fn copy_out(&mut self, slot: u32, into: &mut [u8]) -> Result<(), PathError> {
        let Parts { groups, queue } = &mut *self.0;
        let destination = queue.buffers.destination();
        groups.synchronize(destination)?;
        destination.copy_out(slot, into)
    }
}

impl<G: Groups> Drop for Grouped<G> {
    fn drop(&mut self) {
        if self.0.drain() {
            // SAFETY: dropped once, here, and not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.0) };
        }
    }
}
