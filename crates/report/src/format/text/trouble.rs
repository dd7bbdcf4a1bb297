//! Failed I/Os, and the error that ended the run.

use gpuio_base::document::{Item, Layout, List, Section};
use gpuio_record::{FAILURES_MOST, IoFailure, Record};

use crate::number::{count, many, times};
use crate::workload::jobs;

/// The failed I/Os of all jobs: how many, and the first of each kind; then the error that ended the
/// run, if any.
pub(super) fn failures(record: &Record) -> Section {
    let mut section = Section::default();
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
        section.list(listed(failed, &job.failures));
    }
    let error = record.error.iter().map(|error| Item::new("stopped by an error", error.as_str()));
    section.list(List::new(Layout::labels(0), error));
    section
}

/// A point for each kind of the failures, and one for those that are not kept.
pub(super) fn listed(failed: u64, kinds: &[IoFailure]) -> List {
    let points = Layout { indent: 2, gap: 1, ..Layout::default() };
    let listed: u64 = kinds.iter().map(|failure| failure.times).sum();
    let more = failed.saturating_sub(listed);
    let more = (more > 0).then(|| format!("{} more of other kinds", count(more)));
    let lines = kinds.iter().map(failure_words).chain(more);
    List::new(points, lines.map(|line| Item::new("-", line)))
}

fn failure_words(failure: &IoFailure) -> String {
    let IoFailure { path, offset, length, op, leg, what, times: number } = failure;
    let leg = if leg == "gpu" { "GPU" } else { leg };
    format!("{op} of {length} bytes at {offset} in {path} ({leg} leg): {what}; {}", times(*number))
}
