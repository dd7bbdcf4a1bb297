//! Transfers in streams: `area.rs`, `rounds.rs`, `sentry.rs` and `watch.rs` of
//! `crates/transfer/src/stream`. The stream is a thread that does what `put.rs` puts there: a store
//! of a word releases what the stream did before, a wait for a word acquires what was done for it
//! (`cuStreamWriteValue32`, `cuStreamWaitValue32`), and the kernel is a plain access between the
//! two.

use std::sync::Arc;

use loom::thread;

use self::area::Areas;
use self::order::{Order, Way};
use self::sentry::Sentry;
use self::threads::Threads;
use self::watch::Watch;
use crate::clock::Clock;
use crate::fault::Fault;
use crate::moved::Moved;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{Guarded, yield_now};
use crate::{Context, Row, holds, interrupted, often};

#[path = "../../crates/transfer/src/stream/area.rs"]
#[allow(dead_code, clippy::all, reason = "the crate's own, which has its own lints")]
mod area;
mod order;
#[path = "../../crates/transfer/src/stream/rounds.rs"]
#[allow(dead_code, clippy::all, reason = "the crate's own, which has its own lints")]
mod rounds;
#[path = "../../crates/transfer/src/stream/sentry.rs"]
#[allow(dead_code, clippy::all, reason = "the crate's own, which has its own lints")]
mod sentry;
#[path = "../../crates/transfer/src/stream/threads.rs"]
#[allow(dead_code, clippy::all, reason = "the crate's own, which has its own lints")]
mod threads;
#[path = "../../crates/transfer/src/stream/watch.rs"]
#[allow(dead_code, clippy::all, reason = "the crate's own, which has its own lints")]
mod watch;

/// What a transfer was asked for.
#[derive(Debug, Clone, Copy)]
struct Read;
type Ended = Box<dyn FnOnce(Read, Result<Moved, Fault>) + Send>;

pub const ROWS: &[Row] = &[
    holds("a read of three rounds, by a thread that looks at the words", looked_at),
    holds("a read of three rounds, by calls of the stream", called),
    holds("two threads share a round", shared),
    holds("a write's bytes are read after the stream has come to them", written),
    holds("what is given up touches nothing afterwards", abandoned),
    holds("an area comes back when the stream needs it no more", given_back),
    holds("a sentry that sleeps hears of a transfer", heard),
    holds("a thread of ours serves one transfer after the other", served),
    holds("two threads of ours come for two transfers", both_served),
];

/// Where words begin: they go round in the middle of a transfer.
const START: u32 = u32::MAX - 1;
const HALF: u64 = 32 << 10;

/// A transfer of so many rounds of `HALF` bytes, in so many pieces each, and no threads of ours but
/// those of the test: whoever has work does it himself.
fn order(areas: &'static Areas, rounds: u64, pieces: u64, op: crate::engine::Op) -> Arc<Order> {
    order_with(areas, Box::leak(Box::new(Threads::new(0, false))), (rounds, pieces), op)
}

fn order_with(
    areas: &'static Areas,
    threads: &'static Threads,
    (rounds, pieces): (u64, u64),
    op: crate::engine::Op,
) -> Arc<Order> {
    let most = rounds * HALF;
    let area = areas.take(&Context, Some(most)).unwrap().starting_at(START);
    assert!(rounds == 1 || area.part_len(most) == HALF);
    let cut = (rounds, HALF, HALF / pieces);
    Arc::new(Order::new((areas, threads), area, cut, op, Way::Gather))
}

fn areas() -> &'static Areas {
    Box::leak(Box::new(Areas::new(1 << 30, 16 << 10)))
}

/// The stream's wait for a word.
fn wait(word: &AtomicU32, value: u32) {
    while word.load(Ordering::Acquire).wrapping_sub(value).cast_signed() < 0 {
        yield_now();
    }
}

/// The stream's store that tells how far it has come, and a call behind it or none.
fn reach(order: &Arc<Order>, rounds: u64, calls: bool) {
    order.area.reached().store(order.area.value(rounds), Ordering::Release);
    if calls && order.reach(rounds) {
        order.hand_over();
    }
}

/// The stream, as `put::read` fills it.
fn reads(order: &Arc<Order>, calls: bool) {
    reach(order, order.rounds.min(2), calls);
    for round in 0..order.rounds {
        wait(order.area.served(), order.area.value(round + 1));
        order.memory.seen(order.part(round), round + 1);
        if round + 2 < order.rounds {
            reach(order, round + 3, calls);
        }
    }
}

/// Looks at the word as the sentry and the threads do, until the stream has come to all of it.
fn looks(order: &Arc<Order>) {
    while !order.is_reached() {
        if order.look() {
            order.hand_over();
        }
        yield_now();
    }
}

fn looked_at() {
    often(|| {
        let order = order(areas(), 3, 1, crate::engine::Op::Read);
        let theirs = Arc::clone(&order);
        let sentry = thread::spawn(move || looks(&theirs));
        reads(&order, false);
        sentry.join().unwrap();
        assert_eq!(order.ended(), 1);
    });
}

fn called() {
    often(|| {
        let order = order(areas(), 3, 2, crate::engine::Op::Read);
        let theirs = Arc::clone(&order);
        // A thread of ours that comes when it likes.
        let helper = thread::spawn(move || theirs.work());
        reads(&order, true);
        helper.join().unwrap();
        assert_eq!(order.ended(), 1);
    });
}

fn shared() {
    often(|| {
        let order = order(areas(), 1, 2, crate::engine::Op::Read);
        let (ours, theirs) = (Arc::clone(&order), Arc::clone(&order));
        // A thread of ours, which also asks for more as `Step::Do` does.
        let helper = thread::spawn(move || {
            theirs.work();
            theirs.hand_over();
        });
        let sentry = thread::spawn(move || looks(&ours));
        reads(&order, false);
        helper.join().unwrap();
        sentry.join().unwrap();
        assert_eq!(order.ended(), 1);
    });
}

/// The stream, as `put::write` fills it.
fn written() {
    often(|| {
        let order = order(areas(), 3, 1, crate::engine::Op::Write);
        let theirs = Arc::clone(&order);
        let sentry = thread::spawn(move || looks(&theirs));
        for round in 0..order.rounds {
            if round >= 2 {
                wait(order.area.served(), order.area.value(round - 1));
            }
            order.memory.put(order.part(round), round + 1);
            reach(&order, round + 1, false);
        }
        wait(order.area.served(), order.area.value(order.rounds));
        sentry.join().unwrap();
        assert_eq!(order.ended(), 1);
    });
}

fn abandoned() {
    often(|| {
        let order = order(areas(), 1, 2, crate::engine::Op::Read);
        let theirs = Arc::clone(&order);
        let helper = thread::spawn(move || {
            theirs.reach(1);
            theirs.hand_over();
        });
        order.abandon();
        // The memory is the caller's again.
        order.memory.put(0, 7);
        helper.join().unwrap();
        order.memory.seen(0, 7);
    });
}

fn given_back() {
    often(|| {
        let areas = areas();
        let area = areas.take(&Context, Some(HALF)).unwrap().starting_at(START);
        let memory = Arc::new(Guarded::new(1));
        let theirs = Arc::clone(&memory);
        let stream = thread::spawn(move || {
            // SAFETY: nobody writes it before the store.
            assert_eq!(unsafe { *theirs.read() }, 1);
            // SAFETY: an address of the area's, where host and device see the same.
            let word = unsafe { AtomicU32::from_ptr(area.empty_seen().0 as *mut u32) };
            word.store(area.value(1), Ordering::Release);
        });
        areas.give_later(area, area.value(1));
        for _ in 0..2 {
            let other = areas.take(&Context, Some(HALF)).unwrap();
            if other.served_seen() == area.served_seen() {
                // SAFETY: the area is this thread's.
                unsafe { *memory.write() = 2 };
                assert_eq!(other.value(0), area.value(1));
                assert_eq!(other.rounds_reached(), 0, "a word of the transfer before");
                break;
            }
        }
        stream.join().unwrap();
    });
}

fn heard() {
    often(|| {
        let order = order(areas(), 1, 1, crate::engine::Op::Read);
        let (watch, sentry) = (Arc::new(Watch::default()), Arc::new(Sentry::new(8, true)));
        let (eyes, theirs) = (Arc::clone(&watch), Arc::clone(&sentry));
        let looker = thread::spawn(move || {
            let since = Clock::start();
            loop {
                let heard = theirs.heard();
                if let Some(order) = eyes.look() {
                    return order;
                }
                theirs.rest(&since, heard, &eyes);
            }
        });
        assert!(watch.add(&order));
        sentry.call();
        reach(&order, 1, false);
        assert!(Arc::ptr_eq(&looker.join().unwrap(), &order));
    });
}

/// Transfers that the stream has come to, each put into the line by a thread of the program.
fn lined_up(most: u32, count: usize) {
    // With three threads and three interruptions it takes over a minute.
    interrupted(if most == 1 { 3 } else { 2 }, move || {
        let (areas, threads) = (areas(), Box::leak(Box::new(Threads::new(most, false))));
        let make = |_| order_with(areas, threads, (1, 1), crate::engine::Op::Read);
        let orders: Vec<_> = (0..count).map(make).collect();
        for order in &orders {
            order.reach(1);
            order.hand_over();
        }
        for order in &orders {
            wait(order.area.served(), order.area.value(1));
            order.memory.seen(0, 1);
            assert_eq!(order.ended(), 1);
        }
        crate::spawn::end_all();
    });
}

fn served() {
    lined_up(1, 2);
}

fn both_served() {
    lined_up(2, 2);
}
