//! Warnings in words: what was seen, why it matters for the number, which command comes next.

use std::fmt::{Display, Formatter, Result};

use gpuio_units::{format_bytes, human_bytes, human_count, human_ns};

use crate::WarningKind;

#[path = "warning_words_devices.rs"]
mod devices;

/// Below this time the start of a run weighs in its rate.
const SHORT_NS: u64 = 1_000_000_000;

/// Two or three short sentences on one line, with the figures that the warning rests on and a
/// flag to try. For people: the wording may change at any time; programs read the fields.
impl Display for WarningKind {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(&words(self))
    }
}

fn words(kind: &WarningKind) -> String {
    match kind {
        WarningKind::PageCacheServedReads { .. }
        | WarningKind::DirectButCached { .. }
        | WarningKind::Holes { .. }
        | WarningKind::DirectRefused { .. }
        | WarningKind::DataSetFitsMemory { .. }
        | WarningKind::BufferedWrites { .. }
        | WarningKind::SyncWrites
        | WarningKind::DirectWritesInDeviceCache { .. } => cache_words(kind),
        WarningKind::DepthOnSynchronousEngine { .. }
        | WarningKind::AsyncEngineOnBufferedFile { .. }
        | WarningKind::SplitByBlockLayer { .. }
        | WarningKind::EngineSteppedDown { .. } => engine_words(kind),
        WarningKind::RunTooShort { .. }
        | WarningKind::RateNotReached { .. }
        | WarningKind::NeverStarted { .. }
        | WarningKind::NotSteady { .. }
        | WarningKind::UnevenFinish { .. }
        | WarningKind::WorkBetweenIos { .. } => clock_words(kind),
        WarningKind::ReadAhead { .. }
        | WarningKind::OtherTraffic { .. }
        | WarningKind::ArrayPartUsed { .. }
        | WarningKind::PathIdle { .. }
        | WarningKind::DepthNotReached { .. }
        | WarningKind::OtherGpu { .. }
        | WarningKind::LinkDisagrees { .. } => devices::words(kind),
        WarningKind::SoftwareGpu
        | WarningKind::FaultsInjected { .. }
        | WarningKind::MoreThreadsThanCpus { .. }
        | WarningKind::FarFromGpu { .. }
        | WarningKind::Note { .. } => setting_words(kind),
    }
}

/// Where the bytes really were: page cache, device cache, medium.
fn cache_words(kind: &WarningKind) -> String {
    match kind {
        WarningKind::PageCacheServedReads { bytes, from_storage } => format!(
            "Storage delivered only {} of the {} read; the rest came from the page cache. The \
             rate is largely memory's, not the storage's. Read past the cache with --direct, or \
             take a --size well above memory.",
            size(*from_storage),
            size(*bytes),
        ),
        WarningKind::DirectButCached { bytes, from_storage } => format!(
            "O_DIRECT was in force, yet by the process's own count storage delivered only {} of \
             the {} read. The rest came from a cache of the file system, or by a way that this \
             count does not see (FUSE, some network file systems). Repeat with a --size well above \
             memory, or on the block device: gpuio bench --rw read --filename DEVICE.",
            size(*from_storage),
            size(*bytes),
        ),
        WarningKind::Holes { hole_bytes, unwritten_bytes, range_bytes, reads } => {
            holes_words((*hole_bytes, *unwritten_bytes, *range_bytes), *reads)
        }
        WarningKind::DirectRefused { filesystem } => format!(
            "{filesystem} takes no O_DIRECT, so all I/O went through the page cache. Reads that \
             hit the cache run at memory speed. Use --directory on another file system (ext4, \
             xfs), or say --buffered and take a --size well above memory."
        ),
        WarningKind::DataSetFitsMemory { data_bytes, memory_bytes } => format!(
            "The data set of {} fits into {} of memory. After one pass a buffered run reads from \
             the page cache and says nothing about storage. Use --direct, or a --size that takes \
             the data set to twice the memory.",
            size(*data_bytes),
            size(*memory_bytes),
        ),
        WarningKind::BufferedWrites { bytes, to_storage } => {
            let reached = match to_storage {
                // The device counts for everybody, pages of before among them.
                Some(reached) if reached <= bytes => {
                    format!("at most {} of them reached storage meanwhile", size(*reached))
                }
                Some(reached) => format!(
                    "storage took {} meanwhile from all who write to it, so how many of them \
                     reached it is not known",
                    size(*reached)
                ),
                None => "how many reached storage meanwhile is not known".to_owned(),
            };
            format!(
                "{} were written through the page cache, and {reached}. The rate is mostly that \
                 of copying into memory; the kernel writes the pages back later. Use --direct to \
                 measure the device, --sync to wait for stable storage.",
                size(*bytes),
            )
        }
        WarningKind::SyncWrites => "Each write waited until its data was on stable storage \
            (O_DSYNC). Latency contains a cache flush or forced write per I/O, which a plain \
            --direct write has not. That is right for logs and databases; to measure the data \
            path alone, repeat with --direct and without --sync."
            .to_owned(),
        WarningKind::DirectWritesInDeviceCache { device, known } => {
            device_cache_words(device, *known)
        }
        _ => String::new(),
    }
}

/// Of writes that passed the kernel's cache and met, or may have met, the device's own.
fn device_cache_words(device: &str, known: bool) -> String {
    let lead = if known {
        format!(
            "{device} has a volatile write cache (queue/write_cache: write back), which O_DIRECT \
             does not pass. A"
        )
    } else {
        format!(
            "O_DIRECT passes the kernel's cache only. The kernel does not say whether {device} has \
             a volatile one (queue/write_cache); if so, a"
        )
    };
    format!(
        "{lead} write counts as done before it is on the medium, and short runs look fast. Add \
         --sync to wait for the medium, or a --runtime long enough to fill the cache."
    )
}

fn holes_words((holes, unwritten, range): (u64, u64, u64), reads: bool) -> String {
    let absent = holes.saturating_add(unwritten);
    let kind = match (holes, unwritten) {
        (_, 0) => "are holes",
        (0, _) => "were allocated and were never written",
        _ => "are holes, or were allocated and never written",
    };
    let what = format!("{} of {} {kind}", size(absent), size(range));
    if reads {
        format!(
            "{what}: reads of them come from no device, the kernel makes zeros. The rate is not \
             storage's. Write the files in full first (cp --sparse=never), or let gpuio make its \
             own with --directory."
        )
    } else {
        format!(
            "{what}: the first write to each also allocates it, which costs more than writing over \
             data. Write the files in full first to measure that alone."
        )
    }
}

/// How the engine and the block layer changed what was asked.
fn engine_words(kind: &WarningKind) -> String {
    match kind {
        WarningKind::DepthOnSynchronousEngine { depth, engine } => format!(
            "--depth {depth} was asked for, but {engine} does one I/O at a time on this path. \
             The device never saw more than one I/O per thread, so deeper settings change \
             nothing. Use --engine io_uring --direct, or more --threads."
        ),
        WarningKind::AsyncEngineOnBufferedFile { engine } => format!(
            "{engine} ran on buffered files. The kernel may do such I/O inside the submitting \
             call or in helper threads, so the depth asked for may never have reached the \
             device. Add --direct; or compare with --engine psync and more --threads."
        ),
        WarningKind::SplitByBlockLayer { mean_io_bytes, mean_request_bytes, device } => {
            let did = if mean_request_bytes < mean_io_bytes { "cut" } else { "merged" };
            format!(
                "I/Os of {} on average reached {device} as requests of {}: the block layer {did} \
                 them. The device's IOPS and latency differ from those reported here. Compare \
                 with --bs {}, and with --direct if this run was buffered.",
                size(*mean_io_bytes),
                size(*mean_request_bytes),
                block_flag(*mean_request_bytes),
            )
        }
        WarningKind::EngineSteppedDown { asked, got, why } => {
            let why =
                if why.is_empty() { "no reason was given".to_owned() } else { why.join("; ") };
            format!(
                "The engine asked for was {asked}; what ran was {got} ({why}). The numbers are \
                 {got}'s and must not be filed under {asked}. Name it with --engine to make this \
                 choice stand, or remove the cause and repeat."
            )
        }
        _ => String::new(),
    }
}

/// What the time of the run contains.
fn clock_words(kind: &WarningKind) -> String {
    match kind {
        WarningKind::RunTooShort { elapsed_ns, ios } => format!(
            "{} I/Os in {} were measured. {}Use --runtime 30s or more, with --ramp 5s.",
            human_count(float(*ios)),
            human_ns(float(*elapsed_ns)),
            short_of(*elapsed_ns, *ios),
        ),
        WarningKind::RateNotReached { reached } => format!(
            "The load reached {:.1} % of the rate asked for. I/Os waited for their turn, and \
             total latency contains that wait: it grows for as long as the run lasts. Lower \
             --rate or --rate-iops, or raise --threads or --depth.",
            reached * 100.0,
        ),
        WarningKind::NeverStarted { ios, landed, longest_wait_ns } => format!(
            "{} I/Os were due before the end and never started, beside {} that landed. They are in \
             no latency and would be the longest: p99 and all above are at least what is shown, \
             the largest at least {}. Lower --rate or --rate-iops to what the load can keep.",
            human_count(float(*ios)),
            human_count(float(*landed)),
            human_ns(float(*longest_wait_ns)),
        ),
        WarningKind::NotSteady { asked, seen } => {
            let unit = if asked.ends_with('%') { " %" } else { "" };
            let seen = match seen {
                Some(seen) => format!("the last window had {:.3}{unit}", seen.abs()),
                None => "no window was full".to_owned(),
            };
            format!(
                "The load was to settle ({asked}) and had not when it ended: {seen}. The rate is \
                 that of a load under way to another. Give it a longer --runtime, or a --ramp that \
                 leaves the start out."
            )
        }
        WarningKind::UnevenFinish { first_done_ns, last_done_ns } => format!(
            "The first worker was done after {}, the last after {}. For the time between, fewer \
             threads were at work, and the rate over the whole time is lower than what all of \
             them reached. Use --runtime so that all stop together, or look at placement with \
             --dry-run.",
            human_ns(float(*first_done_ns)),
            human_ns(float(*last_done_ns)),
        ),
        WarningKind::WorkBetweenIos { between_ns, share } => format!(
            "Workers spent {} ({:.1} % of their time) on generating or checking data between \
             I/Os. Latencies do not contain it, but throughput and IOPS do: they are too low by \
             about that share. For speed, verify reads with --verify=pass and writes with \
             --verify=rewrite, and leave refill out.",
            human_ns(float(*between_ns)),
            share * 100.0,
        ),
        _ => String::new(),
    }
}

/// What so short a run lacks: I/Os for a percentile, by the rule of `stat`, or time for a rate.
fn short_of(elapsed_ns: u64, ios: u64) -> String {
    let mut lacks = String::new();
    let percentiles = [("p99", 0.99), ("p99.9", 0.999)];
    let unknown: Vec<&str> = percentiles
        .iter()
        .filter(|(_, quantile)| !gpuio_stat::enough_for(*quantile, ios))
        .map(|(name, _)| *name)
        .collect();
    if !unknown.is_empty() {
        let names = unknown.join(" and ");
        lacks.push_str(&format!("That is too few for {names}: ten must be slower than it. "));
    }
    if elapsed_ns < SHORT_NS {
        lacks.push_str("The start weighs heavily in a rate over so short a time. ");
    }
    lacks
}

/// What the settings and the machine make of the result.
fn setting_words(kind: &WarningKind) -> String {
    match kind {
        WarningKind::SoftwareGpu => "The GPU was gpuio's software GPU: host memory, with CPU \
            threads that copy. It shows that the path works, not how fast any hardware is; never \
            put these numbers beside a GPU's. On a machine with a GPU, repeat with --gpu 0."
            .to_owned(),
        WarningKind::FaultsInjected { inject } => format!(
            "Faults were injected on purpose ({inject}). Failures, retries and delays in this \
             result are gpuio's own doing and no fault of the storage. Leave --inject out to \
             measure."
        ),
        WarningKind::MoreThreadsThanCpus { threads, cpus } => format!(
            "{threads} threads shared {cpus} CPUs. Where more can run than there are CPUs, their \
             wait is in latencies, and nothing tells it from the device's. Use --threads {cpus} or \
             fewer with a higher --depth on --engine io_uring, or allow more CPUs."
        ),
        WarningKind::FarFromGpu { gpu, worker_node, gpu_node } => format!(
            "A worker on NUMA node {worker_node} fed GPU {gpu}, which hangs on node {gpu_node}. \
             Every byte crossed the link between the nodes, which costs throughput and adds \
             latency. Use --numa {gpu_node}, or a --gpu on node {worker_node}."
        ),
        WarningKind::Note { note } => {
            let end = if note.ends_with(['.', '!', '?']) { "" } else { "." };
            format!(
                "{note}{end} What the run did with its settings is in the plan: --dry-run shows it \
                 without a run."
            )
        }
        _ => String::new(),
    }
}

fn size(bytes: u64) -> String {
    human_bytes(float(bytes))
}

/// A block size near a device's mean request, as a flag takes it: the next lower power of two.
fn block_flag(bytes: u64) -> String {
    format_bytes(1 << bytes.max(1).ilog2())
}

#[expect(clippy::cast_precision_loss, reason = "three digits are printed")]
fn float(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
#[path = "warning_words_test.rs"]
mod test;
