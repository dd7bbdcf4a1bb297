//! The properties of `fan-out` alone: copies in the memory of several GPUs, counters of how they
//! got there, and GPUs that can't reach one another. Each case runs in a child: the software GPU
//! reads its environment once.
#![allow(unsafe_code)]

use std::sync::atomic::Ordering;

use crate::path_support::{Rig, Setup, child, context, to_slot};
use gpuio_gpu::{Context, MemoryKind};
use gpuio_io::clock::Clock;
use gpuio_io::engine::Op;
use gpuio_io::path::{
    Completion, FanOutCounters, Fault, Leg, OpenedPath, Path, PathConfig, PatternBlock,
};

const LEN: u32 = 64 << 10;
const FOUR: (&str, &str) = ("GPUIO_SOFT_GPUS", "4");

fn fan_out() -> Setup {
    Setup::new("fan-out", "psync", MemoryKind::Device)
}

/// A configuration for GPUs 0 to 3, of which 2 is the worker's own.
fn of_four(rig: &Rig, setup: &Setup) -> PathConfig {
    let driver = context().driver().clone();
    let of = |index| Context::new(&driver, index).unwrap();
    let mut config = setup.config(rig, &of(2));
    config.gpu.as_mut().unwrap().fan_out.as_mut().unwrap().others = [0, 1, 3].map(of).into();
    config
}

fn open(setup: &Setup, config: PathConfig) -> Result<OpenedPath, String> {
    (setup.path.open)(config).map_err(|error| error.to_string())
}

fn read(path: &mut dyn Path, slot: u32) -> Completion {
    let clock = Clock::start();
    let offset = u64::from(slot * LEN);
    let (op, started) = (Op::Read, clock.now());
    path.start(&clock, to_slot(op, 0, offset, LEN, slot, started));
    let mut completed = Vec::new();
    path.advance(&clock, &mut completed, true).unwrap();
    completed.remove(0)
}

fn block(rig: &Rig, slot: u32) -> PatternBlock {
    PatternBlock::new(slot, rig.key(0), u64::from(slot * LEN), LEN)
}

/// Bytes from the host, and between GPUs.
fn bytes(counters: &FanOutCounters) -> (u64, u64) {
    (counters.from_host.load(Ordering::Relaxed), counters.between.load(Ordering::Relaxed))
}

#[test]
fn a_block_crosses_from_the_host_once_and_ends_in_all_gpus() {
    child::alone_on_software(&[FOUR, ("GPUIO_SOFT_DELAY_US", "500")], || {
        let rig = Rig::new(false).unwrap();
        let config = of_four(&rig, &fan_out());
        let fan_out_side = config.gpu.as_ref().unwrap().fan_out.clone().unwrap();
        let free =
            || fan_out_side.others.iter().map(|it| it.memory().unwrap().0).collect::<Vec<_>>();
        let before = free();
        let opened = open(&fan_out(), config).unwrap();
        assert_eq!(opened.steps_down, Vec::<String>::new());
        assert_eq!(opened.device_bytes, 4 * opened.host_bytes);
        for (before, now) in before.iter().zip(free()) {
            assert!(before - now >= opened.host_bytes, "memory of each");
        }
        let mut path = opened.path;
        for slot in 0..3 {
            let completed = read(path.as_mut(), slot);
            assert_eq!(completed.result, Ok(()));
            // Four copies, one behind the other.
            assert!(completed.gpu_ns >= 2_000_000, "{completed:?}");
            assert_eq!(path.check(block(&rig, slot)).unwrap(), None);
        }
        let len = u64::from(LEN);
        assert_eq!(bytes(&fan_out_side.counters), (3 * len, 9 * len));
        assert!(!fan_out_side.counters.through_host.load(Ordering::Relaxed));
        drop(path);
        assert_eq!(free(), before, "all of it is given back");
    });
}

#[test]
fn a_block_that_is_wrong_in_one_gpu_is_found_and_the_gpu_named() {
    // Each read copies to GPUs 0, 1 and 3: the fifth copy is the second read's to GPU 1.
    child::alone_on_software(&[FOUR, ("GPUIO_SOFT_CORRUPT", "cuMemcpyPeerAsync:4")], || {
        let rig = Rig::new(false).unwrap();
        let mut path = open(&fan_out(), of_four(&rig, &fan_out())).unwrap().path;
        (0..3).for_each(|slot| assert_eq!(read(path.as_mut(), slot).result, Ok(())));
        let found = [0, 1, 2].map(|slot| path.check(block(&rig, slot)).unwrap());
        let bad = found[1].expect("one is wrong");
        assert_eq!((bad.gpu, bad.leg, bad.bad_words), (Some(1), Some(Leg::Gpu), 1));
        assert_eq!((found[0], found[2]), (None, None));
    });
}

#[test]
fn a_copy_between_gpus_that_fails_is_its_requests_alone() {
    child::alone_on_software(&[FOUR, ("GPUIO_SOFT_FAIL", "cuMemcpyPeerAsync:1:4:1")], || {
        let rig = Rig::new(false).unwrap();
        let mut path = open(&fan_out(), of_four(&rig, &fan_out())).unwrap().path;
        let results: Vec<_> = (0..3).map(|slot| read(path.as_mut(), slot).result).collect();
        assert_eq!(results, [Ok(()), Err(Fault::Gpu(1)), Ok(())]);
    });
}

#[test]
fn gpus_that_cannot_reach_one_another_are_refused_unless_any_route_will_do() {
    child::alone_on_software(&[FOUR, ("GPUIO_SOFT_PEER", "0")], || {
        let rig = Rig::new(false).unwrap();
        let error = open(&fan_out(), of_four(&rig, &fan_out())).unwrap_err();
        for word in ["GPU 2 can't reach the memory of GPU 0, GPU 1, GPU 3", "via_peer=any"] {
            assert!(error.contains(word), "{error}");
        }
        let any = Setup { any_peer: true, ..fan_out() };
        let config = of_four(&rig, &any);
        let counters = config.gpu.as_ref().unwrap().fan_out.as_ref().unwrap().counters.clone();
        let opened = open(&any, config).unwrap();
        assert!(opened.steps_down[0].ends_with("through host memory"), "{:?}", opened.steps_down);
        assert!(counters.through_host.load(Ordering::Relaxed));
        let mut path = opened.path;
        assert_eq!(read(path.as_mut(), 1).result, Ok(()));
        assert_eq!(path.check(block(&rig, 1)).unwrap(), None);
    });
}

#[test]
fn it_needs_another_gpu() {
    child::alone(&[], || {
        let (rig, context) = (Rig::new(false).unwrap(), context());
        let mut config = fan_out().config(&rig, &context);
        config.gpu.as_mut().unwrap().fan_out.as_mut().unwrap().others.clear();
        let error = open(&fan_out(), config).unwrap_err();
        assert!(error.contains("--gpu all"), "{error}");
    });
}
