//! The files that are there after a run.

use std::collections::BTreeMap;

use crate::plan::{GuardNote, JobPlan, Plan, TargetPlan};

impl Plan {
    /// Files of gpuio's that are there after the run, each once: those that were there before, and
    /// made ones that are kept.
    pub fn files_that_stay(&self) -> Vec<&TargetPlan> {
        let stays = |job: &JobPlan, target: &TargetPlan| match target.guard {
            GuardNote::Ours | GuardNote::Changed => true,
            GuardNote::Make | GuardNote::Remake => job.keep,
            GuardNote::ForeignReadOnly | GuardNote::ForeignOverwrite => false,
        };
        let of_job = |job| {
            let job: &JobPlan = job;
            job.targets.iter().filter(move |target| stays(job, target))
        };
        let all = self.jobs.iter().flat_map(of_job);
        let by_path: BTreeMap<&str, &TargetPlan> =
            all.map(|target| (target.path.as_str(), target)).collect();
        by_path.into_values().collect()
    }
}
