//! When a job is to end because it is steady.

use gpuio_base::units::format_duration_ns;
use gpuio_record::{SteadyPlan, Stop};

use super::PlanError;
use crate::spec::JobSpec;

/// Time between two values, as fio has it.
const CHECK_NS: u64 = 1_000_000_000;
/// A shorter one than the shortest interval of the series would see the same sample twice.
const CHECK_LEAST_NS: u64 = 100_000_000;
/// Values in a window by default.
const VALUES: u64 = 10;
/// Windows that a job has time for by default.
const WINDOWS: u64 = 10;

/// The criterion, and the end of the job if that never comes: `stop`, but for a runtime that nobody
/// requested.
pub(super) fn resolve(
    requested: &JobSpec,
    stop: Stop,
) -> Result<(Stop, Option<SteadyPlan>), PlanError> {
    let Some(steady) = &requested.steady else { return Ok((stop, None)) };
    let check_ns = requested.steady_check_ns.unwrap_or(CHECK_NS);
    if check_ns < CHECK_LEAST_NS {
        let what = format!(
            "a check every {}; the series has a point every 100ms at most",
            format_duration_ns(check_ns)
        );
        return Err(PlanError::usage(requested, "steady_check_ns", what));
    }
    let window_ns = requested.steady_window_ns.unwrap_or(check_ns.saturating_mul(VALUES));
    let ramp_ns = requested.steady_ramp_ns.unwrap_or(0);
    if window_ns / check_ns < 2 {
        let what = format!(
            "a window of {} holds {} checks of {}; give one that holds 2 at least",
            format_duration_ns(window_ns),
            window_ns / check_ns,
            format_duration_ns(check_ns)
        );
        return Err(PlanError::usage(requested, "steady_window_ns", what));
    }
    let least_ns = ramp_ns.saturating_add(window_ns);
    let is_open = requested.runtime_ns.is_none() && stop.runtime_ns.is_some();
    let stop = match is_open {
        true => {
            let longest = ramp_ns.saturating_add(window_ns.saturating_mul(WINDOWS));
            Stop { runtime_ns: Some(longest), ..stop }
        }
        false => stop,
    };
    if let Some(runtime_ns) = stop.runtime_ns.filter(|time| *time <= least_ns) {
        let what = format!(
            "the job ends after {}, and the first window is full after {}; give it a longer \
             runtime, or a shorter ss_dur or ss_ramp",
            format_duration_ns(runtime_ns),
            format_duration_ns(least_ns)
        );
        return Err(PlanError::usage(requested, "steady", what));
    }
    let plan = SteadyPlan {
        requested: steady.words.clone(),
        of: steady.of,
        slope: steady.slope,
        limit: steady.limit,
        percent: steady.percent,
        window_ns,
        ramp_ns,
        check_ns,
    };
    Ok((stop, Some(plan)))
}

/// The series' interval such that checks fall on points of it.
pub(super) fn interval(interval_ns: u64, jobs: &[gpuio_record::JobPlan]) -> u64 {
    let checks = jobs.iter().filter_map(|job| job.steady.as_ref()).map(|steady| steady.check_ns);
    checks.min().map_or(interval_ns, |check| check / check.div_ceil(interval_ns))
}
