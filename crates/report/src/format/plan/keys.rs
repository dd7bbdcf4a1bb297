//! The settings of a job, each as a `key = value` line.

use std::collections::BTreeMap;

use gpuio_job::spec::plan_lines;
use gpuio_record::{DirectMode, JobPlan};

use super::comment;

pub(super) fn set(out: &mut String, key: &str, value: &str) {
    out.push_str(&format!("{key} = {value}\n"));
}

/// A name or other free text: `${` would be replaced from the environment, so it is written as
/// `$${`.
pub(super) fn text(out: &mut String, key: &str, value: &str) {
    let line = super::one_line(value);
    if line != value || line.trim() != line || ends_in_comment(&line) {
        comment(
            out,
            &format!("the next line can't represent {key} exactly: '{}'", value.escape_debug()),
        );
    }
    set(out, key, &line.replace("${", "$${"));
}

/// Whether a reader of job files would take the end of this value for a comment.
fn ends_in_comment(value: &str) -> bool {
    [" #", " ;"].iter().any(|mark| value.contains(mark)) || value.starts_with(['#', ';'])
}

pub(super) fn write(out: &mut String, job: &JobPlan) {
    for (key, value) in plan_lines(job) {
        if let Some(replay) = job.replay.as_ref().filter(|_| key.name == "shared_fd") {
            comment(out, &crate::workload::replay(replay));
            comment(out, "a job file has no calls of a trace: repeat this with gpuio replay");
        }
        text(out, key.name, &value);
        if let Some(remark) = key.remark.and_then(|remark| remark(job)) {
            comment(out, &remark);
        }
    }
}

pub(super) fn direct_word(mode: DirectMode) -> &'static str {
    match mode {
        DirectMode::Direct => "direct",
        DirectMode::Buffered => "buffered",
    }
}

/// cuFile settings; the same for all jobs.
pub(super) fn cufile(out: &mut String, settings: &BTreeMap<String, String>) {
    for (key, value) in settings {
        text(out, &format!("cufile.{key}"), value);
    }
}
