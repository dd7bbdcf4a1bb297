//! Path `mapped`: what the GPU reads and writes in the page cache by itself, against what the files
//! hold. `path_reference.rs` has random reads and writes.
#![allow(unsafe_code)]

use std::fs::File;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::path_support::{child, context, skipped, to_slot};
use gpuio_gpu::{Context, FilePages, MappedFile, MemoryKind, pattern};
use gpuio_io::clock::Clock;
use gpuio_io::engine::{EngineFile, IoFault, LegCounters, Op};
use gpuio_io::path::{
    Completion, Fault, GpuSide, InitiatedSide, LibraryCounters, MappedCounters, Path, PathConfig,
    PathError, PatternBlock, Request, Start,
};
use gpuio_testkit::file_systems::{self, Mount, Room};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

const LEN: u64 = 4 << 20;
const KEY: u64 = 0x6d61_7070_6564;

/// A file that follows the data rule, on a file system of the test's.
struct Held {
    _directory: tempfile::TempDir,
    file: File,
}

impl Held {
    fn new(directory: tempfile::TempDir) -> Held {
        let name = directory.path().join("file");
        let mut bytes = vec![0; usize::try_from(LEN).unwrap()];
        pattern::fill(&mut bytes, KEY, 0);
        std::fs::write(&name, &bytes).unwrap();
        let file = File::options().read(true).write(true).open(&name).unwrap();
        Held { _directory: directory, file }
    }

    fn map(&self, context: &Context, part: Range<u64>) -> Arc<MappedFile> {
        Arc::new(MappedFile::new(context, self.file.as_fd(), part, false).unwrap())
    }
}

/// The disk under the temporary directory, and memory where there is such a file system.
fn places() -> Vec<Held> {
    let mut all = vec![Held::new(tempfile::tempdir().unwrap())];
    match tempfile::tempdir_in("/dev/shm") {
        Ok(directory) => all.push(Held::new(directory)),
        Err(why) => eprintln!("skipped: /dev/shm: {why}"),
    }
    all
}

#[derive(Debug, Clone, Copy)]
struct Shape {
    memory: MemoryKind,
    depth: u32,
    batch: u32,
    streams: u32,
    block_max: u32,
}

const SMALL: Shape =
    Shape { memory: MemoryKind::Device, depth: 8, batch: 4, streams: 2, block_max: 64 << 10 };

fn config(shape: Shape, context: &Context, held: &Held, mapped: &[Arc<MappedFile>]) -> PathConfig {
    let file = EngineFile { fd: held.file.as_raw_fd(), len: LEN, writable: false };
    let gpu = GpuSide {
        context: context.clone(),
        memory: shape.memory,
        streams: shape.streams,
        batch: shape.batch,
        scatter: false,
        via: None,
        fan_out: None,
    };
    PathConfig {
        slots: shape.depth,
        block_max: shape.block_max,
        engine: None,
        files: vec![file],
        direct: false,
        direct_alignment: 4096,
        memory: shape.memory,
        tier: None,
        gpu: Some(gpu),
        cufile: None,
        fio_headers: false,
        inject: None,
        counters: Arc::new(LegCounters::default()),
        library: Arc::new(LibraryCounters::default()),
        mappings: mapped.to_vec(),
        mapped: Arc::new(MappedCounters::default()),
        initiated: InitiatedSide::default(),
    }
}

fn opened(config: PathConfig) -> Result<Box<dyn Path>, PathError> {
    let row = gpuio_io::path::find("mapped").unwrap();
    (row.open)(config).map(|opened| opened.path)
}

fn read(slot: u32, offset: u64, len: u32, clock: &Clock) -> Request {
    let now = clock.now();
    to_slot(Op::Read, 0, offset, len, slot, now)
}

/// Starts all requests, in slots of their own, and waits for them.
fn go(path: &mut dyn Path, clock: &Clock, requests: &[Request]) -> Vec<Completion> {
    for &request in requests {
        assert!(matches!(path.start(clock, request), Start::Taken));
    }
    let mut completed = Vec::new();
    while completed.len() < requests.len() {
        path.advance(clock, &mut completed, true).unwrap();
    }
    assert_eq!(path.in_flight(), 0);
    completed
}

/// Reads blocks, as many at once as there are slots, and compares each with what the file holds.
fn compare(shape: Shape, context: &Context, held: &Held, blocks: &[(u64, u32)]) {
    let config = config(shape, context, held, &[held.map(context, 0..LEN)]);
    let (legs, counters) = (Arc::clone(&config.counters), Arc::clone(&config.mapped));
    let mut path = opened(config).unwrap();
    let clock = Clock::start();
    for some in blocks.chunks(shape.depth as usize) {
        let slots = 0..u32::try_from(some.len()).unwrap();
        let requests: Vec<Request> =
            slots.zip(some).map(|(slot, &(at, len))| read(slot, at, len, &clock)).collect();
        for one in go(path.as_mut(), &clock, &requests) {
            let Request { slot, offset, len, .. } = one.request;
            assert_eq!((one.result, one.file_ns), (Ok(()), 0), "{len} bytes at {offset}");
            assert_eq!(
                path.check(PatternBlock::new(slot, KEY, offset, len)).unwrap(),
                None,
                "{len} at {offset}"
            );
            // A rule that fits bytes of another place would say nothing.
            // One byte of another content is the same now and then.
            assert!(
                len < 7
                    || path.check(PatternBlock::new(slot, KEY + 1, offset, len)).unwrap().is_some()
            );
        }
    }
    let bytes: u64 = blocks.iter().map(|&(_, len)| u64::from(len)).sum();
    let load = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    assert_eq!(load(&counters.read.by_kernel) + load(&counters.read.by_copy), bytes);
    assert_eq!((load(&legs.read.bytes), load(&legs.read.ios)), (bytes, blocks.len() as u64));
}

#[test]
fn random_blocks_are_those_of_the_file() {
    let context = context();
    let lens =
        prop::sample::select(vec![1_u32, 7, 511, 4096, 4097, 65_536, 1 << 20, (1 << 20) + 3]);
    let block =
        (any::<u64>(), lens).prop_map(|(place, len)| (place % (LEN - u64::from(len) + 1), len));
    let shape =
        (1..20_u32, 1..9_u32, 1..4_u32, any::<bool>()).prop_map(|(depth, batch, streams, vmm)| {
            Shape {
                memory: if vmm { MemoryKind::Vmm } else { MemoryKind::Device },
                depth,
                batch,
                streams,
                block_max: (1 << 20) + 3,
            }
        });
    let both = (shape, prop::collection::vec(block, 1..40));
    let runs = Config { cases: 24, failure_persistence: None, ..Config::default() };
    for held in places() {
        let outcome = TestRunner::new(runs.clone()).run(&both, |(shape, blocks)| {
            compare(shape, &context, &held, &blocks);
            Ok(())
        });
        outcome.unwrap_or_else(|failure| panic!("{failure}"));
    }
}

#[test]
fn short_blocks_together_are_a_launch_and_others_are_copies() {
    let context = context();
    let held = &places()[0];
    let counted = |shape: Shape, blocks: &[(u64, u32)]| {
        let config = config(shape, &context, held, &[held.map(&context, 0..LEN)]);
        let counters = Arc::clone(&config.mapped);
        let mut path = opened(config).unwrap();
        let clock = Clock::start();
        let requests: Vec<Request> = (0..)
            .zip(blocks)
            .map(|(slot, &(offset, len))| read(slot, offset, len, &clock))
            .collect();
        go(path.as_mut(), &clock, &requests);
        let read = &counters.read;
        (read.by_kernel.load(Ordering::Relaxed), read.by_copy.load(Ordering::Relaxed))
    };
    let many = [(0, 4096), (12_288, 4096), (4096, 4096), (8192, 4096)];
    assert_eq!(counted(SMALL, &many), (4 * 4096, 0));
    assert_eq!(counted(SMALL, &many[..1]), (4096, 0), "a lone block that the processor might read");
    assert_eq!(counted(SMALL, &[(0, 65_536)]), (0, 65_536), "a lone block that the device reads");
    let alone = Shape { batch: 1, ..SMALL };
    assert_eq!(counted(alone, &many), (4 * 4096, 0));
    assert_eq!(counted(alone, &[(0, 65_536), (7, 65_535)]), (65_535, 65_536));
    let large = Shape { block_max: 1 << 20, ..SMALL };
    let mixed = [(0, 1 << 20), (1 << 20, 4096), (7, 1 << 20), (5, (1 << 20) - 1)];
    assert_eq!(counted(large, &mixed), (4096 + (1 << 20) - 1, 2 << 20));
}

/// Reads files of a file system that is mounted for it.
fn compare_on(test: &str, mount: Mount) {
    let blocks =
        [(0, 1 << 20), (4096, 4096), (4097, 511), (LEN - 7, 7), (LEN - 100_000, 100_000), (1, 1)];
    file_systems::on(test, tempfile::tempdir().unwrap(), mount, |place| {
        let held = Held::new(tempfile::tempdir_in(place).unwrap());
        compare(Shape { block_max: 1 << 20, ..SMALL }, &context(), &held, &blocks);
    });
}

gpuio_testkit::tests! {
    files_on_xfs: compare_on("mapped on XFS", Room::xfs);
    files_on_btrfs: compare_on("mapped on Btrfs", Room::btrfs);
    files_of_a_file_system_in_user_space: compare_on("mapped on fuse2fs", Room::fuse2fs);
}

/// The mapping of a job may begin inside a file, and inside a page.
#[test]
fn only_what_is_mapped_can_be_read() {
    let context = context();
    let held = &places()[0];
    let mapped = held.map(&context, 10_000..70_000);
    let clock = Clock::start();
    let config = config(SMALL, &context, held, &[Arc::clone(&mapped)]);
    let legs = Arc::clone(&config.counters);
    let mut path = opened(config).unwrap();
    let one = |path: &mut dyn Path, request: Request| go(path, &clock, &[request])[0].result;
    assert_eq!(one(path.as_mut(), read(0, 10_000, 60_000, &clock)), Ok(()));
    assert_eq!(path.check(PatternBlock::new(0, KEY, 10_000, 60_000)).unwrap(), None);
    let outside = Err(Fault::File(IoFault::Errno(libc::EINVAL)));
    assert_eq!(one(path.as_mut(), read(0, 10_000, 60_001, &clock)), outside);
    assert_eq!(one(path.as_mut(), read(0, 0, 4096, &clock)), outside, "the page before");
    assert_eq!(one(path.as_mut(), read(0, u64::MAX, 4096, &clock)), outside);
    let refused = Err(Fault::File(IoFault::Errno(libc::EBADF)));
    let write = Request { op: Op::Write, ..read(0, 10_000, 4096, &clock) };
    assert_eq!(one(path.as_mut(), write), refused);
    let elsewhere = Request { file: 1, ..read(0, 10_000, 4096, &clock) };
    assert_eq!(one(path.as_mut(), elsewhere), refused);
    assert_eq!(legs.read.faults.load(Ordering::Relaxed), 4);
    assert_eq!(legs.write.faults.load(Ordering::Relaxed), 1);
    drop(path);
    assert_eq!(Arc::strong_count(&mapped), 1, "the path kept nothing");
}

#[test]
fn what_write_puts_into_the_file_is_seen() {
    let context = context();
    for held in places() {
        let config = config(SMALL, &context, &held, &[held.map(&context, 0..LEN)]);
        let mut path = opened(config).unwrap();
        let clock = Clock::start();
        let again = |path: &mut dyn Path| {
            go(path, &clock, &[read(3, 8192, 4096, &clock)]);
            path.check(PatternBlock::new(3, KEY, 8192, 4096)).unwrap()
        };
        assert_eq!(again(path.as_mut()), None);
        let mut word = [0; 8];
        held.file.read_exact_at(&mut word, 8200).unwrap();
        held.file.write_all_at(&word.map(|byte| !byte), 8200).unwrap();
        let found = again(path.as_mut()).unwrap();
        assert_eq!((found.offset, found.bad_words, found.leg), (8200, 1, None));
        assert_eq!(found.found, !found.expected);
    }
}

/// The pages are pinned: what the file has lost is still there, and no read ends the process.
#[test]
fn a_file_that_becomes_shorter_ends_no_process() {
    let context = context();
    for held in places() {
        let blocks = [1_u32, 4096, 24 << 10, (24 << 10) + 1, 65_535, 65_536];
        for shape in [SMALL, Shape { batch: 1, ..SMALL }] {
            held.file.set_len(0).unwrap();
            let mut bytes = vec![0; usize::try_from(LEN).unwrap()];
            pattern::fill(&mut bytes, KEY, 0);
            held.file.write_all_at(&bytes, 0).unwrap();
            let config = config(shape, &context, &held, &[held.map(&context, 0..LEN)]);
            let mut path = opened(config).unwrap();
            let clock = Clock::start();
            for len in [LEN - 4096, LEN / 2, 4096, 1, 0] {
                held.file.set_len(len).unwrap();
                for block in blocks {
                    let at = LEN - u64::from(block);
                    let done = go(path.as_mut(), &clock, &[read(0, at, block, &clock)]);
                    assert_eq!(done[0].result, Ok(()), "{block} bytes, file of {len}");
                }
            }
        }
    }
}

/// The GPU's writes are in the file for others at once, by copy and by kernel; bytes beside them
/// stay. A page that the file lost is not read as if it were in it.
#[test]
fn what_the_gpu_writes_is_in_the_file() {
    let context = context();
    // The disk's file system may not have its pages pinned for writing.
    let Some(held) = places().pop() else { return };
    let pages = FilePages::map_writable(&context, held.file.as_fd(), 0..LEN).unwrap();
    assert!(pages.allocate(held.file.as_fd(), 3, &|| true).unwrap());
    let mapped = Arc::new(pages.register(&context, false).unwrap());
    let config = config(Shape { block_max: 1 << 20, ..SMALL }, &context, &held, &[mapped]);
    let (legs, counters) = (Arc::clone(&config.counters), Arc::clone(&config.mapped));
    let mut path = opened(config).unwrap();
    let clock = Clock::start();
    let blocks = [(4097, 4095_u32), (1 << 20, 1 << 20), (LEN - 7, 7), (65_536, 65_536)];
    let requests: Vec<Request> = (0..)
        .zip(blocks)
        .map(|(slot, (offset, len))| {
            path.generate(PatternBlock::new(slot, KEY + 1, offset, len)).unwrap();
            Request { op: Op::Write, ..read(slot, offset, len, &clock) }
        })
        .collect();
    assert!(go(path.as_mut(), &clock, &requests).iter().all(|one| one.result == Ok(())));
    for (offset, len) in blocks {
        let mut bytes = vec![0; len as usize];
        held.file.read_exact_at(&mut bytes, offset).unwrap();
        assert_eq!(pattern::check(&bytes, KEY + 1, offset), None, "{len} at {offset}");
    }
    let load = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    let total = blocks.iter().map(|(_, len)| u64::from(*len)).sum();
    assert_eq!((load(&legs.write.bytes), load(&legs.read.bytes)), (total, 0));
    assert_eq!(load(&counters.write.by_copy), 1 << 20);
    assert_eq!(load(&counters.write.by_kernel), total - (1 << 20));
    // Beside and between what was written, the file is what it was.
    let mut before = vec![0; 4097];
    held.file.read_exact_at(&mut before, 0).unwrap();
    assert_eq!(pattern::check(&before, KEY, 0), None);
    held.file.set_len(1 << 20).unwrap();
    held.file.set_len(LEN).unwrap();
    let one =
        |path: &mut dyn Path, at: u64| go(path, &clock, &[read(0, at, 8192, &clock)])[0].result;
    assert_eq!(one(path.as_mut(), (1 << 20) - 8192), Ok(()));
    let lost = Err(Fault::File(IoFault::Errno(libc::ESTALE)));
    assert_eq!(one(path.as_mut(), (1 << 20) - 4096), lost);
}

/// One registration, many workers.
#[test]
fn workers_share_a_mapping() {
    let context = context();
    let held = &places()[0];
    let mapped = held.map(&context, 0..LEN);
    std::thread::scope(|scope| {
        for nth in 0..4_u32 {
            let (mapped, context) = (Arc::clone(&mapped), &context);
            scope.spawn(move || {
                let shape = Shape { streams: nth % 2 + 1, ..SMALL };
                let mut path = opened(config(shape, context, held, &[mapped])).unwrap();
                let clock = Clock::start();
                for round in 0..20_u32 {
                    let at = |slot: u32| u64::from((nth * 160 + round * 8 + slot) * 4096 + nth);
                    let blocks: Vec<Request> =
                        (0..8).map(|slot| read(slot, at(slot), 4096, &clock)).collect();
                    for one in go(path.as_mut(), &clock, &blocks) {
                        let Request { slot, offset, len, .. } = one.request;
                        assert_eq!(
                            path.check(PatternBlock::new(slot, KEY, offset, len)).unwrap(),
                            None
                        );
                    }
                }
            });
        }
    });
    Arc::try_unwrap(mapped).unwrap().close().unwrap();
}

#[test]
fn what_it_cannot_do_is_refused_when_it_is_opened() {
    let context = context();
    let held = &places()[0];
    let mapped = held.map(&context, 0..LEN);
    let why = |change: fn(PathConfig) -> PathConfig| {
        let config = config(SMALL, &context, held, &[Arc::clone(&mapped)]);
        opened(change(config)).map(|_| ()).unwrap_err().to_string()
    };
    assert!(why(|c| PathConfig { direct: true, ..c }).contains("can't be --direct"));
    assert!(why(|c| PathConfig { mappings: Vec::new(), ..c }).contains("were not mapped"));
    assert!(why(|c| PathConfig { gpu: None, ..c }).contains("needs a GPU"));
    let inject = why(|c| PathConfig { inject: Some("eio=1".parse().unwrap()), ..c });
    assert!(inject.contains("no engine"), "{inject}");
}

#[test]
#[ignore = "run as a child"]
fn child_fault() {
    let context = context();
    let held = &places()[0];
    let config = config(SMALL, &context, held, &[held.map(&context, 0..LEN)]);
    let counters = Arc::clone(&config.mapped);
    let mut path = opened(config).unwrap();
    let clock = Clock::start();
    let len = child::case().parse().unwrap();
    let blocks = || -> Vec<Request> {
        (0..8).map(|slot| read(slot, u64::from(slot) * 70_000, len, &clock)).collect()
    };
    // The first group fails as a whole, and nothing is left of it.
    let results: Vec<_> =
        go(path.as_mut(), &clock, &blocks()).iter().map(|one| one.result).collect();
    let failed = results.iter().filter(|result| **result == Err(Fault::Gpu(1))).count();
    assert_eq!((failed, results.len()), (4, 8), "{results:?}");
    let moved = counters.read.by_kernel.load(Ordering::Relaxed);
    assert_eq!(moved, 4 * u64::from(len));
    for one in go(path.as_mut(), &clock, &blocks()) {
        let Request { slot, offset, .. } = one.request;
        assert_eq!(one.result, Ok(()));
        assert_eq!(path.check(PatternBlock::new(slot, KEY, offset, len)).unwrap(), None);
    }
}

#[test]
fn a_launch_that_fails_fails_its_group_alone() {
    if !skipped("a_launch_that_fails_fails_its_group_alone") {
        child::passes_case(child_fault, "4096", &[("GPUIO_SOFT_FAIL", "cuLaunchKernel:1:0:1")]);
    }
}

#[test]
#[ignore = "run as a child"]
fn child_corrupt() {
    let context = context();
    let held = &places()[0];
    let mapped = [held.map(&context, 0..LEN)];
    let mut path = opened(config(Shape { batch: 1, ..SMALL }, &context, held, &mapped)).unwrap();
    let clock = Clock::start();
    let blocks: Vec<Request> =
        (0..3).map(|slot| read(slot, u64::from(slot) * 65_536, 65_536, &clock)).collect();
    go(path.as_mut(), &clock, &blocks);
    let found: Vec<_> = (0..3)
        .map(|slot| {
            path.check(PatternBlock::new(slot, KEY, u64::from(slot) * 65_536, 65_536)).unwrap()
        })
        .collect();
    let bad = found[1].unwrap();
    assert_eq!((found[0], found[2]), (None, None));
    // Where it went wrong can't be told: there is no second copy.
    assert_eq!((bad.offset, bad.bad_words, bad.leg), (65_536 + 32_768, 1, None));
}

#[test]
fn a_copy_that_goes_wrong_is_found() {
    if !skipped("a_copy_that_goes_wrong_is_found") {
        child::passes(child_corrupt, &[("GPUIO_SOFT_CORRUPT", "cuMemcpyHtoDAsync_v2:1")]);
    }
}
