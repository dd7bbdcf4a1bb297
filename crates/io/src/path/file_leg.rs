//! The file leg of a path with two: an engine, and the I/Os that wait for space in it.

use std::collections::VecDeque;
use std::time::Duration;

use crate::engine::{Done, Engine, EngineError, Io, Push};

pub(super) struct FileLeg {
    engine: Box<dyn Engine>,
    /// I/Os whose slot is ready and that the engine has not taken yet, oldest first.
    held: VecDeque<Io>,
    /// The engine had no space for a read, and nothing has come back of it since.
    refused: bool,
}

impl FileLeg {
    pub(super) fn new(engine: Box<dyn Engine>, slots: u32) -> FileLeg {
        FileLeg { engine, held: VecDeque::with_capacity(slots as usize), refused: false }
    }

    /// Offers a read, for which the worker waits if there is no space.
    pub(super) fn push(&mut self, io: Io) -> Push {
        let push = self.engine.push(io);
        self.refused |= matches!(push, Push::Full(_));
        push
    }

    /// Puts an I/O whose GPU leg is over behind those that wait for the engine;
    /// [`FileLeg::offer`] pushes it.
    pub(super) fn hold(&mut self, io: Io) {
        self.held.push_back(io);
    }

    /// Pushes the I/Os that are held, in their order, as far as the engine has space, up to one
    /// that is done at once: the caller takes it and offers again.
    pub(super) fn offer(&mut self) -> Option<Done> {
        while let Some(io) = self.held.pop_front() {
            match self.engine.push(io) {
                Push::Taken => {}
                Push::Full(io) => {
                    self.held.push_front(io);
                    return None;
                }
                Push::Done(done) => return Some(done),
            }
        }
        None
    }

    /// Whether the engine has nothing to give back, nothing is held and nothing was refused.
    pub(super) fn is_idle(&self) -> bool {
        self.engine.in_flight() == 0 && self.held.is_empty() && !self.refused
    }

    /// Whether the engine refused a read and nothing has come back since.
    pub(super) fn has_refused(&self) -> bool {
        self.refused
    }

    /// Takes what the engine has done. With `at_least`, waits for as many of those out, or for
    /// room if it has none out and refused some.
    ///
    /// # Errors
    /// The engine broke; what it had done stands in `dones` all the same.
    pub(super) fn reap(
        &mut self,
        dones: &mut Vec<Done>,
        at_least: usize,
    ) -> Result<(), EngineError> {
        let reaped = self.engine.reap(dones, at_least);
        self.refused = false;
        reaped
    }

    /// Sleeps until the engine may have something to give back, at most `timeout`.
    ///
    /// # Errors
    /// The engine broke.
    pub(super) fn wait_timeout(&mut self, timeout: Duration) -> Result<(), EngineError> {
        self.engine.wait_timeout(timeout)
    }

    pub(super) fn synchronous(&self) -> bool {
        self.engine.synchronous()
    }
}
