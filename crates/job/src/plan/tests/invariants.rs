//! Whatever is requested: no panic, and a plan that is accepted can be carried out.

use std::cell::Cell;

use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::*;
use crate::spec::{Dialect, Origin, apply};
use crate::workload::blocks;
use crate::workload::sequence::BlockSequence;

/// Keys, and values of each; a number where there is none.
const KEYS: &[(&str, &str)] = &[
    ("rw", "read write randread randwrite rw randrw"),
    ("bs", "512 1k 4k 64k 1m 2m 0 4097 4g 4k:64k:512 512:5000:9 4k-1m"),
    ("bssplit", "4k/60:64k/40 512/13:4k/ 1m/100 4097/50:4k/50 4k/0:8k/100"),
    ("depth", ""),
    ("random_distribution", "random zipf:0.9 zipf:1.2 pareto:0.2 normal:10"),
    ("norandommap", "0 1"),
    ("align", ""),
    ("unaligned", "0 1"),
    ("rwmixread", ""),
    ("verify", "off pass inline"),
    ("memory", "device vmm pinned malloc"),
    (
        "path",
        "host staged cached gather mapped initiated gds-stream gds-batch gds-batch-stream library \
         library-stream library-batch all none host,staged gather,mapped",
    ),
    ("engine", "psync io_uring mmap null"),
    ("threads", "1 2 3 4 5 6 7 8 1 2 3 4 5 6 7 8 4294967295"),
    (
        "filename",
        "/have8g /have64g /have100k /coarse/have1g /refuses/have2g /device /absent relative /isdir \
         /unknown/have4g /have8g:/device /have64g:/absent:relative /have100k:/coarse/have1g",
    ),
    ("directory", "/d /small /coarse / /d:/small"),
    ("size", ""),
    ("offset", ""),
    ("direct", "0 1"),
    ("shared_files", "0 1"),
    ("gpu", "none all 0 1 2 3 0,2 1,1"),
    ("numa", "0 1 2 3"),
    ("runtime", ""),
    ("ramp", ""),
    ("io_size", ""),
    ("loops", ""),
    ("time_based", "0 1"),
    ("rate_iops", ""),
    ("arrivals", "steady poisson"),
    ("streams", "1 2 3 4 8"),
    ("seed", ""),
    ("stonewall", "0 1"),
];

fn number() -> impl Strategy<Value = u64> {
    let round = (0_u32..45).prop_map(|bits| 1_u64 << bits);
    prop_oneof![
        6 => round.clone(),
        3 => (round, 1_u64..10).prop_map(|(unit, count)| unit * count),
        1 => any::<u64>(),
        4 => 0_u64..100,
    ]
}

fn setting() -> impl Strategy<Value = (&'static str, String)> {
    (select(KEYS), any::<Index>(), number()).prop_map(|((key, words), at, number)| {
        let words: Vec<&str> = words.split_whitespace().collect();
        let number = || number.to_string();
        (key, if words.is_empty() { number() } else { (*at.get(&words)).to_owned() })
    })
}

/// Mostly jobs that leave most to the defaults: the others are refused for something or other. A
/// value that its key does not take is left out.
fn some_job() -> impl Strategy<Value = JobSpec> {
    let settings = prop_oneof![
        3 => prop::collection::vec(setting(), 0..6),
        1 => prop::collection::vec(setting(), 6..20),
    ];
    let dialects = select(vec![Dialect::Native, Dialect::Fio, Dialect::Gdsio]);
    (settings, of(dialects), "[ab](#2)?", any::<bool>()).prop_map(
        |(settings, dialect, name, one_of_many)| {
            let mut job = JobSpec { name, dialect, one_of_many, ..JobSpec::default() };
            for (key, value) in settings {
                let _ = apply(&mut job, key, &value, Origin::Flag("--x"));
            }
            job
        },
    )
}

fn any_bench() -> impl Strategy<Value = Bench> {
    let missing: Vec<&'static [&'static str]> = vec![&[], &["io_uring"], &["io_uring", "libaio"]];
    (any::<bool>(), any::<bool>(), select(missing)).prop_map(|(with_gpus, numa, missing)| {
        let mut bench = Bench { missing, ..Bench::default() };
        if !with_gpus {
            bench.gpus = no_gpus();
        }
        if !numa {
            bench.host.numa.nodes.clear();
        }
        bench
    })
}

fn holds_together(plan: &Plan) {
    let names: BTreeSet<&str> = plan.jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names.len(), plan.jobs.len(), "names are unique");
    assert_eq!(plan.jobs[0].group, 0);
    for pair in plan.jobs.windows(2) {
        assert!(matches!(pair[1].group - pair[0].group, 0 | 1), "groups follow one another");
    }
    assert!(plan.interval_ns >= 100_000_000);
    plan.jobs.iter().for_each(job_holds_together);
}

fn job_holds_together(job: &JobPlan) {
    assert_eq!(job.workers.len(), job.threads as usize);
    assert!(job.depth > 0 && job.streams <= job.depth);
    assert_eq!(job.blocks.iter().map(|block| u32::from(block.percent)).sum::<u32>(), 100);
    let bounds = [job.stop.runtime_ns, job.stop.bytes_per_thread];
    assert!(bounds.iter().flatten().count() > 0, "something ends it");
    assert!(bounds.iter().flatten().all(|bound| *bound > 0));
    let longest = job.stop.runtime_ns.unwrap_or(0).checked_add(job.ramp_ns);
    assert!(longest.is_some_and(|sum| sum.checked_add(job.start_delay_ns).is_some()));
    let path = gpuio_io::CATALOG.path(&job.path.choice.actual).unwrap();
    assert_eq!(path.uses_engine(), gpuio_io::CATALOG.engine(&job.engine.actual).is_some());
    assert_eq!(path.uses_cufile(), job.register_buffer.is_some());
    assert_eq!(path.streams, job.streams > 0);
    assert_eq!(path.batches, job.gather_batch.is_some());
    assert_eq!(path.batches && path.uses_engine(), job.gather_scatter.is_some());
    assert!(job.gather_batch.is_none_or(|batch| (1..=job.depth).contains(&batch)));
    assert_eq!(path.uses_rings(), job.rings.is_some());
    let holds = |rings| (1..=job.depth).contains(&rings) && job.depth.div_ceil(rings) <= 64;
    assert!(job.rings.is_none_or(holds));
    assert!(!path.needs_gpu || !job.gpus.is_empty());
    regions_fit(job);
    blocks_fit(job);
}

fn regions_fit(job: &JobPlan) {
    let largest = job.blocks.iter().map(|block| block.max_bytes).max().unwrap();
    let mut spans: Vec<(u32, u64, u64)> = Vec::new();
    for worker in &job.workers {
        assert!(worker.gpu.is_none_or(|gpu| (gpu as usize) < job.gpus.len()));
        for region in &worker.regions {
            let end = region.end();
            assert!(end <= job.targets[region.target as usize].length_bytes);
            assert!(region.length >= largest, "a block fits");
            spans.push((region.target, region.offset, end));
        }
    }
    spans.sort_unstable();
    if job.shared_files || job.directory.is_some() {
        for pair in spans.windows(2) {
            assert!(pair[0].0 < pair[1].0 || pair[0].2 <= pair[1].1, "{pair:?} overlap");
        }
    }
}

/// The first blocks of the workers: inside their regions and on the alignment.
fn blocks_fit(job: &JobPlan) {
    let unit = blocks::unit(job);
    for worker in &job.workers {
        let config = blocks::config(job, worker, Some);
        let mut blocks = BlockSequence::new(&config).unwrap_or_else(|error| panic!("{error}"));
        for _ in 0..20 {
            let Some(block) = blocks.next() else {
                assert!(config.passes.is_some(), "timed blocks have no end");
                break;
            };
            let end = block.offset + u64::from(block.len);
            let inside = |region: &gpuio_record::Region| {
                region.target == block.file
                    && region.offset <= block.offset
                    && end <= region.offset + region.length
            };
            assert!(worker.regions.iter().any(inside), "{block:?}");
            assert!((block.offset - job.skew_bytes).is_multiple_of(unit));
            assert!(u64::from(block.len).is_multiple_of(unit));
        }
    }
}

#[test]
fn an_accepted_plan_can_be_carried_out() {
    let mut runner = TestRunner::new_with_rng(
        Config { failure_persistence: None, ..Config::with_cases(4500) },
        TestRng::deterministic_rng(RngAlgorithm::ChaCha),
    );
    let jobs = prop::collection::vec(some_job(), 1..4);
    let accepted = Cell::new(0);
    let outcome = runner.run(&(jobs, any_bench()), |(jobs, bench)| {
        let spec = Spec { name: None, jobs };
        let planned = bench.plan(&spec);
        if let Ok(plan) = &planned {
            accepted.set(accepted.get() + 1);
            holds_together(plan);
        }
        prop_assert_eq!(planned, bench.plan(&spec), "the same ask, the same answer");
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    assert!(accepted.get() > 500, "only {} plans were looked at", accepted.get());
}
