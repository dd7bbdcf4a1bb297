//! Lines about files that were read as a whole.

use gpuio_record::{EndedHow, RangeKind, Record};

use super::detail::{line, mark, name_width};
use crate::number::{bytes, many, time};
use crate::workload::jobs;

/// A line per job: what was read, and after what time all of it was in memory.
pub(super) fn render(record: &Record, width: u16) -> String {
    let name = name_width(record);
    let lines = jobs(record).filter_map(|(plan, job)| {
        let ranges = plan.ranges?;
        let files = many(plan.targets.len() as u64, "file");
        let what = match ranges.kind {
            RangeKind::Files => format!("{files} whole"),
            RangeKind::Tensors => format!("{} of {files}", many(ranges.count, "tensor")),
        };
        let passes = match ranges.passes {
            1 => String::new(),
            passes => format!(", {passes} times"),
        };
        let whole = ranges.bytes.saturating_mul(ranges.passes);
        let is_ready = job.ended == EndedHow::Complete && job.read.bytes == whole;
        let end = match is_ready {
            true => format!("in memory after {}", time(job.last_done_ns)),
            false => format!("NOT READY: {} were read", bytes(job.read.bytes)),
        };
        let words = format!(
            "{what}, {}{passes}, by {}: {end}",
            bytes(ranges.bytes),
            many(u64::from(plan.threads), "thread")
        );
        Some(line(&format!("  {:name$}  {}", plan.name, mark(record)), &words, width))
    });
    let lines: String = lines.collect();
    if lines.is_empty() { lines } else { format!("ready:\n{lines}") }
}
