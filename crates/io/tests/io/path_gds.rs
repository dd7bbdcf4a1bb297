//! cuFile's failures on path `gds`: each reaches its request, or is reported at open with what to
//! do, and nothing hangs. On the stand-in only: nobody can make NVIDIA's library fail at will.
#![allow(unsafe_code)]

use std::sync::atomic::Ordering;

use crate::path_support::model::{Model, Tally, steps};
use crate::path_support::{LEN, Rig, Setup, child, context, skipped, to_slot};
use gpuio_gpu::MemoryKind;
use gpuio_io::clock::Clock;
use gpuio_io::engine::{IoFault, Op};
use gpuio_io::path::{Completion, Fault, Leg, Path, PathError, PatternBlock, cufile_words};

fn setup() -> Setup {
    Setup::new("gds", "psync", MemoryKind::Device)
}

/// Runs a child of this program with cuFile failing so, unless the system's GPU is tested.
fn failing(fail: &str, test: impl Fn()) {
    if child::is_child(&test) {
        return test();
    }
    if !skipped(child::name(&test)) {
        child::passes_case(test, fail, &[("GPUIO_SOFT_CUFILE_FAIL", fail)]);
    }
}

/// 40 requests on a path, what they said, and how many were reads.
fn run(setup: &Setup) -> (Tally, usize) {
    let (context, rig) = (context(), Rig::new(false).unwrap());
    let mut model = Model::new(setup, &rig, &context);
    let steps = steps(40, false);
    for step in &steps {
        model.start(step);
    }
    model.drain();
    let reads = steps.iter().filter(|step| step.op == Op::Read).count();
    (model.finish(), reads)
}

#[test]
fn codes_of_cufile_are_their_requests_alone() {
    failing("cuFileRead:5011:2:3", || {
        let (tally, reads) = run(&setup());
        let fault = Fault::Cufile(5011);
        assert!(reads > 6);
        assert_eq!(tally.failed, vec![(Op::Read, fault); 3]);
        assert_eq!(fault.leg(), None);
        assert!(cufile_words(5011).contains("CUDA_DRIVER_ERROR"), "{}", cufile_words(5011));
    });
}

#[test]
fn an_errno_of_the_file_is_one() {
    failing("cuFileWrite:5:4:1", || {
        let (tally, _) = run(&setup());
        let fault = Fault::File(IoFault::Errno(libc::EIO));
        assert_eq!(tally.failed, [(Op::Write, fault)]);
        assert_eq!(fault.leg(), Some(Leg::File));
    });
}

#[test]
fn a_short_transfer_goes_on() {
    failing("cuFileRead:short,cuFileWrite:short", || {
        let (context, rig) = (context(), Rig::new(false).unwrap());
        let config = setup().config(&rig, &context);
        let counters = std::sync::Arc::clone(&config.counters);
        let mut path = (setup().path.open)(config).unwrap().path;
        let completed = read(path.as_mut(), 4096, 8192);
        assert_eq!(completed.result, Ok(()));
        assert_eq!(path.check(PatternBlock::new(0, rig.key(0), 4096, 8192)).unwrap(), None);
        // One request, however many calls: each moved half of what was left, down to one byte.
        assert_eq!(counters.short_ios.load(Ordering::Relaxed), 1);
        assert_eq!(counters.read.ios.load(Ordering::Relaxed), 1);
        assert_eq!(counters.read.bytes.load(Ordering::Relaxed), 8192);
        drop(path);
        let (tally, _) = run(&setup());
        assert_eq!(tally.failed, []);
    });
}

fn read(path: &mut dyn Path, offset: u64, len: u32) -> Completion {
    let clock = Clock::start();
    let now = clock.now();
    let request = to_slot(Op::Read, 0, offset, len, 0, now);
    path.start(&clock, request);
    assert_eq!(path.in_flight(), 1);
    let mut completed = Vec::new();
    path.advance(&clock, &mut completed, true).unwrap();
    assert_eq!((completed.len(), path.in_flight()), (1, 0));
    completed[0]
}

#[test]
fn a_file_that_is_too_short_is_reported() {
    let (context, rig) = (context(), Rig::new(false).unwrap());
    rig.files[0].set_len(LEN - 4096).unwrap();
    let mut path = setup().open(&rig, &context).unwrap().path;
    for (offset, actual) in [(LEN - 8192, 4096), (LEN, 0)] {
        let completed = read(path.as_mut(), offset, 8192);
        assert_eq!(completed.result, Err(Fault::File(IoFault::EndOfFile(actual))));
        assert_eq!(completed.gpu_ns, 0);
    }
}

#[test]
#[ignore = "run as a child"]
fn child_open() {
    let fail = child::case();
    let (context, rig) = (context(), Rig::new(false).unwrap());
    let error = setup().open(&rig, &context).unwrap_err().to_string();
    let (call, code) = fail.split_once(':').unwrap();
    for word in ["path gds", call, code] {
        assert!(error.contains(word), "{word:?} is not in {error:?}");
    }
    if call == "cuFileHandleRegister" {
        // The file is named.
        assert!(error.contains(rig.name("file", 0).to_str().unwrap()), "{error}");
    } else {
        assert!(error.contains("-b"), "{error}");
        // Without registration there is nothing to refuse.
        let unregistered = Setup { register: false, ..setup() };
        unregistered.open(&rig, &context).unwrap();
    }
}

#[test]
fn a_refused_file_or_buffer_is_reported_at_open() {
    failing("cuFileHandleRegister:5027", child_open);
    failing("cuFileBufRegister:5016", child_open);
}

#[test]
fn what_the_path_lacks_is_reported_with_what_to_do() {
    let (context, rig) = (context(), Rig::new(false).unwrap());
    let refused = |change: &dyn Fn(&mut gpuio_io::path::PathConfig), word: &str| {
        let mut config = setup().config(&rig, &context);
        change(&mut config);
        let error = (setup().path.open)(config).unwrap_err();
        assert!(matches!(error, PathError::Setup { .. }));
        assert!(error.to_string().contains(word), "{error}");
    };
    refused(&|config| config.gpu = None, "--gpu");
    refused(&|config| config.cufile = None, "gpuio list");
    refused(&|config| config.inject = Some("eio=1%".parse().unwrap()), "no engine");
}

/// As NVIDIA's library 1.15 answers: the flag stays on the descriptor (open(2), fcntl(2)).
#[test]
fn a_descriptor_with_o_nofollow_is_refused() {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::OpenOptionsExt;
    let (context, rig) = (context(), Rig::new(false).unwrap());
    let mut options = std::fs::File::options();
    options.read(true).write(true).custom_flags(libc::O_NOFOLLOW | libc::O_DIRECT);
    let file = options.open(rig.name("file", 0)).unwrap();
    let mut config = setup().config(&rig, &context);
    config.files[0].fd = file.as_raw_fd();
    let error = (setup().path.open)(config).unwrap_err().to_string();
    for word in ["cuFileHandleRegister", "5019", "O_NOFOLLOW"] {
        assert!(error.contains(word), "{word:?} is not in {error:?}");
    }
}

#[test]
fn the_record_says_which_library_moved_the_bytes() {
    let (context, rig) = (context(), Rig::new(false).unwrap());
    let opened = setup().open(&rig, &context).unwrap();
    assert!(opened.actual_engine.starts_with("cuFile "), "{}", opened.actual_engine);
    assert_eq!(opened.actual_engine.contains("stand-in"), !crate::path_support::on_system());
}
