//! The rules of MLPerf Storage for checkpoints (mlcommons/storage, Rules.md, chapter 4), and
//! whether a run kept them.

use gpuio_base::document::unique;
use gpuio_job::workload::preset::PRESETS;
use gpuio_record::{EndedHow, FeedRule, JobPlan, JobResult, PartPlan, Record};

use crate::number::{bytes, many};
use crate::workload::jobs;

/// Checkpoints that are written, and then read.
const TIMES: usize = 10;
/// Data of more than this many times the memory needs no cache to be cleared.
const MEMORIES: u64 = 3;

/// Whether a job is a part of a checkpoint of MLPerf's: as many bytes a rank and ranks as a preset.
fn is_checkpoint(part: &PartPlan) -> bool {
    let lines =
        [format!("size={}", part.full_size_bytes), format!("full_threads={}", part.full_threads)];
    let has = |text: &str| lines.iter().all(|line| text.lines().any(|one| one == line));
    PRESETS.iter().any(|preset| preset.name.starts_with("checkpoint-") && has(preset.text))
}

/// The rules, with the names of their jobs; nothing for other loads.
pub(super) fn rules(record: &Record) -> Option<(String, Vec<FeedRule>)> {
    let part = |plan: &JobPlan| plan.part.filter(is_checkpoint);
    let all: Vec<(&JobPlan, &JobResult)> =
        jobs(record).filter(|(plan, _)| part(plan).is_some()).collect();
    let (plan, _) = all.first()?;
    let part = part(plan)?;
    let name = |plan: &JobPlan| plan.repeat.as_ref().map_or(&plan.name, |one| &one.of).clone();
    let names = unique(all.iter().map(|(plan, _)| name(plan)));
    let rule = |rule: String, found: String, kept| FeedRule { rule, found, kept };
    let mut rules = vec![
        rule(
            format!("all {} ranks", part.full_threads),
            plan.threads.to_string(),
            Some(plan.threads == part.full_threads),
        ),
        rule(
            "the whole checkpoint of a rank".to_owned(),
            format!(
                "scale {}: {} of {}",
                part.scale,
                bytes(plan.size_bytes),
                bytes(part.full_size_bytes)
            ),
            Some(plan.size_bytes >= part.full_size_bytes),
        ),
    ];
    let [saves, restores] = [false, true].map(|reads| {
        let such = all.iter().filter(move |(plan, _)| (plan.read_percent > 0) == reads);
        such.copied().collect::<Vec<_>>()
    });
    // A save by stages is two jobs.
    let done = |jobs: &[(&JobPlan, &JobResult)]| {
        let ended = jobs.iter().filter(|(_, job)| job.ended == EndedHow::Complete);
        let names: Vec<String> = ended.map(|(plan, _)| name(plan)).collect();
        let times = |of: &String| names.iter().filter(|one| *one == of).count();
        names.iter().map(times).max().unwrap_or(0)
    };
    let [written, read] = [&saves, &restores].map(|jobs| done(jobs));
    rules.push(rule(
        format!("{TIMES} are written, then {TIMES} read"),
        format!("{written} written, {read} read"),
        Some([written, read] == [TIMES; 2]),
    ));
    let flushed = saves.iter().all(|(plan, _)| plan.flush.is_some_and(|flush| flush.at_end));
    rules.push(rule(
        "fsync at the end of each write".to_owned(),
        if flushed { "fsync(2)" } else { "not after each" }.to_owned(),
        Some(flushed),
    ));
    rules.push(cleared(record, &saves, &restores));
    rules.push(rule(
        "the load of mlpstorage".to_owned(),
        "a load of gpuio's: a file for each rank, all of one size".to_owned(),
        Some(false),
    ));
    rules.push(rule(
        "another client reads what one has written; accelerators' memory holds the checkpoint; \
         results on another file system"
            .to_owned(),
        "not checked".to_owned(),
        None,
    ));
    Some((names.join("+"), rules))
}

/// Whether reads can't have come from the page cache of the writes.
fn cleared(
    record: &Record,
    saves: &[(&JobPlan, &JobResult)],
    restores: &[(&JobPlan, &JobResult)],
) -> FeedRule {
    let written: u64 = saves.iter().map(|(_, job)| job.write.bytes).sum();
    let memory = &record.host.memory;
    let memory = memory.usable_bytes.or(memory.total_bytes);
    let emptied = restores.iter().filter(|(plan, _)| plan.invalidate).count();
    let size = memory.map_or_else(|| "unknown".to_owned(), bytes);
    FeedRule {
        rule: format!(
            "more than {MEMORIES} times the memory is written, or the cache is cleared before reads"
        ),
        found: format!(
            "{} written, memory {size}, the files' pages dropped before {}",
            bytes(written),
            many(emptied as u64, "read")
        ),
        kept: match memory {
            _ if !restores.is_empty() && emptied == restores.len() => Some(true),
            Some(memory) => Some(written / MEMORIES > memory),
            None => None,
        },
    }
}
