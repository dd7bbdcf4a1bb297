//! Who writes to each file of a group, and what that makes known of it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use gpuio_record::{JobPlan, JobResult, VerifyMode, VerifyOutcome};

use super::pattern_keys::salt;
use gpuio_dataset::held::{Held, Targets};
use gpuio_dataset::manifest::{Holds, Known};
use gpuio_dataset::{Identity, ranges};
use gpuio_job::workload::cover::parts;

/// A job that writes to a file, and the bytes of it that the job uses.
pub(super) struct Use<'a> {
    job: &'a JobPlan,
    holds: Holds,
    pub(super) bytes: Range<u64>,
    /// The bytes that it may have written, gaps included.
    reach: Range<u64>,
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
            let reach = bytes.start..target.length_bytes;
            file.1.push(Use { job, holds, bytes, reach });
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
    let is_clean = |one: &Use<'_>| one.holds == holds && is_clean(one, results);
    uses.iter().all(is_clean).then_some(holds)
}

fn is_clean(one: &Use<'_>, results: &[JobResult]) -> bool {
    let result = results.iter().find(|result| result.name == one.job.name);
    let outcome = result.and_then(|result| result.verify.as_ref());
    is_left_whole(one.job) && outcome.is_some_and(VerifyOutcome::is_fine)
}

/// Where a file holds its pattern once these jobs have written to it, that did so in the parts
/// `before`: there, and where a job's verification found nothing wrong, without all that others may
/// have written. `None` where jobs mean different patterns.
pub(super) fn known(
    uses: &[Use<'_>],
    results: &[JobResult],
    before: Vec<Range<u64>>,
) -> Option<Known> {
    let holds = uses.first()?.holds;
    if uses.iter().any(|one| one.holds != holds) {
        return None;
    }
    let (clean, others): (Vec<_>, Vec<_>) = uses.iter().partition(|one| is_clean(one, results));
    let others: Vec<Range<u64>> = others.into_iter().map(|one| one.reach.clone()).collect();
    let parts = before.into_iter().chain(clean.into_iter().map(|one| one.bytes.clone()));
    let parts = parts.flat_map(|part| ranges::without(&part, &others)).collect();
    Some(Known { holds, parts })
}
