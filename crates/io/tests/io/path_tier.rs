//! Reads whose bytes stay in memory that workers share, and reads that come from there.
#![allow(unsafe_code)]

use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::path_support::{Rig, Setup, context};
use gpuio_gpu::{MemoryKind, Pinned};
use gpuio_io::clock::Clock;
use gpuio_io::engine::Op;
use gpuio_io::path::{Completion, PATHS, Path, PathConfig, PatternBlock, Place, Request, Start};

const BLOCK: u32 = 8192;

/// Moves one block through slot 1, which must succeed.
fn go(path: &mut dyn Path, clock: &Clock, offset: u64, place: Place) -> Completion {
    let now = clock.now();
    let request = Request {
        op: Op::Read,
        file: 0,
        offset,
        len: BLOCK,
        slot: 1,
        place,
        started: now,
        due: now,
    };
    assert!(matches!(path.start(clock, request), Start::Taken));
    let mut completed = Vec::new();
    path.advance(clock, &mut completed, true).unwrap();
    assert_eq!((completed.len(), completed[0].result), (1, Ok(())));
    completed.remove(0)
}

/// On each path that has a tier, with each engine and kind of memory: what was read into a place
/// comes from there again, though the file is another by then, without any I/O or file leg; and the
/// slot's own memory is used by other reads.
#[test]
fn a_block_comes_from_where_it_was_kept() {
    let rows: Vec<_> = PATHS.iter().filter(|row| row.info.has_tier).collect();
    assert!(rows.iter().any(|row| row.info.name == "staged"));
    let context = context();
    for row in rows {
        for engine in ["psync", "io_uring", "pool", "libaio"] {
            for memory in [MemoryKind::Device, MemoryKind::Pinned, MemoryKind::Malloc] {
                let setup = Setup::new(row.info.name, engine, memory);
                let Some(rig) = Rig::new(false).filter(|_| !setup.lacking()) else { continue };
                let tier = Arc::new(Pinned::zeroed(&context, 4 * BLOCK as usize).unwrap());
                let config = setup.config(&rig, &context);
                let counters = Arc::clone(&config.counters);
                let config = PathConfig { tier: Some(tier), ..config };
                let mut path = (row.open)(config).unwrap().path;
                let clock = Clock::start();
                let ios = || counters.read.ios.load(Ordering::Relaxed);
                let check = |path: &mut dyn Path, offset: u64| {
                    path.check(PatternBlock::new(1, rig.key(0), offset, BLOCK)).unwrap()
                };
                let (at, other) = (u64::from(3 * BLOCK), u64::from(BLOCK));
                go(path.as_mut(), &clock, 65_536, Place::Into(at));
                assert_eq!((check(path.as_mut(), 65_536), ios()), (None, 1), "{setup:?}");
                go(path.as_mut(), &clock, 0, Place::Slot);
                assert_eq!((check(path.as_mut(), 0), ios()), (None, 2), "{setup:?}");
                rig.files[0].write_all_at(&[7; BLOCK as usize], 65_536).unwrap();
                let kept = go(path.as_mut(), &clock, 65_536, Place::Kept(at));
                assert_eq!((check(path.as_mut(), 65_536), ios()), (None, 2), "{setup:?}");
                assert_eq!(kept.file_ns, 0);
                assert_eq!(kept.gpu_ns, kept.ended - kept.request.started);
                // Wrong bytes in the tier are found; the leg where they went wrong is not known.
                go(path.as_mut(), &clock, 65_536, Place::Into(other));
                let kept = go(path.as_mut(), &clock, 65_536, Place::Kept(other));
                let found = check(path.as_mut(), kept.request.offset).unwrap();
                assert_eq!((found.bad_words, found.leg), (u64::from(BLOCK) / 8, None));
            }
        }
    }
}

#[test]
#[should_panic(expected = "past the tier")]
fn a_place_past_the_tier_is_none() {
    let context = context();
    let setup = Setup::new("staged", "psync", MemoryKind::Device);
    let rig = Rig::new(false).unwrap();
    let tier = Arc::new(Pinned::zeroed(&context, BLOCK as usize).unwrap());
    let config = PathConfig { tier: Some(tier), ..setup.config(&rig, &context) };
    let mut path = (setup.path.open)(config).unwrap().path;
    go(path.as_mut(), &Clock::start(), 0, Place::Into(4096));
}
