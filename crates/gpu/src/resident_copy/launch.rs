//! Decides when the kernel is launched.

use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use super::{MAX_SLOTS, QUERY_INTERVAL, QueueState, max_blocks, nanoseconds};
use crate::error::GpuError;
use crate::module::Arg;

/// Threads of a block: a page of 4 KiB is one load of 16 bytes in each. Twice as many copy 1 MiB no
/// faster, and 64 KiB in sixteen slots 8 % slower.
const THREADS: u32 = 256;
/// The longest backoff. Each backoff is twice as long as the one before.
const MAX_BACKOFF: Duration = Duration::from_millis(32);
/// So long after its begin a launch knows whether there was room for all of its blocks, and the
/// host can see it.
const OCCUPANCY_KNOWN: Duration = Duration::from_micros(25);
/// A probe that begins after more than this part of the start timeout began late. On an idle device
/// it begins within 11 microseconds beside copies of 4 KiB by the driver, and beside batches of
/// 64 KiB within 20 to 50, 5 of 339 after more than 66 (H100).
const LATE_SHARE: u32 = 3;
/// Our own blocks displace those of other kernels, so a launch that takes over finds enough space.
/// Before a probe the kernel therefore stays away for so long: longer than most kernels take.
const PROBE_PAUSE: Duration = Duration::from_micros(100);
/// The first probe comes so long after the kernel started. The interval doubles after each probe
/// that found room, up to [`Timing::probe_interval`](super::Timing).
const FIRST_PROBE_AFTER: Duration = Duration::from_micros(500);
/// A program that keeps the device full leaves gaps between its kernels, and a probe may meet one.
/// A backoff therefore ends only after three probes in a row have found room, with these pauses
/// between them. The pauses are no multiples of each other, so that not all probes meet the gaps of
/// one period.
const PAUSES_BETWEEN_PROBES: [Duration; 2] =
    [Duration::from_micros(170), Duration::from_micros(430)];
/// The set of active slots is renewed after so many launches.
const ACTIVE_FOR: u64 = 32;

/// State that only the launching thread uses.
#[derive(Debug, Default)]
pub(super) struct Launching {
    /// The stream of the latest launch.
    stream_index: usize,
    /// For each stream, how many blocks will have started once all of its launches have.
    arrived: [u64; 2],
    /// The slots that were active before `active` was last cleared.
    active_before: u64,
    /// When the next probe is due, as `launched_at`.
    next_probe_at: u64,
    /// The interval to the probe after it, nanoseconds.
    probe_after: u64,
    /// How many probes in a row have found room during this backoff.
    found_room: usize,
}

/// A launch: its number, 1 or more, and how many slots it serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Launch {
    pub(super) number: u64,
    pub(super) slots: u32,
}

impl Launch {
    fn packed(self) -> u64 {
        self.number << 8 | u64::from(self.slots)
    }

    fn unpacked(word: u64) -> Self {
        Self { number: word >> 8, slots: u32::from(word.to_le_bytes()[0]) }
    }
}

/// Whether commands are served now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Service {
    /// A launch serves them, or is about to begin.
    Running,
    /// No launch serves them: other kernels fill the device.
    BackedOff,
}

impl QueueState {
    pub(super) fn latest(&self) -> Launch {
        Launch::unpacked(self.latest.load(Ordering::Acquire))
    }

    pub(super) fn is_backing_off(&self) -> bool {
        self.backoff_until.load(Ordering::Relaxed) != 0
    }

    /// Begins a backoff: all launches exit, and no new one is made for a while.
    #[cold]
    pub(super) fn back_off(&self) {
        self.back_off_from(0);
    }

    /// As [`QueueState::back_off`], unless another thread has changed `backoff_until`.
    fn back_off_from(&self, until: u64) {
        self.mailbox.request_exit(self.latest().number);
        let len = self.backoff_len.load(Ordering::Relaxed);
        let (order, next) = (Ordering::Relaxed, self.now() + len);
        if self.backoff_until.compare_exchange(until, next, order, order).is_ok() {
            let longer = (len * 2).min(nanoseconds(MAX_BACKOFF));
            self.backoff_len.store(longer.max(len), Ordering::Relaxed);
        }
    }

    /// After a backoff: whether a launch finds room. One thread launches and waits. All others get
    /// false, and so does a call before the backoff is over.
    #[cold]
    pub(super) fn retry_after_backoff(&self) -> Result<bool, GpuError> {
        let until = self.backoff_until.load(Ordering::Relaxed);
        if until == 0 {
            return Ok(true);
        }
        if self.now() < until {
            return Ok(false);
        }
        let Some(mut launching) = self.try_launching() else {
            return Ok(false);
        };
        // Another thread may have been faster.
        let now_until = self.backoff_until.load(Ordering::Relaxed);
        if now_until != until {
            return Ok(now_until == 0);
        }
        let before = self.latest();
        let has_room = if self.is_on_device(before) {
            // It may have failed: then it does not block the next one.
            self.query_driver()?;
            if !self.is_start_overdue(0) {
                // It copies a long range, or is about to begin.
                return Ok(false);
            }
            false
        } else {
            self.launch(&mut launching, 0, before, false)?;
            self.has_room(self.latest().number)
        };
        let now = self.now();
        if let Some(pause) = PAUSES_BETWEEN_PROBES.get(launching.found_room).filter(|_| has_room) {
            launching.found_room += 1;
            self.mailbox.request_exit(self.latest().number);
            self.backoff_until.store(now + nanoseconds(*pause), Ordering::Relaxed);
            return Ok(false);
        }
        launching.found_room = 0;
        if has_room {
            launching.probe_after = launching.probe_after.max(nanoseconds(FIRST_PROBE_AFTER));
            launching.next_probe_at = now + launching.probe_after;
            self.backoff_until.store(0, Ordering::Relaxed);
        } else {
            launching.probe_after = 0;
            self.back_off_from(until);
        }
        Ok(has_room)
    }

    /// Waits until a launch has begun and knows whether there is room for all of its blocks. One
    /// that is seen to begin late began when another kernel had ended.
    fn has_room(&self, launch: u64) -> bool {
        let began = Instant::now();
        let late = self.timing.start_timeout / LATE_SHARE;
        let is_software = self.context.driver().is_software();
        let mut entered: Option<Duration> = None;
        // Not the time until it is seen to have begun: this thread may not have run meanwhile.
        let mut seen_absent = Duration::ZERO;
        loop {
            let now = began.elapsed();
            if self.last_exited(0) >= launch {
                // It was idle while this thread did not run, or other kernels fill the device, or
                // the launch failed.
                let exit = self.mailbox.exit(0);
                return exit.launch >= launch && !exit.gpu_was_full && seen_absent <= late;
            }
            if entered.is_none() {
                if self.mailbox.entered(0) < launch {
                    seen_absent = now;
                } else if seen_absent > late {
                    return false;
                } else {
                    entered = Some(now);
                }
            }
            match entered {
                Some(entered) if now - entered > OCCUPANCY_KNOWN => return true,
                None if seen_absent > self.timing.start_timeout => return false,
                _ if is_software => std::thread::yield_now(),
                _ => std::hint::spin_loop(),
            }
        }
    }

    /// Makes a launch if none serves the slot, except during a backoff.
    #[inline]
    pub(super) fn ensure_running(&self, slot: u32) -> Result<Service, GpuError> {
        if self.is_backing_off() {
            return Ok(Service::BackedOff);
        }
        let latest = self.latest();
        let exit = self.mailbox.exit(slot as usize);
        if slot >= latest.slots || exit.launch >= latest.number || self.has_ended(latest) {
            if exit.gpu_was_full && exit.launch == latest.number {
                self.back_off();
                return Ok(Service::BackedOff);
            }
            if exit.launch == latest.number {
                // That launch had room.
                self.backoff_len.store(nanoseconds(self.timing.backoff), Ordering::Relaxed);
            }
            let mut launching = self.launching.lock().unwrap_or_else(PoisonError::into_inner);
            // Another thread may have launched; the next poll shows it.
            if self.latest() == latest {
                self.launch(&mut launching, slot, latest, false)?;
            }
            return Ok(Service::Running);
        }
        if self.mailbox.announced(slot as usize) == latest.number {
            self.take_over(slot, latest);
        }
        Ok(Service::Running)
    }

    /// Makes the launch that takes the slots over, so that no command waits between two launches.
    #[cold]
    fn take_over(&self, slot: u32, latest: Launch) {
        let Some(mut launching) = self.try_launching() else {
            return;
        };
        // A launch with fewer slots can't take over: of two launches the later one serves all
        // slots.
        if self.latest() != latest || self.slots_needed(&mut launching, slot) < latest.slots {
            return;
        }
        if !self.timing.probe_interval.is_zero() && self.now() >= launching.next_probe_at {
            self.pause_for_probe(&mut launching);
        } else {
            // If it fails, the next command that needs it gets the error.
            let _ = self.launch(&mut launching, slot, latest, true);
        }
    }

    /// Prepares a probe: no launch takes over, and the next launch checks whether there is room.
    /// The running launch completes the commands in flight.
    fn pause_for_probe(&self, launching: &mut Launching) {
        // One probe decides.
        launching.found_room = PAUSES_BETWEEN_PROBES.len();
        // The last probe found room, and no launch has met other kernels since.
        self.backoff_len.store(nanoseconds(self.timing.backoff), Ordering::Relaxed);
        let longest = nanoseconds(self.timing.probe_interval);
        launching.probe_after = (launching.probe_after * 2).min(longest);
        let until = self.now() + nanoseconds(self.timing.relaunch_lead + PROBE_PAUSE);
        let order = Ordering::Relaxed;
        let _ = self.backoff_until.compare_exchange(0, until, order, order);
    }

    /// The launch lock, if no other thread holds it.
    fn try_launching(&self) -> Option<MutexGuard<'_, Launching>> {
        match self.launching.try_lock() {
            Ok(launching) => Some(launching),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Whether a block of the launch is still on the device, or has not begun.
    fn is_on_device(&self, launch: Launch) -> bool {
        (0..launch.slots).any(|slot| self.last_exited(slot) < launch.number)
    }

    fn has_ended(&self, launch: Launch) -> bool {
        self.ended.load(Ordering::Acquire) >= launch.number
    }

    /// How many slots the next launch must serve: the active ones, and this one.
    fn slots_needed(&self, launching: &mut Launching, slot: u32) -> u32 {
        let active = self.slots.active() | launching.active_before | 1 << slot;
        let used = (u64::BITS - active.leading_zeros()).next_power_of_two();
        used.min(u32::try_from(self.slots.count()).unwrap_or(MAX_SLOTS))
    }

    /// Launches the kernel. With `takes_over`, all blocks of the previous launch are on the device.
    #[cold]
    fn launch(
        &self,
        launching: &mut Launching,
        slot: u32,
        before: Launch,
        takes_over: bool,
    ) -> Result<(), GpuError> {
        if let Some(error) = self.lost.get() {
            return Err(error.clone());
        }
        let next = Launch { number: before.number + 1, slots: self.slots_needed(launching, slot) };
        if next.number.is_multiple_of(ACTIVE_FOR) {
            launching.active_before = self.slots.take_active();
        }
        let blocks = next.slots.min(max_blocks(self.multiprocessors));
        // In the same stream a launch begins when the previous one has ended.
        let stream_index = launching.stream_index ^ usize::from(takes_over);
        let grid = blocks + self.multiprocessors;
        let arrived = launching.arrived[stream_index] + u64::from(grid);
        let time = |time| Arg::U64(nanoseconds(time));
        let args = [
            Arg::Ptr(self.mailbox.ptr()),
            Arg::Ptr(self.shared.ptr()),
            Arg::U64(u64::from(next.slots)),
            Arg::U64(u64::from(blocks)),
            Arg::U64(arrived),
            Arg::U64(stream_index as u64),
            Arg::U64(if takes_over { u64::from(before.slots) } else { 0 }),
            Arg::U64(next.number),
            time(self.timing.idle),
            time(self.timing.lifetime),
            time(self.timing.relaunch_lead),
        ];
        let launched = self.context.entered(|| {
            // SAFETY: the types are the kernel's. The mailbox and `shared` are freed only after the
            // streams have ended. Submitters promise that the ranges of commands are live.
            unsafe { self.streams[stream_index].launch(&self.kernel, grid, THREADS, &args) }
        });
        launched.flatten().inspect_err(|error| self.record_error(error))?;
        launching.stream_index = stream_index;
        launching.arrived[stream_index] = arrived;
        // It begins when the previous one has exited. One that takes over is made shortly before
        // that, any other one at any time.
        let delay = match self.is_on_device(before) {
            true if takes_over => self.timing.relaunch_lead,
            true => self.timing.lifetime,
            false => Duration::ZERO,
        };
        self.launched_at.store(self.now() + nanoseconds(delay), Ordering::Relaxed);
        self.latest.store(next.packed(), Ordering::Release);
        Ok(())
    }

    /// Asks the driver for the state of the launches, at most once per [`QUERY_INTERVAL`].
    #[cold]
    pub(super) fn query_driver(&self) -> Result<(), GpuError> {
        let (before, now) = (self.queried_at.load(Ordering::Relaxed), self.now());
        let is_late = now.saturating_sub(before) > nanoseconds(QUERY_INTERVAL);
        let order = Ordering::Relaxed;
        if !is_late || self.queried_at.compare_exchange(before, now, order, order).is_err() {
            return Ok(());
        }
        let latest = self.latest();
        let query = || Ok(self.streams[0].query()? & self.streams[1].query()?);
        let over = self.context.entered(query).flatten();
        // Other errors say nothing about the launches.
        let is_lost = |error: &GpuError| error.is_sticky() || error.is_reset();
        if over.as_ref().map_or_else(is_lost, |over| *over) {
            self.ended.fetch_max(latest.number, Ordering::AcqRel);
        }
        over.map(|_| ()).inspect_err(|error| self.record_error(error))
    }

    /// Records an error after which the context is lost.
    fn record_error(&self, error: &GpuError) {
        if error.is_sticky() {
            let _ = self.lost.set(error.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_launch_keeps_its_number_and_slots() {
        for (number, slots) in [(0, 0), (1, 8), (1 << 40, 64)] {
            let launch = Launch { number, slots };
            assert_eq!(Launch::unpacked(launch.packed()), launch);
        }
    }
}
