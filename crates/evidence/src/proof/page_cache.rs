//! How much of the job's files lay in the page cache before and after.

use gpuio_host::Root;

use super::verdict::{Growth, Observed};
use super::{EvidenceSource, EvidenceSourceEntry, Observation, Subject, goes_through_cache, size};

pub(super) const ENTRY: EvidenceSourceEntry = EvidenceSourceEntry {
    name: "page_cache",
    source: "cachestat(2) or mincore(2) over the job's files",
    // The run reads residency for its own results: reading it twice would cost a mapping each.
    first: |_| Box::new(PageCache),
};

/// Less than this share of what could have come in is noise: metadata, and others who look.
const NOISE: f64 = 0.05;

struct PageCache;

impl EvidenceSource for PageCache {
    fn again(&mut self, _root: &Root) {}

    fn observe(&self, subject: &Subject<'_>) -> Observation {
        let cache = &subject.result().cache;
        let (Some(before), Some(after)) = (cache.resident_before, cache.resident_after) else {
            let why = cache.unknown.iter().find(|why| why.starts_with("page cache"));
            return Observation::none(why.map_or("residency is not known", String::as_str));
        };
        let all: u64 = subject.job().targets.iter().map(|target| target.length_bytes).sum();
        let (growth, grown) = growth(before, after, all, subject.bytes());
        let percent = |share: f64| format!("{:.1} % of the files resident", share * 100.0);
        let (observed, why) = match growth {
            Growth::Grew { .. } if shares_files_with_cached(subject) => (
                Observed::Nothing,
                format!("grew by {}; a buffered job of the group uses the same files", size(grown)),
            ),
            Growth::Grew { .. } => (Observed::Cache(growth), format!("grew by {}", size(grown))),
            Growth::Still { resident: true } => {
                (Observed::Cache(growth), "did not grow; part of the files was there".to_owned())
            }
            Growth::Still { resident: false } => {
                (Observed::Cache(growth), "did not grow, and held next to nothing".to_owned())
            }
        };
        Observation {
            before: Some(percent(before)),
            after: Some(percent(after)),
            moved: Some(grown),
            of: Some(subject.bytes()),
            observed,
            why,
        }
    }
}

/// Judges shares of `all` bytes before and after `bytes` were moved; and by how much it grew.
#[expect(clippy::cast_precision_loss, reason = "shares of bytes")]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of 0 to 1 of `all`, floored at 0: no more than `all`"
)]
pub(super) fn growth(before: f64, after: f64, all: u64, bytes: u64) -> (Growth, u64) {
    let grown = ((after - before).max(0.0) * all as f64) as u64;
    // A job that goes over its files many times can bring each page in once only.
    let could = all.min(bytes) as f64;
    let growth = if grown as f64 > NOISE * could {
        Growth::Grew { bytes: grown }
    } else {
        Growth::Still { resident: before.max(after) > NOISE }
    };
    (growth, grown)
}

fn shares_files_with_cached(subject: &Subject<'_>) -> bool {
    let own: Vec<&str> = subject.job().targets.iter().map(|target| target.path.as_str()).collect();
    subject.jobs.iter().zip(subject.results).enumerate().any(|(at, (job, result))| {
        at != subject.at
            && goes_through_cache(job, result)
            && job.targets.iter().any(|target| own.contains(&target.path.as_str()))
    })
}
