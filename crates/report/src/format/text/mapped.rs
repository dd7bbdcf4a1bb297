//! Lines about files that a GPU reads or writes in the page cache by itself.

use gpuio_base::document::Section;
use gpuio_record::{BreakEven, MappedResult, Record};

use super::of_jobs;
use crate::number::{bytes, time};
use crate::workload::jobs;

/// Two lines per job that mapped files: what that cost, and after how many I/Os it has paid.
pub(super) fn section(record: &Record) -> Section {
    let lines = jobs(record).filter_map(|(plan, job)| Some((plan, job.mapped.as_ref()?)));
    let lines = lines.flat_map(|(plan, mapped)| {
        let did = if plan.read_percent == 100 { "reads" } else { "passes" };
        [cost(mapped), pays(mapped, did)].map(|words| (plan.name.as_str(), words))
    });
    of_jobs(record, "page cache pinned for the GPU, cost outside the measured time:", lines)
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
    let by = |did: &str, by_kernel: u64, by_copy: u64| {
        let bytes = [by_kernel, by_copy].map(bytes);
        let moved = by_kernel + by_copy > 0;
        moved.then(|| format!("; {did} by kernel {}, by copy {}", bytes[0], bytes[1]))
    };
    let read = by("read", mapped.by_kernel_bytes, mapped.by_copy_bytes);
    let write = by("written", mapped.written_by_kernel_bytes, mapped.written_by_copy_bytes);
    format!(
        "{} of {files} pinned ({before}): mapped in {}, registered in {}, {after}; {} of CPU \
         time{}{}",
        bytes(mapped.pinned_bytes),
        time(mapped.map_ns),
        time(mapped.register_ns),
        time(mapped.cpu_ns),
        read.unwrap_or_default(),
        write.unwrap_or_default(),
    )
}

fn pays(mapped: &MappedResult, did: &str) -> String {
    let Some(BreakEven { against, reads_by_time, reads_by_cpu }) = &mapped.break_even else {
        let why = mapped.break_even_unknown.as_deref().unwrap_or("no reason was recorded");
        return format!("{did} of each byte until that pays: unknown: {why}");
    };
    let reads = |found: &Option<f64>, none: &str| {
        found.map_or_else(|| none.to_owned(), |reads| format!("{reads:.2}"))
    };
    format!(
        "{did} of each byte until that pays, against {against}: by time {}, by CPU time {}",
        reads(reads_by_time, "never, since it is not slower"),
        reads(reads_by_cpu, "never or unknown"),
    )
}
