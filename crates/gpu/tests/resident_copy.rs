//! The resident copy kernel against plain copies, on gpuio's software GPU, or with
//! `GPUIO_TEST_GPU=system` on the system's, where the cases that need the software one say that
//! they are skipped.
//!
//! Cases that need an environment of their own run in child processes: this program again, with
//! the name of an ignored test.
#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]
#![expect(unsafe_code, reason = "the copies and kernels of the API are unsafe")]

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use gpuio_gpu::resident_copy::{CommandQueue, Outcome, Submitter, Timing};
use gpuio_gpu::{
    Busy, BusyWith, Context, DevPtr, DeviceBuf, Driver, GpuError, Locked, MemoryKind, PageSize,
    Stream, pattern,
};
use gpuio_testkit::child;
use gpuio_testkit::gpu::which;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// Longer than a loaded machine takes to let a thread of the software GPU run.
const LONG_TIMEOUT: Timing = Timing {
    idle: Duration::from_micros(200),
    lifetime: Duration::from_millis(1),
    relaunch_lead: Duration::from_micros(200),
    start_timeout: Duration::from_secs(20),
    backoff: Duration::from_millis(4),
    probe_interval: Duration::ZERO,
};

struct Bench {
    context: Context,
    stream: Stream,
    queue: CommandQueue,
}

fn bench_with(timing: Timing) -> Bench {
    let driver = Driver::load(&which()).unwrap();
    let context = Context::new(&driver, 0).unwrap();
    let stream = Stream::new(&context).unwrap();
    let queue = CommandQueue::new(&context, timing).unwrap();
    Bench { context, stream, queue }
}

fn bench() -> Bench {
    bench_with(LONG_TIMEOUT)
}

/// With the timing that programs get.
fn bench_as_shipped() -> Bench {
    let driver = Driver::load(&which()).unwrap();
    bench_with(Timing::of(&Context::new(&driver, 0).unwrap()))
}

impl Bench {
    /// Copies by the driver, and waits.
    fn copy(&self, dst: DevPtr, src: DevPtr, len: usize) {
        let done = self.context.entered(|| {
            // SAFETY: the test gives ranges of its own; the wait follows.
            unsafe { self.stream.copy(dst, src, len) }?;
            self.stream.sync()
        });
        done.unwrap().unwrap();
    }

    fn put(&self, to: DevPtr, bytes: &[u8]) {
        self.copy(to, DevPtr(bytes.as_ptr() as u64), bytes.len());
    }

    fn take(&self, from: DevPtr, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.copy(DevPtr(bytes.as_mut_ptr() as u64), from, len);
        bytes
    }

    fn alloc(&self, kind: MemoryKind, len: usize) -> DeviceBuf {
        DeviceBuf::alloc(&self.context, kind, len).unwrap()
    }

    fn locked(&self, len: usize) -> Locked {
        Locked::new(&self.context, len, PageSize::Plain).unwrap()
    }
}

fn run(
    submitter: &mut Submitter,
    src: DevPtr,
    dst: DevPtr,
    len: usize,
) -> Result<Outcome, GpuError> {
    // SAFETY: the test gives live ranges that nobody else uses meanwhile.
    unsafe { submitter.copy(src, dst, len) }
}

/// Where more threads than there are places have commands, some find none.
fn run_when_free(submitter: &mut Submitter, src: DevPtr, dst: DevPtr, len: usize) -> Outcome {
    loop {
        match run(submitter, src, dst, len).unwrap() {
            Outcome::Busy => std::thread::yield_now(),
            outcome => return outcome,
        }
    }
}

fn submit(
    submitter: &mut Submitter,
    src: DevPtr,
    dst: DevPtr,
    len: usize,
) -> Result<Outcome, GpuError> {
    // SAFETY: the test gives live ranges that nobody else uses until the end is seen.
    unsafe { submitter.submit(src, dst, len) }
}

fn slice(memory: &Locked) -> &[u8] {
    // SAFETY: live memory that nobody writes meanwhile.
    unsafe { std::slice::from_raw_parts(memory.as_ptr().as_ptr(), memory.len()) }
}

fn fill(memory: &Locked, key: u64) {
    // SAFETY: live memory that nobody else uses meanwhile.
    let bytes = unsafe { std::slice::from_raw_parts_mut(memory.as_ptr().as_ptr(), memory.len()) };
    pattern::fill(bytes, key, 0);
}

fn data(key: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    pattern::fill(&mut bytes, key, 0);
    bytes
}

// ---- what is moved

#[test]
fn any_range_is_moved_to_any_other_and_nothing_beside_it() {
    const ROOM: usize = 160 << 10;
    let bench = bench();
    let (device, vmm) = (bench.alloc(MemoryKind::Device, ROOM), bench.alloc(MemoryKind::Vmm, ROOM));
    let (near, far) = (bench.locked(ROOM), bench.locked(ROOM));
    let places = [device.ptr(), vmm.ptr(), near.ptr(), far.ptr()];
    let submitter = RefCell::new(bench.queue.submitter());
    let strategy = (
        (0..places.len(), 1..places.len()),
        (0_usize..300, 0_usize..300),
        prop_oneof![0_usize..100, 4000_usize..4200, 0_usize..(150 << 10)],
        any::<u64>(),
    );
    let mut runner = TestRunner::new(Config { cases: 200, ..Config::default() });
    let outcome = runner.run(&strategy, |((from, step), (skip, gap), len, key)| {
        let to = (from + step) % places.len();
        let (from, to) = (places[from], places[to]);
        let (old, new) = (data(!key, ROOM), data(key, ROOM));
        bench.put(to, &old);
        bench.put(from, &new);
        let (src, dst) = (from.byte_add(skip as u64), to.byte_add(gap as u64));
        let outcome = run(&mut submitter.borrow_mut(), src, dst, len).unwrap();
        prop_assert_eq!(outcome, Outcome::Copied);
        let there = bench.take(to, ROOM);
        prop_assert!(there[..gap] == old[..gap], "before the destination");
        prop_assert!(there[gap..gap + len] == new[skip..skip + len], "the bytes");
        prop_assert!(there[gap + len..] == old[gap + len..], "behind the destination");
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn a_command_cannot_name_an_address_of_more_than_48_bits() {
    let bench = bench();
    let device = bench.alloc(MemoryKind::Device, 4096);
    let mut submitter = bench.queue.submitter();
    for (src, dst) in [(DevPtr(1 << 48), device.ptr()), (device.ptr(), DevPtr(1 << 60))] {
        assert_eq!(run(&mut submitter, src, dst, 16).unwrap(), Outcome::Busy);
    }
    assert_eq!(bench.queue.launches(), 0);
}

// ---- many submitters

/// One thread: moves blocks in and out of the device and checks each.
fn work(bench: &Bench, seed: u64, rounds: u64) {
    let len = 9000;
    let (out, back) = (bench.locked(len), bench.locked(len));
    let device = bench.alloc(MemoryKind::Device, len);
    let mut submitter = bench.queue.submitter();
    for round in 0..rounds {
        let key = seed << 32 | round;
        fill(&out, key);
        let skip = (key.wrapping_mul(0x9E37_79B9) >> 7) % 64;
        let count = usize::try_from(8000 - skip * 100).unwrap();
        let (src, dst) = (out.ptr().byte_add(skip), device.ptr().byte_add(skip * 2));
        assert_eq!(run_when_free(&mut submitter, src, dst, count), Outcome::Copied);
        let end = back.ptr().byte_add(skip / 3);
        assert_eq!(run_when_free(&mut submitter, dst, end, count), Outcome::Copied);
        let (from, to) = (usize::try_from(skip).unwrap(), usize::try_from(skip / 3).unwrap());
        let right = slice(&back)[to..to + count] == slice(&out)[from..from + count];
        assert!(right, "thread {seed}, round {round}");
    }
}

#[test]
fn many_threads_at_once_are_served_each_with_its_own_bytes() {
    let bench = bench();
    std::thread::scope(|scope| {
        for seed in 0..20 {
            let bench = &bench;
            scope.spawn(move || work(bench, seed, 60));
        }
    });
    assert_eq!(bench.queue.dedicated_slots(), 0);
}

#[test]
fn slots_come_and_go_while_others_work() {
    let bench = bench();
    let (ends, visits) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for seed in 100..103 {
            let (bench, ends, visits) = (&bench, &ends, &visits);
            scope.spawn(move || {
                work(bench, seed, 150);
                while visits.load(Ordering::Relaxed) <= 12 {
                    work(bench, seed, 10);
                }
                ends.store(true, Ordering::Release);
            });
        }
        for seed in 0..12 {
            let (bench, ends, visits) = (&bench, &ends, &visits);
            scope.spawn(move || {
                while !ends.load(Ordering::Acquire) {
                    work(bench, seed, 2);
                    visits.fetch_add(1, Ordering::Relaxed);
                    std::thread::sleep(Duration::from_micros(100 * seed));
                }
            });
        }
    });
    assert_eq!(bench.queue.dedicated_slots(), 0);
}

#[test]
fn there_are_more_queues_than_slots_and_each_command_takes_one_that_is_free() {
    let bench = bench();
    let places = bench.queue.slots();
    let len = places * 128;
    let mut submitters: Vec<Submitter> = (0..places + 9).map(|_| bench.queue.submitter()).collect();
    assert_eq!(bench.queue.dedicated_slots() as usize, places);
    let device = bench.alloc(MemoryKind::Device, len);
    let host = bench.locked(len);
    fill(&host, 5);
    // All at once, from those that came last on: so that one launch has them all.
    let mut under_way = Vec::new();
    for (at, submitter) in (0..).zip(submitters.iter_mut().rev()) {
        let (src, dst) = (host.ptr().byte_add(at * 128), device.ptr().byte_add(at * 128));
        match submit(submitter, src, dst, 128).unwrap() {
            Outcome::Pending => under_way.push(submitter),
            // No place is free: no command's end was seen.
            outcome => assert_eq!((outcome, under_way.len()), (Outcome::Busy, places)),
        }
    }
    assert_eq!(under_way.len(), places);
    let began = Instant::now();
    for submitter in under_way {
        loop {
            match submitter.poll().unwrap() {
                Outcome::Copied => break,
                // A command that was taken back is none, and the next answer would be the first.
                outcome => assert_eq!(outcome, Outcome::Pending),
            }
            assert!(began.elapsed() < Duration::from_secs(30), "no answer");
            std::thread::yield_now();
        }
    }
    assert_eq!(bench.take(device.ptr(), len), slice(&host));
    // Now all of them have room, one after the other.
    for (key, submitter) in (100..).zip(&mut submitters) {
        fill(&host, key);
        assert_eq!(run(submitter, host.ptr(), device.ptr(), len).unwrap(), Outcome::Copied);
        assert_eq!(bench.take(device.ptr(), len), slice(&host));
    }
    drop(submitters);
    assert_eq!(bench.queue.dedicated_slots(), 0);
}

// ---- the kernel comes and goes

#[test]
fn a_kernel_that_left_is_launched_again() {
    let bench = bench();
    let host = bench.locked(4096);
    let device = bench.alloc(MemoryKind::Device, 4096);
    let mut submitter = bench.queue.submitter();
    let idle = LONG_TIMEOUT.idle;
    let pauses = [idle * 4, Duration::ZERO, idle, idle / 2, idle * 2, Duration::from_millis(20)];
    for (key, pause) in (0..).zip(pauses.iter().cycle().take(60)) {
        fill(&host, key);
        assert_eq!(run(&mut submitter, host.ptr(), device.ptr(), 4096).unwrap(), Outcome::Copied);
        assert_eq!(bench.take(device.ptr(), 4096), slice(&host), "round {key}");
        std::thread::sleep(*pause);
    }
    let launches = bench.queue.launches();
    assert!(launches > 10, "{launches} launches");
    // Without commands it stays away: the device comes to rest, which it does not where a launch
    // follows a launch.
    bench.context.synchronize().unwrap();
    assert_eq!(bench.queue.launches(), launches);
}

#[test]
fn whoever_waits_for_the_whole_device_is_let_through_while_there_is_work() {
    let bench = bench();
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for seed in 0..3 {
            let (bench, ends) = (&bench, &ends);
            scope.spawn(move || {
                while !ends.load(Ordering::Acquire) {
                    work(bench, seed, 10);
                }
            });
        }
        let mut longest = Duration::ZERO;
        let launches = bench.queue.launches();
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(300) {
            let since = Instant::now();
            bench.context.synchronize().unwrap();
            longest = longest.max(since.elapsed());
        }
        ends.store(true, Ordering::Release);
        // Far more than two stays, for machines with few processors; far less than for ever.
        assert!(longest < Duration::from_secs(2), "{longest:?}");
        assert!(bench.queue.launches() - launches > 10, "it left and came again");
    });
}

#[test]
fn a_command_is_in_flight_until_its_end_is_seen() {
    let bench = bench();
    let host = bench.locked(4096);
    let device = bench.alloc(MemoryKind::Device, 4096);
    let mut submitter = bench.queue.submitter();
    assert_eq!(submitter.poll().unwrap(), Outcome::Copied);
    assert!(submitter.cancel());
    // Tests beside this one fill the GPU for a while.
    let submit_when_free = |submitter: &mut Submitter| loop {
        match submit(submitter, host.ptr(), device.ptr(), 4096).unwrap() {
            Outcome::Busy => std::thread::yield_now(),
            outcome => break outcome,
        }
    };
    let mut key = 0;
    while key < 50 {
        fill(&host, key);
        assert_eq!(submit_when_free(&mut submitter), Outcome::Pending);
        // At various moments of its way.
        std::thread::sleep(Duration::from_micros(key * 7));
        if submitter.cancel() {
            let before = data(99, 4096);
            bench.put(device.ptr(), &before);
            // Every launch that could have read the command has ended.
            bench.context.synchronize().unwrap();
            assert_eq!(bench.take(device.ptr(), 4096), before, "round {key}: taken back");
            key += 1;
            continue;
        }
        let outcome = loop {
            match submitter.poll().unwrap() {
                Outcome::Pending => std::thread::yield_now(),
                outcome => break outcome,
            }
        };
        // A round that another test's work ended is made again.
        if outcome == Outcome::Copied {
            assert_eq!(bench.take(device.ptr(), 4096), slice(&host), "round {key}");
            key += 1;
        }
    }
    // A submitter that is dropped with a command under way leaves no trace.
    assert_eq!(submit_when_free(&mut submitter), Outcome::Pending);
    drop(submitter);
    let mut next = bench.queue.submitter();
    fill(&host, 1000);
    assert_eq!(run_when_free(&mut next, host.ptr(), device.ptr(), 4096), Outcome::Copied);
    assert_eq!(bench.take(device.ptr(), 4096), slice(&host));
}

#[test]
fn the_kernel_stays_away_now_and_then_to_look_and_every_command_ends() {
    let bench = bench_with(Timing { probe_interval: Duration::from_millis(2), ..LONG_TIMEOUT });
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let bench = &bench;
            scope.spawn(move || {
                let (host, device) = (bench.locked(4096), bench.alloc(MemoryKind::Device, 4096));
                let mut submitter = bench.queue.submitter();
                let (mut moved, mut busy) = (0, 0);
                let began = Instant::now();
                while (moved < 200 || busy < 5) && began.elapsed() < Duration::from_secs(30) {
                    let key = seed << 32 | (moved + busy);
                    fill(&host, key);
                    match run(&mut submitter, host.ptr(), device.ptr(), 4096).unwrap() {
                        Outcome::Copied => {
                            moved += 1;
                            assert_eq!(bench.take(device.ptr(), 4096), slice(&host));
                        }
                        outcome => {
                            busy += 1;
                            assert_eq!(outcome, Outcome::Busy);
                            std::thread::yield_now();
                        }
                    }
                }
                assert!(moved >= 200 && busy >= 5, "{moved} moved, {busy} busy");
            });
        }
    });
}

/// In a process of its own: it leaves no room to the tests beside it.
#[test]
fn a_device_that_others_fill_is_left_to_them_and_taken_again_afterwards() {
    child::alone(&[], || {
        let bench = bench_as_shipped();
        let context = &bench.context;
        let (host, device) = (bench.locked(4096), bench.alloc(MemoryKind::Device, 4096));
        let mut submitter = bench.queue.submitter();
        // A loaded machine may let the first launches come late.
        let moves = |submitter: &mut Submitter, key: u64, wanted: Outcome| {
            let began = Instant::now();
            loop {
                fill(&host, key);
                bench.put(device.ptr(), &data(!key, 4096));
                let outcome = run(submitter, host.ptr(), device.ptr(), 4096).unwrap();
                let there =
                    if outcome == Outcome::Copied { data(key, 4096) } else { data(!key, 4096) };
                assert_eq!(bench.take(device.ptr(), 4096), there, "{outcome:?}");
                if outcome == wanted {
                    return;
                }
                assert!(began.elapsed() < Duration::from_secs(20), "never {wanted:?}");
            }
        };
        moves(&mut submitter, 1, Outcome::Copied);
        let sms = context.driver().multiprocessors(0).unwrap();
        context.make_current().unwrap();
        let mut busy = Busy::load(context, BusyWith::Compute, sms).unwrap();
        // A second or more of launches that leave no room.
        for _ in 0..1000 {
            busy.launch(50 * u64::from(sms)).unwrap();
        }
        moves(&mut submitter, 2, Outcome::Busy);
        assert!(bench.queue.is_backing_off());
        let launches = bench.queue.launches();
        // Few launches are tried while that lasts.
        for key in 3..50 {
            moves(&mut submitter, key, Outcome::Busy);
        }
        assert!(bench.queue.launches() - launches < 20, "{} launches", bench.queue.launches());
        let launches = bench.queue.launches();
        busy.stream().sync().unwrap();
        moves(&mut submitter, 50, Outcome::Copied);
        assert!(!bench.queue.is_backing_off());
        // One probe alone may have met the gap between two kernels.
        assert!(bench.queue.launches() - launches >= 3, "{} launches", bench.queue.launches());
    });
}

// ---- what goes wrong

#[test]
fn a_kernel_that_finds_no_room_leaves_the_command_to_the_caller() {
    // Each launch begins so late.
    child::alone_on_software(&[("GPUIO_SOFT_DELAY_US", "500000")], || {
        let bench = bench_with(Timing::default());
        let host = bench.locked(4096);
        let device = bench.alloc(MemoryKind::Device, 4096);
        let mut submitter = bench.queue.submitter();
        bench.put(device.ptr(), &data(1, 4096));
        fill(&host, 2);
        let began = Instant::now();
        assert_eq!(run(&mut submitter, host.ptr(), device.ptr(), 4096).unwrap(), Outcome::Busy);
        // Nor is the next one made to wait.
        assert_eq!(run(&mut submitter, host.ptr(), device.ptr(), 4096).unwrap(), Outcome::Busy);
        assert!(began.elapsed() < Duration::from_millis(400), "{:?}", began.elapsed());
        // The launch begins in the end, and finds no command.
        bench.context.synchronize().unwrap();
        assert_eq!(bench.take(device.ptr(), 4096), data(1, 4096));
    });
}

#[test]
fn a_probe_that_begins_late_has_found_no_room() {
    // Two thirds of the test's start timeout: each launch begins so late, as behind a kernel.
    child::alone_on_software(&[("GPUIO_SOFT_DELAY_US", "400000")], || {
        // A busy machine runs this thread every some ten milliseconds. It needs one look at the
        // probe between a third of the start timeout and the delay, and one at the first launch
        // between its announcement and its end.
        let milliseconds = Duration::from_millis;
        let bench = bench_with(Timing {
            idle: milliseconds(100),
            lifetime: milliseconds(200),
            relaunch_lead: milliseconds(100),
            start_timeout: milliseconds(600),
            ..Timing::default()
        });
        let (host, device) = (bench.locked(4096), bench.alloc(MemoryKind::Device, 4096));
        let mut submitter = bench.queue.submitter();
        let mut run = || run(&mut submitter, host.ptr(), device.ptr(), 4096).unwrap();
        let began = Instant::now();
        // Until the first probe.
        while run() != Outcome::Busy {
            assert!(began.elapsed() < Duration::from_secs(60), "never Busy");
        }
        // Three probes that found room would end the backoff.
        let launches = bench.queue.launches();
        while bench.queue.launches() < launches + 4 {
            assert_eq!(run(), Outcome::Busy, "launch {}", bench.queue.launches() - launches);
            std::thread::sleep(milliseconds(1));
        }
    });
}

#[test]
fn a_lost_device_is_an_error_in_every_slot() {
    child::passes_on_software(child_lost, &[("GPUIO_SOFT_FAIL", "cuLaunchKernel:719:3:1")]);
    child::passes_on_software(child_lost, &[("GPUIO_SOFT_FAIL", "cuLaunchKernel:700")]);
}

#[test]
#[ignore = "run as a child"]
fn child_lost() {
    let bench = bench();
    let device = bench.alloc(MemoryKind::Device, 4096);
    // Before the device is lost: a lost one locks no memory.
    let hosts: Vec<Locked> = (0..8).map(|_| bench.locked(4096)).collect();
    std::thread::scope(|scope| {
        for host in &hosts {
            let (bench, device) = (&bench, device.ptr());
            scope.spawn(move || {
                let mut submitter = bench.queue.submitter();
                let began = Instant::now();
                let error = loop {
                    match run(&mut submitter, host.ptr(), device, 16) {
                        Ok(outcome) => assert_eq!(outcome, Outcome::Copied),
                        Err(error) => break error,
                    }
                    // So that the kernel leaves and is launched again.
                    std::thread::sleep(Duration::from_millis(1));
                    assert!(began.elapsed() < Duration::from_secs(20), "no error");
                };
                assert!(error.is_sticky(), "{error}");
                // It stays one, at once.
                let again = Instant::now();
                assert!(run(&mut submitter, host.ptr(), device, 16).is_err());
                assert!(again.elapsed() < Duration::from_secs(1));
            });
        }
    });
}

#[test]
fn a_launch_that_fails_is_an_error_once() {
    child::alone_on_software(&[("GPUIO_SOFT_FAIL", "cuLaunchKernel:1:0:1")], || {
        let bench = bench();
        let host = bench.locked(4096);
        let device = bench.alloc(MemoryKind::Device, 4096);
        let mut submitter = bench.queue.submitter();
        let error = run(&mut submitter, host.ptr(), device.ptr(), 4096).unwrap_err();
        assert_eq!((error.code, error.is_sticky()), (1, false));
        fill(&host, 8);
        assert_eq!(run(&mut submitter, host.ptr(), device.ptr(), 4096).unwrap(), Outcome::Copied);
        assert_eq!(bench.take(device.ptr(), 4096), slice(&host));
    });
}

#[test]
fn a_queue_with_a_short_timeout_survives_a_launch_that_failed() {
    child::alone_on_software(&[("GPUIO_SOFT_FAIL", "cuLaunchKernel:1:0:1")], || {
        let bench =
            bench_with(Timing { start_timeout: Duration::from_micros(100), ..LONG_TIMEOUT });
        let host = bench.locked(4096);
        let device = bench.alloc(MemoryKind::Device, 4096);
        let mut submitter = bench.queue.submitter();
        let (began, mut errors) = (Instant::now(), 0);
        loop {
            match run(&mut submitter, host.ptr(), device.ptr(), 4096) {
                Ok(Outcome::Copied) => break,
                Ok(_) => {}
                Err(_) => errors += 1,
            }
            std::thread::sleep(Duration::from_micros(300));
            assert!(began.elapsed() < Duration::from_secs(20), "it is given up for ever");
        }
        assert_eq!(errors, 1);
    });
}

#[test]
fn an_address_that_is_not_there_ends_all_slots_and_no_thread_waits() {
    child::alone_on_software(&[], || {
        let bench = bench();
        let host = bench.locked(4096);
        let device = bench.alloc(MemoryKind::Device, 4096);
        let mut submitters = [bench.queue.submitter(), bench.queue.submitter()];
        assert_eq!(
            run(&mut submitters[0], host.ptr(), device.ptr(), 4096).unwrap(),
            Outcome::Copied
        );
        let past = device.ptr().byte_add(1 << 19);
        assert!(run(&mut submitters[0], host.ptr(), past, 4096).unwrap_err().is_sticky());
        assert!(run(&mut submitters[1], host.ptr(), device.ptr(), 4096).is_err());
    });
}

#[test]
fn a_context_that_is_reset_under_us_is_an_error_and_no_crash() {
    // On the system's driver too: in a process of its own, since all others lose the context.
    child::alone(&[], || {
        type Reset = unsafe extern "C" fn(i32) -> i32;
        let bench = bench();
        let mut submitter = bench.queue.submitter();
        let host = bench.locked(4096);
        let device = bench.alloc(MemoryKind::Device, 4096);
        assert_eq!(run(&mut submitter, host.ptr(), device.ptr(), 4096).unwrap(), Outcome::Copied);
        // No launch is on the device any more.
        bench.context.synchronize().unwrap();
        let path = bench.context.driver().library_path_hint();
        // SAFETY: the library is loaded already; its initialisers do not run again.
        let program = unsafe { libloading::Library::new(path) }.unwrap();
        // SAFETY: the symbol's type, by the manual.
        let reset = unsafe { program.get::<Reset>("cuDevicePrimaryCtxReset_v2") }.unwrap();
        // SAFETY: nothing is under way.
        assert_eq!(unsafe { reset(0) }, 0);
        for _ in 0..3 {
            let error = run(&mut submitter, host.ptr(), device.ptr(), 4096).unwrap_err();
            assert!([201, 709].contains(&error.code), "{error}");
        }
        // A bench that is made anew works, in the context that took the place.
        let again = bench_with(LONG_TIMEOUT);
        let (host, device) = (again.locked(64), again.alloc(MemoryKind::Device, 64));
        let mut submitter = again.queue.submitter();
        assert_eq!(run(&mut submitter, host.ptr(), device.ptr(), 64).unwrap(), Outcome::Copied);
    });
}
