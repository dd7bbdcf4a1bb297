//! Transfers in the order of a program's stream, on gpuio's software GPU or with
//! `GPUIO_TEST_GPU=system` on the system's.
#![allow(clippy::unwrap_used, reason = "a panic is a test's failure")]
#![allow(unsafe_code, reason = "the interface under test is unsafe")]

mod program;
mod support;

use std::os::fd::AsFd;
use std::time::Duration;

use gpuio_gpu::{Managed, MemoryKind};
use gpuio_testkit::child;
use gpuio_transfer::{Fault, Op, Param, Params, ResolvedParams, Transfer};
use program::{Completion, Gate, Made, alloc, alone, capture, make, on};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use support::{
    Memory, Mode, chill, dir, file, gpu, memory_dir, random_bytes, settings, transfer, written,
};

fn now(size: usize, file_offset: i64, buffer_offset: i64) -> Params {
    Params {
        max_size: size,
        size: Param::Immediate(size),
        file_offset: Param::Immediate(file_offset),
        buffer_offset: Param::Immediate(buffer_offset),
    }
}

/// Parameters that are read when the stream reaches the transfer.
fn later(read: &ResolvedParams, max_size: usize) -> Params {
    Params {
        max_size,
        size: Param::Deferred(&raw const read.size),
        file_offset: Param::Deferred(&raw const read.file_offset),
        buffer_offset: Param::Deferred(&raw const read.buffer_offset),
    }
}

fn count(completion: &Completion) -> usize {
    let (_, outcome) = completion.try_recv().expect("the stream has passed");
    let moved = outcome.unwrap();
    let route = moved.route;
    assert_eq!(route.cached + route.direct, moved.bytes as u64);
    assert_eq!(route.by_host + route.by_copy + route.by_kernel, moved.bytes as u64);
    moved.bytes
}

fn fault(completion: &Completion) -> Fault {
    completion.try_recv().expect("the stream has passed").1.unwrap_err()
}

#[test]
fn parameters_are_read_when_the_stream_reaches_them() {
    let _alone = alone();
    let (transfer, stream, dir) = (transfer(), Made::new(), dir());
    let content = random_bytes(1, 300_000);
    let file = file(&transfer, &written(&dir, "file", &content), Mode::Plain);
    let memory = Memory::new(MemoryKind::Device, 400_000);
    // Loads kernels, which would wait for a held stream.
    transfer.locate(memory.address()).unwrap();
    memory.put(0, &vec![0; 400_000]);
    for op in [Op::Read, Op::Write] {
        let gate = Gate::new();
        stream.hold(gate);
        let read: &'static mut ResolvedParams =
            Box::leak(Box::new(ResolvedParams { size: 200_000, file_offset: 7, buffer_offset: 9 }));
        let params = later(read, 250_000);
        let completion = stream.put(&transfer, (op, &file), memory.address(), params).unwrap();
        assert!(completion.try_recv().is_err());
        let changed = ResolvedParams { size: 190_001, file_offset: 60_001, buffer_offset: 123 };
        // SAFETY: the stream is held, so nobody reads it.
        unsafe { std::ptr::from_mut(read).write_volatile(changed) };
        gate.open();
        stream.sync();
        let (seen, outcome) = completion.try_recv().unwrap();
        assert_eq!((seen, outcome.unwrap().bytes), (changed, 190_001));
        assert!(memory.take(123, 190_001) == content[60_001..250_002]);
        assert!(memory.take(0, 123).iter().all(|&byte| byte == 0));
        assert!(memory.take(190_124, 200_000).iter().all(|&byte| byte == 0));
    }
    assert!(std::fs::read(dir.path().join("file")).unwrap() == content);
}

#[test]
fn earlier_and_later_work_keeps_its_order() {
    let _alone = alone();
    let (transfer, stream, dir) = (transfer(), Made::new(), dir());
    let len = 700_000;
    let path = written(&dir, "file", &[]);
    let file = file(&transfer, &path, Mode::Plain);
    let (sources, device) =
        (Memory::new(MemoryKind::Pinned, 4 * len), Memory::new(MemoryKind::Device, len));
    let seen = Memory::new(MemoryKind::Pinned, 4 * len);
    let all = random_bytes(3, 4 * len);
    sources.put(0, &all);
    let mut completion = Vec::new();
    for turn in 0..4 {
        let by = (turn * len) as u64;
        // The device's memory gets other bytes as soon as the write has taken them, and the read
        // brings them back.
        stream.copy(device.address(), sources.address() + by, len);
        let params = now(len, 0, 0);
        completion
            .push(stream.put(&transfer, (Op::Write, &file), device.address(), params).unwrap());
        stream.copy(device.address(), sources.address() + 3 * len as u64 - by, len);
        completion
            .push(stream.put(&transfer, (Op::Read, &file), device.address(), params).unwrap());
        stream.copy(seen.address() + by, device.address(), len);
    }
    stream.sync();
    assert!(completion.iter().all(|completion| count(completion) == len));
    assert!(seen.take(0, 4 * len) == all);
    assert!(std::fs::read(&path).unwrap() == all[3 * len..]);
}

#[test]
fn many_at_once_over_four_streams() {
    let _alone = alone();
    let (transfer, dir) = (transfer(), dir());
    let len = 1 << 20;
    let content = random_bytes(4, 16 * len);
    let path = written(&dir, "in", &content);
    let (from, to) = (file(&transfer, &path, Mode::Direct), dir.path().join("out"));
    let onto = file(&transfer, &to, Mode::Plain);
    let streams: Vec<Made> = (0..4).map(|_| Made::new()).collect();
    let memory = Memory::new(MemoryKind::Device, 16 * len);
    let mut completion = Vec::new();
    for turn in 0..16 {
        for (number, stream) in streams.iter().enumerate() {
            // Each stream has a quarter of each piece, so no two use the same bytes.
            let at = (turn * len + number * len / 4) as u64;
            let params = now(len / 4, at.cast_signed(), at.cast_signed());
            let (read, write) = ((Op::Read, &from), (Op::Write, &onto));
            completion.push(stream.put(&transfer, read, memory.address(), params).unwrap());
            completion.push(stream.put(&transfer, write, memory.address(), params).unwrap());
        }
    }
    streams.iter().for_each(Made::sync);
    assert!(completion.iter().all(|completion| count(completion) == len / 4));
    assert!(memory.take(0, 16 * len) == content);
    assert!(std::fs::read(&to).unwrap() == content);
}

/// Reads a file of as many pieces as there are streams, each by its own, several times.
fn read_by_each(transfer: &Transfer, streams: &[Made], turns: usize) {
    let (dir, len) = (memory_dir(), 300_000);
    let content = random_bytes(13, streams.len() * len);
    let file = file(transfer, &written(&dir, "file", &content), Mode::Plain);
    let memory = Memory::new(MemoryKind::Device, content.len());
    transfer.locate(memory.address()).unwrap();
    memory.put(0, &vec![0; content.len()]);
    let mut completion = Vec::new();
    for turn in 0..turns {
        for (number, stream) in streams.iter().enumerate() {
            // All of a stream's piece, in as many transfers as there are passes.
            let (from, to) = (turn * len / turns, (turn + 1) * len / turns);
            let at = i64::try_from(number * len + from).unwrap();
            let put = (Op::Read, &file);
            let params = now(to - from, at, at);
            completion
                .push((stream.put(transfer, put, memory.address(), params).unwrap(), to - from));
        }
    }
    streams.iter().for_each(Made::sync);
    assert!(completion.iter().all(|(completion, len)| count(completion) == *len));
    assert!(memory.take(0, content.len()) == content);
}

#[test]
fn more_streams_than_threads() {
    let _alone = alone();
    // More streams than the poller watches.
    let (transfer, streams) = (transfer(), (0..70).map(|_| Made::new()).collect::<Vec<_>>());
    for turns in [1, 2, 5] {
        read_by_each(&transfer, &streams, turns);
    }
}

#[test]
fn threads_that_went_to_sleep_are_woken() {
    let _alone = alone();
    let (transfer, streams) = (transfer(), (0..3).map(|_| Made::new()).collect::<Vec<_>>());
    // So many that streams are expected to be prompt, and only polled.
    read_by_each(&transfer, &streams, 5);
    let gate = Gate::new();
    streams.iter().for_each(|stream| stream.hold(gate));
    // Thousands of times as long as a worker spins.
    let opener = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        gate.open();
    });
    let held = std::time::Instant::now();
    read_by_each(&transfer, &streams, 3);
    assert!(held.elapsed() >= Duration::from_millis(200), "the streams were held");
    opener.join().unwrap();
}

#[test]
fn more_bytes_than_there_is_locked_memory_and_a_full_queue() {
    let _alone = alone();
    let (transfer, stream, dir) = (transfer(), Made::new(), dir());
    // The bound is 2 MiB.
    let len = 9 << 20;
    let content = random_bytes(5, len + 5);
    let path = written(&dir, "in", &content);
    let (from, to) = (file(&transfer, &path, Mode::Direct), dir.path().join("out"));
    let onto = file(&transfer, &to, Mode::Direct);
    let memory = Memory::new(MemoryKind::Device, len);
    let gate = Gate::new();
    stream.hold(gate);
    // The queue of real hardware holds some thousand commands: enqueueing waits until the stream
    // continues.
    let opener = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        gate.open();
    });
    let (read, write) = ((Op::Read, &from), (Op::Write, &onto));
    let mut completion = Vec::new();
    for _ in 0..2 {
        let one = stream.put(&transfer, read, memory.address(), now(len, 5, 0)).unwrap();
        let other = stream.put(&transfer, write, memory.address(), now(len, 3, 0)).unwrap();
        completion.extend([(one, len), (other, len)]);
    }
    for turn in 0..300 {
        let params = now(4096, turn * 4096 + 5, turn * 4096);
        completion.push((stream.put(&transfer, read, memory.address(), params).unwrap(), 4096));
    }
    stream.sync();
    opener.join().unwrap();
    assert!(completion.iter().all(|(completion, len)| count(completion) == *len));
    assert!(memory.take(0, len) == content[5..]);
    assert!(std::fs::read(&to).unwrap()[3..] == content[5..]);
}

#[test]
fn failures_are_reported_and_the_stream_continues() {
    let _alone = alone();
    let (transfer, stream, dir) = (transfer(), Made::new(), dir());
    let content = random_bytes(6, 100_000);
    let path = written(&dir, "file", &content);
    let file = file(&transfer, &path, Mode::Plain);
    let memory = Memory::new(MemoryKind::Device, 200_000);
    let put = |op, params| stream.put(&transfer, (op, &file), memory.address(), params).unwrap();
    let at_end = put(Op::Read, now(5000, 100_000, 0));
    let past_end = put(Op::Read, now(5000, 1 << 40, 0));
    let short = put(Op::Read, now(150_000, 50_000, 1));
    let nothing = put(Op::Read, now(0, 0, 0));
    let negative = [put(Op::Read, now(1, -1, 0)), put(Op::Write, now(1, 0, -1))];
    let outside = [put(Op::Read, now(150_000, 0, 60_000)), put(Op::Write, now(200_001, 0, 0))];
    let long = ResolvedParams { size: 4097, ..ResolvedParams::default() };
    let too_long = put(Op::Write, later(&long, 4096));
    let read_only = transfer.file(std::fs::File::open(&path).unwrap().as_fd()).unwrap();
    let refused = (Op::Write, &read_only);
    let refused = stream.put(&transfer, refused, memory.address(), now(300_000 / 2, 0, 0)).unwrap();
    let good = put(Op::Read, now(100_000, 0, 0));
    stream.sync();
    assert_eq!((count(&at_end), count(&past_end), count(&short)), (0, 0, 50_000));
    assert_eq!((count(&nothing), count(&good)), (0, 100_000));
    for completion in &negative {
        assert!(matches!(fault(completion), Fault::Parameter { value: -1, .. }));
    }
    for completion in &outside {
        assert!(matches!(fault(completion), Fault::Outside { .. }));
    }
    assert!(matches!(fault(&too_long), Fault::Parameter { value: 4097, .. }));
    let error = fault(&refused);
    assert!(matches!(error, Fault::File { errno: libc::EBADF, .. }), "{error}");
    assert!(memory.take(0, 100_000) == content);
    assert!(std::fs::read(&path).unwrap() == content);
}

#[test]
fn a_captured_stream_takes_no_transfer() {
    let _alone = alone();
    let (transfer, stream, dir) = (transfer(), Made::new(), dir());
    let file = file(&transfer, &written(&dir, "file", &random_bytes(7, 5000)), Mode::Plain);
    let memory = Memory::new(MemoryKind::Device, 5000);
    capture(stream.handle, true);
    let put = stream.put(&transfer, (Op::Read, &file), memory.address(), now(5000, 0, 0));
    assert_eq!(put.unwrap_err(), Fault::Captured);
    capture(stream.handle, false);
    let put = stream.put(&transfer, (Op::Read, &file), memory.address(), now(5000, 0, 0)).unwrap();
    stream.sync();
    assert_eq!(count(&put), 5000);
}

#[test]
fn a_file_may_be_dropped_while_transfers_wait() {
    let _alone = alone();
    let (transfer, stream, dir) = (transfer(), Made::new(), dir());
    let content = random_bytes(8, 200_000);
    let path = written(&dir, "file", &content);
    let memory = Memory::new(MemoryKind::Device, content.len());
    transfer.locate(memory.address()).unwrap();
    let gate = Gate::new();
    stream.hold(gate);
    let file = file(&transfer, &path, Mode::Direct);
    let params = now(content.len(), 0, 0);
    let completion = stream.put(&transfer, (Op::Read, &file), memory.address(), params).unwrap();
    drop(file);
    std::fs::remove_file(&path).unwrap();
    gate.open();
    stream.sync();
    assert_eq!(count(&completion), content.len());
    assert!(memory.take(0, content.len()) == content);
}

#[test]
fn default_streams_are_streams_too() {
    let _alone = alone();
    let (transfer, dir) = (transfer(), memory_dir());
    let content = random_bytes(9, 70_000);
    let file = file(&transfer, &written(&dir, "file", &content), Mode::Plain);
    for number in [0, 1, 2] {
        let stream = Made::default(number);
        let memory = Memory::new(MemoryKind::Device, content.len());
        let params = now(content.len(), 0, 0);
        let completion =
            stream.put(&transfer, (Op::Read, &file), memory.address(), params).unwrap();
        stream.sync();
        assert_eq!(count(&completion), content.len());
        assert!(memory.take(0, content.len()) == content, "default stream {number}");
    }
}

#[test]
fn a_context_of_the_program_works_too() {
    let _alone = alone();
    let (transfer, dir) = (transfer(), dir());
    let content = random_bytes(10, 500_000);
    let path = written(&dir, "file", &content);
    let file = file(&transfer, &path, Mode::Plain);
    let primary = Made::new();
    let context = make("cuCtxCreate_v2", 0, 0);
    let handle = make("cuStreamCreate", 1, 0);
    let stream = std::mem::ManuallyDrop::new(Made::of(handle));
    let address = alloc(content.len());
    let read = ResolvedParams { size: 400_000, file_offset: 11, buffer_offset: 5 };
    let put = |op| stream.put(&transfer, (op, &file), address, later(&read, 500_000)).unwrap();
    let (completion, back) = (put(Op::Read), put(Op::Write));
    stream.sync();
    assert_eq!((count(&completion), count(&back)), (400_000, 400_000));
    assert!(std::fs::read(&path).unwrap() == content);
    let seen = Memory::new(MemoryKind::Pinned, 400_000);
    stream.copy(seen.address(), address + 5, 400_000);
    stream.sync();
    assert!(seen.take(0, 400_000) == content[11..400_011]);
    // The primary context's stream has no order with that memory.
    let refused = primary.put(&transfer, (Op::Read, &file), address, now(1000, 0, 0));
    assert_eq!(refused.unwrap_err(), Fault::OtherContext);
    assert_eq!(on("cuStreamDestroy_v2", handle), 0);
    assert_eq!(on("cuCtxDestroy_v2", context), 0);
}

#[test]
fn managed_memory_is_on_the_gpu_before_its_bytes_arrive() {
    let _alone = alone();
    let (transfer, stream, dir) = (transfer(), Made::new(), dir());
    let content = random_bytes(11, 400_000);
    let path = written(&dir, "file", &content);
    let file = file(&transfer, &path, Mode::Direct);
    let managed = Managed::alloc(&gpu().context, 500_000).unwrap();
    let (len, at) = (300_001, 4099_i64);
    let read = ResolvedParams { size: len, file_offset: 77, buffer_offset: at };
    let put = |op| stream.put(&transfer, (op, &file), managed.ptr().0, later(&read, len)).unwrap();
    let (completion, back) = (put(Op::Read), put(Op::Write));
    let seen = Memory::new(MemoryKind::Pinned, len);
    stream.copy(seen.address(), managed.ptr().0 + at.cast_unsigned(), len);
    stream.sync();
    assert_eq!((count(&completion), count(&back)), (len, len));
    assert!(seen.take(0, len) == content[77..77 + len]);
    assert!(std::fs::read(&path).unwrap() == content);
}

/// A transfer of a random program.
#[derive(Debug, Clone)]
struct Step {
    op: Op,
    offset: usize,
    len: usize,
    at: usize,
    /// Additional bytes of the announced bound.
    more: usize,
    fixed: bool,
}

const MEMORY: usize = 900 << 10;

fn sizes(most: usize) -> impl Strategy<Value = usize> {
    let pages = (0..=most / 4096).prop_map(|pages| pages * 4096);
    prop_oneof![0..most, 0..=5000_usize, pages, Just(64 << 10), Just(1)]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let parts = (any::<bool>(), sizes(600 << 10), sizes(500 << 10), sizes(200 << 10));
    let one = (parts, sizes(100 << 10), any::<bool>());
    let step = one.prop_map(|((read, offset, len, at), more, fixed)| {
        let op = if read { Op::Read } else { Op::Write };
        Step { op, offset, len, at, more, fixed }
    });
    proptest::collection::vec(step, 1..8)
}

/// Runs the steps in one stream without a wait between them, and on a model.
fn run(transfer: &Transfer, mode: Mode, kind: MemoryKind, start: usize, steps: &[Step]) {
    let (stream, dir) = (Made::new(), dir());
    let mut model = random_bytes(1, start);
    let path = written(&dir, "file", &model);
    if mode == Mode::Direct {
        chill(&path);
    }
    let file = file(transfer, &path, mode);
    let memory = Memory::new(kind, MEMORY);
    let mut held = random_bytes(2, MEMORY);
    memory.put(0, &held);
    // Direct reads into the caller's memory may change bytes after the end of the file.
    let mut end = start;
    let mut steps = steps.to_vec();
    for step in &mut steps {
        match step.op {
            Op::Read if kind.is_host() => step.len = step.len.min(end.saturating_sub(step.offset)),
            Op::Write if step.len > 0 => end = end.max(step.offset + step.len),
            _ => {}
        }
    }
    let reads: Vec<ResolvedParams> = steps
        .iter()
        .map(|step| ResolvedParams {
            size: step.len,
            file_offset: i64::try_from(step.offset).unwrap(),
            buffer_offset: i64::try_from(step.at).unwrap(),
        })
        .collect();
    let mut completion = Vec::new();
    for (step, read) in steps.iter().zip(&reads) {
        let params = if step.fixed {
            now(read.size, read.file_offset, read.buffer_offset)
        } else {
            later(read, step.len + step.more)
        };
        completion.push(stream.put(transfer, (step.op, &file), memory.address(), params).unwrap());
    }
    stream.sync();
    for ((step, completion), read) in steps.iter().zip(&completion).zip(&reads) {
        let (from, at) = (step.offset, step.at..step.at + step.len);
        let wanted = match step.op {
            Op::Read => {
                let end = (from + step.len).min(model.len()).max(from.min(model.len()));
                let there = &model[from.min(model.len())..end];
                held[at.start..at.start + there.len()].copy_from_slice(there);
                there.len()
            }
            Op::Write => {
                if step.len > 0 {
                    model.resize(model.len().max(from + step.len), 0);
                    model[from..from + step.len].copy_from_slice(&held[at]);
                }
                step.len
            }
        };
        assert_eq!(count(completion), wanted, "{read:?}");
    }
    assert!(memory.take(0, MEMORY) == held, "memory");
    assert!(std::fs::read(&path).unwrap() == model, "file");
}

fn check(mode: Mode, kind: MemoryKind) {
    let transfer = transfer();
    let mut runner = TestRunner::new(Config { cases: 24, ..Config::default() });
    let cases = (sizes(700 << 10), steps());
    let run = |(start, steps): (usize, Vec<Step>)| {
        run(&transfer, mode, kind, start, &steps);
        Ok(())
    };
    runner.run(&cases, run).unwrap();
}

#[test]
fn the_model_matches_plain_files_and_device_memory() {
    let _alone = alone();
    check(Mode::Plain, MemoryKind::Device);
}

#[test]
fn the_model_matches_direct_files_and_device_memory() {
    let _alone = alone();
    check(Mode::Direct, MemoryKind::Device);
}

#[test]
fn the_model_matches_direct_files_and_mapped_memory() {
    let _alone = alone();
    check(Mode::Direct, MemoryKind::Vmm);
}

#[test]
fn the_model_matches_plain_files_and_host_memory() {
    let _alone = alone();
    check(Mode::Plain, MemoryKind::Malloc);
}

#[test]
fn the_model_matches_direct_files_and_locked_memory() {
    let _alone = alone();
    check(Mode::Direct, MemoryKind::Pinned);
}

/// In processes of their own, in each of which one function for streams fails: the first, when the
/// stream already has the store of its semaphore, or a later one, when chunks are in progress.
#[test]
fn a_transfer_that_fails_half_way_leaves_nothing_in_the_stream() {
    let _alone = alone();
    if std::env::var_os("GPUIO_SOFT_FAIL").is_none() {
        if gpu().context.driver().is_software() {
            for after in [0, 1, 3] {
                let fail = format!("cuLaunchHostFunc:1:{after}:1");
                let test = a_transfer_that_fails_half_way_leaves_nothing_in_the_stream;
                child::passes(test, &[("GPUIO_SOFT_FAIL", &fail)]);
            }
        } else {
            eprintln!("skipped: only the software GPU fails when it shall");
        }
        return;
    }
    let mut settings = settings();
    settings.stream_poller = false;
    let (transfer, stream, dir) = (Transfer::new(settings), Made::new(), dir());
    let content = random_bytes(12, 1 << 20);
    let path = written(&dir, "file", &content);
    let file = file(&transfer, &path, Mode::Plain);
    let memory = Memory::new(MemoryKind::Device, 1 << 20);
    let put = |op| stream.put(&transfer, (op, &file), memory.address(), now(1 << 20, 0, 0));
    let outcomes = [put(Op::Read), put(Op::Read), put(Op::Read)];
    stream.sync();
    let refused = outcomes.iter().filter(|put| matches!(put, Err(Fault::Gpu(_)))).count();
    assert_eq!(refused, 1);
    for completion in outcomes.iter().flatten() {
        assert_eq!(count(completion), 1 << 20);
    }
    assert!(memory.take(0, 1 << 20) == content);
    assert_eq!(put(Op::Write).map(|completion| (stream.sync(), count(&completion)).1), Ok(1 << 20));
    assert!(std::fs::read(&path).unwrap() == content);
}

/// Threads that make rings at the same time wait for the rings of each other. Where none can be
/// made, all of their calls fail, and none waits for ever.
#[test]
fn calls_end_where_no_memory_can_be_page_locked() {
    let _alone = alone();
    if std::env::var_os("GPUIO_SOFT_FAIL").is_none() {
        if gpu().context.driver().is_software() {
            let test = calls_end_where_no_memory_can_be_page_locked;
            child::passes(test, &[("GPUIO_SOFT_FAIL", "cuMemHostRegister_v2:2")]);
        } else {
            eprintln!("skipped: only the software GPU fails when it shall");
        }
        return;
    }
    const LEN: usize = 1 << 20;
    let (ends, end) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let (transfer, dir) = (Transfer::new(settings()), dir());
        let path = written(&dir, "file", &random_bytes(12, LEN));
        let file = file(&transfer, &path, Mode::Plain);
        let memory = Memory::new(MemoryKind::Device, LEN);
        let location = transfer.locate(memory.address()).unwrap();
        for _ in 0..200 {
            std::thread::scope(|scope| {
                for _ in 0..8 {
                    // SAFETY: no byte arrives, in memory of the test's own.
                    let read = || unsafe {
                        transfer.call(Op::Read, &file, location, memory.address(), LEN, 0)
                    };
                    scope.spawn(move || assert!(matches!(read(), Err(Fault::Gpu(_)))));
                }
            });
        }
        ends.send(()).unwrap();
    });
    end.recv_timeout(std::time::Duration::from_secs(120)).expect("all calls end");
}

/// The same again in a process whose streams can't wait for semaphore values.
#[test]
fn all_tests_without_waits_for_semaphore_values() {
    if !gpu().context.driver().is_software() {
        eprintln!("skipped: only the software GPU can do without");
        return;
    }
    let mut again = std::process::Command::new(std::env::current_exe().unwrap());
    again.args(["--skip", "all_tests_without_waits", "--skip", "half_way"]);
    again.envs([("GPUIO_SOFT_STREAM_WORDS", "0"), ("GPUIO_SOFT_DELAY_US", "100")]);
    assert!(again.status().unwrap().success());
}
