//! One thread's place at an office.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::mailbox::Letter;
use super::{ASK_AFTER, Inner, Reply, Tended};
use crate::DevPtr;
use crate::error::GpuError;

/// Looks in vain before the clock is read, and each time after so many more.
const LOOKS: u32 = 64;
/// Looks in vain before a waiting thread lets others run: about 200 microseconds on real hardware.
/// The software GPU needs the processor itself.
const SPINS: u32 = 20_000;
const SPINS_SOFTWARE: u32 = 16;
/// How long a desk that is given up waits for an answer still under way.
const LAST_WAIT: Duration = Duration::from_millis(5);

/// What one thread posts letters with at an [`Office`](super::Office). Each letter takes a place of
/// the kernel's until its end is seen: the desk's own if that is free, another one otherwise.
/// Dropping a desk calls no driver, unless it is the last of its office.
#[derive(Debug)]
pub struct Desk {
    office: Arc<Inner>,
    preferred: u32,
    /// Whether the preferred place was given to this desk alone. Others use it only while all of
    /// theirs are taken.
    keeps: bool,
    /// The place of the letter under way, or of the last one.
    number: u32,
    /// The one under way.
    letter: Option<Letter>,
    wait: Wait,
}

/// How long the letter under way has been waited for.
#[derive(Debug)]
struct Wait {
    looks: u32,
    since: Option<Instant>,
}

impl Wait {
    fn none() -> Self {
        Self { looks: 0, since: None }
    }
}

impl Desk {
    /// A desk that uses the place of this number where that is free; `keeps` if no other desk was
    /// given that number.
    pub(super) fn new(office: Arc<Inner>, preferred: u32, keeps: bool) -> Self {
        Self { office, preferred, keeps, number: preferred, letter: None, wait: Wait::none() }
    }

    /// Moves `len` bytes from `src` to `dst` and waits, without sleeping. For up to about 64 KiB;
    /// more is moved too, by the same few threads of the device. No context need be current, and
    /// the thread's own stays.
    ///
    /// The answer is [`Reply::Moved`] or [`Reply::Busy`].
    ///
    /// # Errors
    ///
    /// The kernel could not be launched, or failed: nothing is under way any more. An address that
    /// the device cannot reach loses the context (`CUDA_ERROR_ILLEGAL_ADDRESS`), for all desks.
    ///
    /// # Panics
    ///
    /// A letter is under way.
    ///
    /// # Safety
    ///
    /// Both ranges must be live memory that kernels of the office's context reach: of that context,
    /// of a pool or a mapping of its device, page-locked, or managed. Nobody may write the source
    /// or use the destination during the call. The other bytes of the 16-byte words that the source
    /// begins and ends in are read too, and do not matter.
    pub unsafe fn run(&mut self, src: DevPtr, dst: DevPtr, len: usize) -> Result<Reply, GpuError> {
        // SAFETY: the caller's promise is the same, until `finish` has seen the end.
        match unsafe { self.post(src, dst, len) }? {
            Reply::Waiting => self.finish(),
            reply => Ok(reply),
        }
    }

    /// Waits for the letter under way, without sleeping: [`Reply::Moved`] or [`Reply::Busy`]. The
    /// first if there is none.
    ///
    /// # Errors
    ///
    /// As [`Desk::run`].
    pub fn finish(&mut self) -> Result<Reply, GpuError> {
        let is_software = self.office.context.driver().is_software();
        let spins = if is_software { SPINS_SOFTWARE } else { SPINS };
        let mut reply = self.poll()?;
        while reply == Reply::Waiting {
            let yields = self.wait.looks >= spins;
            if yields {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
            reply = self.poll()?;
            if yields && reply == Reply::Waiting {
                // Others may have run for long.
                reply = self.consider()?;
            }
        }
        Ok(reply)
    }

    /// Posts a letter, for [`Desk::poll`] to see its end. The answer is [`Reply::Waiting`] or
    /// [`Reply::Busy`], and [`Reply::Moved`] for a length of 0.
    ///
    /// # Errors
    ///
    /// As [`Desk::run`].
    ///
    /// # Panics
    ///
    /// A letter is under way.
    ///
    /// # Safety
    ///
    /// As [`Desk::run`], until [`Desk::poll`] or [`Desk::take_back`] has answered that nothing is
    /// under way, or an error.
    pub unsafe fn post(&mut self, src: DevPtr, dst: DevPtr, len: usize) -> Result<Reply, GpuError> {
        if len == 0 {
            return Ok(Reply::Moved);
        }
        self.put(|number| Letter::bytes(number, src, dst, len))
    }

    /// As [`Desk::post`], for many blocks: `count` [`Piece`](crate::Piece)s that stand from `list`
    /// on. Their order is not defined. Pieces of 4 KiB are moved best.
    ///
    /// # Errors
    ///
    /// As [`Desk::run`].
    ///
    /// # Panics
    ///
    /// A letter is under way, or `list` is not a multiple of 16.
    ///
    /// # Safety
    ///
    /// As [`Desk::post`], for the list and the ranges of all pieces. No destination may overlap the
    /// list, a source or another destination.
    pub unsafe fn post_list(&mut self, list: DevPtr, count: u32) -> Result<Reply, GpuError> {
        assert!(list.0.is_multiple_of(16), "a list at {list}");
        if count == 0 {
            return Ok(Reply::Moved);
        }
        self.put(|number| Letter::list(number, list, count))
    }

    /// Puts a letter at a place; none has words that are too long for one.
    fn put(&mut self, letter: impl Fn(u64) -> Option<Letter>) -> Result<Reply, GpuError> {
        assert!(self.letter.is_none(), "a letter is under way at this desk");
        let office = &self.office;
        if let Some(error) = office.broken.get() {
            return Err(error.clone());
        }
        office.set_active(self.preferred);
        if office.is_resting() && !office.try_again()? {
            return Ok(Reply::Busy);
        }
        let Some(number) = office.claim(self.preferred) else {
            return Ok(Reply::Busy);
        };
        self.number = number;
        let put = self.put_at(letter);
        if self.letter.is_none() {
            self.office.release(number);
        }
        put
    }

    /// Puts a letter at the place that was claimed.
    fn put_at(&mut self, letter: impl Fn(u64) -> Option<Letter>) -> Result<Reply, GpuError> {
        let office = &self.office;
        let Some(letter) = letter(office.posted(self.number) + 1) else {
            return Ok(Reply::Busy);
        };
        // Before the letter, so that the launch is on its way while that is written.
        if office.tend(self.number)? == Tended::Resting {
            return Ok(Reply::Busy);
        }
        if office.is_stuck(self.number) {
            office.rest();
            // It may have failed: then the next letter is for another launch.
            return office.ask().map(|()| Reply::Busy);
        }
        office.mailbox.put(self.number as usize, letter);
        office.set_posted(self.number, letter.number);
        self.letter = Some(letter);
        self.wait = Wait::none();
        Ok(Reply::Waiting)
    }

    /// Notes that no letter is under way any more, and lets others have the place.
    fn end(&mut self) {
        if self.letter.take().is_some() {
            self.office.release(self.number);
        }
    }

    /// What became of the letter; never blocks for it. [`Reply::Moved`] if there is none.
    ///
    /// # Errors
    ///
    /// As [`Desk::run`].
    #[inline]
    pub fn poll(&mut self) -> Result<Reply, GpuError> {
        let Some(letter) = self.letter else {
            return Ok(Reply::Moved);
        };
        if self.office.mailbox.answer(self.number as usize) == letter.number {
            self.end();
            return Ok(Reply::Moved);
        }
        match self.office.tend(self.number) {
            Ok(Tended::Served) => {}
            Ok(Tended::Resting) if self.take_back() => return Ok(Reply::Busy),
            Ok(Tended::Resting) => {}
            Err(error) => return self.give_up(error),
        }
        self.wait.looks = self.wait.looks.saturating_add(1);
        if self.wait.looks.is_multiple_of(LOOKS) { self.consider() } else { Ok(Reply::Waiting) }
    }

    /// Looks at the clock: has it taken too long?
    #[cold]
    fn consider(&mut self) -> Result<Reply, GpuError> {
        if let Some(error) = self.office.broken.get() {
            let error = error.clone();
            return self.give_up(error);
        }
        let waited = self.wait.since.get_or_insert_with(Instant::now).elapsed();
        if waited > ASK_AFTER
            && let Err(error) = self.office.ask()
        {
            return self.give_up(error);
        }
        if self.office.is_stuck(self.number) && self.take_back() {
            self.office.rest();
            return Ok(Reply::Busy);
        }
        Ok(Reply::Waiting)
    }

    /// Takes the letter back, if no block can have read it. True if nothing is under way then: it
    /// was not moved, and will not be. False if it is being moved or was moved, which
    /// [`Desk::poll`] tells. Calls no driver.
    pub fn take_back(&mut self) -> bool {
        let Some(letter) = self.letter else {
            return true;
        };
        let (office, desk) = (&self.office, self.number as usize);
        let is_here =
            || office.is_here(self.number) || office.mailbox.answer(desk) == letter.number;
        // Asked first, so that a block which is there sees the letter all the time.
        if is_here() || !office.mailbox.take_back(desk, letter, is_here) {
            return false;
        }
        office.set_posted(self.number, letter.number - 1);
        self.end();
        true
    }

    /// Ends with an error: nothing is under way then.
    #[cold]
    fn give_up(&mut self, error: GpuError) -> Result<Reply, GpuError> {
        let lost = self.office.broken.get().is_some();
        if !self.take_back() && lost {
            // A lost device runs nothing any more, and answers nothing.
            self.end();
        }
        // A block that is still there will answer, whatever failed.
        if self.letter.is_some() { Ok(Reply::Waiting) } else { Err(error) }
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        let began = Instant::now();
        while let Some(letter) = self.letter {
            let answered = self.office.mailbox.answer(self.number as usize) == letter.number;
            if answered || self.office.broken.get().is_some() {
                self.end();
            } else if !self.take_back() {
                if began.elapsed() > LAST_WAIT {
                    // The place stays taken: a block may still answer there.
                    return;
                }
                std::thread::yield_now();
            }
        }
        if self.keeps {
            self.office.taken.fetch_and(!(1 << self.preferred), Ordering::AcqRel);
        }
    }
}
