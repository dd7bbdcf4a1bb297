//! Path `initiated`: what the GPU starts by itself, its counts and times, and its faults.
#![allow(unsafe_code)]

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::path_support::{LEN, Rig, Setup, child, context, to_slot};
use gpuio_gpu::MemoryKind;
use gpuio_io::clock::Clock;
use gpuio_io::engine::{EngineFile, IoFault, LegCounters, Op};
use gpuio_io::path::{
    Chain, Completion, Fault, InitiatedCounters, InitiatedSide, Path, PathConfig, PatternBlock,
    Request, rings_available,
};

/// A path over files, with its counters.
struct Bench {
    path: Box<dyn Path>,
    clock: Clock,
    legs: Arc<LegCounters>,
    counters: Arc<InitiatedCounters>,
}

/// How a path of so many slots and rings is opened; nothing, and said so, without such rings.
fn config(rig: &Rig, (slots, rings): (u32, u32)) -> Option<PathConfig> {
    if let Err(why) = rings_available() {
        eprintln!("skipped: {why}");
        return None;
    }
    let setup = Setup::new("initiated", "psync", MemoryKind::Device).with(slots, rings);
    Some(setup.config(rig, &context()))
}

impl Bench {
    fn new(config: PathConfig) -> Bench {
        let (legs, InitiatedSide { counters, .. }) =
            (Arc::clone(&config.counters), config.initiated.clone());
        let path = (gpuio_io::path::find("initiated").unwrap().open)(config).unwrap().path;
        Bench { path, clock: Clock::start(), legs, counters }
    }

    fn start(&mut self, op: Op, file: u32, offset: u64, len: u32, slot: u32) {
        let request = to_slot(op, file, offset, len, slot, self.clock.now());
        let _ = self.path.start(&self.clock, request);
    }

    fn wait(&mut self) -> Vec<Completion> {
        let mut completed = Vec::new();
        while self.path.in_flight() > 0 {
            self.path.advance(&self.clock, &mut completed, true).unwrap();
        }
        completed
    }

    fn one(&mut self, op: Op, file: u32, offset: u64, len: u32) -> Completion {
        self.start(op, file, offset, len, 0);
        let [one] = self.wait()[..] else { panic!("one request completes once") };
        one
    }

    /// Entries that were taken, and commands that were given.
    fn counts(&self) -> (u64, u64) {
        let load = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        (load(&self.counters.entries), load(&self.counters.commands))
    }
}

#[test]
fn the_gpu_starts_every_block_and_times_it() {
    let rig = Rig::new(false).unwrap();
    for (slots, rings) in [(1, 1), (7, 3), (64, 1), (130, 3)] {
        let Some(config) = config(&rig, (slots, rings)) else { return };
        let mut bench = Bench::new(config);
        for round in 0..3_u64 {
            for slot in 0..slots {
                let offset = (u64::from(slot) * 4099 + round) % (LEN - 4096);
                bench.start(Op::Read, slot % 2, offset, 4096, slot);
            }
            for one in bench.wait() {
                let request = one.request;
                assert_eq!(one.result, Ok(()));
                assert!(one.file_ns > 0 && one.gpu_ns > 0, "{one:?}");
                assert_eq!(one.file_ns + one.gpu_ns, one.ended - request.started);
                let key = rig.key(request.file);
                let block = PatternBlock::new(request.slot, key, request.offset, request.len);
                assert_eq!(bench.path.check(block).unwrap(), None, "{request:?}");
            }
        }
        let blocks = u64::from(slots) * 3;
        assert_eq!(bench.counts(), (blocks, blocks), "{slots} slots, {rings} rings");
        assert_eq!(bench.legs.read.ios.load(Ordering::Relaxed), blocks);
        assert_eq!(bench.legs.read.bytes.load(Ordering::Relaxed), blocks * 4096);
    }
}

/// The GPU decides where blocks are; what completes says where, and that is what is verified.
#[test]
fn a_chain_says_where_its_blocks_were() {
    let rig = Rig::new(false).unwrap();
    for (slots, rings) in [(1, 1), (8, 1), (9, 3)] {
        let Some(mut config) = config(&rig, (slots, rings)) else { return };
        config.initiated.chain = Some(Chain { begin: 8192, len: 4096, count: 100 });
        let mut bench = Bench::new(config);
        let (mut places, mut named) = (Vec::new(), Vec::new());
        for round in 0..30_u64 {
            for slot in 0..slots {
                let offset = 8192 + (u64::from(slot) + round) % 100 * 4096;
                bench.start(Op::Read, 0, offset, 4096, slot);
                named.push(offset);
            }
            for one in bench.wait() {
                assert_eq!(one.result, Ok(()));
                let Request { slot, offset, len, .. } = one.request;
                assert!((8192..8192 + 100 * 4096).contains(&offset) && offset % 4096 == 0);
                let block = PatternBlock::new(slot, rig.key(0), offset, len);
                assert_eq!(bench.path.check(block).unwrap(), None, "{:?}", one.request);
                places.push(offset);
            }
        }
        assert_ne!(places, named, "the bytes decide");
        places.sort_unstable();
        places.dedup();
        assert!(places.len() > 20, "{} places", places.len());
    }
}

#[test]
fn ends_of_files_and_errors_reach_their_requests() {
    let rig = Rig::new(false).unwrap();
    let Some(mut config) = config(&rig, (4, 2)) else { return };
    let full = File::options().write(true).open("/dev/full").unwrap();
    let file = |fd| EngineFile { fd, len: LEN, writable: true };
    config.files.push(file(full.as_raw_fd()));
    // Byte 0 of a process's memory is never mapped: the read is answered with EIO.
    let memory = File::open("/proc/self/mem").unwrap();
    config.files.push(file(memory.as_raw_fd()));
    let mut bench = Bench::new(config);
    let errno = |code| Err(Fault::File(IoFault::Errno(code)));
    // It stops short, and the rest finds the end.
    let short = bench.one(Op::Read, 0, LEN - 100, 4096);
    assert_eq!(short.result, Err(Fault::File(IoFault::EndOfFile(100))));
    assert_eq!(bench.legs.short_ios.load(Ordering::Relaxed), 1);
    assert_eq!(bench.counts(), (2, 2), "the block and its rest");
    let past = bench.one(Op::Read, 0, LEN, 1).result;
    assert_eq!(past, Err(Fault::File(IoFault::EndOfFile(0))));
    assert_eq!(bench.one(Op::Write, 2, 0, 512).result, errno(libc::ENOSPC));
    assert_eq!(bench.one(Op::Read, 3, 0, 512).result, errno(libc::EIO));
    assert_eq!(bench.one(Op::Read, 9, 0, 512).result, errno(libc::EBADF));
    assert_eq!(bench.legs.read.faults.load(Ordering::Relaxed), 4);
    assert_eq!(bench.legs.write.faults.load(Ordering::Relaxed), 1);
    // A fault is its request's alone.
    assert_eq!(bench.one(Op::Read, 0, 5, 4096).result, Ok(()));
    assert_eq!(bench.one(Op::Write, 1, 5, 4096).result, Ok(()));
    assert_eq!(bench.one(Op::Read, 0, 5, 0).result, Ok(()), "no bytes, nothing to start");
}

#[test]
fn a_path_that_is_dropped_waits_for_its_writes() {
    let rig = Rig::new(false).unwrap();
    for rings in [1, 3] {
        let Some(config) = config(&rig, (9, rings)) else { return };
        let mut bench = Bench::new(config);
        for slot in 0..9 {
            bench.path.generate(PatternBlock::new(slot, rig.key(0), 0, 4096)).unwrap();
            bench.start(Op::Write, 0, u64::from(slot) * 8192, 4096, slot);
        }
        // None is lost that was started: each is in its file, or not at all.
        drop(bench);
        let mut first = vec![0; 4096];
        rig.references[0].read_exact_at(&mut first, 0).unwrap();
        for slot in 0..9_u64 {
            let (mut found, mut before) = (vec![0; 4096], vec![0; 4096]);
            rig.files[0].read_exact_at(&mut found, slot * 8192).unwrap();
            rig.references[0].read_exact_at(&mut before, slot * 8192).unwrap();
            assert!(found == first || found == before, "block {slot} is in pieces");
        }
    }
}

#[test]
fn more_in_flight_than_rings_hold_is_refused() {
    let rig = Rig::new(false).unwrap();
    let Some(config) = config(&rig, (65, 1)) else { return };
    let open = gpuio_io::path::find("initiated").unwrap().open;
    let error = open(config).unwrap_err().to_string();
    for words in ["65 I/Os in flight on 1 rings", "64 entries", "--rings", "--depth"] {
        assert!(error.contains(words), "{error}");
    }
    let setup = Setup::new("initiated", "psync", MemoryKind::Malloc);
    let error = setup.open(&rig, &context()).unwrap_err().to_string();
    assert!(error.contains("no kernel reaches malloc memory"), "{error}");
}

#[test]
fn a_kernel_that_fails_ends_its_requests_and_is_launched_again() {
    child::alone_on_software(&[("GPUIO_SOFT_FAIL", "cuLaunchKernel:1:0:1")], || {
        let rig = Rig::new(false).unwrap();
        let Some(config) = config(&rig, (2, 1)) else { return };
        let mut bench = Bench::new(config);
        bench.start(Op::Read, 0, 0, 4096, 0);
        bench.start(Op::Read, 1, 0, 4096, 1);
        for one in bench.wait() {
            assert_eq!(one.result, Err(Fault::Gpu(1)), "{one:?}");
            assert_eq!(one.file_ns, 0, "{one:?}");
        }
        // The next I/O is launched again.
        for offset in 0..20 {
            assert_eq!(bench.one(Op::Read, 0, offset, 4096).result, Ok(()));
            let block = PatternBlock::new(0, rig.key(0), offset, 4096);
            assert_eq!(bench.path.check(block).unwrap(), None);
        }
    });
}

#[test]
fn a_device_that_is_lost_ends_all_requests() {
    child::alone_on_software(&[("GPUIO_SOFT_FAIL", "cuLaunchKernel:700:0")], || {
        let rig = Rig::new(false).unwrap();
        let Some(config) = config(&rig, (4, 2)) else { return };
        let mut bench = Bench::new(config);
        for slot in 0..4 {
            bench.start(Op::Read, 0, 0, 4096, slot);
        }
        let faults: Vec<_> = bench.wait().into_iter().map(|one| one.result).collect();
        assert_eq!(faults, [Err(Fault::Gpu(700)); 4]);
        assert_eq!(bench.one(Op::Write, 0, 0, 4096).result, Err(Fault::Gpu(700)));
    });
}
