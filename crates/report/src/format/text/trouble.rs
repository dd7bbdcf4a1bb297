//! Failed I/Os and wrong data.

use gpuio_record::{IoFailure, Record, VerifyMismatch, VerifyOutcome};

use super::{PARAGRAPH_WIDTH, SOFTWARE_GPU};
use crate::number::{bytes, times};
use crate::workload::jobs;
use crate::wrap::paragraph;

/// The failed I/Os of all jobs: how many, and the first of each kind.
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
            "{}: {failed} I/Os failed, {done} landed\n",
            plan.name
        ));
        for failure in &job.failures {
            out.push_str(&paragraph("  - ", &failure_words(failure), wide));
        }
        let listed: u64 = job.failures.iter().map(|failure| failure.times).sum();
        if listed < failed {
            out.push_str(&format!("  - {} more of other kinds\n", failed - listed));
        }
    }
    out
}

fn failure_words(failure: &IoFailure) -> String {
    let IoFailure {
        path,
        offset,
        length,
        op,
        leg,
        what,
        times: count,
    } = failure;
    let leg = if leg == "gpu" { "GPU" } else { leg };
    format!(
        "{op} of {length} bytes at {offset} in {path} ({leg} leg): {what}; {}",
        times(*count)
    )
}

/// What verification checked and found, job by job.
pub(super) fn verification(record: &Record, width: u16) -> String {
    let wide = width.min(PARAGRAPH_WIDTH);
    let mut out = String::new();
    for (plan, job) in jobs(record) {
        if let Some(outcome) = &job.verify {
            let soft = record.plan.software_gpu;
            out.push_str(&paragraph(
                "  ",
                &outcome_words(&plan.name, outcome, soft),
                wide,
            ));
            for mismatch in &outcome.mismatches {
                out.push_str(&paragraph("  - ", &mismatch_words(mismatch), wide));
            }
            if outcome.failed > 0 {
                let text = format!("{} I/Os of the verification itself failed", outcome.failed);
                out.push_str(&paragraph("  - ", &text, wide));
            }
        }
    }
    if out.is_empty() {
        out
    } else {
        format!("verification:\n{out}")
    }
}

fn outcome_words(job: &str, outcome: &VerifyOutcome, software: bool) -> String {
    let mut text = format!(
        "{job}: {} blocks ({}) of the timed load and {} blocks ({}) of the pass checked in {}: ",
        outcome.timed_blocks,
        bytes(outcome.timed_bytes),
        outcome.pass_blocks,
        bytes(outcome.pass_bytes),
        outcome.checked_in,
    );
    if outcome.bad_blocks == 0 {
        text.push_str("all right");
    } else {
        let (blocks, words) = (outcome.bad_blocks, outcome.bad_words);
        text.push_str(&format!("{blocks} BAD BLOCKS, {words} wrong 8-byte words"));
    }
    if !outcome.complete {
        text.push_str("; CUT SHORT before the end");
    }
    if software {
        text.push_str(&format!(" [{SOFTWARE_GPU}]"));
    }
    text
}

fn mismatch_words(mismatch: &VerifyMismatch) -> String {
    let VerifyMismatch {
        path,
        offset,
        expected,
        found,
        bad_words,
        leg,
        found_belongs_at,
    } = mismatch;
    let belongs = match found_belongs_at {
        Some(place) => format!("; the word found belongs at {place}"),
        None => String::new(),
    };
    let leg = match leg.as_str() {
        "gpu" => "broken on the GPU leg",
        "file" => "broken on the file leg",
        _ => "leg unknown",
    };
    format!(
        "{path} at {offset}: expected {expected}, found {found}, {bad_words} wrong words in the \
         block, {leg}{belongs}"
    )
}
