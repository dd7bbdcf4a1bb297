//! Takes every I/O, moves nothing, gives it back at the next reap: what is left is gpuio's cost.

use super::{Done, Engine, EngineConfig, EngineError, Io, OpenedEngine, Push};

pub(super) fn open(config: &EngineConfig) -> Result<OpenedEngine, EngineError> {
    let depth = config.depth.max(1) as usize;
    let engine = Box::new(Null { out: Vec::with_capacity(depth), depth });
    Ok(OpenedEngine {
        engine,
        actual: "null (moves no byte)".to_owned(),
        steps_down: Vec::new(),
        helpers: Vec::new(),
    })
}

struct Null {
    out: Vec<Io>,
    depth: usize,
}

impl Engine for Null {
    #[inline]
    fn push(&mut self, io: Io) -> Push {
        if self.out.len() == self.depth {
            return Push::Full(io);
        }
        self.out.push(io);
        Push::Taken
    }

    fn submit(&mut self) -> Result<(), EngineError> {
        Ok(())
    }

    fn reap(&mut self, done: &mut Vec<Done>, _at_least: usize) -> Result<(), EngineError> {
        done.extend(self.out.drain(..).map(|io| Done { io, result: Ok(io.span.len()) }));
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.out.len()
    }
}
