//! How much of the job's files lay in the page cache before and after.

use gpuio_base::units::whole;

use super::{JobFlow, Observation, Source, size};
use crate::evidence::verdict::{Growth, Observed};

pub(super) const SOURCE: Source = Source {
    name: "page_cache",
    source: "cachestat(2) or mincore(2) over the job's files",
    observe,
};

/// Less than this share of what could have come in is noise: metadata, and others who read them.
const NOISE: f64 = 0.05;

fn observe(one: &JobFlow<'_>) -> Observation {
    let cache = &one.result().cache;
    let (Some(before), Some(after)) = (cache.resident_before, cache.resident_after) else {
        let why = cache.unknown.iter().find(|why| why.starts_with("page cache"));
        return Observation::none(why.map_or("residency is not known", String::as_str));
    };
    let all: u64 = one.job().targets.iter().map(|target| target.length_bytes).sum();
    let (growth, grown) = growth(before, after, all, one.bytes());
    let percent = |share: f64| format!("{:.1} % of the files resident", share * 100.0);
    let (observed, why) = match growth {
        Growth::Grew { .. } if shares_files_with_cached(one) => (
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
        of: Some(one.bytes()),
        observed,
        why,
    }
}

/// Compares shares of `all` bytes before and after `bytes` were moved; and by how much it grew.
pub(super) fn growth(before: f64, after: f64, all: u64, bytes: u64) -> (Growth, u64) {
    let grown = whole((after - before).max(0.0) * all as f64);
    // A job that goes over its files many times can bring each page in once only.
    let could = all.min(bytes) as f64;
    let growth = if grown as f64 > NOISE * could {
        Growth::Grew { bytes: grown }
    } else {
        Growth::Still { resident: before.max(after) > NOISE }
    };
    (growth, grown)
}

fn shares_files_with_cached(one: &JobFlow<'_>) -> bool {
    let own: Vec<&str> = one.job().targets.iter().map(|target| target.path.as_str()).collect();
    one.jobs.iter().zip(one.results).enumerate().any(|(at, (job, result))| {
        at != one.at
            && result.passes_page_cache(job)
            && job.targets.iter().any(|target| own.contains(&target.path.as_str()))
    })
}
