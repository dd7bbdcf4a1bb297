//! The kernel's native asynchronous I/O: io_setup(2), io_submit(2), io_getevents(2).
//!
//! One io_submit hands over all that was pushed. Only on O_DIRECT files does it return before
//! the I/O is done: on others the kernel copies inside the call, so a queue depth is not real.

mod abi;
#[cfg(test)]
mod tests;

use super::io_slab::IoSlab;
use super::psync::{errno, fds};
use super::{Done, Engine, EngineConfig, EngineError, Io, IoFault, Op, OpenedEngine, Push};
use abi::{Context, Event, Iocb};
use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

const NAME: &str = "libaio";

/// Most I/Os of one context: `aio-max-nr` is 65536 by default for the whole machine.
const MOST_DEPTH: u32 = 65_536;

/// How long a kernel without space is retried, every 100 µs: 2 s.
const MOST_RETRIES: u32 = 20_000;

/// Whether a context can be made here and now.
pub(super) fn available() -> Result<(), String> {
    Context::new(1).map(drop).map_err(|err| format!("io_setup: {err}: {}", hint(&err)))
}

/// The meaning of io_setup(2)'s answer and the remedy.
fn hint(err: &io::Error) -> &'static str {
    match err.raw_os_error() {
        Some(libc::EAGAIN) => {
            "all of the machine's asynchronous I/Os are spoken for: raise fs.aio-max-nr \
             (sysctl fs.aio-nr fs.aio-max-nr shows both), or lower depth or workers"
        }
        Some(libc::ENOSYS) => "this kernel is built without AIO; use io_uring or pool",
        _ => "use io_uring or pool",
    }
}

pub(super) fn open(config: &EngineConfig) -> Result<OpenedEngine, EngineError> {
    let depth = config.depth.clamp(1, MOST_DEPTH);
    let mut steps_down = Vec::new();
    if depth < config.depth {
        steps_down.push(format!("libaio: depth {depth}, not {}", config.depth));
    }
    if !config.direct {
        steps_down.push(
            "libaio: on files without O_DIRECT io_submit does each I/O before it returns, so \
             one is out at a time"
                .to_owned(),
        );
    }
    let context =
        Context::new(depth).map_err(|err| EngineError::new(NAME, "io_setup", &err, hint(&err)))?;
    let ring = if context.ring_is_readable() { "completions read in user space" } else { "" };
    let actual = if ring.is_empty() { NAME.to_owned() } else { format!("{NAME} ({ring})") };
    Ok(OpenedEngine {
        engine: Box::new(Libaio::new(context, config, depth)),
        actual,
        steps_down,
        helpers: Vec::new(),
    })
}

struct Libaio {
    context: Context,
    fds: Vec<RawFd>,
    slots: IoSlab,
    /// By slot; the kernel reads a block during io_submit only.
    blocks: Box<[Iocb]>,
    /// Slots pushed and not yet accepted.
    queued: Vec<u32>,
    /// Kept between calls for its memory.
    pointers: Vec<*const Iocb>,
    events: Vec<Event>,
    /// Came back while submitting, for the next reap.
    early: Vec<Done>,
    retries: u32,
}

impl Libaio {
    fn new(context: Context, config: &EngineConfig, depth: u32) -> Libaio {
        let size = depth as usize;
        Libaio {
            context,
            fds: fds(&config.files),
            slots: IoSlab::new(depth),
            blocks: vec![Iocb::default(); size].into(),
            queued: Vec::with_capacity(size),
            pointers: Vec::with_capacity(size),
            events: Vec::with_capacity(size),
            early: Vec::new(),
            retries: 0,
        }
    }

    /// Submits all that is queued. An I/O that fails or finishes at the same time goes to `early`.
    fn submit(&mut self) -> Result<(), EngineError> {
        while !self.queued.is_empty() {
            self.pointers.clear();
            let blocks = &self.blocks;
            self.pointers.extend(self.queued.iter().map(|&slot| &raw const blocks[slot as usize]));
            match self.context.submit(&self.pointers) {
                Ok(accepted) if accepted > 0 => {
                    self.queued.drain(..accepted.min(self.queued.len()));
                    self.retries = 0;
                }
                Ok(_) => self.ease(&io::Error::from_raw_os_error(libc::EAGAIN))?,
                Err(err) => match err.raw_os_error() {
                    Some(libc::EINTR) => {}
                    Some(libc::EAGAIN | libc::ENOMEM) => self.ease(&err)?,
                    // Other answers are about the first block (io_submit(2)): its I/O failed.
                    _ => self.fail_first(&err),
                },
            }
        }
        Ok(())
    }

    fn fail_first(&mut self, err: &io::Error) {
        let slot = self.queued.remove(0);
        if let Some(io) = self.slots.take(u64::from(slot)) {
            let errno = err.raw_os_error().unwrap_or(libc::EIO);
            self.early.push(Done { io, result: Err(IoFault::Errno(errno)) });
        }
    }

    /// The kernel has no space: waits for an I/O of ours, or for time to pass.
    #[cold]
    fn ease(&mut self, err: &io::Error) -> Result<(), EngineError> {
        let mut done = std::mem::take(&mut self.early);
        let outcome = if self.slots.len() > self.queued.len() {
            self.wait(&mut done, 1)
        } else {
            self.retries += 1;
            std::thread::sleep(Duration::from_micros(100));
            if self.retries > MOST_RETRIES {
                Err(EngineError::new(NAME, "io_submit", err, hint(err)))
            } else {
                Ok(())
            }
        };
        self.early = done;
        outcome
    }

    /// io_getevents(2), until at least `least` I/Os have come back.
    fn wait(&mut self, done: &mut Vec<Done>, least: usize) -> Result<(), EngineError> {
        let from = done.len();
        loop {
            self.get(done, least.saturating_sub(done.len() - from), None)?;
            if done.len() - from >= least {
                return Ok(());
            }
        }
    }

    /// One io_getevents(2) for `least` events, which gives fewer after a signal or when `timeout`
    /// is over.
    fn get(
        &mut self,
        done: &mut Vec<Done>,
        least: usize,
        timeout: Option<Duration>,
    ) -> Result<(), EngineError> {
        match self.context.get_events(least, self.slots.len(), timeout, &mut self.events) {
            Ok(()) => {}
            Err(err) if err.raw_os_error() == Some(libc::EINTR) => {}
            Err(err) => {
                let hint = "the context can't go on; try the io_uring or pool engine";
                return Err(EngineError::new(NAME, "io_getevents", &err, hint));
            }
        }
        let events = std::mem::take(&mut self.events);
        for event in &events {
            self.complete(*event, done);
        }
        self.events = events;
        self.events.clear();
        Ok(())
    }

    #[inline]
    fn complete(&mut self, event: Event, done: &mut Vec<Done>) {
        // Each block completes once, so its slot is out; for another number there is no I/O.
        let Some(io) = self.slots.take(event.data) else {
            return;
        };
        let result = match u32::try_from(event.res) {
            Ok(moved) => Ok(moved),
            Err(_) => {
                let errno = i32::try_from(-event.res).unwrap_or(libc::EIO);
                Err(IoFault::Errno(errno))
            }
        };
        done.push(Done { io, result });
    }
}

impl Engine for Libaio {
    #[inline]
    fn push(&mut self, io: Io) -> Push {
        let Some(&fd) = self.fds.get(io.file as usize) else {
            return Push::Done(Done { io, result: Err(IoFault::Errno(libc::EBADF)) });
        };
        let Some(slot) = self.slots.put(io) else {
            return Push::Full(io);
        };
        self.blocks[slot as usize] = Iocb::new(slot, fd, &io);
        self.queued.push(slot);
        Push::Taken
    }

    fn submit(&mut self) -> Result<(), EngineError> {
        if self.queued.is_empty() { Ok(()) } else { self.submit() }
    }

    fn reap(&mut self, done: &mut Vec<Done>, at_least: usize) -> Result<(), EngineError> {
        let (from, want) = (done.len(), at_least.min(self.in_flight()));
        self.submit()?;
        done.append(&mut self.early);
        if self.slots.len() == 0 {
            return Ok(());
        }
        if self.context.ring_is_readable() {
            while let Some(event) = self.context.next_event() {
                self.complete(event, done);
            }
            if done.len() - from >= want {
                return Ok(());
            }
        }
        self.wait(done, want.saturating_sub(done.len() - from))
    }

    fn wait_timeout(&mut self, timeout: Duration) -> Result<(), EngineError> {
        self.submit()?;
        if !self.early.is_empty() || self.slots.len() == 0 {
            return Ok(());
        }
        let mut done = std::mem::take(&mut self.early);
        let outcome = self.get(&mut done, 1, Some(timeout));
        self.early = done;
        outcome
    }

    fn in_flight(&self) -> usize {
        self.slots.len() + self.early.len()
    }
}

impl Drop for Libaio {
    fn drop(&mut self) {
        let mut done = Vec::with_capacity(self.in_flight());
        if self.reap(&mut done, usize::MAX).is_err() {
            // The kernel may still write into memory that is about to be freed, and there is
            // nothing left to wait with.
            std::process::abort();
        }
    }
}

impl Iocb {
    #[inline]
    fn new(slot: u32, fd: RawFd, io: &Io) -> Iocb {
        let opcode = match io.op {
            Op::Read => abi::PREAD,
            Op::Write => abi::PWRITE,
        };
        Iocb {
            data: u64::from(slot),
            opcode,
            // The field is a u32 whose value the kernel reads as a descriptor again.
            file: fd.cast_unsigned(),
            buffer: io.span.as_ptr() as u64,
            bytes: u64::from(io.span.len()),
            offset: io.offset.cast_signed(),
            ..Iocb::default()
        }
    }
}

/// The answer of a system call made with syscall(2).
fn answer(result: libc::c_long) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(errno()))
}
