//! The pool's threads, which sleep without work: `crates/transfer/src/pool/workers.rs` and
//! `idle.rs`, which the threads of streams sleep by too.

use std::sync::Arc;

use loom::thread;

use self::source::{IdleState, Workers};
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::{Row, holds};

#[path = "../../../crates/transfer/src/pool/workers.rs"]
#[allow(dead_code, clippy::all, reason = "the crate's own, which has its own lints")]
mod source;

pub const ROWS: &[Row] = &[
    holds("a sleeping thread does announced work", one),
    holds("so does a thread that spins first", one_frequent),
    holds("two pieces of work for two sleeping threads", two).slow(),
    holds("a woken thread wakes the other", chain),
    holds("no more threads are started than the limit", started),
];

/// Pieces of work that no thread has taken. Its accesses order nothing.
#[derive(Default)]
struct Queue(Option<AtomicU32>);

impl Queue {
    fn new() -> Self {
        Self(Some(AtomicU32::new(0)))
    }

    fn count(&self) -> &AtomicU32 {
        self.0.as_ref().unwrap()
    }

    fn take(&self) -> bool {
        let less = |left: u32| left.checked_sub(1);
        self.count().fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }
}

/// Like `WorkerPool::work_loop`, until it has done `many` pieces.
fn work_loop(workers: &Workers, queue: &Queue, many: u32, frequent: bool, wakes: bool) {
    let mut idle = IdleState::new();
    if frequent {
        idle.worked();
    }
    let mut done = 0;
    while done < many {
        let seen = workers.seen();
        // As `WorkerPool::pick` reads the queue's length before it takes the lock.
        if queue.count().load(Ordering::SeqCst) > 0 && queue.take() {
            if wakes && idle.slept() && queue.count().load(Ordering::SeqCst) > 0 {
                workers.wake_more();
            }
            idle.worked();
            done += 1;
        } else {
            workers.wait(&mut idle, seen);
        }
    }
}

/// Work for so many threads, announced at once or one by one.
fn work(
    threads: u32,
    frequent: bool,
    wakes: bool,
    report: impl Fn(&Workers, &Queue) + Send + Sync + Copy + 'static,
) {
    crate::interrupted(if threads == 1 { 3 } else { 2 }, move || {
        let (workers, queue) = (Arc::new(Workers::new(threads)), Arc::new(Queue::new()));
        let all: Vec<_> = (0..threads)
            .map(|_| {
                let (workers, queue) = (Arc::clone(&workers), Arc::clone(&queue));
                thread::spawn(move || work_loop(&workers, &queue, 1, frequent, wakes))
            })
            .collect();
        report(&workers, &queue);
        all.into_iter().for_each(|worker| worker.join().unwrap());
    });
}

/// Like `WorkerPool::enqueue` followed by `Workers::notify`.
fn add(workers: &Workers, queue: &Queue) {
    queue.count().fetch_add(1, Ordering::SeqCst);
    workers.notify(1);
}

fn one() {
    work(1, false, false, add);
}

fn one_frequent() {
    work(1, true, false, add);
}

fn two() {
    work(2, false, false, |workers, queue| {
        add(workers, queue);
        add(workers, queue);
    });
}

fn chain() {
    work(2, false, true, |workers, queue| {
        queue.count().fetch_add(2, Ordering::SeqCst);
        workers.notify(1);
    });
}

fn started() {
    crate::often(|| {
        let (workers, count) = (Arc::new(Workers::new(1)), Arc::new(AtomicU32::new(0)));
        let (ours, theirs) = (Arc::clone(&workers), Arc::clone(&count));
        let make = |count: &Arc<AtomicU32>| {
            let count = Arc::clone(count);
            move || {
                let count = Arc::clone(&count);
                move || assert_eq!(count.fetch_add(1, Ordering::Relaxed), 0, "one too many")
            }
        };
        let other = thread::spawn(move || {
            ours.start(1, make(&theirs));
            ours.any_started()
        });
        workers.start(1, make(&count));
        other.join().unwrap();
        assert!(workers.any_started());
        crate::spawn::end_all();
    });
}
