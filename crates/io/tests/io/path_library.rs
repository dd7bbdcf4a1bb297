//! The paths of gpuio's own library core: what they count, what they leave behind, and how failures
//! come back. The bytes themselves are the reference tests' matter.
#![allow(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::path_support::{LEN, Rig, Setup, child, context, skipped, to_slot};
use gpuio_gpu::{Context, MemoryKind};
use gpuio_io::clock::Clock;
use gpuio_io::engine::{IoFault, Op};
use gpuio_io::path::{Fault, LibraryOpCounters, PATHS, Path, PathConfig, PathError, Start};

const BLOCK: u32 = 4096;

/// The paths of the core.
fn setups() -> impl Iterator<Item = Setup> {
    let ours = PATHS.iter().filter(|row| row.info.uses_library());
    ours.map(|row| Setup::new(row.info.name, "psync", MemoryKind::Device))
}

#[test]
fn each_kind_of_calls_has_a_path() {
    let names: Vec<&str> = setups().map(|setup| setup.path.info.name).collect();
    assert_eq!(names, ["library", "library-stream", "library-batch"]);
}

/// Moves one block of each slot and returns how they ended, by slot.
fn all_slots(path: &mut dyn Path, setup: &Setup, op: Op, at: u64) -> Vec<Result<(), Fault>> {
    let clock = Clock::start();
    let mut completed = Vec::new();
    for slot in 0..setup.depth {
        let now = clock.now();
        let offset = at + u64::from(slot * BLOCK);
        let request = to_slot(op, 0, offset, BLOCK, slot, now);
        assert!(matches!(path.start(&clock, request), Start::Taken));
    }
    while path.in_flight() > 0 {
        path.advance(&clock, &mut completed, true).unwrap();
    }
    completed.sort_by_key(|one| one.request.slot);
    completed.iter().map(|one| one.result).collect()
}

#[test]
fn every_byte_is_counted_on_both_sides_and_in_its_direction() {
    let context = context();
    for setup in setups() {
        for direct in [false, true] {
            let Some(rig) = Rig::new(direct) else { continue };
            let config = setup.config(&rig, &context);
            let counters = Arc::clone(&config.library);
            let mut path = (setup.path.open)(config).unwrap().path;
            let bytes = u64::from(setup.depth * BLOCK);
            let sums = |counters: &LibraryOpCounters| {
                let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
                let file = load(&counters.cached) + load(&counters.direct);
                [file, load(&counters.by_kernel) + load(&counters.by_copy)]
            };
            let read = all_slots(path.as_mut(), &setup, Op::Read, 0);
            assert_eq!(read, vec![Ok(()); setup.depth as usize]);
            let found = (sums(&counters.read), sums(&counters.write));
            assert_eq!(found, ([bytes; 2], [0; 2]), "{setup:?}");
            // The files were just written, so the page cache holds them.
            let direct_read = counters.read.direct.load(Ordering::Relaxed);
            assert!(direct || direct_read == 0, "{setup:?}");
            let written = all_slots(path.as_mut(), &setup, Op::Write, 0);
            assert_eq!(written, vec![Ok(()); setup.depth as usize]);
            assert_eq!((sums(&counters.read), sums(&counters.write)), ([bytes; 2], [bytes; 2]));
        }
    }
}

/// How many entries a directory of `/proc/self` has.
fn count(directory: &str) -> usize {
    std::fs::read_dir(format!("/proc/self/{directory}")).unwrap().count()
}

/// Opens a path on a thread of its own, as a worker does, and moves some blocks.
fn use_once(setup: &Setup, rig: &Rig, context: &Context) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut path = setup.open(rig, context).unwrap().path;
            for op in [Op::Read, Op::Write, Op::Read] {
                all_slots(path.as_mut(), setup, op, 0);
            }
        });
    });
}

#[test]
fn a_path_leaves_no_thread_and_no_descriptor() {
    child::alone(&[], || {
        let (context, rig) = (context(), Rig::new(false).unwrap());
        const TIMES: usize = 40;
        let use_all = || {
            for setup in setups() {
                (0..TIMES).for_each(|_| use_once(&setup, &rig, &context));
            }
        };
        use_all();
        let before = (count("task"), count("fd"));
        use_all();
        let after = (count("task"), count("fd"));
        assert_eq!(after.1, before.1, "descriptors");
        // The core starts a few threads on demand, which stay: far fewer than there were paths.
        assert!(after.0 < before.0 + TIMES / 4, "threads: {} before, {} after", before.0, after.0);
    });
}

#[test]
fn a_file_that_is_too_short_is_reported() {
    let context = context();
    for setup in setups() {
        let rig = Rig::new(false).unwrap();
        rig.files[0].set_len(LEN - u64::from(BLOCK)).unwrap();
        let mut path = setup.open(&rig, &context).unwrap().path;
        let at = LEN - u64::from(setup.depth * BLOCK);
        let ended = all_slots(path.as_mut(), &setup, Op::Read, at);
        let (last, others) = ended.split_last().unwrap();
        assert!(others.iter().all(Result::is_ok), "{setup:?}: {ended:?}");
        assert_eq!(*last, Err(Fault::File(IoFault::EndOfFile(0))), "{setup:?}");
    }
}

#[test]
fn an_errno_of_the_file_reaches_its_requests() {
    use std::os::fd::AsRawFd;
    let context = context();
    for setup in setups() {
        let rig = Rig::new(false).unwrap();
        let unwritable = std::fs::File::open(rig.name("file", 0)).unwrap();
        let mut config = setup.config(&rig, &context);
        config.files[0].fd = unwritable.as_raw_fd();
        let mut path = (setup.path.open)(config).unwrap().path;
        let all = |result| vec![result; setup.depth as usize];
        assert_eq!(all_slots(path.as_mut(), &setup, Op::Read, 0), all(Ok(())), "{setup:?}");
        let refused = Err(Fault::File(IoFault::Errno(libc::EBADF)));
        assert_eq!(all_slots(path.as_mut(), &setup, Op::Write, 0), all(refused), "{setup:?}");
        assert_eq!(all_slots(path.as_mut(), &setup, Op::Read, 0), all(Ok(())), "{setup:?}");
    }
}

#[test]
#[ignore = "run as a child"]
fn child_lost_device() {
    let (context, rig) = (context(), Rig::new(false).unwrap());
    let setup = setups().find(|setup| setup.path.info.name == child::case()).unwrap();
    let mut path = setup.open(&rig, &context).unwrap().path;
    let rounds = (0..20).flat_map(|_| all_slots(path.as_mut(), &setup, Op::Read, 0));
    let failed: Vec<Fault> = rounds.filter_map(Result::err).collect();
    assert!(!failed.is_empty());
    assert!(failed.iter().all(|fault| *fault == Fault::Gpu(700)), "{failed:?}");
}

/// Nothing hangs, and no request is lost.
#[test]
fn copies_that_fail_reach_their_requests() {
    if skipped("copies_that_fail_reach_their_requests") {
        return;
    }
    // A device that is lost, whichever way the bytes go.
    let fail = "cuLaunchKernel:700:2,cuMemcpyHtoDAsync_v2:700:2";
    for setup in setups() {
        let environment = [("GPUIO_SOFT_FAIL", fail)];
        child::passes_case(child_lost_device, setup.path.info.name, &environment);
    }
}

#[test]
fn what_the_path_lacks_is_reported_with_what_to_do() {
    let (context, rig) = (context(), Rig::new(false).unwrap());
    for setup in setups() {
        let refused = |change: &dyn Fn(&mut PathConfig), word: &str| {
            let mut config = setup.config(&rig, &context);
            change(&mut config);
            let error = (setup.path.open)(config).unwrap_err();
            assert!(matches!(error, PathError::Setup { .. }));
            assert!(error.to_string().contains(word), "{error}");
        };
        refused(&|config| config.gpu = None, "--gpu");
        refused(&|config| config.inject = Some("eio=1%".parse().unwrap()), "no engine");
    }
}
