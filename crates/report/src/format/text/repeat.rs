//! Lines about parts of larger loads, and about jobs that ran several times.

use gpuio_record::{JobPlan, JobResult, Record};

use super::detail::{line, mark, name_width};
use crate::number::{float, throughput, time};
use crate::workload::jobs;

/// A line per job that is a part of a larger load; one for all times of a job.
pub(super) fn parts(record: &Record, width: u16) -> String {
    let name = name_width(record);
    let is_first = |plan: &JobPlan| plan.repeat.as_ref().is_none_or(|repeat| repeat.nth == 1);
    let lines = jobs(record).filter(|(plan, _)| is_first(plan)).filter_map(|(plan, _)| {
        let words = plan.part?.words(plan);
        Some(line(&format!("  {:name$}  {}", plan.name, mark(record)), &words, width))
    });
    let lines: String = lines.collect();
    if lines.is_empty() { lines } else { format!("part of a larger load:\n{lines}") }
}

/// A line per job that ran several times: how long each took, flushes included.
pub(super) fn times(record: &Record, width: u16) -> String {
    let name = name_width(record);
    let mut names: Vec<&str> = Vec::new();
    for (plan, _) in jobs(record) {
        if let Some(repeat) = &plan.repeat
            && !names.contains(&repeat.of.as_str())
        {
            names.push(&repeat.of);
        }
    }
    let lines = names.iter().filter_map(|of| {
        let is_one = |plan: &JobPlan| plan.repeat.as_ref().is_some_and(|one| one.of == **of);
        let all: Vec<(&JobPlan, &JobResult)> =
            jobs(record).filter(|(plan, _)| is_one(plan)).collect();
        let wanted = all.first()?.0.repeat.as_ref()?.times;
        let words = words(&all, wanted);
        Some(line(&format!("  {of:name$}  {}", mark(record)), &words, width))
    });
    let lines: String = lines.collect();
    if lines.is_empty() { lines } else { format!("repeated jobs:\n{lines}") }
}

fn words(all: &[(&JobPlan, &JobResult)], wanted: u32) -> String {
    let count = all.len() as u64;
    let took = || all.iter().map(|(_, job)| job.last_done_ns);
    let whole: u64 = took().sum();
    let bytes: u64 = all.iter().map(|(_, job)| job.read.bytes + job.write.bytes).sum();
    let mean = whole.checked_div(count).unwrap_or(0);
    let rate = if whole > 0 { float(bytes) * 1e9 / float(whole) } else { 0.0 };
    let cut = match count < u64::from(wanted) {
        true => format!(" of {wanted}"),
        false => String::new(),
    };
    format!(
        "{count}{cut} times: {} each ({} to {}), {}",
        time(mean),
        time(took().min().unwrap_or(0)),
        time(took().max().unwrap_or(0)),
        throughput(rate)
    )
}
