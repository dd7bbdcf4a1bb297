//! Reasons not to trust the figures of a job, for formats that programs read.

use gpuio_record::{ContentDigest, JobPlan};

use super::Member;
use crate::workload::is_too_short;

/// A kind of doubt.
struct Doubt {
    /// Its name in formats for programs; never changes.
    name: &'static str,
    /// Its meaning, in a few words.
    help: &'static str,
    /// A sentence on a job of a record, where the doubt is there.
    of: fn(&Member, &JobPlan) -> Option<String>,
}

/// Every kind, the gravest first.
const DOUBTS: &[Doubt] = &[
    Doubt {
        name: "changed",
        help: "the content of the record is not that of its digest",
        of: |member, _| {
            is_changed(member).then(|| {
                "The content is not that of its digest (content_sha256): the record was changed \
                 after gpuio wrote it"
                    .to_owned()
            })
        },
    },
    Doubt {
        name: "contradiction",
        help: "figures of the record do not follow from its counts",
        of: |member, _| {
            let besides = member.recheck.wrong.len() > usize::from(is_changed(member));
            besides.then(|| member.recheck.doubt()).flatten()
        },
    },
    Doubt {
        name: "no_digest",
        help: "the record has no digest, so that it is unknown whether it was changed",
        of: |member, _| member.recheck.unproved.as_ref().and_then(|_| member.recheck.doubt()),
    },
    Doubt {
        name: "too_short",
        help: "the job was too short for its rate or percentiles",
        of: |member, plan| {
            is_too_short(&member.record, plan)
                .then(|| "The job was too short for its rate or percentiles".to_owned())
        },
    },
];

fn is_changed(member: &Member) -> bool {
    matches!(member.record.content_sha256, ContentDigest::Changed(_))
}

/// The doubts about a job, each with its name.
pub(super) fn of(member: &Member, plan: &JobPlan) -> Vec<(&'static str, String)> {
    DOUBTS.iter().filter_map(|doubt| Some((doubt.name, (doubt.of)(member, plan)?))).collect()
}

/// All names with their meaning.
pub(super) fn words() -> String {
    let words = DOUBTS.iter().map(|doubt| format!("{}, {}", doubt.name, doubt.help));
    words.collect::<Vec<_>>().join("; ")
}
