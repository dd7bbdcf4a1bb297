//! The expected rates of a plan's jobs.

use std::collections::BTreeMap;
use std::path::Path;

use gpuio_record::facts::{Machine, TargetStorage};
use gpuio_record::{
    DirectMode, Expected, JobExpected, JobPlan, JobResult, Order, Pacing, Plan, TargetKind,
    TargetPlan, Towards,
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
                for (nth, (request, directions)) in
                    of_job(machine, job, storage).into_iter().enumerate()
                {
                    requests.push(request);
                    ranges.push((from + nth, directions));
                }
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
pub fn portions_of_jobs(
    machine: &Machine,
    figures: &Figures,
    plan: &Plan,
    storage: &[TargetStorage],
) -> Vec<Portion> {
    let portions = |job: &JobPlan| match beyond_figures(job) {
        Some(why) => vec![Portion::beyond(&job.name, job.group, directions(job), why)],
        None => {
            let requests = of_job(machine, job, storage).into_iter();
            let portion = |(request, directions)| {
                let portion = Portion::of(machine, figures, request);
                Portion { group: job.group, directions, ..portion }
            };
            requests.map(portion).collect()
        }
    };
    plan.jobs.iter().flat_map(portions).collect()
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
    let bytes = |share: f64, writes| share * job.mean_block_bytes_of(writes).max(1) as f64;
    let (reads, writes) = (bytes(reads, false), bytes(1.0 - reads, true));
    let both = [(Towards::Read, reads), (Towards::Write, writes)];
    both.map(|(towards, bytes)| (towards, bytes / (reads + writes)))
        .into_iter()
        .filter(|(_, share)| *share > 0.0)
        .collect()
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

/// A job's requests with the directions of each and their shares of its bytes: one, or one for
/// each direction where each keeps a rate of its own, which no mix then scales.
fn of_job(
    machine: &Machine,
    job: &JobPlan,
    storage: &[TargetStorage],
) -> Vec<(Request, Vec<(Towards, f64)>)> {
    let stream = |towards, block_bytes, pacing: Option<&Pacing>| Stream {
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
        requested_bytes_per_s: pacing.and_then(|pacing| requested(pacing, job, block_bytes)),
    };
    let alike = |towards| stream(towards, job.mean_block_bytes(), job.pacing.as_ref());
    let directions = directions(job);
    match (directions.as_slice(), &job.write_pacing) {
        ([(towards, _)], _) => vec![(Request::One(alike(*towards)), directions)],
        (_, Some(of_writes)) => {
            let rates = [(Towards::Read, job.pacing.as_ref()), (Towards::Write, Some(of_writes))];
            let one = |(towards, pacing)| {
                let block_bytes = job.mean_block_bytes_of(towards == Towards::Write);
                (Request::One(stream(towards, block_bytes, pacing)), vec![(towards, 1.0)])
            };
            rates.map(one).into()
        }
        _ => {
            let of_reads = directions.iter().find(|(towards, _)| *towards == Towards::Read);
            let mixed = Request::Mixed {
                read: alike(Towards::Read),
                write: alike(Towards::Write),
                read_share: of_reads.map_or(0.0, |(_, share)| *share),
            };
            vec![(mixed, directions)]
        }
    }
}

/// The rate that is requested of all threads together, in bytes per second.
fn requested(pacing: &Pacing, job: &JobPlan, block_bytes: u64) -> Option<f64> {
    let bytes = pacing.bytes_per_s.map(|rate| rate as f64);
    let ios = pacing.iops.map(|rate| rate as f64 * block_bytes as f64);
    let rate = bytes.into_iter().chain(ios).min_by(f64::total_cmp);
    rate.map(|rate| rate * f64::from(job.threads))
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
