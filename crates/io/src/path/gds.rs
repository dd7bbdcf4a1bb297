//! `gds`: cuFile moves the bytes between file and GPU memory. gdsio's `-x 0`.
//!
//! Each `cuFileRead` and `cuFileWrite` blocks, and the library does not report whether the bytes
//! went through host memory (compatibility mode). So the whole time counts as the file leg, and
//! there is no GPU leg. One handle per file, and each slot a registered
//! buffer.

pub(super) mod buffers;
pub(super) mod grouped;
pub(super) mod progress;
pub(super) mod stall;
pub(super) mod streamed;

use gpuio_cufile::{IoError, Piece};

use super::{
    ANY_MEMORY, Backend, Calls, Completion, Mismatch, OpenedPath, Path, PathConfig, PathEntry,
    PathError, PathInfo, Request, Start,
};
use crate::clock::Clock;
use crate::engine::Op;
use buffers::GdsBuffers;
use progress::Progress;

const NAME: &str = "gds";

pub(super) const ENTRY: PathEntry = PathEntry {
    info: PathInfo {
        name: NAME,
        gdsio: Some(0),
        gdsio_name: "GPUD",
        summary: "NVIDIA's cuFile library moves the bytes between file and GPU memory",
        needs_gpu: true,
        via_gpu: false,
        buffered_only: false,
        buffered_because: None,
        backend: Backend::Cufile(Calls::Blocking),
        batches: false,
        streams: false,
        memory: ANY_MEMORY,
    },
    open,
};

struct Gds {
    buffers: GdsBuffers,
    progress: Progress,
}

/// Opened on the worker's thread, which from then on has the GPU's context current.
fn open(config: PathConfig) -> Result<OpenedPath, PathError> {
    let buffers = GdsBuffers::open(NAME, &config)?;
    let (_, cufile) = buffers::sides(NAME, &config)?;
    let open_info = buffers.open_info(&cufile.driver);
    let progress = Progress::new(config.slots, &config.counters);
    Ok(open_info.of(Box::new(Gds { buffers, progress })))
}

impl Gds {
    /// Moves what is left of a request, as far as one call goes.
    fn call(&self, request: &Request, done: u32) -> Result<usize, IoError> {
        let Piece { base, at, len, offset } = self.buffers.rest(request, done);
        let handle = self.buffers.handle(request);
        match request.op {
            // SAFETY: the range lies in this slot's own part of the destination, which lives and
            // which nothing uses until this returns.
            Op::Read => unsafe { handle.read(base, at, len, offset) },
            // SAFETY: as above; what filled the slot was waited for.
            Op::Write => unsafe { handle.write(base, at, len, offset) },
        }
    }
}

impl Path for Gds {
    fn start(&mut self, clock: &Clock, request: Request) -> Start {
        self.progress.take(request);
        while let Some((request, done)) = self.progress.of(request.slot) {
            let moved = self.call(&request, done);
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
        self.progress.deliver(completed);
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.progress.out()
    }

    fn synchronous(&self) -> bool {
        true
    }

    fn generate(&mut self, slot: u32, key: u64, offset: u64, len: u32) -> Result<(), PathError> {
        self.buffers.generate(slot, key, offset, len)
    }

    fn check(
        &mut self,
        slot: u32,
        key: u64,
        offset: u64,
        len: u32,
    ) -> Result<Option<Mismatch>, PathError> {
        self.buffers.check(slot, key, offset, len)
    }
}
