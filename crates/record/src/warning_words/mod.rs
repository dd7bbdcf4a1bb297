//! The text of warnings: what happened, what it means for the result, and what to do.

use std::fmt::{Display, Formatter, Result};

use gpuio_units::{format_bytes, human_bytes, human_count, human_ns};

use crate::WarningKind;

mod devices;
mod examples;
mod kinds;

pub use kinds::{WarningAbout, warning_kinds};

/// Below this time, start-up distorts the rate.
const SHORT_NS: u64 = 1_000_000_000;

/// Two to four short sentences on one line, with the figures behind the warning and a flag to try.
/// The text is for people and may change at any time; programs read the fields.
impl Display for WarningKind {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(&words(self))
    }
}

impl WarningKind {
    /// The stable name of the kind, which records, the column `warnings` of CSV and texts have and
    /// the reference has a page for: `holes`.
    #[must_use]
    pub fn id(&self) -> String {
        let fields = serde_json::to_value(self).unwrap_or_default();
        fields["warning"].as_str().unwrap_or_default().to_owned()
    }
}

fn words(kind: &WarningKind) -> String {
    match kind {
        WarningKind::PageCacheServedReads { .. }
        | WarningKind::MappedMemory { .. }
        | WarningKind::TierServedReads { .. }
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
        | WarningKind::Stopped { .. }
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

/// Which caches the bytes passed: page cache, device cache, or none.
fn cache_words(kind: &WarningKind) -> String {
    match kind {
        WarningKind::PageCacheServedReads { bytes, from_storage } => format!(
            "Only {} of the {} read came from storage; the rest came from the page cache. The \
             rate is mostly that of memory. To measure storage, add --direct, or use a data set \
             well above memory (--size, or more files).",
            size(*from_storage),
            size(*bytes),
        ),
        WarningKind::MappedMemory { bytes, set_up_ns } => format!(
            "The GPU read {} out of pages of the page cache that were pinned before the clock \
             started. The rate is that of memory and of the GPU's link, never that of storage: \
             what storage delivered is in the {} that it took to map and register the files. To \
             measure storage, use --path staged or gather with --direct.",
            size(*bytes),
            human_ns(float(*set_up_ns)),
        ),
        WarningKind::TierServedReads { from_memory, from_storage } => format!(
            "{} of the samples came from the tier in CPU memory (cache_memory), and {} from \
             storage. Bytes and rates of reading have only the latter; times of batches and \
             samples per second have both. For storage alone take the workload without a tier, \
             such as kv-cache --model llama3-8b.",
            size(*from_memory),
            size(*from_storage),
        ),
        WarningKind::DirectButCached { bytes, from_storage } => format!(
            "O_DIRECT was on, but the process's I/O counter shows only {} of the {} read from \
             storage. The rest came from a cache of the file system, or the counter does not \
             cover this file system (FUSE and some network file systems). Repeat with a data \
             set well above memory, or on the block device: gpuio bench --rw read --filename \
             DEVICE.",
            size(*from_storage),
            size(*bytes),
        ),
        WarningKind::Holes { hole_bytes, unwritten_bytes, range_bytes, reads } => {
            holes_words((*hole_bytes, *unwritten_bytes, *range_bytes), *reads)
        }
        WarningKind::DirectRefused { filesystem } => format!(
            "{filesystem} does not support O_DIRECT, so all I/O went through the page cache. \
             Cached reads run at memory speed. Use --directory on another file system (ext4, \
             xfs), or keep --buffered and use a data set well above memory."
        ),
        WarningKind::DataSetFitsMemory { data_bytes, memory_bytes } => format!(
            "The data set ({}) fits into memory ({}). After the first pass, buffered reads come \
             from the page cache, and the rate is not that of storage. Add --direct, or make \
             the data set twice as large as memory (--size, or more files).",
            size(*data_bytes),
            size(*memory_bytes),
        ),
        WarningKind::BufferedWrites { bytes, to_storage } => {
            buffered_write_words(*bytes, *to_storage)
        }
        WarningKind::SyncWrites => "Each write waited until its data was on stable storage \
            (O_DSYNC). Latency includes a cache flush or a forced write per I/O. This is right \
            for logs and databases; to measure the data path alone, use --direct without \
            --sync."
            .to_owned(),
        WarningKind::DirectWritesInDeviceCache { device, known } => {
            device_cache_words(device, *known)
        }
        _ => String::new(),
    }
}

/// How much of what was written to the page cache reached storage.
fn buffered_write_words(bytes: u64, to_storage: Option<u64>) -> String {
    let reached = match to_storage {
        // The device counts writes of all programs, and write-back of older pages.
        Some(reached) if reached <= bytes => {
            format!("at most {} of them reached storage during the run", size(reached))
        }
        Some(reached) => format!(
            "storage received {} during the run from all programs, so this job's part is \
             unknown",
            size(reached)
        ),
        None => "it is unknown how many reached storage during the run".to_owned(),
    };
    format!(
        "{} were written to the page cache, and {reached}. The rate is mostly that of \
         copying into memory; the kernel writes the data to storage later. Use --direct \
         to measure the device, or --sync to wait for stable storage.",
        size(bytes),
    )
}

/// Warns of O_DIRECT writes that may have stopped in the device's own write cache.
fn device_cache_words(device: &str, known: bool) -> String {
    let lead = if known {
        format!(
            "{device} has a volatile write cache (queue/write_cache: write back), and O_DIRECT \
             does not bypass it. A"
        )
    } else {
        format!(
            "O_DIRECT bypasses only the kernel's page cache. The kernel does not report whether \
             {device} has a volatile write cache (queue/write_cache); if so, a"
        )
    };
    format!(
        "{lead} write completes before its data is on the medium, so short runs look too fast. \
         Add --sync to wait for the medium, or use a --runtime long enough to fill the cache."
    )
}

fn holes_words((holes, unwritten, range): (u64, u64, u64), reads: bool) -> String {
    let absent = holes.saturating_add(unwritten);
    let kind = match (holes, unwritten) {
        (_, 0) => "are holes",
        (0, _) => "are allocated but were never written",
        _ => "are holes, or allocated but never written",
    };
    let what = format!("{} of {} {kind}", size(absent), size(range));
    if reads {
        format!(
            "{what}. Reads of them are not served by a device: the kernel returns zeros, so the \
             rate is not that of storage. Write the files in full first (cp --sparse=never), or \
             let gpuio create its own with --directory."
        )
    } else {
        format!(
            "{what}. The first write there also allocates the block, which costs more than \
             overwriting data. To measure only overwrites, write the files in full first, for \
             example with gpuio bench --rw write."
        )
    }
}

/// How the engine and the block layer changed the requested I/O.
fn engine_words(kind: &WarningKind) -> String {
    match kind {
        WarningKind::DepthOnSynchronousEngine { depth, engine } => format!(
            "--depth {depth} was requested, but {engine} does one I/O at a time on this path. The \
             device never had more than one I/O per thread, and a larger depth changes nothing. \
             Use --engine io_uring --direct, or more --threads."
        ),
        WarningKind::AsyncEngineOnBufferedFile { engine } => format!(
            "{engine} ran on buffered files. The kernel may do such I/O inside the submitting \
             call or in helper threads, so the device may never have seen the requested depth. \
             Add --direct, or compare with --engine psync and more --threads."
        ),
        WarningKind::SplitByBlockLayer { mean_io_bytes, mean_request_bytes, device } => {
            let did = if mean_request_bytes < mean_io_bytes { "split" } else { "merged" };
            format!(
                "I/Os of {} on average reached {device} as requests of {}: the block layer {did} \
                 them. IOPS and latency of the device are per request, those reported here per \
                 I/O. To see the device's own figures, compare with --bs {}.",
                size(*mean_io_bytes),
                size(*mean_request_bytes),
                block_flag(*mean_request_bytes),
            )
        }
        WarningKind::EngineSteppedDown { requested, actual, why } => {
            let why =
                if why.is_empty() { "no reason was reported".to_owned() } else { why.join("; ") };
            format!(
                "Requested engine: {requested}. Used engine: {actual} ({why}). The \
                 figures are those of {actual}. Remove the cause and repeat, or request {actual} \
                 with --engine."
            )
        }
        _ => String::new(),
    }
}

/// What the measured time includes.
fn clock_words(kind: &WarningKind) -> String {
    match kind {
        WarningKind::RunTooShort { elapsed_ns, ios, of_files } => format!(
            "Only {} I/Os in {} were measured. {}{}",
            human_count(float(*ios)),
            human_ns(float(*elapsed_ns)),
            short_of(*elapsed_ns, *ios),
            match of_files {
                false => "Use --runtime 30s or more, with --ramp 5s.",
                true => "Name more or larger files, or read them several times: --set loops=10.",
            },
        ),
        WarningKind::Stopped { stopped_ns, suspended_ns, times, left_out_ios } => format!(
            "The process stood still {}: {}. That time is in no rate and no latency, and the {} \
             I/Os in flight meanwhile are left out of all figures. Queues and caches may have \
             changed in it: repeat the run (same --runtime) without a stop.",
            match times {
                1 => "once".to_owned(),
                times => format!("{times} times"),
            },
            stood_still(*stopped_ns, *suspended_ns),
            human_count(float(*left_out_ios)),
        ),
        WarningKind::RateNotReached { reached } => format!(
            "The load reached only {:.1} % of the requested rate. I/Os queued before they \
             started; total latency includes this wait and grows for as long as the run lasts. \
             Lower --rate or --rate-iops, or raise --threads or --depth.",
            reached * 100.0,
        ),
        WarningKind::NeverStarted { ios, completed, longest_wait_ns, max_ns } => format!(
            "{} I/Os were due before the end but never started; {} completed. The missing ones \
             are in no latency figure and would be the slowest: {}the maximum is at least {}. \
             Lower --rate or --rate-iops to what the load can sustain.",
            human_count(float(*ios)),
            human_count(float(*completed)),
            bounded(*ios, *completed),
            human_ns(float((*longest_wait_ns).max(max_ns.unwrap_or(0)))),
        ),
        WarningKind::NotSteady { requested, observed } => {
            let unit = if requested.ends_with('%') { " %" } else { "" };
            let observed = match observed {
                Some(seen) => format!("the last window showed {:.3}{unit}", seen.abs()),
                None => "no window was complete".to_owned(),
            };
            format!(
                "The load did not become steady ({requested}) before it ended: {observed}. Its \
                 rate was still changing, so the result is not a steady-state rate. Use a longer \
                 --runtime, or a --ramp that excludes the start."
            )
        }
        WarningKind::UnevenFinish { first_done_ns, last_done_ns, of_files } => format!(
            "The first worker finished after {}, the last after {}. In between, fewer threads \
             were working, so the rate over the whole time is lower than what all threads reach \
             together. {}, or check the placement with --dry-run.",
            human_ns(float(*first_done_ns)),
            human_ns(float(*last_done_ns)),
            match of_files {
                false => "Use --runtime to stop all at once",
                true => "Lower --bs, so that threads share the files out more evenly",
            },
        ),
        WarningKind::WorkBetweenIos { between_ns, share } => format!(
            "Workers spent {} ({:.1} % of their time) generating or checking data between I/Os. \
             Latencies exclude this time, but throughput and IOPS include it and are too low by \
             about that share. To measure speed, use --verify=pass for reads and \
             --verify=rewrite for writes, which work after the run, and omit --refill.",
            human_ns(float(*between_ns)),
            share * 100.0,
        ),
        _ => String::new(),
    }
}

/// How long a process did not run, and why.
fn stood_still(stopped_ns: u64, suspended_ns: u64) -> String {
    let stopped = format!(
        "{} stopped (SIGSTOP, Ctrl-Z, a frozen cgroup or a paused machine)",
        human_ns(float(stopped_ns))
    );
    let suspended = format!("the machine slept for {}", human_ns(float(suspended_ns)));
    match (stopped_ns, suspended_ns) {
        (_, 0) => stopped,
        (0, _) => suspended,
        _ => format!("{stopped}, and {suspended}"),
    }
}

/// Which percentiles I/Os that are missing leave unknown: those above the share that completed. The
/// others move by as many ranks at most as I/Os are missing.
fn bounded(missing: u64, completed: u64) -> String {
    if completed == 0 {
        return String::new();
    }
    let share = float(missing) / float(completed.saturating_add(missing));
    let mut decimals = 1;
    let mut unit = 0.001;
    while share < unit && decimals < 6 {
        decimals += 1;
        unit /= 10.0;
    }
    let known = ((1.0 - share) / unit).floor() * unit * 100.0;
    format!("percentiles above the {known:.decimals$}th are at least the values shown, ")
}

/// What a short run lacks: I/Os for a percentile, by the rule of `stat`, or time for a rate.
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
        lacks.push_str(&format!("Too few I/Os for a reliable {names}. "));
    }
    if elapsed_ns < SHORT_NS {
        lacks.push_str("In such a short run, start-up distorts the rate. ");
    }
    lacks
}

/// How settings and the machine affect the result.
fn setting_words(kind: &WarningKind) -> String {
    match kind {
        WarningKind::SoftwareGpu => "This run used gpuio's software GPU (host memory and CPU \
            threads), so it shows that the path works, not how fast hardware is. Never compare \
            these numbers with those of a real GPU. On a machine with a GPU, repeat with --gpu \
            0."
        .to_owned(),
        WarningKind::FaultsInjected { inject } => format!(
            "Faults were injected (--inject {inject}). Failures, retries and delays in this \
             result come from gpuio, not from the storage. Omit --inject to measure."
        ),
        WarningKind::MoreThreadsThanCpus { threads, cpus } => format!(
            "{threads} threads shared {cpus} CPUs. Threads may wait for a CPU; latencies include \
             that wait, which looks like a wait for the device. Use at most --threads {cpus} \
             with a higher --depth on --engine io_uring, or allow more CPUs."
        ),
        WarningKind::FarFromGpu { gpu, worker_node, gpu_node } => format!(
            "A worker on NUMA node {worker_node} served GPU {gpu}, which is on node {gpu_node}. \
             Every byte crossed the link between the nodes, which lowers throughput and adds \
             latency. Use --numa {gpu_node}, or a --gpu on node {worker_node}."
        ),
        WarningKind::Note { note } => {
            let end = if note.ends_with(['.', '!', '?']) { "" } else { "." };
            format!(
                "{note}{end} To see the settings that a run uses, print the plan with \
                 --dry-run."
            )
        }
        _ => String::new(),
    }
}

fn size(bytes: u64) -> String {
    human_bytes(float(bytes))
}

/// A block size near the device's mean request size, as a value of `--bs`: the next lower power of
/// two.
fn block_flag(bytes: u64) -> String {
    format_bytes(1 << bytes.max(1).ilog2())
}

#[expect(clippy::cast_precision_loss, reason = "three digits are printed")]
fn float(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests;
