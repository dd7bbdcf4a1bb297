//! Plans of a made-up machine and results made by hand.

use gpuio_record::facts::{CpuFacts, HostFacts, MemoryFacts};
use gpuio_record::{
    CacheReading, CpuCost, DirectionResult, EndedHow, FileLegCounters, Gpu, JobPlan, JobResult,
    Plan,
};

use gpuio_job::plan::{DirectAnswer, Facts, Gpus, TargetInfo, TargetLookup, plan};

struct Disk;

impl TargetLookup for Disk {
    fn look(&self, path: &str) -> std::sync::Arc<TargetInfo> {
        let refuses = path.contains("refuses");
        std::sync::Arc::new(TargetInfo {
            free_bytes: Some(1 << 40),
            direct: if refuses {
                DirectAnswer::Refused
            } else {
                DirectAnswer::Works { alignment: 512 }
            },
            filesystem: Some(if refuses { "tmpfs" } else { "xfs" }.into()),
            ..TargetInfo::default()
        })
    }

    fn tensors(&self, _path: &str) -> Result<Vec<(u64, u64)>, String> {
        Ok(vec![(8, 1 << 20)])
    }

    fn drive_node(&self, _path: &str) -> Option<u32> {
        None
    }
}

/// Four CPUs and 16 GiB.
pub fn host() -> HostFacts {
    HostFacts {
        cpu: CpuFacts { allowed: Some(vec![0, 1, 2, 3]), ..CpuFacts::default() },
        memory: MemoryFacts { usable_bytes: Some(16 << 30), ..MemoryFacts::default() },
        ..HostFacts::default()
    }
}

/// The plan of the one job that these lines of a job file ask for. There is one GPU.
pub fn job(lines: &str) -> JobPlan {
    planned(lines).jobs.remove(0)
}

/// The whole plan of that job.
pub fn planned(lines: &str) -> Plan {
    let text = format!("[a]\n{lines}\n");
    let spec = gpuio_job::spec::parse_job_file("f", text, &|_| None).expect("the test's own lines");
    let gpu = Gpu {
        index: 0,
        name: "Test GPU".into(),
        uuid: "GPU-0".into(),
        pci: "0000:01:00.0".into(),
        numa_node: Some(1),
        memory_bytes: 1 << 30,
        software: false,
        managed_hints: Some(true),
        read_only_register: Some(true),
    };
    let gpus = Gpus::Present(vec![gpu]);
    let host = host();
    let missing = |_: &str| None;
    let facts = Facts {
        catalog: gpuio_io::CATALOG,
        host: &host,
        gpus: &gpus,
        targets: &Disk,
        engine_missing: &missing,
        cufile_missing: &|_| None,
        cufile_direct: Err("not opened"),
    };
    plan(&spec, &facts).expect("the test's own lines")
}

/// 10 s in which `ios` I/Os of 4 KiB came from storage or went there, and nothing unusual.
pub fn result(job: &JobPlan, ios: u64) -> JobResult {
    let bytes = ios * 4096;
    let (reads, writes) = if job.read_percent > 0 { (ios, 0) } else { (0, ios) };
    let direction = |ios: u64| DirectionResult { ios, bytes: ios * 4096, ..Default::default() };
    JobResult {
        name: job.name.clone(),
        group: job.group,
        ended: EndedHow::Complete,
        read: direction(reads),
        write: direction(writes),
        first_done_ns: 9_900_000_000,
        first_done_bytes: bytes,
        last_done_ns: 10_000_000_000,
        measured: None,
        never_started: None,
        cpu: CpuCost::default(),
        engine: Vec::new(),
        file_leg: FileLegCounters {
            read_ios: reads,
            read_bytes: reads * 4096,
            write_ios: writes,
            write_bytes: writes * 4096,
            ..FileLegCounters::default()
        },
        direct_actual: job.direct,
        cache: CacheReading {
            process_read_bytes: Some(reads * 4096),
            process_write_bytes: Some(writes * 4096),
            ..CacheReading::default()
        },
        proof: None,
        failures: Vec::new(),
        failed: 0,
        verify: None,
        between_ios_ns: 0,
        flushes: None,
        steady: None,
        stonewall: None,
        series: Vec::new(),
        workers: Vec::new(),
        gpus: Vec::new(),
        via: None,
        fan_out: None,
        library: None,
        mapped: None,
        initiated: None,
        beside: None,
        feed: None,
        replay: None,
    }
}
