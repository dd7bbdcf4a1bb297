//! Evidence sources: what the counters of a group support or contradict, for each job and
//! direction.
//!
//! Counters cover the process or a device, never a job. Conclusions about one job of several are
//! therefore bounded by the group's total: see `share`.

mod block;
mod cufile_properties;
mod cufile_stats;
pub(crate) mod gpu_pcie;
mod nfs;
mod nic;
mod nvidia_fs;
mod own;
mod page_cache;
mod process_io;
mod restated;

use gpuio_record::{DirectMode, Evidence, HolesReading, JobPlan, JobResult, Proof};

use crate::evidence::group::{Flow, direct_in_force};
use crate::evidence::layout::JobLayout;
use crate::evidence::snapshot::Readings;
use crate::evidence::verdict::{
    self, Holes, Observed, OtherJobs, PathKind, Requested, Share, share, size,
};

pub(crate) use restated::restated;

pub(crate) struct Source {
    name: &'static str,
    source: &'static str,
    /// Its observation on one job and direction: a pure function.
    observe: fn(&JobFlow<'_>) -> Observation,
}

/// All evidence sources, in the order in which they are shown.
const SOURCES: &[Source] = &[
    own::SOURCE,
    process_io::SOURCE,
    block::SOURCE,
    nfs::SOURCE,
    nic::SOURCE,
    page_cache::SOURCE,
    cufile_stats::SOURCE,
    cufile_properties::SOURCE,
    nvidia_fs::SOURCE,
    gpu_pcie::SOURCE,
];

/// One direction of a job, with all that was read of its group.
struct JobFlow<'a> {
    readings: &'a Readings,
    jobs: &'a [JobPlan],
    results: &'a [JobResult],
    /// The job's index in both.
    at: usize,
    flow: Flow,
}

impl JobFlow<'_> {
    fn job(&self) -> &JobPlan {
        &self.jobs[self.at]
    }

    fn result(&self) -> &JobResult {
        &self.results[self.at]
    }

    fn layout(&self) -> &JobLayout {
        &self.readings.layout.jobs[self.at]
    }

    /// Bytes of the job's file leg, ramp included, as the counters have them.
    fn bytes(&self) -> u64 {
        self.flow.of(self.result()).0
    }

    /// Compares a counter with the bytes of all jobs that it covers.
    fn share(&self, moved: u64, covers: impl Fn(usize) -> bool) -> (u64, Option<Share>) {
        let mut others = OtherJobs::default();
        for (at, (job, result)) in self.jobs.iter().zip(self.results).enumerate() {
            let (bytes, _) = self.flow.of(result);
            if at != self.at && covers(at) && bytes > 0 {
                others.bytes += bytes;
                // Read-ahead and write-back move other amounts than the job did.
                others.blur |= result.passes_page_cache(job);
            }
        }
        (self.bytes() + others.bytes, share(moved, self.bytes(), &others))
    }
}

/// The file system's report of holes in the job's files.
fn holes(result: &JobResult) -> Holes {
    let found = result.cache.holes.as_ref();
    found.map_or_else(Holes::default, |one: &HolesReading| Holes {
        absent: one.absent_bytes(),
        range: one.range_bytes,
    })
}

/// The report of an evidence source.
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

impl Readings {
    /// Puts its proof into each result. Jobs and results are those of the group, in plan order,
    /// and the results have the [`caches`](Readings::caches) of these readings.
    pub fn prove(&self, jobs: &[JobPlan], results: &mut [JobResult]) {
        let proofs: Vec<Proof> =
            (0..results.len()).map(|at| self.proof(jobs, results, at)).collect();
        for (result, proof) in results.iter_mut().zip(proofs) {
            result.proof = Some(proof);
        }
    }

    fn proof(&self, jobs: &[JobPlan], results: &[JobResult], at: usize) -> Proof {
        let (job, result) = (&jobs[at], &results[at]);
        let mut verdicts = Vec::new();
        let mut entries = Vec::new();
        for flow in flows(job) {
            let of = JobFlow { readings: self, jobs, results, at, flow };
            let mut requested = requested(&of);
            let observations = observations(&of);
            let mut all_observed: Vec<(&str, Observed)> = observations
                .iter()
                .map(|(source, observation)| (source.name, observation.observed))
                .collect();
            // The path's own counts are part of `own`, with the legs.
            let via = result.via.as_ref();
            all_observed
                .extend(via.map(|via| (own::SOURCE.name, own::relayed(via, flow, of.bytes()))));
            requested.shortfall = verdict::shortfall(&all_observed, |name| {
                let (_, found) = observations.iter().find(|(source, _)| source.name == name)?;
                found.moved.zip(found.of)
            });
            verdicts.push((flow, verdict::of_direction(&requested, &all_observed)));
            let entry = |(source, observation)| entry(source, &requested, observation);
            entries.extend(observations.into_iter().map(entry));
        }
        let (verdict, as_requested, sentence) = verdict::together(verdicts, jobs.len() > 1);
        Proof {
            requested: requested_path(job),
            actual: Proof::actual_path(job, result),
            verdict,
            as_requested,
            sentence,
            evidence: entries,
        }
    }
}

/// The directions of a job.
fn flows(job: &JobPlan) -> impl Iterator<Item = Flow> + use<> {
    let flows = [(Flow::Read, job.read_percent > 0), (Flow::Write, job.read_percent < 100)];
    flows.into_iter().filter_map(|(flow, requested)| requested.then_some(flow))
}

fn requested(of: &JobFlow<'_>) -> Requested {
    let (job, result) = (of.job(), of.result());
    Requested {
        kind: PathKind::of(&job.path.choice.actual),
        direct: job.direct == DirectMode::Direct && job.engine.actual != "mmap",
        either: of.flow == Flow::Read && by_library_core(job),
        direct_actual: direct_in_force(job, result, of.flow),
        flow: of.flow,
        bytes: of.bytes(),
        shortfall: 0,
        holes: holes(result),
        software_gpu: job.uses_software_gpu(),
    }
}

/// Whether gpuio's library core moves the bytes: it takes what the page cache holds from there and
/// reads the rest past it, however the job opens its files, in pieces of its own, a few of each
/// call at a time.
pub(super) fn by_library_core(job: &JobPlan) -> bool {
    gpuio_io::path::find(&job.path.choice.actual).is_some_and(|row| row.info.uses_library())
}

/// The report of every source.
fn observations(of: &JobFlow<'_>) -> Vec<(&'static Source, Observation)> {
    let mut all: Vec<_> = SOURCES.iter().map(|source| (source, (source.observe)(of))).collect();
    leave_out_others(&mut all);
    all
}

fn entry(source: &Source, requested: &Requested, observation: Observation) -> Evidence {
    Evidence {
        name: source.name.to_owned(),
        direction: requested.flow.name().to_owned(),
        source: source.source.to_owned(),
        before: observation.before,
        after: observation.after,
        observed_bytes: observation.moved,
        expected_bytes: observation.of,
        assessment: verdict::assess(requested, observation.observed),
        why: observation.why,
    }
}

/// A device counts for all processes. Where it moved more than this process caused, what is over is
/// others' traffic, and the device's figure shows nothing of ours; less than that is a
/// contradiction, and stays one. A tenth over is no finding while the share is the same.
fn leave_out_others(observations: &mut [(&'static Source, Observation)]) {
    let find = |name: &str| observations.iter().position(|(row, _)| row.name == name);
    let (Some(process), Some(device)) = (find(process_io::SOURCE.name), find(block::SOURCE.name))
    else {
        return;
    };
    let (process, device) = (observations[process].1.clone(), &mut observations[device].1);
    let (Observed::Storage(own), Observed::Storage(all)) = (process.observed, device.observed)
    else {
        return;
    };
    let (Some(caused), Some(moved), Some(of)) = (process.moved, device.moved, process.of) else {
        return;
    };
    if moved > caused && (moved - caused > of / 10 || own != all) {
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
        (PathKind::Ring, DirectMode::Direct) if by_library_core(job) && job.read_percent > 0 => {
            format!(
                "{path}, O_DIRECT: what the page cache holds from there, the rest from storage, \
                 and a buffer in host memory to GPU memory"
            )
        }
        (PathKind::Ring, DirectMode::Direct) => format!(
            "{path}, O_DIRECT: between storage and a buffer in host memory, then GPU memory"
        ),
        (PathKind::Ring, DirectMode::Buffered) if by_library_core(job) && job.read_percent > 0 => {
            format!(
                "{path}, buffered: through the page cache, or with O_DIRECT where it lacks what a \
                 large call reads, and a buffer in host memory to GPU memory"
            )
        }
        (PathKind::Ring, DirectMode::Buffered) => format!(
            "{path}, buffered: through the page cache and a buffer in host memory to GPU memory"
        ),
        (PathKind::Relay, _) => format!(
            "{path}: between storage and a buffer in host memory, then through another GPU's memory"
        ),
        (PathKind::Mapped, _) if job.read_percent == 100 => {
            format!(
                "{path}: out of the page cache, whose pages the GPU reads itself, to GPU memory"
            )
        }
        (PathKind::Mapped, _) => format!(
            "{path}: between GPU memory and the page cache, whose pages the GPU reads and writes \
             itself"
        ),
        (PathKind::Foreign, _) => format!("{path}: between storage and GPU memory, by a library"),
    }
}

#[cfg(test)]
mod tests;
