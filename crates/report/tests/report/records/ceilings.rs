//! A record with ceilings: found, taken from a result, in theory, and not to be had.

use gpuio_record::{
    Ceiling, CeilingKind, CeilingPlan, CeilingSource, MemoryKind, OfCeiling, Record, Towards,
};

use super::build::{choice, gpu, job, path, record};

const SECOND: u64 = 1_000_000_000;

fn ceiling(kind: CeilingKind, name: &str, source: CeilingSource, rate: Option<f64>) -> Ceiling {
    let moved = !matches!(source, CeilingSource::Theory);
    let plan = CeilingPlan {
        name: name.to_owned(),
        kind,
        direction: moved.then_some(Towards::Read),
        source,
        what: "what it takes".to_owned(),
        engine: None,
        gpus: Vec::new(),
        threads: moved.then_some(2),
        software_gpu: false,
        restores: false,
        jobs: vec!["gpu".to_owned()],
    };
    let iops = rate.filter(|_| moved).map(|rate| rate / 1_048_576.0);
    Ceiling { plan, bytes_per_s: rate, iops, detail: None, why: None, restored: None }
}

/// The host path and the staged path, the latter above its storage ceiling.
pub(crate) fn ceilings() -> Record {
    let mut staged = job("gpu");
    staged.path = path("staged", 2, "CPU_GPU");
    staged.group = 1;
    staged.memory = MemoryKind::Device;
    staged.streams = 1;
    staged.gpus = vec![gpu(0, false)];
    staged.ceilings_ns = Some(SECOND);
    let mut host = job("host");
    host.engine = choice("io_uring");
    host.ceilings_ns = Some(SECOND);
    let mut record = record(vec![host, staged]);
    let rate = record.jobs[0].read.bytes_per_s;
    let measured = || CeilingSource::Measured { runtime_ns: SECOND };
    use CeilingKind::{CpuCopy, GpuLink, PcieGpu, PcieNvme, Storage};
    let result = CeilingSource::Result { job: "host".to_owned() };
    let mut all = vec![
        ceiling(Storage, "storage of gpu, read", result, Some(rate)),
        ceiling(GpuLink, "link to GPU 0", measured(), Some(5.5e10)),
        ceiling(CpuCopy, "cpu copy of gpu", measured(), None),
        ceiling(PcieGpu, "pcie above GPU 0", CeilingSource::Theory, Some(6.3e10)),
        ceiling(PcieNvme, "pcie above the drive of /data", CeilingSource::Theory, None),
    ];
    all[1].plan.software_gpu = true;
    all[2].why = Some("not measured: the run was interrupted".to_owned());
    all[3].detail = Some("0000:1b:00.0 PCIe 5.0 x16".to_owned());
    all[4].why = Some("the kernel says nothing of the PCIe links".to_owned());
    record.jobs[1].read.bytes_per_s = rate * 1.004;
    record.jobs[1].read.of_ceiling = Some(OfCeiling {
        ceiling: "storage of gpu, read".to_owned(),
        kind: Storage,
        percent: 100.4,
    });
    record.plan.ceilings = all.iter().map(|ceiling| ceiling.plan.clone()).collect();
    record.ceilings = all;
    record.setup.ceilings_ns = 3 * SECOND;
    record
}
