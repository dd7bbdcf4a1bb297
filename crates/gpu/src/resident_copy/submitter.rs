//! One thread's access to the command slots.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::mailbox::Command;
use super::{Outcome, QUERY_INTERVAL, QueueState, Service};
use crate::DevPtr;
use crate::error::GpuError;

/// Polls between two looks at the clock.
const POLLS_PER_CHECK: u32 = 64;
/// Polls before a waiting thread yields its processor: about 200 microseconds on real hardware. The
/// software GPU needs the processor itself.
const SPIN_POLLS: u32 = 20_000;
const SPIN_POLLS_SOFTWARE: u32 = 16;
/// How long a dropped submitter waits for a command in flight.
const DROP_TIMEOUT: Duration = Duration::from_millis(5);

/// Submits the commands of one thread to a [`CommandQueue`](super::CommandQueue). A command
/// occupies a slot until its completion is seen: the submitter's preferred slot if that is free,
/// else another one. Dropping a submitter calls no driver, unless it is the last of its queue.
#[derive(Debug)]
pub struct Submitter {
    queue: Arc<QueueState>,
    preferred: u32,
    /// Whether no other submitter prefers this slot. Others use it only when theirs are occupied.
    is_dedicated: bool,
    /// The slot of the command in flight, or of the last one.
    number: u32,
    /// The command in flight.
    command: Option<Command>,
    wait: Wait,
}

/// How long the command in flight has been waited for.
#[derive(Debug)]
struct Wait {
    polls: u32,
    since: Option<Instant>,
}

impl Wait {
    fn none() -> Self {
        Self { polls: 0, since: None }
    }
}

impl Submitter {
    /// A submitter that prefers the slot of this number; `is_dedicated` if no other one does.
    pub(super) fn new(queue: Arc<QueueState>, preferred: u32, is_dedicated: bool) -> Self {
        Self {
            queue,
            preferred,
            is_dedicated,
            number: preferred,
            command: None,
            wait: Wait::none(),
        }
    }

    /// Copies `len` bytes from `src` to `dst` and waits, without sleeping. Meant for up to about
    /// 64 KiB; the same few threads of the device copy more, too. No context need be current, and
    /// the thread's current context stays.
    ///
    /// Returns [`Outcome::Copied`] or [`Outcome::Busy`].
    ///
    /// # Errors
    /// The kernel could not be launched, or failed: nothing is in flight any more. An address that
    /// the device cannot reach loses the context (`CUDA_ERROR_ILLEGAL_ADDRESS`), for all
    /// submitters.
    ///
    /// # Panics
    /// A command is in flight.
    ///
    /// # Safety
    /// Both ranges must be live memory that kernels of the queue's context reach: of that context,
    /// of a pool or a mapping of its device, page-locked, or managed. During the call nothing else
    /// may write the source or use the destination. The kernel also reads, and ignores, the rest of
    /// the 16-byte words that the source begins and ends in.
    pub unsafe fn copy(
        &mut self,
        src: DevPtr,
        dst: DevPtr,
        len: usize,
    ) -> Result<Outcome, GpuError> {
        // SAFETY: the caller's promise is the same, until `wait` returns.
        match unsafe { self.submit(src, dst, len) }? {
            Outcome::Pending => self.wait(),
            outcome => Ok(outcome),
        }
    }

    /// Waits for the command in flight, without sleeping. Returns [`Outcome::Copied`], also if
    /// there is none, or [`Outcome::Busy`].
    ///
    /// # Errors
    /// As [`Submitter::copy`].
    pub fn wait(&mut self) -> Result<Outcome, GpuError> {
        let is_software = self.queue.context.driver().is_software();
        let spins = if is_software { SPIN_POLLS_SOFTWARE } else { SPIN_POLLS };
        let mut outcome = self.poll()?;
        while outcome == Outcome::Pending {
            let yields = self.wait.polls >= spins;
            if yields {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
            outcome = self.poll()?;
            if yields && outcome == Outcome::Pending {
                // Other threads may have run for long.
                outcome = self.check_timeouts()?;
            }
        }
        Ok(outcome)
    }

    /// Submits a command; [`Submitter::poll`] reports its completion. Returns [`Outcome::Pending`]
    /// or [`Outcome::Busy`], and [`Outcome::Copied`] for a length of 0.
    ///
    /// # Errors
    /// As [`Submitter::copy`].
    ///
    /// # Panics
    /// A command is in flight.
    ///
    /// # Safety
    /// As [`Submitter::copy`], until [`Submitter::poll`] or [`Submitter::cancel`] reports that
    /// nothing is in flight, or an error.
    pub unsafe fn submit(
        &mut self,
        src: DevPtr,
        dst: DevPtr,
        len: usize,
    ) -> Result<Outcome, GpuError> {
        if len == 0 {
            return Ok(Outcome::Copied);
        }
        self.submit_command(|number| Command::bytes(number, src, dst, len))
    }

    /// As [`Submitter::submit`], for many blocks: an array of `count` [`Piece`](crate::Piece)s at
    /// `list`. They are copied in no defined order. Pieces of 4 KiB are the fastest.
    ///
    /// # Errors
    /// As [`Submitter::copy`].
    ///
    /// # Panics
    /// A command is in flight, or `list` is not a multiple of 16.
    ///
    /// # Safety
    /// As [`Submitter::submit`], for the list and the ranges of all pieces. No destination may
    /// overlap the list, a source or another destination.
    pub unsafe fn submit_list(&mut self, list: DevPtr, count: u32) -> Result<Outcome, GpuError> {
        assert!(list.0.is_multiple_of(16), "a list at {list}");
        if count == 0 {
            return Ok(Outcome::Copied);
        }
        self.submit_command(|number| Command::list(number, list, count))
    }

    /// Submits a command to a free slot. `None` of `command`: an address or length is too long.
    fn submit_command(
        &mut self,
        command: impl Fn(u64) -> Option<Command>,
    ) -> Result<Outcome, GpuError> {
        assert!(self.command.is_none(), "a command is in flight");
        let queue = &self.queue;
        if let Some(error) = queue.lost.get() {
            return Err(error.clone());
        }
        queue.slots.set_active(self.preferred);
        if queue.is_backing_off() && !queue.retry_after_backoff()? {
            return Ok(Outcome::Busy);
        }
        let Some(number) = queue.slots.claim(self.preferred) else {
            return Ok(Outcome::Busy);
        };
        self.number = number;
        let submitted = self.submit_to_slot(command);
        if self.command.is_none() {
            self.queue.slots.release(number);
        }
        submitted
    }

    /// Submits a command to the slot that was claimed.
    fn submit_to_slot(
        &mut self,
        command: impl Fn(u64) -> Option<Command>,
    ) -> Result<Outcome, GpuError> {
        let queue = &self.queue;
        let Some(command) = command(queue.slots.submitted(self.number) + 1) else {
            return Ok(Outcome::Busy);
        };
        // Before the command is written, so that the launch begins meanwhile.
        if queue.ensure_running(self.number)? == Service::BackedOff {
            return Ok(Outcome::Busy);
        }
        if queue.is_start_overdue(self.number) {
            queue.back_off();
            // The launch may have failed: then the next command makes another one.
            return queue.query_driver().map(|()| Outcome::Busy);
        }
        queue.mailbox.submit(self.number as usize, command);
        queue.slots.set_submitted(self.number, command.number);
        self.command = Some(command);
        self.wait = Wait::none();
        Ok(Outcome::Pending)
    }

    /// Records that no command is in flight any more, and releases the slot.
    fn end(&mut self) {
        if self.command.take().is_some() {
            self.queue.slots.release(self.number);
        }
    }

    /// The state of the command; never blocks. [`Outcome::Copied`] if there is none.
    ///
    /// # Errors
    /// As [`Submitter::copy`].
    #[inline]
    pub fn poll(&mut self) -> Result<Outcome, GpuError> {
        let Some(command) = self.command else {
            return Ok(Outcome::Copied);
        };
        if self.queue.mailbox.completed(self.number as usize) == command.number {
            self.end();
            return Ok(Outcome::Copied);
        }
        match self.queue.ensure_running(self.number) {
            Ok(Service::Running) => {}
            Ok(Service::BackedOff) if self.cancel() => return Ok(Outcome::Busy),
            Ok(Service::BackedOff) => {}
            Err(error) => return self.fail(error),
        }
        self.wait.polls = self.wait.polls.saturating_add(1);
        if self.wait.polls.is_multiple_of(POLLS_PER_CHECK) {
            self.check_timeouts()
        } else {
            Ok(Outcome::Pending)
        }
    }

    /// Reads the clock and handles a command that takes too long.
    #[cold]
    fn check_timeouts(&mut self) -> Result<Outcome, GpuError> {
        if let Some(error) = self.queue.lost.get() {
            let error = error.clone();
            return self.fail(error);
        }
        let waited = self.wait.since.get_or_insert_with(Instant::now).elapsed();
        if waited > QUERY_INTERVAL
            && let Err(error) = self.queue.query_driver()
        {
            return self.fail(error);
        }
        if self.queue.is_start_overdue(self.number) && self.cancel() {
            self.queue.back_off();
            return Ok(Outcome::Busy);
        }
        Ok(Outcome::Pending)
    }

    /// Cancels the command if no block can have read it. True: nothing is in flight, nothing was
    /// copied and nothing will be. False: the copy is in flight or complete; [`Submitter::poll`]
    /// reports which. No driver call.
    pub fn cancel(&mut self) -> bool {
        let Some(command) = self.command else {
            return true;
        };
        let (queue, slot) = (&self.queue, self.number as usize);
        let has_block =
            || queue.has_block(self.number) || queue.mailbox.completed(slot) == command.number;
        // Checked first, so that a block that is present never sees the command disappear.
        if has_block() || !queue.mailbox.cancel(slot, command, has_block) {
            return false;
        }
        queue.slots.set_submitted(self.number, command.number - 1);
        self.end();
        true
    }

    /// Returns the error if nothing is in flight any more, else [`Outcome::Pending`].
    #[cold]
    fn fail(&mut self, error: GpuError) -> Result<Outcome, GpuError> {
        let lost = self.queue.lost.get().is_some();
        if !self.cancel() && lost {
            // A lost device runs nothing any more.
            self.end();
        }
        // A block that is still present will complete the command.
        if self.command.is_some() { Ok(Outcome::Pending) } else { Err(error) }
    }
}

impl Drop for Submitter {
    fn drop(&mut self) {
        let began = Instant::now();
        while let Some(command) = self.command {
            let completed = self.queue.mailbox.completed(self.number as usize) == command.number;
            if completed || self.queue.lost.get().is_some() {
                self.end();
            } else if !self.cancel() {
                if began.elapsed() > DROP_TIMEOUT {
                    // The slot stays claimed: a block may still write its completion there.
                    return;
                }
                std::thread::yield_now();
            }
        }
        if self.is_dedicated {
            self.queue.slots.give_back(self.preferred);
        }
    }
}
