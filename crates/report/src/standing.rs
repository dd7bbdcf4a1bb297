//! How far the rate of a job is that of its storage: why it is none of it, and what else it has in
//! it. Every format for people takes its words from here.

use gpuio_base::stat::enough_for;
use gpuio_record::metric::percent;
use gpuio_record::{Fill, GuardNote, JobPlan, JobResult, Record, SHORT_NS, Source, WarningKind};

use crate::number::{many, time};
use crate::others;
use crate::workload::jobs;

/// File systems that keep files in memory.
const IN_MEMORY: [&str; 2] = ["tmpfs", "ramfs"];

/// Why storage did not move all bytes of a job, so that its rate is none of the storage's; `None`
/// where it moved them.
pub(crate) fn unmeasured(record: &Record, plan: &JobPlan, result: &JobResult) -> Option<String> {
    if plan.engine.actual == "null" {
        return Some("engine null moves no bytes".to_owned());
    }
    let memory = || {
        let mut mounts = record.storage.iter().map(|place| place.mount.as_ref());
        let first = record.storage.first()?.mount.as_ref()?.fs_type.as_str();
        let is = |one: Option<&gpuio_record::facts::MountFacts>| {
            one.is_some_and(|mount| IN_MEMORY.contains(&mount.fs_type.as_str()))
        };
        mounts.all(is).then_some(first)
    };
    let why = match result.proof.as_ref().map(|proof| proof.verdict.source) {
        Some(Source::Storage | Source::StorageThroughPageCache) => return None,
        Some(Source::PageCache) => match memory() {
            Some(name) => return Some(format!("the files are in memory ({name})")),
            None => "the page cache served the loads",
        },
        Some(Source::Holes) => "no device holds the bytes (holes, or never written)",
        Some(Source::Mixed) => "storage moved only a part of the bytes",
        Some(Source::Unknown) => "it is not known how many of the bytes it moved",
        None => "no evidence of the bytes that it moved was recorded",
    };
    Some(why.to_owned())
}

/// The same where it is known, and not that the path of the bytes was not proved.
pub(crate) fn known_unmeasured(
    record: &Record,
    plan: &JobPlan,
    result: &JobResult,
) -> Option<String> {
    let source = result.proof.as_ref().map(|proof| proof.verdict.source);
    let is_known = source.is_some_and(|source| source != Source::Unknown);
    let why = unmeasured(record, plan, result);
    why.filter(|_| is_known || plan.engine.actual == "null")
}

/// The warnings about a job, or about the whole run.
fn warnings<'a>(record: &'a Record, plan: &'a JobPlan) -> impl Iterator<Item = &'a WarningKind> {
    let own = |job: &Option<String>| job.as_ref().is_none_or(|job| *job == plan.name);
    record.warnings.iter().filter(move |one| own(&one.job)).map(|warning| &warning.kind)
}

/// Time and I/Os of a job that a warning calls too short for its rate or percentiles.
fn short_run(record: &Record, plan: &JobPlan) -> Option<(u64, u64)> {
    warnings(record, plan).find_map(|kind| match kind {
        WarningKind::RunTooShort { elapsed_ns, ios, .. } => Some((*elapsed_ns, *ios)),
        _ => None,
    })
}

/// Whether a warning says that a job was too short for its rate or percentiles.
pub(crate) fn is_too_short(record: &Record, plan: &JobPlan) -> bool {
    short_run(record, plan).is_some()
}

/// Time for data between the I/Os of a job, which its rate has in it, where a warning says so.
pub(crate) fn between_ios(record: &Record, plan: &JobPlan) -> Option<String> {
    warnings(record, plan).find_map(|kind| match kind {
        WarningKind::WorkBetweenIos { between_ns, share, .. } => Some(format!(
            "{} ({:.1} % of its threads' time) went into generating or checking data; the rate has \
             this time in it, the latencies do not",
            time(*between_ns),
            share * 100.0
        )),
        _ => None,
    })
}

/// Marks behind a rate in tables, with their meaning, in the order in which they stand.
pub const MARKS: [(&str, &str); 6] = [
    (SHORT, "too short for its rate or percentiles"),
    (NOT_STORAGE, "storage did not move all of its bytes, or may not have"),
    (OTHERS, "others used the drive or the CPUs meanwhile"),
    (UNSEEN, "whether others used the CPUs is unknown"),
    (CONTENT, "the data is zeros, repeats or is unknown: storage may be faster with it"),
    (FAULTS, "wrong data, failed I/Os or injected faults"),
];

const SHORT: &str = "!";
const NOT_STORAGE: &str = "~";
const OTHERS: &str = "^";
const UNSEEN: &str = "?";
const CONTENT: &str = "#";
const FAULTS: &str = "@";

/// The marks behind the rate of a job; empty where it is that of a whole run of storage alone.
pub(crate) fn marks(record: &Record, plan: &JobPlan, result: &JobResult) -> String {
    let short = is_too_short(record, plan).then_some(SHORT);
    let other = unmeasured(record, plan, result).map(|_| NOT_STORAGE);
    let caveats = caveats(record, plan, result).into_iter().map(|caveat| caveat.sign);
    together(short.into_iter().chain(other).chain(caveats))
}

/// The same in words behind a sentence: ` (too short, others unknown)`.
pub(crate) fn aside(record: &Record, plan: &JobPlan, result: &JobResult) -> String {
    let short = is_too_short(record, plan).then_some("too short");
    let caveats = caveats(record, plan, result).into_iter().map(|caveat| caveat.mark);
    let words: Vec<&str> = short.into_iter().chain(caveats).collect();
    if words.is_empty() { String::new() } else { format!(" ({})", words.join(", ")) }
}

/// The marks of all jobs of a record.
pub fn marks_of_record(record: &Record) -> String {
    together(jobs(record).map(|(plan, result)| marks(record, plan, result)))
}

/// These marks together, each once.
pub fn together(marks: impl Iterator<Item = impl AsRef<str>>) -> String {
    let all: String = marks.map(|one| one.as_ref().to_owned()).collect();
    legend(&all).map(|(mark, _)| mark).collect()
}

/// The meaning of these marks behind rates.
pub fn legend(marks: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    MARKS.into_iter().filter(|(mark, _)| marks.contains(mark))
}

/// The same in a line; `None` without a mark.
pub(crate) fn legend_line(marks: &str) -> Option<String> {
    let words = legend(marks).map(|(mark, meaning)| format!("{mark} {meaning}"));
    let words = words.collect::<Vec<_>>().join("; ");
    (!words.is_empty()).then_some(words)
}

/// `16 I/Os in 858 µs` of a job that did too little for a rate: less than a second, or fewer I/Os
/// than its p90 needs.
pub(crate) fn too_short(record: &Record, plan: &JobPlan) -> Option<String> {
    let (elapsed_ns, ios) = short_run(record, plan)?;
    let short = elapsed_ns < SHORT_NS || !enough_for(0.9, ios);
    short.then(|| format!("{} in {}", many(ios, "I/O"), time(elapsed_ns)))
}

/// The share of words that repeat from which on a content is said: of what looks random none do.
const REPEATS: f64 = 0.1;

/// The content of the files that a job reads, as far as it was looked at: `31 of 32 sampled blocks
/// are all zero`. `None` where nothing was, and for files of gpuio's own pattern in which little
/// repeats.
pub(crate) fn sampled(plan: &JobPlan, result: &JobResult) -> Option<String> {
    let found = result.cache.content?;
    let blocks = found.blocks;
    match found.repeated() {
        little if little < REPEATS => is_foreign(plan)
            .then(|| format!("hardly any words repeat in {}", many(blocks, "sampled block"))),
        _ if found.zero_blocks > 0 => {
            let of = many(blocks, "sampled block is|sampled blocks are");
            Some(format!("{} of {of} all zero", found.zero_blocks))
        }
        share => Some(format!(
            "{} % of the words in {} repeat",
            percent(share * 100.0),
            many(blocks, "sampled block")
        )),
    }
}

/// How few blocks of data a job wrote again and again; `None` where each write had its own.
pub(crate) fn reused(plan: &JobPlan, result: &JobResult) -> Option<String> {
    let one_of_its_own = plan.works_between_ios() || plan.fill == Fill::Zero || plan.feed.is_some();
    let buffers = u64::from(plan.threads) * u64::from(plan.depth);
    (plan.read_percent < 100 && !one_of_its_own && result.write.ios > buffers).then(|| {
        format!(
            "wrote the same {} of data again and again: storage that deduplicates is faster with \
             them (refill writes new data each time)",
            many(buffers, "block"),
        )
    })
}

/// Whether a job reads files of which gpuio's list does not say what they hold.
pub(crate) fn is_foreign(plan: &JobPlan) -> bool {
    let foreign = [GuardNote::ForeignReadOnly, GuardNote::Changed];
    plan.read_percent > 0 && plan.targets.iter().any(|target| foreign.contains(&target.guard))
}

/// Why the content of a job's data makes its rate another one than that of the storage, or may.
pub(crate) fn content(plan: &JobPlan, result: &JobResult) -> Option<String> {
    let written = match (plan.fill, plan.compressible) {
        _ if plan.read_percent == 100 => None,
        (Fill::Zero, _) => Some("zeros were written".to_owned()),
        (Fill::Pattern | Fill::Random, of) => {
            of.map(|it| format!("data of which {} % repeats was written", it.percent))
        }
    };
    let repeats = result.cache.content.is_some_and(|found| found.repeated() >= REPEATS);
    let read = if repeats { sampled(plan, result) } else { None };
    let parts: Vec<String> = [written, read].into_iter().flatten().collect();
    if !parts.is_empty() {
        let then = "storage that compresses or leaves out zeros is faster with such data";
        return Some(format!("{} ({then})", parts.join(", ")));
    }
    (result.cache.content.is_none() && is_foreign(plan) && plan.engine.actual != "null")
        .then(|| "what the files hold, which gpuio did not write, is unknown".to_owned())
}

/// A reason why a rate is not that of the storage alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Caveat {
    /// In formats for programs; never changes.
    pub(crate) name: &'static str,
    /// One of [`MARKS`].
    pub(crate) sign: &'static str,
    /// Behind one load of several: `disturbed`.
    pub(crate) mark: &'static str,
    /// Behind a sentence.
    pub(crate) words: String,
    /// A sentence for programs.
    pub(crate) why: String,
}

/// Every kind of caveat: its name, what it means, its marks behind a rate and behind a load, its
/// words where these are always the same, and why a job has it.
type Kind = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    Option<&'static str>,
    fn(&Record, &JobPlan, &JobResult) -> Option<String>,
);

const KINDS: &[Kind] = &[
    (
        "wrong_data",
        "verification found wrong data, or could not check some",
        FAULTS,
        "wrong data",
        None,
        |_, _, result| wrong_data(result),
    ),
    (
        "disturbed",
        "others used the drive or the CPUs meanwhile",
        OTHERS,
        "disturbed",
        Some("not the rate of the storage alone"),
        |record, plan, result| Some(others::of(record, plan, result)?.words()),
    ),
    (
        "others_unknown",
        "it is unknown whether others used the CPUs",
        UNSEEN,
        "others unknown",
        Some("whether others used the CPUs is unknown"),
        |_, _, result| result.others_cpu_unknown.clone(),
    ),
    (
        "injected",
        "gpuio injected faults",
        FAULTS,
        "faults injected",
        Some("with faults that gpuio injected"),
        |_, plan, _| plan.inject.clone(),
    ),
    (
        "failed",
        "I/Os failed",
        FAULTS,
        "I/Os failed",
        Some("without the I/Os that failed"),
        |_, _, result| (result.failed > 0).then(|| many(result.failed, "I/O failed|I/Os failed")),
    ),
    (
        "content",
        "the data is zeros, repeats or is unknown, and storage may be faster with it",
        CONTENT,
        "content",
        None,
        |_, plan, result| content(plan, result),
    ),
];

/// That verification found wrong data, or could not check some.
pub(crate) fn wrong_data(result: &JobResult) -> Option<String> {
    let verify = result.verify.as_ref()?;
    let (blocks, at_least) = verify.different_bad();
    let more = if at_least { "at least " } else { "" };
    if blocks > 0 {
        let blocks = many(blocks, "wrong block");
        return Some(format!("verification found {more}{blocks}"));
    }
    if verify.failed > 0 {
        return Some(format!("{} of the verification failed", many(verify.failed, "I/O")));
    }
    verify.written_as.as_ref().map(|_| "blocks of another length were not verified".to_owned())
}

/// The caveats of a job.
pub(crate) fn caveats(record: &Record, plan: &JobPlan, result: &JobResult) -> Vec<Caveat> {
    let found = KINDS.iter().filter_map(|(name, _, sign, mark, words, of)| {
        let why = of(record, plan, result)?;
        let words = words.map_or_else(|| why.clone(), str::to_owned);
        Some(Caveat { name, sign, mark, words, why })
    });
    found.collect()
}

/// The names of all kinds, each with its meaning.
pub(crate) fn kinds() -> impl Iterator<Item = (&'static str, &'static str)> {
    KINDS.iter().map(|(name, help, ..)| (*name, *help))
}
