//! Whether the model tells right from wrong: what the tests of the other modules rely on.

use std::sync::Arc;

use loom::thread;

use crate::sync::Guarded;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::futex;
use crate::{Row, breaks, holds};

pub const ROWS: &[Row] = &[
    holds("a thread reads what it stored, or what was made of it", coherent),
    holds(
        "sequentially consistent accesses see one another",
        sequentially_consistent_accesses_see_one_another,
    ),
    holds("so do accesses that are refused", refused_accesses_see_one_another),
    breaks("a weaker store is not seen", "left: 0", a_weaker_store_is_not_seen),
    breaks("a weaker load does not see", "left: 0", a_weaker_load_does_not_see),
    holds("released and acquired is in order", released_and_acquired_is_in_order),
    breaks("a relaxed store is not", "ausality", a_relaxed_store_is_not),
    breaks("a relaxed load is not", "ausality", a_relaxed_load_is_not),
    holds("a sleeper is woken or does not lie down", a_sleeper_is_woken_or_does_not_lie_down),
    breaks("a wake that is missing is found", "deadlock", a_wake_that_is_missing_is_found),
];

/// Two threads store, then load what the other stores. Whether one of them sees the other.
fn store_then_load(store: Ordering, load: Ordering) {
    loom::model(move || {
        let words = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        let theirs = Arc::clone(&words);
        let other = thread::spawn(move || {
            theirs[1].store(1, store);
            theirs[0].load(load)
        });
        words[0].store(1, store);
        let seen = words[1].load(load);
        assert_eq!(seen | other.join().unwrap(), 1);
    });
}

fn sequentially_consistent_accesses_see_one_another() {
    store_then_load(Ordering::SeqCst, Ordering::SeqCst);
}

/// A change that is refused is a load, as in `WorkerPool::try_acquire`.
fn refused_accesses_see_one_another() {
    loom::model(|| {
        let words = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        let reads = |word: &AtomicU32| {
            word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |_| None).unwrap_err()
        };
        let theirs = Arc::clone(&words);
        let other = thread::spawn(move || {
            theirs[1].fetch_add(1, Ordering::SeqCst);
            reads(&theirs[0])
        });
        words[0].fetch_add(1, Ordering::SeqCst);
        let seen = reads(&words[1]);
        assert_eq!(seen | other.join().unwrap(), 1);
    });
}

fn a_weaker_store_is_not_seen() {
    store_then_load(Ordering::Release, Ordering::SeqCst);
}

fn a_weaker_load_does_not_see() {
    store_then_load(Ordering::SeqCst, Ordering::Acquire);
}

/// The data behind a word that tells of it.
fn reported(store: Ordering, load: Ordering) {
    loom::model(move || {
        let place = Arc::new((Guarded::new(0), AtomicU32::new(0)));
        let theirs = Arc::clone(&place);
        let other = thread::spawn(move || {
            // SAFETY: whether somebody reads it now is what the test asks.
            unsafe { *theirs.0.write() = 7 };
            theirs.1.store(1, store);
        });
        if place.1.load(load) == 1 {
            // SAFETY: as above.
            assert_eq!(unsafe { *place.0.read() }, 7);
        }
        other.join().unwrap();
    });
}

fn released_and_acquired_is_in_order() {
    reported(Ordering::Release, Ordering::Acquire);
}

fn a_relaxed_store_is_not() {
    reported(Ordering::Relaxed, Ordering::Acquire);
}

fn a_relaxed_load_is_not() {
    reported(Ordering::Release, Ordering::Relaxed);
}

fn a_sleeper_is_woken_or_does_not_lie_down() {
    loom::model(|| {
        let word = Arc::new(AtomicU32::new(0));
        let theirs = Arc::clone(&word);
        let other = thread::spawn(move || {
            let _ = futex::wait(&theirs, futex::Flags::PRIVATE, 0, None);
        });
        word.store(1, Ordering::Relaxed);
        let _ = futex::wake(&word, futex::Flags::PRIVATE, 1);
        other.join().unwrap();
    });
}

fn a_wake_that_is_missing_is_found() {
    loom::model(|| {
        let word = Arc::new(AtomicU32::new(0));
        let theirs = Arc::clone(&word);
        let other = thread::spawn(move || {
            let _ = futex::wait(&theirs, futex::Flags::PRIVATE, 0, None);
        });
        word.store(1, Ordering::SeqCst);
        other.join().unwrap();
    });
}

/// A thread that stored reads that, or what was made of it.
fn coherent() {
    loom::model(|| {
        let word = Arc::new(AtomicU32::new(0));
        let theirs = Arc::clone(&word);
        let other = thread::spawn(move || theirs.fetch_add(1, Ordering::Relaxed));
        word.store(10, Ordering::Relaxed);
        let seen = word.load(Ordering::Relaxed);
        assert!(seen == 10 || seen == 11, "{seen}");
        other.join().unwrap();
    });
}
