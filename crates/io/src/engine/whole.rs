//! Continues short transfers, so that what comes back is a whole I/O or a fault.
//!
//! read(2) and write(2) may move fewer bytes than requested: a signal, the end of the file, a
//! transfer above 2 GiB, a network file system. The rest is pushed again until
//! * all is moved: `Ok(length of the I/O)`;
//! * a read moves 0 bytes: the file ended, [`IoFault::EndOfFile`] with the bytes so far;
//! * a write moves 0 bytes: `EIO`, since it would go on like that for ever;
//! * the file is open with O_DIRECT and the bytes so far are no multiple of the logical block size
//!   behind it: the rest could not be requested (open(2): offsets and addresses are multiples of
//!   it, and EINVAL would be the answer). A direct read stops there only at the end of the file, so
//!   that is `EndOfFile`; a write is `EIO`. Drives of 4 KiB blocks stop at multiples of 512 too.

use super::monitor::LegCounters;
use super::{Done, Engine, EngineError, Io, IoFault, Op, Push};
use gpuio_base::stat::add_single_writer;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// An I/O whose rest is out.
#[derive(Debug)]
struct Part {
    io: Io,
    moved: u32,
}

impl Part {
    fn rest(&self) -> Io {
        let offset = self.io.offset + u64::from(self.moved);
        Io { offset, span: self.io.span.rest(self.moved), ..self.io }
    }

    /// Memory in flight belongs to one I/O, so the rest's address and token name it.
    fn is_rest(&self, io: &Io) -> bool {
        let rest = self.rest();
        rest.token == io.token && rest.op == io.op && rest.span.as_ptr() == io.span.as_ptr()
    }
}

/// The meaning of a transfer that came back.
enum Verdict {
    Finished(Done),
    Continue(Io),
}

/// The decorator.
pub struct Whole {
    inner: Box<dyn Engine>,
    /// The unit at which direct I/O goes on; absent on files in the page cache.
    alignment: Option<u32>,
    counters: Arc<LegCounters>,
    parts: Vec<Part>,
    /// Rests that the inner engine had no space for.
    waiting: VecDeque<Io>,
    /// Kept between calls for its memory.
    batch: Vec<Done>,
}

impl std::fmt::Debug for Whole {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Whole").field("parts", &self.parts).finish_non_exhaustive()
    }
}

impl Whole {
    /// `alignment`: the files are open with O_DIRECT, and offsets and lengths are multiples of this
    /// many bytes. Counts into `counters.short_ios` only.
    pub fn new(
        inner: Box<dyn Engine>,
        alignment: Option<u32>,
        counters: Arc<LegCounters>,
    ) -> Whole {
        let (parts, waiting, batch) = (Vec::new(), VecDeque::new(), Vec::new());
        Whole { inner, alignment, counters, parts, waiting, batch }
    }

    #[inline]
    fn nothing_to_do(&self, done: &Done) -> bool {
        self.parts.is_empty() && done.result == Ok(done.io.span.len())
    }

    fn check(&mut self, done: Done) -> Verdict {
        let found = self.parts.iter().position(|part| part.is_rest(&done.io));
        let (io, before) = match found {
            Some(at) => {
                let part = self.parts.swap_remove(at);
                (part.io, part.moved)
            }
            None => (done.io, 0),
        };
        let finished = |result| Verdict::Finished(Done { io, result });
        let moved = match done.result {
            Ok(moved) if moved >= done.io.span.len() => return finished(Ok(io.span.len())),
            Ok(moved) => moved,
            Err(IoFault::EndOfFile(moved)) => {
                return finished(Err(IoFault::EndOfFile(before + moved)));
            }
            Err(fault) => return finished(Err(fault)),
        };
        let so_far = before + moved;
        let cut = self.alignment.is_some_and(|alignment| !so_far.is_multiple_of(alignment.max(1)));
        if moved == 0 || cut {
            return finished(Err(match io.op {
                Op::Read => IoFault::EndOfFile(so_far),
                Op::Write => IoFault::Errno(libc::EIO),
            }));
        }
        if before == 0 {
            add_single_writer(&self.counters.short_ios, 1);
        }
        let part = Part { io, moved: so_far };
        let rest = part.rest();
        self.parts.push(part);
        Verdict::Continue(rest)
    }

    /// Judges a transfer and pushes what is left of it; gives the I/O when it is finished.
    fn complete(&mut self, mut done: Done) -> Option<Done> {
        loop {
            match self.check(done) {
                Verdict::Finished(done) => return Some(done),
                Verdict::Continue(rest) => match self.inner.push(rest) {
                    Push::Done(again) => done = again,
                    Push::Taken => return None,
                    Push::Full(rest) => {
                        self.waiting.push_back(rest);
                        return None;
                    }
                },
            }
        }
    }

    /// Pushes the rests that found no space; those that run inside the call go to `batch`.
    fn push_waiting(&mut self) {
        while let Some(rest) = self.waiting.pop_front() {
            match self.inner.push(rest) {
                Push::Taken => {}
                Push::Done(done) => self.batch.push(done),
                Push::Full(rest) => {
                    self.waiting.push_front(rest);
                    return;
                }
            }
        }
    }

    /// Judges `batch`; finished I/Os go to `done`, and rests to the kernel.
    fn complete_batch(&mut self, done: &mut Vec<Done>) -> Result<(), EngineError> {
        let mut batch = std::mem::take(&mut self.batch);
        for transfer in batch.drain(..) {
            done.extend(self.complete(transfer));
        }
        self.batch = batch;
        self.inner.submit()
    }
}

impl Engine for Whole {
    #[inline]
    fn push(&mut self, io: Io) -> Push {
        match self.inner.push(io) {
            Push::Done(done) if !self.nothing_to_do(&done) => match self.complete(done) {
                Some(done) => Push::Done(done),
                None => Push::Taken,
            },
            push => push,
        }
    }

    fn submit(&mut self) -> Result<(), EngineError> {
        self.push_waiting();
        self.inner.submit()
    }

    fn reap(&mut self, done: &mut Vec<Done>, at_least: usize) -> Result<(), EngineError> {
        let want = at_least.min(self.in_flight());
        let start = done.len();
        loop {
            self.push_waiting();
            let from = done.len();
            let lacking = at_least.saturating_sub(from - start + self.batch.len());
            self.inner.reap(done, lacking)?;
            let untouched =
                self.batch.is_empty() && done[from..].iter().all(|done| self.nothing_to_do(done));
            if !untouched {
                self.batch.extend(done.drain(from..));
                self.complete_batch(done)?;
            }
            if done.len() - start >= want {
                return Ok(());
            }
        }
    }

    fn wait_timeout(&mut self, timeout: Duration) -> Result<(), EngineError> {
        self.push_waiting();
        // I/Os that ran inside that push are there for the next reap.
        if self.batch.is_empty() { self.inner.wait_timeout(timeout) } else { self.inner.submit() }
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight() + self.waiting.len() + self.batch.len()
    }

    fn synchronous(&self) -> bool {
        self.inner.synchronous()
    }
}
