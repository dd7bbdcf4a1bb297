//! The pieces of a call: `crates/transfer/src/call/counters.rs`.

use std::cell::Cell;
use std::sync::Arc;

use loom::thread;

use self::source::Counters;
use crate::sync::Guarded;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::{Row, holds};

#[path = "../../../crates/transfer/src/call/counters.rs"]
#[allow(dead_code, clippy::all, reason = "the crate's own, which has its own lints")]
mod source;

/// As in `crate::call`, for the sources of streams.
pub const LARGE: u64 = 256 << 10;

/// loom's own panics must end the test.
pub fn catch_panic<T>(work: impl FnOnce() -> T) -> Result<T, crate::fault::Fault> {
    Ok(work())
}

pub const ROWS: &[Row] = &[
    holds("each piece is moved once, and the caller, who works too, sees all", helped),
    holds("a sleeping caller wakes when all pieces have completed", asleep),
    holds("pieces after a failure are skipped and counted", failed),
    holds("a caller sleeps through neither a permit nor the end", permit).slow(),
    holds("a permit that comes while the caller goes to sleep is taken", only_permit),
];

/// Who moves the pieces of a call, as in `crate::call`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Executors {
    CallerAndWorkers,
    CallerOnly,
    WorkersOnly,
}

/// No copy is in flight when a thread has done its pieces.
#[derive(Debug, Default)]
pub struct DeferredCompletion;

impl DeferredCompletion {
    pub fn is_empty(&self) -> bool {
        true
    }

    pub fn complete(&mut self) {}
}

/// A call with the crate's counters, whose pieces are a number each.
#[derive(Debug)]
pub struct Call {
    counters: Counters,
    executors: Executors,
    memory: Vec<Guarded<u32>>,
}

impl Call {
    pub fn new(pieces: u64, executors: Executors) -> Arc<Self> {
        let memory = (0..pieces).map(|_| Guarded::new(0)).collect();
        Arc::new(Self { counters: Counters::new(pieces), executors, memory })
    }

    pub fn executors(&self) -> Executors {
        self.executors
    }

    pub fn pieces(&self) -> u64 {
        self.counters.pieces()
    }

    pub fn has_more(&self) -> bool {
        self.counters.has_more()
    }

    pub fn is_unstarted(&self) -> bool {
        self.counters.is_unstarted()
    }

    pub fn set_waiting(&self) {
        self.counters.set_waiting();
    }

    pub fn wants_permit(&self) -> bool {
        self.counters.wants_permit()
    }

    pub fn grant_permit(&self) {
        self.counters.grant_permit();
    }

    pub fn has_permit(&self) -> bool {
        self.counters.has_permit()
    }

    pub fn wait(&self) {
        self.counters.wait();
    }

    pub fn sleep(&self) {
        self.counters.sleep();
    }

    pub fn sleep_until_permit(&self) {
        self.counters.sleep_until_permit();
    }

    /// Moves pieces of ten bytes until there are none, as `Call::work_in_host` does.
    pub fn move_pieces(&self, moves: impl Fn(u64) -> bool) {
        let mut counted = 0;
        while let Some(index) = self.counters.take(&mut counted, |index| index * 10) {
            if moves(index) {
                // SAFETY: whoever takes a piece is the only one to have it.
                unsafe { *self.memory[index as usize].write() += 1 };
            } else {
                self.counters.fails(index * 10);
            }
        }
        if counted > 0 {
            self.counters.finish(counted);
        }
    }

    /// How often each piece was moved. Only the caller reads it, at the end.
    pub fn moved(&self) -> Vec<u32> {
        // SAFETY: all pieces have completed.
        self.memory.iter().map(|piece| unsafe { *piece.read() }).collect()
    }
}

fn call(pieces: u64) -> Arc<Call> {
    Call::new(pieces, Executors::CallerAndWorkers)
}

fn helped() {
    crate::often(|| {
        let call = call(2);
        let theirs = Arc::clone(&call);
        let helper = thread::spawn(move || theirs.move_pieces(|_| true));
        call.move_pieces(|_| true);
        call.counters.wait();
        assert_eq!(call.moved(), [1, 1]);
        helper.join().unwrap();
    });
}

fn asleep() {
    crate::often(|| {
        let call = call(2);
        let helper = || {
            let theirs = Arc::clone(&call);
            thread::spawn(move || theirs.move_pieces(|_| true))
        };
        let helpers = [helper(), helper()];
        call.counters.sleep();
        assert_eq!(call.moved(), [1, 1]);
        helpers.into_iter().for_each(|helper| helper.join().unwrap());
    });
}

fn failed() {
    crate::often(|| {
        let call = call(3);
        // The second piece fails; a thread that has seen this moves nothing after it.
        let work = |call: &Call| {
            let knows = Cell::new(false);
            call.move_pieces(|index| {
                assert!(!knows.get(), "a piece behind the failure");
                knows.set(index == 1);
                index != 1
            });
        };
        let theirs = Arc::clone(&call);
        let helper = thread::spawn(move || work(&theirs));
        work(&call);
        call.counters.wait();
        let moved = call.moved();
        assert_eq!(moved[..2], [1, 0]);
        assert!(moved[2] <= 1);
        helper.join().unwrap();
    });
}

/// A caller without a permit, as in `WorkerPool::run_in_caller`, with a worker that may do all of
/// the call and a thread that passes a permit on.
fn permit() {
    crate::often(|| {
        let (call, given) = (call(1), Arc::new(AtomicU32::new(0)));
        call.counters.set_waiting();
        let theirs = Arc::clone(&call);
        let worker = thread::spawn(move || theirs.move_pieces(|_| true));
        let (theirs, count) = (Arc::clone(&call), Arc::clone(&given));
        let leaver = thread::spawn(move || {
            if theirs.counters.wants_permit() && theirs.counters.has_more() {
                theirs.counters.grant_permit();
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        call.counters.sleep_until_permit();
        if call.counters.has_permit() {
            call.move_pieces(|_| true);
        }
        call.counters.wait();
        assert_eq!(call.moved(), [1]);
        worker.join().unwrap();
        leaver.join().unwrap();
        // A permit that came late still belongs to the caller, who checks for it once more.
        assert_eq!(given.load(Ordering::Relaxed) == 1, call.counters.has_permit());
    });
}

/// Only the caller can do it, once it has a permit.
fn only_permit() {
    crate::often(|| {
        let call = call(1);
        call.counters.set_waiting();
        let theirs = Arc::clone(&call);
        let leaver = thread::spawn(move || {
            assert!(theirs.counters.wants_permit());
            theirs.counters.grant_permit();
            assert!(!theirs.counters.wants_permit());
        });
        call.counters.sleep_until_permit();
        assert!(call.counters.has_permit());
        call.move_pieces(|_| true);
        call.counters.wait();
        assert_eq!(call.moved(), [1]);
        leaver.join().unwrap();
    });
}
