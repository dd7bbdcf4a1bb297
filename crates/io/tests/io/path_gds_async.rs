//! The paths that ask cuFile for many I/Os at once: what fails, stops short or never ends, here by
//! the stand-in's own doing.
#![allow(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::path_support::model::{Model, Tally, steps};
use crate::path_support::{LEN, Rig, Setup, child, context, skipped, to_slot};
use gpuio_gpu::MemoryKind;
use gpuio_io::clock::Clock;
use gpuio_io::engine::{IoFault, Op};
use gpuio_io::path::{Completion, Fault, OpenedPath, Path, PathError, PatternBlock, Request};

const STREAMED: [&str; 2] = ["gds-stream", "gds-batch-stream"];
const ALL: [&str; 3] = ["gds-stream", "gds-batch", "gds-batch-stream"];

fn setup(path: &str) -> Setup {
    Setup::new(path, "psync", MemoryKind::Device).with(9, 2).batches(4, false)
}

/// Runs a child of this program for each case, as a rule a path, with cuFile failing so, unless the
/// system's GPU is tested.
fn failing(cases: &[&str], fail: &str, test: impl Fn() + Copy + Send) {
    if child::is_child(test) {
        return test();
    }
    if skipped(child::name(test)) {
        return;
    }
    std::thread::scope(|scope| {
        for case in cases {
            scope
                .spawn(move || child::passes_case(test, case, &[("GPUIO_SOFT_CUFILE_FAIL", fail)]));
        }
    });
}

/// 60 requests on the path that the child was told: each completes once, and files and slots hold
/// what the requests that did not fail make of them.
fn run() -> (Tally, usize) {
    let (context, rig) = (context(), Rig::new(false).unwrap());
    let setup = setup(&child::case());
    let mut model = Model::new(&setup, &rig, &context);
    // An I/O that failed after a part of it had moved leaves that part behind.
    model.failed_reads_are_open = true;
    let steps = steps(60, false);
    for step in &steps {
        model.start(step);
    }
    model.drain();
    let reads = steps.iter().filter(|step| step.op == Op::Read).count();
    (model.finish(), reads)
}

fn request(op: Op, slot: u32, offset: u64, len: u32, clock: &Clock) -> Request {
    let now = clock.now();
    to_slot(op, 0, offset, len, slot, now)
}

/// Reads a block into each of the first slots at once, and gives all that completed.
fn reads(path: &mut dyn Path, slots: u32) -> Result<Vec<Completion>, PathError> {
    let clock = Clock::start();
    for slot in 0..slots {
        let offset = u64::from(slot) * 8192;
        path.start(&clock, request(Op::Read, slot, offset, 8192, &clock));
    }
    let mut completed = Vec::new();
    while path.in_flight() > 0 {
        path.advance(&clock, &mut completed, true)?;
    }
    completed.sort_by_key(|one| one.request.slot);
    Ok(completed)
}

#[test]
fn codes_are_those_of_their_own_requests() {
    failing(&ALL, "cuFileRead:5011:5:3", || {
        let (tally, reads) = run();
        assert!(reads > 8);
        assert_eq!(tally.failed, vec![(Op::Read, Fault::Cufile(5011)); 3]);
    });
}

#[test]
fn an_errno_of_the_file_is_one() {
    failing(&ALL, "cuFileWrite:28:4:2", || {
        let (tally, _) = run();
        assert_eq!(tally.failed, vec![(Op::Write, Fault::File(IoFault::Errno(libc::ENOSPC))); 2]);
    });
}

#[test]
fn a_short_transfer_goes_on() {
    failing(&ALL, "cuFileRead:short,cuFileWrite:short", || {
        let (context, rig) = (context(), Rig::new(false).unwrap());
        let setup = setup(&child::case());
        let config = setup.config(&rig, &context);
        let counters = Arc::clone(&config.counters);
        let mut path = (setup.path.open)(config).unwrap().path;
        let completed = reads(path.as_mut(), 5).unwrap();
        assert!(
            completed.len() == 5 && completed.iter().all(|one| one.result == Ok(())),
            "{completed:?}"
        );
        for slot in 0..5 {
            let offset = u64::from(slot) * 8192;
            assert_eq!(
                path.check(PatternBlock::new(slot, rig.key(0), offset, 8192)).unwrap(),
                None
            );
        }
        // One request, however many I/Os: each moved half of what was left, down to one byte.
        assert_eq!(counters.short_ios.load(Ordering::Relaxed), 5);
        assert_eq!(counters.read.ios.load(Ordering::Relaxed), 5);
        assert_eq!(counters.read.bytes.load(Ordering::Relaxed), 5 * 8192);
        drop(path);
        assert_eq!(run().0.failed, []);
    });
}

#[test]
fn a_file_that_is_too_short_is_reported() {
    let (context, rig) = (context(), Rig::new(false).unwrap());
    rig.files[0].set_len(LEN - 4096).unwrap();
    for path in ALL {
        let mut path = setup(path).open(&rig, &context).unwrap().path;
        let clock = Clock::start();
        for (slot, offset, actual) in [(0, LEN - 8192, 4096), (1, LEN, 0)] {
            path.start(&clock, request(Op::Read, slot, offset, 8192, &clock));
            let mut completed = Vec::new();
            path.advance(&clock, &mut completed, true).unwrap();
            assert_eq!(completed[0].result, Err(Fault::File(IoFault::EndOfFile(actual))));
            assert_eq!((completed.len(), completed[0].gpu_ns), (1, 0));
        }
    }
}

#[test]
fn a_call_that_a_stream_does_not_take_fails_its_request_alone() {
    failing(&STREAMED, "cuFileReadAsync:5038:3:4", || {
        let (tally, reads) = run();
        assert!(reads > 8);
        assert_eq!(tally.failed, vec![(Op::Read, Fault::Cufile(5038)); 4]);
    });
}

#[test]
fn a_submit_that_is_refused_fails_its_own_requests() {
    // Out of 60 requests in batches of at most 4, those of two submits fail and no other.
    failing(&["gds-batch"], "cuFileBatchIOSubmit:5035:3:2", || {
        let (tally, _) = run();
        let failed = tally.failed.len();
        assert!((2..=8).contains(&failed), "{:?}", tally.failed);
        assert!(tally.failed.iter().all(|(_, fault)| *fault == Fault::Cufile(5035)));
        assert_eq!(tally.reads + tally.writes + failed, 60);
    });
}

#[test]
fn a_submit_that_took_a_part_fails_the_rest() {
    failing(&["gds-batch"], "cuFileBatchIOSubmit:short:0:1", || {
        let (context, rig) = (context(), Rig::new(false).unwrap());
        let mut path = setup("gds-batch").open(&rig, &context).unwrap().path;
        let completed = reads(path.as_mut(), 8).unwrap();
        let failed = |one: &&Completion| one.result == Err(Fault::Cufile(5037));
        // The first submit took two of four; the second one all.
        let slots: Vec<u32> = completed.iter().filter(failed).map(|one| one.request.slot).collect();
        assert_eq!((completed.len(), slots), (8, vec![2, 3]));
        // A batch that was set up anew works.
        assert!(reads(path.as_mut(), 9).unwrap().iter().all(|one| one.result == Ok(())));
        for slot in 0..9 {
            let offset = u64::from(slot) * 8192;
            assert_eq!(
                path.check(PatternBlock::new(slot, rig.key(0), offset, 8192)).unwrap(),
                None
            );
        }
    });
}

#[test]
fn a_batch_that_can_not_be_set_up_again_ends_the_path() {
    // 9 slots in batches of 4 are 3 handles.
    let fail = "cuFileBatchIOSubmit:5035,cuFileBatchIOSetUp:5043:3";
    failing(&["gds-batch"], fail, || {
        let (context, rig) = (context(), Rig::new(false).unwrap());
        let mut path = setup("gds-batch").open(&rig, &context).unwrap().path;
        let error = reads(path.as_mut(), 4).unwrap_err();
        assert!(matches!(error, PathError::Broken { path: "gds-batch", .. }), "{error}");
        let text = error.to_string();
        for word in ["5035", "cuFileBatchIOSetUp", "5043", "no memory"] {
            assert!(text.contains(word), "{word}: {text}");
        }
    });
}

#[test]
fn a_status_that_can_not_be_had_ends_the_path() {
    failing(&["gds-batch"], "cuFileBatchIOGetStatus:5041", || {
        let (context, rig) = (context(), Rig::new(false).unwrap());
        let mut path = setup("gds-batch").open(&rig, &context).unwrap().path;
        let text = reads(path.as_mut(), 4).unwrap_err().to_string();
        assert!(text.contains("cuFileBatchIOGetStatus") && text.contains("5041"), "{text}");
    });
}

#[test]
fn a_batch_that_never_ends_is_not_waited_for_for_ever() {
    // One batch, and several.
    // An entry without an event, alone or beside other batches: the others complete, and then the
    // path says that it waits for nothing, and can be dropped.
    failing(&["4", "9"], "cuFileRead:lost:2:1", || {
        let (context, rig) = (context(), Rig::new(false).unwrap());
        let depth = child::case().parse().unwrap();
        let setup = setup("gds-batch").with(depth, 1);
        let mut config = setup.config(&rig, &context);
        config.cufile.as_mut().unwrap().stall_timeout = Duration::from_millis(300);
        let OpenedPath { mut path, .. } = (setup.path.open)(config).unwrap();
        let began = Instant::now();
        let error = reads(path.as_mut(), depth).unwrap_err();
        let PathError::Stalled { path: name, out, .. } = error else { panic!("{error}") };
        // With 9 slots the last one is alone and waits for others, or for nothing to be in flight.
        assert_eq!((name, out), ("gds-batch", if depth == 9 { 2 } else { 1 }));
        assert!(error.to_string().contains("posix_pool_slab_count"), "{error}");
        drop(path);
        let took = began.elapsed();
        // Without the setting it would be thirty seconds.
        assert!((300..25_000).contains(&took.as_millis()), "{took:?}");
    });
}

#[test]
#[ignore = "run as a child"]
fn child_open() {
    let (context, rig) = (context(), Rig::new(false).unwrap());
    let name = child::case();
    let text = setup(&name).open(&rig, &context).unwrap_err().to_string();
    let refused = std::env::var("GPUIO_SOFT_CUFILE_FAIL").unwrap();
    let (call, code) = refused.split_once(':').unwrap();
    for word in [name.as_str(), call, code] {
        assert!(text.contains(word), "{word:?} is not in {text:?}");
    }
    if call == "cuFileHandleRegister" {
        assert!(text.contains(rig.name("file", 0).to_str().unwrap()), "{text}");
    }
}

#[test]
fn what_is_refused_at_open_is_reported_with_call_and_code() {
    failing(&ALL, "cuFileHandleRegister:5027", child_open);
    failing(&ALL, "cuFileBufRegister:5016", child_open);
    failing(&["gds-batch"], "cuFileBatchIOSetUp:5049", child_open);
    failing(&STREAMED, "cuFileStreamRegister:5030", child_open);
}

/// A path that is dropped with I/O in flight waits for it: what was written is whole.
#[test]
fn a_path_that_is_dropped_waits_for_what_is_in_flight() {
    if skipped("child_dropped") {
        return;
    }
    for path in ALL {
        child::passes_case(child_dropped, path, &[("GPUIO_SOFT_DELAY_US", "3000")]);
    }
}

#[test]
#[ignore = "run as a child"]
fn child_dropped() {
    let (context, rig) = (context(), Rig::new(false).unwrap());
    let mut path = setup(&child::case()).open(&rig, &context).unwrap().path;
    let clock = Clock::start();
    // Full batches, so that all of them go at once.
    for slot in 0..8 {
        let offset = u64::from(slot) * 8192;
        path.generate(PatternBlock::new(slot, 77, offset, 8192)).unwrap();
        path.start(&clock, request(Op::Write, slot, offset, 8192, &clock));
    }
    drop(path);
    let bytes = std::fs::read(rig.name("file", 0)).unwrap();
    assert_eq!(gpuio_gpu::pattern::check(&bytes[..8 * 8192], 77, 0), None);
}
