//! Whether storage is fast enough for the accelerators of a training feed.

use gpuio_record::{FeedCompute, FeedPlan, FeedResult, JobPlan, JobResult, Record, Source};

use crate::others::{self, Others};

/// A share of the readers' time: where gpuio's own checks of data take more, they may be the reason
/// that accelerators waited.
pub(crate) const CHECKS_MOST: f64 = 0.2;

/// The answer, by the utilisation that was to be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FastEnough {
    Yes,
    No,
    /// With the reason.
    Unknown(String),
}

/// The answer of a job; nothing where nothing is computed.
pub fn fast_enough(record: &Record, of: &JobPlan, job: &JobResult) -> Option<FastEnough> {
    let (plan, found) = of.feed.as_ref().zip(job.feed.as_ref())?;
    plan.needed_bytes_per_s()?;
    Some(judge(plan, found, seen(of, found, job), others::of(record, of, job).as_ref()))
}

/// Where a job's bytes came from, and the share of its readers' time in which gpuio checked or made
/// data.
pub(crate) fn seen(of: &JobPlan, found: &FeedResult, job: &JobResult) -> (Option<Source>, f64) {
    let source = job.proof.as_ref().map(|proof| proof.verdict.source);
    let readers_ns = found.span_ns as f64 * f64::from(of.threads);
    (source, job.between_ios_ns as f64 / readers_ns.max(1.0))
}

/// Computations that took longer than asked, in words.
pub(crate) fn overran(plan: &FeedPlan, found: &FeedResult) -> Option<String> {
    let what = match plan.compute {
        FeedCompute::Sleep => "sleeps",
        _ => "computations",
    };
    let more = found.overran_percent(plan)?;
    Some(format!("the {what} took {more:.0} % longer than asked"))
}

/// The answer by what was [`seen`]. Where most of the drive's bytes were others', the storage has
/// not shown what it can do.
pub(crate) fn judge(
    plan: &FeedPlan,
    found: &FeedResult,
    (source, checked): (Option<Source>, f64),
    others: Option<&Others>,
) -> FastEnough {
    let from_storage =
        matches!(source, Some(Source::Storage | Source::StorageThroughPageCache)) || plan.writes;
    let unknown = |why: String| FastEnough::Unknown(why);
    if let Some(ahead) = plan.all_ahead() {
        let more = match plan.scale < 1.0 {
            true => "use a larger --scale, or more --epochs",
            false => "use more epochs or more files",
        };
        return unknown(format!(
            "all batches of an accelerator fit into the {ahead} that are read ahead ({more})"
        ));
    }
    let Some(percent) = found.utilisation_percent else {
        let why = found.utilisation_unknown.as_deref();
        return unknown(why.unwrap_or("utilisation is not known").to_owned());
    };
    let Some(least) = plan.least_utilisation_percent else {
        let why = "no utilisation that is to be reached was given (utilisation=90)";
        return unknown(why.to_owned());
    };
    if percent >= least {
        return match from_storage {
            true => FastEnough::Yes,
            false => unknown("not all bytes came from storage".to_owned()),
        };
    }
    let waited = found.stall_percent(plan).is_none_or(|stall| stall > 100.0 - least);
    match (overran(plan, found), others.filter(|others| others.are_most())) {
        (Some(overran), _) if !waited => unknown(overran),
        _ if checked > CHECKS_MOST => unknown(format!(
            "gpuio checked or made data for {:.0} % of the readers' time (--verify {} checks \
             after the run)",
            checked * 100.0,
            gpuio_record::VerifyMode::after_the_run(false).word()
        )),
        (_, Some(others)) => unknown(others.words()),
        _ => FastEnough::No,
    }
}
