//! The compared methods of moving blocks.

use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use gpuio_gpu::{DeviceBuf, MemoryKind, Pinned, Stream};
use gpuio_transfer::{Entry, OnCompletion, Op, Param, Params, RawStream};

use crate::Work;

/// Bytes, calls, and nanoseconds of each call.
type Done = (u64, u64, Vec<u32>);

/// The offsets of a thread.
struct Offsets {
    state: u64,
    blocks: u64,
    block: u64,
    next: Option<u64>,
}

impl Offsets {
    fn new(work: &Work) -> Self {
        let blocks = (work.args.size / work.block as u64).max(1);
        let threads = work.args.threads.iter().max().copied().unwrap_or(1);
        let next = work.args.sequential.then_some(blocks / threads * work.thread);
        let state = (work.thread + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Self { state, blocks, block: work.block as u64, next }
    }

    fn next(&mut self) -> u64 {
        let block = if let Some(next) = &mut self.next {
            *next += 1;
            *next
        } else {
            self.state ^= self.state << 13;
            self.state ^= self.state >> 7;
            self.state ^= self.state << 17;
            self.state
        };
        block % self.blocks * self.block
    }
}

/// Calls `one` until it is over, timing each call.
fn timed(work: &Work, mut one: impl FnMut(u64)) -> Done {
    let mut offsets = Offsets::new(work);
    let mut times = Vec::with_capacity(1 << 20);
    for _ in 0..3 {
        one(offsets.next());
    }
    work.start.wait();
    let mut calls = 0;
    while !work.over.load(Ordering::Relaxed) {
        let began = Instant::now();
        one(offsets.next());
        calls += 1;
        if times.len() < times.capacity() {
            times.push(u32::try_from(began.elapsed().as_nanos()).unwrap_or(u32::MAX));
        }
    }
    (calls * work.block as u64, calls, times)
}

/// One blocking call after another.
pub(crate) fn call(work: &Work) -> Done {
    let memory = DeviceBuf::alloc(work.context, work.args.kind, work.block).unwrap();
    let (transfer, at) = (work.transfer, memory.ptr().0);
    let file = work.file();
    let op = if work.args.write { Op::Write } else { Op::Read };
    timed(work, |offset| {
        let location = transfer.locate(at).unwrap();
        // SAFETY: memory of this thread's own.
        let moved = unsafe { transfer.call(op, &file, location, at, work.block, offset) };
        assert_eq!(moved.unwrap().bytes, work.block);
    })
}

/// Batches, each waited for before the next.
pub(crate) fn batch(work: &Work) -> Done {
    let count = work.args.batch;
    let len = work.block * count as usize;
    let memory = DeviceBuf::alloc(work.context, work.args.kind, len).unwrap();
    let (transfer, at) = (work.transfer, memory.ptr().0);
    let file = work.file();
    let batch = transfer.batch(count);
    let op = if work.args.write { Op::Write } else { Op::Read };
    let mut others = Offsets::new(work);
    let location = transfer.locate(at).unwrap();
    let (bytes, calls, times) = timed(work, |first| {
        let entry = |number: u32| Entry {
            op,
            file: file.clone(),
            location,
            address: at + u64::from(number) * work.block as u64,
            len: work.block,
            offset: if number == 0 { first } else { others.next() },
            cookie: u64::from(number),
        };
        // SAFETY: memory of this thread's own; all ends are fetched.
        unsafe { batch.submit((0..count).map(entry).collect()) }.unwrap();
        let ends = batch.events(count, count, None);
        assert!(ends.len() == count as usize && ends.iter().all(|end| end.outcome.is_ok()));
    });
    (bytes * u64::from(count), calls * u64::from(count), times)
}

/// Transfers in a stream, and a wait for it.
pub(crate) fn stream(work: &Work) -> Done {
    let count = work.args.batch.max(1);
    let len = work.block * count as usize;
    let memory = DeviceBuf::alloc(work.context, work.args.kind, len).unwrap();
    let (transfer, at) = (work.transfer, memory.ptr().0);
    let file = work.file();
    work.context.make_current().unwrap();
    let stream = Stream::new(work.context).unwrap();
    let raw = RawStream::new(stream.as_raw());
    let mut others = Offsets::new(work);
    let moved = Arc::new(AtomicU64::new(0));
    let (bytes, calls, times) = timed(work, |first| {
        let before = moved.load(Ordering::Relaxed);
        for number in 0..u64::from(count) {
            let offset = if number == 0 { first } else { others.next() };
            let params = Params {
                max_size: work.block,
                size: Param::Immediate(work.block),
                file_offset: Param::Immediate(offset.cast_signed()),
                buffer_offset: Param::Immediate((number * work.block as u64).cast_signed()),
            };
            let moved = Arc::clone(&moved);
            let ended: OnCompletion = Box::new(move |_, outcome| {
                moved.fetch_add(outcome.unwrap().bytes as u64, Ordering::Relaxed);
            });
            let location = (transfer.locate(at).unwrap(), at);
            let op = if work.args.write { Op::Write } else { Op::Read };
            // SAFETY: memory of this thread's own; the wait follows.
            unsafe { transfer.enqueue(raw, (op, &file), location, params, ended) }.unwrap();
        }
        stream.sync().unwrap();
        assert_eq!(moved.load(Ordering::Relaxed) - before, len as u64);
    });
    (bytes * u64::from(count), calls * u64::from(count), times)
}

/// One `pread(2)` into page-locked memory and one copy, or the other way round.
pub(crate) fn plain(work: &Work) -> Done {
    let memory = DeviceBuf::alloc(work.context, work.args.kind, work.block).unwrap();
    let host = memory.kind() != MemoryKind::Device && memory.is_host();
    let ring = Pinned::alloc(work.context, work.block).unwrap();
    let stream = Stream::new(work.context).unwrap();
    work.context.make_current().unwrap();
    let fd = work.file.as_raw_fd();
    timed(work, |offset| {
        let (at, len) = (ring.as_ptr().as_ptr(), work.block);
        let from = offset.cast_signed();
        if work.args.write {
            // SAFETY: both are this thread's; the wait follows.
            unsafe { stream.d2h(at, memory.ptr(), len) }.unwrap();
            stream.sync().unwrap();
            // SAFETY: `at` has `len` bytes.
            let put = unsafe { libc::pwrite(fd, at.cast(), len, from) };
            assert_eq!(usize::try_from(put), Ok(len));
            return;
        }
        let to = if host { memory.host_ptr().unwrap().as_ptr() } else { at };
        // SAFETY: `to` has room for `len` bytes.
        let count = unsafe { libc::pread(fd, to.cast(), len, from) };
        assert_eq!(usize::try_from(count), Ok(len));
        if !host {
            // SAFETY: both are this thread's; the wait follows.
            unsafe { stream.h2d(memory.ptr(), at, len) }.unwrap();
            stream.sync().unwrap();
        }
    })
}
