//! Ceilings without a run: the lowest of them, links, buffers, and reasons.

use gpuio_host::pci::{Lanes, PciFunction};
use gpuio_record::facts::{CpuFacts, HostFacts, MemoryFacts};
use gpuio_record::{DirectMode, DirectionResult, EndedHow, Plan, Proof, Route, Source, Verdict};

use super::*;
use gpuio_testkit::jobs::{job, planned, result};

fn plan_of(kind: CeilingKind, name: &str, direction: Option<Towards>) -> CeilingPlan {
    CeilingPlan {
        name: name.to_owned(),
        kind,
        direction,
        source: CeilingSource::Theory,
        what: String::new(),
        engine: None,
        gpus: Vec::new(),
        threads: None,
        software_gpu: false,
        restores: false,
        jobs: vec!["a".to_owned()],
    }
}

fn found(kind: CeilingKind, name: &str, direction: Option<Towards>, rate: Option<f64>) -> Ceiling {
    let plan = plan_of(kind, name, direction);
    Ceiling { plan, bytes_per_s: rate, iops: None, detail: None, why: None, restored: None }
}

fn with_ceilings(ceilings: &[Ceiling]) -> (DirectionResult, DirectionResult) {
    let mut results = [result(&job("rw=rw\nbs=4k"), 1000)];
    for side in [&mut results[0].read, &mut results[0].write] {
        (side.ios, side.bytes_per_s) = (1000, 50.0);
    }
    assign_lowest(&mut results, ceilings);
    let [result] = results;
    (result.read, result.write)
}

#[test]
fn the_lowest_known_ceiling_of_its_direction_counts() {
    let (read, write) = (Some(Towards::Read), Some(Towards::Write));
    let all = [
        found(CeilingKind::Storage, "storage", read, Some(100.0)),
        found(CeilingKind::GpuLink, "up", read, Some(80.0)),
        found(CeilingKind::GpuLink, "down", write, Some(40.0)),
        found(CeilingKind::CpuCopy, "copy", None, Some(90.0)),
        found(CeilingKind::Gather, "unknown", None, None),
        found(CeilingKind::PcieGpu, "nothing", None, Some(0.0)),
    ];
    let (reads, writes) = with_ceilings(&all);
    let reads = reads.of_ceiling.unwrap();
    assert_eq!((reads.ceiling.as_str(), reads.kind), ("up", CeilingKind::GpuLink));
    assert!((reads.percent - 62.5).abs() < 1e-9);
    // Above its ceiling is shown as it is.
    let writes = writes.of_ceiling.unwrap();
    assert_eq!(writes.ceiling, "down");
    assert!((writes.percent - 125.0).abs() < 1e-9);
}

/// A rate of 590 % of the storage is none of it.
#[test]
fn a_ceiling_of_a_drive_does_not_bound_what_the_page_cache_served() {
    let all = [
        found(CeilingKind::Storage, "storage", None, Some(10.0)),
        found(CeilingKind::PcieNvme, "links", None, Some(20.0)),
        found(CeilingKind::CpuCopy, "copy", None, Some(100.0)),
    ];
    let of = |direct, source| {
        let mut results = [result(&job("rw=read\nbs=4k"), 1000)];
        (results[0].read.ios, results[0].read.bytes_per_s) = (1000, 59.0);
        results[0].direct_actual = direct;
        let verdict = Verdict::new(Route::HostMemory, source, true, false);
        results[0].proof = Some(Proof {
            requested: String::new(),
            actual: String::new(),
            verdict,
            as_requested: true,
            sentence: String::new(),
            evidence: Vec::new(),
        });
        assign_lowest(&mut results, &all);
        results[0].read.of_ceiling.clone().unwrap().ceiling
    };
    assert_eq!(of(DirectMode::Direct, Source::Storage), "storage");
    assert_eq!(of(DirectMode::Direct, Source::PageCache), "copy");
    // The ceiling of a buffered job is buffered, too.
    assert_eq!(of(DirectMode::Buffered, Source::PageCache), "storage");
}

#[test]
fn without_a_figure_nothing_is_reported() {
    let (reads, writes) = with_ceilings(&[]);
    assert_eq!((reads.of_ceiling, writes.of_ceiling), (None, None));
    let mut other = found(CeilingKind::Storage, "storage", None, Some(100.0));
    other.plan.jobs = vec!["b".to_owned()];
    assert_eq!(with_ceilings(&[other]).0.of_ceiling, None);
    let mut nothing = [result(&job("bs=4k"), 0)];
    assign_lowest(&mut nothing, &[found(CeilingKind::Storage, "storage", None, Some(100.0))]);
    assert_eq!(nothing[0].read.of_ceiling, None);
}

#[test]
fn a_result_that_did_not_end_well_is_no_ceiling() {
    let plan = job("bs=4k");
    let mut result = result(&plan, 1000);
    result.read.bytes_per_s = 5.0;
    assert!(of_result("a", Some(Towards::Read), &[result.clone()]).is_ok());
    assert!(of_result("b", None, &[result.clone()]).unwrap_err().contains("did not run"));
    assert!(of_result("a", Some(Towards::Write), &[result.clone()]).is_err());
    for (ended, word) in [(EndedHow::Interrupted, "interrupted"), (EndedHow::Failed, "failed")] {
        result.ended = ended;
        assert!(of_result("a", None, &[result.clone()]).unwrap_err().contains(word));
    }
}

fn function(address: &str, now: (u64, u64), most: (u64, u64)) -> PciFunction {
    let lanes = |(speed, width): (u64, u64)| Lanes {
        mega_transfers: (speed > 0).then_some(speed),
        width: (width > 0).then_some(width),
    };
    PciFunction { address: address.to_owned(), now: lanes(now), most: lanes(most) }
}

#[test]
fn the_lowest_link_is_named_and_an_idle_one_is_not_taken_for_slow() {
    // 32 GT/s × 16 × 128/130 / 8.
    let gpu = function("0000:3b:00.0", (2500, 16), (32_000, 16));
    let (rate, words) = pcie::lowest(std::slice::from_ref(&gpu)).unwrap();
    assert!((rate - 63.015e9).abs() < 0.01e9, "{rate}");
    assert!(words.contains("PCIe 5.0 x16") && words.contains("2.5 GT/s"), "{words}");
    let narrow = function("0000:3a:00.0", (16_000, 8), (16_000, 16));
    let (rate, words) = pcie::lowest(&[gpu.clone(), narrow]).unwrap();
    assert!((rate - 15.754e9).abs() < 0.01e9, "{rate}");
    assert!(words.starts_with("0000:3a:00.0 PCIe 4.0 x8 (could be x16)"), "{words}");
    let (rate, _) = pcie::lowest(&[function("0000:01:00.0", (2500, 4), (5000, 4))]).unwrap();
    assert!((rate - 2.0e9).abs() < 1.0, "8b/10b: {rate}");
    let unknown = function("0000:00:01.0", (0, 0), (0, 0));
    assert_eq!(pcie::lowest(std::slice::from_ref(&unknown)), None);
    let (_, words) = pcie::lowest(&[gpu, unknown]).unwrap();
    assert!(words.contains("1 of 2 links on the path unknown"), "{words}");
}

fn machine(l3: Option<u64>, usable: u64) -> HostFacts {
    HostFacts {
        cpu: CpuFacts { l3_cache_bytes: l3, ..CpuFacts::default() },
        memory: MemoryFacts { usable_bytes: Some(usable), ..MemoryFacts::default() },
        ..HostFacts::default()
    }
}

#[test]
fn copies_come_from_more_than_the_cache_unless_the_data_is_less() {
    const MIB: u64 = 1 << 20;
    let source = |lines: &str, host: &HostFacts| {
        cpu_copy::buffers(&job(lines), host).map(|buffers| buffers.source as u64)
    };
    let host = machine(Some(32 * MIB), 64 << 30);
    let large = "direct=0\nbs=1m\nsize=1g\nthreads=2";
    assert_eq!(source(large, &host), Ok(64 * MIB));
    assert_eq!(source("direct=0\nbs=1m\nsize=5m", &host), Ok(5 * MIB));
    assert_eq!(source(large, &machine(None, 64 << 30)), Ok(128 * MIB));
    // Memory bounds it: a quarter of 128 MiB for two threads, less the ring of each.
    let tight = cpu_copy::buffers(&job(large), &machine(Some(32 * MIB), 128 * MIB)).unwrap();
    assert!((tight.source + tight.ring) as u64 <= 16 * MIB, "{tight:?}");
    assert!(source(large, &machine(None, MIB)).unwrap_err().contains("memory"));
}

/// A machine with an empty `/sys`, on which no load can run.
struct Bare {
    host: HostFacts,
    root: Root,
    stop: Arc<AtomicBool>,
    runs: u32,
    announced: bool,
}

impl Bench for Bare {
    fn load(&mut self, job: &JobPlan, _: bool) -> Result<JobResult, String> {
        self.runs += 1;
        Err(format!("{} can't run", job.path.choice.actual))
    }
    /// The first load left a block wrong, though it gave no figure.
    fn restored(&mut self) -> Option<VerifyOutcome> {
        let first =
            std::mem::take(&mut self.runs) > 0 && !std::mem::replace(&mut self.announced, true);
        first.then(|| VerifyOutcome { bad_blocks: 1, ..VerifyOutcome::default() })
    }
    fn host(&self) -> &HostFacts {
        &self.host
    }
    fn root(&self) -> &Root {
        &self.root
    }
    fn clock(&self) -> Clock {
        Clock::start()
    }
    fn stop(&self) -> &Arc<AtomicBool> {
        &self.stop
    }
}

#[test]
fn what_fails_is_a_ceiling_with_its_reason() {
    let empty = tempfile::tempdir().unwrap();
    let mut bare = Bare {
        host: machine(None, 0),
        root: Root::at(empty.path()),
        stop: Arc::default(),
        runs: 0,
        announced: false,
    };
    let Plan { jobs, ceilings: plans, .. } = planned("path=gather\ngpu=0\nceilings=1ms");
    let kinds: Vec<CeilingKind> = plans.iter().map(|plan| plan.kind).collect();
    use CeilingKind::{Gather, PcieGpu, PcieNvme, Storage};
    assert_eq!(kinds, [Storage, Gather, PcieGpu, PcieNvme]);
    let all = find_all(&plans, &jobs, &[], &mut bare, &|| None, &|_| ());
    let reasons: Vec<&str> = all.iter().map(|one| one.why.as_deref().unwrap()).collect();
    assert_eq!(reasons[..2], ["host can't run", "gather can't run"]);
    assert!(reasons[2].contains("no PCI device 0000:01:00.0"), "{reasons:?}");
    assert!(reasons[3].contains("no block device"), "{reasons:?}");
    // The findings of a pass that put data back are kept, also where there is no figure.
    let restored: Vec<Option<u64>> =
        all.iter().map(|one| one.restored.as_ref().map(|found| found.bad_blocks)).collect();
    assert_eq!(restored, [Some(1), None, None, None]);
    // Once stopped nothing is run, and what only has to be read is still read.
    let stopped = || Some("enough".to_owned());
    let all = find_all(&plans, &jobs, &[], &mut bare, &stopped, &|_| panic!("nothing runs"));
    assert_eq!(all[0].why.as_deref(), Some("enough"));
    assert_eq!(all[2].why.as_deref(), Some(reasons[2]));
}
