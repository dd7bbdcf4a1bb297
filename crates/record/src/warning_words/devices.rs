//! The text of warnings that compare device counters with gpuio's own counts.

use gpuio_units::human_bytes;

use super::{float, size};
use crate::WarningKind;

/// Differences between counters of devices and gpuio's own.
pub(super) fn words(kind: &WarningKind) -> String {
    match kind {
        WarningKind::ReadAhead { bytes, from_storage, sequential } => {
            let why = if *sequential {
                "the kernel's read-ahead fetched data that was not read"
            } else {
                "the kernel fetched more around each small read"
            };
            format!(
                "Storage delivered {} for the {} that were read: {why}. This extra work of the \
                 device is in no figure here. Use --direct to bypass the page cache.",
                size(*from_storage),
                size(*bytes),
            )
        }
        WarningKind::OtherTraffic { device, direction, ours_bytes, device_bytes } => {
            let (verb, who) = if direction == "write" {
                ("wrote", "Another program or write-back was active")
            } else {
                ("read", "Another program was active")
            };
            let ours = match ours_bytes {
                0 => "none".to_owned(),
                some => size(*some),
            };
            format!(
                "{device} {verb} {} during the run, {ours} of it from gpuio. {who}, so the \
                 results are those of a shared device. Find it with gpuio top or iotop, stop it \
                 and repeat; --runtime 60s shows whether the traffic lasts.",
                size(*device_bytes),
            )
        }
        WarningKind::DepthNotReached { device, requested, observed } => format!(
            "Queue depth not reached: {requested} I/Os were allowed in flight, but {device} had \
             {observed:.1} on average. The others waited for a CPU, for GPU copies or in the file \
             system, so the device may be able to do more. Compare with more --threads, or with \
             --path host and --engine io_uring if the job used others."
        ),
        WarningKind::ArrayPartUsed { .. } | WarningKind::PathIdle { .. } => of_members(kind),
        _ => of_links(kind),
    }
}

fn of_members(kind: &WarningKind) -> String {
    match kind {
        WarningKind::ArrayPartUsed {
            array,
            level,
            members,
            busiest,
            busiest_bytes,
            least,
            least_bytes,
        } => {
            let level = level.as_ref().map(|level| format!(" ({level})")).unwrap_or_default();
            format!(
                "Only a part of {array}{level} did the work: of its {members} members, {busiest} \
                 moved {} and {least} {}. Causes are blocks of one chunk, one stream on a mirror, \
                 or files on one part of a volume. Use a --bs of a full stripe, more --threads, \
                 or a larger --size.",
                size(*busiest_bytes),
                size(*least_bytes),
            )
        }
        WarningKind::PathIdle { device, idle, busiest, busiest_bytes, policy } => {
            let policy = match policy.as_deref() {
                Some(policy) => format!("its policy is {policy}"),
                None => "its policy is unknown".to_owned(),
            };
            format!(
                "Not all paths to {device} were used: {busiest} carried {}, and {} almost nothing \
                 ({policy}). The rate is that of only some of the links. If all paths are up, \
                 choose a policy that spreads I/Os (round-robin, queue-depth); `gpuio topo \
                 --tree` shows the paths.",
                size(*busiest_bytes),
                idle.join(", "),
            )
        }
        _ => String::new(),
    }
}

fn of_links(kind: &WarningKind) -> String {
    match kind {
        WarningKind::OtherGpu { requested, other, other_bytes_per_s, bytes_per_s } => {
            let requested: Vec<String> = requested.iter().map(|gpu| format!("GPU {gpu}")).collect();
            format!(
                "GPU {other} carried {} while {} were loaded on {}. A library may route data \
                 through a GPU nearer to the storage, which costs throughput; or another program \
                 uses that GPU. Repeat with --gpu {other}, or list the devices near each GPU: \
                 gpuio topo.",
                rate(*other_bytes_per_s),
                rate(*bytes_per_s),
                requested.join(", "),
            )
        }
        WarningKind::LinkDisagrees { link, direction, bytes_per_s, counted_bytes_per_s } => {
            let verb = if direction == "write" { "writes" } else { "reads" };
            let why = if counted_bytes_per_s < bytes_per_s {
                "The data took another route (a second card, a cache, another GPU), or the link's \
                 counters do not include it"
            } else {
                "Other programs use the link too, or much data was sent again"
            };
            format!(
                "{link} counted {}, but {verb} of {} should have passed over it. {why}. Compare \
                 with the evidence for the data path (--evidence) and watch the links with gpuio \
                 top.",
                rate(*counted_bytes_per_s),
                rate(*bytes_per_s),
            )
        }
        _ => String::new(),
    }
}

fn rate(bytes_per_s: u64) -> String {
    human_bytes(float(bytes_per_s)) + "/s"
}
