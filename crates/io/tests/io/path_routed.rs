//! The properties of `routed` and `managed` alone: a GPU between, counters for each of its legs,
//! and pages that move. Each case runs in a child: the software GPU reads its environment once.
#![allow(unsafe_code)]

use std::sync::atomic::Ordering;

use crate::path_support::{Rig, Setup, child, context, to_slot};
use gpuio_gpu::MemoryKind;
use gpuio_io::clock::Clock;
use gpuio_io::engine::Op;
use gpuio_io::path::{
    Completion, Fault, OpenedPath, Path, PathConfig, PatternBlock, RouteCounters,
};

const LEN: u32 = 64 << 10;

fn routed() -> Setup {
    Setup::new("routed", "psync", MemoryKind::Device)
}

fn managed() -> Setup {
    Setup::new("managed", "psync", MemoryKind::Managed)
}

/// Opens what a configuration asks for.
fn open(setup: &Setup, config: PathConfig) -> Result<OpenedPath, String> {
    (setup.path.open)(config).map_err(|error| error.to_string())
}

fn one(path: &mut dyn Path, op: Op, slot: u32) -> Completion {
    let clock = Clock::start();
    let offset = u64::from(slot * LEN);
    let request = to_slot(op, 0, offset, LEN, slot, clock.now());
    path.start(&clock, request);
    let mut completed = Vec::new();
    path.advance(&clock, &mut completed, true).unwrap();
    completed.remove(0)
}

/// Bytes of the four legs: read and write, host to near and near to far.
fn legs(segments: &RouteCounters) -> [u64; 4] {
    let load = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    [
        load(&segments.read.host_near),
        load(&segments.read.near_far),
        load(&segments.write.host_near),
        load(&segments.write.near_far),
    ]
}

#[test]
fn each_leg_of_a_route_counts_its_bytes() {
    child::alone_on_software(&[("GPUIO_SOFT_DELAY_US", "500")], || {
        let (rig, context) = (Rig::new(false).unwrap(), context());
        let config = routed().config(&rig, &context);
        let counters = config.gpu.as_ref().unwrap().via.as_ref().unwrap().counters.clone();
        let before = context.memory().unwrap();
        let opened = open(&routed(), config).unwrap();
        assert_eq!(opened.steps_down, Vec::<String>::new());
        // A ring of places on each of the GPUs.
        assert_eq!(opened.device_bytes, 2 * opened.host_bytes);
        assert!(before.0 - context.memory().unwrap().0 >= opened.host_bytes);
        let mut path = opened.path;
        assert_eq!(legs(&counters), [0; 4]);
        for slot in 0..3 {
            let completed = one(path.as_mut(), Op::Read, slot);
            assert_eq!(completed.result, Ok(()));
            // Two copies, one behind the other.
            assert!(completed.gpu_ns >= 1_000_000, "{completed:?}");
            let offset = u64::from(slot * LEN);
            assert_eq!(path.check(PatternBlock::new(slot, rig.key(0), offset, LEN)).unwrap(), None);
        }
        one(path.as_mut(), Op::Write, 2);
        let len = u64::from(LEN);
        assert_eq!(legs(&counters), [3 * len, 3 * len, len, len]);
    });
}

#[test]
fn a_copy_between_gpus_that_fails_is_its_requests_alone() {
    child::alone_on_software(&[("GPUIO_SOFT_FAIL", "cuMemcpyPeerAsync:1:1:1")], || {
        let (rig, context) = (Rig::new(false).unwrap(), context());
        let mut path = open(&routed(), routed().config(&rig, &context)).unwrap().path;
        let results: Vec<_> =
            (0..3).map(|slot| one(path.as_mut(), Op::Read, slot).result).collect();
        assert_eq!(results, [Ok(()), Err(Fault::Gpu(1)), Ok(())]);
    });
}

#[test]
fn a_route_without_peer_access_is_refused_unless_any_route_will_do() {
    child::alone_on_software(&[("GPUIO_SOFT_PEER", "0")], || {
        let (rig, context) = (Rig::new(false).unwrap(), context());
        let error = open(&routed(), routed().config(&rig, &context)).unwrap_err();
        for word in ["GPU 1 and GPU 0 can't reach each other's memory", "via_peer=any"] {
            assert!(error.contains(word), "{error}");
        }
        let any = Setup { any_peer: true, ..routed() };
        let opened = open(&any, any.config(&rig, &context)).unwrap();
        assert_eq!(opened.steps_down.len(), 1);
        assert!(opened.steps_down[0].ends_with("through host memory"), "{:?}", opened.steps_down);
        let mut path = opened.path;
        assert_eq!(one(path.as_mut(), Op::Read, 1).result, Ok(()));
        assert_eq!(
            path.check(PatternBlock::new(1, rig.key(0), u64::from(LEN), LEN)).unwrap(),
            None
        );
    });
}

#[test]
fn a_route_needs_another_gpu() {
    child::alone(&[], || {
        let (rig, context) = (Rig::new(false).unwrap(), context());
        let mut config = routed().config(&rig, &context);
        config.gpu.as_mut().unwrap().via.as_mut().unwrap().near = context.clone();
        let error = open(&routed(), config.clone()).unwrap_err();
        assert!(error.contains("GPU 0 is both the near and the far GPU"), "{error}");
        config.gpu.as_mut().unwrap().via = None;
        let error = open(&routed(), config).unwrap_err();
        assert!(error.contains("--via-gpu"), "{error}");
    });
}

#[test]
fn hints_belong_to_the_gpu_leg_on_both_sides_of_the_file() {
    child::alone_on_software(&[("GPUIO_SOFT_DELAY_US", "3000")], || {
        let (rig, context) = (Rig::new(false).unwrap(), context());
        let setup = managed().inject("delay=9ms");
        let mut path = open(&setup, setup.config(&rig, &context)).unwrap().path;
        for (op, round) in [(Op::Read, 0), (Op::Read, 1), (Op::Write, 2), (Op::Write, 3)] {
            let completed = one(path.as_mut(), op, 0);
            assert_eq!(completed.result, Ok(()), "{op:?} {round}");
            assert!(completed.gpu_ns >= 6_000_000, "two hints: {completed:?}");
            assert!(completed.file_ns >= 9_000_000, "{completed:?}");
        }
    });
}

#[test]
fn a_gpu_that_takes_no_hints_is_refused_with_the_reason() {
    child::alone_on_software(&[("GPUIO_SOFT_MANAGED", "0")], || {
        let (rig, context) = (Rig::new(false).unwrap(), context());
        let error = open(&managed(), managed().config(&rig, &context)).unwrap_err();
        assert!(error.contains("CONCURRENT_MANAGED_ACCESS is 0"), "{error}");
    });
}

#[test]
fn a_hint_that_fails_is_its_requests_alone() {
    // Each read takes two: the third fails, which is the first of the second read.
    child::alone_on_software(&[("GPUIO_SOFT_FAIL", "cuMemPrefetchAsync:1:2:1")], || {
        let (rig, context) = (Rig::new(false).unwrap(), context());
        let mut path = open(&managed(), managed().config(&rig, &context)).unwrap().path;
        let results: Vec<_> = (0..3).map(|slot| one(path.as_mut(), Op::Read, slot)).collect();
        let failed = Err(Fault::Gpu(1));
        assert_eq!(
            results.iter().map(|one| one.result).collect::<Vec<_>>(),
            [Ok(()), failed, Ok(())]
        );
        assert_eq!(results[1].file_ns, 0);
    });
}
