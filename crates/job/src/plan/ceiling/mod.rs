//! Ceilings: what a job could have reached at most, found in the same run.
//!
//! A ceiling is a small load under the same clock rules as a job, so that it can't flatter; or the
//! result of a job of the same run that did just that; or a figure worked out from what the kernel
//! reports about a link. They are looked for after the last group, outside every job's clock: a
//! ceiling before or between jobs would warm caches for those that follow. Which ones a plan has,
//! and the load of each ([`load`]), is decided here. A kind of ceiling that runs a load is one file
//! here and one row in `CEILINGS`; the runner also has a row for one that it finds without a load.

mod cpu_copy;
mod gather;
mod link;
mod loads;
mod pcie;
mod storage;

use std::collections::BTreeSet;

use gpuio_base::catalog::{Catalog, PathInfo};
use gpuio_record::{CeilingKind, CeilingPlan, CeilingSource, Gpu, JobPlan, VerifyMode};

use crate::plan::Facts;

pub use loads::unbound;
pub use pcie::drive_paths;

struct CeilingEntry {
    kind: CeilingKind,
    /// The ceilings of this kind that bound the job in hand.
    plan: fn(&CeilingContext<'_>) -> Vec<Want>,
    /// The load that it runs; absent where it is found without one.
    load: Option<Load>,
}

#[derive(Clone, Copy)]
struct Load {
    /// Whether it uses the job's own files.
    files: bool,
    /// The load for one job. `job` is the first of those that the ceiling bounds.
    job: fn(&CeilingPlan, &JobPlan, &Catalog) -> JobPlan,
}

/// All kinds, in the order in which they are shown.
const CEILINGS: &[CeilingEntry] =
    &[storage::ENTRY, link::ENTRY, gather::ENTRY, cpu_copy::ENTRY, pcie::GPU, pcie::NVME];

/// The load that finds a ceiling, and whether it uses the job's own files. `job` is the first of
/// those that the ceiling bounds. Nothing where the ceiling is found without a load.
pub fn load(ceiling: &CeilingPlan, job: &JobPlan, catalog: &Catalog) -> Option<(JobPlan, bool)> {
    let load = CEILINGS.iter().find(|row| row.kind == ceiling.kind)?.load?;
    Some(((load.job)(ceiling, job, catalog), load.files))
}

/// Bytes of the job's largest block, at least 1.
pub fn largest_block(job: &JobPlan) -> u64 {
    job.sizes().map(|share| share.max_bytes).max().unwrap_or(1).max(1)
}

/// The inputs of a row.
struct CeilingContext<'a> {
    jobs: &'a [JobPlan],
    job: &'a JobPlan,
    /// The path that the job takes.
    path: &'static PathInfo,
    /// How long a ceiling of the job is measured, nanoseconds.
    time_ns: u64,
    facts: &'a Facts<'a>,
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

impl CeilingContext<'_> {
    fn catalog(&self) -> &Catalog {
        &self.facts.catalog
    }

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
pub(crate) fn plan(jobs: &[JobPlan], facts: &Facts<'_>) -> Vec<CeilingPlan> {
    let mut wants: Vec<Want> = Vec::new();
    for row in CEILINGS {
        for job in jobs {
            let (Some(time_ns), Some(path)) =
                (job.ceilings_ns, facts.catalog.path(&job.path.choice.actual))
            else {
                continue;
            };
            for want in (row.plan)(&CeilingContext { jobs, job, path, time_ns, facts }) {
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
