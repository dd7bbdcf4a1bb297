//! Transfers in streams: `staging.rs`, `chunks.rs`, `poller.rs`, `pending.rs` and `workers.rs` of
//! `crates/transfer/src/stream`. The stream is a thread that does what `enqueue.rs` enqueues: a
//! store of a semaphore releases what the stream did before, a wait acquires what was done for it
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

#[path = "../../../crates/transfer/src/stream/chunks.rs"]
#[allow(dead_code, clippy::all, reason = "the crate's own, which has its own lints")]
mod chunks;
#[path = "../../../crates/transfer/src/stream/latency.rs"]
#[allow(dead_code, clippy::all, reason = "the crate's own, which has its own lints")]
mod latency;
mod op;
#[path = "../../../crates/transfer/src/stream/pending.rs"]
#[allow(dead_code, clippy::all, reason = "the crate's own, which has its own lints")]
mod pending;
#[path = "../../../crates/transfer/src/stream/poller.rs"]
#[allow(dead_code, clippy::all, reason = "the crate's own, which has its own lints")]
mod poller;
#[path = "../../../crates/transfer/src/stream/staging/mod.rs"]
#[allow(dead_code, clippy::all, reason = "the crate's own, which has its own lints")]
mod staging;
#[path = "../../../crates/transfer/src/stream/workers/mod.rs"]
#[allow(dead_code, clippy::all, reason = "the crate's own, which has its own lints")]
mod workers;

/// The parameters of a transfer.
#[derive(Debug, Clone, Copy)]
struct ResolvedParams;
type OnCompletion = Box<dyn FnOnce(ResolvedParams, Result<Transferred, Fault>) + Send>;

pub const ROWS: &[Row] = &[
    holds("a read of three chunks, by a thread that polls the semaphores", polled),
    holds("a read of three chunks, by host calls of the stream", called),
    holds("a read of three chunks, of which one is mapped", mapped),
    holds("two workers share a chunk", shared).slow(),
    holds("a write's bytes are read after the stream has reached them", written).slow(),
    holds("an abandoned transfer touches nothing afterwards", abandoned),
    holds("a buffer comes back when the stream no longer needs it", given_back),
    holds("a sleeping poller learns of a transfer", notified),
    holds("a worker serves one transfer after the other", served).slow(),
    holds("two workers serve two transfers", both_served).slow(),
];

/// The first semaphore value: it wraps around in the middle of a transfer.
const START: u32 = u32::MAX - 1;
const HALF: u64 = 32 << 10;

/// A transfer of so many chunks of `HALF` bytes, in so many pieces each, without workers: the
/// threads of the test do the work.
fn stream_op(
    buffers: &'static StagingBuffers,
    chunks: u64,
    pieces: u64,
    op: crate::Op,
) -> Arc<StreamOp> {
    order_with(buffers, Box::leak(Box::new(StreamWorkers::new(0, false))), (chunks, pieces), op)
}

fn order_with(
    buffers: &'static StagingBuffers,
    workers: &'static StreamWorkers,
    (chunks, pieces): (u64, u64),
    op: crate::Op,
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

/// The stream's wait for a semaphore.
fn wait(word: &AtomicU32, value: u32) {
    while word.load(Ordering::Acquire).wrapping_sub(value).cast_signed() < 0 {
        yield_now();
    }
}

/// The stream's signal that it has reached so many chunks, with or without a host call after it.
fn reach(stream_op: &Arc<StreamOp>, chunks: u64, calls: bool) {
    stream_op.buffer.reached().store(stream_op.buffer.value(chunks), Ordering::Release);
    if calls && stream_op.reach(chunks) {
        stream_op.dispatch();
    }
}

/// The stream, as `enqueue::read` fills it.
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

/// Polls the semaphore as the poller does, until the stream has reached all chunks.
fn polls(stream_op: &Arc<StreamOp>) {
    while !stream_op.is_reached() {
        if stream_op.poll_reached() {
            stream_op.dispatch();
        }
        yield_now();
    }
}

fn polled() {
    often(|| {
        let stream_op = stream_op(buffers(), 3, 1, crate::Op::Read);
        let theirs = Arc::clone(&stream_op);
        let poller = thread::spawn(move || polls(&theirs));
        reads(&stream_op, false);
        poller.join().unwrap();
        assert_eq!(stream_op.ended(), 1);
    });
}

fn mapped() {
    for chunk in 0..3 {
        often(move || {
            let mut stream_op = stream_op(buffers(), 3, 1, crate::Op::Read);
            Arc::get_mut(&mut stream_op).unwrap().mapped = Some(chunk);
            let theirs = Arc::clone(&stream_op);
            let poller = thread::spawn(move || polls(&theirs));
            reads(&stream_op, false);
            poller.join().unwrap();
            assert_eq!(stream_op.ended(), 1);
        });
    }
}

fn called() {
    often(|| {
        let stream_op = stream_op(buffers(), 3, 2, crate::Op::Read);
        let theirs = Arc::clone(&stream_op);
        // A worker that arrives at any time.
        let helper = thread::spawn(move || theirs.work());
        reads(&stream_op, true);
        helper.join().unwrap();
        assert_eq!(stream_op.ended(), 1);
    });
}

fn shared() {
    often(|| {
        let stream_op = stream_op(buffers(), 1, 2, crate::Op::Read);
        let (ours, theirs) = (Arc::clone(&stream_op), Arc::clone(&stream_op));
        // A worker that also dispatches more, as `HostStep::Do` does.
        let helper = thread::spawn(move || {
            theirs.work();
            theirs.dispatch();
        });
        let poller = thread::spawn(move || polls(&ours));
        reads(&stream_op, false);
        helper.join().unwrap();
        poller.join().unwrap();
        assert_eq!(stream_op.ended(), 1);
    });
}

/// The stream, as `enqueue::write` fills it.
fn written() {
    often(|| {
        let stream_op = stream_op(buffers(), 3, 1, crate::Op::Write);
        let theirs = Arc::clone(&stream_op);
        let poller = thread::spawn(move || polls(&theirs));
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
        let stream_op = stream_op(buffers(), 1, 2, crate::Op::Read);
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
            // SAFETY: no thread writes it before the store.
            assert_eq!(unsafe { *theirs.read() }, 1);
            // SAFETY: an address of the buffer's, which is the same for host and device.
            let word = unsafe { AtomicU32::from_ptr(buffer.released_device_ptr().0 as *mut u32) };
            word.store(buffer.value(1), Ordering::Release);
        });
        buffers.give_back_later(buffer, buffer.value(1));
        for _ in 0..2 {
            let other = buffers.take(&Context, Some(HALF)).unwrap();
            if other.completed_device_ptr() == buffer.completed_device_ptr() {
                // SAFETY: the buffer is this thread's.
                unsafe { *memory.write() = 2 };
                assert_eq!(other.value(0), buffer.value(1));
                assert_eq!(other.chunks_reached(), 0, "a word of the transfer before");
                break;
            }
        }
        stream.join().unwrap();
    });
}

fn notified() {
    often(|| {
        let stream_op = stream_op(buffers(), 1, 1, crate::Op::Read);
        let (pending, poller) = (Arc::new(PendingOps::default()), Arc::new(Poller::new(8, true)));
        let (eyes, theirs) = (Arc::clone(&pending), Arc::clone(&poller));
        let watcher = thread::spawn(move || {
            let since = Clock::start();
            loop {
                let seen = theirs.sequence();
                if let Some(stream_op) = eyes.poll() {
                    return stream_op;
                }
                theirs.wait(&since, seen, eyes.is_empty());
            }
        });
        assert!(pending.add(&stream_op));
        poller.notify();
        reach(&stream_op, 1, false);
        assert!(Arc::ptr_eq(&watcher.join().unwrap(), &stream_op));
    });
}

/// Transfers that the stream has reached, each queued by a thread of the program.
fn queued(most: u32, count: usize) {
    // With three threads and three interruptions it takes over a minute.
    interrupted(if most == 1 { 3 } else { 2 }, move || {
        let (buffers, workers) = (buffers(), Box::leak(Box::new(StreamWorkers::new(most, false))));
        let make = |_| order_with(buffers, workers, (1, 1), crate::Op::Read);
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

fn served() {
    queued(1, 2);
}

fn both_served() {
    queued(2, 2);
}
