//! The part that other programs had in what the drives moved while a job ran, as the warning
//! `other_traffic` counts it.

use crate::number::many;
use gpuio_record::{JobPlan, JobResult, Record, Source, WarningKind};

/// Share of a drive's bytes from which on a rate is that of others more than gpuio's.
pub(crate) const MOST: f64 = 0.5;

/// The traffic of others beside a job.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Others {
    /// Their share of all bytes, from 0 to 1.
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

/// That of one job; `None` where no warning has any, and where the page cache served it.
pub(crate) fn of(record: &Record, plan: &JobPlan, result: &JobResult) -> Option<Others> {
    let source = result.proof.as_ref().map(|proof| proof.verdict.source);
    if source == Some(Source::PageCache) {
        return None;
    }
    let together = record.plan.jobs.iter().filter(|job| job.group == plan.group).count() > 1;
    let (mut theirs, mut ours, mut wrote) = (0_u64, 0_u64, false);
    for warning in &record.warnings {
        // Without a name it is about a group of several jobs.
        let about = warning.job.as_ref().map_or(together, |name| *name == plan.name);
        if let WarningKind::OtherTraffic { direction, ours_bytes, device_bytes, .. } = &warning.kind
            && about
        {
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
