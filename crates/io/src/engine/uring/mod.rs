//! io_uring(7).
//!
//! The ring is made with what the kernel has: `SINGLE_ISSUER | DEFER_TASKRUN` (6.1), else
//! `COOP_TASKRUN` (5.19), else plain (5.1). Files and [`super::EngineConfig::region`] are
//! registered, which spares a reference count and the pinning of pages for each I/O. Every one of
//! these that is refused is a line in [`super::OpenedEngine::steps_down`]; when there is no ring at
//! all, the pool runs.
//!
//! Pushes fill the submission queue without a system call; one `io_uring_enter` then submits
//! them all and waits. Completions already in the ring are read without one.

mod setup;

use setup::Polling;
pub(super) use setup::{available, open, open_iopoll, open_sqpoll};

use super::io_slab::IoSlab;
use super::{Done, Engine, EngineError, HostRegion, Io, IoFault, Op, Push, Span};
use io_uring::{EnterFlags, IoUring, opcode, squeue, types};
use std::os::fd::RawFd;
use std::time::Duration;

const NAME: &str = "io_uring";

/// One buffer can be registered up to this size (io_uring_register(2)); larger regions are
/// registered as several.
const REGISTERED_BITS: u32 = 30;

/// How long a kernel without memory for requests is retried, every 100 µs: 2 s.
const MOST_RETRIES: u32 = 20_000;

struct Uring {
    ring: IoUring,
    slots: IoSlab,
    fds: Vec<RawFd>,
    fixed_files: bool,
    fixed_region: Option<HostRegion>,
    /// Pushed and not yet taken by the kernel.
    queued: u32,
    retries: u32,
    polling: Polling,
}

impl Uring {
    #[inline]
    fn entry(&self, io: &Io) -> squeue::Entry {
        let (ptr, len) = (io.span.as_ptr(), io.span.len());
        /// The same request for a plain and for a registered descriptor, which are two types.
        macro_rules! request {
            ($request:ident $(, $buffer:expr)?) => {
                if self.fixed_files {
                    let file = types::Fixed(io.file);
                    opcode::$request::new(file, ptr, len $(, $buffer)?).offset(io.offset).build()
                } else {
                    let file = types::Fd(self.fds[io.file as usize]);
                    opcode::$request::new(file, ptr, len $(, $buffer)?).offset(io.offset).build()
                }
            };
        }
        match (io.op, self.fixed_region.and_then(|region| fixed_buffer(region, &io.span))) {
            (Op::Read, Some(buffer)) => request!(ReadFixed, buffer),
            (Op::Read, None) => request!(Read),
            (Op::Write, Some(buffer)) => request!(WriteFixed, buffer),
            (Op::Write, None) => request!(Write),
        }
    }

    /// Reads the completions that are in the ring: no system call.
    #[inline]
    fn drain(&mut self, done: &mut Vec<Done>) -> usize {
        let before = done.len();
        for entry in self.ring.completion() {
            // Each request completes once, so the slot is always out; a number that is not is
            // nobody's I/O and there is nothing to hand back.
            let Some(io) = self.slots.take(entry.user_data()) else {
                continue;
            };
            let answer = entry.result();
            let result = u32::try_from(answer).map_err(|_| IoFault::Errno(-answer));
            done.push(Done { io, result });
        }
        done.len() - before
    }

    /// One io_uring_enter(2): submits what is queued and waits for `lacking` completions. May
    /// do less than requested, so the caller looks and calls again.
    fn enter(&mut self, lacking: usize, flags: EnterFlags) -> Result<(), EngineError> {
        let lacking = u32::try_from(lacking).unwrap_or(u32::MAX);
        match self.enter_raw(self.queued, lacking, flags) {
            Ok(submitted) => {
                self.queued -= submitted.min(self.queued);
                self.retries = 0;
                Ok(())
            }
            Err(err) => match err.raw_os_error() {
                Some(libc::EINTR) => Ok(()),
                // No memory for a request, or completions to be read first.
                Some(libc::EAGAIN | libc::EBUSY | libc::ENOMEM) => self.ease(err),
                _ => Err(EngineError::new(
                    NAME,
                    "io_uring_enter",
                    &err,
                    "the ring can't go on; try the libaio or pool engine",
                )),
            },
        }
    }

    /// Lets the kernel finish something, or time pass, before it is retried.
    #[cold]
    fn ease(&mut self, err: std::io::Error) -> Result<(), EngineError> {
        self.retries += 1;
        if self.retries > MOST_RETRIES {
            let hint = "the kernel has no room for requests; lower the queue depth";
            return Err(EngineError::new(NAME, "io_uring_enter", &err, hint));
        }
        // Deferred work runs and completions are posted in this call; its own failure is no
        // news.
        let _ = self.enter_raw(0, 0, EnterFlags::GETEVENTS);
        if self.ring.completion().is_empty() {
            std::thread::sleep(Duration::from_micros(100));
        }
        Ok(())
    }

    fn enter_raw(&mut self, submit: u32, wait: u32, flags: EnterFlags) -> std::io::Result<u32> {
        let mut flags = flags;
        if self.polling == Polling::Submissions && self.ring.submission().need_wakeup() {
            flags |= EnterFlags::SQ_WAKEUP;
        }
        let submitter = self.ring.submitter();
        // SAFETY: the queued entries name spans that their makers keep until the I/Os are back,
        // and no argument is passed.
        let submitted =
            unsafe { submitter.enter::<libc::sigset_t>(submit, wait, flags.bits(), None) }?;
        Ok(u32::try_from(submitted).unwrap_or(submit))
    }
}

/// The number of the registered buffer in which the whole span lies.
#[inline]
fn fixed_buffer(region: HostRegion, span: &Span) -> Option<u16> {
    let from = (span.as_ptr() as usize).checked_sub(region.ptr.as_ptr() as usize)?;
    let end = from + span.len() as usize;
    let number = from >> REGISTERED_BITS;
    let inside = end <= region.len && end <= (number + 1) << REGISTERED_BITS;
    if inside { u16::try_from(number).ok() } else { None }
}

impl Engine for Uring {
    #[inline]
    fn push(&mut self, io: Io) -> Push {
        if io.file as usize >= self.fds.len() {
            return Push::Done(Done { io, result: Err(IoFault::Errno(libc::EBADF)) });
        }
        let Some(slot) = self.slots.put(io) else {
            return Push::Full(io);
        };
        let entry = self.entry(&io).user_data(u64::from(slot));
        // SAFETY: the span outlives the I/O by its maker's promise, the descriptor by
        // `EngineFile`'s.
        if unsafe { self.ring.submission().push(&entry) }.is_err() {
            // The queue has an entry for every slot, so this is for a kernel that has not
            // taken what it was given.
            self.slots.take(u64::from(slot));
            return Push::Full(io);
        }
        self.queued += 1;
        Push::Taken
    }

    fn submit(&mut self) -> Result<(), EngineError> {
        while self.queued > 0 {
            self.enter(0, EnterFlags::empty())?;
        }
        Ok(())
    }

    fn reap(&mut self, done: &mut Vec<Done>, at_least: usize) -> Result<(), EngineError> {
        let want = at_least.min(self.slots.len());
        let mut actual = self.drain(done);
        let idle = actual == 0 && self.slots.len() > 0;
        let polled = self.polling == Polling::Completions;
        let mut look = idle && (polled || self.ring.submission().taskrun());
        while self.queued > 0 || actual < want || look {
            self.enter(want.saturating_sub(actual), EnterFlags::GETEVENTS)?;
            actual += self.drain(done);
            look = false;
        }
        Ok(())
    }

    fn wait_timeout(&mut self, timeout: Duration) -> Result<(), EngineError> {
        let timed = self.ring.params().is_feature_ext_arg();
        let interrupts = self.polling == Polling::None;
        if self.slots.len() == 0 || !timed || !interrupts || !self.ring.completion().is_empty() {
            return self.submit();
        }
        let time = types::Timespec::from(timeout);
        let args = types::SubmitArgs::new().timespec(&time);
        // An error is the time that is over, or what the next reap meets again and returns.
        if let Ok(submitted) = self.ring.submitter().submit_with_args(1, &args) {
            self.queued -= u32::try_from(submitted).unwrap_or(u32::MAX).min(self.queued);
        }
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.slots.len()
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        let mut done = Vec::with_capacity(self.slots.len());
        if self.reap(&mut done, usize::MAX).is_err() {
            // The kernel may still write into memory that is about to be freed, and there is
            // nothing left to wait with.
            std::process::abort();
        }
    }
}

#[cfg(test)]
mod tests;
