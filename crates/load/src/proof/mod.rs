//! Proof of path: which way a job's bytes took, and who says so.
//!
//! A witness reads a counter before the clock starts and after it stops ([`Evidence`]); once
//! results are known it testifies for each job and direction. [`verdict`] judges testimonies and
//! looks at nothing else. A new witness is one file here and one row in [`WITNESSES`].
//!
//! Counters cover the process or a device, never a job. What is said of one job of several is
//! therefore bounded by the group's total: see [`share()`].

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
use gpuio_record::{DirectMode, Evidence as Entry, JobPlan, JobResult, MemoryKind, Proof};
use gpuio_units::human_bytes;

pub(crate) use share::Share;
use share::{OtherJobs, share};
use verdict::{Ask, Flow, Holes, Saw, Way};

/// One witness.
struct Row {
    name: &'static str,
    source: &'static str,
    /// Reads for the first time, when all files are open and nothing has started.
    first: fn(&Scene<'_>) -> Box<dyn Witness>,
}

/// What witnesses look at.
struct Scene<'a> {
    root: &'a Root,
    jobs: &'a [JobPlan],
    /// The open cuFile library, where some path of the run needs it.
    cufile: Option<&'a CufileDriver>,
}

/// All witnesses, in the order in which they are shown.
const WITNESSES: &[Row] = &[
    own::ROW,
    process_io::ROW,
    block::ROW,
    nfs::ROW,
    nic::ROW,
    page_cache::ROW,
    cufile_stats::ROW,
    cufile_properties::ROW,
    nvidia_fs::ROW,
    gpu_pcie::ROW,
];

/// A witness with its first reading.
trait Witness {
    /// Reads for the second time, when the last worker is done and before anything is verified.
    fn again(&mut self, root: &Root);
    /// What it has to say of one job and direction.
    fn testify(&self, case: &Case<'_>) -> Testimony;
}

/// A job and direction to testify about.
struct Case<'a> {
    jobs: &'a [JobPlan],
    results: &'a [JobResult],
    /// The job's place in both.
    at: usize,
    flow: Flow,
}

impl Case<'_> {
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
    Way::of(&job.path.choice.actual) == Way::Library
}

/// Whether GPU memory is no memory of the CPU's: on machines with 64-bit Arm CPUs it may be
/// (NVLink-C2C), where a POSIX call can reach it without a buffer between.
const APART: bool = cfg!(target_arch = "x86_64");
const NOT_APART: &str = "on this kind of machine POSIX calls may reach GPU memory by themselves";

/// Whether the bytes were asked for in GPU memory.
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

/// Whether a job's bytes pass the page cache as far as the kernel was told.
fn goes_through_cache(job: &JobPlan, result: &JobResult) -> bool {
    result.direct_actual == DirectMode::Buffered || job.engine.actual == "mmap"
}

/// What a witness has to say.
#[derive(Debug, Clone, PartialEq)]
struct Testimony {
    before: Option<String>,
    after: Option<String>,
    moved: Option<u64>,
    of: Option<u64>,
    saw: Saw,
    why: String,
}

impl Testimony {
    /// Nothing, for this reason.
    fn none(why: impl Into<String>) -> Testimony {
        Testimony {
            before: None,
            after: None,
            moved: None,
            of: None,
            saw: Saw::Nothing,
            why: why.into(),
        }
    }
}

/// The witnesses of a group.
pub(crate) struct Evidence {
    witnesses: Vec<(&'static Row, Box<dyn Witness>)>,
}

impl Evidence {
    /// First readings.
    pub(crate) fn begin(jobs: &[JobPlan], cufile: Option<&CufileDriver>) -> Evidence {
        let scene = Scene { root: &Root::live(), jobs, cufile };
        let first = |row: &'static Row| (row, (row.first)(&scene));
        Evidence { witnesses: WITNESSES.iter().map(first).collect() }
    }

    /// Second readings.
    pub(crate) fn end(&mut self) {
        let root = Root::live();
        for (_, witness) in &mut self.witnesses {
            witness.again(&root);
        }
    }

    /// Puts its proof into each result. Jobs and results are those of one group, in plan order.
    pub(crate) fn prove(&self, jobs: &[JobPlan], results: &mut [JobResult]) {
        let proofs: Vec<Proof> =
            (0..results.len()).map(|at| self.of_job(jobs, results, at)).collect();
        for (result, proof) in results.iter_mut().zip(proofs) {
            result.proof = Some(proof);
        }
    }

    fn of_job(&self, jobs: &[JobPlan], results: &[JobResult], at: usize) -> Proof {
        let (job, result) = (&jobs[at], &results[at]);
        let flows = [(Flow::Read, job.read_percent > 0), (Flow::Write, job.read_percent < 100)];
        let mut judged = Vec::new();
        let mut entries = Vec::new();
        for flow in flows.into_iter().filter_map(|(flow, asked)| asked.then_some(flow)) {
            let case = Case { jobs, results, at, flow };
            let ask = Ask {
                way: Way::of(&job.path.choice.actual),
                direct: job.direct == DirectMode::Direct && job.engine.actual != "mmap",
                direct_actual: !goes_through_cache(job, result),
                flow,
                bytes: case.bytes(),
                holes: holes(result),
                software_gpu: job.gpus.iter().any(|gpu| gpu.software),
            };
            let mut heard: Vec<(&'static Row, Testimony)> =
                self.witnesses.iter().map(|(row, who)| (*row, who.testify(&case))).collect();
            reconcile(&mut heard);
            let mut saws: Vec<(&str, Saw)> =
                heard.iter().map(|(row, said)| (row.name, said.saw)).collect();
            // What the path says of itself is part of `own`, beside the legs.
            let via = result.via.as_ref();
            saws.extend(via.map(|via| (own::ROW.name, own::relayed(via, flow, case.bytes()))));
            judged.push((flow, verdict::judge(&ask, &saws)));
            entries.extend(heard.into_iter().map(|(row, said)| entry(row, &ask, said)));
        }
        let (verdict, as_requested, sentence) = verdict::together(judged, jobs.len() > 1);
        Proof {
            requested: asked(job),
            actual: got(job, result),
            verdict,
            as_requested,
            sentence,
            evidence: entries,
        }
    }
}

fn entry(row: &Row, ask: &Ask, said: Testimony) -> Entry {
    Entry {
        name: row.name.to_owned(),
        direction: ask.flow.name().to_owned(),
        source: row.source.to_owned(),
        before: said.before,
        after: said.after,
        observed_bytes: said.moved,
        expected_bytes: said.of,
        assessment: verdict::speaks(ask, said.saw),
        why: said.why,
    }
}

/// A device counts for everybody. Where it moved more than this process caused, what is over is
/// others' traffic, and the device's figure says nothing of ours; less than that is a
/// contradiction, and stays one.
fn reconcile(heard: &mut [(&'static Row, Testimony)]) {
    let find = |name: &str| heard.iter().position(|(row, _)| row.name == name);
    let (Some(process), Some(device)) = (find(process_io::ROW.name), find(block::ROW.name)) else {
        return;
    };
    let (process, device) = (heard[process].1.clone(), &mut heard[device].1);
    let (Saw::Storage(_), Saw::Storage(_)) = (process.saw, device.saw) else { return };
    let (Some(caused), Some(moved), Some(of)) = (process.moved, device.moved, process.of) else {
        return;
    };
    if moved > caused && moved - caused > of / 10 {
        device.saw = Saw::Nothing;
        device.why = format!(
            "the device moved {} more than this process caused: others use it too",
            size(moved - caused)
        );
    }
}

fn asked(job: &JobPlan) -> String {
    let path = &job.path.choice.actual;
    match (Way::of(path), job.direct) {
        (Way::User, DirectMode::Direct) => {
            format!("{path}, O_DIRECT: between storage and the program's memory, nothing between")
        }
        (Way::User, DirectMode::Buffered) => {
            format!("{path}, buffered: through the page cache to the program's memory")
        }
        (Way::Ring, DirectMode::Direct) => format!(
            "{path}, O_DIRECT: between storage and a buffer in host memory, then GPU memory"
        ),
        (Way::Ring, DirectMode::Buffered) => format!(
            "{path}, buffered: through the page cache and a buffer in host memory to GPU memory"
        ),
        (Way::Relay, _) => format!(
            "{path}: between storage and a buffer in host memory, then through another GPU's memory"
        ),
        (Way::Library, _) => format!("{path}: between storage and GPU memory, by a library"),
    }
}

fn got(job: &JobPlan, result: &JobResult) -> String {
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
