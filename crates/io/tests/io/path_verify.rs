//! The findings of `Path::check`: the right offset, word, count and leg of bytes that are wrong.
#![allow(unsafe_code)]

use std::os::unix::fs::FileExt;

use crate::path_support::{Rig, Setup, child, context, kinds, moves_pages, skipped, to_slot};
use gpuio_gpu::{Context, MemoryKind, pattern};
use gpuio_io::clock::Clock;
use gpuio_io::engine::Op;
use gpuio_io::path::{Leg, Mismatch, PATHS, Path, PathEntry, PatternBlock, Start};

const BLOCK: u32 = 8192;

/// A path and the file that it reads.
struct Bench<'a> {
    setup: Setup,
    rig: &'a Rig,
    path: Box<dyn Path>,
    clock: Clock,
}

impl<'a> Bench<'a> {
    fn new(setup: Setup, rig: &'a Rig, context: &Context) -> Bench<'a> {
        let path = setup.open(rig, context).unwrap().path;
        Bench { setup, rig, path, clock: Clock::start() }
    }

    /// Moves one block through a slot, which must succeed.
    fn go(&mut self, op: Op, slot: u32, offset: u64, len: u32) {
        let now = self.clock.now();
        let request = to_slot(op, 0, offset, len, slot, now);
        let start = self.path.start(&self.clock, request);
        assert!(matches!(start, Start::Taken));
        let mut completed = Vec::new();
        self.path.advance(&self.clock, &mut completed, true).unwrap();
        assert_eq!((completed.len(), completed[0].result), (1, Ok(())));
    }

    fn check(&mut self, slot: u32, offset: u64, len: u32) -> Option<Mismatch> {
        let key = self.rig.key(0);
        self.path.check(PatternBlock::new(slot, key, offset, len)).unwrap()
    }

    /// Reads a block and checks it.
    fn read(&mut self, offset: u64, len: u32) -> Option<Mismatch> {
        self.go(Op::Read, 1, offset, len);
        self.check(1, offset, len)
    }

    fn on_gpu_leg(&self) -> Option<Leg> {
        Some(if self.setup.path.info.times_gpu_leg() { Leg::Gpu } else { Leg::File })
            .filter(|_| self.reports_legs())
    }

    fn on_file_leg(&self) -> Option<Leg> {
        self.reports_legs().then_some(Leg::File)
    }

    /// Not where cuFile moves the bytes, of which the path sees both ends only, nor where the pages
    /// themselves move.
    fn reports_legs(&self) -> bool {
        self.setup.path.info.uses_engine() && !moves_pages(self.setup.path)
    }
}

/// Every path, with each of its memory kinds, over an engine of either sort.
fn everywhere(test: impl Fn(Setup, &Context)) {
    let context = context();
    for row in PATHS {
        for memory in kinds(row) {
            for engine in ["psync", "pool"] {
                test(Setup::new(row.info.name, engine, memory), &context);
            }
        }
    }
}

/// The rule's word at an offset that is a multiple of 8.
fn word(rig: &Rig, offset: u64) -> u64 {
    pattern::word(rig.key(0), offset / 8)
}

#[test]
fn a_corrupted_byte_in_the_file_is_found() {
    everywhere(|setup, context| {
        let rig = Rig::new(false).unwrap();
        let (offset, bad) = (24_571, 30_005);
        let mut byte = [0];
        rig.files[0].read_exact_at(&mut byte, bad).unwrap();
        rig.files[0].write_all_at(&[byte[0] ^ 0x40], bad).unwrap();
        let mut bench = Bench::new(setup, &rig, context);
        let at = bad / 8 * 8;
        let expected = word(&rig, at);
        let mismatch = Mismatch {
            offset: at,
            expected,
            found: expected ^ (0x40 << (8 * (bad - at))),
            bad_words: 1,
            checksum_of: None,
            leg: bench.on_file_leg(),
            gpu: None,
        };
        assert_eq!(bench.read(offset, BLOCK), Some(mismatch));
        // The blocks that end before the byte and begin behind it are good.
        assert_eq!(bench.read(bad - u64::from(BLOCK), BLOCK), None);
        assert_eq!(bench.read(bad + 1, BLOCK), None);
    });
}

#[test]
fn blocks_that_were_swapped_are_found() {
    everywhere(|setup, context| {
        let rig = Rig::new(false).unwrap();
        let (one, other) = (2 * u64::from(BLOCK), 9 * u64::from(BLOCK));
        let take = |offset| {
            let mut bytes = vec![0; BLOCK as usize];
            rig.files[0].read_exact_at(&mut bytes, offset).unwrap();
            bytes
        };
        let (first, second) = (take(one), take(other));
        rig.files[0].write_all_at(&second, one).unwrap();
        rig.files[0].write_all_at(&first, other).unwrap();
        let mut bench = Bench::new(setup, &rig, context);
        for (here, there) in [(one, other), (other, one)] {
            let mismatch = Mismatch {
                offset: here,
                expected: word(&rig, here),
                found: word(&rig, there),
                bad_words: u64::from(BLOCK / 8),
                checksum_of: None,
                leg: bench.on_file_leg(),
                gpu: None,
            };
            assert_eq!(bench.read(here, BLOCK), Some(mismatch));
        }
        assert_eq!(bench.read(one + u64::from(BLOCK), BLOCK), None);
    });
}

#[test]
fn a_block_written_to_a_wrong_offset_is_found() {
    everywhere(|setup, context| {
        let rig = Rig::of(&setup, false).unwrap();
        let (meant, completed) = (4 * u64::from(BLOCK), 5 * u64::from(BLOCK));
        let mut bench = Bench::new(setup, &rig, context);
        bench.path.generate(PatternBlock::new(0, rig.key(0), meant, BLOCK)).unwrap();
        bench.go(Op::Write, 0, completed, BLOCK);
        let mismatch = Mismatch {
            offset: completed,
            expected: word(&rig, completed),
            found: word(&rig, meant),
            bad_words: u64::from(BLOCK / 8),
            checksum_of: None,
            leg: bench.on_file_leg(),
            gpu: None,
        };
        assert_eq!(bench.read(completed, BLOCK), Some(mismatch));
        assert_eq!(bench.read(meant, BLOCK), None);
    });
}

/// On any GPU: the destination is made to differ from what came from the file.
#[test]
fn bytes_that_are_wrong_in_the_destination_alone_are_the_gpu_legs() {
    everywhere(|setup, context| {
        let rig = Rig::new(false).unwrap();
        let mut bench = Bench::new(setup, &rig, context);
        let offset = 3 * u64::from(BLOCK);
        bench.go(Op::Read, 2, offset, BLOCK);
        assert_eq!(bench.check(2, offset, BLOCK), None);
        // The first 16 bytes of the place become those of another offset of the file.
        bench.path.generate(PatternBlock::new(2, rig.key(0), 0, 16)).unwrap();
        let mismatch = Mismatch {
            offset,
            expected: word(&rig, offset),
            found: word(&rig, 0),
            bad_words: 2,
            checksum_of: None,
            leg: bench.on_gpu_leg(),
            gpu: None,
        };
        assert_eq!(bench.check(2, offset, BLOCK), Some(mismatch));
    });
}

#[test]
#[ignore = "run as a child"]
fn child_bad_copy() {
    let case = child::case();
    let (path, memory) = case.split_once(' ').unwrap();
    let memory: MemoryKind = memory.parse().unwrap();
    let rig = Rig::new(false).unwrap();
    let mut bench = Bench::new(Setup::new(path, "psync", memory), &rig, &context());
    let offset = |slot: u32| 7 + u64::from(slot) * u64::from(BLOCK);
    // The copies of a check count too, so all reads come first. The third copy is the bad one.
    for slot in 0..4 {
        bench.go(Op::Read, slot, offset(slot), BLOCK);
    }
    for slot in 0..4 {
        let found = bench.check(slot, offset(slot), BLOCK);
        if slot != 2 {
            assert_eq!(found, None, "slot {slot}");
            continue;
        }
        let bad = offset(slot) + u64::from(BLOCK / 2);
        let at = bad / 8 * 8;
        let expected = word(&rig, at);
        let mismatch = Mismatch {
            offset: at,
            expected,
            found: expected ^ (1 << (8 * (bad - at))),
            bad_words: 1,
            checksum_of: None,
            leg: Some(Leg::Gpu),
            gpu: None,
        };
        assert_eq!(found, Some(mismatch));
    }
}

fn copy_call(memory: MemoryKind, device: &'static str) -> &'static str {
    if memory.is_host() { "cuMemcpyAsync" } else { device }
}

#[test]
fn a_copy_to_the_destination_that_goes_wrong_is_the_gpu_legs() {
    if skipped("a_copy_to_the_destination_that_goes_wrong_is_the_gpu_legs") {
        return;
    }
    // A kernel that stays makes no copy by the driver; a mapping has no second copy to tell legs
    // by (`path_mapped.rs`).
    let copies = |row: &PathEntry| {
        let ring = row.info.uses_engine() && row.info.times_gpu_leg();
        ring && !moves_pages(row) && row.info.name != "resident"
    };
    for row in PATHS.iter().filter(|row| copies(row)) {
        for memory in kinds(row) {
            let bad = format!("{}:2", copy_call(memory, "cuMemcpyHtoDAsync_v2"));
            let case = format!("{} {memory}", row.info.name);
            child::passes_case(child_bad_copy, &case, &[("GPUIO_SOFT_CORRUPT", &bad)]);
        }
    }
}

#[test]
#[ignore = "run as a child"]
fn child_bad_copy_back() {
    let memory: MemoryKind = child::case().parse().unwrap();
    let rig = Rig::new(false).unwrap();
    let mut bench = Bench::new(Setup::new("staged", "psync", memory), &rig, &context());
    let at = 6 * u64::from(BLOCK);
    bench.path.generate(PatternBlock::new(0, rig.key(0), at, BLOCK)).unwrap();
    bench.go(Op::Write, 0, at, BLOCK);
    let found = bench.read(at, BLOCK).unwrap();
    let bad = at + u64::from(BLOCK / 2);
    assert_eq!((found.offset, found.bad_words), (bad, 1));
    assert_eq!(found.expected ^ found.found, 1);
    // Whoever reads it meets it in the file.
    assert_eq!(found.leg, Some(Leg::File));
}

#[test]
fn a_copy_back_that_goes_wrong_is_found_in_the_file() {
    if skipped("a_copy_back_that_goes_wrong_is_found_in_the_file") {
        return;
    }
    for memory in kinds(gpuio_io::path::find("staged").unwrap()) {
        let bad = format!("{}:0", copy_call(memory, "cuMemcpyDtoHAsync_v2"));
        child::passes_case(
            child_bad_copy_back,
            &memory.to_string(),
            &[("GPUIO_SOFT_CORRUPT", &bad)],
        );
    }
}
