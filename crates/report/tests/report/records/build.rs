//! Parts of records with plain values, to be changed where a test needs others.

use gpuio_base::stat::{Histogram, Summary};
use gpuio_record::facts::{
    BlockFacts, BlockKind, CpuFacts, DeviceNumber, HostFacts, KernelFacts, MemoryFacts, MountFacts,
    NumaFacts, NumaNode, TargetStorage,
};
use gpuio_record::{
    ActualEngine, Assessment, BlockShare, Choice, ContentDigest, CpuCost, CpuScope, DirectMode,
    DirectionResult, EndedHow, Evidence, FileLegCounters, Fill, Gpu, GuardNote, JobPlan, JobResult,
    Latency, MemoryKind, Order, PathChoice, Plan, Point, Proof, Record, Region, Route,
    SCHEMA_VERSION, SetupTimes, Source, Stop, TargetKind, TargetPlan, TimeSpan, Tool, Verdict,
    VerifyMode, WorkerPlan, WorkerResult,
};

pub(crate) const SECOND: u64 = 1_000_000_000;

pub(crate) fn choice(actual: &str) -> Choice {
    Choice { requested: actual.to_owned(), actual: actual.to_owned(), why: None }
}

pub(crate) fn path(actual: &str, gdsio: u8, gdsio_name: &str) -> PathChoice {
    PathChoice { choice: choice(actual), gdsio: Some(gdsio), gdsio_name: gdsio_name.to_owned() }
}

pub(crate) fn block(size: u64) -> BlockShare {
    BlockShare { min_bytes: size, max_bytes: size, step_bytes: 0, percent: 100 }
}

/// Figures of `count` latencies that run evenly from `low_ns` to a hundred times that, the last
/// one alone far out.
pub(crate) fn summary(count: u64, low_ns: u64) -> Summary {
    let mut histogram = Histogram::default();
    for n in 0..count {
        let far = if n + 1 == count { 4 } else { 1 };
        histogram.record(far * (low_ns + n * low_ns / count));
    }
    histogram.summary().expect("count is above 0")
}

pub(crate) fn gpu(index: u32, software: bool) -> Gpu {
    Gpu {
        index,
        name: if software { "gpuio software GPU" } else { "NVIDIA H100 80GB HBM3" }.to_owned(),
        uuid: format!("GPU-00000000-0000-0000-0000-00000000000{index}"),
        pci: format!("0000:{:02x}:00.0", 0x1b + index),
        numa_node: (!software).then_some(index),
        memory_bytes: if software { 1 << 30 } else { 80 << 30 },
        software,
        managed_hints: Some(true),
        read_only_register: Some(true),
    }
}

/// Sequential 1 MiB reads by two threads, a file each, on the host path.
#[expect(clippy::too_many_lines, reason = "one line for each field of the plan")]
pub(crate) fn job(name: &str) -> JobPlan {
    let size = 1 << 30;
    let target = |n: u64| TargetPlan {
        path: format!("/data/gpuio.{n}"),
        kind: TargetKind::File,
        length_bytes: size,
        guard: GuardNote::Make,
        file_number: n,
        holes: Vec::new(),
    };
    let worker = |thread: u32| WorkerPlan {
        thread,
        cpus: Vec::new(),
        numa_node: None,
        placed_by: None,
        gpu: None,
        regions: vec![Region::range(thread, 0, size)],
        seed: 1000 + u64::from(thread),
    };
    JobPlan {
        name: name.to_owned(),
        group: 0,
        path: path("host", 1, "CPUONLY"),
        engine: choice("io_uring"),
        threads: 2,
        depth: 8,
        defaulted: Some(Vec::new()),
        read_percent: 100,
        order: Order::Sequential,
        follow: None,
        blocks: vec![block(1 << 20)],
        write_blocks: Vec::new(),
        align_bytes: 4096,
        direct_alignment_bytes: 512,
        skew_bytes: 0,
        stop: Stop { runtime_ns: Some(10 * SECOND), bytes_per_thread: None, wear_out: false },
        bytes_of: None,
        steady: None,
        ramp_ns: 0,
        think: None,
        flush: None,
        logs: None,
        start_delay_ns: 0,
        pacing: None,
        write_pacing: None,
        max_latency_ns: None,
        ends_others: false,
        fadvise_hint: None,
        require_path: false,
        seed: 42,
        direct: DirectMode::Direct,
        direct_why: None,
        pre_read: false,
        invalidate: false,
        sync: false,
        verify: VerifyMode::Off,
        verify_ns: None,
        own_verification: false,
        fio_headers: false,
        compressible: None,
        salt: 0x6770_7569_6f5f_3031,
        fill: Fill::Pattern,
        refill: false,
        memory: MemoryKind::Malloc,
        streams: 0,
        gather_batch: None,
        gather_scatter: None,
        chain: false,
        rings: None,
        via: None,
        fan_out: None,
        register_buffer: None,
        shared_fd: false,
        keep: true,
        ceilings_ns: None,
        beside: None,
        feed: None,
        replay: None,
        part: None,
        ranges: None,
        against_file: false,
        repeat: None,
        percentiles: Vec::new(),
        inject: None,
        directory: Some("/data".to_owned()),
        more_directories: Vec::new(),
        file_prefix: "gpuio".to_owned(),
        filename_format: None,
        size_bytes: size,
        size_percent: None,
        offset_bytes: 0,
        shared_files: false,
        files_per_thread: None,
        files_in_turn: false,
        offset_increment: None,
        file_bytes: None,
        file_bytes_most: None,
        layout: None,
        gpus: Vec::new(),
        targets: (0..2).map(target).collect(),
        workers: (0..2).map(worker).collect(),
        notes: Vec::new(),
    }
}

/// The summary of `ios` latencies, in the buckets of at most a thousand of them.
fn total(ios: u64, low_ns: u64) -> Summary {
    let few = summary(ios.min(1000), low_ns);
    Summary {
        count: ios,
        p99_9_ns: (ios >= 10_000).then_some(2 * low_ns - low_ns / 500),
        p99_99_ns: (ios >= 100_000).then_some(few.max_ns),
        ..few
    }
}

/// `ios` I/Os of `block` bytes in ten seconds with latencies from `low_ns`.
pub(crate) fn side(ios: u64, block: u64, low_ns: u64) -> DirectionResult {
    let bytes = ios * block;
    DirectionResult {
        ios,
        bytes,
        failed: 0,
        bytes_per_s: bytes as f64 / 10.0,
        iops: ios as f64 / 10.0,
        latency: Some(Latency {
            queue: None,
            file: Some(summary(ios.min(1000), low_ns)),
            gpu: None,
            total: total(ios, low_ns),
        }),
        of_ceiling: None,
    }
}

/// The bytes took the requested path, and one evidence source supports that.
pub(crate) fn proof(plan: &JobPlan) -> Proof {
    let ring = plan.path.choice.actual != "host";
    let (route, source, words) = match (ring, plan.direct) {
        (false, DirectMode::Direct) => (Route::Direct, Source::Storage, "direct"),
        (false, DirectMode::Buffered) => (Route::HostMemory, Source::PageCache, "page cache"),
        (true, DirectMode::Direct) => (Route::BounceHost, Source::Storage, "bounce (host)"),
        (true, DirectMode::Buffered) => {
            (Route::BounceHost, Source::PageCache, "bounce (host), from page cache")
        }
    };
    let evidence = |name: &str, assessment| Evidence {
        name: name.to_owned(),
        direction: "read".to_owned(),
        source: format!("counters of {name}"),
        before: Some("read_bytes 4096".to_owned()),
        after: Some("read_bytes 21474840576".to_owned()),
        observed_bytes: Some(20 << 30),
        expected_bytes: Some(20 << 30),
        assessment,
        why: format!("{name} has its reasons"),
    };
    let absent = Evidence {
        before: None,
        after: None,
        observed_bytes: None,
        expected_bytes: None,
        ..evidence("nvidia_fs", Assessment::Inconclusive)
    };
    Proof {
        requested: format!("{}, as requested", plan.path.choice.actual),
        actual: format!("{}, engine {}", plan.path.choice.actual, plan.engine.actual),
        verdict: Verdict { words: words.to_owned(), route, source },
        as_requested: true,
        sentence: format!("{words}: storage delivered all bytes by process_io."),
        evidence: vec![evidence("process_io", Assessment::Supports), absent],
    }
}

/// The job ran ten seconds and read 20480 blocks of its first size.
pub(crate) fn result(plan: &JobPlan) -> JobResult {
    let read = side(20_480, plan.blocks[0].min_bytes, 250_000);
    let worker = |thread| WorkerResult {
        thread,
        bytes: read.bytes / 2,
        ios: read.ios / 2,
        done_ns: 10 * SECOND - u64::from(1 - thread) * 50_000_000,
    };
    JobResult {
        name: plan.name.clone(),
        group: plan.group,
        ended: EndedHow::Complete,
        first_done_ns: 9_950_000_000,
        first_done_bytes: read.bytes / 1000 * 995,
        last_done_ns: 10 * SECOND,
        measured: Some(TimeSpan { begin_ns: SECOND, end_ns: 11 * SECOND }),
        cpu: CpuCost {
            user_s: 0.5,
            system_s: 3.0,
            cores_busy: 0.35,
            us_per_mib: Some(170.9),
            scope: CpuScope::AllThreads,
            voluntary_switches: 20_000,
            involuntary_switches: 12,
        },
        engine: vec![ActualEngine {
            actual: plan.engine.actual.clone(),
            steps_down: Vec::new(),
            workers: plan.threads,
        }],
        file_leg: FileLegCounters {
            read_ios: read.ios,
            read_bytes: read.bytes,
            ..FileLegCounters::default()
        },
        direct_actual: plan.direct,
        proof: Some(proof(plan)),
        series: vec![Point {
            at_ns: 1_000_000_000,
            span_ns: SECOND,
            read_bytes: read.bytes / 10,
            read_ios: read.ios / 10,
            p50_ns: Some(300_000),
            p99_ns: Some(500_000),
            ..Point::default()
        }],
        workers: (0..2).map(worker).collect(),
        read,
        ..JobResult::default()
    }
}

fn host() -> HostFacts {
    let node = |node: u32| NumaNode {
        node,
        cpus: Some((node * 16..node * 16 + 16).collect()),
        ..NumaNode::default()
    };
    HostFacts {
        cpu: CpuFacts {
            model: Some("Example CPU 9000".to_owned()),
            online: Some((0..32).collect()),
            allowed: Some((0..32).collect()),
            ..CpuFacts::default()
        },
        numa: NumaFacts { nodes: vec![node(0), node(1)] },
        memory: MemoryFacts { usable_bytes: Some(256 << 30), ..MemoryFacts::default() },
        kernel: KernelFacts { release: Some("6.8.0".to_owned()), ..KernelFacts::default() },
        io_limits: None,
        problems: Vec::new(),
    }
}

fn storage() -> TargetStorage {
    TargetStorage {
        path: "/data".to_owned(),
        examined: Some("/data".to_owned()),
        file: None,
        mount: Some(MountFacts {
            mount_point: "/data".to_owned(),
            fs_type: "xfs".to_owned(),
            source: "/dev/nvme0n1".to_owned(),
            fs_root: "/".to_owned(),
            ..MountFacts::default()
        }),
        device: Some(BlockFacts {
            name: "nvme0n1".to_owned(),
            device: DeviceNumber { major: 259, minor: 0 },
            kind: BlockKind::Disk,
            disk: None,
            detail: None,
            model: Some("Example NVMe 3.84TB".to_owned()),
            transport: Some("pcie".to_owned()),
            pci_address: Some("0000:41:00.0".to_owned()),
            numa_node: Some(1),
            size_bytes: Some(3_840_755_982_336),
            read_only: Some(false),
            rotational: Some(false),
            logical_block_bytes: Some(512),
            physical_block_bytes: Some(4096),
            max_request_bytes: Some(128 << 10),
            read_ahead_bytes: Some(128 << 10),
            scheduler: Some("none".to_owned()),
            queue_requests: Some(1023),
            write_cache: Some("write back".to_owned()),
            members: Vec::new(),
        }),
    }
}

/// A whole record around these jobs, all of which ran as [`result`] has it.
pub(crate) fn record(jobs: Vec<JobPlan>) -> Record {
    let software_gpu = jobs.iter().any(|job| job.gpus.iter().any(|gpu| gpu.software));
    let results = jobs.iter().map(result).collect();
    let plan = Plan {
        name: None,
        jobs,
        interval_ns: SECOND,
        left_out: Vec::new(),
        ceilings: Vec::new(),
        cufile: std::collections::BTreeMap::new(),
        software_gpu,
    };
    Record {
        schema_version: SCHEMA_VERSION,
        content_sha256: ContentDigest::Intact,
        answers: Vec::new(),
        tool: Tool { name: "gpuio".to_owned(), version: "0.1.0".to_owned() },
        command: ["gpuio", "bench", "--directory", "/data"].map(str::to_owned).to_vec(),
        started_at: "2026-11-21T10:15:00+01:00".to_owned(),
        host: host(),
        boot: Some("6a0f2a3e-0000-4000-8000-00000000b007".to_owned()),
        storage: vec![storage()],
        driver_version: None,
        cufile: None,
        plan_text: gpuio_report::plan_text(&plan),
        plan,
        ended: EndedHow::Complete,
        error: None,
        setup: SetupTimes {
            data_set_ns: 1_200_000_000,
            laid_out_bytes: 0,
            open_ns: 3_400_000,
            verify_ns: 0,
            ceilings_ns: 0,
            alone_ns: 0,
            close_ns: 900_000,
        },
        jobs: results,
        totals: Vec::new(),
        ceilings: Vec::new(),
        expected: Vec::new(),
        watched: None,
        warnings: Vec::new(),
        rank: None,
        run_of: None,
        ranks: None,
    }
}
