//! The part that others had in what the drives moved and the processors did while a job ran, as the
//! warnings `other_traffic` and `other_cpu_time` count it.

use crate::number::many;
use gpuio_base::units::float;
use gpuio_record::{JobPlan, JobResult, Record, Source, Warning, WarningKind};

/// Share from which on a rate is that of others more than gpuio's.
pub(crate) const MOST: f64 = 0.5;

/// The work of others beside a job.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Others {
    /// Their share of all bytes, or of the processors' busy time, whichever is more, from 0 to 1.
    pub(crate) share: f64,
    /// `other programs moved 78 % of the drive's bytes`.
    pub(crate) words: String,
}

/// The disturbed ones of some runs, behind the word: `: …`, or ` in 2 of 3 runs; in the worst, …`.
pub(crate) fn disturbed(of: &[Others], runs: usize) -> Option<String> {
    let worst = of.iter().max_by(|a, b| a.share.total_cmp(&b.share))?;
    Some(match runs {
        1 => format!(": {}", worst.words),
        _ => {
            let runs = many(runs as u64, "run");
            format!(" in {} of {runs}; in the worst, {}", of.len(), worst.words)
        }
    })
}

/// That of one job; `None` where no warning has any.
pub(crate) fn of(record: &Record, plan: &JobPlan, result: &JobResult) -> Option<Others> {
    let together = record.plan.jobs.iter().filter(|job| job.group == plan.group).count() > 1;
    // Without a name it is about a group of several jobs.
    let about =
        |warning: &&Warning| warning.job.as_ref().map_or(together, |name| *name == plan.name);
    let kinds = || record.warnings.iter().filter(about).map(|warning| &warning.kind);
    let both = [traffic(kinds(), result), processors(kinds())];
    both.into_iter().flatten().reduce(|one, other| Others {
        share: one.share.max(other.share),
        words: format!("{}; {}", one.words, other.words),
    })
}

/// That on the processors.
fn processors<'w>(mut kinds: impl Iterator<Item = &'w WarningKind>) -> Option<Others> {
    kinds.find_map(|kind| {
        let WarningKind::OtherCpuTime {
            all_ns, ours_ns, programs_ns, kernel_ns, stolen_ns, ..
        } = kind
        else {
            return None;
        };
        let [all, ours] = [*all_ns, *ours_ns].map(|ns| float(ns).max(1.0));
        let [programs, others] = [*programs_ns, programs_ns + kernel_ns + stolen_ns].map(float);
        let who = if programs * 2.0 >= others { "other programs" } else { "others" };
        let words = format!("{who} took {:.0} % of the CPUs' time", others * 100.0 / all);
        Some(Others { share: others / (others + ours), words })
    })
}

/// That on the drives; `None` where the page cache served the job.
fn traffic<'w>(kinds: impl Iterator<Item = &'w WarningKind>, result: &JobResult) -> Option<Others> {
    let source = result.proof.as_ref().map(|proof| proof.verdict.source);
    if source == Some(Source::PageCache) {
        return None;
    }
    let (mut theirs, mut ours, mut wrote) = (0_u64, 0_u64, false);
    for kind in kinds {
        if let WarningKind::OtherTraffic { direction, ours_bytes, device_bytes, .. } = kind {
            theirs = theirs.saturating_add(device_bytes.saturating_sub(*ours_bytes));
            ours = ours.saturating_add(*ours_bytes);
            wrote |= direction == "write";
        }
    }
    // The warning may be about the direction that is not the job's.
    let ours = ours.max(result.read.bytes.saturating_add(result.write.bytes));
    let share = (theirs > 0).then(|| theirs as f64 / theirs.saturating_add(ours) as f64)?;
    let who = if wrote { "other programs or write-back" } else { "other programs" };
    let words = format!("{who} moved {:.0} % of the drive's bytes", share * 100.0);
    Some(Others { share, words })
}
