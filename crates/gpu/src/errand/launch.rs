//! When the kernel is launched, and when not.

use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use super::{ASK_AFTER, DESKS_MOST, Inner, most_blocks, nanoseconds};
use crate::error::GpuError;
use crate::module::Arg;

/// Threads of a block: a page takes one load of 16 bytes in each. Twice as many move 1 MiB no
/// sooner, and 64 KiB of sixteen desks 8 % later.
const THREADS: u32 = 256;
/// A rest that follows another one takes twice as long, up to this.
const REST_MOST: Duration = Duration::from_millis(32);
/// How long after its begin a launch has found out whether there is room for all of its blocks, and
/// the host could see it.
const JUDGED: Duration = Duration::from_micros(25);
/// Blocks of ours take room that other kernels then do without, so that there seems to be enough
/// for all. Now and then the kernel stays away for so long before it looks: longer than most
/// kernels take.
const PAUSE: Duration = Duration::from_micros(100);
/// When it does so first after it came. Each time there was room it waits twice as long, up to
/// [`Timing::looks`](super::Timing).
const PAUSE_AFTER: Duration = Duration::from_micros(500);
/// After so many launches it is found out anew which places are in use.
const ACTIVE_FOR: u64 = 32;

/// What whoever launches needs to know.
#[derive(Debug, Default)]
pub(super) struct Launching {
    /// The stream of the latest launch.
    half: usize,
    /// For each stream how many blocks have come, once all have.
    arrived: [u64; 2],
    /// Places that had a letter before `active` was begun anew.
    active_before: u64,
    /// When the kernel stays away next for a look, as `put_at`.
    pause_at: u64,
    /// How long after that it does so again, in nanoseconds.
    pause_after: u64,
}

/// A launch: its number, 1 or more, and how many places it serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Launch {
    pub(super) number: u64,
    pub(super) desks: u32,
}

impl Launch {
    fn packed(self) -> u64 {
        self.number << 8 | u64::from(self.desks)
    }

    fn unpacked(word: u64) -> Self {
        Self { number: word >> 8, desks: u32::from(word.to_le_bytes()[0]) }
    }
}

/// What becomes of letters now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tended {
    /// A launch serves them, or is on its way.
    Served,
    /// No launch will: the device belongs to others.
    Resting,
}

impl Inner {
    pub(super) fn latest(&self) -> Launch {
        Launch::unpacked(self.latest.load(Ordering::Acquire))
    }

    pub(super) fn is_resting(&self) -> bool {
        self.rest_until.load(Ordering::Relaxed) != 0
    }

    /// Leaves the device to others for a while, all launches that are under way included.
    #[cold]
    pub(super) fn rest(&self) {
        self.rest_from(0);
    }

    /// As [`Inner::rest`], if that is what `rest_until` says still.
    fn rest_from(&self, until: u64) {
        self.mailbox.send_away(self.latest().number);
        let len = self.rest_len.load(Ordering::Relaxed);
        let (order, next) = (Ordering::Relaxed, self.now() + len);
        if self.rest_until.compare_exchange(until, next, order, order).is_ok() {
            let longer = (len * 2).min(nanoseconds(REST_MOST));
            self.rest_len.store(longer.max(len), Ordering::Relaxed);
        }
    }

    /// After a rest: whether a launch finds room. One thread makes it and waits; all others, and
    /// those that come before the rest is over, hear that there is none.
    #[cold]
    pub(super) fn try_again(&self) -> Result<bool, GpuError> {
        let until = self.rest_until.load(Ordering::Relaxed);
        if until == 0 {
            return Ok(true);
        }
        if self.now() < until {
            return Ok(false);
        }
        let Some(mut launching) = self.try_launching() else {
            return Ok(false);
        };
        // Another thread may have done it meanwhile.
        let now_until = self.rest_until.load(Ordering::Relaxed);
        if now_until != until {
            return Ok(now_until == 0);
        }
        let before = self.latest();
        let finds_room = if self.is_there(before) {
            // It may have failed: then the next one is not in its way.
            self.ask()?;
            if !self.is_stuck(0) {
                // It works on a long letter, or is on its way.
                return Ok(false);
            }
            false
        } else {
            self.launch(&mut launching, 0, before, false)?;
            self.finds_room(self.latest().number)
        };
        let now = self.now();
        if finds_room {
            launching.pause_after = launching.pause_after.max(nanoseconds(PAUSE_AFTER));
            launching.pause_at = now + launching.pause_after;
            self.rest_until.store(0, Ordering::Relaxed);
        } else {
            launching.pause_after = 0;
            self.rest_from(until);
        }
        Ok(finds_room)
    }

    /// Waits until a launch has begun and judged whether there is room.
    fn finds_room(&self, launch: u64) -> bool {
        let began = Instant::now();
        let is_software = self.context.driver().is_software();
        let mut came: Option<Instant> = None;
        loop {
            if self.left(0) >= launch {
                // No letter came while this thread did not run, others fill the device, or the
                // launch failed.
                let gone = self.mailbox.gone(0);
                return gone.launch >= launch && !gone.was_crowded;
            }
            if came.is_none() && self.mailbox.here(0).launch >= launch {
                came = Some(Instant::now());
            }
            match came {
                Some(came) if came.elapsed() > JUDGED => return true,
                None if began.elapsed() > self.timing.patience => return false,
                _ if is_software => std::thread::yield_now(),
                _ => std::hint::spin_loop(),
            }
        }
    }

    /// Sees that a launch is on its way that serves the place, unless the device is left to others.
    #[inline]
    pub(super) fn tend(&self, desk: u32) -> Result<Tended, GpuError> {
        if self.is_resting() {
            return Ok(Tended::Resting);
        }
        let latest = self.latest();
        let gone = self.mailbox.gone(desk as usize);
        if desk >= latest.desks || gone.launch >= latest.number || self.is_over(latest) {
            if gone.was_crowded && gone.launch == latest.number {
                self.rest();
                return Ok(Tended::Resting);
            }
            if gone.launch == latest.number {
                // There was room.
                self.rest_len.store(nanoseconds(self.timing.rest), Ordering::Relaxed);
            }
            let mut launching = self.launching.lock().unwrap_or_else(PoisonError::into_inner);
            // Somebody else may have done it meanwhile; the next look tells.
            if self.latest() == latest {
                self.launch(&mut launching, desk, latest, false)?;
            }
            return Ok(Tended::Served);
        }
        let here = self.mailbox.here(desk as usize);
        if here.is_leaving && here.launch == latest.number {
            self.relieve(desk, latest);
        }
        Ok(Tended::Served)
    }

    /// Makes the launch that takes over, so that no letter waits between two.
    #[cold]
    fn relieve(&self, desk: u32, latest: Launch) {
        let Some(mut launching) = self.try_launching() else {
            return;
        };
        // Fewer places can't be taken over: of two launches at once the later one has all.
        if self.latest() != latest || self.wanted(&mut launching, desk) < latest.desks {
            return;
        }
        if !self.timing.looks.is_zero() && self.now() >= launching.pause_at {
            self.pause(&mut launching);
        } else {
            // If it fails, whoever needs it finds out.
            let _ = self.launch(&mut launching, desk, latest, true);
        }
    }

    /// Has nobody take over, and the next launch look whether there is room without us. Letters
    /// under way are answered, as until then a launch is there.
    fn pause(&self, launching: &mut Launching) {
        // There was room at the last look, and no sign of others since.
        self.rest_len.store(nanoseconds(self.timing.rest), Ordering::Relaxed);
        launching.pause_after = (launching.pause_after * 2).min(nanoseconds(self.timing.looks));
        let until = self.now() + nanoseconds(self.timing.lead + PAUSE);
        let order = Ordering::Relaxed;
        let _ = self.rest_until.compare_exchange(0, until, order, order);
    }

    /// The right to launch, if nobody has it.
    fn try_launching(&self) -> Option<MutexGuard<'_, Launching>> {
        match self.launching.try_lock() {
            Ok(launching) => Some(launching),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Whether a block of the launch is on the device still, or has yet to come.
    fn is_there(&self, launch: Launch) -> bool {
        (0..launch.desks).any(|desk| self.left(desk) < launch.number)
    }

    fn is_over(&self, launch: Launch) -> bool {
        self.ended.load(Ordering::Acquire) >= launch.number
    }

    /// How many places a launch shall serve: those in use, and this one.
    fn wanted(&self, launching: &mut Launching, desk: u32) -> u32 {
        let active = self.active.load(Ordering::Relaxed) | launching.active_before | 1 << desk;
        let used = (u64::BITS - active.leading_zeros()).next_power_of_two();
        used.min(u32::try_from(self.places.len()).unwrap_or(DESKS_MOST))
    }

    /// Launches the kernel. With `relieves` the one before is on the device still, all of it.
    #[cold]
    fn launch(
        &self,
        launching: &mut Launching,
        desk: u32,
        before: Launch,
        relieves: bool,
    ) -> Result<(), GpuError> {
        if let Some(error) = self.broken.get() {
            return Err(error.clone());
        }
        let next = Launch { number: before.number + 1, desks: self.wanted(launching, desk) };
        if next.number.is_multiple_of(ACTIVE_FOR) {
            launching.active_before = self.active.swap(0, Ordering::Relaxed);
        }
        let blocks = next.desks.min(most_blocks(self.multiprocessors));
        // In the same stream a launch begins when the one before has ended.
        let half = launching.half ^ usize::from(relieves);
        let grid = blocks + self.multiprocessors;
        let arrived = launching.arrived[half] + u64::from(grid);
        let time = |time| Arg::U64(nanoseconds(time));
        let args = [
            Arg::Ptr(self.mailbox.ptr()),
            Arg::Ptr(self.shared.ptr()),
            Arg::U64(u64::from(next.desks)),
            Arg::U64(u64::from(blocks)),
            Arg::U64(arrived),
            Arg::U64(half as u64),
            Arg::U64(if relieves { u64::from(before.desks) } else { 0 }),
            Arg::U64(next.number),
            time(self.timing.idle),
            time(self.timing.stay),
            time(self.timing.lead),
        ];
        let put = self.context.entered(|| {
            // SAFETY: the types are the kernel's. The mailbox is never given back, and `shared`
            // only after the streams were waited for; what letters name is the promise of those
            // who post.
            unsafe { self.streams[half].launch(&self.kernel, grid, THREADS, &args) }
        });
        put.flatten().inspect_err(|error| self.note(error))?;
        launching.half = half;
        launching.arrived[half] = arrived;
        // One that serves more places begins when the one before has left.
        let waits = if self.is_there(before) { self.timing.stay } else { Duration::ZERO };
        self.put_at.store(self.now() + nanoseconds(waits), Ordering::Relaxed);
        self.latest.store(next.packed(), Ordering::Release);
        Ok(())
    }

    /// Asks the driver what became of the launches, if nobody did so lately.
    #[cold]
    pub(super) fn ask(&self) -> Result<(), GpuError> {
        let (before, now) = (self.asked_at.load(Ordering::Relaxed), self.now());
        let is_late = now.saturating_sub(before) > nanoseconds(ASK_AFTER);
        let order = Ordering::Relaxed;
        if !is_late || self.asked_at.compare_exchange(before, now, order, order).is_err() {
            return Ok(());
        }
        let latest = self.latest();
        let ask = || Ok(self.streams[0].query()? & self.streams[1].query()?);
        let over = self.context.entered(ask).flatten();
        // Other refusals say nothing of the launches.
        let is_lost = |error: &GpuError| error.is_sticky() || error.is_reset();
        if over.as_ref().map_or_else(is_lost, |over| *over) {
            self.ended.fetch_max(latest.number, Ordering::AcqRel);
        }
        over.map(|_| ()).inspect_err(|error| self.note(error))
    }

    /// Keeps an error after which nothing works any more.
    fn note(&self, error: &GpuError) {
        if error.is_sticky() {
            let _ = self.broken.set(error.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_keeps_its_number_and_its_places() {
        for (number, desks) in [(0, 0), (1, 8), (1 << 40, 64)] {
            let launch = Launch { number, desks };
            assert_eq!(Launch::unpacked(launch.packed()), launch);
        }
    }
}
