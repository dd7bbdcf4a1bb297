//! Faults of files, copies, events and devices on every path: they reach the requests that failed,
//! nothing is lost or comes twice, and nothing hangs.
//!
//! Each case runs in a child, which is ended if it hangs, with the environment that makes the
//! software GPU fail.
#![allow(unsafe_code)]

use std::time::Duration;

use crate::engine_support::on_any_file;
use crate::path_support::model::{From, Model, Step, Tally, steps};
use crate::path_support::{Rig, Setup, child, context, kinds, moves_pages, skipped, to_slot};
use gpuio_gpu::{Context, MemoryKind};
use gpuio_io::clock::Clock;
use gpuio_io::engine::{IoFault, Op};
use gpuio_io::path::{Fault, PATHS, PathError, PatternBlock};

const DELAY: (&str, &str) = ("GPUIO_SOFT_DELAY_US", "200");

/// The code that the injected failures answer where it does not matter which: a request that
/// fails once, and one by which the device is lost.
const ONCE: i32 = 1;
const LASTING: i32 = 700;

/// Every path that has an engine over every engine, in a memory kind of each sort.
fn everywhere(test: impl Fn(&Setup, &Context)) {
    let context = context();
    for row in PATHS.iter().filter(|row| row.info.uses_engine()) {
        for engine in on_any_file() {
            let Some(&memory) = kinds(row).first() else { continue };
            let setup = Setup::new(row.info.name, engine.info.name, memory);
            if !setup.lacking() {
                test(&setup, &context);
            }
        }
    }
}

fn run(setup: &Setup, context: &Context, steps: &[Step]) -> Tally {
    let rig = Rig::new(false).unwrap();
    let mut model = Model::new(setup, &rig, context);
    for step in steps {
        model.start(step);
    }
    model.drain();
    model.finish()
}

fn only(op: Op, mut steps: Vec<Step>) -> Vec<Step> {
    for step in &mut steps {
        step.op = op;
    }
    steps
}

// ---- file leg

#[test]
fn file_faults_reach_their_requests() {
    child::alone(&[], || {
        let steps = steps(60, false);
        everywhere(|setup, context| {
            let eio = run(&setup.inject("eio=20%,seed=3"), context, &steps);
            assert!(!eio.failed.is_empty(), "{setup:?}");
            let fault = Fault::File(IoFault::Errno(libc::EIO));
            assert!(eio.failed.iter().all(|failed| failed.1 == fault), "{eio:?}");

            let enospc = run(&setup.inject("enospc=30%,seed=4"), context, &steps);
            assert!(!enospc.failed.is_empty(), "{setup:?}");
            let failed = (Op::Write, Fault::File(IoFault::Errno(libc::ENOSPC)));
            assert!(enospc.failed.iter().all(|one| *one == failed), "{enospc:?}");

            for whole in ["short=50%,seed=5", "delay=300us@30%,seed=6"] {
                assert_eq!(run(&setup.inject(whole), context, &steps).failed, []);
            }
        });
    });
}

#[test]
fn a_file_that_is_too_short_is_reported() {
    child::alone(&[], || {
        everywhere(|setup, context| {
            if setup.engine.info.name == "null" {
                return;
            }
            let rig = Rig::new(false).unwrap();
            for file in rig.files.iter().chain(&rig.references) {
                file.set_len(crate::path_support::LEN - 4096).unwrap();
            }
            let opened = setup.open(&rig, context).unwrap();
            let mut path = opened.path;
            let clock = Clock::start();
            let request =
                to_slot(Op::Read, 1, crate::path_support::LEN - 8192, 8192, 3, clock.now());
            path.start(&clock, request);
            let mut completed = Vec::new();
            path.advance(&clock, &mut completed, true).unwrap();
            let fault = Fault::File(IoFault::EndOfFile(4096));
            assert_eq!((completed.len(), completed[0].result), (1, Err(fault)));
            assert!(completed[0].gpu_ns == 0 || moves_pages(setup.path));
            assert_eq!(path.in_flight(), 0);
        });
    });
}

// ---- room

#[test]
fn a_throttled_engine_holds_both_directions_back_and_loses_nothing() {
    child::alone(&[], || {
        let mixed = steps(24, false);
        let (reads, writes) = (only(Op::Read, mixed.clone()), only(Op::Write, mixed.clone()));
        everywhere(|setup, context| {
            let (each, both) = ([&mixed, &reads, &writes], [&mixed]);
            for (limit, loads) in [
                ("iops=2000", &each[..]),
                ("rate=200M", &both),
                ("iops=2000,short=50%,delay=200us@20%", &both),
            ] {
                let setup = setup.inject(limit);
                for steps in loads {
                    let tally = run(&setup, context, steps);
                    assert_eq!(tally.failed, []);
                    let holds = setup.path.info.needs_gpu && steps[0].op == Op::Write
                        || moves_pages(setup.path);
                    if limit == "iops=2000" && setup.engine.info.asynchronous && !holds {
                        assert!(tally.full > 0, "{setup:?} never had no room");
                    }
                    // An advance that waits gives the engine time: no start is tried over and over.
                    assert!(tally.full <= 4 * steps.len(), "{setup:?} {}", tally.full);
                }
            }
        });
    });
}

// ---- GPU leg

/// The call by which a path with this memory copies.
fn copy_call(memory: MemoryKind, op: Op) -> &'static str {
    match (memory.is_host(), op) {
        (true, _) => "cuMemcpyAsync",
        (false, Op::Read) => "cuMemcpyHtoDAsync_v2",
        (false, Op::Write) => "cuMemcpyDtoHAsync_v2",
    }
}

/// The case of a child about GPU faults: engine, memory, failing call, its code, good ones before
/// and failing ones from there on.
struct Reported {
    setup: Setup,
    call: String,
    code: i32,
    after: usize,
    times: usize,
}

fn reported() -> Reported {
    let case = child::case();
    let parts: Vec<&str> = case.split(' ').collect();
    let [engine, memory, call, code, after, times] = parts[..] else {
        panic!("{case}");
    };
    Reported {
        setup: Setup::new("staged", engine, memory.parse().unwrap()),
        call: call.to_owned(),
        code: code.parse().unwrap(),
        after: after.parse().unwrap(),
        times: times.parse().unwrap(),
    }
}

/// Runs the child for each of the engines, all at once.
fn gpu_fault(
    test: impl Fn() + Copy + Send,
    memory: MemoryKind,
    call: &str,
    code: i32,
    (after, times): (usize, usize),
) {
    let fail = format!("{call}:{code}:{after}:{times}");
    std::thread::scope(|scope| {
        for engine in ["psync", "io_uring", "pool"] {
            let fail = &fail;
            scope.spawn(move || {
                let case = format!("{engine} {memory} {call} {code} {after} {times}");
                // Longer than any path asks before it waits.
                let late = ("GPUIO_SOFT_DELAY_US", "2000");
                let delay = if call == "cuEventSynchronize" { late } else { DELAY };
                child::passes_case(test, &case, &[("GPUIO_SOFT_FAIL", fail), delay]);
            });
        }
    });
}

#[test]
fn a_copy_that_fails_is_its_requests_alone() {
    if skipped("a_copy_that_fails_is_its_requests_alone") {
        return;
    }
    for memory in [MemoryKind::Device, MemoryKind::Vmm, MemoryKind::Mmap] {
        for op in [Op::Read, Op::Write] {
            for range in [(0, 1000), (5, 1), (11, 7)] {
                let call = copy_call(memory, op);
                gpu_fault(child_copy_faults, memory, call, ONCE, range);
            }
        }
    }
}

#[test]
#[ignore = "run as a child"]
fn child_copy_faults() {
    let Reported { setup, call, code, after, times } = reported();
    if setup.lacking() {
        return;
    }
    let context = context();
    let rig = Rig::new(false).unwrap();
    let mut model = Model::new(&setup.with(9, 2), &rig, &context);
    let mut copies = 0;
    for mut step in steps(80, false) {
        // A check copies too, and would fail like any other.
        step.check = false;
        copies += usize::from(copy_call(setup.memory, step.op) == call);
        model.start(&step);
    }
    model.drain();
    // Those copies failed and no other request did: what is said to have worked moved its bytes,
    // the others moved none.
    assert_eq!(model.tally.failed.len(), times.min(copies - after));
    let fault = Fault::Gpu(code);
    assert!(model.tally.failed.iter().all(|failed| failed.1 == fault));
    if call == "cuMemcpyHtoDAsync_v2" || copies > after + times {
        model.write_slots();
    }
    model.finish();
}

#[test]
fn an_event_that_fails_hides_no_copy_that_failed_before_it() {
    if skipped("an_event_that_fails_hides_no_copy_that_failed_before_it") {
        return;
    }
    let fail = "cuMemcpyHtoDAsync_v2:1:2:2,cuEventRecord:1:5:1";
    for engine in ["psync", "io_uring", "pool"] {
        let environment = [("GPUIO_SOFT_FAIL", fail), DELAY];
        child::passes_case(child_two_faults, engine, &environment);
    }
}

#[test]
#[ignore = "run as a child"]
fn child_two_faults() {
    let setup = Setup::new("staged", &child::case(), MemoryKind::Device).with(9, 1);
    if setup.lacking() {
        return;
    }
    let context = context();
    let rig = Rig::new(false).unwrap();
    let mut model = Model::new(&setup, &rig, &context);
    // The sixth copy is the one without a mark.
    model.failed_reads_are_open = true;
    for mut step in only(Op::Read, steps(9, false)) {
        (step.check, step.poll) = (false, false);
        model.start(&step);
    }
    model.drain();
    let failed = (Op::Read, Fault::Gpu(ONCE));
    assert_eq!(model.tally.failed, [failed; 3]);
    model.write_slots();
    model.finish();
}

#[test]
fn a_lost_device_fails_all_that_follows() {
    if skipped("a_lost_device_fails_all_that_follows") {
        return;
    }
    for memory in [MemoryKind::Device, MemoryKind::Malloc] {
        for op in [Op::Read, Op::Write] {
            for after in [0, 11] {
                let call = copy_call(memory, op);
                gpu_fault(child_lost, memory, call, LASTING, (after, 1));
            }
        }
    }
    gpu_fault(child_lost, MemoryKind::Device, "cuEventRecord", LASTING, (9, 1000));
}

#[test]
#[ignore = "run as a child"]
fn child_lost() {
    let Reported { setup, call, code, after, .. } = reported();
    if setup.lacking() {
        return;
    }
    let context = context();
    let rig = Rig::new(false).unwrap();
    let mut model = Model::new(&setup.with(9, 2), &rig, &context);
    model.faults_last = true;
    for mut step in steps(60, false) {
        // Kernels work no more either.
        (step.check, step.from) = (false, From::Slot);
        model.start(&step);
    }
    model.drain();
    let tally = &model.tally;
    assert!(tally.failed.iter().all(|one| one.1 == Fault::Gpu(code)));
    assert!(tally.failed.len() > 20, "{call} {tally:?}");
    // I/Os in flight with the one that failed are lost as well, but nothing before.
    assert!(tally.reads + tally.writes + 9 > after, "{call} {tally:?}");
    model.finish();
}

#[test]
fn an_event_that_fails_gives_no_slot_back_under_its_copy() {
    if skipped("an_event_that_fails_gives_no_slot_back_under_its_copy") {
        return;
    }
    for memory in [MemoryKind::Device, MemoryKind::Malloc] {
        for call in ["cuEventRecord", "cuEventQuery", "cuEventSynchronize"] {
            // A copy between places of the host is over when the call returns: nobody waits for it.
            if call == "cuEventSynchronize" && memory.is_host() {
                continue;
            }
            for range in [(0, 1000), (7, 12)] {
                gpu_fault(child_event_faults, memory, call, ONCE, range);
            }
        }
    }
}

#[test]
#[ignore = "run as a child"]
fn child_event_faults() {
    let Reported { setup, call, code, after, times } = reported();
    if setup.lacking() {
        return;
    }
    let context = context();
    let rig = Rig::new(false).unwrap();
    let mut model = Model::new(&setup.with(5, 2), &rig, &context);
    // The copy itself was good.
    model.failed_reads_are_open = true;
    let steps = steps(80, false);
    for step in &steps {
        model.start(step);
    }
    model.drain();
    let failed = &model.tally.failed;
    assert!(failed.iter().all(|one| one.1 == Fault::Gpu(code)));
    if call == "cuEventRecord" {
        assert_eq!(failed.len(), times.min(steps.len() - after));
    } else {
        // How often the path asks and waits is a matter of time.
        assert!(after > 0 || !failed.is_empty());
    }
    model.finish();
}

// ---- checks beside copies

#[test]
fn a_kernel_and_a_copy_do_not_take_each_others_failures() {
    if skipped("a_kernel_and_a_copy_do_not_take_each_others_failures") {
        return;
    }
    let slow = ("GPUIO_SOFT_DELAY_US", "20000");
    let kernel = ("GPUIO_SOFT_FAIL", "cuLaunchKernel:1:0");
    child::passes_case(child_beside, "kernel", &[slow, kernel]);
    let copy = ("GPUIO_SOFT_FAIL", "cuMemcpyHtoDAsync_v2:1:0");
    child::passes_case(child_beside, "copy", &[slow, copy]);
}

#[test]
#[ignore = "run as a child"]
fn child_beside() {
    let context = context();
    let rig = Rig::new(false).unwrap();
    let setup = Setup::new("staged", "psync", MemoryKind::Device).with(2, 1);
    let mut path = setup.open(&rig, &context).unwrap().path;
    let clock = Clock::start();
    let request = to_slot(Op::Read, 0, 0, 4096, 0, 0);
    path.start(&clock, request);
    let generated = path.generate(PatternBlock::new(1, 1, 0, 4096));
    let mut completed = Vec::new();
    path.advance(&clock, &mut completed, true).unwrap();
    if child::case() == "kernel" {
        let Err(PathError::Gpu { path, source }) = generated else {
            panic!("{generated:?}");
        };
        assert_eq!((path, source.code), ("staged", 1));
        assert_eq!(completed[0].result, Ok(()));
    } else {
        generated.unwrap();
        assert_eq!(completed[0].result, Err(Fault::Gpu(1)));
    }
}

// ---- the end of a path

#[test]
fn a_path_that_is_dropped_waits_in_every_state() {
    std::thread::scope(|scope| {
        for memory in MemoryKind::ALL {
            for fail in ["", "cuStreamSynchronize:1:0"] {
                scope.spawn(move || {
                    let case = memory.to_string();
                    let environment = [("GPUIO_SOFT_DELAY_US", SLOW_US), ("GPUIO_SOFT_FAIL", fail)];
                    child::passes_case(child_drop, &case, &environment);
                });
            }
        }
    });
}

/// The time of each copy while paths are dropped.
const SLOW_US: &str = "60000";
const SLOW_NS: u64 = 60_000_000;

/// Where a request is when its path is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// In the engine: a read, or a write behind its copy.
    File,
    /// In a stream.
    Copy,
    /// A write that a throttled engine has no space for.
    Held,
    /// Done, and not yet taken by the caller.
    Completion,
}

fn leave(setup: &Setup, op: Op, state: State, context: &Context) {
    let rig = Rig::new(false).unwrap();
    let setup = match state {
        State::File => setup.inject("delay=20ms"),
        State::Held => setup.inject("iops=2"),
        State::Copy | State::Completion => setup.clone(),
    };
    let mut path = setup.open(&rig, context).unwrap().path;
    let clock = Clock::start();
    let began = clock.now();
    for slot in 0..setup.depth {
        let request = to_slot(op, 0, u64::from(slot) * 65536, 65536, slot, clock.now());
        path.start(&clock, request);
    }
    // A write is in its stream at once, and so is a read behind an engine that reads in `start` or
    // one whose pages are asked back first.
    let at_once = !setup.engine.info.asynchronous || moves_pages(setup.path);
    let copying = state == State::Copy && setup.path.info.needs_gpu && (op == Op::Write || at_once);
    if state != State::Copy && op == Op::Write && setup.path.info.needs_gpu {
        // Past the copies.
        let twice = moves_pages(setup.path) || setup.path.info.needs_gpus();
        std::thread::sleep(Duration::from_millis(if twice { 260 } else { 130 }));
    }
    if state != State::Completion {
        path.advance(&clock, &mut Vec::new(), false).unwrap();
    }
    let all = path.in_flight() == setup.depth as usize;
    drop(path);
    // Two streams with two copies each, one after the other; two blocks of a batch go at once, and
    // one launch is all that a kernel that stays needs.
    let one = ["gather", "resident"].contains(&setup.path.info.name);
    let least = if one { SLOW_NS } else { 2 * SLOW_NS };
    let took = clock.now() - began;
    if copying && all && !crate::path_support::on_system() {
        assert!(took >= least, "{setup:?} {op:?}: gone after {took} ns");
    }
    if op == Op::Read {
        rig.compare();
    }
}

#[test]
#[ignore = "run as a child"]
fn child_drop() {
    let memory: MemoryKind = child::case().parse().unwrap();
    let context = context();
    let paths = PATHS.iter().filter(|row| row.info.uses_engine());
    for row in paths.filter(|row| kinds(row).contains(&memory)) {
        for engine in ["psync", "io_uring", "libaio", "pool"] {
            let setup = Setup::new(row.info.name, engine, memory);
            if setup.lacking() {
                continue;
            }
            for op in [Op::Read, Op::Write] {
                for state in [State::File, State::Copy, State::Held, State::Completion] {
                    let blocks = !setup.engine.info.asynchronous && state == State::Held;
                    if !blocks {
                        leave(&setup, op, state, &context);
                    }
                }
            }
        }
    }
}

// ---- open

#[test]
fn memory_that_cannot_be_had_is_reported_with_what_to_do() {
    child::alone_on_software(&[("GPUIO_SOFT_MEM", "5000000")], || {
        let context = context();
        let rig = Rig::new(false).unwrap();
        let before = context.memory().unwrap();
        for path in ["staged", "cached"] {
            for memory in [MemoryKind::Device, MemoryKind::Vmm] {
                let setup = Setup::new(path, "psync", memory);
                let kind = memory.to_string();
                let words = [
                    path,
                    &kind,
                    "99 slots of 69632 bytes",
                    "lower --depth or --bs",
                    "CUDA_ERROR_OUT_OF_MEMORY",
                    "nvidia-smi",
                ];
                refused(&setup.with(99, 2), &rig, &context, &words);
                // Nothing of the attempt is left, and less memory can be had.
                assert_eq!(context.memory().unwrap(), before);
                let opened = setup.with(9, 2).open(&rig, &context).unwrap();
                assert_eq!((opened.host_bytes, opened.device_bytes), (626_688, 626_688));
                drop(opened);
                assert_eq!(context.memory().unwrap(), before);
            }
        }
        let setup = Setup::new("staged", "psync", MemoryKind::Mmap).with(99, 2);
        let opened = setup.open(&rig, &context).unwrap();
        assert_eq!((opened.host_bytes, opened.device_bytes), (99 * 2 * 69632, 0));
    });
}

#[test]
fn pinned_memory_that_cannot_be_had_is_reported_with_what_to_do() {
    child::alone_on_software(&[("GPUIO_SOFT_FAIL", "cuMemHostAlloc:2:0")], || {
        let context = context();
        let rig = Rig::new(false).unwrap();
        let words = ["pinned", "4 slots", "lower --depth or --bs", "ulimit -l"];
        for (path, memory) in [("host", MemoryKind::Pinned), ("staged", MemoryKind::Device)] {
            refused(&Setup::new(path, "psync", memory), &rig, &context, &words);
        }
    });
}

fn refused(setup: &Setup, rig: &Rig, context: &Context, words: &[&str]) {
    let error = setup.open(rig, context).unwrap_err().to_string();
    for word in words {
        assert!(error.contains(word), "{word:?} is not in {error:?}");
    }
}

#[test]
fn a_path_that_cannot_be_is_reported_with_what_to_do() {
    let (context, rig) = (context(), Rig::new(false).unwrap());
    let host = Setup::new("host", "psync", MemoryKind::Vmm);
    refused(&host, &rig, &context, &["host", "vmm memory", "--memory"]);
    if let Some(rig) = Rig::new(true) {
        let cached = Setup::new("cached", "psync", MemoryKind::Device);
        refused(&cached, &rig, &context, &["cached", "--direct", "staged"]);
    }
    for (path, memory) in [("staged", MemoryKind::Device), ("host", MemoryKind::Pinned)] {
        let setup = Setup::new(path, "psync", memory);
        let mut config = setup.config(&rig, &context);
        config.gpu = None;
        let error = (setup.path.open)(config).unwrap_err();
        assert!(matches!(error, PathError::Setup { .. }));
        assert!(error.to_string().contains("--gpu"), "{error}");
    }
}
