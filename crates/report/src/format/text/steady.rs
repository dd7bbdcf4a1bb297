//! Lines about jobs with a steady-state criterion.

use gpuio_base::units::{human_count, human_ns, human_rate};
use gpuio_record::{Record, Steady, SteadyFigure, SteadyPlan};

use super::detail::{line, mark, name_width};
use crate::number::time;
use crate::workload::jobs;

/// A line per job with a criterion.
pub(super) fn render(record: &Record, width: u16) -> String {
    let name = name_width(record);
    let rows = jobs(record).filter_map(|(plan, job)| {
        Some((plan.name.as_str(), words(plan.steady.as_ref()?, job.steady.as_ref()?)))
    });
    let lines: String = rows
        .map(|(job, words)| line(&format!("  {job:name$}  {}", mark(record)), &words, width))
        .collect();
    if lines.is_empty() { lines } else { format!("steady state:\n{lines}") }
}

fn words(requested: &SteadyPlan, measured: &Steady) -> String {
    let head = match measured.attained_at_ns {
        Some(at) => format!("{} attained after {}", requested.requested, time(at)),
        None => format!("{} NOT attained", requested.requested),
    };
    let Some(mean) = measured.mean else {
        return format!("{head}; no window of {} was complete", time(requested.window_ns));
    };
    let amount = |value: f64| match requested.of {
        SteadyFigure::Iops => format!("{} IOPS", human_count(value)),
        SteadyFigure::Bandwidth => human_rate(value),
        SteadyFigure::Latency => human_ns(value),
    };
    let window = time(requested.window_ns);
    let seen = match measured.observed {
        None => "unknown".to_owned(),
        Some(seen) if requested.percent => format!("{seen:.3} %"),
        // The formats are for amounts, which have no sign.
        Some(seen) if seen < 0.0 => format!("-{}", amount(-seen)),
        Some(seen) => amount(seen),
    };
    let what = if requested.slope { "slope" } else { "largest deviation" };
    let each = if requested.slope { " a check" } else { "" };
    format!("{head}; last window of {window}: mean {}, {what} {seen}{each}", amount(mean))
}
