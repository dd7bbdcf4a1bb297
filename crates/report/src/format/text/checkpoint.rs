//! How long checkpoints stop training; the rules of MLPerf Storage for them (mlcommons/storage,
//! Rules.md, chapter 4), and whether a run kept them.

use gpuio_base::document::{Section, grouped, unique};
use gpuio_base::stat::infer::median;
use gpuio_base::units::{float, per_second, whole};
use gpuio_job::plan::STAGE;
use gpuio_job::workload::preset::PRESETS;
use gpuio_record::{EndedHow, FeedRule, JobPlan, JobResult, PartPlan, Record, VerifyMode};

use super::of_jobs;
use crate::fast_enough::CHECKS_MOST;
use crate::number::{bytes, many, throughput, time};
use crate::others;
use crate::workload::{jobs, name};

/// Checkpoints that are written, and then read.
const TIMES: usize = 10;
/// How others are seen beside what is too short for that.
const LONGER: &str = " (a larger part takes longer: leave out --try, or raise --scale)";
/// Data of more than this many times the memory needs no cache to be cleared.
const MEMORIES: u64 = 3;

/// Whether a job is a part of a checkpoint of MLPerf's: as many bytes a rank and ranks as a preset.
fn is_checkpoint(part: &PartPlan) -> bool {
    let lines =
        [format!("size={}", part.full_size_bytes), format!("full_threads={}", part.full_threads)];
    let has = |text: &str| lines.iter().all(|line| text.lines().any(|one| one == line));
    PRESETS.iter().any(|preset| preset.name.starts_with("checkpoint-") && has(preset.text))
}

/// The part of a job in a checkpoint.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// A save by way of staged pages: into these, and from them to the files.
    Stall,
    Drain,
    /// A save to the files.
    Save,
    Restore,
}

impl Part {
    /// The question that its time answers.
    fn question(self) -> &'static str {
        match self {
            Part::Stall | Part::Save => "how long do checkpoints stop training?",
            Part::Drain => "how long after that is a checkpoint in the files?",
            Part::Restore => "how long does a restart wait for its checkpoint?",
        }
    }

    /// The first words of its answer, and its times.
    fn words(self) -> [&'static str; 2] {
        match self {
            Part::Stall | Part::Save => ["training stops for", "save"],
            Part::Drain => ["a save is in the files after another", "drain"],
            Part::Restore => ["a restart waits for", "restore"],
        }
    }
}

fn part_of(record: &Record, plan: &JobPlan) -> Option<Part> {
    let is_staged = |plan: &JobPlan| plan.directories().any(|one| one.starts_with(STAGE));
    let staged = name(plan).strip_suffix("-drain").map(|save| format!("{save}-stall"));
    if is_staged(plan) {
        return Some(Part::Stall);
    }
    if staged.is_some_and(|stall| {
        jobs(record).any(|(other, _)| is_staged(other) && name(other) == stall)
    }) {
        return Some(Part::Drain);
    }
    plan.part.as_ref().filter(|part| is_checkpoint(part))?;
    Some(if plan.read_percent > 0 { Part::Restore } else { Part::Save })
}

/// Each name of a job with its part and its answer.
fn answers_of(record: &Record) -> Vec<(&str, Part, String)> {
    let of_checkpoints = jobs(record)
        .filter_map(|(plan, job)| Some((name(plan), (part_of(record, plan)?, plan, job))));
    let answer = |(name, all): (_, Vec<(Part, &JobPlan, &JobResult)>)| {
        let part = all.first()?.0;
        let all: Vec<_> = all.into_iter().map(|(_, plan, job)| (plan, job)).collect();
        Some((name, part, answer(record, part, &all)?))
    };
    grouped(of_checkpoints).into_iter().filter_map(answer).collect()
}

/// How long training stops, and what follows: for each question its jobs, a line each.
pub(super) fn answers(record: &Record) -> [Section; 3] {
    let all = answers_of(record);
    [Part::Save, Part::Drain, Part::Restore].map(|part| {
        let own = all.iter().filter(|(_, of, _)| of.question() == part.question());
        of_jobs(record, part.question(), own.map(|(name, _, answer)| (*name, answer.clone())))
    })
}

/// The same as a sentence each; an answer that is unknown has no words of its question.
pub(in crate::format) fn in_words(record: &Record) -> Vec<String> {
    let sentence = |(name, part, answer): (&str, Part, String)| match answer.starts_with("unknown")
    {
        true => format!("{name}: {} {answer}", part.question()),
        false => format!("{name}: {answer}"),
    };
    answers_of(record).into_iter().map(sentence).collect()
}

/// Bytes of all ranks together.
fn whole_state(part: PartPlan) -> u64 {
    part.full_size_bytes.saturating_mul(u64::from(part.full_threads))
}

/// The median time of jobs that did the same, with what it would be of the whole state; unknown
/// where much of it was gpuio's own or others'.
fn answer(record: &Record, part: Part, all: &[(&JobPlan, &JobResult)]) -> Option<String> {
    let [words, what] = part.words();
    let (plan, _) = all.first()?;
    let done: Vec<_> =
        all.iter().filter(|(_, job)| job.ended == EndedHow::Complete).copied().collect();
    let failed: u64 = done.iter().map(|(_, job)| job.failed).sum();
    let times: Vec<f64> = done.iter().map(|(_, job)| float(job.last_done_ns)).collect();
    let Some(took) = median(&times) else {
        return Some(format!("unknown: no {what} was complete"));
    };
    let threads_ns = times.iter().sum::<f64>() * f64::from(plan.threads);
    let own = done.iter().map(|(_, job)| float(job.between_ios_ns)).sum::<f64>();
    let own = own / threads_ns.max(1.0);
    let others: Vec<_> =
        done.iter().filter_map(|(plan, job)| others::of(record, plan, job)).collect();
    let others = others::worst(&others);
    let doubt = done.iter().find_map(|(_, job)| others::doubt(others.as_ref(), job));
    let unknown = if failed > 0 {
        Some(format!("{} failed", many(failed, "I/O")))
    } else if own > CHECKS_MOST {
        Some(format!(
            "{:.0} % of the workers' time was gpuio's own, which made or checked data (--verify {} \
             works after the run)",
            own * 100.0,
            VerifyMode::after_the_run(plan.read_percent < 100).word()
        ))
    } else {
        let unseen = done.iter().any(|(_, job)| job.others_cpu_unknown.is_some());
        let is_part = plan.part.is_some_and(|part| part.scale < 1.0);
        let longer = if unseen && is_part { LONGER } else { "" };
        doubt.map(|why| why + longer)
    };
    let beside = others.filter(|_| unknown.is_none()).map(|others| format!("; {}", others.words()));
    let moved = plan.size_bytes.saturating_mul(u64::from(plan.threads));
    let rate = per_second(moved, whole(took));
    let [least, most] = [f64::min, f64::max].map(|of| times.iter().copied().fold(took, of));
    let of = match times.len() {
        1 => format!("one {what}"),
        several => {
            let several = many(several as u64, what);
            format!("median of {several}, {} to {}", time(whole(least)), time(whole(most)))
        }
    };
    let figures = format!("{} ({of}: {} at {})", time(whole(took)), bytes(moved), throughput(rate));
    if let Some(why) = unknown {
        return Some(format!("unknown: {why}; with that, a {what} took {figures}"));
    }
    let state = plan.part.map(whole_state).filter(|all| *all > moved && rate > 0.0).map(|all| {
        let would = |took: f64| time(whole(took * float(all) / float(moved)));
        let would = match times.len() {
            1 => would(took),
            _ => format!("{} to {}", would(least), would(most)),
        };
        let share = float(moved) / float(all) * 100.0;
        let decimals = if share < 1.0 { 2 } else { 0 };
        let share = format!("{share:.decimals$} %");
        let all = bytes(all);
        format!(
            "; the run was a part, {share} of {all}: a forecast from it, at the same rate, is \
             {would} for all; caches that fill and the rate of a longer run are not in it"
        )
    });
    Some(format!("{words} {figures}{}{}", state.unwrap_or_default(), beside.unwrap_or_default()))
}

/// The rule of flushes: it is about the bytes in the files, not about staged pages of memory.
fn flushed(record: &Record, saves: &[(&JobPlan, &JobResult)]) -> FeedRule {
    let to_files = |plan: &&JobPlan| part_of(record, plan) != Some(Part::Stall);
    let plans = saves.iter().map(|(plan, _)| *plan).filter(to_files);
    let is_flushed = |plan: &JobPlan| plan.flush.as_ref().is_some_and(|flush| flush.at_end);
    let (with, without): (Vec<&JobPlan>, Vec<&JobPlan>) = plans.partition(|plan| is_flushed(plan));
    let (found, kept) = match (with.is_empty(), without.as_slice()) {
        (true, []) => ("no write to files ran".to_owned(), None),
        (false, []) => ("fsync(2)".to_owned(), Some(true)),
        (_, some) => {
            let names = unique(some.iter().map(|plan| name(plan)));
            (format!("not after each: {}", names.join(", ")), Some(false))
        }
    };
    FeedRule { rule: "fsync at the end of each write".to_owned(), found, kept }
}

/// The rules, with the names of their jobs; nothing for other loads.
pub(super) fn rules(record: &Record) -> Option<(String, Vec<FeedRule>)> {
    let part = |plan: &JobPlan| plan.part.filter(is_checkpoint);
    let all: Vec<(&JobPlan, &JobResult)> =
        jobs(record).filter(|(plan, _)| part(plan).is_some()).collect();
    let (plan, _) = all.first()?;
    let part = part(plan)?;
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
        let names: Vec<&str> = ended.map(|(plan, _)| name(plan)).collect();
        let times = |of: &&str| names.iter().filter(|one| *one == of).count();
        names.iter().map(times).max().unwrap_or(0)
    };
    let [written, read] = [&saves, &restores].map(|jobs| done(jobs));
    rules.push(rule(
        format!("{TIMES} are written, then {TIMES} read"),
        format!("{written} written, {read} read"),
        Some([written, read] == [TIMES; 2]),
    ));
    rules.push(flushed(record, &saves));
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
