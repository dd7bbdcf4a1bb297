//! Failed I/Os, and the error that ended the run.

use gpuio_record::{IoFailure, Record};

use super::PARAGRAPH_WIDTH;
use crate::number::{count, times};
use crate::workload::jobs;
use crate::wrap::paragraph;

/// The failed I/Os of all jobs: how many, and the first of each kind; then the error that ended the
/// run, if any.
pub(super) fn failures(record: &Record, width: u16) -> String {
    let wide = width.min(PARAGRAPH_WIDTH);
    let mut out = String::new();
    for (plan, job) in jobs(record) {
        if job.failed == 0 && job.failures.is_empty() {
            continue;
        }
        let done = job.read.ios + job.write.ios;
        let failed = job.failed;
        out.push_str(&format!(
            "{}: {} I/Os failed, {} completed\n",
            plan.name,
            count(failed),
            count(done)
        ));
        for failure in &job.failures {
            out.push_str(&paragraph("  - ", &failure_words(failure), wide));
        }
        let listed: u64 = job.failures.iter().map(|failure| failure.times).sum();
        if listed < failed {
            out.push_str(&format!("  - {} more of other kinds\n", count(failed - listed)));
        }
    }
    if let Some(error) = &record.error {
        out.push_str(&paragraph("stopped by an error: ", error, wide));
    }
    out
}

fn failure_words(failure: &IoFailure) -> String {
    let IoFailure { path, offset, length, op, leg, what, times: number } = failure;
    let leg = if leg == "gpu" { "GPU" } else { leg };
    format!("{op} of {length} bytes at {offset} in {path} ({leg} leg): {what}; {}", times(*number))
}
