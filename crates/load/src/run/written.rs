//! Who writes to each file of a group, and what that makes known of it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use gpuio_record::{JobPlan, JobResult, VerifyMode, VerifyOutcome};

use super::data::parts;
use super::verify::salt;
use gpuio_dataset::Identity;
use gpuio_dataset::held::{Held, Targets};
use gpuio_dataset::manifest::Holds;

/// A job that writes to a file, and the bytes of it that the job uses.
pub(super) struct Use<'a> {
    job: &'a JobPlan,
    holds: Holds,
    pub(super) bytes: Range<u64>,
}

/// Who writes to each file of a group.
pub(super) fn writers<'a>(
    jobs: &'a [JobPlan],
    targets: &Targets,
) -> BTreeMap<Identity, (Arc<Held>, Vec<Use<'a>>)> {
    let mut files: BTreeMap<Identity, (Arc<Held>, Vec<Use<'_>>)> = BTreeMap::new();
    for job in jobs.iter().filter(|job| job.read_percent < 100) {
        for (target, bytes) in job.targets.iter().zip(parts(job)) {
            let Some(held) = targets.get(&target.path) else { continue };
            let holds = Holds { salt: salt(job), file_number: target.file_number };
            let file = files.entry(held.identity()).or_insert((Arc::clone(held), Vec::new()));
            file.1.push(Use { job, holds, bytes });
        }
    }
    files
}

/// Whether all bytes that a job uses hold their pattern once its verification found nothing wrong.
/// A sample leaves unwritten what no timed write reached, and blocks with fio's headers hold these.
pub(super) fn is_left_whole(job: &JobPlan) -> bool {
    let whole = job.verify_ns.is_none() && !job.fio_headers;
    matches!(job.verify, VerifyMode::Pass | VerifyMode::Rewrite) && whole
}

/// The pattern that all bytes hold that these jobs wrote to one file: the verification of each
/// found nothing wrong, and all meant the same pattern.
pub(super) fn clean(uses: &[Use<'_>], results: &[JobResult]) -> Option<Holds> {
    let holds = uses.first()?.holds;
    let is_clean = |one: &Use<'_>| {
        let result = results.iter().find(|result| result.name == one.job.name);
        let outcome = result.and_then(|result| result.verify.as_ref());
        is_left_whole(one.job) && one.holds == holds && outcome.is_some_and(VerifyOutcome::is_fine)
    };
    uses.iter().all(is_clean).then_some(holds)
}
