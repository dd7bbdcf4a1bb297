//! Lines about training feeds.

use gpuio_base::document::{Cell, Columns, Look, Section, grouped};
use gpuio_base::stat::{Percentile, Summary};
use gpuio_base::units::{per_second, whole};
use gpuio_record::{
    AcceleratorResult, AcceleratorSearch, AcceleratorTry, EpochResult, FeedCompute, FeedPlan,
    FeedResult, JobPlan, JobResult, Record, ServiceLevel, Source,
};

use super::of_jobs;
use crate::fast_enough::{Beside, FastEnough, computed_off, judge, parts_of, seen};
use crate::number::{NONE, bytes, count, float, iops, many, throughput, time};
use crate::others::{self, Others};
use crate::workload::jobs;

/// Epochs and accelerators that get a line each.
const LINES_MOST: usize = 8;

/// A job that is a feed: its plan and result, and those of the job.
type Feed<'r> = (&'r JobPlan, &'r FeedPlan, &'r FeedResult, &'r JobResult);

/// Lines of the feeds among the jobs that ran: of those of key-value caches, or of the others.
fn lines<'r>(
    record: &'r Record,
    (title, of_cache): (&str, bool),
    of: impl Fn(Feed<'r>) -> Vec<String>,
) -> Section {
    let of_job = |(plan, job): (&'r JobPlan, &'r JobResult)| {
        let feed = plan.feed.as_ref().zip(job.feed.as_ref());
        let feed = feed.filter(|(feed, _)| feed.is_cache() == of_cache);
        let all = feed.map(|(feed, found)| of((plan, feed, found, job))).unwrap_or_default();
        all.into_iter().map(|line| (plan.name.as_str(), line))
    };
    of_jobs(record, title, jobs(record).flat_map(of_job))
}

/// Whether storage is fast enough for the accelerators, an answer and its figures per job that has
/// some.
pub(super) fn answers(record: &Record) -> Section {
    lines(record, ("fast enough for the accelerators?", false), |feed| {
        answer_of(record, feed).map(|answer| answer.to_vec()).unwrap_or_default()
    })
}

/// The same as the first words of a report.
pub(super) fn answers_in_words(record: &Record) -> Vec<String> {
    let of_job = |(of, job): (&JobPlan, &JobResult)| {
        let (plan, found) = of.feed.as_ref().zip(job.feed.as_ref())?;
        let answer = answer_of(record, (of, plan, found, job)).filter(|_| !plan.is_cache())?;
        Some(format!("Fast enough for the accelerators of {}? {}.", of.name, in_a_row(&answer)))
    };
    jobs(record).filter_map(of_job).collect()
}

/// Whether the times that were asked for are kept, a line per job that has some.
pub(super) fn levels(record: &Record) -> Section {
    of_jobs(record, "service level kept?", kept_levels(record))
}

/// The same as the first words of a report.
pub(super) fn levels_in_words(record: &Record) -> Vec<String> {
    let all: Vec<(&str, String)> = kept_levels(record).collect();
    let name = |job: &str| if all.len() > 1 { format!("{job}: ") } else { String::new() };
    all.iter().map(|(job, kept)| format!("{}Service level kept? {kept}", name(job))).collect()
}

fn kept_levels(record: &Record) -> impl Iterator<Item = (&str, String)> {
    jobs(record).filter_map(|(plan, job)| {
        let (feed, found) = plan.feed.as_ref().zip(job.feed.as_ref())?;
        Some((plan.name.as_str(), kept_level(record, (plan, feed, found, job))?))
    })
}

/// Fewer batches do not say what half of them take: ten on either side, as beyond other
/// percentiles.
const HALF_LEAST: u64 = 20;

/// So many that are all longer than a limit exceed it: were it kept for 95 %, that would be chance
/// once in three million times.
const ALL_LEAST: u64 = 5;

/// How there are more than of a part.
const MORE: &str = " (leave out --try, or raise --scale or --runtime)";

/// The outcome of one limit of a service level, from the times of a feed.
enum Seen {
    /// The share took this long.
    Took(u64),
    /// Half took over this, which is more than the limit.
    Half(u64),
    /// Each took this long or longer, which is more than the limit.
    Each(u64),
    /// Too few for the share; the words say on which side all of them are.
    Few(&'static str),
}

/// One limit of a service level: the share, the longest time for it, and its outcome.
struct Limit {
    share: Percentile,
    most: u64,
    seen: Seen,
}

impl Limit {
    fn kept(&self) -> Option<bool> {
        match self.seen {
            Seen::Took(took) => Some(took <= self.most),
            Seen::Half(_) | Seen::Each(_) => Some(false),
            Seen::Few(_) => None,
        }
    }
}

/// The limits of a feed; `None` without a service level. All that is said of them is from here.
fn limits(plan: &FeedPlan, found: &FeedResult) -> Option<Vec<Limit>> {
    let times = found.batch_read.as_ref().filter(|times| times.count > 0);
    let at = |share| times.and_then(|times| times.percentile(share));
    let half = times.filter(|times| times.count >= HALF_LEAST);
    let half = half.and_then(|times| times.percentile(Percentile::MEDIAN));
    let all = ServiceLevel::AT.into_iter().zip(plan.slo?.times()).map(|(share, most)| {
        let seen = match (at(share), half, times) {
            (Some(took), ..) => Seen::Took(took),
            (None, Some(half), _) if half > most => Seen::Half(half),
            (None, _, Some(times)) if times.min_ns > most => match times.count >= ALL_LEAST {
                true => Seen::Each(times.min_ns),
                false => Seen::Few("; each took longer"),
            },
            (None, _, Some(times)) if times.max_ns <= most => Seen::Few("; each took no longer"),
            (None, ..) => Seen::Few(""),
        };
        Limit { share, most, seen }
    });
    Some(all.collect())
}

/// Batches of a feed that were read or written: `16 contexts read`.
fn counted(plan: &FeedPlan, found: &FeedResult) -> String {
    let one = if plan.is_cache() { "context" } else { "batch|batches" };
    format!(
        "{} {}",
        many(found.batch_read.as_ref().map_or(0, |times| times.count), one),
        done(plan)
    )
}

/// Whether both shares of the batches took no longer than was asked; the first that did decides.
/// Longer times may be others'.
fn kept_level(record: &Record, (of, plan, found, job): Feed<'_>) -> Option<String> {
    let what = if plan.is_cache() { "contexts" } else { "batches" };
    let judged = limits(plan, found)?.into_iter().map(|limit| {
        let (share, most) = (limit.share, time(limit.most));
        let asked = format!("{share} % were to take at most {most}");
        let words = match (limit.kept(), &limit.seen) {
            (Some(true), Seen::Took(took)) => {
                format!("{share} % took {} (asked: {most})", time(*took))
            }
            (_, Seen::Took(took)) => {
                format!("{share} % of the {what} took {}, {asked}", time(*took))
            }
            (_, Seen::Half(half)) => {
                format!("half of the {what} took over {}, {asked}", time(*half))
            }
            (_, Seen::Each(least)) => {
                format!("{}, each in {} or more; {asked}", counted(plan, found), time(*least))
            }
            (_, Seen::Few(side)) => {
                let (few, least) = (counted(plan, found), share.least_values());
                let more = if plan.scale < 1.0 { MORE } else { "" };
                format!("{few}, at least {least} needed for {share} %{more}; {asked}{side}")
            }
        };
        (limit.kept(), words)
    });
    let judged: Vec<(Option<bool>, String)> = judged.collect();
    let first = |kept| judged.iter().find(|(one, _)| *one == kept).map(|(_, words)| words);
    let from = from_tier(plan, found);
    let kept = match (first(Some(false)), first(None)) {
        (Some(words), _) => match others::doubt(others::of(record, of, job).as_ref(), job) {
            Some(doubt) => format!("undetermined: {doubt}; {words}"),
            None => format!("no: {words}"),
        },
        (None, Some(words)) => format!("undetermined: {words}"),
        (None, None) => {
            let all: Vec<&str> = judged.iter().map(|(_, words)| words.as_str()).collect();
            format!("yes: of the {what} {}", all.join(", "))
        }
    };
    Some(kept + &from)
}

/// How many of the batches say nothing of storage.
fn from_tier(plan: &FeedPlan, found: &FeedResult) -> String {
    let Some((_, seen)) = plan.tier.zip(found.tier).filter(|(_, seen)| seen.hits > 0) else {
        return String::new();
    };
    let all = float(seen.hits.saturating_add(seen.misses));
    let share = float(seen.hits) * 100.0 / all;
    format!("; {share:.0} % of the reads were served by the tier in CPU memory, not by storage")
}

/// The searches for the largest number of accelerators, each with its job.
fn searches(record: &Record) -> impl Iterator<Item = (&str, &AcceleratorSearch)> {
    jobs(record)
        .filter_map(|(plan, job)| Some((plan.name.as_str(), job.feed.as_ref()?.search.as_ref()?)))
}

/// The answer of a search for the largest number of accelerators.
pub(super) fn most(record: &Record) -> Section {
    let answers = searches(record).map(|(job, search)| (job, search.answer.clone()));
    of_jobs(record, "how many accelerators keep their utilisation?", answers)
}

/// The same as the first words of a report.
pub(super) fn most_in_words(record: &Record) -> Vec<String> {
    let words = |(job, search): (&str, &AcceleratorSearch)| {
        format!("How many accelerators of {job} keep their utilisation? {}", search.answer)
    };
    searches(record).map(words).collect()
}

/// The runs of such a search.
pub(super) fn tries(record: &Record) -> Section {
    let mut section = Section::new("", "");
    for (job, search) in searches(record) {
        section.title = format!("runs of the search, {job}:").into();
        let mut tries: Vec<&AcceleratorTry> = search.tries.iter().collect();
        tries.sort_by_key(|one| one.accelerators);
        let table = Columns::<AcceleratorTry>::new()
            .figures("accelerators", |one| one.accelerators)
            .figures("utilisation", |one| {
                one.utilisation_percent.map(|percent| Cell::percent(percent, 1))
            })
            // Its reason, if any, is in the answer.
            .words("outcome", |one| one.verdict.split(": ").next().unwrap_or_default().to_owned())
            .figures("samples/s", |one| Cell::count(one.samples_per_s))
            .figures("throughput", |one| Cell::rate(one.bytes_per_s));
        section.table(table.table("runs of the search", tries).look(Look::Indented(2)));
    }
    section
}

fn answer_of(record: &Record, (of, plan, found, job): Feed<'_>) -> Option<[String; 3]> {
    answer(plan, found, seen(of, found, job), &Beside::of(record, of, job))
}

/// A sentence per feed: the answer; what it came to, where there is no question.
pub(in crate::format) fn in_words(record: &Record) -> Vec<String> {
    let of_job = |(of, job): (&JobPlan, &JobResult)| {
        let (plan, found) = of.feed.as_ref().zip(job.feed.as_ref())?;
        let words = match answer_of(record, (of, plan, found, job)) {
            Some(answer) if !plan.is_cache() => {
                format!("fast enough for the accelerators? {}", in_a_row(&answer))
            }
            _ if plan.is_cache() => match kept_level(record, (of, plan, found, job)) {
                Some(kept) => format!("service level kept? {kept}. {}", contexts(plan, found)),
                None => contexts(plan, found),
            },
            _ => outcome(plan, found),
        };
        Some(format!("{}: {words}", of.name))
    };
    jobs(record).filter_map(of_job).collect()
}

/// Some lines per job that is a training feed: what it came to, and not for the `screen` its data
/// set, its computation, its waits, each epoch.
pub(crate) fn section(record: &Record, screen: bool) -> Section {
    lines(record, ("training feed:", false), |(plan, of, found, job)| {
        let mut lines = vec![outcome(of, found)];
        if screen {
            lines.extend(tier(of, found));
            return lines;
        }
        lines.extend([data_set(of), computation(plan, of, found)]);
        lines.push(waits(plan, of, found));
        lines.extend(service_level(of, found, job));
        lines.extend(tier(of, found));
        lines.extend(accelerators(of, found));
        lines.extend(epochs(of, found));
        lines
    })
}

/// Lines per job of a key-value cache: its contexts and its tier, and not for the `screen` their
/// times and rounds.
pub(crate) fn key_values(record: &Record, screen: bool) -> Section {
    lines(record, ("key-value cache:", true), |(_, of, found, job)| {
        let mut lines = vec![contexts(of, found), users(of, found, job)];
        lines.extend(service_level(of, found, job).filter(|_| !screen));
        lines.extend(tier(of, found));
        lines.extend(rounds(of, found, job).filter(|_| !screen));
        lines
    })
}

fn outcome(plan: &FeedPlan, found: &FeedResult) -> String {
    let percent = match (found.utilisation_percent, &found.utilisation_unknown) {
        (Some(percent), _) => format!("{percent:.1} %"),
        (None, why) => format!("unknown: {}", why.as_deref().unwrap_or("no reason was recorded")),
    };
    let wanted = wanted(plan);
    let cut = if found.complete { "" } else { "; ended before its last step" };
    format!(
        "{} samples/s in {}, {}; accelerator utilisation {percent}{wanted}{cut}",
        iops(found.samples_per_s),
        time(found.span_ns),
        many(u64::from(plan.accelerators), "accelerator"),
    )
}

/// The utilisation that was to be reached.
fn wanted(plan: &FeedPlan) -> String {
    let least = plan.least_utilisation_percent;
    least.map_or_else(String::new, |least| format!(" ({least} % or more was to be reached)"))
}

/// The same as words for a sentence.
fn in_a_row([verdict, steps, rates]: &[String; 3]) -> String {
    format!("{verdict}. {steps}; {rates}")
}

/// Whether storage is fast enough, by the utilisation that was to be reached, in one line with its
/// reason, and two of figures; nothing where nothing is computed.
fn answer(
    plan: &FeedPlan,
    found: &FeedResult,
    seen: (Option<Source>, f64),
    beside: &Beside,
) -> Option<[String; 3]> {
    let needed = found.needed_bytes_per_s(plan)?;
    let moved: u64 = found.epochs.iter().map(|epoch| epoch.read_bytes).fold(0, u64::saturating_add);
    let reached = found.utilisation_percent.map(|percent| format!("{percent:.1} %"));
    let reached = format!("utilisation {}{}", reached.as_deref().unwrap_or(NONE), wanted(plan));
    let verdict = match judge(plan, found, seen, beside) {
        FastEnough::Yes => format!("yes: {reached}"),
        FastEnough::No(None) => format!("no: {reached}"),
        FastEnough::No(Some(bound)) => format!("no: {reached}; {bound}"),
        FastEnough::Unknown(why) => format!("unknown: {why}"),
    };
    let (off, least) = (computed_off(plan, found), plan.least_utilisation_percent);
    let others = beside.others.as_ref().map(Others::words);
    let beside = [others.as_ref(), off.as_ref()].into_iter().flatten();
    let beside = beside.filter(|words| !verdict.contains(words.as_str()));
    let beside = beside.fold(String::new(), |all, words| all + "; " + words);
    let reached = if verdict.contains(&reached) { String::new() } else { format!(", {reached}") };
    let steps = format!(
        "{} in {}{reached}; of {} time {} (utilisation leaves out the first and last step of an \
         epoch)",
        many(found.steps, "step"),
        time(found.span_ns),
        if plan.accelerators == 1 { "the accelerator's" } else { "all accelerators'" },
        parts_of(plan, found.time()),
    );
    let rates = format!(
        "{} {} and {} {} on average{}",
        match plan.accelerators {
            1 => "the accelerator needs".to_owned(),
            count => format!("{count} accelerators need"),
        },
        match least.filter(|least| *least < 100.0) {
            Some(least) => format!(
                "{} for a utilisation of {least} % ({} for 100 %)",
                throughput(needed * least / 100.0),
                throughput(needed)
            ),
            None => throughput(needed),
        },
        if plan.writes { "storage took" } else { "got" },
        throughput(per_second(moved, found.span_ns)),
        if plan.writes { "" } else { ", the wait for the first batch included" },
    );
    Some([verdict + &beside, steps, rates])
}

/// How many contexts of a key-value cache were moved, and how long one took.
fn contexts(plan: &FeedPlan, found: &FeedResult) -> String {
    let [p95, tail] = ServiceLevel::AT;
    let cut = if found.complete { "" } else { "; ended before its last context" };
    let moved = found.moved_samples(plan);
    format!(
        "{} of {} {} in {}, {}/s, by {}; a context took {} (p50 / {} / {}){cut}",
        many(moved, "context"),
        bytes(plan.sample.mean_bytes),
        done(plan),
        time(found.span_ns),
        iops(per_second(moved, found.span_ns)),
        many(u64::from(plan.readers) * u64::from(plan.accelerators), "thread"),
        percentiles(found.batch_read.as_ref(), &[Percentile::MEDIAN, p95, tail]),
        p95.label(),
        tail.label(),
    )
}

/// Users of the contexts, and how little of what was read again and again differs.
fn users(plan: &FeedPlan, found: &FeedResult, job: &JobResult) -> String {
    let all = many(plan.full_files, "user");
    let order = plan.order.key();
    // Reads are of whole blocks of the file system; a round that was cut short has fewer.
    let planned = whole(plan.moved_bytes() * float(plan.samples()));
    let rounds = found.epochs.iter().map(|epoch| epoch.read_bytes);
    let (read, differs) = (job.read.bytes, rounds.fold(planned, u64::max));
    let again = match !plan.writes && read / 2 > differs {
        true => format!(
            "; of the {} that were read at most {} differ: a cache of that size serves the rest",
            bytes(read),
            bytes(differs)
        ),
        false => String::new(),
    };
    format!("scale {}: {} of {all}, in order {order}{again}", plan.scale, count(plan.files))
}

fn data_set(plan: &FeedPlan) -> String {
    let samples = plan.files.saturating_mul(plan.samples_per_file);
    let columns = match plan.columns.iter().filter(|column| column.read).count() {
        0 => String::new(),
        read => format!(
            ", {read} of {} columns in groups of {}",
            plan.columns.len(),
            many(plan.sample_group, "sample")
        ),
    };
    let ratio = match plan.ratio > 1.0 {
        true => format!(", stored at 1/{} of their size", plan.ratio),
        false => String::new(),
    };
    format!(
        "scale {}: {} of {}, {}{ratio}{columns}, in order {}",
        plan.scale,
        count(plan.files),
        many(plan.full_files, "file"),
        many(samples, "sample"),
        plan.order.key(),
    )
}

fn computation(job: &JobPlan, plan: &FeedPlan, found: &FeedResult) -> String {
    let steps = format!(
        "steps of {}, {} by {} with {} {} each",
        many(plan.batch_samples, "sample"),
        done(plan),
        many(u64::from(plan.readers), "thread"),
        match plan.prefetch {
            1 => "1 batch".to_owned(),
            batches => format!("{batches} batches"),
        },
        if plan.writes { "behind" } else { "ahead" },
    );
    let one = found.accelerators.first();
    let alone = one.and_then(|one| one.alone_ns).map_or_else(|| NONE.to_owned(), time);
    let during = found.mean_compute_ns().map_or_else(|| NONE.to_owned(), time);
    match plan.compute {
        FeedCompute::None => format!("{steps}; nothing is computed"),
        FeedCompute::Sleep => {
            let each = time(plan.compute_ns);
            format!("{steps}; accelerators sleep for {each} (during the feed {during})")
        }
        FeedCompute::Kernel { .. } => {
            let on = one.and_then(|one| Some((one.occupied?, one.multiprocessors?)));
            let on = on.map_or_else(String::new, |(occupied, all)| {
                format!(" on {occupied} of {all} multiprocessors")
            });
            format!(
                "{steps}; compute={}{on} for {} (alone {alone}, during the feed {during}){}",
                plan.compute.key(),
                time(plan.compute_ns),
                match job.gpus.iter().any(|gpu| gpu.software) {
                    true =>
                        "; the software GPU computes nothing and waits so long, by the clock \
                             of the host, which a busy one makes longer",
                    false => "",
                }
            )
        }
    }
}

fn waits(job_plan: &JobPlan, plan: &FeedPlan, found: &FeedResult) -> String {
    let [p95, tail] = ServiceLevel::AT;
    let usual = [Percentile::MEDIAN, p95, tail];
    let shown = Percentile::shown(&job_plan.percentiles, &usual);
    let labels: Vec<String> = shown.iter().map(|at| at.label()).collect();
    let stalled = found.stalled_ns().map_or_else(|| NONE.to_owned(), time);
    let parts = parts_of(plan, found.time());
    // Most steps may wait for nothing, and a few for long: the median is of the former.
    let mean = found.wait.as_ref().map_or_else(String::new, |wait| {
        format!(", {} on average, at most {}", time(whole(wait.mean_ns)), time(wait.max_ns))
    });
    let first = match plan.writes {
        true => String::new(),
        false => {
            let of = if plan.accelerators > 1 { ", to the last of the accelerators" } else { "" };
            format!("; the first batch came after {}{of}", time(found.first_batch_ns))
        }
    };
    format!(
        "of the accelerators' time {parts}; stalled for {stalled}, a step for {}{mean}{first}; a \
         batch was {} in {} ({})",
        percentiles(found.wait.as_ref(), &shown),
        done(plan),
        percentiles(found.batch_read.as_ref(), &shown),
        labels.join(" / "),
    )
}

/// The times of the batches beside those that they were to keep, and the file leg. The verdict
/// is the answer above.
fn service_level(plan: &FeedPlan, found: &FeedResult, job: &JobResult) -> Option<String> {
    let slo = plan.slo?;
    let all = counted(plan, found);
    let limits = limits(plan, found)?.into_iter().map(|limit| {
        let why = match limit.seen {
            Seen::Took(took) => format!("it took {}", time(took)),
            Seen::Half(half) => format!("half of the {all} took over {}", time(half)),
            Seen::Each(least) => format!("{all}, each in {} or more", time(least)),
            Seen::Few(side) => format!("too few: {all}{side}"),
        };
        (why, format!("{} % within {}", limit.share, time(limit.most)))
    });
    let limits = grouped(limits).into_iter();
    let limits = limits.map(|(why, limits)| format!("{} ({why})", limits.join(" and ")));
    let side = if plan.writes { &job.write } else { &job.read };
    let file = side.latency.as_ref().and_then(|latency| latency.file.as_ref());
    let alone = file.and_then(|summary| summary.percentile(ServiceLevel::AT[0])).map(time);
    let alone = alone.map_or_else(String::new, |time| {
        format!("; file leg of {} % of the I/Os within {time}", ServiceLevel::AT[0])
    });
    let name = slo.name().map_or_else(String::new, |name| format!(" {name}"));
    Some(format!("service level{name}: {}{alone}", limits.collect::<Vec<_>>().join("; ")))
}

/// The counts of the tier in host memory, its bytes apart from those of storage.
fn tier(plan: &FeedPlan, found: &FeedResult) -> Option<String> {
    let (kept, seen) = (plan.tier?, found.tier?);
    let all = seen.hits.saturating_add(seen.misses);
    let share = match all {
        0 => NONE.to_owned(),
        all => format!("{:.1} %", float(seen.hits) * 100.0 / float(all)),
    };
    Some(format!(
        "tier in CPU memory of {} for {}: {} and {} ({share} hits), {} evicted by LRU, {} not \
         kept; {} came from it and {} from storage, whose bytes and rates have only the latter; \
         what is written does not enter it",
        bytes(kept.bytes()),
        many(u64::from(kept.places), if plan.is_cache() { "context" } else { "sample" }),
        many(seen.hits, "hit"),
        match seen.misses {
            1 => "1 miss".to_owned(),
            misses => format!("{} misses", count(misses)),
        },
        count(seen.evictions),
        count(seen.not_kept),
        bytes(seen.memory_bytes),
        bytes(seen.storage_bytes),
    ))
}

fn done(plan: &FeedPlan) -> &'static str {
    if plan.writes { "written" } else { "read" }
}

/// Percentiles; `-` where there are too few values.
pub(super) fn percentiles(summary: Option<&Summary>, all: &[Percentile]) -> String {
    let Some(summary) = summary else { return NONE.to_owned() };
    let few = || "too few".to_owned();
    let each = all.iter().map(|at| summary.percentile(*at).map_or_else(few, time));
    each.collect::<Vec<_>>().join(" / ")
}

/// A line for each accelerator, where there are several; one for each that failed.
fn accelerators(plan: &FeedPlan, found: &FeedResult) -> Vec<String> {
    let mut lines = Vec::new();
    if found.accelerators.len() > 1 {
        let words = |one: &AcceleratorResult| {
            let gpu = one.gpu.map_or_else(String::new, |gpu| format!(" on GPU {gpu}"));
            let during = one.compute_ns.map_or_else(|| NONE.to_owned(), time);
            let parts = parts_of(plan, found.time_of(one));
            format!(
                "accelerator {}{gpu}: {}, {}, computed for {during} a step; of its time {parts}",
                one.number,
                many(one.steps, "step"),
                many(one.samples, "sample"),
            )
        };
        lines.extend(found.accelerators.iter().take(LINES_MOST).map(words));
        lines.extend(rest(found.accelerators.len(), "accelerators"));
    }
    lines.extend(found.accelerators.iter().filter_map(|one| {
        let failed = one.failed.as_ref()?;
        Some(format!("FAILED: the computation of accelerator {}: {failed}", one.number))
    }));
    lines
}

fn rest(all: usize, what: &str) -> Option<String> {
    (all > LINES_MOST).then(|| format!("… and {} more {what}", all - LINES_MOST))
}

/// Bytes that were moved in an epoch's time. Readers may have been ahead by all of it.
fn moved(writes: bool, has_tier: bool, epoch: &EpochResult) -> String {
    if epoch.moved_bytes == 0 && epoch.read_bytes > 0 && !writes && !has_tier {
        return "all of it read ahead, in the time of epochs before".to_owned();
    }
    let moved = bytes(epoch.moved_bytes);
    match epoch.storage_read_bytes {
        _ if writes => format!("{moved} written in its time"),
        Some(stored) => format!("{moved} read in its time, {} from storage", bytes(stored)),
        None => format!("{moved} read in its time, from storage: unknown"),
    }
}

fn epochs(plan: &FeedPlan, found: &FeedResult) -> Vec<String> {
    let verb = done(plan);
    let words = |epoch: &EpochResult| {
        let utilisation = match epoch.utilisation_percent {
            Some(percent) => format!("utilisation {percent:.1} %, "),
            None if plan.compute == FeedCompute::None => String::new(),
            None => format!("utilisation {NONE}, "),
        };
        let moved = moved(plan.writes, plan.tier.is_some(), epoch);
        let [once, never, repeated] = match plan.order.draws() {
            true => [" as often as drawn", "too seldom", "too often"],
            false => [" once", "never", "repeatedly"],
        };
        format!(
            "epoch {}: {utilisation}{}; {} of {} {verb}{once}, {} {never}, {} {repeated}; {moved}",
            epoch.number,
            time(epoch.span_ns),
            many(epoch.once, "sample"),
            bytes(epoch.read_bytes),
            count(epoch.never),
            count(epoch.repeated),
        )
    };
    let mut lines: Vec<String> = found.epochs.iter().take(LINES_MOST).map(words).collect();
    lines.extend(rest(found.epochs.len(), "epochs"));
    lines
}

/// Contexts of all rounds together. Nothing waits between rounds, so that they overlap, and times
/// of single ones would only say when the last of their contexts was back.
fn rounds(plan: &FeedPlan, found: &FeedResult, job: &JobResult) -> Option<String> {
    let all = found.epochs.as_slice();
    let sum = |of: fn(&EpochResult) -> u64| all.iter().map(of).fold(0, u64::saturating_add);
    let [once, never, repeated] = match plan.order.draws() {
        true => ["as often as drawn", "too seldom", "too often"],
        false => ["once a round", "never", "repeatedly"],
    };
    let stored: Option<u64> = all.iter().map(|epoch| epoch.storage_read_bytes).sum();
    let stored = stored.map_or_else(|| "unknown".to_owned(), bytes);
    let from = match plan.writes {
        true => String::new(),
        false => format!(
            "; in the time of the rounds alone the kernel counted {stored} from storage for this \
             process"
        ),
    };
    let verb = done(plan);
    let whole = sum(|epoch| epoch.read_bytes);
    let moved = job.read.bytes.max(job.write.bytes);
    let moved = match plan.tier.is_none() && moved > whole {
        true => format!(" of the {} that all I/Os moved, also of contexts cut short", bytes(moved)),
        false => String::new(),
    };
    let overlap = if all.len() > 1 { ", which overlap" } else { "" };
    (!all.is_empty()).then(|| {
        format!(
            "{} of {}{overlap}: {} {verb} {once}, {} {never}, {} {repeated}; these \
             contexts are {}{moved}{from}",
            many(all.len() as u64, "round"),
            many(plan.files, "user"),
            many(sum(|epoch| epoch.once), "context"),
            count(sum(|epoch| epoch.never)),
            count(sum(|epoch| epoch.repeated)),
            bytes(whole),
        )
    })
}

#[cfg(test)]
mod tests {
    use gpuio_testkit::jobs::job;

    use super::*;

    /// 100 MB/s are needed: steps of 1 MB and 10 ms.
    #[expect(clippy::too_many_lines, reason = "the cases of one judgement")]
    #[test]
    fn storage_is_judged_without_what_is_not_its_own() {
        let lines = "path=host\nfiles=100\nsample_size=100000\nbatch_samples=10\n\
                     compute=sleep\ncompute_time=10ms\nutilisation=90\nreaders=1\nprefetch=1\n";
        let plan = job(lines).feed.unwrap();
        let beside = |percent, stall_ns, compute_ns, source, beside: &Beside| {
            let one = AcceleratorResult {
                steps: 10,
                stall_ns,
                compute_ns: Some(compute_ns),
                ..AcceleratorResult::default()
            };
            let epoch = EpochResult { read_bytes: 10_000_000, ..EpochResult::default() };
            let found = FeedResult {
                span_ns: 200_000_000,
                samples: 100,
                samples_per_s: 500.0,
                steps: 10,
                complete: true,
                utilisation_percent: percent,
                utilisation_unknown: None,
                stall_ns,
                first_batch_ns: 0,
                wait: None,
                batch_read: None,
                rested_ns: 0,
                accelerators: vec![one],
                epochs: vec![epoch],
                rules: Vec::new(),
                tier: None,
                search: None,
            };
            in_a_row(&answer(&plan, &found, (Some(source), 0.05), beside).unwrap())
        };
        let answer = |percent, stall_ns, compute_ns, source| {
            beside(percent, stall_ns, compute_ns, source, &Beside::default())
        };
        let no = answer(Some(50.0), 100_000_000, 10_000_000, Source::Storage);
        let short = "no: utilisation 50.0 % (90 % or more was to be reached). 10 steps in 200 ms; \
                     of the accelerator's time 50.0 % computation, 50.0 % stalls (";
        assert!(no.starts_with(short), "{no}");
        let [needed, least, got] = [100e6, 90e6, 50e6].map(throughput);
        for words in [
            &needed,
            &got,
            &format!("{least} for a utilisation of 90 % ("),
            " on average, the wait for the first batch included",
        ] {
            assert!(no.contains(words), "{no}");
        }
        let begins = |answer: String, words: &str| assert!(answer.starts_with(words), "{answer}");
        begins(answer(Some(100.0), 0, 10_000_000, Source::Storage), "yes: utilisation 100.0 % (");
        let cached = answer(Some(100.0), 0, 10_000_000, Source::PageCache);
        assert!(cached.contains("10 steps in 200 ms, utilisation 100.0 % (90 % or"), "{cached}");
        begins(cached, "unknown: not all bytes came from storage. 10 steps");
        let few = answer(None, 0, 10_000_000, Source::Storage);
        let parts = "utilisation - (90 % or more was to be reached); of the accelerator's time \
                     50.0 % computation, 50.0 % the rest (utilisation leaves out";
        assert!(few.contains(parts), "{few}");
        begins(few, "unknown: utilisation");
        // Sleeps that end late: not the storage's, unless accelerators also waited for it.
        let late = "unknown: the sleeps took 70 % longer than asked";
        begins(answer(Some(55.0), 9_000_000, 17_000_000, Source::Storage), late);
        let no = answer(Some(20.0), 100_000_000, 17_000_000, Source::Storage);
        let late = "no: utilisation 20.0 % (90 % or more was to be reached); the sleeps took 70 % \
                    longer than asked. 10 steps in 200 ms; of ";
        begins(no, late);
        // A drive that mostly served others has not shown what it can do; else they are named.
        let slow = |percent, other: &Beside| {
            beside(percent, 100_000_000, 10_000_000, Source::Storage, other)
        };
        let most = |share: f64| {
            let others = Others::of_drive(share, format!("others moved {share}"));
            let doubt = others.are_most().then(|| others.words());
            Beside { others: Some(others), doubt, ..Beside::default() }
        };
        let answer = |percent, share| slow(percent, &most(share));
        begins(answer(Some(50.0), 0.76), "unknown: others moved 0.76. 10 steps in 200 ms, ");
        let asked = "(90 % or more was to be reached); others moved";
        begins(answer(Some(50.0), 0.2), &format!("no: utilisation 50.0 % {asked} 0.2. 10 steps"));
        begins(answer(Some(100.0), 0.76), &format!("yes: utilisation 100.0 % {asked} 0.76. 10 "));
        // Others that nobody saw may have been most; they take no "yes" away.
        let unseen = Beside { doubt: Some("whether others".to_owned()), ..Beside::default() };
        begins(slow(Some(50.0), &unseen), "unknown: whether others. 10 steps in 200 ms, ");
        begins(slow(Some(100.0), &unseen), "yes: utilisation 100.0 % (");
    }

    #[test]
    fn an_epoch_that_was_read_ahead_is_not_one_of_no_bytes() {
        let storage_read_bytes = Some(0);
        let ahead = EpochResult { read_bytes: 4096, storage_read_bytes, ..EpochResult::default() };
        assert_eq!(
            moved(false, false, &ahead),
            "all of it read ahead, in the time of epochs before"
        );
        // From a tier nothing is ahead; and what is not written yet is no figure of reads.
        assert_eq!(moved(false, true, &ahead), "0 B read in its time, 0 B from storage");
        assert_eq!(moved(true, false, &ahead), "0 B written in its time");
        let own = EpochResult { moved_bytes: 4096, ..ahead };
        assert_eq!(moved(false, false, &own), "4.00 KiB read in its time, 0 B from storage");
    }
}
