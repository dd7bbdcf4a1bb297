//! What a record means for the exit code.

use std::process::ExitCode;

use gpuio_record::{Ceiling, EndedHow, JobResult, Record, VerifyOutcome};

/// 0 when all went as planned and every verified byte was right, also those that a ceiling put
/// back, else 1.
pub(crate) fn exit_code(record: &Record) -> ExitCode {
    let fine = record.ended == EndedHow::Complete
        && record.error.is_none()
        && record.jobs.iter().all(job_is_fine)
        && record.ceilings.iter().all(ceiling_is_fine);
    if fine { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

fn job_is_fine(job: &JobResult) -> bool {
    job.failed == 0 && job.verify.as_ref().is_none_or(VerifyOutcome::is_fine)
}

/// A ceiling that can't be had is none. But files must hold their pattern after it.
fn ceiling_is_fine(ceiling: &Ceiling) -> bool {
    ceiling.restored.as_ref().is_none_or(VerifyOutcome::is_fine)
}
