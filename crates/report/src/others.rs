//! The part that others had in what the drives moved and the processors did while a job ran, by
//! its counts.

use crate::number::many;
use gpuio_base::units::float;
use gpuio_record::metric::percent;
use gpuio_record::{
    DeviceTraffic, JobPlan, JobResult, Record, Source, Warning, WarningKind, cpu_takers,
};

/// Share from which on a rate is that of others more than gpuio's.
const MOST: f64 = 0.5;

/// Where others worked beside a job; the worse one of several runs is found for each alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Drive,
    Cpus,
}

/// The work of others in one place.
#[derive(Debug, Clone, PartialEq)]
struct Part {
    place: Place,
    /// Their share of all bytes, or of the processors' time, from 0 to 1.
    share: f64,
    /// Their share of what was done, which leaves out the time in which processors were idle.
    of_done: f64,
    /// `other programs moved 78 % of the drive's bytes`.
    words: String,
}

/// The work of others beside a job, at least one part.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Others {
    parts: Vec<Part>,
}

impl Others {
    /// Whether a rate is that of others more than gpuio's.
    pub(crate) fn are_most(&self) -> bool {
        self.parts.iter().any(|part| part.of_done > MOST)
    }

    /// All parts: `other programs moved 78 % of the drive's bytes`.
    pub(crate) fn words(&self) -> String {
        let words: Vec<&str> = self.parts.iter().map(|part| part.words.as_str()).collect();
        words.join("; ")
    }

    /// In a table: `drive 78 %, CPUs 99.6 %`.
    pub(crate) fn short(&self) -> String {
        let short = self.parts.iter().map(|part| {
            let place = if part.place == Place::Drive { "drive" } else { "CPUs" };
            format!("{place} {} %", percent(part.share * 100.0))
        });
        short.collect::<Vec<_>>().join(", ")
    }

    #[cfg(test)]
    pub(crate) fn of_drive(share: f64, words: String) -> Others {
        Others { parts: vec![Part { place: Place::Drive, share, of_done: share, words }] }
    }
}

/// The worst of each place.
pub(crate) fn worst(of: &[Others]) -> Option<Others> {
    let worst = |place| {
        let parts = of.iter().flat_map(|one| &one.parts).filter(|part| part.place == place);
        parts.max_by(|a, b| a.share.total_cmp(&b.share)).cloned()
    };
    let parts: Vec<Part> = [Place::Drive, Place::Cpus].into_iter().filter_map(worst).collect();
    (!parts.is_empty()).then_some(Others { parts })
}

/// The disturbed ones of some runs, behind the word: `: …`, or ` in 2 of 3 runs; at worst, …`.
pub(crate) fn disturbed(of: &[Others], runs: usize) -> Option<String> {
    let worst = worst(of)?.words();
    Some(match runs {
        1 => format!(": {worst}"),
        _ => format!(" in {} of {}; at worst, {worst}", of.len(), many(runs as u64, "run")),
    })
}

/// Why a low rate of a job says nothing about its storage: most of the work was others', or it is
/// unknown how much was, which may be as much.
pub(crate) fn doubt(others: Option<&Others>, job: &JobResult) -> Option<String> {
    let most = others.filter(|others| others.are_most()).map(Others::words);
    most.or_else(|| job.others_cpu_unknown.clone())
}

/// That of one job; `None` where it was none or too little. Older records, and those of several
/// ranks, have it in their warnings only.
pub(crate) fn of(record: &Record, plan: &JobPlan, result: &JobResult) -> Option<Others> {
    let counted: Option<Vec<WarningKind>> =
        result.others.as_ref().map(|counts| counts.warnings().collect());
    let together = record.plan.jobs.iter().filter(|job| job.group == plan.group).count() > 1;
    // Without a name it is about a group of several jobs.
    let about =
        |warning: &&Warning| warning.job.as_ref().map_or(together, |name| *name == plan.name);
    let warned = || record.warnings.iter().filter(about).map(|warning| warning.kind.clone());
    let kinds = counted.unwrap_or_else(|| warned().collect());
    let parts = [traffic(kinds.iter(), plan, result), processors(kinds.iter())];
    let parts: Vec<Part> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then_some(Others { parts })
}

/// That on the processors, with each who took part as the warning names them.
fn processors<'w>(mut kinds: impl Iterator<Item = &'w WarningKind>) -> Option<Part> {
    kinds.find_map(|kind| {
        let WarningKind::OtherCpuTime {
            all_ns, ours_ns, programs_ns, kernel_ns, stolen_ns, ..
        } = kind
        else {
            return None;
        };
        let takers = cpu_takers(*all_ns, [*programs_ns, *kernel_ns, *stolen_ns]);
        let words = takers.enumerate().map(|(nth, (who, share))| match nth {
            0 => format!("{who} took {share} % of the CPUs' time"),
            _ => format!("{who} {share} %"),
        });
        let words = words.collect::<Vec<_>>().join(", ");
        let others = float(programs_ns + kernel_ns + stolen_ns);
        let [all, ours] = [*all_ns, *ours_ns].map(|ns| float(ns).max(1.0));
        let (share, of_done) = (others / all, others / (others + ours));
        Some(Part { place: Place::Cpus, share, of_done, words })
    })
}

/// That on the drives; `None` where the page cache served the job.
fn traffic<'w>(
    kinds: impl Iterator<Item = &'w WarningKind>,
    plan: &JobPlan,
    result: &JobResult,
) -> Option<Part> {
    let source = result.proof.as_ref().map(|proof| proof.verdict.source);
    if source == Some(Source::PageCache) {
        return None;
    }
    let (mut theirs, mut ours, mut warned) = (0_u64, 0_u64, Vec::new());
    for kind in kinds {
        if let WarningKind::OtherTraffic { direction, ours_bytes, device_bytes, .. } = kind {
            theirs = theirs.saturating_add(device_bytes.saturating_sub(*ours_bytes));
            ours = ours.saturating_add(*ours_bytes);
            warned.push(direction.as_str());
        }
    }
    // The warning may be about the direction that is not the job's.
    let mut ours = match result.passes_page_cache(plan) {
        false => ours.max(result.read.bytes.saturating_add(result.write.bytes)),
        // Bytes that the page cache served, or keeps, are none of the drive's.
        true => {
            let cache = &result.cache;
            let both = [("read", cache.process_read_bytes), ("write", cache.process_write_bytes)];
            let caused = both.into_iter().filter(|(direction, _)| !warned.contains(direction));
            caused.filter_map(|(_, bytes)| bytes).fold(ours, u64::saturating_add)
        }
    };
    // All bytes count, those of a direction with too few for a warning too.
    let counted = result.others.as_ref().map_or(&[][..], |others| &others.traffic);
    let beyond = |one: &DeviceTraffic| one.device_bytes.saturating_sub(one.ours_bytes);
    if theirs > 0 && counted.len() > warned.len() {
        theirs = counted.iter().map(beyond).sum();
        ours = counted.iter().map(|one| one.ours_bytes).sum();
        let theirs_too = counted.iter().filter(|one| beyond(one) > 0);
        warned = theirs_too.map(|one| one.direction.as_str()).collect();
    }
    let share = (theirs > 0).then(|| theirs as f64 / theirs.saturating_add(ours) as f64)?;
    let who = match warned.contains(&"write") {
        true => "other programs or write-back",
        false => "other programs",
    };
    let words = format!("{who} moved {} % of the drive's bytes", percent(share * 100.0));
    Some(Part { place: Place::Drive, share, of_done: share, words })
}
