//! The settings of a training feed.

use gpuio_record::{Column, FeedPlan, JobPlan, TierPlan};
use gpuio_units::format_duration_ns;

use super::comment;
use super::keys::{blocks, name, set, text};

pub(super) fn write(out: &mut String, job: &JobPlan, feed: &FeedPlan) {
    if let Some(directory) = &job.directory {
        text(out, "directory", &name(directory));
        text(out, "file_prefix", &job.file_prefix);
    }
    set(out, "rw", if feed.writes { "write" } else { "read" });
    blocks(out, &job.blocks);
    set(out, "files", &feed.full_files.to_string());
    set(out, "scale", &feed.scale.to_string());
    comment(out, &format!("scale {}: {} of {} files", feed.scale, feed.files, feed.full_files));
    set(out, "samples_per_file", &feed.samples_per_file.to_string());
    let size = feed.sample;
    let deviation = match size.deviation_bytes {
        0 => String::new(),
        bytes => format!("+-{bytes}"),
    };
    set(out, "sample_size", &format!("{}{deviation}", size.mean_bytes));
    if feed.ratio > 1.0 {
        set(out, "ratio", &feed.ratio.to_string());
    }
    if !feed.columns.is_empty() {
        set(out, "columns", &columns(&feed.columns));
    }
    set(out, "sample_group", &feed.sample_group.to_string());
    set(out, "batch_samples", &feed.batch_samples.to_string());
    set(out, "sample_order", &feed.order.key());
    set(out, "epochs", &feed.epochs.to_string());
    set(out, "accelerators", &feed.accelerators.to_string());
    set(out, "readers", &feed.readers.to_string());
    set(out, "prefetch", &feed.prefetch.to_string());
    if let Some(tier) = feed.tier {
        set(out, "cache_memory", &tier.requested_bytes.to_string());
        let TierPlan { places, place_bytes, .. } = tier;
        comment(out, &format!("keeps {places} x {place_bytes} bytes of what is read, by LRU"));
    }
    set(out, "compute", &feed.compute.key());
    if feed.compute_ns > 0 {
        set(out, "compute_time", &format_duration_ns(feed.compute_ns));
    }
    if let Some(percent) = feed.least_utilisation_percent {
        set(out, "utilisation", &format!("{percent}"));
    }
    if let Some(slo) = feed.slo {
        let times = [slo.p95_ns, slo.p99_ns].map(format_duration_ns).join("/");
        set(out, "slo", &times);
    }
    if let Some(runtime) = job.stop.runtime_ns {
        set(out, "runtime", &format_duration_ns(runtime));
    }
}

/// Neighbours that are alike as one.
fn columns(columns: &[Column]) -> String {
    let alike = columns.chunk_by(|one, other| one == other);
    let words = alike.map(|run| {
        let read = if run[0].read { "+" } else { "" };
        match run.len() {
            1 => format!("{}{read}", run[0].bytes),
            count => format!("{}{read}*{count}", run[0].bytes),
        }
    });
    words.collect::<Vec<_>>().join(",")
}
