//! The expected rates of a plan's jobs.

use std::collections::BTreeMap;
use std::path::Path;

use gpuio_record::facts::{Machine, TargetStorage};
use gpuio_record::{
    DirectMode, Expected, JobExpected, JobPlan, JobResult, Order, Plan, TargetKind, TargetPlan,
    Towards,
};

use crate::flow::machine::{Request, of_requests};
use crate::flow::{By, End, Figures, Pattern, Portion, Storage, Stream};

/// Paths that move bytes between files and GPU memory by themselves, peer to peer where cuFile
/// can.
const PEER_PATHS: &str = "gds";

/// The expected rate of each direction of each job; jobs of one group run at the same time.
///
/// `storage` is what lies behind each directory or device of the plan, as the record has it. Jobs
/// that no figures can describe (through the page cache, without a file, on a software GPU) are
/// there with the reason.
#[must_use]
pub fn of_jobs(
    machine: &Machine,
    figures: &Figures,
    plan: &Plan,
    storage: &[TargetStorage],
) -> Vec<JobExpected> {
    let mut out = Vec::new();
    for group in plan.jobs.chunk_by(|a, b| a.group == b.group) {
        let mut requests = Vec::new();
        let mut ranges = Vec::new();
        for job in group {
            let from = out.len();
            let directions = directions(job);
            let why = beyond_figures(job);
            for (direction, _) in &directions {
                let expected = Expected { unknown: why.clone(), ..Expected::default() };
                let direction = *direction;
                out.push(JobExpected { job: job.name.clone(), direction, expected, percent: None });
            }
            if why.is_none() {
                requests.push(of_job(machine, job, storage));
                ranges.push((from, directions));
            }
        }
        let answer = of_requests(machine, figures, &requests);
        for (one, (from, directions)) in answer.streams.into_iter().zip(ranges) {
            for (index, (_, share)) in (from..).zip(directions) {
                out[index].expected = part(&one.expected, share);
            }
        }
    }
    out
}

/// The load of each job on the parts of this machine, for an answer over several hosts.
#[must_use]
pub fn portions_of_jobs(
    machine: &Machine,
    figures: &Figures,
    plan: &Plan,
    storage: &[TargetStorage],
) -> Vec<Portion> {
    let portion = |job: &JobPlan| match beyond_figures(job) {
        Some(why) => Portion::beyond(&job.name, job.group, directions(job), why),
        None => {
            let request = of_job(machine, job, storage);
            let portion = Portion::of(machine, figures, request);
            Portion { group: job.group, directions: directions(job), ..portion }
        }
    };
    plan.jobs.iter().map(portion).collect()
}

/// Adds to each expectation how much of it was reached.
pub fn hold_against(expected: &mut [JobExpected], results: &[JobResult]) {
    for one in expected {
        let Some(result) = results.iter().find(|result| result.name == one.job) else { continue };
        let side = one.direction.of(result);
        let moved = Some(side.bytes_per_s).filter(|_| side.ios > 0);
        one.percent = moved.zip(one.expected.bytes_per_s).map(|(actual, of)| actual / of * 100.0);
    }
}

/// The directions of a job with their shares of its bytes.
fn directions(job: &JobPlan) -> Vec<(Towards, f64)> {
    let reads = f64::from(job.read_percent.min(100)) / 100.0;
    let both = [(Towards::Read, reads), (Towards::Write, 1.0 - reads)];
    both.into_iter().filter(|(_, share)| *share > 0.0).collect()
}

/// Why no figures can describe a job.
fn beyond_figures(job: &JobPlan) -> Option<String> {
    if job.engine.actual == "null" {
        return Some("no file is read or written".to_owned());
    }
    if job.direct != DirectMode::Direct {
        return Some("buffered I/O goes through the page cache".to_owned());
    }
    if job.gpus.iter().any(|gpu| gpu.software) {
        return Some("a software GPU has no links to count with".to_owned());
    }
    None
}

pub(crate) fn part(expected: &Expected, share: f64) -> Expected {
    let of = |figure: Option<f64>| figure.map(|figure| figure * share);
    Expected {
        bytes_per_s: of(expected.bytes_per_s),
        iops: of(expected.iops),
        at_most: of(expected.at_most),
        ..expected.clone()
    }
}

fn of_job(machine: &Machine, job: &JobPlan, storage: &[TargetStorage]) -> Request {
    let threads = f64::from(job.threads);
    let block_bytes = job.mean_block_bytes();
    let requested = job.pacing.and_then(|pacing| {
        let (bytes, iops) = (
            pacing.bytes_per_s.map(|rate| rate as f64),
            pacing.iops.map(|rate| rate as f64 * block_bytes as f64),
        );
        [bytes, iops].into_iter().flatten().min_by(f64::total_cmp).map(|rate| rate * threads)
    });
    let stream = |towards| Stream {
        name: job.name.clone(),
        storage: storage_of(machine, job, storage),
        end: end(job),
        by: if job.path.choice.actual.starts_with(PEER_PATHS) { By::Direct } else { By::Host },
        towards,
        block_bytes,
        pattern: match job.order {
            Order::Sequential => Pattern::Sequential,
            Order::Random { .. } => Pattern::Random,
        },
        in_flight: Some(u64::from(job.threads) * u64::from(job.depth)),
        requested_bytes_per_s: requested,
    };
    match directions(job).as_slice() {
        [(towards, _)] => Request::One(stream(*towards)),
        _ => Request::Mixed {
            read: stream(Towards::Read),
            write: stream(Towards::Write),
            read_share: f64::from(job.read_percent) / 100.0,
        },
    }
}

/// Where the bytes end: on path `routed` at the GPU near the drive, since what leads on from
/// there has no figure.
fn end(job: &JobPlan) -> End {
    if let Some(via) = &job.via {
        return End::Gpu(via.gpu.pci.clone());
    }
    let gpus: Vec<String> = job.gpus.iter().map(|gpu| gpu.pci.clone()).collect();
    match gpus.as_slice() {
        _ if job.path.choice.actual == "host" => End::Host,
        [] => End::Host,
        [one] => End::Gpu(one.clone()),
        _ => End::Gpus(gpus),
    }
}

/// The storage behind the job's files, each as often as it has files where these differ.
fn storage_of(machine: &Machine, job: &JobPlan, storage: &[TargetStorage]) -> Vec<Storage> {
    let mut counts: BTreeMap<Storage, usize> = BTreeMap::new();
    for target in &job.targets {
        if let Some(found) = behind(machine, target, storage) {
            *counts.entry(found).or_default() += 1;
        }
    }
    let even = counts.values().all(|count| Some(count) == counts.values().next());
    let repeat = |(one, count): (Storage, usize)| vec![one; if even { 1 } else { count }];
    counts.into_iter().flat_map(repeat).collect()
}

fn behind(machine: &Machine, target: &TargetPlan, storage: &[TargetStorage]) -> Option<Storage> {
    let path = Path::new(&target.path);
    let directory = match (target.kind, path.parent()) {
        (TargetKind::File, Some(above)) if !above.as_os_str().is_empty() => above,
        (TargetKind::File, _) => Path::new("."),
        (TargetKind::BlockDevice, _) => path,
    };
    let found = storage.iter().find(|one| Path::new(&one.path) == directory)?;
    let device = found.device.as_ref().map(|device| Storage::Device(device.name.clone()));
    if target.kind == TargetKind::BlockDevice {
        return device;
    }
    let point = &found.mount.as_ref()?.mount_point;
    let known = machine.mounts.iter().any(|one| one.mount.mount_point == *point);
    if known { Some(Storage::Mount(point.clone())) } else { device }
}
