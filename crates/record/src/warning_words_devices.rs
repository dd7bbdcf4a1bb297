//! Words of what devices counted beside what the tool did.

use gpuio_units::human_bytes;

use super::{float, size};
use crate::WarningKind;

/// Where counters of devices and the tool's own disagree.
pub(super) fn words(kind: &WarningKind) -> String {
    match kind {
        WarningKind::ReadAhead { bytes, from_storage, sequential } => {
            let why = if *sequential {
                "read-ahead fetched what nobody came to read"
            } else {
                "around each small read the kernel fetched more"
            };
            format!(
                "Storage delivered {} for the {} that were read: {why}. The device worked for \
                 bytes that are in no figure here. Use --direct to leave the page cache out.",
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
                "{device} {verb} {} during the run, {ours} of it from gpuio. {who}, so figures \
                 here are those of a shared device. See who it is with gpuio top or iotop, and \
                 repeat with nothing else at work; --runtime 60s shows whether it lasts.",
                size(*device_bytes),
            )
        }
        WarningKind::DepthNotReached { device, asked, seen } => format!(
            "{asked} I/Os could be under way, but {device} had only {seen:.1} on average. The rest \
             waited before it: for a CPU, for the GPU's copies, or in the file system. The device \
             may do more; compare with --path host, with more --threads, or with --engine \
             io_uring."
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
                "Of the {members} members of {array}{level}, {busiest} moved {} and {least} only \
                 {}: part of the array did the work. Blocks of one chunk, one stream on a mirror, \
                 or files on one part of a volume do that. Use a --bs of a whole stripe, more \
                 --threads, or a larger --size.",
                size(*busiest_bytes),
                size(*least_bytes),
            )
        }
        WarningKind::PathIdle { device, idle, busiest, busiest_bytes, policy } => {
            let policy = match policy.as_deref() {
                Some(policy) => format!("its policy is {policy}"),
                None => "its policy is not known".to_owned(),
            };
            format!(
                "Several ways lead to {device}: {busiest} carried {}, and {} next to nothing \
                 ({policy}). The rate is that of part of the links. If no way is down, a policy \
                 that spreads I/Os (round-robin, queue-depth) uses all; `gpuio topo --tree` shows \
                 them.",
                size(*busiest_bytes),
                idle.join(", "),
            )
        }
        _ => String::new(),
    }
}

fn of_links(kind: &WarningKind) -> String {
    match kind {
        WarningKind::OtherGpu { asked, other, other_bytes_per_s, bytes_per_s } => {
            let asked: Vec<String> = asked.iter().map(|gpu| format!("GPU {gpu}")).collect();
            format!(
                "GPU {other} carried {} while the load of {} was for {}. A library may take \
                 bytes through a GPU nearer to the storage, which costs throughput; or another \
                 program uses it. Repeat with --gpu {other}, or see what is near: gpuio topo.",
                rate(*other_bytes_per_s),
                rate(*bytes_per_s),
                asked.join(", "),
            )
        }
        WarningKind::LinkDisagrees { link, direction, bytes_per_s, counted_bytes_per_s } => {
            let verb = if direction == "write" { "writes" } else { "reads" };
            let why = if counted_bytes_per_s < bytes_per_s {
                "The bytes took another way (a second card, a cache, another GPU), or its \
                 counters do not see them"
            } else {
                "Others use it too, or much was sent again"
            };
            format!(
                "{link} counted {}, and {verb} of {} were to pass over it. {why}. Hold it against \
                 the witnesses: --evidence; gpuio top shows every link.",
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
