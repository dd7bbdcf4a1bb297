//! Whatever is requested: no panic, and a plan that is accepted can be carried out.

use std::cell::Cell;

use gpuio_record::Arrivals;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::*;
use crate::spec::{Dialect, GpuRequest, GpuWhich, Rw};
use crate::workload::blocks;
use crate::workload::sequence::BlockSequence;

fn bytes() -> impl Strategy<Value = u64> {
    let round = (0_u32..45).prop_map(|bits| 1_u64 << bits);
    prop_oneof![
        6 => round.clone(),
        3 => (round, 1_u64..10).prop_map(|(unit, count)| unit * count),
        1 => any::<u64>(),
        1 => 0_u64..10_000,
    ]
}

fn blocks() -> impl Strategy<Value = Vec<BlockShare>> {
    let size = prop_oneof![
        5 => (9_u32..22).prop_map(|bits| 1_u64 << bits),
        1 => 0_u64..5_000_000_000,
    ];
    let one = size.clone().prop_map(|size| {
        vec![BlockShare { min_bytes: size, max_bytes: size, step_bytes: 0, percent: 100 }]
    });
    let share =
        (size.clone(), size, 0_u64..9000, 0_u8..=100).prop_map(|(min, more, step, percent)| {
            let max_bytes = min.saturating_add(more);
            let step_bytes = if max_bytes == min { 0 } else { step };
            BlockShare { min_bytes: min, max_bytes, step_bytes, percent }
        });
    let many = prop::collection::vec(share, 1..4).prop_map(|mut shares| {
        let mut left = 100_u8;
        for share in &mut shares {
            share.percent = share.percent.min(left);
            left -= share.percent;
        }
        // Mostly whole, sometimes not.
        shares[0].percent += if left == 13 { 0 } else { left };
        shares
    });
    prop_oneof![3 => one, 1 => many]
}

fn filenames() -> impl Strategy<Value = Vec<String>> {
    let name = select(vec![
        "/have8g",
        "/have64g",
        "/have100k",
        "/coarse/have1g",
        "/refuses/have2g",
        "/device",
        "/absent",
        "relative",
        "/isdir",
        "/unknown/have4g",
    ]);
    prop::collection::vec(name.prop_map(str::to_owned), 1..4)
}

fn distributions() -> impl Strategy<Value = Distribution> {
    use Distribution as D;
    select(vec![
        D::Uniform,
        D::Zipf { theta: 0.9 },
        D::Zipf { theta: 1.2 },
        D::Pareto { h: 0.2 },
        D::Normal { deviation_percent: 10.0 },
        D::Zipf { theta: f64::NAN },
        D::Pareto { h: 2.0 },
    ])
}

fn gpu() -> impl Strategy<Value = GpuRequest> {
    let which = prop_oneof![
        Just(GpuWhich::Unset),
        Just(GpuWhich::None),
        Just(GpuWhich::All),
        prop::collection::vec(0_u32..4, 1..3).prop_map(GpuWhich::List),
    ];
    which.prop_map(|which| GpuRequest { driver: None, which })
}

fn threads() -> impl Strategy<Value = u32> {
    prop_oneof![20 => 1_u32..9, 1 => Just(0), 1 => Just(u32::MAX)]
}

prop_compose! {
    fn load()(
        rw in of(select(vec![
            Rw::Read, Rw::Write, Rw::RandRead, Rw::RandWrite, Rw::ReadWrite, Rw::RandRw,
        ])),
        blocks in of(blocks()),
        depth in of(prop_oneof![0_u32..70, any::<u32>()]),
        distribution in of(distributions()),
        coverage in of(any::<bool>()),
        align in of(bytes()),
        unaligned in of(any::<bool>()),
        read_percent in of(0_u8..=100),
        verify in of(select(vec![VerifyMode::Off, VerifyMode::Pass, VerifyMode::Inline])),
        memory in of(select(vec![
            MemoryKind::Device, MemoryKind::Vmm, MemoryKind::Pinned, MemoryKind::Malloc,
        ])),
    ) -> JobSpec {
        JobSpec {
            rw, blocks, depth, distribution, coverage, align, unaligned, read_percent, verify,
            memory, ..JobSpec::new("job")
        }
    }
}

prop_compose! {
    fn place()(
        paths in of(prop::collection::vec(
            select(vec![
                "host", "staged", "cached", "gather", "mapped", "gds-stream", "gds-batch",
                "gds-batch-stream", "library", "library-stream", "library-batch", "all", "none",
            ])
                .prop_map(str::to_owned),
            1..3,
        )),
        engine in of(select(vec!["psync", "io_uring", "mmap", "null"]).prop_map(str::to_owned)),
        threads in of(threads()),
        filenames in of(filenames()),
        directory in of(select(vec!["/d", "/small", "/coarse", "/"]).prop_map(str::to_owned)),
        size in of(bytes()),
        offset in of(prop_oneof![Just(0), bytes()]),
        direct in of(any::<bool>()),
        shared_files in of(any::<bool>()),
        gpu in of(gpu()),
        numa in of(0_u32..4),
    ) -> JobSpec {
        JobSpec {
            paths, engine, threads, filenames, directory, size, offset, direct, shared_files, gpu,
            numa, ..JobSpec::new("job")
        }
    }
}

prop_compose! {
    fn time()(
        runtime_ns in of(prop_oneof![0_u64..100_000_000_000, any::<u64>()]),
        ramp_ns in of(prop_oneof![0_u64..1_000_000_000, any::<u64>()]),
        io_size in of(bytes()),
        loops in of(prop_oneof![1_u64..5, any::<u64>()]),
        time_based in of(any::<bool>()),
        rate_iops in of(1_u64..1_000_000),
        arrivals in of(select(vec![Arrivals::Steady, Arrivals::Poisson])),
        streams in of(1_u32..9),
        seed in of(any::<u64>()),
        stonewall in of(any::<bool>()),
        dialect in of(select(vec![Dialect::Native, Dialect::Fio, Dialect::Gdsio])),
    ) -> JobSpec {
        JobSpec {
            runtime_ns, ramp_ns, io_size, loops, time_based, rate_iops, arrivals, streams, seed,
            stonewall, dialect, ..JobSpec::new("job")
        }
    }
}

prop_compose! {
    fn any_job()(load in load(), place in place(), time in time(), name in "[ab](#2)?") -> JobSpec {
        JobSpec {
            name,
            rw: load.rw,
            blocks: load.blocks,
            depth: load.depth,
            distribution: load.distribution,
            coverage: load.coverage,
            align: load.align,
            unaligned: load.unaligned,
            read_percent: load.read_percent,
            verify: load.verify,
            memory: load.memory,
            runtime_ns: time.runtime_ns,
            ramp_ns: time.ramp_ns,
            io_size: time.io_size,
            loops: time.loops,
            time_based: time.time_based,
            rate_iops: time.rate_iops,
            arrivals: time.arrivals,
            streams: time.streams,
            seed: time.seed,
            stonewall: time.stonewall,
            dialect: time.dialect,
            ..place
        }
    }
}

/// Mostly jobs that leave most to the defaults: the others are refused for something or other.
fn some_job() -> impl Strategy<Value = JobSpec> {
    prop_oneof![load(), place(), time(), any_job()]
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

/// What the workers would do at first: inside their regions and on the alignment.
fn blocks_fit(job: &JobPlan) {
    let unit = blocks::unit(job);
    for worker in &job.workers {
        let config = blocks::config(job, worker, Some);
        let mut blocks = BlockSequence::new(&config).unwrap_or_else(|error| panic!("{error}"));
        for _ in 0..20 {
            let block = blocks.next().expect("timed blocks have no end");
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
        Config { failure_persistence: None, ..Config::with_cases(9000) },
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
    assert!(accepted.get() > 1000, "only {} plans were looked at", accepted.get());
}
