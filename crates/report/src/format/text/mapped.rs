//! Lines about files that a GPU reads in the page cache by itself.

use gpuio_base::document::Section;
use gpuio_record::{BreakEven, MappedResult, Record};

use super::of_jobs;
use crate::number::{bytes, time};
use crate::workload::jobs;

/// Two lines per job that mapped files: what that cost, and after how many reads it has paid.
pub(super) fn section(record: &Record) -> Section {
    let lines = jobs(record).filter_map(|(plan, job)| Some((plan, job.mapped.as_ref()?)));
    let lines = lines.flat_map(|(plan, mapped)| {
        [cost(mapped), pays(mapped)].map(|words| (plan.name.as_str(), words))
    });
    of_jobs(record, "page cache pinned for the GPU to read, cost outside the measured time:", lines)
}

fn cost(mapped: &MappedResult) -> String {
    let files = crate::number::many(mapped.files.into(), "file");
    let before = match mapped.resident_before {
        Some(share) => format!("{:.1} % cached before", share * 100.0),
        None => "cached before: unknown".to_owned(),
    };
    let after = match (mapped.unregister_ns, &mapped.unregister_failed) {
        (Some(ns), _) => format!("unregistered in {}", time(ns)),
        (None, Some(why)) => format!("not unregistered: {why}"),
        (None, None) => "unregistered: unknown".to_owned(),
    };
    format!(
        "{} of {files} pinned ({before}): mapped in {}, registered in {}, {after}; {} of CPU time; \
         read by kernel {}, by copy {}",
        bytes(mapped.pinned_bytes),
        time(mapped.map_ns),
        time(mapped.register_ns),
        time(mapped.cpu_ns),
        bytes(mapped.by_kernel_bytes),
        bytes(mapped.by_copy_bytes),
    )
}

fn pays(mapped: &MappedResult) -> String {
    let Some(BreakEven { against, reads_by_time, reads_by_cpu }) = &mapped.break_even else {
        let why = mapped.break_even_unknown.as_deref().unwrap_or("no reason was recorded");
        return format!("reads of each byte until that pays: unknown: {why}");
    };
    let reads = |found: &Option<f64>, none: &str| {
        found.map_or_else(|| none.to_owned(), |reads| format!("{reads:.2}"))
    };
    format!(
        "reads of each byte until that pays, against {against}: by time {}, by CPU time {}",
        reads(reads_by_time, "never, since it is not slower"),
        reads(reads_by_cpu, "never or unknown"),
    )
}
