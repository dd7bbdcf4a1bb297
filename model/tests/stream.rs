//! Transfers in streams: `area.rs`, `rounds.rs`, `sentry.rs` and `watch.rs` of
//! `crates/transfer/src/stream`. The stream is a thread that does what `put.rs` puts there: a store
//! of a word releases what the stream did before, a wait for a word acquires what was done for it
//! (`cuStreamWriteValue32`, `cuStreamWaitValue32`), and the kernel is a plain access between the
//! two.

use std::sync::Arc;

use loom::thread;

use self::op::{Method, StreamOp};
use self::pending::PendingOps;
use self::poller::Poller;
use self::staging::StagingBuffers;
use self::workers::StreamWorkers;
use crate::clock::Clock;
use crate::fault::Fault;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{Guarded, yield_now};
use crate::transferred::Transferred;
use crate::{Context, Row, holds, interrupted, often};

#[path = "../../crates/transfer/src/stream/chunks.rs"]
#[allow(dead_code, clippy::all, reason = "the crate's own, which has its own lints")]
mod chunks;
mod op;
#[path = "../../crates/transfer/src/stream/pending.rs"]
#[allow(dead_code, clippy::all, reason = "the crate's own, which has its own lints")]
mod pending;
#[path = "../../crates/transfer/src/stream/poller.rs"]
#[allow(dead_code, clippy::all, reason = "the crate's own, which has its own lints")]
mod poller;
#[path = "../../crates/transfer/src/stream/staging.rs"]
#[allow(dead_code, clippy::all, reason = "the crate's own, which has its own lints")]
mod staging;
#[path = "../../crates/transfer/src/stream/workers.rs"]
#[allow(dead_code, clippy::all, reason = "the crate's own, which has its own lints")]
mod workers;

/// What a transfer was asked for.
#[derive(Debug, Clone, Copy)]
struct ResolvedParams;
type OnCompletion = Box<dyn FnOnce(ResolvedParams, Result<Transferred, Fault>) + Send>;

pub const ROWS: &[Row] = &[
    holds("a read of three chunks, by a thread that looks at the semaphores", looked_at),
    holds("a read of three chunks, by calls of the stream", called),
    holds("two workers share a chunk", shared),
    holds("a write's bytes are read after the stream has come to them", written),
    holds("what is given up touches nothing afterwards", abandoned),
    holds("an buffer comes back when the stream needs it no more", given_back),
    holds("a poller that sleeps hears of a transfer", seen),
    holds("a thread of ours serves one transfer after the other", stream_device),
    holds("two workers of ours come for two transfers", both_completed),
];

/// Where words begin: they go round in the middle of a transfer.
const START: u32 = u32::MAX - 1;
const HALF: u64 = 32 << 10;

/// A transfer of so many rounds of `HALF` bytes, in so many pieces each, and no threads of ours but
/// those of the test: whoever has work does it himself.
fn stream_op(
    buffers: &'static StagingBuffers,
    chunks: u64,
    pieces: u64,
    op: crate::engine::Op,
) -> Arc<StreamOp> {
    order_with(buffers, Box::leak(Box::new(StreamWorkers::new(0, false))), (chunks, pieces), op)
}

fn order_with(
    buffers: &'static StagingBuffers,
    workers: &'static StreamWorkers,
    (chunks, pieces): (u64, u64),
    op: crate::engine::Op,
) -> Arc<StreamOp> {
    let most = chunks * HALF;
    let buffer = buffers.take(&Context, Some(most)).unwrap().starting_at(START);
    assert!(chunks == 1 || buffer.chunk_len(most) == HALF);
    let cut = (chunks, HALF, HALF / pieces);
    Arc::new(StreamOp::new((buffers, workers), buffer, cut, op, Method::Kernel))
}

fn buffers() -> &'static StagingBuffers {
    Box::leak(Box::new(StagingBuffers::new(1 << 30, 16 << 10)))
}

/// The stream's wait for a word.
fn wait(word: &AtomicU32, value: u32) {
    while word.load(Ordering::Acquire).wrapping_sub(value).cast_signed() < 0 {
        yield_now();
    }
}

/// The stream's store that tells how far it has come, and a call behind it or none.
fn reach(stream_op: &Arc<StreamOp>, chunks: u64, calls: bool) {
    stream_op.buffer.reached().store(stream_op.buffer.value(chunks), Ordering::Release);
    if calls && stream_op.reach(chunks) {
        stream_op.dispatch();
    }
}

/// The stream, as `put::read` fills it.
fn reads(stream_op: &Arc<StreamOp>, calls: bool) {
    reach(stream_op, stream_op.chunks.min(2), calls);
    for chunk in 0..stream_op.chunks {
        wait(stream_op.buffer.completed(), stream_op.buffer.value(chunk + 1));
        stream_op.memory.seen(stream_op.half(chunk), chunk + 1);
        if chunk + 2 < stream_op.chunks {
            reach(stream_op, chunk + 3, calls);
        }
    }
}

/// Looks at the word as the sentry and the threads do, until the stream has come to all of it.
fn looks(stream_op: &Arc<StreamOp>) {
    while !stream_op.is_reached() {
        if stream_op.poll_reached() {
            stream_op.dispatch();
        }
        yield_now();
    }
}

fn looked_at() {
    often(|| {
        let stream_op = stream_op(buffers(), 3, 1, crate::engine::Op::Read);
        let theirs = Arc::clone(&stream_op);
        let poller = thread::spawn(move || looks(&theirs));
        reads(&stream_op, false);
        poller.join().unwrap();
        assert_eq!(stream_op.ended(), 1);
    });
}

fn called() {
    often(|| {
        let stream_op = stream_op(buffers(), 3, 2, crate::engine::Op::Read);
        let theirs = Arc::clone(&stream_op);
        // A thread of ours that comes when it likes.
        let helper = thread::spawn(move || theirs.work());
        reads(&stream_op, true);
        helper.join().unwrap();
        assert_eq!(stream_op.ended(), 1);
    });
}

fn shared() {
    often(|| {
        let stream_op = stream_op(buffers(), 1, 2, crate::engine::Op::Read);
        let (ours, theirs) = (Arc::clone(&stream_op), Arc::clone(&stream_op));
        // A thread of ours, which also asks for more as `Step::Do` does.
        let helper = thread::spawn(move || {
            theirs.work();
            theirs.dispatch();
        });
        let poller = thread::spawn(move || looks(&ours));
        reads(&stream_op, false);
        helper.join().unwrap();
        poller.join().unwrap();
        assert_eq!(stream_op.ended(), 1);
    });
}

/// The stream, as `put::write` fills it.
fn written() {
    often(|| {
        let stream_op = stream_op(buffers(), 3, 1, crate::engine::Op::Write);
        let theirs = Arc::clone(&stream_op);
        let poller = thread::spawn(move || looks(&theirs));
        for chunk in 0..stream_op.chunks {
            if chunk >= 2 {
                wait(stream_op.buffer.completed(), stream_op.buffer.value(chunk - 1));
            }
            stream_op.memory.put(stream_op.half(chunk), chunk + 1);
            reach(&stream_op, chunk + 1, false);
        }
        wait(stream_op.buffer.completed(), stream_op.buffer.value(stream_op.chunks));
        poller.join().unwrap();
        assert_eq!(stream_op.ended(), 1);
    });
}

fn abandoned() {
    often(|| {
        let stream_op = stream_op(buffers(), 1, 2, crate::engine::Op::Read);
        let theirs = Arc::clone(&stream_op);
        let helper = thread::spawn(move || {
            theirs.reach(1);
            theirs.dispatch();
        });
        stream_op.abandon();
        // The memory is the caller's again.
        stream_op.memory.put(0, 7);
        helper.join().unwrap();
        stream_op.memory.seen(0, 7);
    });
}

fn given_back() {
    often(|| {
        let buffers = buffers();
        let buffer = buffers.take(&Context, Some(HALF)).unwrap().starting_at(START);
        let memory = Arc::new(Guarded::new(1));
        let theirs = Arc::clone(&memory);
        let stream = thread::spawn(move || {
            // SAFETY: nobody writes it before the store.
            assert_eq!(unsafe { *theirs.read() }, 1);
            // SAFETY: an address of the area's, where host and device see the same.
            let word = unsafe { AtomicU32::from_ptr(buffer.released_device_ptr().0 as *mut u32) };
            word.store(buffer.value(1), Ordering::Release);
        });
        buffers.give_back_later(buffer, buffer.value(1));
        for _ in 0..2 {
            let other = buffers.take(&Context, Some(HALF)).unwrap();
            if other.completed_device_ptr() == buffer.completed_device_ptr() {
                // SAFETY: the area is this thread's.
                unsafe { *memory.write() = 2 };
                assert_eq!(other.value(0), buffer.value(1));
                assert_eq!(other.chunks_reached(), 0, "a word of the transfer before");
                break;
            }
        }
        stream.join().unwrap();
    });
}

fn seen() {
    often(|| {
        let stream_op = stream_op(buffers(), 1, 1, crate::engine::Op::Read);
        let (pending, poller) = (Arc::new(PendingOps::default()), Arc::new(Poller::new(8, true)));
        let (eyes, theirs) = (Arc::clone(&pending), Arc::clone(&poller));
        let looker = thread::spawn(move || {
            let since = Clock::start();
            loop {
                let seen = theirs.sequence();
                if let Some(stream_op) = eyes.poll() {
                    return stream_op;
                }
                theirs.wait(&since, seen, &eyes);
            }
        });
        assert!(pending.add(&stream_op));
        poller.notify();
        reach(&stream_op, 1, false);
        assert!(Arc::ptr_eq(&looker.join().unwrap(), &stream_op));
    });
}

/// Transfers that the stream has come to, each put into the line by a thread of the program.
fn lined_up(most: u32, count: usize) {
    // With three threads and three interruptions it takes over a minute.
    interrupted(if most == 1 { 3 } else { 2 }, move || {
        let (buffers, workers) = (buffers(), Box::leak(Box::new(StreamWorkers::new(most, false))));
        let make = |_| order_with(buffers, workers, (1, 1), crate::engine::Op::Read);
        let stream_ops: Vec<_> = (0..count).map(make).collect();
        for stream_op in &stream_ops {
            stream_op.reach(1);
            stream_op.dispatch();
        }
        for stream_op in &stream_ops {
            wait(stream_op.buffer.completed(), stream_op.buffer.value(1));
            stream_op.memory.seen(0, 1);
            assert_eq!(stream_op.ended(), 1);
        }
        crate::spawn::end_all();
    });
}

fn stream_device() {
    lined_up(1, 2);
}

fn both_completed() {
    lined_up(2, 2);
}
