//! Lines about jobs that go on after a stonewall.

use gpuio_record::Record;

use super::detail::{line, name_width};
use crate::number::{bytes, throughput, time};
use crate::workload::jobs;

/// A line per job that came to one: the rate until then, and the rate until all were done.
pub(super) fn render(record: &Record, width: u16) -> String {
    let name = name_width(record);
    let lines = jobs(record).filter_map(|(plan, job)| {
        let wall = job.stonewall?;
        let rate = job.read.bytes_per_s + job.write.bytes_per_s;
        let words = format!(
            "{} in {} until the stonewall; then each thread went on to {}, what the fastest had \
             begun by then: {} in {}",
            throughput(wall.bytes_per_s),
            time(wall.time_ns),
            bytes(wall.bytes_per_thread),
            throughput(rate),
            time(job.last_done_ns)
        );
        Some(line(&format!("  {:name$}  ", plan.name), &words, width))
    });
    let lines: String = lines.collect();
    if lines.is_empty() { lines } else { format!("stonewall and wear-out:\n{lines}") }
}
