//! The pool's permits, and how work goes from callers to workers and back:
//! `crates/transfer/src/pool/mod.rs`, with its threads (`workers.rs`) and the counters of calls
//! (`call/counters.rs`).

use std::sync::Arc;

use loom::thread;

use self::source::{Work, WorkOwner, WorkerPool};
use crate::call::{Call, DeferredCompletion, Executors};
use crate::device::Devices;
use crate::settings::Settings;
use crate::{Row, holds, interrupted};

#[path = "../../../crates/transfer/src/pool/mod.rs"]
#[allow(dead_code, clippy::all, reason = "the crate's own, which has its own lints")]
mod source;

pub const ROWS: &[Row] = &[
    holds("two callers take turns with one permit", two_callers),
    holds("three callers take turns with one permit", three_callers).slow(),
    holds("a worker helps a caller", helped).slow(),
    holds("a caller leaves its call to a worker and sleeps", left_to_worker),
    holds("two callers leave their calls to one worker", both_left_to_worker).slow(),
    holds("a batch gets the only permit of a caller", batch),
    holds("a call that is left to a worker gets the only permit of a caller", passed_on).slow(),
    holds("a call comes while permits are released without a look at the queue", unseen).slow(),
];

static DEVICES: Devices = Devices;

impl Work for Call {
    fn has_more(&self) -> bool {
        self.has_more()
    }

    fn work(self: Arc<Self>, _: &'static Devices, _: &mut DeferredCompletion) {
        self.move_pieces(|_| true);
    }

    fn owner(&self) -> WorkOwner {
        match self.executors() {
            Executors::WorkersOnly => WorkOwner::Workers,
            _ => WorkOwner::Caller,
        }
    }

    /// Whatever the clock says: no thread has begun with it.
    fn is_starved(&self) -> bool {
        self.is_unstarted()
    }

    fn is_unstarted(&self) -> bool {
        self.is_unstarted()
    }

    fn wants_permit(&self) -> bool {
        self.wants_permit() && self.has_more()
    }

    fn grant_permit(&self) {
        self.grant_permit();
    }

    fn may_leave_queue(&self) -> bool {
        self.executors() == Executors::WorkersOnly && !self.has_more()
    }
}

/// As `batch::Core`: its submitter returns, and it leaves the queue once nothing is left of it.
#[derive(Debug)]
struct Batch(Arc<Call>);

impl Work for Batch {
    fn has_more(&self) -> bool {
        self.0.has_more()
    }

    fn work(self: Arc<Self>, _: &'static Devices, _: &mut DeferredCompletion) {
        self.0.move_pieces(|_| true);
    }

    fn owner(&self) -> WorkOwner {
        WorkOwner::Either
    }

    fn is_starved(&self) -> bool {
        self.0.is_unstarted()
    }

    fn may_leave_queue(&self) -> bool {
        !self.0.has_more()
    }
}

/// A pool with so many permits and workers. From as many calls on as there are workers, reads may
/// be left to them.
fn pool(max_active: u32, max_workers: u32) -> &'static WorkerPool {
    let settings = Settings {
        max_active,
        max_workers,
        workers_per_gpu: max_workers,
        oversubscription: Some(max_workers),
        oversubscribed_per_gpu: max_workers,
    };
    Box::leak(Box::new(WorkerPool::new(&settings)))
}

/// A call of a thread of the program, whose pieces have been moved once each when it returns.
fn call(pool: &'static WorkerPool, pieces: u64, executors: Executors) {
    let call = Call::new(pieces, executors);
    pool.run(&DEVICES, &call);
    assert!(call.moved().iter().all(|&times| times == 1));
}

/// With one permit a call goes only where it was released: another call ends the test, or hangs.
fn callers(many: usize, interruptions: usize) {
    interrupted(interruptions, move || {
        let pool = pool(1, 0);
        let call = move || call(pool, 1, Executors::CallerAndWorkers);
        let others: Vec<_> = (1..many).map(|_| thread::spawn(call)).collect();
        call();
        others.into_iter().for_each(|other| other.join().unwrap());
        call();
    });
}

fn two_callers() {
    callers(2, 3);
}

fn three_callers() {
    callers(3, 2);
}

fn helped() {
    interrupted(1, || {
        let pool = pool(2, 2);
        call(pool, 2, Executors::CallerAndWorkers);
        crate::spawn::end_all();
    });
}

fn left_to_worker() {
    interrupted(2, || {
        let pool = pool(1, 1);
        call(pool, 1, Executors::WorkersOnly);
        call(pool, 1, Executors::WorkersOnly);
        crate::spawn::end_all();
    });
}

fn both_left_to_worker() {
    interrupted(1, || {
        let pool = pool(1, 1);
        let other = thread::spawn(move || call(pool, 1, Executors::WorkersOnly));
        call(pool, 1, Executors::WorkersOnly);
        other.join().unwrap();
        crate::spawn::end_all();
    });
}

fn batch() {
    interrupted(1, || {
        let pool = pool(1, 1);
        let other = thread::spawn(move || call(pool, 1, Executors::CallerAndWorkers));
        let call = Call::new(1, Executors::WorkersOnly);
        let work: Arc<dyn Work> = Arc::new(Batch(Arc::clone(&call)));
        pool.submit(&DEVICES, &work, 1);
        call.sleep();
        assert_eq!(call.moved(), [1]);
        other.join().unwrap();
        crate::spawn::end_all();
    });
}

fn passed_on() {
    interrupted(2, || {
        let pool = pool(1, 1);
        let other = thread::spawn(move || call(pool, 1, Executors::CallerAndWorkers));
        call(pool, 1, Executors::WorkersOnly);
        other.join().unwrap();
        crate::spawn::end_all();
    });
}

fn unseen() {
    interrupted(2, || {
        let pool = pool(3, 1);
        let other = thread::spawn(move || pool.with_extra_permit(|| pool.with_extra_permit(|| ())));
        call(pool, 1, Executors::WorkersOnly);
        other.join().unwrap();
        crate::spawn::end_all();
    });
}
