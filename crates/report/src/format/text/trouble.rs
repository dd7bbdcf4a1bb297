//! Failed I/Os, and the error that ended the run.

use gpuio_base::document::{Item, Layout, List, Section};
use gpuio_record::{FAILURES_MOST, IoFailure, Record};

use crate::number::{count, many, times};
use crate::workload::jobs;

/// The failed I/Os of all jobs: how many, and the first of each kind; then the error that ended the
/// run, if any.
pub(super) fn failures(record: &Record) -> Section {
    let mut section = Section::default();
    let points = Layout { indent: 2, gap: 1, ..Layout::default() };
    for (plan, job) in jobs(record) {
        if job.failed == 0 && job.failures.is_empty() {
            continue;
        }
        let done = job.read.ios + job.write.ios;
        let failed = job.failed;
        let ends = match failed >= FAILURES_MOST {
            true => format!("; a thread stops after {} failures", count(FAILURES_MOST)),
            false => String::new(),
        };
        let (failures, done) = (many(failed, "I/O"), count(done));
        let text = format!("{}: {failures} failed, {done} completed{ends}", plan.name);
        section.item(Layout::default().wide(), Item::new("", text));
        let listed: u64 = job.failures.iter().map(|failure| failure.times).sum();
        let more = failed.saturating_sub(listed);
        let more = (more > 0).then(|| format!("{} more of other kinds", count(more)));
        let lines = job.failures.iter().map(failure_words).chain(more);
        section.list(List::new(points, lines.map(|line| Item::new("-", line))));
    }
    let error = record.error.iter().map(|error| Item::new("stopped by an error", error.as_str()));
    section.list(List::new(Layout::labels(0), error));
    section
}

fn failure_words(failure: &IoFailure) -> String {
    let IoFailure { path, offset, length, op, leg, what, times: number } = failure;
    let leg = if leg == "gpu" { "GPU" } else { leg };
    format!("{op} of {length} bytes at {offset} in {path} ({leg} leg): {what}; {}", times(*number))
}
