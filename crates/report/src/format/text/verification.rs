//! The data that verification checked, and its findings.

use gpuio_base::document::{Item, Layout, List, Section};
use gpuio_base::units::format_bytes;
use gpuio_record::{JobPlan, Record, VerifyMismatch, VerifyOutcome, WrittenAs};

use super::SOFTWARE_GPU;
use super::trouble::listed;
use crate::number::many;
use crate::verification::{Checked, checked, is_right, right_words, subject};
use crate::workload::jobs;

/// One line for everything that is right, per place where it was checked; details of the rest.
pub(super) fn section(record: &Record) -> Section {
    let mut right: Vec<VerifyOutcome> = Vec::new();
    let mut section = Section::new("", "verification:");
    for (plan, job) in jobs(record) {
        let Some(outcome) = &job.verify else { continue };
        if is_right(outcome) {
            add(&mut right, outcome);
        } else {
            trouble(&mut section, plan, outcome);
        }
    }
    let none_wrong = section.is_empty();
    let others = if none_wrong { "all right" } else { "the others all right" };
    let mark = |sum: &VerifyOutcome| {
        let of = |outcome: &VerifyOutcome| is_right(outcome) && is_alike(outcome, sum);
        let mut soft = jobs(record).filter(|(plan, _)| plan.uses_software_gpu());
        mark(soft.any(|(_, job)| job.verify.as_ref().is_some_and(of)))
    };
    let line = |sum| right_words(sum, others) + &mark(sum);
    let right = right.iter().map(line);
    if none_wrong {
        section.title = "".into();
        let items = right.map(|text| Item::new("verification", text));
        section.list(List::new(Layout::labels(0).wide(), items));
    } else {
        section.list(List::of(2, right));
    }
    section
}

/// Whether both are of one kind of data, checked in one place.
fn is_alike(one: &VerifyOutcome, other: &VerifyOutcome) -> bool {
    one.checked_in == other.checked_in && one.subject == other.subject
}

/// Behind the results of jobs that use the software GPU.
fn mark(software: bool) -> String {
    if software { format!(" [{SOFTWARE_GPU}]") } else { String::new() }
}

fn add(sums: &mut Vec<VerifyOutcome>, outcome: &VerifyOutcome) {
    match sums.iter_mut().find(|sum| is_alike(sum, outcome)) {
        Some(sum) => {
            sum.timed_blocks += outcome.timed_blocks;
            sum.timed_bytes += outcome.timed_bytes;
            sum.pass_blocks += outcome.pass_blocks;
            sum.pass_bytes += outcome.pass_bytes;
            sum.filled_bytes += outcome.filled_bytes;
            if let Some(repeated) = outcome.repeated_bytes {
                *sum.repeated_bytes.get_or_insert(0) += repeated;
            }
            sum.sample_of_bytes = match (sum.sample_of_bytes, outcome.sample_of_bytes) {
                (None, None) => None,
                // A pass that was not cut short is a sample of itself.
                (one, two) => Some(
                    one.unwrap_or(sum.pass_bytes - outcome.pass_bytes)
                        + two.unwrap_or(outcome.pass_bytes),
                ),
            };
        }
        None => sums.push(outcome.clone()),
    }
}

fn trouble(section: &mut Section, plan: &JobPlan, outcome: &VerifyOutcome) {
    let sum: Checked = [outcome].into_iter().collect();
    let mut parts: Vec<String> = sum.faults().iter().map(ToString::to_string).collect();
    parts.push(checked(outcome));
    let mut text = format!("{}: {}{}", plan.name, subject(outcome), parts.join("; "));
    if !sum.is_bad() && outcome.timed_blocks + outcome.pass_blocks > 0 {
        text.push_str("; none of these is wrong");
    }
    text.push_str(&mark(plan.uses_software_gpu()));
    section.list(List::of(2, [text]));
    let other = outcome.written_as.as_ref().map(|other| {
        let WrittenAs { path, offset, block_bytes, .. } = other;
        let text = format!(
            "{path} at {offset}: the header there is intact and says {}, so nothing follows about \
             the storage",
            format_bytes(*block_bytes)
        );
        Item::new("-", text)
    });
    section.list(List::new(Layout { indent: 2, gap: 1, ..Layout::default() }, other));
    if !outcome.failures.is_empty() {
        section.list(listed(outcome.failed, &outcome.failures));
    }
    let mismatches = outcome.mismatches.iter().map(|one| Item::new("-", mismatch_words(one)));
    section.list(List::new(Layout { indent: 2, gap: 1, ..Layout::default() }, mismatches));
}

/// The beginning of a header of fio's, as a word of the record.
const FIO_MAGIC: &str = "0x000000000000acca";

fn mismatch_words(mismatch: &VerifyMismatch) -> String {
    let VerifyMismatch { path, offset, expected, found, bad_words, leg, gpu, .. } = mismatch;
    let belongs = match &mismatch.found_belongs_at {
        Some(place) if *bad_words == 0 => format!("; this is the block of {place}"),
        Some(memory) => format!("; the value found belongs at {memory}"),
        None => String::new(),
    };
    let gpu = gpu.map(|gpu| format!(", only in the memory of GPU {gpu}")).unwrap_or_default();
    let leg = match leg.as_str() {
        _ if expected == FIO_MAGIC => {
            "no header of fio's stands there: it was written with another bs or without \
             verify=crc32c, or it is corrupted"
        }
        "gpu" => "corrupted on the GPU leg",
        "file" => "corrupted on the file leg",
        _ => "leg unknown",
    };
    if let Some(length) = mismatch.checksum_of_bytes {
        return format!(
            "{path}: block at {offset}, length {length}: the crc32c in its header is {expected}, \
             that of its data is {found}: a byte of the block is wrong, which one is not known, \
             {leg}"
        );
    }
    let words = match bad_words {
        0 => "in the block's header".to_owned(),
        words => format!("{} in the block", many(*words, "wrong word")),
    };
    format!("{path} at {offset}: expected {expected}, found {found}, {words}, {leg}{gpu}{belongs}")
}
