//! How many of the earliest ends are over.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// How often a waiting lane looks before it sleeps: some microseconds.
const LOOKS: u32 = 2000;
/// Longest sleep between two looks for an interrupt.
const SLEEP: Duration = Duration::from_millis(10);

/// An order of ends. Accesses are sequentially consistent: of two calls that end at once, the one
/// that marks its place last sees the other's mark and counts both.
pub(super) struct Ends {
    done: Box<[AtomicBool]>,
    over: AtomicU64,
    /// The least that a sleeping lane waits for.
    wanted: AtomicU64,
    lock: Mutex<()>,
    changed: Condvar,
}

impl Ends {
    pub(super) fn new(calls: u64) -> Ends {
        Ends {
            done: (0..calls).map(|_| AtomicBool::new(false)).collect(),
            over: AtomicU64::new(0),
            wanted: AtomicU64::new(u64::MAX),
            lock: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// So many of the earliest are over.
    #[inline]
    pub(super) fn over(&self) -> u64 {
        self.over.load(SeqCst)
    }

    fn is_done(&self, place: u64) -> bool {
        let done = usize::try_from(place).ok().and_then(|place| self.done.get(place));
        done.is_some_and(|done| done.load(SeqCst))
    }

    /// The call of this place is over.
    pub(super) fn end(&self, place: u64) {
        if let Some(done) = usize::try_from(place).ok().and_then(|place| self.done.get(place)) {
            done.store(true, SeqCst);
        }
        loop {
            let over = self.over();
            if !self.is_done(over) {
                break;
            }
            // Where another counted it, that is as good.
            let _ = self.over.compare_exchange(over, over + 1, SeqCst, SeqCst);
        }
        if self.over() >= self.wanted.load(SeqCst) {
            self.wake_all();
        }
    }

    /// Wakes lanes that sleep; each says again what it waits for.
    pub(super) fn wake_all(&self) {
        let held = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.wanted.store(u64::MAX, SeqCst);
        self.changed.notify_all();
        drop(held);
    }

    /// Waits until so many are over, until it is woken, or for a while.
    pub(super) fn wait(&self, after: u64) {
        for look in 0..LOOKS {
            if self.over() >= after {
                return;
            }
            if look % 64 == 63 { std::thread::yield_now() } else { std::hint::spin_loop() }
        }
        let held = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.wanted.fetch_min(after, SeqCst);
        // An end that came before the line above did not wake this lane.
        if self.over() < after {
            drop(self.changed.wait_timeout(held, SLEEP).unwrap_or_else(PoisonError::into_inner));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn only_the_earliest_count() {
        let ends = Ends::new(4);
        ends.end(2);
        ends.end(1);
        assert_eq!(ends.over(), 0);
        ends.end(0);
        assert_eq!(ends.over(), 3);
        ends.end(3);
        assert_eq!(ends.over(), 4);
    }

    #[test]
    fn threads_that_wait_for_one_another_all_end() {
        const CALLS: u64 = 4_000;
        let ends = Arc::new(Ends::new(CALLS));
        let lane = |first: u64| {
            let ends = Arc::clone(&ends);
            std::thread::spawn(move || {
                for place in (first..CALLS).step_by(4) {
                    // Each waits for all but the three calls that were under way beside it.
                    let after = place.saturating_sub(3);
                    while ends.over() < after {
                        ends.wait(after);
                    }
                    ends.end(place);
                }
            })
        };
        let lanes: Vec<_> = (0..4).map(lane).collect();
        lanes.into_iter().for_each(|lane| lane.join().unwrap());
        assert_eq!(ends.over(), CALLS);
    }
}
