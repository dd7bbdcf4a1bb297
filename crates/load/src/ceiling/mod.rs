//! Finds the ceilings of a plan after its last group, outside every job's clock.
//!
//! The plan has decided which they are (`gpuio_job::plan::ceiling`). One that runs a load has it
//! from there; each of the others is found by a row of `FOUND_WITHOUT_LOAD`.

mod cpu_copy;
mod lowest;
mod pcie;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use gpuio_base::units::many;
use gpuio_host::Root;
use gpuio_io::CATALOG;
use gpuio_io::clock::Clock;
use gpuio_record::facts::HostFacts;
use gpuio_record::{
    Ceiling, CeilingKind, CeilingPlan, CeilingSource, EndedHow, JobPlan, JobResult, Towards,
    VerifyOutcome,
};

pub(crate) use lowest::assign_lowest;

/// Finds a figure. The job is the first of those that the ceiling bounds.
type Find = fn(&CeilingPlan, &JobPlan, &mut dyn Bench) -> Result<Reading, String>;

const FOUND_WITHOUT_LOAD: &[(CeilingKind, Find)] = &[
    (CeilingKind::CpuCopy, cpu_copy::find),
    (CeilingKind::PcieGpu, pcie::find_gpu),
    (CeilingKind::PcieNvme, pcie::find_nvme),
];

/// The reason for a ceiling in a plan from another gpuio.
const NOT_HERE: &str = "the plan names a job or kind that this gpuio does not have";

/// The result of a ceiling.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reading {
    pub(crate) bytes_per_s: f64,
    pub(crate) iops: Option<f64>,
    pub(crate) detail: Option<String>,
}

/// The services of the run for a ceiling.
pub(crate) trait Bench {
    /// Runs a load as a job is run; `files` where it uses the job's own files, which are then
    /// guarded and finalized as for a job. The reason in words where it can't be.
    fn load(&mut self, job: &JobPlan, files: bool) -> Result<JobResult, String>;
    /// The findings of the pass that put the pattern back after the loads since the last call.
    fn restored(&mut self) -> Option<VerifyOutcome>;
    fn host(&self) -> &HostFacts;
    /// Where kernel files are read.
    fn root(&self) -> &Root;
    /// The run's clock.
    fn clock(&self) -> Clock;
    /// Raised to end the run early.
    fn stop(&self) -> &Arc<AtomicBool>;
}

/// Finds every ceiling of the plan. `stopped` gives the reason why no more is to be run;
/// `announce` is called with the name of each that runs.
pub(crate) fn find_all(
    plans: &[CeilingPlan],
    jobs: &[JobPlan],
    results: &[JobResult],
    bench: &mut dyn Bench,
    stopped: &dyn Fn() -> Option<String>,
    announce: &dyn Fn(&str),
) -> Vec<Ceiling> {
    let mut found = Vec::with_capacity(plans.len());
    for plan in plans {
        let job = jobs.iter().find(|job| plan.jobs.first() == Some(&job.name));
        let plan = &at_its_time(plan, job, results);
        let reading = match (&plan.source, job) {
            (CeilingSource::Absent { why }, _) => Err(why.clone()),
            (CeilingSource::Result { job }, _) => of_result(job, plan.direction, results),
            (CeilingSource::Measured { .. }, Some(job)) => match stopped() {
                Some(why) => Err(why),
                None => {
                    announce(&plan.name);
                    find(plan, job, bench)
                }
            },
            (CeilingSource::Theory, Some(job)) => find(plan, job, bench),
            (_, None) => Err(NOT_HERE.to_owned()),
        };
        found.push(Ceiling { restored: bench.restored(), ..ceiling(plan, reading) });
    }
    found
}

/// The figure of a ceiling by its load, or as the row of its kind finds it.
fn find(plan: &CeilingPlan, job: &JobPlan, bench: &mut dyn Bench) -> Result<Reading, String> {
    if let Some((load, files)) = gpuio_job::plan::ceiling::load(plan, job, &CATALOG) {
        return reading(&bench.load(&load, files)?, plan.direction);
    }
    match FOUND_WITHOUT_LOAD.iter().find(|(kind, _)| *kind == plan.kind) {
        Some((_, find)) => find(plan, job, bench),
        None => Err(NOT_HERE.to_owned()),
    }
}

fn ceiling(plan: &CeilingPlan, reading: Result<Reading, String>) -> Ceiling {
    let plan = plan.clone();
    let none =
        Ceiling { plan, bytes_per_s: None, iops: None, detail: None, why: None, restored: None };
    match reading {
        Ok(Reading { bytes_per_s, iops, detail }) => {
            Ceiling { bytes_per_s: Some(bytes_per_s), iops, detail, ..none }
        }
        Err(why) => Ceiling { why: Some(why), ..none },
    }
}

/// Shares of files in the page cache that differ by more than this make two loads of one.
const CACHE_ALIKE: f64 = 0.05;

/// The plan of a ceiling once results are known: another job's result stands for it only if that
/// job found as much of its files in the page cache as those that the ceiling bounds. Else it is
/// measured.
fn at_its_time(plan: &CeilingPlan, job: Option<&JobPlan>, results: &[JobResult]) -> CeilingPlan {
    let cached = |name: &String| {
        let result = results.iter().find(|result| result.name == *name)?;
        result.cache.resident_before
    };
    let (CeilingSource::Result { job: other }, Some(job)) = (&plan.source, job) else {
        return plan.clone();
    };
    // A load that writes leaves other data than it found, which nothing planned to put right.
    if job.read_percent < 100 {
        return plan.clone();
    }
    let there = cached(other);
    let alike = |here: f64| there.is_none_or(|there| (here - there).abs() <= CACHE_ALIKE);
    if plan.jobs.iter().filter_map(cached).all(alike) {
        return plan.clone();
    }
    let runtime_ns = job.ceilings_ns.unwrap_or(0);
    CeilingPlan { source: CeilingSource::Measured { runtime_ns }, ..plan.clone() }
}

/// The figure of a job that did what the ceiling would.
fn of_result(
    name: &str,
    direction: Option<Towards>,
    results: &[JobResult],
) -> Result<Reading, String> {
    let result = results.iter().find(|result| result.name == name);
    let result = result.ok_or_else(|| format!("job '{name}', whose result it is, did not run"))?;
    reading(result, direction)
}

/// The rate of a result that ran to its end.
fn reading(result: &JobResult, direction: Option<Towards>) -> Result<Reading, String> {
    match result.ended {
        EndedHow::Complete => {}
        EndedHow::Interrupted | EndedHow::Unfinished => {
            return Err("it was interrupted".to_owned());
        }
        EndedHow::Failed => {
            let first = result.failures.first().map(|failure| format!("; first: {}", failure.what));
            let failed = many(result.failed, "I/O");
            return Err(format!("{failed} failed{}", first.unwrap_or_default()));
        }
    }
    let (bytes_per_s, iops) = match direction {
        Some(Towards::Read) => (result.read.bytes_per_s, result.read.iops),
        Some(Towards::Write) => (result.write.bytes_per_s, result.write.iops),
        None => (
            result.read.bytes_per_s + result.write.bytes_per_s,
            result.read.iops + result.write.iops,
        ),
    };
    if bytes_per_s <= 0.0 {
        return Err("no I/O completed in its time; give it more (ceilings=TIME)".to_owned());
    }
    let detail = (result.failed > 0).then(|| format!("{} failed", many(result.failed, "I/O")));
    Ok(Reading { bytes_per_s, iops: Some(iops), detail })
}
