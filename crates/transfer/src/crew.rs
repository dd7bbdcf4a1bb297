//! Who works on large calls: callers and threads of our own, no more at once than pays.
//!
//! A *turn* is the right to move bytes; there are `busy_most`. A caller that gets one works on its
//! own call, and lines the call up where it has more than one piece, so that threads of ours with
//! turns of their own help. A caller that gets none lines its call up and sleeps, until the call is
//! done by others or a turn is passed on to it. Where calls are many, reads are not begun by their
//! callers at all: to wake one takes a tenth of a call, in which its turn moves nothing, and more
//! threads than saturate the link only wait for it. A few threads of ours then go from call to
//! call. Turns go to those in line, in its order; work that no caller does itself, such as a batch,
//! gets one that is kept until a thread of ours comes.
//!
//! No wake-up is lost. Who wants a turn (1) lines up and (2) looks whether a turn is free; who has
//! one (3) gives it back and (4) looks whether somebody is in line. All four are sequentially
//! consistent, so either (2) sees (3) or (4) sees (1). A turn is passed on with the line locked,
//! once for each call, and the caller looks for it with the line locked before it returns, so none
//! goes to a call that is over.

mod hands;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::file::Pace;
use crate::gpus::Gpus;
use crate::job::{Behind, By, Job, unpanicked};
use crate::settings::Settings;
use hands::Hands;
pub(crate) use hands::spawn;

/// What stands in the line.
pub(crate) trait Work: std::fmt::Debug + Send + Sync {
    /// Whether there is something to do that nobody has taken.
    fn has_more(&self) -> bool;

    /// Does as much of it as nobody else takes, on any thread that has a turn. What is under way to
    /// the GPU then is left in `behind`, where what was there before was settled meanwhile.
    fn work(self: Arc<Self>, gpus: &'static Gpus, behind: &mut Behind);

    /// Who does it.
    fn owner(&self) -> Owner;

    /// Whether it has waited for so long that nobody but a thread of ours with a turn that is kept
    /// for it will do it soon. Asked of what is not a caller's.
    fn is_left(&self) -> bool {
        false
    }

    /// Whether nobody has begun it.
    fn is_fresh(&self) -> bool {
        true
    }

    /// Whether a caller sleeps until [`Work::give_turn`].
    fn wants_turn(&self) -> bool {
        false
    }

    /// Passes a turn on to that caller.
    fn give_turn(&self) {}

    /// Whether it may be taken out of the line: nothing is to do, and who has more lines up again.
    /// Called with the line locked.
    fn is_over(&self) -> bool {
        false
    }
}

/// Who does work that stands in the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The caller who waits for it, with a turn; threads of ours help.
    Caller,
    /// Threads of ours; the caller sleeps.
    Us,
    /// Threads of ours, or whoever asks for its end.
    Either,
}

/// What moves the bytes between page-locked memory and the caller's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Nothing: the file is read into the caller's memory, which is the host's.
    Host,
    /// A kernel that stays on the GPU.
    Kernel,
    /// The GPU's copy engines.
    Engines,
}

/// The right to move bytes, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    crew: Option<&'a Crew>,
    /// Whether a thread of ours is to be woken for what is in line: not by one that looks itself.
    rings: bool,
}

impl Turn<'_> {
    /// Gives it back now.
    pub(crate) fn end(&mut self) {
        if let Some(crew) = self.crew.take() {
            crew.leave(self.rings);
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

/// The turns, the line, and our own threads.
#[derive(Debug)]
pub(crate) struct Crew {
    busy_most: u32,
    /// While so many are busy threads of ours help nobody: there is no processor for them.
    helped_most: u32,
    /// While so many calls are under way, reads are left to as many threads of ours.
    crowd: u32,
    busy: AtomicU32,
    /// Turns kept for a thread of ours to come, none or one.
    kept: AtomicU32,
    /// Calls that want helpers, or a turn for their caller, in the order in which they came.
    line: Mutex<VecDeque<Arc<dyn Work>>>,
    /// The length of the line.
    lined: AtomicU32,
    /// Calls between their begin and their end.
    calls: AtomicU32,
    hands: Hands,
}

impl Crew {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            busy_most: settings.busy_most.max(1),
            helped_most: settings.busy_most.min(settings.workers_most).max(1),
            crowd: if settings.crowd <= settings.workers_most { settings.crowd } else { 0 },
            busy: AtomicU32::new(0),
            kept: AtomicU32::new(0),
            line: Mutex::default(),
            lined: AtomicU32::new(0),
            calls: AtomicU32::new(0),
            hands: Hands::new(settings.workers_most),
        }
    }

    /// Who shall move the pieces of a call, and how long those are: `len` bytes that go at this
    /// pace to or from that end, by pieces of `most` at most; `sleeps` if the caller may.
    pub(crate) fn share(
        &self,
        len: u64,
        pace: Pace,
        end: End,
        sleeps: bool,
        most: u64,
    ) -> (By, u64) {
        /// Below that the driver's calls take longer than the copies.
        const LEAST: u64 = 128 << 10;
        /// A device is asked for no less: each time costs an interrupt and a sleep.
        const LEAST_WAITED: u64 = 256 << 10;
        /// Pieces for each turn, so that the last ones end at about the same time.
        const EACH: u64 = 4;
        const PARTS: u64 = 4;
        /// The fewest that keep the GPU's part behind the processor's, which takes longer: half as
        /// much moves 6 % less, twice as much 4 %.
        const HANDED: u64 = 512 << 10;
        /// What a copy engine moves at nearly its full rate, while copies of 128 KiB reach half of
        /// it: each costs some microseconds in the driver, whose lock all threads share.
        const LEAST_BY_ENGINE: u64 = 512 << 10;
        /// From so many calls on pieces of that length are enough to keep the engines busy.
        const SEVERAL: u64 = 4;
        let calls = u64::from(self.calls.load(Ordering::Relaxed)) + 1;
        let even = |each: u64| len.saturating_mul(calls) / (each * u64::from(self.helped_most));
        let parts = (len / PARTS).max(LEAST);
        let (by, piece) = match pace {
            Pace::Copies if end == End::Engines && calls >= SEVERAL => (By::All, LEAST_BY_ENGINE),
            Pace::Copies if end == End::Kernel && sleeps && self.is_crowd() => (By::Us, HANDED),
            // In parts even among many, for one to be copied while the next is read.
            Pace::Copies => (By::All, even(EACH).clamp(LEAST, parts)),
            Pace::Waits => (By::All, even(1).max(LEAST_WAITED)),
            Pace::Alone if calls == 1 => (By::Caller, parts),
            Pace::Alone => (By::Caller, most),
        };
        (by, piece.min(most).next_power_of_two())
    }

    /// Whether calls are so many that their callers would only take each other's processors.
    fn is_crowd(&self) -> bool {
        self.crowd > 0 && self.calls.load(Ordering::Relaxed) >= self.crowd
    }

    /// Has the job's pieces moved, by this thread or others, and returns when they have landed.
    pub(crate) fn run(&'static self, gpus: &'static Gpus, job: &Arc<Job>) {
        let work: Arc<dyn Work> = Arc::<Job>::clone(job);
        self.calls.fetch_add(1, Ordering::Relaxed);
        if job.by() != By::Us || !self.hand_over(gpus, job, &work) {
            self.run_here(gpus, job, &work);
        }
        self.calls.fetch_sub(1, Ordering::Relaxed);
    }

    /// Has threads of ours do the job while this one sleeps; false if there are none.
    fn hand_over(&'static self, gpus: &'static Gpus, job: &Job, work: &Arc<dyn Work>) -> bool {
        if self.busy.load(Ordering::Relaxed) < self.crowd {
            self.hands.start(1, || move || self.hand(gpus));
        }
        if !self.hands.are_there() {
            return false;
        }
        self.line_up(work);
        // Who is busy looks at the line when he has done. A turn that is free beside is for one
        // more.
        if self.busy.load(Ordering::SeqCst) < self.crowd {
            self.hands.ring(1);
        }
        job.sleep();
        self.strike(work);
        true
    }

    fn run_here(&'static self, gpus: &'static Gpus, job: &Arc<Job>, work: &Arc<dyn Work>) {
        if let Some(mut turn) = self.enter() {
            self.work_and_call(gpus, job, work, &mut turn);
        } else {
            job.set_waiting();
            self.line_up(work);
            if let Some(mut turn) = self.enter() {
                Self::work(gpus, job, &mut turn);
            } else {
                job.sleep_for_turn();
            }
            self.strike(work);
            if job.has_turn() {
                Self::work(gpus, job, &mut Turn { crew: Some(self), rings: true });
            }
        }
        job.wait();
    }

    /// Moves what nobody else takes of a job.
    fn work(gpus: &'static Gpus, job: &Arc<Job>, turn: &mut Turn<'_>) {
        let mut behind = Behind::default();
        Arc::clone(job).work(gpus, &mut behind);
        // What is left is to wait for the GPU, which takes no more of the memory's bandwidth than
        // it must: who waits for a turn may wake up meanwhile.
        turn.end();
        behind.settle();
    }

    /// As [`Crew::run`], for a thread that has a turn and keeps it.
    pub(crate) fn run_with_turn(&'static self, gpus: &'static Gpus, job: &Arc<Job>) {
        let work: Arc<dyn Work> = Arc::<Job>::clone(job);
        self.work_and_call(gpus, job, &work, &mut Turn { crew: None, rings: false });
        job.wait();
    }

    /// Works on a job and has others help where it has more than one piece.
    fn work_and_call(
        &'static self,
        gpus: &'static Gpus,
        job: &Arc<Job>,
        work: &Arc<dyn Work>,
        turn: &mut Turn<'_>,
    ) {
        let helped = job.pieces() > 1 && job.by() != By::Caller;
        if helped {
            self.line_up(work);
            self.call_hands(gpus, job.pieces() - 1);
        }
        Self::work(gpus, job, turn);
        if helped {
            self.strike(work);
        }
    }

    /// Lines work up for our own threads, as many as `wanted`, and returns at once.
    pub(crate) fn offer(&'static self, gpus: &'static Gpus, work: &Arc<dyn Work>, wanted: u64) {
        self.line_up(work);
        // One at least has to be there, for a turn that is kept for it.
        self.hands.start(1, || move || self.hand(gpus));
        self.call_spare_hands(gpus, wanted);
    }

    /// As [`Crew::call_hands`] for work whose callers are mostly about to do it themselves. For
    /// each thread that is busy one is left out: it will be back with more, and a thread too many
    /// takes the processor of one that somebody waits for, for some milliseconds.
    pub(crate) fn call_spare_hands(&'static self, gpus: &'static Gpus, wanted: u64) {
        self.call_hands(gpus, wanted.min(self.spare_hands().into()));
    }

    fn spare_hands(&self) -> u32 {
        self.helped_most.saturating_sub(self.busy.load(Ordering::SeqCst).saturating_mul(2))
    }

    /// Does work with a turn beyond the limit, for a thread that would only sleep otherwise: what
    /// it does is bound by system calls and not by the bandwidth of memory.
    pub(crate) fn beside<T>(&self, work: impl FnOnce() -> T) -> T {
        self.busy.fetch_add(1, Ordering::SeqCst);
        let _turn = Turn { crew: Some(self), rings: true };
        work()
    }

    /// Takes a turn, if one is free.
    fn enter(&self) -> Option<Turn<'_>> {
        let entered = self.try_enter(self.busy_most);
        entered.then(|| Turn { crew: Some(self), rings: true })
    }

    /// Whether more threads are at work than ours would join.
    pub(crate) fn is_crowded(&self) -> bool {
        self.busy.load(Ordering::Relaxed) >= self.helped_most
    }

    fn try_enter(&self, most: u32) -> bool {
        let more = |busy| (busy < most).then_some(busy + 1);
        self.busy.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).is_ok()
    }

    /// Gives a turn back, or passes it on.
    fn leave(&self, rings: bool) {
        if self.lined.load(Ordering::SeqCst) == 0 {
            self.busy.fetch_sub(1, Ordering::SeqCst);
            if self.lined.load(Ordering::SeqCst) == 0 || !self.try_enter(self.busy_most) {
                return;
            }
        }
        let line = self.lock();
        let next = line.iter().find(|work| self.is_kept_for(work) || work.wants_turn());
        if let Some(next) = next {
            if next.wants_turn() {
                next.give_turn();
                return;
            }
            // With the line locked, so no second one is kept.
            self.kept.store(1, Ordering::SeqCst);
            drop(line);
            self.hands.ring(1);
            return;
        }
        // With the line locked: who lines up after this finds the turn.
        let busy = self.busy.fetch_sub(1, Ordering::SeqCst);
        let spare = self.spare_hands() > 0;
        let waits =
            |work: &Arc<dyn Work>| work.has_more() && (spare || work.owner() != Owner::Either);
        let wanted = rings && busy <= self.hands_most() && line.iter().any(waits);
        drop(line);
        if wanted {
            self.hands.ring(1);
        }
    }

    /// Whether work has nobody but threads of ours, as its caller sleeps or went away, and the next
    /// turn shall be kept for one of them: callers that come again and again would take every turn
    /// before it is awake.
    fn is_kept_for(&self, work: &Arc<dyn Work>) -> bool {
        work.owner() != Owner::Caller
            && self.kept.load(Ordering::SeqCst) == 0
            && self.hands.are_there()
            && work.is_left()
    }

    /// Work to help with and the turn for it.
    fn pick(&self) -> Option<(Arc<dyn Work>, Turn<'_>)> {
        if self.lined.load(Ordering::SeqCst) == 0 && self.kept.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let is_kept = self.kept.swap(0, Ordering::SeqCst) == 1;
        if !is_kept && !self.try_enter(self.hands_most()) {
            return None;
        }
        let mut turn = Turn { crew: Some(self), rings: false };
        let mut line = self.lock();
        let before = line.len();
        line.retain(|work| !work.is_over());
        // A line has fewer than 2^32 entries, each of which is a call of some thread.
        let gone = u32::try_from(before - line.len()).unwrap_or(0);
        self.lined.fetch_sub(gone, Ordering::SeqCst);
        let open = || line.iter().filter(|work| work.has_more());
        let left = if is_kept { open().find(|work| work.owner() != Owner::Caller) } else { None };
        // A call each is better than all at one: less is waited for.
        let fresh = || open().find(|work| work.is_fresh());
        let found = left.or_else(fresh).or_else(|| open().next()).cloned();
        drop(line);
        // Who lines up from here on may have found every turn taken, and this one looks no more.
        turn.rings = found.is_none();
        found.map(|work| (work, turn))
    }

    /// While so many are busy threads of ours do not begin anything.
    fn hands_most(&self) -> u32 {
        if self.is_crowd() { self.crowd } else { self.helped_most }
    }

    fn line_up(&self, work: &Arc<dyn Work>) {
        let mut line = self.lock();
        line.push_back(Arc::clone(work));
        self.lined.fetch_add(1, Ordering::SeqCst);
    }

    /// Takes work out of the line, if it is there still.
    pub(crate) fn strike(&self, work: &Arc<dyn Work>) {
        let mut line = self.lock();
        if let Some(at) = line.iter().position(|other| Arc::ptr_eq(other, work)) {
            line.remove(at);
            self.lined.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Wakes threads of ours, or starts them, as many as are wanted and have turns.
    pub(crate) fn call_hands(&'static self, gpus: &'static Gpus, wanted: u64) {
        let free = self.helped_most.saturating_sub(self.busy.load(Ordering::Relaxed));
        let wanted = u32::try_from(wanted).unwrap_or(u32::MAX).min(free);
        if wanted > 0 {
            self.hands.start(wanted, || move || self.hand(gpus));
            self.hands.ring(wanted);
        }
    }

    /// What a thread of ours does, for ever.
    fn hand(&'static self, gpus: &'static Gpus) {
        let (mut rest, mut behind) = (hands::Rest::new(), Behind::default());
        loop {
            let heard = self.hands.heard();
            if let Some((work, _turn)) = self.pick() {
                if rest.slept() && work.has_more() {
                    self.hands.wake_more();
                }
                rest.worked();
                // What panics tells its callers itself; this thread stays for the others.
                let _ = unpanicked(|| work.work(gpus, &mut behind));
            } else if !behind.is_empty() {
                behind.settle();
            } else {
                self.hands.rest(&mut rest, heard);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<dyn Work>>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
