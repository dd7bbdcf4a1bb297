//! The exit code of a record.

use std::process::ExitCode;

use gpuio_record::{
    Ceiling, ComputationCost, EndedHow, FeedResult, JobResult, Record, VerifyOutcome,
};

/// 0 if all went as planned and every verified byte was right, including those that a ceiling
/// restored, else 1.
pub(crate) fn exit_code(record: &Record) -> ExitCode {
    ExitCode::from(code(record))
}

/// The same as a number.
pub(crate) fn code(record: &Record) -> u8 {
    let fine = record.ended == EndedHow::Complete
        && record.error.is_none()
        && record.jobs.iter().all(job_is_fine)
        && record.ceilings.iter().all(ceiling_is_fine);
    u8::from(!fine)
}

fn job_is_fine(job: &JobResult) -> bool {
    job.failed == 0
        && job.verify.as_ref().is_none_or(VerifyOutcome::is_fine)
        && job.beside.as_ref().is_none_or(beside_is_fine)
        && job.feed.as_ref().is_none_or(feed_is_fine)
}

/// The computation must have run, and no sample may have been read twice in an epoch, or left out
/// of one that is over. A utilisation below what was to be reached is a result.
fn feed_is_fine(feed: &FeedResult) -> bool {
    feed.accelerators.iter().all(|one| one.failed.is_none())
        && feed.epochs.iter().all(|epoch| epoch.repeated == 0)
        && (!feed.complete || feed.epochs.iter().all(|epoch| epoch.never == 0))
}

/// The same rules for the job alone; the computation must have run. An unknown ratio is no failure.
fn beside_is_fine(beside: &ComputationCost) -> bool {
    let alone = &beside.alone;
    alone.failed == 0
        && alone.verify.as_ref().is_none_or(VerifyOutcome::is_fine)
        && beside.gpus.iter().all(|gpu| !gpu.failed)
}

/// A ceiling that can't be measured is no failure. But files must hold their pattern after it.
fn ceiling_is_fine(ceiling: &Ceiling) -> bool {
    ceiling.restored.as_ref().is_none_or(VerifyOutcome::is_fine)
}
