//! Known rates and losses, by hand-made launches.

use gpuio_record::{CacheReading, DirectMode};

use super::super::launch_spans::{LaunchSpan, LaunchSpans};
use super::*;
use gpuio_testkit::jobs::{job, result};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;

fn seconds(begin: u64, end: u64) -> TimeSpan {
    TimeSpan { begin_ns: begin * SECOND, end_ns: end * SECOND }
}

/// Launches one behind the other: 1 ms each, `beside_us` from second 1 to second 11, and
/// `after_us` from then on.
fn done(beside_us: u64, after_us: u64) -> Computed {
    let mut spans = LaunchSpans::default();
    let mut begin = 0;
    while begin < 12 * SECOND {
        let us = match begin / SECOND {
            0 => 1000,
            1..11 => beside_us,
            _ => after_us,
        };
        let end = begin + 2 * us * 1000;
        spans.push(LaunchSpan { begin, end, busy: (end - begin) as f64, launches: 2 });
        begin = end;
    }
    Computed {
        multiprocessors: 132,
        blocks: 66,
        occupied: 66,
        launch_work: 1_000_000,
        spans,
        cpu_ns: 5,
        failed: None,
    }
}

fn learned(done: Computed) -> Learned {
    Learned { gpus: vec![(0, done)], before: seconds(0, 1), after: seconds(11, 12) }
}

fn on_gpu() -> JobPlan {
    let gpu = Gpu {
        index: 0,
        name: "test GPU".into(),
        uuid: String::new(),
        pci: String::new(),
        numa_node: None,
        memory_bytes: 1 << 30,
        software: false,
        managed_hints: None,
        read_only_register: None,
    };
    // Two threads that go to the same one.
    JobPlan { gpus: vec![gpu.clone(), gpu], ..job("rw=read\npath=host") }
}

/// Ten seconds from second 1 on at so many bytes per second.
fn moved(job: &JobPlan, bytes_per_s: f64) -> JobResult {
    let mut result = result(job, 100_000);
    result.measured = Some(seconds(1, 11));
    result.read.bytes_per_s = bytes_per_s;
    result.cache = CacheReading { resident_before: Some(0.5), ..CacheReading::default() };
    result.direct_actual = DirectMode::Direct;
    result
}

fn beside(done: Computed, change: impl Fn(&mut JobResult, &mut JobResult)) -> ComputationCost {
    let job = on_gpu();
    let (mut is, mut alone) = (moved(&job, 3e9), moved(&job, 4e9));
    change(&mut is, &mut alone);
    learned(done).of_job(&job, &is, &alone)
}

#[test]
fn a_known_loss_of_both_is_reported() {
    let found = beside(done(1250, 1000), |_, _| {});
    assert_eq!(found.io_ratio, Some(0.75));
    assert_eq!(found.io_unknown, None);
    let [gpu] = &found.gpus[..] else { panic!("one GPU: {:#?}", found.gpus) };
    // A thousand launches in a second of a million operations each, and 800.
    assert!((gpu.before_per_s.unwrap() - 1e9).abs() < 1.0, "{gpu:#?}");
    assert!((gpu.after_per_s.unwrap() - 1e9).abs() < 1.0, "{gpu:#?}");
    assert!((gpu.beside_per_s.unwrap() - 0.8e9).abs() < 1.0, "{gpu:#?}");
    assert!((gpu.ratio.unwrap() - 0.8).abs() < 1e-9, "{gpu:#?}");
    assert!((7990..=8000).contains(&gpu.launches), "{gpu:#?}");
    assert_eq!((gpu.multiprocessors, gpu.blocks, gpu.occupied), (132, 66, 66));
    assert_eq!(found.lowest().map(|gpu| gpu.index), Some(0));
    assert_eq!(found.alone.read.bytes_per_s, 4e9);
}

#[test]
fn a_gpu_whose_own_speed_changes_is_no_measure() {
    let found = beside(done(1000, 1100), |_, _| {});
    let gpu = &found.gpus[0];
    assert_eq!(gpu.ratio, None);
    assert_eq!(
        gpu.unknown.as_deref(),
        Some("its own speed changed by -9.1 % from before the job to after it")
    );
    assert!(found.lowest().is_none());
    // Within 5 % the mean of both is what it is held against.
    let found = beside(done(1000, 1040), |_, _| {});
    let ratio = found.gpus[0].ratio.unwrap();
    assert!((ratio - 2.0 / (1.0 + 1.0 / 1.04)).abs() < 1e-4, "{ratio}");
}

#[test]
fn too_little_is_unknown_with_its_reason() {
    let why = |change: fn(&mut JobResult, &mut JobResult)| {
        let found = beside(done(1000, 1000), change);
        assert_eq!(found.io_ratio.is_some(), found.io_unknown.is_none());
        found.io_unknown.unwrap_or_default()
    };
    assert_eq!(why(|_, _| {}), "");
    let few = why(|_, alone| alone.read.ios = 99);
    assert_eq!(few, "alone there were 99 I/Os in 10.0 s; run it longer");
    let short = why(|is, _| is.measured = Some(TimeSpan { begin_ns: 0, end_ns: 999 * MS }));
    assert!(short.starts_with("beside the computation there were"), "{short}");
    let failed = why(|is, _| is.failed = 3);
    assert_eq!(failed, "beside the computation 3 of its I/Os failed");
    let cut = why(|_, alone| alone.ended = EndedHow::Interrupted);
    assert_eq!(cut, "alone the job did not end as planned");
    let warmer = why(|is, _| is.cache.resident_before = Some(1.0));
    assert!(warmer.contains("50 % of its files in the page cache"), "{warmer}");
    assert!(warmer.contains("--pre-read or --invalidate"), "{warmer}");
    // It is not known how the files were cached: that is no difference.
    assert_eq!(why(|_, alone| alone.cache.resident_before = None), "");
}

#[test]
fn a_computation_that_failed_or_hardly_ran_has_no_ratio() {
    let found =
        beside(Computed { failed: Some("launch failed".into()), ..done(1000, 1000) }, |_, _| {});
    assert_eq!(found.gpus[0].unknown.as_deref(), Some("the computation failed: launch failed"));
    assert_eq!(found.io_unknown.as_deref(), Some("it is not known how busy GPU 0 was"));
    let found = beside(done(1000, 1000), |is, _| is.measured = None);
    let unknown = found.gpus[0].unknown.as_deref();
    assert_eq!(unknown, Some("the job ended without a result of every thread"));
    // Launches of half a second: 20 of them, two in a span, begin and end while the job counts.
    let found = beside(done(600_000, 1000), |_, _| {});
    let unknown = found.gpus[0].unknown.as_deref().unwrap();
    assert!(unknown.starts_with("beside the job: only"), "{unknown}");
}
