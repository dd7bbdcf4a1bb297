//! Who works on large calls: callers and threads of our own, no more at once than pays.
//!
//! A *turn* is the right to move bytes; there are `busy_most`. A caller that gets one works on its
//! own call, and lines the call up where it has more than one piece, so that threads of ours with
//! turns of their own help. A caller that gets none lines its call up and sleeps, until the call is
//! done by others or a turn is passed on to it. Turns go to those in line, in its order; work that
//! no caller does itself, such as a batch, gets one that is kept until a thread of ours comes.
//!
//! No wake-up is lost. Who wants a turn (1) lines up and (2) looks whether a turn is free; who has
//! one (3) gives it back and (4) looks whether somebody is in line. All four are sequentially
//! consistent, so either (2) sees (3) or (4) sees (1). A turn is passed on with the line locked,
//! once for each call, and the caller looks for it with the line locked before it returns, so none
//! goes to a call that is over.

mod hands;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::gpus::Gpus;
use crate::job::Job;
use crate::settings::Settings;
use hands::Hands;
pub(crate) use hands::spawn;

/// What stands in the line.
pub(crate) trait Work: std::fmt::Debug + Send + Sync {
    /// Whether there is something to do that nobody has taken.
    fn has_more(&self) -> bool;

    /// Does as much of it as nobody else takes, on any thread. The turn may be ended before the
    /// work is, where what is left is only to wait.
    fn work(&self, gpus: &'static Gpus, turn: &mut Turn<'_>);

    /// Whether a caller works on it. What is not a call waits for threads of ours.
    fn is_call(&self) -> bool {
        false
    }

    /// Whether what is not a call has waited for so long that nobody else will do it soon.
    fn is_left(&self) -> bool {
        false
    }

    /// Whether a caller sleeps until [`Work::give_turn`].
    fn wants_turn(&self) -> bool {
        false
    }

    /// Passes a turn on to that caller.
    fn give_turn(&self) {}

    /// Wakes that caller, for it to wait awake.
    fn make_heir(&self) {}

    /// Whether it may be taken out of the line: nothing is to do, and who has more lines up again.
    /// Called with the line locked.
    fn is_over(&self) -> bool {
        false
    }
}

/// The right to move bytes, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    crew: Option<&'a Crew>,
    /// Whether a thread of ours is to be woken for what is in line: not by one that looks itself.
    rings: bool,
}

impl Turn<'_> {
    /// Another's turn, which it keeps.
    fn borrowed() -> Self {
        Self { crew: None, rings: false }
    }

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
    busy: AtomicU32,
    /// Turns kept for a thread of ours to come, none or one.
    kept: AtomicU32,
    /// Calls that want helpers, or a turn for their caller, in the order in which they came.
    line: Mutex<VecDeque<Arc<dyn Work>>>,
    /// The length of the line.
    lined: AtomicU32,
    /// Calls between their begin and their end.
    calls: AtomicU32,
    /// Whether a caller waits for a turn awake.
    heir: AtomicBool,
    /// Whether there are processors beside those that the turns keep busy.
    spare: bool,
    hands: Hands,
}

impl Crew {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            busy_most: settings.busy_most.max(1),
            helped_most: settings.busy_most.min(settings.workers_most).max(1),
            busy: AtomicU32::new(0),
            kept: AtomicU32::new(0),
            line: Mutex::default(),
            lined: AtomicU32::new(0),
            calls: AtomicU32::new(0),
            heir: AtomicBool::new(false),
            spare: settings.busy_most < cores(),
            hands: Hands::new(settings.workers_most),
        }
    }

    /// The length of pieces for a call of `len` bytes: short ones while few calls are under way,
    /// so that all who may help get some, and the longest while there are many, for each costs a
    /// call of the driver.
    pub(crate) fn chunk(&self, len: u64, most: u64) -> u64 {
        /// Below that the driver's calls take longer than the copies.
        const LEAST: u64 = 128 << 10;
        /// Pieces for each turn, so that the last ones end at about the same time.
        const EACH: u64 = 4;
        const PARTS: u64 = 4;
        let calls = u64::from(self.calls.load(Ordering::Relaxed)) + 1;
        let even = len.saturating_mul(calls) / (EACH * u64::from(self.helped_most));
        // In parts even then, for one to be copied while the next is read.
        even.clamp(LEAST, (len / PARTS).max(LEAST)).min(most).next_power_of_two()
    }

    /// Has the job's pieces moved, by this thread or others, and returns when they have landed.
    pub(crate) fn run(&'static self, gpus: &'static Gpus, job: &Arc<Job>) {
        let work: Arc<dyn Work> = Arc::<Job>::clone(job);
        self.calls.fetch_add(1, Ordering::Relaxed);
        if let Some(mut turn) = self.enter() {
            self.work_and_call(gpus, job, &work, &mut turn);
        } else {
            job.set_waiting();
            self.line_up(&work);
            if let Some(mut turn) = self.enter() {
                job.work(gpus, &mut turn);
            } else {
                self.wait_for_turn(job);
            }
            self.strike(&work);
            if job.has_turn() {
                job.work(gpus, &mut Turn { crew: Some(self), rings: true });
            }
        }
        job.wait();
        self.calls.fetch_sub(1, Ordering::Relaxed);
    }

    /// Waits until a turn was passed on to the job's caller, or others have done the job.
    ///
    /// Waking up takes as long as half a call. So where there are processors to spare one of those
    /// who wait is awake, and wakes the next when it has its turn. That is for speed alone: a turn
    /// is passed on to those who sleep too.
    fn wait_for_turn(&self, job: &Job) {
        loop {
            if !self.spare || self.heir.swap(true, Ordering::AcqRel) {
                if job.sleep_for_turn(self.spare) {
                    return;
                }
                continue;
            }
            let found = job.look_for_turn();
            self.heir.store(false, Ordering::Release);
            if found {
                if let Some(next) = self.lock().iter().find(|work| work.wants_turn()) {
                    next.make_heir();
                }
            } else {
                job.sleep_for_turn(false);
            }
            return;
        }
    }

    /// As [`Crew::run`], for a thread that has a turn and keeps it.
    pub(crate) fn run_with_turn(&'static self, gpus: &'static Gpus, job: &Arc<Job>) {
        let work: Arc<dyn Work> = Arc::<Job>::clone(job);
        self.work_and_call(gpus, job, &work, &mut Turn::borrowed());
        job.wait();
    }

    /// Works on a job and has others help where it has more than one piece.
    fn work_and_call(
        &'static self,
        gpus: &'static Gpus,
        job: &Job,
        work: &Arc<dyn Work>,
        turn: &mut Turn<'_>,
    ) {
        let helped = job.pieces() > 1;
        if helped {
            self.line_up(work);
            self.call_hands(gpus, job.pieces() - 1);
        }
        job.work(gpus, turn);
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
            if next.is_call() {
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
        let waits = |work: &Arc<dyn Work>| work.has_more() && (spare || work.is_call());
        let wanted = rings && busy <= self.helped_most && line.iter().any(waits);
        drop(line);
        if wanted {
            self.hands.ring(1);
        }
    }

    /// Whether work has nobody but threads of ours, as its caller went away, and the next turn
    /// shall be kept for one of them: callers that come again and again would take every turn
    /// before it is awake.
    fn is_kept_for(&self, work: &Arc<dyn Work>) -> bool {
        !work.is_call()
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
        if !is_kept && !self.try_enter(self.helped_most) {
            return None;
        }
        let turn = Turn { crew: Some(self), rings: false };
        let mut line = self.lock();
        let before = line.len();
        line.retain(|work| !work.is_over());
        // A line has fewer than 2^32 entries, each of which is a call of some thread.
        let gone = u32::try_from(before - line.len()).unwrap_or(0);
        self.lined.fetch_sub(gone, Ordering::SeqCst);
        let first = line.iter().find(|work| work.has_more() && !(is_kept && work.is_call()));
        let found = first.or_else(|| line.iter().find(|work| work.has_more())).cloned();
        drop(line);
        found.map(|work| (work, turn))
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
        let mut rest = hands::Rest::new();
        loop {
            let heard = self.hands.heard();
            if let Some((work, mut turn)) = self.pick() {
                if rest.slept() && work.has_more() {
                    self.hands.wake_more();
                }
                rest.worked();
                work.work(gpus, &mut turn);
            } else {
                self.hands.rest(&mut rest, heard);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<dyn Work>>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn cores() -> u32 {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    u32::try_from(cores).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
