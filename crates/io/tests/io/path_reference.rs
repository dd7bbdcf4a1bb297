//! Every path over every engine against plain pread(2) and pwrite(2) on references of its files.
//!
//! The software GPU holds every copy back, so that a wait that is missing shows as wrong bytes.
//! With `GPUIO_TEST_GPU=system` all of it runs on the system's GPU.
#![allow(unsafe_code)]

use crate::engine_support::on_any_file;
use crate::path_support::model::{Model, Step, step};
use crate::path_support::{Rig, Setup, child, context, kinds, on_system};
use gpuio_gpu::{Context, MemoryKind};
use gpuio_io::path::{PATHS, rings_available};
use proptest::test_runner::{Config, TestRunner};

/// The wait of the software GPU before it touches memory, µs.
const DELAY_US: &str = "300";

fn same_as_reference(setup: &Setup, direct: bool, context: &Context, steps: &[Step]) {
    let Some(rig) = Rig::of(setup, direct) else { return };
    let mut model = Model::new(setup, &rig, context);
    if !on_system() {
        // A kernel that stays is launched once, and each block takes its reference's own 20 us.
        let stays = ["resident", "initiated"].contains(&setup.path.info.name);
        model.copy_ns = if stays { 20_000 } else { DELAY_US.parse::<u64>().unwrap() * 1000 };
    }
    for step in steps {
        model.start(step);
    }
    model.drain();
    model.write_slots();
    let tally = model.finish();
    assert_eq!(tally.failed, []);
}

/// All depths and streams of one path, engine and memory.
fn references(path: &str, engine: &str, memory: MemoryKind, context: &Context) {
    let base = Setup::new(path, engine, memory);
    let streams: &[u32] = if base.path.info.needs_gpu { &[1, 2, 5] } else { &[1] };
    for direct in [false, true] {
        if direct && base.path.info.buffered_only {
            continue;
        }
        // One request in flight is in one stream.
        for (depth, batch, streams) in [(1, 1, &streams[..1]), (4, 2, streams), (9, 4, streams)] {
            for &streams in streams {
                // Whether a batch is one run of slots, or could be, is the gather path's matter.
                let setup = base.with(depth, streams).batches(batch, streams != 2);
                let setup = Setup { register: streams != 5, ..setup };
                let runs = Config {
                    cases: 1,
                    failure_persistence: None,
                    max_shrink_iters: 100,
                    ..Config::default()
                };
                let steps = proptest::collection::vec(step(direct), 1..30);
                let outcome = TestRunner::new(runs).run(&steps, |steps| {
                    same_as_reference(&setup, direct, context, &steps);
                    Ok(())
                });
                if let Err(failure) = outcome {
                    panic!("{setup:?}, direct {direct}: {failure}");
                }
            }
        }
    }
}

#[test]
#[ignore = "run as a child"]
fn child_twins() {
    let case = child::case();
    let (path, engine) = case.split_once(' ').unwrap();
    let setup = Setup::new(path, engine, MemoryKind::Malloc);
    if setup.lacking() {
        return;
    }
    let context = context();
    std::thread::scope(|scope| {
        for memory in kinds(setup.path) {
            let context = &context;
            scope.spawn(move || references(path, engine, memory, context));
        }
    });
}

/// The children mostly wait for the software GPU, so those of one path run at once.
fn every_engine(path: &str) {
    std::thread::scope(|scope| {
        for engine in on_any_file() {
            scope.spawn(move || {
                let case = format!("{path} {}", engine.info.name);
                child::passes_case(child_twins, &case, &[("GPUIO_SOFT_DELAY_US", DELAY_US)]);
            });
        }
    });
}

#[test]
fn every_path_of_the_table_has_a_reference_test() {
    let mut this = std::process::Command::new(std::env::current_exe().unwrap());
    let listed = this.args(["--list", "--format", "terse"]).output().unwrap().stdout;
    let listed = String::from_utf8(listed).unwrap();
    let tests: Vec<&str> = listed.lines().filter_map(|line| line.strip_suffix(": test")).collect();
    for row in PATHS {
        let test = format!("path_reference::path_{}", row.info.name.replace('-', "_"));
        assert!(tests.contains(&test.as_str()), "path {} has no test {test}", row.info.name);
    }
}

gpuio_testkit::tests! {
    path_host: every_engine("host");
    path_staged: every_engine("staged");
    path_cached: every_engine("cached");
    path_managed: every_engine("managed");
    path_routed: every_engine("routed");
    path_fan_out: every_engine("fan-out");
    path_gather: every_engine("gather");
    path_resident: every_engine("resident");
}

#[test]
fn path_initiated() {
    if let Err(why) = rings_available() {
        return eprintln!("skipped: {why}");
    }
    library("initiated");
}

/// A library or the GPU moves the bytes: which engine a setup names is all one.
fn library(path: &str) {
    let case = format!("{path} psync");
    child::passes_case(child_twins, &case, &[("GPUIO_SOFT_DELAY_US", DELAY_US)]);
}

gpuio_testkit::tests! {
    path_library: library("library");
    path_library_stream: library("library-stream");
    path_library_batch: library("library-batch");
    path_gds: library("gds");
    path_gds_stream: library("gds-stream");
    path_gds_batch: library("gds-batch");
    path_gds_batch_stream: library("gds-batch-stream");
}

/// `path_mapped.rs` has mappings that can only be read.
#[test]
fn path_mapped() {
    library("mapped");
}
