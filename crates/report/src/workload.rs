//! Descriptions of a job's load, shared by several formats.

use gpuio_base::document::{grouped, unique};
use gpuio_base::units::format_bytes;
use gpuio_record::{
    Arrivals, BlockShare, JobPlan, JobResult, Order, Record, ReplayPlan, Side, Towards,
};

use crate::number::{bytes, count, float, many, requested_rate};

/// I/Os of a job that were in flight on average (Little's law), of those that it could have, where
/// they were less than half: `0.48 of 16`.
pub(crate) fn below_depth(plan: &JobPlan, job: &JobResult) -> Option<String> {
    let of_blocks = plan.feed.is_none() && plan.replay.is_none() && plan.depth > 1;
    let sides = [&job.read, &job.write].into_iter().filter(|side| side.ios > 0);
    let mean = sides.map(|side| Some(side.iops * side.latency.as_ref()?.total.mean_ns / 1e9));
    let mean = mean.collect::<Option<Vec<f64>>>().filter(|sides| of_blocks && !sides.is_empty())?;
    let mean: f64 = mean.iter().sum();
    let most = u64::from(plan.threads) * u64::from(plan.depth);
    (mean < float(most) / 2.0).then(|| format!("{mean:.2} of {}", count(most)))
}

/// The settings of a job that keep I/Os from being in flight.
pub(crate) fn held_back(plan: &JobPlan) -> Vec<String> {
    let flushes = plan.flush.as_ref().and_then(|flush| flush.every_ios);
    let slow = |faults: &&String| ["rate", "stall"].iter().any(|word| faults.contains(word));
    let reasons = [
        plan.think
            .map(|think| format!("thinktime pauses after each {}", many(think.every_ios, "I/O"))),
        plan.is_paced().then(|| "I/Os start at the requested rate".to_owned()),
        flushes.map(|ios| format!("it flushes after each {}", many(ios, "write"))),
        plan.works_between_ios()
            .then(|| "data is generated or checked between the I/Os".to_owned()),
        plan.inject.as_ref().filter(slow).map(|faults| format!("inject={faults} holds I/Os back")),
    ];
    reasons.into_iter().flatten().collect()
}

/// Which recorded calls a job repeats, and how.
pub(crate) fn replay(plan: &ReplayPlan) -> String {
    let program = plan.program.as_ref().map_or_else(String::new, |name| format!(" by {name}"));
    let sides = [(plan.read_bytes, "read"), (plan.written_bytes, "written")];
    let sides = sides.into_iter().filter(|(amount, _)| *amount > 0);
    let sides: Vec<String> = sides.map(|(all, how)| format!("{} {how}", bytes(all))).collect();
    let holes = match plan.hole_bytes {
        0 => String::new(),
        holes => format!(", files with {} of holes", bytes(holes)),
    };
    let left_out = match plan.left_out {
        0 => String::new(),
        calls => format!(", {} that moved nothing left out", many(calls, "call")),
    };
    format!(
        "{} ({}): {}{program}, {}{holes}{left_out}; order {}, pace {}",
        plan.trace,
        plan.format,
        many(plan.calls, "call"),
        sides.join(", "),
        plan.order.word(),
        plan.pace.word()
    )
}

/// Jobs that are a part of a larger load, each with its share; one for all times of a job.
pub(crate) fn scaled(record: &Record) -> Vec<(&str, String)> {
    let share = |plan: &JobPlan| {
        let feed = plan.feed.as_ref().filter(|feed| feed.files < feed.full_files)?;
        let what = if feed.is_cache() { "user" } else { "file" };
        let whole = many(feed.full_files, what);
        Some(format!("scale {}: {} of {whole}", feed.scale, count(feed.files)))
    };
    let is_first = |plan: &JobPlan| plan.repeat.as_ref().is_none_or(|repeat| repeat.nth == 1);
    let firsts = jobs(record).map(|(plan, _)| plan).filter(|plan| is_first(plan));
    firsts
        .filter_map(|plan| {
            let words = plan.part.map(|part| part.words(plan)).or_else(|| share(plan))?;
            Some((plan.name.as_str(), words))
        })
        .collect()
}

/// The same where figures are printed without their jobs: a share that several jobs have, once.
pub(crate) fn scaled_in_words(record: &Record) -> Vec<String> {
    let all = scaled(record).into_iter().map(|(job, share)| (share, job));
    let words = |(share, jobs): (String, Vec<&str>)| {
        format!("of a larger load, {}: {share}", jobs.join(", "))
    };
    grouped(all).into_iter().map(words).collect()
}

/// The time before the first read in which the files of a load that ends by their bytes were
/// mapped: what the page cache did not hold was read in it.
pub(crate) fn set_up_ns(plan: &JobPlan, job: &JobResult) -> Option<u64> {
    let mapped = job.mapped.as_ref().filter(|_| plan.ranges.is_some())?;
    Some(mapped.map_ns + mapped.register_ns)
}

/// A rate of a job with [that time](set_up_ns), as other paths have all of theirs.
pub(crate) fn rate_with_set_up(plan: &JobPlan, job: &JobResult, bytes_per_s: f64) -> f64 {
    let Some(ns) = set_up_ns(plan, job).filter(|_| bytes_per_s > 0.0) else { return bytes_per_s };
    let moved = float(job.read.bytes + job.write.bytes);
    moved / (moved / bytes_per_s + float(ns) / 1e9).max(f64::MIN_POSITIVE)
}

/// The name of a job, that of all of its times.
pub(crate) fn name(plan: &JobPlan) -> &str {
    plan.repeat.as_ref().map_or(plan.name.as_str(), |one| one.of.as_str())
}

/// The name of a job with a question of its own, whose rate is not to be compared with those of
/// other names.
pub(crate) fn own_question(plan: &JobPlan) -> Option<&str> {
    let has = plan.feed.is_some() || plan.part.is_some() || plan.of_files();
    has.then(|| name(plan))
}

/// A job's plan and its result. Jobs that never ran have no result and are not included.
pub(crate) fn jobs(record: &Record) -> impl Iterator<Item = (&JobPlan, &JobResult)> {
    record.plan.jobs.iter().zip(&record.jobs)
}

/// Each direction of each job that ran, reads first.
pub(crate) fn sides(record: &Record) -> impl Iterator<Item = Side<'_>> {
    jobs(record).flat_map(move |(plan, result)| {
        let of = move |direction: &Towards| Side { record, plan, result, direction: *direction };
        plan.directions().iter().map(of)
    })
}

/// Whether offsets are random.
pub(crate) fn is_random(plan: &JobPlan) -> bool {
    matches!(plan.order, Order::Random { .. })
}

/// The job's load as the `rw` key has it.
pub(crate) fn rw(plan: &JobPlan) -> &'static str {
    plan.rw()
}

/// Whether reads and writes are mixed.
pub(crate) fn is_mix(plan: &JobPlan) -> bool {
    plan.directions().len() > 1
}

/// The load of a replay: the order of its calls is the trace's.
const AS_RECORDED: &str = "as recorded";

/// The load of a job: as the `rw` key has it, of a mix with its shares, `randrw 70/30`.
pub(crate) fn load_word(plan: &JobPlan) -> String {
    if plan.replay.is_some() {
        return AS_RECORDED.to_owned();
    }
    match (plan.read_percent, plan.read_share()) {
        (1..100, Some(reads)) => format!("{} {reads}/{}", rw(plan), 100 - reads),
        (1..100, None) => format!("{} by rates", rw(plan)),
        _ => rw(plan).to_owned(),
    }
}

/// One direction of the job: `randread`, or of a mix `randrw 70/30 reads`, whose figures are not
/// those of reads alone.
pub(crate) fn rw_of(plan: &JobPlan, direction: Towards) -> String {
    match plan.directions() {
        _ if plan.replay.is_some() => format!("{}s {AS_RECORDED}", direction.name()),
        [_] => rw(plan).to_owned(),
        _ => format!("{} {}s", load_word(plan), direction.name()),
    }
}

/// The same in few characters: of a mix `randrw r`, without its shares.
pub(crate) fn rw_short(plan: &JobPlan, direction: Option<Towards>) -> String {
    let mix = if is_random(plan) { "randrw" } else { "rw" };
    match (is_mix(plan), direction) {
        (_, Some(direction)) if plan.replay.is_some() => direction.name().to_owned(),
        (_, None) if plan.replay.is_some() => "both".to_owned(),
        (false, _) => rw(plan).to_owned(),
        (true, Some(direction)) => format!("{mix} {}", &direction.name()[..1]),
        (true, None) => mix.to_owned(),
    }
}

/// The requested rates, by which its own rates are limited: `at 500 I/Os/s per thread`.
pub(crate) fn paced(plan: &JobPlan) -> Option<String> {
    let of_writes = plan.write_pacing.as_ref().map(|pacing| (pacing, "writes "));
    let of_reads = if of_writes.is_some() { "reads " } else { "" };
    let paced = plan.pacing.as_ref().map(|pacing| (pacing, of_reads));
    let words = paced.into_iter().chain(of_writes).filter_map(|(pacing, which)| {
        let iops = pacing.iops.map(|rate| format!("{rate} I/Os/s"));
        let bytes = pacing.bytes_per_s.map(requested_rate);
        let rates: Vec<String> = iops.into_iter().chain(bytes).collect();
        let how = if pacing.arrivals == Arrivals::Poisson { ", Poisson" } else { "" };
        (!rates.is_empty()).then(|| format!("{which}at {} per thread{how}", rates.join(" and ")))
    });
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// Smallest and largest block in bytes; zeros when the plan names none.
pub(crate) fn block_bounds<'a>(blocks: impl IntoIterator<Item = &'a BlockShare>) -> (u64, u64) {
    let widened = |bounds: Option<(u64, u64)>, share: &BlockShare| {
        let (min, max) = bounds.unwrap_or((share.min_bytes, share.max_bytes));
        Some((min.min(share.min_bytes), max.max(share.max_bytes)))
    };
    blocks.into_iter().fold(None, widened).unwrap_or((0, 0))
}

/// The size of every block, when there is only one.
pub(crate) fn fixed_block(blocks: &[BlockShare]) -> Option<u64> {
    let (min, max) = block_bounds(blocks);
    (min == max).then_some(min)
}

/// Block sizes in few characters: `4K` or `4K-64K`.
pub(crate) fn blocks_short(blocks: &[BlockShare]) -> String {
    let (min, max) = block_bounds(blocks);
    if min == max {
        format_bytes(min)
    } else {
        format!("{}-{}", format_bytes(min), format_bytes(max))
    }
}

/// The block sizes of a plan: of reads and writes, with a comma where those of writes are others.
pub(crate) fn sizes_short(plan: &JobPlan) -> String {
    let reads = blocks_short(&plan.blocks);
    match plan.write_blocks.as_slice() {
        [] => reads,
        writes => format!("{reads},{}", blocks_short(writes)),
    }
}

/// The sizes of the I/Os of one direction: of its blocks, or the mean of recorded calls.
pub(crate) fn sizes_of(plan: &JobPlan, direction: Towards) -> String {
    let blocks = plan.sizes_of(direction == Towards::Write);
    let mean = plan.replay.as_ref().and_then(|replay| match direction {
        Towards::Read => replay.read_bytes.checked_div(replay.reads),
        Towards::Write => {
            replay.written_bytes.checked_div(replay.calls.saturating_sub(replay.reads))
        }
    });
    match mean.filter(|mean| *mean < block_bounds(blocks).1) {
        Some(mean) if mean.is_multiple_of(1 << 10) => format!("mean {}", format_bytes(mean)),
        Some(mean) => format!("mean {}", bytes(mean)),
        None => blocks_short(blocks),
    }
}

/// The engine that ran; several joined by `+` if workers used different ones.
pub(crate) fn actual_engine(plan: &JobPlan, job: &JobResult) -> String {
    let names = unique(job.engine.iter().map(|engine| engine.actual.as_str()));
    if names.is_empty() {
        return plan.engine.actual.clone();
    }
    names.join("+")
}
