//! Ceilings: what a job could have reached at most, found in the same run.
//!
//! A ceiling is a small run of our own harness under the same clock rules as a job, so that it
//! can't flatter; or the result of a job of the same run that did just that; or a figure worked out
//! from what the kernel says of a link. They are looked for after the last group, outside every
//! job's clock: a ceiling before or between jobs would warm caches for those that follow. [`plan`]
//! and [`lowest`] are pure. A kind of ceiling is one file here and one row in [`CEILINGS`].

mod cpu_copy;
mod gather;
mod harness;
mod link;
mod lowest;
mod pcie;
mod storage;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use gpuio_catalog::PathInfo;
use gpuio_host::Root;
use gpuio_io::CATALOG;
use gpuio_io::clock::Clock;
use gpuio_record::facts::HostFacts;
use gpuio_record::{
    Ceiling, CeilingKind, CeilingPlan, CeilingSource, Gpu, JobPlan, JobResult, Towards, VerifyMode,
    VerifyOutcome,
};

pub(crate) use lowest::assign_lowest;

/// One kind of ceiling.
pub(crate) struct CeilingEntry {
    kind: CeilingKind,
    /// The ceilings of this kind that bound the job in hand.
    plan: fn(&CeilingContext<'_>) -> Vec<Want>,
    /// Finds the figure. `job` is the first of those that the ceiling bounds.
    find: fn(&CeilingPlan, &JobPlan, &mut dyn Bench) -> Result<Reading, String>,
}

/// All kinds, in the order in which they are shown.
pub(crate) const CEILINGS: &[CeilingEntry] =
    &[storage::ENTRY, link::ENTRY, gather::ENTRY, cpu_copy::ENTRY, pcie::GPU, pcie::NVME];

/// What a row plans from.
struct CeilingContext<'a> {
    jobs: &'a [JobPlan],
    job: &'a JobPlan,
    /// The path that the job takes.
    path: &'static PathInfo,
    /// How long a ceiling of the job is measured, nanoseconds.
    time_ns: u64,
    engine_missing: &'a dyn Fn(&str) -> Option<String>,
}

/// A ceiling of one job, and what makes it the same as one of another job.
struct Want {
    plan: CeilingPlan,
    same: Same,
}

/// Ceilings of a kind and direction that are alike in this are one.
#[derive(PartialEq)]
enum Same {
    /// The same load is run.
    Load(Box<JobPlan>),
    /// The same thing is looked at.
    Thing(String),
}

/// What a ceiling came out at.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reading {
    pub(crate) bytes_per_s: f64,
    pub(crate) iops: Option<f64>,
    pub(crate) detail: Option<String>,
}

/// What the run lends to a ceiling.
pub(crate) trait Bench {
    /// Runs a load as a job is run; `files` where it uses the job's own files, which are then
    /// guarded and finalized as for a job. The reason in words where it can't be.
    fn load(&mut self, job: &JobPlan, files: bool) -> Result<JobResult, String>;
    /// What the pass found that put the pattern back after the loads since the last call.
    fn restored(&mut self) -> Option<VerifyOutcome>;
    /// Facts of the machine.
    fn host(&self) -> &HostFacts;
    /// Where kernel files are read.
    fn root(&self) -> &Root;
    /// The run's clock.
    fn clock(&self) -> Clock;
    /// Raised to end the run early.
    fn stop(&self) -> &Arc<AtomicBool>;
}

impl CeilingContext<'_> {
    fn measured(&self) -> CeilingSource {
        CeilingSource::Measured { runtime_ns: self.time_ns }
    }

    /// A ceiling of the job in hand, to be filled in.
    fn ceiling(&self, kind: CeilingKind, name: String) -> CeilingPlan {
        CeilingPlan {
            name,
            kind,
            direction: None,
            source: self.measured(),
            what: String::new(),
            engine: None,
            gpus: Vec::new(),
            threads: Some(self.job.threads),
            software_gpu: false,
            restores: false,
            jobs: vec![self.job.name.clone()],
        }
    }

    /// The job's GPUs, each once, however often its threads go to it.
    fn gpus(&self) -> Vec<&Gpu> {
        let mut once: Vec<&Gpu> = Vec::new();
        for gpu in &self.job.gpus {
            if !once.iter().any(|known| known.index == gpu.index) {
                once.push(gpu);
            }
        }
        once
    }

    /// Whether the job's bytes end in GPU memory over that GPU's own PCIe link: those that come by
    /// another GPU do not.
    fn ends_in_gpu_memory(&self) -> bool {
        use gpuio_record::MemoryKind::{Device, Vmm};
        self.path.needs_gpu && self.job.via.is_none() && matches!(self.job.memory, Device | Vmm)
    }
}

/// The ceilings of all jobs that ask for them, each once.
pub(crate) fn plan(
    jobs: &[JobPlan],
    engine_missing: &dyn Fn(&str) -> Option<String>,
) -> Vec<CeilingPlan> {
    let mut wants: Vec<Want> = Vec::new();
    for row in CEILINGS {
        for job in jobs {
            let (Some(time_ns), Some(path)) =
                (job.ceilings_ns, CATALOG.path(&job.path.choice.actual))
            else {
                continue;
            };
            for want in (row.plan)(&CeilingContext { jobs, job, path, time_ns, engine_missing }) {
                merge(&mut wants, want);
            }
        }
    }
    let mut plans: Vec<CeilingPlan> = wants.into_iter().map(|want| want.plan).collect();
    restore(&mut plans, jobs);
    unique_names(&mut plans);
    plans
}

fn merge(wants: &mut Vec<Want>, want: Want) {
    let alike = |known: &&mut Want| {
        known.plan.kind == want.plan.kind
            && known.plan.direction == want.plan.direction
            && known.plan.source == want.plan.source
            && known.same == want.same
    };
    match wants.iter_mut().find(alike) {
        Some(known) => known.plan.jobs.extend(want.plan.jobs),
        None => wants.push(want),
    }
}

/// Marks the ceilings after which verified files must hold their pattern again. Timed writes leave
/// other data, as those of the jobs did; one pass at the end is enough for all that write the same
/// parts of the same files.
fn restore(plans: &mut [CeilingPlan], jobs: &[JobPlan]) {
    let of = |plan: &CeilingPlan| jobs.iter().find(|job| plan.jobs.first() == Some(&job.name));
    let verified: BTreeSet<&str> = jobs
        .iter()
        .filter(|job| matches!(job.verify, VerifyMode::Pass | VerifyMode::Rewrite))
        .flat_map(|job| job.targets.iter().map(|target| target.path.as_str()))
        .collect();
    let parts = |job: &JobPlan| {
        let regions: Vec<_> = job.workers.iter().map(|worker| worker.regions.clone()).collect();
        (job.targets.iter().map(|target| target.path.clone()).collect::<Vec<_>>(), regions)
    };
    let mut done = Vec::new();
    let mut restoring: Vec<String> = Vec::new();
    for plan in plans.iter_mut().rev() {
        let runs = matches!(plan.source, CeilingSource::Measured { .. });
        let Some(job) = of(plan).filter(|_| runs && plan.kind == CeilingKind::Storage) else {
            continue;
        };
        let held = job.targets.iter().any(|target| verified.contains(target.path.as_str()));
        if job.read_percent == 100 || !held {
            continue;
        }
        // Reads of a mixed load are verified too: they must find the pattern each time. It may be
        // refused where they would not, so that no other load counts on it.
        let mixed = job.read_percent > 0;
        if mixed {
            plan.restores = true;
            continue;
        }
        if restoring.contains(&job.name) || !done.contains(&parts(job)) {
            done.push(parts(job));
            restoring.push(job.name.clone());
            plan.restores = true;
        }
    }
}

/// A result names its ceiling, so no two may share a name.
fn unique_names(plans: &mut [CeilingPlan]) {
    let mut taken = BTreeSet::new();
    for plan in plans {
        let base = plan.name.clone();
        let mut count = 1;
        while !taken.insert(plan.name.clone()) {
            count += 1;
            plan.name = format!("{base} #{count}");
        }
    }
}

/// Finds every ceiling of the plan. `stopped` gives the reason why no more is to be run, `tell` is
/// told the name of each that runs.
pub(crate) fn find_all(
    plans: &[CeilingPlan],
    jobs: &[JobPlan],
    results: &[JobResult],
    bench: &mut dyn Bench,
    stopped: &dyn Fn() -> Option<String>,
    tell: &dyn Fn(&str),
) -> Vec<Ceiling> {
    let mut found = Vec::with_capacity(plans.len());
    for plan in plans {
        let job = jobs.iter().find(|job| plan.jobs.first() == Some(&job.name));
        let row = CEILINGS.iter().find(|row| row.kind == plan.kind);
        let plan = &at_its_time(plan, job, results);
        let reading = match (&plan.source, job, row) {
            (CeilingSource::Absent { why }, ..) => Err(why.clone()),
            (CeilingSource::Result { job }, ..) => of_result(job, plan.direction, results),
            (CeilingSource::Measured { .. }, Some(job), Some(row)) => match stopped() {
                Some(why) => Err(why),
                None => {
                    tell(&plan.name);
                    (row.find)(plan, job, bench)
                }
            },
            (CeilingSource::Theory, Some(job), Some(row)) => (row.find)(plan, job, bench),
            _ => Err("the plan names a job or kind that this gpuio does not have".to_owned()),
        };
        found.push(Ceiling { restored: bench.restored(), ..ceiling(plan, reading) });
    }
    found
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
    harness::reading(result, direction)
}
