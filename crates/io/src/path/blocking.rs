//! A path of blocking calls of a library: `gds` and `library`. Each call runs on the worker's
//! thread and moves a request from end to end, so the whole time counts as the file leg, and there
//! is no GPU leg.

use super::grouped::Buffers;
use super::progress::Progress;
use super::{
    Completion, Fault, Mismatch, Path, PathConfig, PathError, PatternBlock, Request, Start,
};
use crate::clock::Clock;

/// A library's blocking calls, and what they use.
pub(super) trait BlockingCalls: Buffers {
    /// Moves what is left of a request of which `done` bytes have moved, as far as one call goes;
    /// the bytes that this one moved.
    ///
    /// # Errors
    /// The library's.
    fn call(&self, request: &Request, done: u32) -> Result<usize, Fault>;
}

struct Blocking<C> {
    calls: C,
    progress: Progress,
}

pub(super) fn assemble<C: BlockingCalls + 'static>(config: &PathConfig, calls: C) -> Box<dyn Path> {
    let progress = Progress::new(config.slots, &config.counters);
    Box::new(Blocking { calls, progress })
}

impl<C: BlockingCalls> Path for Blocking<C> {
    fn start(&mut self, clock: &Clock, request: Request) -> Start {
        self.progress.take(request);
        while let Some((request, done)) = self.progress.of(request.slot) {
            let moved = self.calls.call(&request, done);
            self.progress.moved(request.slot, clock.now(), moved);
        }
        Start::Taken
    }

    fn advance(
        &mut self,
        _clock: &Clock,
        completed: &mut Vec<Completion>,
        _wait: bool,
    ) -> Result<(), PathError> {
        self.progress.requests.deliver(completed);
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.progress.requests.out()
    }

    fn synchronous(&self) -> bool {
        true
    }

    fn generate(&mut self, block: PatternBlock) -> Result<(), PathError> {
        self.calls.destination().generate(block)
    }

    fn check(&mut self, block: PatternBlock) -> Result<Option<Mismatch>, PathError> {
        self.calls.destination().check(block)
    }

    fn copy_out(&mut self, slot: u32, into: &mut [u8]) -> Result<(), PathError> {
        self.calls.destination().copy_out(slot, into)
    }
}
