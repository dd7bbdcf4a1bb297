//! The records themselves.

use gpuio_record::{
    Arrivals, BlockShare, CacheReading, Choice, CpuCost, CpuScope, DirectMode, DirectionResult,
    DirectionTotal, Distribution, EndedHow, GuardNote, InjectedFaults, IoFailure, JobPlan, Latency,
    LeftOut, MemoryKind, Order, Pacing, Record, RunTotals, Stop, StorageReading, TimeSpan,
    VerifyMismatch, VerifyMode, VerifyOutcome, VerifySubject, Warning, WarningKind,
};

use super::build::{self, SECOND, block, gpu, job, path, record, side, summary};

fn warn(job: Option<&str>, kind: WarningKind) -> Warning {
    Warning { job: job.map(str::to_owned), text: kind.to_string(), kind }
}

fn together(side: DirectionResult) -> DirectionTotal {
    DirectionTotal {
        ios: side.ios,
        bytes: side.bytes,
        failed: side.failed,
        bytes_per_s: Some(side.bytes_per_s),
        iops: Some(side.iops),
        latency: side.latency,
    }
}

/// Sums the jobs of group 0 as the run does for its total.
fn total(record: &mut Record, group: u32) {
    let of_group = || record.jobs.iter().filter(|job| job.group == group);
    let read = of_group().map(|job| job.read.ios).sum();
    let written: u64 = of_group().map(|job| job.write.ios).sum();
    let mut totals = RunTotals {
        group,
        read: together(side(read, 4096, 260_000)),
        write: Default::default(),
        first_done_ns: of_group().map(|job| job.first_done_ns).min().unwrap_or(0),
        last_done_ns: of_group().map(|job| job.last_done_ns).max().unwrap_or(0),
        common: Some(TimeSpan { begin_ns: SECOND, end_ns: 11 * SECOND }),
        why_no_rate: None,
        cpu: CpuCost {
            user_s: 4.0,
            system_s: 12.5,
            cores_busy: 1.65,
            us_per_mib: Some(181.2),
            scope: CpuScope::Process,
            ..CpuCost::default()
        },
    };
    totals.read.bytes = of_group().map(|job| job.read.bytes).sum();
    totals.read.bytes_per_s = Some(totals.read.bytes as f64 / 10.0);
    if written > 0 {
        totals.write = together(side(written, 4096, 90_000));
    }
    record.totals.push(totals);
}

/// Reads and writes in two sizes at hot offsets, at a rate, until a time or an amount.
fn rand_mixed(rand_read: &JobPlan) -> JobPlan {
    let mut mixed = rand_read.clone();
    mixed.name = "rand-mixed".to_owned();
    mixed.read_percent = 70;
    mixed.blocks =
        vec![BlockShare { percent: 60, ..block(4096) }, BlockShare { percent: 40, ..block(65536) }];
    mixed.order =
        Order::Random { distribution: Distribution::Zipf { theta: 1.2 }, coverage: false };
    mixed.stop =
        Stop { runtime_ns: Some(1_500_000_000), bytes_per_thread: Some(64 << 20), wear_out: false };
    mixed.pacing =
        Some(Pacing { bytes_per_s: None, iops: Some(20_000), arrivals: Arrivals::Poisson });
    mixed
}

/// Four jobs at once on the host path, after `all` was requested on a machine without a GPU.
pub(crate) fn host_quick() -> Record {
    let mut seq_write = job("seq-write");
    seq_write.read_percent = 0;
    let mut rand_read = job("rand-read");
    rand_read.order = Order::Random { distribution: Distribution::Uniform, coverage: true };
    rand_read.blocks = vec![block(4096)];
    rand_read.depth = 32;
    let mixed = rand_mixed(&rand_read);
    let auto = Choice {
        requested: "auto".to_owned(),
        actual: "io_uring".to_owned(),
        why: Some("O_DIRECT I/O gains from depth".to_owned()),
    };
    let mut seq_read = job("seq-read");
    seq_read.engine = auto;
    seq_read.direct_why = Some("storage itself is to be measured".to_owned());
    let mut record = record(vec![seq_read, seq_write, rand_read, mixed]);
    let write = &mut record.jobs[1];
    write.write = std::mem::take(&mut write.read);
    let mixed = &mut record.jobs[3];
    mixed.write = side(8_777, 4096, 40_000);
    for legs in [&mut mixed.read, &mut mixed.write].map(|side| side.latency.as_mut().unwrap()) {
        legs.queue = Some(summary(500, 2_000));
    }
    record.jobs[0].cache = CacheReading {
        resident_before: Some(0.0),
        resident_after: Some(0.012),
        process_read_bytes: Some(record.jobs[0].read.bytes),
        process_write_bytes: Some(0),
        holes: None,
        content: None,
        storage: vec![StorageReading {
            device: "nvme0n1".to_owned(),
            reads: 163_840,
            read_bytes: record.jobs[0].read.bytes,
            ..StorageReading::default()
        }],
        unknown: Vec::new(),
    };
    total(&mut record, 0);
    let split = WarningKind::SplitByBlockLayer {
        mean_io_bytes: 1 << 20,
        mean_request_bytes: 128 << 10,
        device: "nvme0n1".to_owned(),
        ahead: false,
    };
    record.warnings.push(warn(Some("seq-read"), split));
    record.jobs[3].first_done_ns = 7 * SECOND;
    record.plan.left_out = ["staged", "cached"]
        .map(|path| LeftOut {
            path: path.to_owned(),
            why: "no CUDA driver: libcuda.so.1 is not installed".to_owned(),
        })
        .to_vec();
    for job in &mut record.jobs {
        job.engine[0].actual = "io_uring (fixed buffers, fixed files)".to_owned();
    }
    record
}

fn staged(name: &str) -> JobPlan {
    let mut job = job(name);
    job.path = path("staged", 2, "CPU_GPU");
    job.memory = MemoryKind::Device;
    job.streams = 2;
    job.gpus = vec![gpu(0, false), gpu(1, false)];
    job.verify = VerifyMode::Pass;
    for (worker, node) in job.workers.iter_mut().zip(0_u32..) {
        worker.gpu = Some(node);
        worker.numa_node = Some(node);
        worker.cpus = (node * 16..node * 16 + 16).collect();
        worker.placed_by = Some("its GPU is on this node".to_owned());
    }
    job
}

fn with_gpu_leg(latency: &mut Option<Latency>) {
    let latency = latency.as_mut().unwrap();
    latency.gpu = Some(summary(1000, 45_000));
}

fn undelivered() -> IoFailure {
    IoFailure {
        path: "/data/gpuio.1".to_owned(),
        offset: 268_435_456,
        length: 1 << 20,
        op: "read".to_owned(),
        leg: "file".to_owned(),
        what: "EIO: the device could not deliver the bytes; see the kernel's log (dmesg)"
            .to_owned(),
        times: 5,
    }
}

/// Two groups on two GPUs, one engine short of what was requested: reads that fail and do not
/// verify, then writes that an interrupt ended, and a third job that never ran.
pub(crate) fn staged_in_trouble() -> Record {
    let mut write = staged("to storage, \"fast\"");
    write.group = 1;
    write.read_percent = 0;
    write.verify = VerifyMode::Off;
    write.targets[0].guard = GuardNote::ForeignOverwrite;
    write.targets[1].guard = GuardNote::Ours;
    let mut never = staged("never-ran");
    (never.group, never.inject) = (2, Some("eio:offset=1M".to_owned()));
    let mut record = record(vec![staged("train"), write, never]);
    record.jobs.truncate(2);
    record.driver_version = Some((13, 0));
    record.ended = EndedHow::Interrupted;
    record.error = Some("job 'never-ran': GPU 1 was lost".to_owned());
    record.setup.verify_ns = 640_000_000;
    let read = &mut record.jobs[0];
    with_gpu_leg(&mut read.read.latency);
    read.failed = 7;
    read.read.failed = 7;
    read.failures = vec![undelivered()];
    read.verify = Some(VerifyOutcome {
        subject: VerifySubject::Unspecified,
        filled_bytes: 0,
        repeated_bytes: None,
        timed_blocks: 16,
        timed_bytes: 16 << 20,
        pass_blocks: 1500,
        pass_bytes: 1500 << 20,
        sample_of_bytes: None,
        checked_in: "GPU memory, by a kernel".to_owned(),
        bad_blocks: 3,
        bad_places: Some(3),
        bad_places_at_least: false,
        written_as: None,
        bad_words: 131_073,
        mismatches: vec![VerifyMismatch {
            path: "/data/gpuio.0".to_owned(),
            offset: 4096,
            expected: "0x5f3759df00000001".to_owned(),
            found: "0x5f3759df00000002".to_owned(),
            bad_words: 131_072,
            checksum_of_bytes: None,
            leg: "file".to_owned(),
            gpu: None,
            found_belongs_at: Some("/data/gpuio.1 at 4096".to_owned()),
        }],
        failed: 2,
        failures: vec![IoFailure { times: 2, ..undelivered() }],
        injected: InjectedFaults { eio: 2, ..InjectedFaults::default() },
        complete: false,
    });
    let write = &mut record.jobs[1];
    write.ended = EndedHow::Interrupted;
    write.write = std::mem::take(&mut write.read);
    with_gpu_leg(&mut write.write.latency);
    let far = WarningKind::FarFromGpu { gpu: 1, worker_node: 0, gpu_node: 1 };
    record.warnings.push(warn(Some("train"), far));
    let reason = "io_uring: files not registered: EMFILE".to_owned();
    let engine = &mut record.jobs[0].engine[0];
    engine.actual = "io_uring (fixed buffers)".to_owned();
    engine.steps_down.push(reason.clone());
    let down = WarningKind::EngineSteppedDown {
        requested: "io_uring".to_owned(),
        actual: engine.actual.clone(),
        why: vec![reason],
    };
    record.warnings.push(warn(Some("train"), down));
    record
}

/// One unaligned, buffered job on the software GPU, with named files.
pub(crate) fn software() -> Record {
    let mut job = job("try");
    job.path = path("cached", 4, "CPU_CACHED_GPU");
    job.engine = build::choice("psync");
    job.memory = MemoryKind::Device;
    job.streams = 2;
    job.depth = 4;
    job.gpus = vec![gpu(0, true)];
    job.direct = DirectMode::Buffered;
    job.order = Order::Random {
        distribution: Distribution::Normal { deviation_percent: 12.5 },
        coverage: false,
    };
    job.blocks = vec![BlockShare {
        min_bytes: 1 << 20,
        max_bytes: 4 << 20,
        step_bytes: 1 << 20,
        percent: 100,
    }];
    job.skew_bytes = 512;
    job.directory = None;
    job.targets[0].path = "/data/a:b".to_owned();
    job.targets[1].path = "/data/${c}".to_owned();
    for worker in &mut job.workers {
        worker.cpus = vec![3, 0, 1];
        worker.gpu = Some(0);
    }
    let mut record = record(vec![job]);
    with_gpu_leg(&mut record.jobs[0].read.latency);
    record.jobs[0].read.bytes += 123_456_789;
    record.jobs[0].verify = Some(VerifyOutcome {
        timed_blocks: 8,
        timed_bytes: 20 << 20,
        checked_in: "GPU memory, by a kernel".to_owned(),
        complete: true,
        ..VerifyOutcome::default()
    });
    record.warnings.push(warn(None, WarningKind::SoftwareGpu));
    let note = "thread: every job runs in threads".to_owned();
    record.warnings.push(warn(Some("try"), WarningKind::Note { note }));
    record
}

/// Twelve jobs of one group, the last with a long name.
pub(crate) fn many_jobs() -> Record {
    let mut jobs: Vec<JobPlan> = (0..12).map(|n| staged(&format!("job-{n}"))).collect();
    jobs[11].name = "a-job-with-a-name-that-is-rather-long".to_owned();
    jobs[11].read_percent = 50;
    jobs[11].order = Order::Random { distribution: Distribution::Uniform, coverage: true };
    let mut record = record(jobs);
    record.jobs[11].write = side(1_234_567, 4096, 15_000_000);
    record.jobs[11].last_done_ns = 10 * SECOND;
    total(&mut record, 0);
    record
}
