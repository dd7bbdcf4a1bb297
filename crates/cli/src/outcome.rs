//! What a record means for the exit code.

use std::process::ExitCode;

use gpuio_record::{EndedHow, JobResult, Record};

/// 0 when all went as planned and every verified byte was right, else 1.
pub(crate) fn exit_code(record: &Record) -> ExitCode {
    let fine = record.ended == EndedHow::Complete
        && record.error.is_none()
        && record.jobs.iter().all(job_is_fine);
    if fine { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

fn job_is_fine(job: &JobResult) -> bool {
    let verified = job
        .verify
        .as_ref()
        .is_none_or(|verify| verify.bad_blocks == 0 && verify.failed == 0 && verify.complete);
    job.failed == 0 && verified
}
