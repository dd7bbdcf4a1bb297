//! Proof of path: the data path that a job's bytes took, with evidence.
//!
//! An evidence source reads a counter before the clock starts and after it stops
//! ([`EvidenceCollector`]); once results are known it reports for each job and direction.
//! [`verdict`] uses observations and nothing else. A new evidence source is one file here and one
//! row in [`EVIDENCE_SOURCES`].
//!
//! Counters cover the process or a device, never a job. What may be concluded about one job of
//! several is therefore bounded by the group's total: see [`share()`].

mod block;
mod cufile_properties;
mod cufile_stats;
mod gpu_pcie;
mod library;
mod mounts;
mod nfs;
mod nic;
mod nvidia_fs;
mod own;
mod page_cache;
mod pcie_meter;
mod process_io;
mod share;
mod verdict;

use gpuio_host::Root;
use gpuio_io::path::CufileDriver;
use gpuio_record::{DirectMode, Evidence, JobPlan, JobResult, MemoryKind, Proof};
use gpuio_units::human_bytes;

pub(crate) use share::Share;
use share::{OtherJobs, share};
use verdict::{Flow, Holes, Observed, PathKind, Requested};

/// One evidence source.
struct EvidenceSourceEntry {
    name: &'static str,
    source: &'static str,
    /// Reads for the first time, when all files are open and nothing has started.
    first: fn(&EvidenceContext<'_>) -> Box<dyn EvidenceSource>,
}

/// What evidence sources look at.
struct EvidenceContext<'a> {
    root: &'a Root,
    jobs: &'a [JobPlan],
    /// The open cuFile library, where some path of the run needs it.
    cufile: Option<&'a CufileDriver>,
}

/// All evidence sources, in the order in which they are shown.
const EVIDENCE_SOURCES: &[EvidenceSourceEntry] = &[
    own::ENTRY,
    process_io::ENTRY,
    block::ENTRY,
    nfs::ENTRY,
    nic::ENTRY,
    page_cache::ENTRY,
    cufile_stats::ENTRY,
    cufile_properties::ENTRY,
    nvidia_fs::ENTRY,
    gpu_pcie::ENTRY,
];

/// A evidence source with its first reading.
trait EvidenceSource {
    /// Reads for the second time, when the last worker is done and before anything is verified.
    fn again(&mut self, root: &Root);
    /// What it has to say of one job and direction.
    fn observe(&self, subject: &Subject<'_>) -> Observation;
}

/// A job and direction to observe about.
struct Subject<'a> {
    jobs: &'a [JobPlan],
    results: &'a [JobResult],
    /// The job's index in both.
    at: usize,
    flow: Flow,
}

impl Subject<'_> {
    fn job(&self) -> &JobPlan {
        &self.jobs[self.at]
    }

    fn result(&self) -> &JobResult {
        &self.results[self.at]
    }

    /// Bytes of the job's file leg, ramp included, as the counters see them.
    fn bytes(&self) -> u64 {
        bytes(self.result(), self.flow)
    }

    /// Compares a counter with the bytes of all jobs that it covers.
    fn share(&self, moved: u64, covers: impl Fn(usize) -> bool) -> (u64, Option<Share>) {
        let mut others = OtherJobs::default();
        for (at, (job, result)) in self.jobs.iter().zip(self.results).enumerate() {
            if at != self.at && covers(at) && bytes(result, self.flow) > 0 {
                others.bytes += bytes(result, self.flow);
                // Read-ahead and write-back move other amounts than the job did.
                others.blur |= goes_through_cache(job, result);
            }
        }
        (self.bytes() + others.bytes, share(moved, self.bytes(), &others))
    }
}

/// Whether a library moves the job's bytes.
fn by_library(job: &JobPlan) -> bool {
    PathKind::of(&job.path.choice.actual) == PathKind::Library
}

/// Whether GPU memory is no memory of the CPU's: on machines with 64-bit Arm CPUs it may be
/// (NVLink-C2C), where a POSIX call can reach it without a buffer between.
const APART: bool = cfg!(target_arch = "x86_64");
const NOT_APART: &str = "on this kind of machine POSIX calls may reach GPU memory by themselves";

/// Whether the bytes were requested in GPU memory.
fn on_gpu(job: &JobPlan) -> bool {
    let host = matches!(job.memory, MemoryKind::Pinned | MemoryKind::Malloc | MemoryKind::Mmap);
    !job.gpus.is_empty() && !host
}

fn bytes(result: &JobResult, flow: Flow) -> u64 {
    match flow {
        Flow::Read => result.file_leg.read_bytes,
        Flow::Write => result.file_leg.write_bytes,
    }
}

/// What the file system said of holes in the job's files.
fn holes(result: &JobResult) -> Holes {
    let found = result.cache.holes.as_ref();
    found.map_or_else(Holes::default, |one| Holes {
        absent: one.absent_bytes(),
        range: one.range_bytes,
    })
}

/// Whether a job's bytes pass the page cache as far as the kernel knows.
fn goes_through_cache(job: &JobPlan, result: &JobResult) -> bool {
    result.direct_actual == DirectMode::Buffered || job.engine.actual == "mmap"
}

/// What an evidence source has to say.
#[derive(Debug, Clone, PartialEq)]
struct Observation {
    before: Option<String>,
    after: Option<String>,
    moved: Option<u64>,
    of: Option<u64>,
    observed: Observed,
    why: String,
}

impl Observation {
    /// Nothing, for this reason.
    fn none(why: impl Into<String>) -> Observation {
        Observation {
            before: None,
            after: None,
            moved: None,
            of: None,
            observed: Observed::Nothing,
            why: why.into(),
        }
    }
}

/// The evidence sources of a group.
#[expect(missing_debug_implementations, reason = "its sources are behind a trait")]
pub struct EvidenceCollector {
    sources: Vec<(&'static EvidenceSourceEntry, Box<dyn EvidenceSource>)>,
}

impl EvidenceCollector {
    /// First readings.
    pub fn begin(jobs: &[JobPlan], cufile: Option<&CufileDriver>) -> EvidenceCollector {
        let context = EvidenceContext { root: &Root::live(), jobs, cufile };
        let first = |row: &'static EvidenceSourceEntry| (row, (row.first)(&context));
        EvidenceCollector { sources: EVIDENCE_SOURCES.iter().map(first).collect() }
    }

    /// Second readings.
    pub fn end(&mut self) {
        let root = Root::live();
        for (_, source) in &mut self.sources {
            source.again(&root);
        }
    }

    /// Puts its proof into each result. Jobs and results are those of one group, in plan order.
    pub fn prove(&self, jobs: &[JobPlan], results: &mut [JobResult]) {
        let proofs: Vec<Proof> =
            (0..results.len()).map(|at| self.of_job(jobs, results, at)).collect();
        for (result, proof) in results.iter_mut().zip(proofs) {
            result.proof = Some(proof);
        }
    }

    fn of_job(&self, jobs: &[JobPlan], results: &[JobResult], at: usize) -> Proof {
        let (job, result) = (&jobs[at], &results[at]);
        let flows = [(Flow::Read, job.read_percent > 0), (Flow::Write, job.read_percent < 100)];
        let mut verdicts = Vec::new();
        let mut entries = Vec::new();
        for flow in flows.into_iter().filter_map(|(flow, requested)| requested.then_some(flow)) {
            let subject = Subject { jobs, results, at, flow };
            let requested = Requested {
                kind: PathKind::of(&job.path.choice.actual),
                direct: job.direct == DirectMode::Direct && job.engine.actual != "mmap",
                direct_actual: !goes_through_cache(job, result),
                flow,
                bytes: subject.bytes(),
                holes: holes(result),
                software_gpu: job.gpus.iter().any(|gpu| gpu.software),
            };
            let mut observations: Vec<(&'static EvidenceSourceEntry, Observation)> =
                self.sources.iter().map(|(row, who)| (*row, who.observe(&subject))).collect();
            reconcile(&mut observations);
            let mut all_observed: Vec<(&str, Observed)> = observations
                .iter()
                .map(|(row, observation)| (row.name, observation.observed))
                .collect();
            // What the path says of itself is part of `own`, beside the legs.
            let via = result.via.as_ref();
            all_observed
                .extend(via.map(|via| (own::ENTRY.name, own::relayed(via, flow, subject.bytes()))));
            verdicts.push((flow, verdict::of_direction(&requested, &all_observed)));
            entries.extend(
                observations
                    .into_iter()
                    .map(|(row, observation)| entry(row, &requested, observation)),
            );
        }
        let (verdict, as_requested, sentence) = verdict::together(verdicts, jobs.len() > 1);
        Proof {
            requested: requested_path(job),
            actual: actual_path(job, result),
            verdict,
            as_requested,
            sentence,
            evidence: entries,
        }
    }
}

fn entry(row: &EvidenceSourceEntry, requested: &Requested, observation: Observation) -> Evidence {
    Evidence {
        name: row.name.to_owned(),
        direction: requested.flow.name().to_owned(),
        source: row.source.to_owned(),
        before: observation.before,
        after: observation.after,
        observed_bytes: observation.moved,
        expected_bytes: observation.of,
        assessment: verdict::assess(requested, observation.observed),
        why: observation.why,
    }
}

/// A device counts for everybody. Where it moved more than this process caused, what is over is
/// others' traffic, and the device's figure says nothing of ours; less than that is a
/// contradiction, and stays one.
fn reconcile(observations: &mut [(&'static EvidenceSourceEntry, Observation)]) {
    let find = |name: &str| observations.iter().position(|(row, _)| row.name == name);
    let (Some(process), Some(device)) = (find(process_io::ENTRY.name), find(block::ENTRY.name))
    else {
        return;
    };
    let (process, device) = (observations[process].1.clone(), &mut observations[device].1);
    let (Observed::Storage(_), Observed::Storage(_)) = (process.observed, device.observed) else {
        return;
    };
    let (Some(caused), Some(moved), Some(of)) = (process.moved, device.moved, process.of) else {
        return;
    };
    if moved > caused && moved - caused > of / 10 {
        device.observed = Observed::Nothing;
        device.why = format!(
            "the device moved {} more than this process caused: others use it too",
            size(moved - caused)
        );
    }
}

fn requested_path(job: &JobPlan) -> String {
    let path = &job.path.choice.actual;
    match (PathKind::of(path), job.direct) {
        (PathKind::User, DirectMode::Direct) => {
            format!("{path}, O_DIRECT: between storage and the program's memory, nothing between")
        }
        (PathKind::User, DirectMode::Buffered) => {
            format!("{path}, buffered: through the page cache to the program's memory")
        }
        (PathKind::Ring, DirectMode::Direct) => format!(
            "{path}, O_DIRECT: between storage and a buffer in host memory, then GPU memory"
        ),
        (PathKind::Ring, DirectMode::Buffered) => format!(
            "{path}, buffered: through the page cache and a buffer in host memory to GPU memory"
        ),
        (PathKind::Relay, _) => format!(
            "{path}: between storage and a buffer in host memory, then through another GPU's memory"
        ),
        (PathKind::Library, _) => format!("{path}: between storage and GPU memory, by a library"),
    }
}

fn actual_path(job: &JobPlan, result: &JobResult) -> String {
    let mut engines: Vec<&str> =
        result.engine.iter().map(|engine| engine.actual.as_str()).collect();
    engines.dedup();
    let held = match result.direct_actual {
        DirectMode::Direct => "every descriptor has O_DIRECT",
        DirectMode::Buffered => "descriptors without O_DIRECT",
    };
    format!("{}, engine {}, {held}", job.path.choice.actual, engines.join("+"))
}

#[expect(clippy::cast_precision_loss, reason = "three digits are printed")]
fn size(bytes: u64) -> String {
    human_bytes(bytes as f64)
}

#[cfg(test)]
mod test;
