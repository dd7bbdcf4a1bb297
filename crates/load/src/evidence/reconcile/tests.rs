//! Each rule on figures of real runs, and no finding where they agree.

use gpuio_record::facts::{BlockKind, DeviceNumber, IoLimit};
use gpuio_record::{JobPlan, JobResult, NOISE_BYTES, ProcessorTime, StorageReading, WarningKind};

use super::counted::{Block, Gpu, Link};
use super::*;
use gpuio_testkit::jobs::{job, result};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

fn found(job: &JobPlan, result: &JobResult, counted: &Counted) -> Vec<WarningKind> {
    let (jobs, results) = (std::slice::from_ref(job), std::slice::from_ref(result));
    find(&GroupContext { jobs, results, counted }).into_iter().map(|(_, kind)| kind).collect()
}

/// A job with the bytes that it read, in blocks of this size, and what the process caused.
fn read(lines: &str, block: u64, ios: u64) -> (JobPlan, JobResult) {
    let job = job(lines);
    let mut result = result(&job, 0);
    result.file_leg.read_ios = ios;
    result.file_leg.read_bytes = ios * block;
    result.cache.process_read_bytes = Some(ios * block);
    (job, result)
}

fn disk(name: &str, reads: u64, read_bytes: u64) -> StorageReading {
    StorageReading { device: name.into(), reads, read_bytes, ..StorageReading::default() }
}

fn block(name: &str, read_bytes: u64) -> Block {
    Block { name: name.into(), read_bytes: float(read_bytes), ..Block::default() }
}

const NO_DEVICES: Counted = Counted {
    seconds: 0.0,
    block: Vec::new(),
    gpus: Vec::new(),
    links: Vec::new(),
    cpu: None,
    in_window: None,
    limits: Vec::new(),
};

/// A Samsung 850 EVO under fio 2.2.10, psync, buffered reads of 1 MiB from the device: fio reported
/// 519 I/Os and "519.0MB" per second, iostat 2077 r/s and 531712 rkB/s. (fio's MB was 2^20, so
/// the two are 0.05 % apart; read as 10^6 they seem 2.5 % apart.)
#[test]
fn an_ssd_under_sequential_reads_of_1_mib() {
    let lines = "rw=read\nbs=1m\nengine=psync\ndirect=0\nsize=32g";
    let (job, mut result) = read(lines, MIB, 519);
    result.cache.process_read_bytes = Some(531_712 * 1024);
    result.cache.storage = vec![disk("sdb", 2077, 531_712 * 1024)];
    let split = WarningKind::SplitByBlockLayer {
        mean_io_bytes: MIB,
        mean_request_bytes: 531_712 * 1024 / 2077,
        device: "sdb".into(),
        ahead: true,
    };
    let words = split.to_string();
    assert!(words.contains("1.00 MiB") && words.contains("256 KiB"), "{words}");
    assert_eq!(found(&job, &result, &NO_DEVICES), [split], "the bytes agree");

    // Had fio's been megabytes of 10^6: 519 MB against 544, 4.9 % off, are still within a tenth.
    result.file_leg.read_bytes = 519_000_000;
    let kinds = found(&job, &result, &NO_DEVICES);
    assert!(matches!(&kinds[..], [WarningKind::SplitByBlockLayer { .. }]), "{kinds:?}");
}

/// The same drive, random reads of 4 KiB: iostat 26314 r/s, 105256 rkB/s, 8 sectors a request.
#[test]
fn an_ssd_under_random_reads_of_4_kib() {
    let lines = "rw=randread\nbs=4k\nengine=psync\ndirect=0\nsize=32g";
    let (job, mut result) = read(lines, 4096, 26_314);
    result.cache.storage = vec![disk("sdb", 26_314, 105_256 * 1024)];
    assert_eq!(found(&job, &result, &NO_DEVICES), [], "requests are those of the tool");
}

#[test]
fn read_ahead_beyond_what_was_read() {
    // The kernel reads 128 KiB around each page that a mapping touches.
    let lines = "rw=randread\nbs=4k\nengine=psync\ndirect=0\nsize=32g";
    let (job, mut result) = read(lines, 4096, 10_000);
    let found_of = |result: &mut JobResult, from_storage| {
        result.cache.process_read_bytes = from_storage;
        found(&job, result, &NO_DEVICES)
    };
    let (bytes, from_storage) = (10_000 * 4096, 10_000 * 131_072);
    let ahead = WarningKind::ReadAhead { bytes, from_storage, sequential: false };
    assert_eq!(found_of(&mut result, Some(from_storage)), [ahead]);
    assert_eq!(found_of(&mut result, Some(bytes + NOISE_BYTES)), [], "within the tolerance");
    assert_eq!(found_of(&mut result, None), [], "it is unknown");
    let (job, mut result) = read("rw=randread\nbs=4k", 4096, 10_000);
    result.cache.process_read_bytes = Some(from_storage);
    assert_eq!(found(&job, &result, &NO_DEVICES), [], "O_DIRECT has no read-ahead");
}

/// Ten seconds of two processors, of which 3 are ours.
#[test]
fn others_on_the_same_processors() {
    let (job, mut result) = read("rw=randread\nbs=1m", MIB, 1024);
    result.cache.storage = vec![disk("nvme0n1", 1024, GIB)];
    let ns = |seconds: u64| seconds * 1_000_000_000;
    let found_of = |all: u64, parts: [u64; 4]| {
        let [idle_ns, programs_ns, kernel_ns, stolen_ns] = parts.map(ns);
        let (all_ns, ours_ns) = (ns(all), ns(3));
        let time =
            ProcessorTime { cpus: 2, all_ns, idle_ns, ours_ns, programs_ns, kernel_ns, stolen_ns };
        found(&job, &result, &Counted { cpu: Some(time), ..NO_DEVICES })
    };
    let warned = WarningKind::OtherCpuTime {
        cpus: 2,
        all_ns: ns(20),
        ours_ns: ns(3),
        programs_ns: ns(12),
        kernel_ns: ns(2),
        stolen_ns: ns(1),
    };
    assert_eq!(found_of(20, [2, 12, 2, 1]), [warned]);
    assert_eq!(found_of(20, [5, 2, 0, 0]).len(), 1, "a quarter is idle, a tenth others'");
    assert_eq!(found_of(20, [6, 11, 0, 0]), [], "there is room for both");
    assert_eq!(found_of(20, [0, 1, 0, 0]), [], "the rest is interrupts");
    assert_eq!(found_of(20, [0, 0, 0, 2]).len(), 1, "a hypervisor is others, too");
    let short =
        ProcessorTime { all_ns: 390_000_000, programs_ns: ns(1), ..ProcessorTime::default() };
    let short = Counted { cpu: Some(short), ..NO_DEVICES };
    assert_eq!(found(&job, &result, &short), [], "too few ticks");
}

/// No warning is no knowledge where nothing was counted.
#[test]
fn others_on_the_processors_are_unknown_in_a_short_run() {
    let of = |all: u64| {
        let all_ns = all * 1_000_000;
        let processors = Some(ProcessorTime { all_ns, ..ProcessorTime::default() });
        OthersCounted { processors, traffic: Vec::new() }.processors_unknown()
    };
    assert_eq!(of(400), None);
    let short = "whether others used the CPUs (other_cpu_time): the run was too short, less than \
                 400 ms of the CPUs' time";
    assert_eq!(of(390).as_deref(), Some(short));
    let unread = OthersCounted::default().processors_unknown().unwrap();
    assert!(unread.ends_with("no time of the CPUs was counted in it"), "{unread}");
}

#[test]
fn others_on_the_same_device() {
    let (job, mut result) = read("rw=randread\nbs=1m", MIB, 1024);
    let found_of = |result: &mut JobResult, device_bytes| {
        result.cache.storage = vec![disk("nvme0n1", 1024, device_bytes)];
        found(&job, result, &NO_DEVICES)
    };
    let other = |device_bytes| WarningKind::OtherTraffic {
        device: "nvme0n1".into(),
        direction: "read".into(),
        ours_bytes: GIB,
        device_bytes,
    };
    assert_eq!(found_of(&mut result, 3 * GIB), [other(3 * GIB)]);
    assert_eq!(found_of(&mut result, GIB + GIB / 10), []);
    // Traffic in the other direction is compared with ours, not against nothing.
    let written = StorageReading { writes: 9, write_bytes: 29 * MIB, ..disk("nvme0n1", 1024, GIB) };
    result.cache.storage = vec![written];
    assert_eq!(found(&job, &result, &NO_DEVICES), []);
    assert_eq!(found_of(&mut result, GIB / 2), [], "less is for the evidence");
    // Bytes that this process caused beyond its reads are no other's.
    result.cache.process_read_bytes = Some(3 * GIB);
    assert_eq!(found_of(&mut result, 3 * GIB), []);
    // Without the process's counter the file legs stand for it.
    result.cache.process_read_bytes = None;
    assert_eq!(found_of(&mut result, 3 * GIB), [other(3 * GIB)]);
    // Reads that the page cache served are at no device: all of it is others', of any size.
    let (job, mut result) = read("rw=read\nbs=1m\ndirect=0", MIB, 1024);
    result.cache.process_read_bytes = Some(0);
    result.cache.storage = vec![disk("nvme0n1", 8192, GIB)];
    let kinds = found(&job, &result, &NO_DEVICES);
    let others =
        |kind: &WarningKind| matches!(kind, WarningKind::OtherTraffic { ours_bytes: 0, .. });
    assert!(kinds.iter().any(others), "{kinds:?}");
    let split = |kind: &WarningKind| matches!(kind, WarningKind::SplitByBlockLayer { .. });
    assert!(!kinds.iter().any(split), "{kinds:?}");
}

#[test]
fn others_beside_a_partition() {
    let (job, mut result) = read("rw=randread\nbs=1m", MIB, 1024);
    result.cache.storage = vec![disk("sda1", 1024, GIB)];
    let partition = Block {
        kind: Some(BlockKind::Partition),
        made_of: vec!["sda".into()],
        ..block("sda1", GIB)
    };
    let with =
        |disk: u64| Counted { block: vec![partition.clone(), block("sda", disk)], ..NO_DEVICES };
    let kinds = found(&job, &result, &with(4 * GIB));
    let [WarningKind::OtherTraffic { device_bytes, .. }] = &kinds[..] else { panic!("{kinds:?}") };
    assert_eq!(*device_bytes, 4 * GIB);
    assert_eq!(found(&job, &result, &with(GIB)), []);
}

#[test]
fn writes_of_others_are_checked_where_ours_are_direct() {
    let found_of = |lines: &str| {
        let job = job(lines);
        let mut result = result(&job, 100_000);
        let (writes, write_bytes) = (300_000, 300_000 * 4096);
        result.cache.storage = vec![StorageReading { writes, write_bytes, ..disk("sda", 0, 0) }];
        let kinds = found(&job, &result, &NO_DEVICES);
        kinds.iter().filter(|kind| matches!(kind, WarningKind::OtherTraffic { .. })).count()
    };
    assert_eq!(found_of("rw=randwrite"), 1);
    assert_eq!(found_of("rw=randwrite\nsync=1"), 0, "a journal writes more");
    assert_eq!(found_of("rw=randwrite\ndirect=0\nsize=32g"), 0, "write-back comes when it likes");
}

/// Two of the DGX-2's drives in an array: iostat showed just over 3.4 GB/s from each.
#[test]
fn members_of_an_array() {
    let (job, result) = read("rw=read\nbs=1m", MIB, 6800);
    let array = Block {
        kind: Some(BlockKind::Md),
        level: Some("raid0".into()),
        made_of: vec!["nvme2n1".into(), "nvme3n1".into()],
        ..block("md0", 6800 * MIB)
    };
    let with = |one: u64, other: u64| Counted {
        block: vec![array.clone(), block("nvme2n1", one), block("nvme3n1", other)],
        ..NO_DEVICES
    };
    assert_eq!(found(&job, &result, &with(3400 * MIB, 3400 * MIB)), []);
    let part = WarningKind::ArrayPartUsed {
        array: "md0".into(),
        level: Some("raid0".into()),
        members: 2,
        busiest: "nvme2n1".into(),
        busiest_bytes: 6800 * MIB,
        least: "nvme3n1".into(),
        least_bytes: 0,
    };
    assert_eq!(found(&job, &result, &with(6800 * MIB, 0)), [part]);
    assert_eq!(found(&job, &result, &with(60 * MIB, 0)), [], "too little to compare");
    let unknown =
        Counted { block: vec![array.clone(), block("nvme2n1", 6800 * MIB)], ..NO_DEVICES };
    assert_eq!(found(&job, &result, &unknown), [], "a member was not counted");
}

#[test]
fn ways_to_a_device() {
    let (job, result) = read("rw=read\nbs=1m", MIB, 5120);
    let head = Block { policy: Some("numa".into()), ..block("nvme0n1", 5 * GIB) };
    let nvme = |other: u64| Counted {
        block: vec![head.clone(), block("nvme0c0n1", 5 * GIB), block("nvme0c1n1", other)],
        ..NO_DEVICES
    };
    let idle = WarningKind::PathIdle {
        device: "nvme0n1".into(),
        idle: vec!["nvme0c1n1".into()],
        busiest: "nvme0c0n1".into(),
        busiest_bytes: 5 * GIB,
        policy: Some("numa".into()),
    };
    assert_eq!(found(&job, &result, &nvme(0)), [idle]);
    assert_eq!(found(&job, &result, &nvme(GIB)), []);
    let one = Counted { block: vec![head, block("nvme0c0n1", 5 * GIB)], ..NO_DEVICES };
    assert_eq!(found(&job, &result, &one), [], "one way can't be idle");

    let mapped = Block {
        kind: Some(BlockKind::DeviceMapper),
        level: Some("mpath".into()),
        made_of: vec!["sda".into(), "sdb".into()],
        ..block("dm-0", GIB)
    };
    let counted = Counted { block: vec![mapped, block("sda", 0), block("sdb", GIB)], ..NO_DEVICES };
    let kinds = found(&job, &result, &counted);
    let [WarningKind::PathIdle { device, idle, policy, .. }] = &kinds[..] else {
        panic!("{kinds:?}")
    };
    assert_eq!((device.as_str(), &idle[..], policy), ("dm-0", &["sda".to_owned()][..], &None));
}

#[test]
fn a_queue_that_does_not_reach_the_device() {
    let queue = |lines: &str, queue: f64| {
        let (job, mut result) = read(&format!("rw=randread\nbs=4k\n{lines}"), 4096, 100_000);
        result.cache.storage = vec![disk("nvme0n1", 100_000, 100_000 * 4096)];
        let device = Block { queue: Some(queue), ..block("nvme0n1", 0) };
        found(&job, &result, &Counted { seconds: 10.0, block: vec![device], ..NO_DEVICES })
    };
    let short = |requested, observed| WarningKind::DepthNotReached {
        device: "nvme0n1".into(),
        requested,
        observed,
        limit: None,
    };
    let deep = "engine=io_uring\ndepth=32\nthreads=4";
    assert_eq!(queue(deep, 9.5), [short(128, 9.5)]);
    assert_eq!(queue(deep, 64.0), []);
    assert_eq!(queue("engine=psync\nthreads=8", 3.0), [short(8, 3.0)], "one I/O per thread");
    assert_eq!(queue("engine=psync", 0.1), [], "one at a time was requested");
    let requests_of = |bytes: u64, queue: f64| {
        let (job, mut result) = read(&format!("rw=read\nbs=4k\n{deep}"), 4096, 160_000);
        result.cache.storage = vec![disk("nvme0n1", 160_000 * 4096 / bytes, 160_000 * 4096)];
        let device = Block { queue: Some(queue), ..block("nvme0n1", 0) };
        let counted = Counted { seconds: 10.0, block: vec![device], ..NO_DEVICES };
        let short = |kind: &WarningKind| matches!(kind, WarningKind::DepthNotReached { .. });
        found(&job, &result, &counted).into_iter().filter(short).collect::<Vec<_>>()
    };
    assert_eq!(requests_of(65536, 8.0), [], "merged: 8 requests are 128 I/Os");
    assert_eq!(requests_of(65536, 2.0), [short(128, 32.0)]);
    assert_eq!(requests_of(1024, 200.0), [short(128, 50.0)], "split: 200 requests are 50 I/Os");
    let (job, mut result) = read(&format!("rw=randread\nbs=4k\n{deep}"), 4096, 100_000);
    result.cache.storage = vec![disk("nvme0n1", 0, 0)];
    let device = Block { queue: Some(0.0), ..block("nvme0n1", 0) };
    let counted = Counted { seconds: 10.0, block: vec![device], ..NO_DEVICES };
    assert_eq!(found(&job, &result, &counted), [], "kernels that do not count at this device");
    for held in ["rate_iops=100", "thinktime=1000"] {
        assert_eq!(queue(&format!("{deep}\n{held}"), 9.5), [], "{held} held it back");
    }
    assert_eq!(queue(&format!("{deep}\ndirect=0\nsize=32g"), 9.5), [], "the kernel's affair");
}

/// A reader that is as far ahead as it may be wants no I/O: the accelerators hold it back.
#[test]
fn readers_that_rest_are_no_queue_that_lacks() {
    let lines = "files=100\nsample_size=4k\nbatch_samples=10\ncompute=sleep\ncompute_time=10ms\n\
                 engine=io_uring\ndepth=32\nreaders=4\nverify=off";
    let (job, mut result) = read(lines, 4096, 100_000);
    result.cache.storage = vec![disk("nvme0n1", 100_000, 100_000 * 4096)];
    let mut with = |rested_ns: u64| {
        let feed = serde_json::json!({
            "span_ns": 1, "samples": 1, "samples_per_s": 1.0, "steps": 1, "complete": true,
            "stall_ns": 0, "first_batch_ns": 0, "epochs": [], "rules": [], "accelerators": [],
            "rested_ns": rested_ns,
        });
        result.feed = Some(serde_json::from_value(feed).unwrap());
        let device = Block { queue: Some(9.5), ..block("nvme0n1", 0) };
        let counted = Counted { seconds: 10.0, block: vec![device], ..NO_DEVICES };
        let all = found(&job, &result, &counted).into_iter().filter_map(|kind| match kind {
            WarningKind::DepthNotReached { requested, .. } => Some(requested),
            _ => None,
        });
        all.collect::<Vec<_>>()
    };
    // Four readers had 40 s.
    assert_eq!(with(0), [128]);
    assert_eq!(with(20_000_000_000), [64]);
    assert!(with(38_000_000_000).is_empty());
}

/// I/Os that wait at a limit of the control group are at no device, and no counter shows them.
#[test]
fn a_limit_of_the_control_group_is_stated_and_explains_the_queue() {
    let (job, mut result) = read("rw=randread\nbs=4k\nengine=io_uring\ndepth=32", 4096, 100_000);
    result.cache.storage = vec![disk("vda", 100_000, 100_000 * 4096)];
    let limit = |towards| IoLimit {
        version: 1,
        path: "/sys/fs/cgroup/blkio/blkio.throttle.read_bps_device".into(),
        number: DeviceNumber { major: 254, minor: 0 },
        device: "vda".into(),
        towards,
        bytes_per_s: Some(30 << 20),
        ios_per_s: None,
    };
    let of = |towards| {
        let device = Block { queue: Some(0.1), ..block("vda", 0) };
        let (block, limits) = (vec![device], vec![limit(towards)]);
        let kinds = found(&job, &result, &Counted { seconds: 10.0, block, limits, ..NO_DEVICES });
        kinds.iter().map(WarningKind::to_string).collect::<Vec<_>>()
    };
    let [stated, depth] = &of(Towards::Read)[..] else { panic!("{:?}", of(Towards::Read)) };
    let words = "This process's cgroup limits reads on vda (254:0) to 30.0 MiB/s";
    assert!(stated.starts_with(words), "{stated}");
    assert!(depth.contains(words) && !depth.contains("waited for a CPU"), "{depth}");
    let [depth] = &of(Towards::Write)[..] else { panic!("{:?}", of(Towards::Write)) };
    assert!(depth.contains("waited for a CPU"), "the job writes nothing: {depth}");
}

/// A job that reads so many bytes per second into a GPU for 10 s.
fn into_gpu(bytes_per_s: u64) -> (JobPlan, JobResult) {
    let (mut job, result) = read("path=staged\nrw=read\nbs=1m", 1, bytes_per_s * 10);
    job.gpus[0].uuid = "requested".into();
    (job, result)
}

fn gpu(index: u32, requested: bool, sent_per_s: f64, received_per_s: f64) -> Gpu {
    let uuid = Some(if requested { "requested".to_owned() } else { index.to_string() });
    Gpu { index, uuid, received_per_s, sent_per_s, sampled: false }
}

/// dcgmi while gdsio ran on a DGX-2, GPU 12 requested, 3.893747 GiB/s: fields 1009 and 1010.
#[test]
fn traffic_on_gpu_0_while_gpu_12_was_requested_for() {
    let (job, result) = into_gpu(4_180_879_000);
    let gpus = vec![
        gpu(0, false, 4_712_070_210.0, 5_237_742_827.0),
        gpu(1, false, 435_418.0, 637_272.0),
        gpu(11, false, 476_420.0, 739_272.0),
        gpu(12, true, 528_378_278.0, 4_721_644_934.0),
        gpu(13, false, 481_604.0, 741_403.0),
    ];
    let counted = Counted { seconds: 10.0, gpus, ..NO_DEVICES };
    let other = WarningKind::OtherGpu {
        requested: vec![12],
        other: 0,
        other_bytes_per_s: 5_237_742_827,
        bytes_per_s: 4_180_879_000,
    };
    assert_eq!(found(&job, &result, &counted), [other]);
    let mut nameless = counted.clone();
    nameless.gpus[3].uuid = None;
    assert_eq!(found(&job, &result, &nameless), [], "which one was requested is not known");
}

/// The same machine with random reads of 4 KiB into GPU 10, 0.105713 GiB/s.
#[test]
fn traffic_on_gpu_0_while_gpu_10_was_requested_for() {
    let (job, result) = into_gpu(113_508_000);
    let gpus = vec![
        gpu(0, false, 108_216_883.0, 122_481_373.0),
        gpu(9, false, 183_268.0, 60_918.0),
        gpu(10, true, 22_110_153.0, 124_205_217.0),
    ];
    let kinds = found(&job, &result, &Counted { seconds: 10.0, gpus, ..NO_DEVICES });
    let [WarningKind::OtherGpu { requested, other: 0, .. }] = &kinds[..] else {
        panic!("{kinds:?}")
    };
    assert_eq!(requested, &[10]);
}

/// A DGX A100, 7.18 GB/s written from GPU 7: nothing else carried anything.
#[test]
fn gpus_at_rest_are_no_finding() {
    let (mut job, mut result) = into_gpu(0);
    job.read_percent = 0;
    result.file_leg.write_bytes = 71_800_000_000;
    let gpus = vec![
        gpu(0, false, 282_398.0, 672_747.0),
        gpu(5, false, 318_632.0, 826_865.0),
        gpu(7, true, 8_168_730_609.0, 472_336_198.0),
    ];
    assert_eq!(found(&job, &result, &Counted { seconds: 10.0, gpus, ..NO_DEVICES }), []);
}

#[test]
fn a_gpu_whose_link_carried_too_little() {
    let (job, result) = into_gpu(8_000_000_000);
    let with = |received: f64, sampled: bool| {
        let gpus = vec![Gpu { sampled, ..gpu(3, true, 1e6, received) }];
        found(&job, &result, &Counted { seconds: 10.0, gpus, ..NO_DEVICES })
    };
    let less = WarningKind::LinkDisagrees {
        link: "GPU 3 (PCIe)".into(),
        direction: "read".into(),
        bytes_per_s: 8_000_000_000,
        counted_bytes_per_s: 3_900_000_000,
    };
    assert_eq!(with(3.9e9, false), [less]);
    assert_eq!(with(8.9e9, false), []);
    assert_eq!(with(3.9e9, true), [], "samples are not the whole time");
}

#[test]
fn a_card_against_nfs() {
    let (job, result) = read("rw=read\nbs=1m", MIB, 1);
    let with = |received: f64| {
        let link = Link {
            name: "ib0".into(),
            received_bytes: received,
            sent_bytes: 1e6,
            nfs_read_bytes: 1e10,
            nfs_written_bytes: 0.0,
        };
        found(&job, &result, &Counted { seconds: 10.0, links: vec![link], ..NO_DEVICES })
    };
    let off = |counted_bytes_per_s| WarningKind::LinkDisagrees {
        link: "ib0".into(),
        direction: "read".into(),
        bytes_per_s: 1_000_000_000,
        counted_bytes_per_s,
    };
    assert_eq!(with(1.05e10), [], "headers");
    assert_eq!(with(5e9), [off(500_000_000)], "a second card took half");
    assert_eq!(with(2e10), [off(2_000_000_000)], "others use it");
}
