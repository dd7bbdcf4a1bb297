//! Batches of the `gather` path: any size of them, of blocks and of rings; what a failed launch or
//! copy takes with it; and when a plain copy does.
//!
//! In pinned destinations the CPU fills and checks, so that every launch there is the path's own.
#![allow(unsafe_code)]

use crate::path_support::model::{From, Model, Step, Tally, steps};
use crate::path_support::{LEN, Rig, Setup, child, context, kinds, skipped, to_slot};
use gpuio_gpu::{Context, MemoryKind};
use gpuio_io::clock::Clock;
use gpuio_io::engine::Op;
use gpuio_io::path::{Completion, Fault, Path, PatternBlock, Request, Start};

const DELAY: (&str, &str) = ("GPUIO_SOFT_DELAY_US", "200");
const ENGINES: [&str; 4] = ["psync", "io_uring", "libaio", "pool"];

fn gather(engine: &str, memory: MemoryKind) -> Setup {
    Setup::new("gather", engine, memory)
}

fn reads(mut steps: Vec<Step>) -> Vec<Step> {
    for step in &mut steps {
        (step.op, step.check, step.poll) = (Op::Read, false, false);
    }
    steps
}

// ---- sizes

#[test]
fn any_ring_and_any_batch_move_every_byte() {
    std::thread::scope(|scope| {
        for engine in ENGINES {
            scope.spawn(move || child::passes_case(child_sizes, engine, &[DELAY]));
        }
    });
}

#[test]
#[ignore = "run as a child"]
fn child_sizes() {
    let (engine, context) = (child::case(), context());
    let steps = steps(120, false);
    for memory in kinds(gather(&engine, MemoryKind::Device).path) {
        let base = gather(&engine, memory);
        if base.lacking() {
            return;
        }
        for (depth, batch) in [(1, 1), (1, 9), (7, 1), (7, 3), (7, 7), (7, 300), (40, 16)] {
            for (streams, scatter) in [(1, true), (3, false)] {
                let setup = base.with(depth, streams).batches(batch, scatter);
                let tally = moves(&setup, &context, &steps);
                assert_eq!((tally.started >= steps.len(), tally.failed), (true, vec![]));
            }
        }
    }
    let many = gather(&engine, MemoryKind::Device).with(300, 3).batches(100, true);
    assert_eq!(moves(&many, &context, &steps).failed, []);
}

fn moves(setup: &Setup, context: &Context, steps: &[Step]) -> Tally {
    let rig = Rig::new(false).unwrap();
    let mut model = Model::new(setup, &rig, context);
    for step in steps {
        model.start(step);
    }
    model.drain();
    model.write_slots();
    model.finish()
}

// ---- faults

/// How the path is opened where batches are full in the order of the requests: the engine reads
/// within `start`.
fn in_order(memory: MemoryKind) -> Setup {
    gather("psync", memory).with(12, 2).batches(4, true)
}

#[test]
fn a_launch_that_fails_is_its_batchs_alone() {
    if skipped("a_launch_that_fails_is_its_batchs_alone") {
        return;
    }
    for (after, times) in [(0, 1), (1, 1), (2, 3), (0, 1000)] {
        let fail = format!("cuLaunchKernel:1:{after}:{times}");
        let case = format!("{after} {times}");
        let environment = [("GPUIO_SOFT_FAIL", fail.as_str()), DELAY];
        child::passes_case(child_launch_faults, &case, &environment);
    }
}

#[test]
#[ignore = "run as a child"]
fn child_launch_faults() {
    let case = child::case();
    let (after, times) = case.split_once(' ').unwrap();
    let (after, times): (usize, usize) = (after.parse().unwrap(), times.parse().unwrap());
    let context = context();
    let rig = Rig::new(false).unwrap();
    let mut model = Model::new(&in_order(MemoryKind::Pinned), &rig, &context);
    // Six batches of short blocks, each full before the worker first waits.
    let mut steps = reads(steps(24, false));
    for step in &mut steps {
        step.len = step.len.min(4097);
    }
    for step in &steps {
        model.start(step);
    }
    model.drain();
    let failed = &model.tally.failed;
    assert_eq!(failed.len(), 4 * times.min(6 - after));
    assert!(failed.iter().all(|one| *one == (Op::Read, Fault::Gpu(1))));
    if times < 1000 {
        // A failed request moved nothing, the others moved all. Lone blocks take no launch.
        model.write_slots();
    }
    model.finish();
}

#[test]
fn a_lost_device_fails_all_that_follows() {
    if skipped("a_lost_device_fails_all_that_follows") {
        return;
    }
    for engine in ENGINES {
        let environment = [("GPUIO_SOFT_FAIL", "cuLaunchKernel:700:3"), DELAY];
        child::passes_case(child_lost, engine, &environment);
    }
}

#[test]
#[ignore = "run as a child"]
fn child_lost() {
    let setup = gather(&child::case(), MemoryKind::Pinned).with(9, 2).batches(3, true);
    if setup.lacking() {
        return;
    }
    let context = context();
    let rig = Rig::new(false).unwrap();
    let mut model = Model::new(&setup, &rig, &context);
    model.faults_last = true;
    for mut step in steps(80, false) {
        (step.check, step.poll, step.from) = (false, false, From::Slot);
        model.start(&step);
    }
    model.drain();
    let failed = &model.tally.failed;
    assert!(failed.iter().all(|one| one.1 == Fault::Gpu(700)));
    assert!(failed.len() > 20, "{failed:?}");
    model.finish();
}

#[test]
fn an_event_that_fails_gives_no_slot_back_under_its_batch() {
    if skipped("an_event_that_fails_gives_no_slot_back_under_its_batch") {
        return;
    }
    for call in ["cuEventRecord", "cuEventQuery", "cuEventSynchronize"] {
        for (memory, range) in [("device", "0:1000"), ("malloc", "3:5"), ("pinned", "2:1")] {
            let fail = format!("{call}:1:{range}");
            let environment = [("GPUIO_SOFT_FAIL", fail.as_str()), DELAY];
            child::passes_case(child_event_faults, memory, &environment);
        }
    }
}

#[test]
#[ignore = "run as a child"]
fn child_event_faults() {
    let (context, memory) = (context(), child::case().parse().unwrap());
    for engine in ["psync", "pool"] {
        let rig = Rig::new(false).unwrap();
        let mut model = Model::new(&gather(engine, memory).with(7, 2), &rig, &context);
        // The batch itself was good.
        model.failed_reads_are_open = true;
        for step in &steps(60, false) {
            model.start(step);
        }
        model.drain();
        assert!(model.tally.failed.iter().all(|one| one.1 == Fault::Gpu(1)));
        model.finish();
    }
}

/// In memory that no kernel reaches, a batch is several copies: those of a batch that has a failed
/// one are over before its slots are used again.
#[test]
fn a_copy_that_fails_is_its_batchs_alone() {
    if skipped("a_copy_that_fails_is_its_batchs_alone") {
        return;
    }
    for (after, batches) in [(0, 1), (6, 1), (7, 1), (11, 1)] {
        let fail = format!("cuMemcpyAsync:1:{after}:1");
        let environment = [("GPUIO_SOFT_FAIL", fail.as_str()), DELAY];
        child::passes_case(child_copy_faults, &batches.to_string(), &environment);
    }
}

#[test]
#[ignore = "run as a child"]
fn child_copy_faults() {
    let batches: usize = child::case().parse().unwrap();
    let context = context();
    let rig = Rig::new(false).unwrap();
    let mut model = Model::new(&in_order(MemoryKind::Malloc), &rig, &context);
    // Copies before the one that failed moved their bytes.
    model.failed_reads_are_open = true;
    for step in &reads(steps(24, false)) {
        model.start(step);
    }
    model.drain();
    assert_eq!(model.tally.failed, vec![(Op::Read, Fault::Gpu(1)); 4 * batches]);
    model.write_slots();
    model.finish();
}

// ---- one plain copy

const BLOCK: u32 = 4096;

/// Reads the file from front to back in whole slots, or in blocks one byte shorter.
fn sequential(setup: &Setup, len: u32, context: &Context) -> Vec<Completion> {
    let rig = Rig::new(false).unwrap();
    let mut config = setup.config(&rig, context);
    config.block_max = BLOCK;
    let mut path = (setup.path.open)(config).unwrap().path;
    let (clock, mut all) = (Clock::start(), Vec::new());
    let mut free: Vec<u32> = (0..setup.depth).rev().collect();
    let blocks = LEN / u64::from(BLOCK);
    let mut next = 0;
    while next < blocks || path.in_flight() > 0 {
        while next < blocks
            && let Some(slot) = free.pop()
        {
            let offset = next * u64::from(BLOCK);
            let started = clock.now();
            let request = to_slot(Op::Read, 0, offset, len, slot, started);
            assert!(matches!(path.start(&clock, request), Start::Taken));
            next += 1;
        }
        let mut completed = Vec::new();
        path.advance(&clock, &mut completed, true).unwrap();
        free.extend(completed.iter().map(|one| one.request.slot));
        correct(&mut path, &rig, &completed);
        all.append(&mut completed);
    }
    assert_eq!(all.len() as u64, blocks);
    all
}

fn correct(path: &mut Box<dyn Path>, rig: &Rig, completed: &[Completion]) {
    for one in completed.iter().filter(|one| one.result.is_ok()) {
        let Request { slot, offset, len, .. } = one.request;
        assert_eq!(path.check(PatternBlock::new(slot, rig.key(0), offset, len)).unwrap(), None);
    }
}

/// A failing kernel shows whether one was launched.
#[test]
fn whole_slots_side_by_side_are_one_plain_copy_and_others_a_launch() {
    if skipped("whole_slots_side_by_side_are_one_plain_copy_and_others_a_launch") {
        return;
    }
    let fail = ("GPUIO_SOFT_FAIL", "cuLaunchKernel:1:0");
    child::passes(child_runs, &[fail, DELAY]);
    // 128 blocks in batches of 4: with one copy each the 32nd is the last.
    let fail = ("GPUIO_SOFT_FAIL", "cuMemcpyAsync:1:31");
    child::passes(child_last_run, &[fail, DELAY]);
}

#[test]
#[ignore = "run as a child"]
fn child_runs() {
    let context = context();
    let launched = |setup: &Setup, len| {
        let all = sequential(setup, len, &context);
        let failed = all.iter().filter(|one| one.result == Err(Fault::Gpu(1))).count();
        assert!(failed == 0 || failed == all.len(), "{failed}");
        failed > 0
    };
    let base = gather("psync", MemoryKind::Pinned).with(12, 3);
    assert!(!launched(&base.batches(4, false), BLOCK));
    assert!(launched(&base.batches(4, false), BLOCK - 1));
    assert!(launched(&base.batches(4, true), BLOCK));
    assert!(!launched(&base.batches(1, true), BLOCK), "a lone block is a plain copy");
    assert!(!launched(&base.with(1, 1).batches(4, true), BLOCK - 1), "so is each at depth 1");
    let unreachable = gather("psync", MemoryKind::Malloc).with(12, 3).batches(4, true);
    assert!(!launched(&unreachable, BLOCK), "no kernel reaches this memory");
}

#[test]
#[ignore = "run as a child"]
fn child_last_run() {
    let setup = gather("psync", MemoryKind::Pinned).with(12, 3).batches(4, false);
    let all = sequential(&setup, BLOCK, &context());
    let failed = all.iter().filter(|one| one.result.is_err());
    let mut offsets: Vec<u64> = failed.map(|one| one.request.offset).collect();
    offsets.sort_unstable();
    let last = LEN / u64::from(BLOCK) - 4;
    let expected: Vec<u64> = (last..last + 4).map(|block| block * u64::from(BLOCK)).collect();
    assert_eq!(offsets, expected);
}

/// Blocks long enough for a plain copy each travel in one batch with short ones.
#[test]
fn long_blocks_and_short_ones_share_a_batch() {
    let (context, rig) = (context(), Rig::new(false).unwrap());
    let long = u32::try_from(LEN).unwrap();
    for (op, memory) in [(Op::Read, MemoryKind::Device), (Op::Write, MemoryKind::Vmm)] {
        let setup = gather("psync", memory).with(4, 1).batches(4, true);
        let mut config = setup.config(&rig, &context);
        config.block_max = long;
        let mut path = (setup.path.open)(config).unwrap().path;
        let clock = Clock::start();
        let blocks = [(0, 0, 5), (1, 0, long), (2, 7, 4096), (3, 65_533, 100_001)];
        for (slot, offset, len) in blocks {
            // Writes carry the bytes that the file holds already, where blocks overlap.
            path.generate(PatternBlock::new(slot, rig.key(0), offset, len)).unwrap();
            let started = clock.now();
            let request = to_slot(op, 0, offset, len, slot, started);
            path.start(&clock, request);
        }
        let mut completed = Vec::new();
        while path.in_flight() > 0 {
            path.advance(&clock, &mut completed, true).unwrap();
        }
        assert!(completed.iter().all(|one| one.result.is_ok()), "{completed:?}");
        for (slot, offset, len) in blocks {
            assert_eq!(path.check(PatternBlock::new(slot, rig.key(0), offset, len)).unwrap(), None);
        }
        rig.compare();
    }
}
