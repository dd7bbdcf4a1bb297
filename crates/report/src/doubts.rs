//! Reasons not to trust the figures of a job, for formats that programs read.

use gpuio_base::document::unique;
use gpuio_record::{JobPlan, JobResult, Record};

use crate::Recheck;
use crate::number::many;
use crate::standing;
use crate::workload::jobs;

/// A kind of doubt.
struct Doubt {
    /// Its name in formats for programs; never changes.
    name: &'static str,
    /// Its meaning, in a few words.
    help: &'static str,
    /// Words on a record, where the doubt is there.
    of: fn(&Held<'_>) -> Option<String>,
}

/// A kind of doubt that a record says of itself.
struct Own {
    name: &'static str,
    help: &'static str,
    /// Words on a job, where the doubt is there.
    of: fn(&Record, &JobPlan, &JobResult) -> Option<String>,
}

/// The check of a record by itself, and what its set lacks.
#[derive(Clone, Copy)]
pub(crate) struct Held<'a> {
    pub(crate) recheck: &'a Recheck,
    /// Why the records of its set are not, or may not be, all runs that were made.
    pub(crate) lacks: &'a [String],
}

/// That records are not all runs that were made, with the first reason.
pub(crate) fn incomplete(lacks: &[String]) -> Option<String> {
    let (first, more) = lacks.split_first()?;
    let more = match more.len() as u64 {
        0 => String::new(),
        more => format!(" (and {})", many(more, "further reason")),
    };
    Some(format!("Not all runs that were made, or not for sure: {first}{more}"))
}

/// Every kind that the caller has to find out about a record, the gravest first.
const HELD: &[Doubt] = &[
    Doubt {
        name: "changed",
        help: "the content of the record is not that of its digest",
        of: |held| held.recheck.changed_in_words(),
    },
    Doubt {
        name: "another_record",
        help: "it is not the record that its sweep made",
        of: |held| held.recheck.misplaced_in_words(),
    },
    Doubt {
        name: "contradiction",
        help: "figures of the record do not follow from its counts",
        of: |held| held.recheck.contradiction(),
    },
    Doubt {
        name: "no_digest",
        help: "the record has no digest, so that it is unknown whether it was changed",
        of: |held| held.recheck.unproved_in_words(),
    },
    Doubt {
        name: "not_all_runs",
        help: "the records are not all runs that were made, or not for sure",
        of: |held| incomplete(held.lacks),
    },
];

/// Every kind that a record says of itself, but the caveats of [`standing`].
const DOUBTS: &[Own] = &[
    Own {
        name: "too_short",
        help: "the job was too short for its rate or percentiles",
        of: |record, plan, _| {
            standing::is_too_short(record, plan)
                .then(|| "The job was too short for its rate or percentiles".to_owned())
        },
    },
    Own {
        name: "not_storage",
        help: "storage did not move all bytes, so that the rate is not that of storage",
        of: |record, plan, result| {
            let why = standing::unmeasured(record, plan, result)?;
            Some(format!("The rate is not that of storage: {why}"))
        },
    },
];

/// The doubts about a job, each with its name.
pub(crate) fn of(
    held: &Held<'_>,
    record: &Record,
    plan: &JobPlan,
    result: &JobResult,
) -> Vec<(&'static str, String)> {
    let held = HELD.iter().filter_map(|one| Some((one.name, (one.of)(held)?)));
    held.chain(of_job(record, plan, result)).collect()
}

/// Those of them that the record says of itself.
pub(crate) fn of_job(
    record: &Record,
    plan: &JobPlan,
    result: &JobResult,
) -> Vec<(&'static str, String)> {
    let own = DOUBTS.iter();
    let own = own.filter_map(|one| Some((one.name, (one.of)(record, plan, result)?)));
    let caveats = standing::caveats(record, plan, result).into_iter();
    own.chain(caveats.map(|caveat| (caveat.name, caveat.why))).collect()
}

/// The words of one kind for several runs: the first's, where there are others with a remark.
pub fn first_of<W: AsRef<str> + PartialEq>(whys: impl IntoIterator<Item = W>) -> String {
    let whys = unique(whys);
    let more = if whys.len() > 1 { ", or alike" } else { "" };
    whys.first().map_or("", AsRef::as_ref).to_owned() + more
}

/// The same of all jobs of a record, each once.
pub fn of_record(record: &Record) -> Vec<(&'static str, String)> {
    unique(jobs(record).flat_map(|(plan, result)| of_job(record, plan, result)))
}

/// The same in one text; empty where nothing speaks against the figures.
pub(crate) fn in_words(
    held: &Held<'_>,
    record: &Record,
    plan: &JobPlan,
    result: &JobResult,
) -> String {
    let all = of(held, record, plan, result).into_iter();
    all.map(|(name, why)| format!("{name}: {why}")).collect::<Vec<_>>().join("; ")
}

/// The names of all kinds, each with its meaning.
pub fn kinds() -> impl Iterator<Item = (&'static str, &'static str)> {
    let held = HELD.iter().map(|doubt| (doubt.name, doubt.help));
    held.chain(DOUBTS.iter().map(|doubt| (doubt.name, doubt.help))).chain(standing::kinds())
}

/// The same in one text.
pub(crate) fn words() -> String {
    kinds().map(|(name, help)| format!("{name}, {help}")).collect::<Vec<_>>().join("; ")
}
