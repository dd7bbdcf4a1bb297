//! `host`: the bytes end in host memory. gdsio's `-x 1`, and the ceiling of every other path.

use std::time::Duration;

use gpuio_gpu::{MemoryKind, pattern};

use super::fio_headers;
use super::slot_buffers::SlotMemory;
use super::{
    Backend, Completion, Fault, Leg, Mismatch, OpenedPath, Path, PathConfig, PathEntry, PathError,
    PathInfo, PatternBlock, Request, Start,
};
use crate::clock::Clock;
use crate::engine::{Done, Engine, Io, Push};

const NAME: &str = "host";

pub(super) const ENTRY: PathEntry = PathEntry {
    info: PathInfo {
        name: NAME,
        gdsio: Some(1),
        gdsio_name: "CPUONLY",
        summary: "file to host memory and back; no GPU",
        needs_gpu: false,
        backend: Backend::Engine,
        memory: &[MemoryKind::Malloc, MemoryKind::Mmap, MemoryKind::Pinned],
        ..PathInfo::PLAIN
    },
    open,
};

struct Host {
    // The engine goes first: it waits for I/Os that use the memory.
    engine: Box<dyn Engine>,
    memory: SlotMemory,
    requests: Vec<Option<Request>>,
    dones: Vec<Done>,
    ready: Vec<Completion>,
    out: usize,
    /// The engine had no space for a request, and was not reaped since.
    refused: bool,
    /// Whether blocks have fio's headers.
    fio_headers: bool,
}

fn open(config: PathConfig) -> Result<OpenedPath, PathError> {
    let memory = SlotMemory::for_host(NAME, &config)?;
    let engine = super::open_engine(&config, Some(memory.region()))?;
    let slots = config.slots as usize;
    let host_bytes = memory.bytes();
    let path = Host {
        engine: engine.engine,
        memory,
        requests: vec![None; slots],
        dones: Vec::with_capacity(slots),
        ready: Vec::with_capacity(slots),
        out: 0,
        refused: false,
        fio_headers: config.fio_headers,
    };
    Ok(OpenedPath {
        path: Box::new(path),
        actual_engine: engine.actual,
        steps_down: engine.steps_down,
        host_bytes,
        device_bytes: 0,
        helpers: engine.helpers,
    })
}

impl Host {
    fn complete(&mut self, clock_now: u64, done: Done) -> Option<Completion> {
        let request = self.requests[done.io.token as usize].take()?;
        Some(Completion {
            request,
            result: done.result.map(|_| ()).map_err(Fault::File),
            ended: clock_now,
            file_ns: clock_now.saturating_sub(request.started),
            gpu_ns: 0,
        })
    }
}

impl Path for Host {
    fn start(&mut self, clock: &Clock, request: Request) -> Start {
        let io = Io {
            op: request.op,
            file: request.file,
            offset: request.offset,
            span: self.memory.span(request.slot, request.len),
            token: request.slot,
        };
        self.requests[request.slot as usize] = Some(request);
        match self.engine.push(io) {
            Push::Taken => {}
            Push::Full(_) => {
                self.refused = true;
                self.requests[request.slot as usize] = None;
                return Start::Full;
            }
            Push::Done(done) => {
                if let Some(completed) = self.complete(clock.now(), done) {
                    self.ready.push(completed);
                }
            }
        }
        self.out += 1;
        Start::Taken
    }

    fn advance(
        &mut self,
        clock: &Clock,
        completed: &mut Vec<Completion>,
        wait: bool,
    ) -> Result<(), PathError> {
        self.out -= self.ready.len();
        let wait = wait && self.ready.is_empty();
        completed.append(&mut self.ready);
        if self.out == 0 && !(wait && self.refused) {
            return Ok(());
        }
        self.refused = false;
        let mut dones = std::mem::take(&mut self.dones);
        let reaped = self.engine.reap(&mut dones, usize::from(wait));
        if !dones.is_empty() {
            let now = clock.now();
            self.out -= dones.len();
            for done in dones.drain(..) {
                completed.extend(self.complete(now, done));
            }
        }
        self.dones = dones;
        reaped.map_err(PathError::from)
    }

    fn wait_timeout(&mut self, timeout: Duration) -> Result<(), PathError> {
        if self.ready.is_empty() {
            self.engine.wait_timeout(timeout)?;
        }
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.out
    }

    fn synchronous(&self) -> bool {
        self.engine.synchronous()
    }

    fn generate(&mut self, block: PatternBlock) -> Result<(), PathError> {
        let PatternBlock { slot, key, offset, len } = block;
        let bytes = self.memory.bytes_of_mut(slot, len);
        match self.fio_headers {
            true => fio_headers::fill(bytes, key, offset),
            false => pattern::fill(bytes, key, offset),
        }
        Ok(())
    }

    fn check(&mut self, block: PatternBlock) -> Result<Option<Mismatch>, PathError> {
        let PatternBlock { slot, key, offset, len } = block;
        if self.fio_headers {
            return Ok(fio_headers::check(self.memory.bytes_of(slot, len), offset));
        }
        let found = pattern::check(self.memory.bytes_of(slot, len), key, offset);
        Ok(found.map(|m| Mismatch {
            offset: m.first_offset,
            expected: m.expected,
            found: m.found,
            bad_words: m.bad_words,
            checksum_of: None,
            leg: Some(Leg::File),
            gpu: None,
        }))
    }

    fn copy_out(&mut self, slot: u32, into: &mut [u8]) -> Result<(), PathError> {
        let len = u32::try_from(into.len()).unwrap_or(u32::MAX);
        into.copy_from_slice(self.memory.bytes_of(slot, len));
        Ok(())
    }
}
