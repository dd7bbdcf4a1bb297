//! How far the rate of a job is that of its storage: why it is none of it, and what else it has in
//! it. Every format for people takes its words from here.

use gpuio_base::stat::enough_for;
use gpuio_record::{JobPlan, JobResult, Record, SHORT_NS, Source, WarningKind};

use crate::number::{many, time};
use crate::others;

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

/// `16 I/Os in 858 µs` of a job that did too little for a rate: less than a second, or fewer I/Os
/// than its p90 needs.
pub(crate) fn too_short(record: &Record, plan: &JobPlan) -> Option<String> {
    let own =
        record.warnings.iter().filter(|one| one.job.as_ref().is_none_or(|job| *job == plan.name));
    own.map(|warning| &warning.kind).find_map(|kind| match kind {
        WarningKind::RunTooShort { elapsed_ns, ios, .. } => {
            let short = *elapsed_ns < SHORT_NS || !enough_for(0.9, *ios);
            short.then(|| format!("{} in {}", many(*ios, "I/O"), time(*elapsed_ns)))
        }
        _ => None,
    })
}

/// A reason why a rate is not that of the storage alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Caveat {
    /// Behind one load of several: `disturbed`.
    pub(crate) mark: &'static str,
    /// Behind a sentence.
    pub(crate) words: &'static str,
}

/// The caveats of a job.
pub(crate) fn caveats(record: &Record, plan: &JobPlan, result: &JobResult) -> Vec<Caveat> {
    let rows = [
        (
            others::of(record, plan, result).is_some(),
            Caveat { mark: "disturbed", words: "not the rate of the storage alone" },
        ),
        (
            result.others_cpu_unknown.is_some(),
            Caveat { mark: "others unknown", words: "whether others used the CPUs is unknown" },
        ),
        (
            plan.inject.is_some(),
            Caveat { mark: "faults injected", words: "with faults that gpuio injected" },
        ),
        (result.failed > 0, Caveat { mark: "I/Os failed", words: "without the I/Os that failed" }),
    ];
    rows.into_iter().filter_map(|(is, caveat)| is.then_some(caveat)).collect()
}
