//! The expected rates of a plan's jobs on a guide's server.

use gpuio_machine::flow::{Figures, of_jobs, of_ranks, portions_of_jobs};
use gpuio_record::facts::{MountFacts, TargetStorage};
use gpuio_record::{
    BlockShare, DirectMode, Gpu, JobExpected, JobPlan, Order, Pacing, Plan, Towards,
};
use gpuio_testkit::machines::{DGX_2, read};

/// Random reads and writes of 4 KiB on `/raid` (eight drives, RAID 0), 70 to 30, 32 in flight.
fn plan() -> Plan {
    serde_json::from_str(include_str!("fixtures/plan.json")).unwrap()
}

fn storage() -> Vec<TargetStorage> {
    let mount = MountFacts { mount_point: "/raid".to_owned(), ..MountFacts::default() };
    let path = "/raid/data".to_owned();
    vec![TargetStorage { path, mount: Some(mount), ..TargetStorage::default() }]
}

fn of(change: &dyn Fn(&mut Plan)) -> Vec<JobExpected> {
    let mut plan = plan();
    change(&mut plan);
    of_jobs(&read(DGX_2), &Figures::built_in(), &plan, &storage())
}

fn large_reads(job: &mut JobPlan) {
    job.read_percent = 100;
    job.order = Order::Sequential;
    job.blocks[0].min_bytes = 1 << 20;
    job.blocks[0].max_bytes = 1 << 20;
    job.threads = 16;
}

fn gpu(pci: &str, software: bool) -> Gpu {
    Gpu {
        index: 0,
        name: "GPU".to_owned(),
        uuid: String::new(),
        pci: pci.to_owned(),
        numa_node: None,
        memory_bytes: 1 << 30,
        software,
        managed_hints: None,
        read_only_register: None,
    }
}

fn near(found: Option<f64>, wanted: f64) {
    let found = found.unwrap();
    assert!((found / wanted - 1.0).abs() < 0.005, "{found} for {wanted}");
}

#[test]
fn eight_drives_are_read_at_eight_times_the_rate_of_one() {
    let all = of(&|plan| large_reads(&mut plan.jobs[0]));
    assert_eq!((all.len(), all[0].direction), (1, Towards::Read));
    near(all[0].expected.bytes_per_s, 8.0 * 3.5e9);
    let bottleneck = all[0].expected.bottleneck.as_deref().unwrap();
    assert!(bottleneck.starts_with("nvme2n1, nvme3n1, nvme4n1 and 5 more: 3.50 GB/s read"));
}

#[test]
fn a_bounce_to_one_gpu_ends_at_its_link() {
    let all = of(&|plan| {
        large_reads(&mut plan.jobs[0]);
        plan.jobs[0].path.choice.actual = "staged".to_owned();
        plan.jobs[0].gpus = vec![gpu("0000:39:00.0", false)];
    });
    near(all[0].expected.bytes_per_s, 15.753846e9 * 256.0 / 280.0);
    let bottleneck = all[0].expected.bottleneck.as_deref().unwrap();
    assert!(bottleneck.contains("link above 0000:39:00.0"), "{bottleneck}");
    assert!(all[0].expected.because.iter().any(|line| line.contains("NUMA nodes")));
}

#[test]
fn peers_beyond_the_root_complex_have_no_figure() {
    let all = of(&|plan| {
        large_reads(&mut plan.jobs[0]);
        plan.jobs[0].path.choice.actual = "gds".to_owned();
        plan.jobs[0].gpus = vec![gpu("0000:39:00.0", false)];
    });
    assert_eq!(all[0].expected.bytes_per_s, None);
    assert!(all[0].expected.unknown.as_deref().unwrap().contains("root complex"));
    near(all[0].expected.at_most, 15.753846e9 * 256.0 / 280.0);
}

#[test]
fn a_mix_keeps_its_ratio() {
    let all = of(&|plan| plan.jobs[0].threads = 1000);
    let rates: Vec<f64> = all.iter().map(|one| one.expected.bytes_per_s.unwrap()).collect();
    assert_eq!([all[0].direction, all[1].direction], [Towards::Read, Towards::Write]);
    near(Some(rates[0] / rates[1]), 70.0 / 30.0);
    // A drive's time: 0.7 / 840 k + 0.3 / 285 k for each I/O.
    near(Some((rates[0] + rates[1]) / 4096.0), 8.0 / (0.7 / 840e3 + 0.3 / 285e3));
}

#[test]
fn few_in_flight_are_bound_by_the_time_that_each_takes() {
    let all = of(&|plan| {
        plan.jobs[0].read_percent = 100;
        plan.jobs[0].depth = 1;
    });
    // 92 µs of access, and 4 KiB at what eight drives give together.
    near(all[0].expected.latency_floor_ns, 92_000.0 + 4096.0 / 28.0);
    near(all[0].expected.iops, 1e9 / (92_000.0 + 4096.0 / 28.0));
    assert!(all[0].expected.bottleneck.as_deref().unwrap().starts_with("1 in flight"));
}

#[test]
fn a_rate_that_was_requested_for_is_all_that_is_expected() {
    use gpuio_record::Arrivals;
    let all = of(&|plan| {
        large_reads(&mut plan.jobs[0]);
        plan.jobs[0].pacing =
            Some(Pacing { bytes_per_s: Some(1 << 20), iops: None, arrivals: Arrivals::Steady });
    });
    near(all[0].expected.bytes_per_s, 16.0 * f64::from(1 << 20));
    assert_eq!(all[0].expected.bottleneck.as_deref(), Some("the requested rate"));
}

/// Each direction keeps its own rate, and the percentage of reads scales neither, on one host and
/// over ranks; a direction without a rate takes the rest.
#[test]
fn a_rate_of_one_direction_is_not_scaled_by_the_mix() {
    use gpuio_record::Arrivals;
    let rate = |iops| Some(Pacing { bytes_per_s: None, iops, arrivals: Arrivals::Steady });
    let paced = |reads: Option<u64>, plan: &mut Plan| {
        let job = &mut plan.jobs[0];
        (job.threads, job.pacing, job.write_pacing) = (2, rate(reads), rate(Some(800)));
        (job.blocks[0].min_bytes, job.blocks[0].max_bytes) = (8192, 8192);
        let (min_bytes, max_bytes) = (16_384, 16_384);
        job.write_blocks = vec![BlockShare { min_bytes, max_bytes, ..job.blocks[0] }];
    };
    let all = of(&|plan| paced(Some(2000), plan));
    near(all[0].expected.bytes_per_s, 2.0 * 2000.0 * 8192.0);
    near(all[1].expected.bytes_per_s, 2.0 * 800.0 * 16_384.0);
    assert!(all.iter().all(|one| one.expected.bottleneck.as_deref() == Some("the requested rate")));
    let free = of(&|plan| paced(None, plan));
    near(free[1].expected.bytes_per_s, 2.0 * 800.0 * 16_384.0);
    assert!(free[0].expected.bytes_per_s > all[0].expected.bytes_per_s);

    let mut plan = plan();
    paced(Some(2000), &mut plan);
    let portions = portions_of_jobs(&read(DGX_2), &Figures::built_in(), &plan, &storage());
    let ranks = ["a", "b"].map(|host| (host.to_owned(), portions.clone()));
    let rates: Vec<_> = of_ranks(&ranks).jobs.into_iter().map(|one| one.expected).collect();
    near(rates[0].bytes_per_s, 2.0 * 2.0 * 2000.0 * 8192.0);
    near(rates[1].bytes_per_s, 2.0 * 2.0 * 800.0 * 16_384.0);
}

/// A mix without rates of its own shares bytes out by the sizes of its blocks.
#[test]
fn larger_writes_are_more_of_the_bytes() {
    let all = of(&|plan| {
        let job = &mut plan.jobs[0];
        (job.blocks[0].min_bytes, job.blocks[0].max_bytes) = (4096, 4096);
        let (min_bytes, max_bytes) = (1 << 16, 1 << 16);
        job.write_blocks = vec![BlockShare { min_bytes, max_bytes, ..job.blocks[0] }];
    });
    let rates: Vec<f64> = all.iter().map(|one| one.expected.bytes_per_s.unwrap()).collect();
    near(Some(rates[1] / rates[0]), 30.0 * 16.0 / 70.0);
}

#[test]
fn jobs_of_one_group_share_and_of_two_do_not() {
    for (group, share) in [(0, 0.5), (1, 1.0)] {
        let all = of(&|plan| {
            large_reads(&mut plan.jobs[0]);
            let mut second = plan.jobs[0].clone();
            second.name = "second".to_owned();
            second.group = group;
            plan.jobs.push(second);
        });
        near(all[1].expected.bytes_per_s, 28e9 * share);
    }
}

#[test]
fn what_no_figure_describes_says_why() {
    let why = |change: &dyn Fn(&mut JobPlan)| {
        let all = of(&|plan| change(&mut plan.jobs[0]));
        assert!(all.iter().all(|one| one.expected.bytes_per_s.is_none()), "{all:#?}");
        all[0].expected.unknown.clone().unwrap()
    };
    assert!(why(&|job| job.direct = DirectMode::Buffered).contains("page cache"));
    assert!(why(&|job| job.engine.actual = "null".to_owned()).contains("no file"));
    assert!(why(&|job| job.gpus = vec![gpu("f5f7:01:00.0", true)]).contains("software GPU"));
    let elsewhere = why(&|job| job.targets[0].path = "/elsewhere/a".to_owned());
    assert!(elsewhere.contains("storage device is unknown"), "{elsewhere}");
}
