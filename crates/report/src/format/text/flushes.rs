//! Calls that sent written data to the medium.

use gpuio_record::Record;

use crate::number::{count, time};
use crate::workload::jobs;

/// A line per job that was to flush: how many calls, and how long one took on average.
pub(super) fn render(record: &Record) -> String {
    let line = |(plan, job): (&gpuio_record::JobPlan, &gpuio_record::JobResult)| {
        let (flush, done) = (plan.flush?, job.flushes?);
        let call = if flush.data_only { "fdatasync" } else { "fsync" };
        let mean = done
            .ns
            .checked_div(done.calls)
            .map_or_else(String::new, |mean| format!(", {} each on average", time(mean)));
        let calls = count(done.calls);
        Some(format!(
            "flushes: {}: {calls} calls of {call}{mean}; in the measured time, outside latencies\n",
            plan.name
        ))
    };
    jobs(record).filter_map(line).collect()
}
