//! The exit code of a record, and why it is not 0: one function gives both, so that they can't
//! disagree, and every verb that runs a load reports by it whatever else it prints.

use gpuio_base::units::many;
use gpuio_record::{
    ComputationCost, EndedHow, FeedPlan, FeedResult, JobPlan, JobResult, Record, VerifyOutcome,
};
use gpuio_report::verification::{self, Checked};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The error that ended the run.
    Error,
    /// I/Os of the load failed.
    Failed,
    /// Data is wrong, or not all of it was checked.
    Unverified,
    /// A computation failed, or samples were not read as they should.
    Compute,
    /// The path that a job requires is not proven to be the one that its bytes took.
    Path,
    /// The run did not come to its end.
    Ended,
}

/// Reports on standard error what did not go well, also where results are printed elsewhere or not
/// at all, unless that is of a kind that was `said` already. Returns the exit code.
pub(crate) fn report(record: &Record, said: &[Kind]) -> u8 {
    let troubles = troubles(record);
    for (_, line) in troubles.iter().filter(|(kind, _)| !said.contains(kind)) {
        message!("error: {line}");
    }
    u8::from(!troubles.is_empty())
}

/// 0 if all went as planned and every verified byte was right, including those that a ceiling
/// restored, else 1.
pub(crate) fn code(record: &Record) -> u8 {
    u8::from(!troubles(record).is_empty())
}

/// The troubles of a run, in lines with their kinds.
pub(crate) fn troubles(record: &Record) -> Vec<(Kind, String)> {
    let mut lines: Vec<(Kind, String)> =
        record.error.iter().map(|error| (Kind::Error, error.clone())).collect();
    let mut add = |kind, line: Option<String>| lines.extend(line.map(|line| (kind, line)));
    add(Kind::Failed, failed(record.jobs.iter()));
    let verified = |job: &JobResult| Some((job.name.clone(), job.verify.clone()?));
    add(Kind::Unverified, unverified(record.jobs.iter().filter_map(verified)));
    let restored = record.ceilings.iter();
    let restored = restored.filter_map(|one| Some((one.plan.name.clone(), one.restored.clone()?)));
    add(Kind::Unverified, unverified(restored));
    for (plan, job) in record.plan.jobs.iter().zip(&record.jobs) {
        let name = &job.name;
        add(Kind::Path, path(plan, job));
        let of_beside = job.beside.as_ref().map(beside).unwrap_or_default();
        let of_feed = plan.feed.as_ref().zip(job.feed.as_ref());
        let of_feed = of_feed.map(|(plan, found)| feed(plan, found)).unwrap_or_default();
        for why in of_beside.into_iter().chain(of_feed) {
            add(Kind::Compute, Some(format!("job '{name}': {why}")));
        }
    }
    let ended = match record.ended {
        EndedHow::Complete => None,
        EndedHow::Interrupted => {
            Some("the run was interrupted: the results are of what ran until then")
        }
        EndedHow::Failed if !lines.is_empty() => None,
        EndedHow::Failed => Some("the run ended before all jobs were done"),
        EndedHow::Unfinished => Some("the record is of a run that did not end"),
    };
    lines.extend(ended.map(|line| (Kind::Ended, line.to_owned())));
    lines
}

/// Why a job that requires its path fails: another was taken, or it is not known.
fn path(plan: &JobPlan, job: &JobResult) -> Option<String> {
    if !plan.require_path {
        return None;
    }
    let why = match job.proof.as_ref().map(|proof| (proof.is_as_requested(), &proof.sentence)) {
        Some((Some(true), _)) => return None,
        Some((Some(false), sentence)) => format!("the bytes did not take it. {sentence}"),
        Some((None, sentence)) => format!("it is not proven that the bytes took it. {sentence}"),
        None => "there is no evidence of the path that the bytes took".to_owned(),
    };
    let path = &plan.path.choice.actual;
    Some(format!("job '{}' requires path {path} (require_path): {why}", job.name))
}

/// Names of jobs: one, or how many.
fn jobs_named(names: &[&str]) -> String {
    match names {
        [one] => format!("job '{one}'"),
        names => format!("{} jobs, '{}' first", names.len(), names.first().unwrap_or(&"")),
    }
}

/// I/Os of the load that failed.
fn failed<'a>(jobs: impl Iterator<Item = &'a JobResult>) -> Option<String> {
    let of: Vec<&JobResult> = jobs.filter(|job| job.failed > 0).collect();
    let all: u64 = of.iter().map(|job| job.failed).sum();
    let names: Vec<&str> = of.iter().map(|job| job.name.as_str()).collect();
    let first = of.iter().find_map(|job| job.failures.first()).map(verification::failure_place);
    let first = the_first(first);
    (all > 0).then(|| format!("I/Os failed: {all} in {}{first}", jobs_named(&names)))
}

fn the_first(place: Option<String>) -> String {
    place.map(|place| format!("; the first: {place}")).unwrap_or_default()
}

/// Verifications that are not fine.
fn unverified(all: impl Iterator<Item = (String, VerifyOutcome)>) -> Option<String> {
    let wrong: Vec<_> = all.filter(|(_, outcome)| !outcome.is_fine()).collect();
    let names: Vec<&str> = wrong.iter().map(|(name, _)| name.as_str()).collect();
    let trouble = wrong.iter().map(|(_, outcome)| outcome).collect::<Checked>().trouble()?;
    let first = the_first(verification::first_place(wrong.iter().map(|(_, outcome)| outcome)));
    Some(format!("verification of {}: {trouble}{first}", jobs_named(&names)))
}

/// The same rules for the job alone; the computation must have run. An unknown ratio is no failure.
fn beside(beside: &ComputationCost) -> Vec<String> {
    let alone = &beside.alone;
    let failed = (alone.failed > 0)
        .then(|| format!("{} failed in the run alone", many(alone.failed, "I/O")));
    let verified = alone.verify.as_ref().and_then(verification::trouble);
    let verified = verified.map(|why| format!("verification in the run alone: {why}"));
    let gpus = beside.gpus.iter().filter(|gpu| gpu.failed);
    let gpus = gpus.map(|gpu| format!("the computation beside it failed on GPU {}", gpu.index));
    failed.into_iter().chain(verified).chain(gpus).collect()
}

/// The computation must have run, and no sample may have been moved twice in an epoch, or left out
/// of one that is over. A utilisation below what was to be reached is a result.
fn feed(plan: &FeedPlan, feed: &FeedResult) -> Vec<String> {
    let accelerators = feed.accelerators.iter().filter_map(|one| {
        let why = one.failed.as_ref()?;
        Some(format!("accelerator {} failed: {why}", one.number))
    });
    let repeated: u64 = feed.epochs.iter().map(|epoch| epoch.repeated).sum();
    let done = if plan.writes { "written" } else { "read" };
    let (one, epoch) = match plan.is_cache() {
        true => ("context was|contexts were", "a round"),
        false => ("sample was|samples were", "an epoch"),
    };
    let samples = |number| many(number, one);
    let twice = || format!("{} {done} twice in {epoch}", samples(repeated));
    let repeated = (repeated > 0).then(twice);
    let never: u64 = feed.epochs.iter().map(|epoch| epoch.never).sum();
    let never = (feed.complete && never > 0).then(|| format!("{} never {done}", samples(never)));
    accelerators.chain(repeated).chain(never).collect()
}
