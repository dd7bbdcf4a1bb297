//! Carries out the plan's ceilings after its last group: each as a group of its own.

use std::collections::BTreeMap;
use std::slice::from_ref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gpuio_gpu::Context;
use gpuio_host::Root;
use gpuio_io::clock::Clock;
use gpuio_record::facts::HostFacts;
use gpuio_record::{DirectMode, EndedHow, JobPlan, JobResult, Plan, VerifyOutcome};

use super::data::DataSet;
use super::group::Group;
use super::{Means, Ran, RunError, RunObserver, Tick};
use crate::ceiling::{self, Bench};
use gpuio_dataset::held::Targets;

/// Finds the ceilings of the plan and holds every result against its lowest. A ceiling that can't
/// be had is one with a reason: nothing here ends the run or takes a result away. The findings of a
/// pass that put a pattern back are recorded with the ceiling.
pub(super) fn find(
    plan: &Plan,
    means: &Means<'_>,
    clock: Clock,
    contexts: &BTreeMap<u32, Context>,
    data: &mut DataSet<'_>,
    observer: &dyn RunObserver,
    ran: &mut Ran,
) {
    if plan.ceilings.is_empty() {
        return;
    }
    let failed = ran.ended == EndedHow::Failed;
    let stopped = || {
        if means.stop.load(Ordering::Relaxed) {
            Some("not measured: the run was interrupted".to_owned())
        } else if failed {
            Some("not measured: the run had failed before".to_owned())
        } else {
            None
        }
    };
    let interval_ns = plan.interval_ns;
    let mut loads = Loads {
        means,
        clock,
        contexts,
        data,
        observer,
        interval_ns,
        root: Root::live(),
        last: None,
        restored: None,
    };
    let announce = |name: &str| observer.ceiling(name);
    ran.ceilings =
        ceiling::find_all(&plan.ceilings, &plan.jobs, &ran.jobs, &mut loads, &stopped, &announce);
    ceiling::assign_lowest(&mut ran.jobs, &ran.ceilings);
}

/// The run's own means, lent to ceilings.
struct Loads<'a, 'd> {
    means: &'a Means<'a>,
    clock: Clock,
    contexts: &'a BTreeMap<u32, Context>,
    data: &'a mut DataSet<'d>,
    observer: &'a dyn RunObserver,
    interval_ns: u64,
    root: Root,
    /// The load that ran last: reads and writes of a mixed one are two ceilings of one run.
    last: Option<(JobPlan, JobResult)>,
    restored: Option<VerifyOutcome>,
}

impl Loads<'_, '_> {
    fn run(&mut self, job: &JobPlan, files: bool) -> Result<JobResult, RunError> {
        let jobs = from_ref(job);
        if files {
            let making = |done, of| self.observer.making(done, of);
            self.data.prepare(jobs, &self.means.stop, &making)?;
            clean_pages(job, &self.data.targets());
        }
        let held = if files { self.data.targets() } else { Arc::default() };
        let mut alone = Ran::nothing();
        let group = Group {
            jobs,
            held: &held,
            means: self.means,
            contexts: self.contexts,
            clock: self.clock,
            interval_ns: self.interval_ns,
            live_page: None,
            sampler: None,
            computation: None,
            log_space: None,
        };
        let outcome = group.run(&Ticks(self.observer), &mut alone);
        if files {
            self.data.finalize(jobs, &alone.jobs, true)?;
        }
        outcome?;
        let lost = || RunError::Panic { job: job.name.clone(), what: "it left no result".into() };
        alone.jobs.pop().ok_or_else(lost)
    }
}

/// Sends dirty pages of the load's files to storage before its clock starts: O_DIRECT would wait
/// for what a buffered load before it left to be written (open(2)). Buffered loads find the page
/// cache as it was left. The load itself reports a file that can't be opened.
fn clean_pages(job: &JobPlan, held: &Targets) {
    if job.direct != DirectMode::Direct {
        return;
    }
    for target in &job.targets {
        if let Ok(file) = held.read(&target.path) {
            let _ = file.sync_data();
        }
    }
}

impl Bench for Loads<'_, '_> {
    fn load(&mut self, job: &JobPlan, files: bool) -> Result<JobResult, String> {
        let nameless = JobPlan { name: String::new(), ..job.clone() };
        if let Some((_, result)) = self.last.as_ref().filter(|(last, _)| *last == nameless) {
            return Ok(result.clone());
        }
        let result = self.run(job, files).map_err(|error| error.to_string())?;
        self.restored.clone_from(&result.verify);
        self.last = Some((nameless, result.clone()));
        Ok(result)
    }

    fn restored(&mut self) -> Option<VerifyOutcome> {
        self.restored.take()
    }

    fn host(&self) -> &HostFacts {
        self.means.host
    }

    fn root(&self) -> &Root {
        &self.root
    }

    fn clock(&self) -> Clock {
        self.clock
    }

    fn stop(&self) -> &Arc<AtomicBool> {
        &self.means.stop
    }
}

/// Passes on how fast it goes; jobs and results of ceilings, and of what runs alone first, are not
/// the watcher's.
pub(super) struct Ticks<'a>(pub(super) &'a dyn RunObserver);

impl RunObserver for Ticks<'_> {
    fn making(&self, _: u64, _: u64) {}
    fn started(&self, _: &[JobPlan]) {}
    fn tick(&self, tick: &Tick) {
        self.0.tick(tick);
    }
    fn verifying(&self, _: &[JobPlan]) {}
    fn job_done(&self, _: &JobPlan, _: &JobResult) {}
    fn group_done(&self, _: &Plan, _: &Ran) {}
}
