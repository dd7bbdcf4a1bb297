//! The table of warnings: a row holds all that is known of a kind of warning.
//!
//! A row has what was observed (its line in the reference), the name (in records in snake case),
//! how serious it is, when it may be ignored, its fields with their meaning and a value that a run
//! could have, and the text: two to four short sentences on one line, with the figures behind the
//! warning, what they mean for the result, and a flag or command to try. The text is for people and
//! may change at any time; programs read the fields.
// tidy: table, a row for each kind of warning

use std::fmt::{Display, Formatter};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use gpuio_base::stat::{Percentile, enough_for};
use gpuio_base::units::{digits, float, format_bytes, human_bytes, human_ns, many};

use super::advice::{Spell, advice};
use super::{Severity, cpu_takers};
use crate::facts::{DeviceNumber, IoLimit};
use crate::metric::percent;
use crate::{BytesOf, InjectedFaults, Towards, VerifyMode};

/// Below this time in nanoseconds a run says little: start-up distorts the rate, and caches, clocks
/// and governors have not settled. A run of one second is none: its last I/O ends a little before.
pub const SHORT_NS: u64 = 990_000_000;

/// Others' share of the processors' time from which on it is reported: daemons of a machine at rest
/// take a few per cent.
pub const OTHER_CPU_SHARE: f64 = 0.1;

warnings! {
    spell;
    /// Reads came from the page cache, not from storage.
    PageCacheServedReads: NotAsRequested, ignore:
        "The program that you imitate reads through the page cache too, and its data fits into \
         memory as here." {
        /// Bytes that the job read.
        bytes: u64 = 10 << 30,
        /// Bytes that storage delivered to the process during the run.
        from_storage: u64 = 1 << 20,
        /// The bytes to read are given: files, tensors or recorded calls, which O_DIRECT may not
        /// be able to read.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        of_files: bool = false,
    } => format!(
        "{}. The rate is mostly that of memory.{}",
        match (from_storage, size(*bytes)) {
            (0, all) => format!("All of the {all} read came from the page cache"),
            (some, all) => format!(
                "Only {} of the {all} read came from storage; the rest came from the page cache",
                size(*some)
            ),
        },
        match of_files {
            false => advice(spell, "To measure storage, ", &[
                "add <direct>",
                "use a data set well above memory (<size|files>, or more files)",
                "begin with a cold cache where each byte is read once (<invalidate>)",
            ]),
            true => advice(spell, "To measure storage, ", &[
                "begin each job and path with a cold cache (<invalidate>)",
            ]),
        },
    ),
    /// The GPU read or wrote pages of the page cache that were pinned before: no rate of storage.
    MappedMemory: Explained, ignore:
        "You measure how fast files that are already in memory reach the GPU." {
        /// Bytes that the job read and wrote.
        bytes: u64 = 11 << 30,
        /// Time to map and register the files, in which storage delivered what the page cache did
        /// not hold, or pages were allocated for writing, nanoseconds.
        set_up_ns: u64 = 104_000_000,
        /// Whether storage may have delivered bytes in that time: not where the page cache held
        /// all of them, or the job only writes. Absent in older records.
        from_storage: Option<bool> = Some(true),
    } => format!(
        "The GPU moved {} from or to pages of the page cache that were pinned before the clock \
         started. The rate is that of memory and of the GPU's link, not of storage{}.{}",
        size(*bytes),
        match from_storage {
            Some(false) => String::new(),
            _ => format!(
                ", which worked in the {} before, when files were registered",
                time(*set_up_ns)
            ),
        },
        advice(spell, "To measure storage, ", &[
            "use <path staged> or gather with <direct|invalidate>",
        ]),
    ),
    /// The GPU wrote pages that their files had lost.
    WrittenPagesLost: Invalid, ignore:
        "Never: bytes that were counted as written are not in the files." {
        /// Mapped bytes whose pages the files may have lost.
        lost_bytes: u64 = 4 << 20,
        /// Bytes that were mapped.
        mapped_bytes: u64 = 1 << 30,
    } => format!(
        "The files lost pages of {} of the {} that the GPU wrote in place: something made them \
         shorter, punched holes, or memory was so short that the kernel unmapped them. Bytes \
         counted as written may be in no file.{}",
        size(*lost_bytes),
        size(*mapped_bytes),
        advice(spell, "", &["let nothing else change the files", "use <path cached>"]),
    ),
    /// Files that a job reads and verifies were written anew or made longer before it.
    RemadeBeforeVerification: Explained, ignore:
        "You verify what this run reads, and not what an earlier one wrote." {
        /// Files that were written.
        files: u64 = 3,
    } => format!(
        "{} written anew or made longer before the reads: this run needs other data or more than \
         was there. So the verification says nothing of what an earlier run left there. To check \
         that, repeat with the size and the layout of the run that wrote it.",
        many(*files, "file was|files were"),
    ),
    /// Samples came from the job's own tier in host memory, and not from storage.
    TierServedReads: Explained, ignore:
        "You look at batches or samples per second, and the tier is part of what you measure." {
        /// Bytes that came from the tier.
        from_memory: u64 = 3 << 30,
        /// Bytes that the job read from files.
        from_storage: u64 = 5 << 30,
    } => format!(
        "{} of the samples came from the tier in CPU memory (cache_memory), {} from storage. Rates \
         of reading have only the latter, samples per second have both. For storage alone take a \
         workload without a tier, such as gpuio workload kv-cache --model llama3-8b.",
        size(*from_memory),
        size(*from_storage),
    ),
    /// O_DIRECT was requested, but data came from a cache.
    DirectButCached: NotAsRequested, ignore:
        "The file system is FUSE or on a network, and the server's or the client's own counters \
         show that the bytes were moved." {
        /// Bytes that the job read.
        bytes: u64 = 10 << 30,
        /// Bytes that storage delivered to the process during the run.
        from_storage: u64 = 2 << 20,
    } => format!(
        "O_DIRECT was on, but by the process's I/O counter {} of the {} came from storage. \
         The rest came from memory (tmpfs) or another cache, or this file system does not count \
         (FUSE, some on a network). To measure a drive, repeat in a directory on one.",
        match from_storage {
            0 => "none".to_owned(),
            some => format!("only {}", size(*some)),
        },
        size(*bytes),
    ),
    /// Some bytes of the job's files are in holes or extents that were never written.
    Holes: NotAsRequested, ignore:
        "You measure sparse files on purpose, or the cost of first writes." {
        /// Bytes in holes.
        hole_bytes: u64 = 12 << 20,
        /// Bytes in extents that were allocated and never written.
        unwritten_bytes: u64 = 0,
        /// Bytes of its files that the job uses.
        range_bytes: u64 = 64 << 20,
        /// Whether the job reads.
        reads: bool = true,
    } => of_holes((*hole_bytes, *unwritten_bytes, *range_bytes), *reads, spell),
    /// The file system does not support O_DIRECT.
    DirectRefused: NotAsRequested, ignore:
        "You measure this file system for programs that use the page cache." {
        /// File system type.
        filesystem: String = "tmpfs".to_owned(),
    } => format!(
        "{filesystem} does not support O_DIRECT, so all I/O went through the page cache. \
         Cached reads run at memory speed.{}",
        advice(spell, "", &[
            "use <directory> on another file system (ext4, xfs)",
            "keep <buffered> and use a data set well above memory",
        ]),
    ),
    /// A depth above 1 on an engine and path that do one I/O at a time.
    DepthOnSynchronousEngine: Explained, ignore:
        "You measure one I/O at a time per thread, and read the depth as 1." {
        /// Requested depth.
        depth: u32 = 32,
        /// The engine.
        engine: String = "psync".to_owned(),
    } => format!(
        "A depth of {depth} was requested, but {engine} does one I/O at a time on this path. The \
         device never had more than one I/O per thread, and a larger depth changes nothing.{}",
        advice(spell, "", &["use <engine io_uring> <direct>", "use more <threads|readers>"]),
    ),
    /// An asynchronous engine on buffered files.
    AsyncEngineOnBufferedFile: Explained, ignore:
        "You compare programs that do the same, and claim no queue depth." {
        /// The engine.
        engine: String = "libaio".to_owned(),
    } => format!(
        "{engine} ran on buffered files. The kernel may do such I/O inside the submitting \
         call or in helper threads, so the device may never have seen the requested depth.{}",
        advice(spell, "", &[
            "add <direct>",
            "compare with <engine psync> and more <threads|readers>",
        ]),
    ),
    /// The block layer split or merged I/Os.
    SplitByBlockLayer: Explained, ignore:
        "You report the I/Os of the program and not the requests of the device." {
        /// Mean size of the job's I/Os.
        mean_io_bytes: u64 = 1 << 20,
        /// Mean size of the device's requests.
        mean_request_bytes: u64 = 250_000,
        /// The device.
        device: String = "nvme0n1".to_owned(),
        /// Whether they were buffered reads, whose requests read-ahead makes.
        #[serde(default)]
        ahead: bool = false,
    } => if *ahead {
        format!(
            "Buffered reads of {} on average reached {device} as requests of {}: read-ahead makes \
             them (queue/read_ahead_kb), whatever the block size. IOPS and latency of the device \
             are per request, those reported here per I/O.",
            size(*mean_io_bytes),
            size(*mean_request_bytes),
        )
    } else {
        let did = if mean_request_bytes < mean_io_bytes { "split" } else { "merged" };
        format!(
            "I/Os of {} on average reached {device} as requests of {}: the block layer {did} \
             them. IOPS and latency of the device are per request, those reported here per \
             I/O.{}",
            size(*mean_io_bytes),
            size(*mean_request_bytes),
            // The next lower power of two.
            advice(spell, "To see the device's own figures, ", &[&format!(
                "compare with <bs {}>",
                format_bytes(1 << (*mean_request_bytes).max(1).ilog2()),
            )]),
        )
    },
    /// Buffered writes without sync: mostly memory speed.
    BufferedWrites: Mixed, ignore:
        "You measure how fast a program gets rid of its data, and it never waits for storage." {
        /// Bytes written by the job.
        bytes: u64 = 4 << 30,
        /// Bytes that the device received during the run from all programs, where known: an upper
        /// bound for the job.
        to_storage: Option<u64> = Some(1 << 30),
    } => of_buffered_writes(*bytes, *to_storage, spell),
    /// Synchronous writes: each waits for stable storage.
    SyncWrites: Explained, ignore:
        "The load stands for a log, a database or anything else that waits for each write."
        => format!(
            "Each write waited until its data was on stable storage (O_DSYNC). Latency includes a \
             cache flush or a forced write per I/O. This is right for logs and databases.{}",
            advice(spell, "To measure the data path alone, ", &["use <direct> without <sync>"]),
        ),
    /// O_DIRECT writes may still sit in the device's volatile cache.
    DirectWritesInDeviceCache: Mixed, ignore:
        "The device has capacitors that keep its cache through a power failure (most drives for \
         servers), or the program accepts the loss." {
        /// The device.
        device: String = "nvme0n1".to_owned(),
        /// Whether the kernel reports such a cache; `false` if it does not report it either way. If
        /// it reports that there is none, there is no warning.
        #[serde(default)]
        known: bool = false,
    } => of_device_cache(device, *known, spell),
    /// The run was too short for its percentiles or rate.
    RunTooShort: Imprecise, ignore:
        "You only try whether the command works." {
        /// Time measured.
        elapsed_ns: u64 = 120_000_000,
        /// I/Os measured.
        ios: u64 = 480,
        /// All of the named files is read, so that these say how long the run is.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        of_files: bool = false,
        /// It ended by its bytes, so that more time alone does not make it longer.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        of_bytes: bool = false,
        /// The key that these bytes follow from; absent in older records.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bytes_of: Option<BytesOf> = None,
    } => format!(
        "{}{}",
        short_of(*elapsed_ns, *ios),
        match of_files {
            false if *of_bytes => {
                let time = long_enough(*elapsed_ns, *ios);
                format!(" {}", BytesOf::longer(*bytes_of, time))
            }
            false => {
                let time = long_enough(*elapsed_ns, *ios);
                advice(spell, "", &[&format!("use <runtime {time}s> or more, with <ramp 5s>")])
            }
            // A further pass reads what the first one left in the page cache, which other warnings
            // would then complain of.
            true => {
                let again = match spell("invalidate") {
                    Some(flag) => format!("repeat the run with {flag}, from a cold cache"),
                    None => "repeat the run".to_owned(),
                };
                advice(spell, "", &["name more or larger files", &again])
            }
        },
    ),
    /// Blocks of several sizes were cut, so that other sizes ran than those of the list.
    BlocksCut: Explained, ignore:
        "The load that you imitate accesses each byte once, as fio does with its map of random \
         blocks: it cuts them, too." {
        /// I/Os, ramp included.
        ios: u64 = 1582,
        /// How many of them were shorter than the size that was drawn for them.
        cut_ios: u64 = 310,
        /// The sum of the sizes that were drawn.
        drawn_bytes: u64 = 31_640_000,
        /// The sum of the sizes of the I/Os.
        bytes: u64 = 16 << 20,
        /// Whether the order is random.
        random: bool = true,
    } => format!(
        "{} of {} shorter than the size drawn for them: a block ends {}. The mean size that ran \
         is {}, that of the drawn sizes is {}.{}",
        count(*cut_ios),
        many(*ios, "I/O was|I/Os were"),
        match random {
            true => "before what its pass has accessed, and where its region ends",
            false => "where its region ends",
        },
        mean(*bytes, *ios),
        mean(*drawn_bytes, *ios),
        match random {
            true => advice(spell, "To have the drawn sizes, access some bytes twice: ", &[
                "<coverage=0>",
            ]),
            false => String::new(),
        },
    ),
    /// Data set smaller than memory on a buffered run.
    DataSetFitsMemory: Mixed, ignore:
        "The real data set fits into memory as well." {
        /// Bytes of the data set.
        data_bytes: u64 = 8 << 30,
        /// Usable memory.
        memory_bytes: u64 = 64 << 30,
        /// The bytes to read are given: files, tensors or recorded calls.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        of_files: bool = false,
    } => format!(
        "The data set ({}) fits into memory ({}). After the first pass, buffered reads come \
         from the page cache, and the rate is not that of storage.{}",
        size(*data_bytes),
        size(*memory_bytes),
        match of_files {
            false => advice(spell, "", &[
                "add <direct>",
                "make the data set twice as large as memory (<size|files>, or more files)",
            ]),
            true => advice(spell, "", &["make the first pass a cold one: <invalidate>"]),
        },
    ),
    /// The requested engine was replaced by another.
    EngineSteppedDown: NotAsRequested, ignore:
        "The engine that ran is the one that your programs will have on this machine." {
        /// Requested engine.
        #[serde(alias = "asked")]
        requested: String = "io_uring".to_owned(),
        /// Engine that ran.
        #[serde(alias = "got")]
        actual: String = "psync".to_owned(),
        /// Reasons.
        why: Vec<String> = vec!["kernel.io_uring_disabled is 2".to_owned()],
    } => {
        let why = match why.as_slice() {
            [] => "no reason was reported".to_owned(),
            why => why.join("; "),
        };
        format!(
            "Requested engine: {requested}. Used engine: {actual} ({why}). The \
             figures are those of {actual}.{}",
            // `io_uring (fixed buffers)` is a form of io_uring, which can't be requested.
            match actual.split(' ').next() {
                Some(name) if name == actual => advice(spell, "", &[
                    "remove the cause and repeat",
                    &format!("request it: <engine {actual}>"),
                ]),
                _ => " Remove the cause and repeat.".to_owned(),
            },
        )
    },
    /// The process was stopped while the clock ran, or the machine slept.
    Stopped: Mixed, ignore:
        "The stop was short beside the run, and repeated runs agree." {
        /// Time in which the process was stopped, which no figure includes, nanoseconds.
        stopped_ns: u64 = 6_000_000_000,
        /// Time in which the machine was suspended, which no figure includes, nanoseconds.
        suspended_ns: u64 = 0,
        /// How often.
        times: u32 = 1,
        /// I/Os that were in flight meanwhile, and are left out.
        left_out_ios: u64 = 32,
    } => format!(
        "The process stood still {}: {}. That time is in no rate and no latency, and the {} \
         I/Os in flight meanwhile are left out of all figures. Queues and caches may have \
         changed in it: repeat the run without a stop.",
        match times {
            1 => "once".to_owned(),
            times => format!("{times} times"),
        },
        stood_still(*stopped_ns, *suspended_ns),
        count(*left_out_ios),
    ),
    /// The requested rate was not reached.
    RateNotReached: NotAsRequested, ignore:
        "You search the rate at which the storage falls behind." {
        /// Share of the requested rate that was reached, 0 to 1.
        reached: f64 = 0.731,
    } => format!(
        "The load reached only {:.1} % of the requested rate. I/Os queued before they \
         started; total latency includes this wait and grows for as long as the run lasts.{}",
        reached * 100.0,
        advice(spell, "", &["lower <rate> or <rate_iops>", "raise <threads> or <depth>"]),
    ),
    /// I/Os were due before the end and never started.
    NeverStarted: NotAsRequested, ignore:
        "Their share is far below that of the highest percentile that you read." {
        /// How many.
        ios: u64 = 1_200,
        /// How many were started and completed.
        #[serde(alias = "landed")]
        completed: u64 = 48_000,
        /// How long the first of them was overdue, nanoseconds.
        longest_wait_ns: u64 = 250_000_000,
        /// Largest latency of those that completed; absent in old records.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_ns: Option<u64> = Some(180_000_000),
    } => format!(
        "{} due before the end but never started; {} completed. The missing ones \
         are in no latency figure and would be the slowest: {}the maximum is at least {}.{}",
        many(*ios, "I/O was|I/Os were"),
        count(*completed),
        bounded(*ios, *completed),
        time((*longest_wait_ns).max(max_ns.unwrap_or(0))),
        advice(spell, "", &["lower <rate> or <rate_iops> to what the load can sustain"]),
    ),
    /// The job ended before it was steady by the requested criterion.
    NotSteady: NotAsRequested, ignore:
        "You look at the course of the run (its series) and not at one rate." {
        /// The requested criterion.
        #[serde(alias = "asked")]
        requested: String = "iops:2%".to_owned(),
        /// Slope or deviation of the last window, in the limit's unit; absent where no window was
        /// full.
        #[serde(alias = "seen")]
        observed: Option<f64> = Some(3.21),
    } => {
        let unit = if requested.ends_with('%') { " %" } else { "" };
        let observed = match observed {
            Some(seen) => format!("the last window showed {:.3}{unit}", seen.abs()),
            None => "no window was complete".to_owned(),
        };
        format!(
            "The load did not become steady ({requested}) before it ended: {observed}. Its \
             rate was still changing, so the result is not a steady-state rate.{}",
            advice(spell, "Use ", &["a longer <runtime>", "a <ramp> that excludes the start"]),
        )
    },
    /// Workers finished at very different times.
    UnevenFinish: Mixed, ignore:
        "The threads have unequal work on purpose, and you compare times to the end." {
        /// First worker done.
        first_done_ns: u64 = 4_000_000_000,
        /// Last worker done.
        last_done_ns: u64 = 9_500_000_000,
        /// All of the named files is read, so that the time has no end of its own.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        of_files: bool = false,
    } => format!(
        "The first worker finished after {}, the last after {}. In between, fewer threads \
         were working, so the rate over the whole time is lower than what all threads reach \
         together.{}",
        time(*first_done_ns),
        time(*last_done_ns),
        advice(spell, "", &[
            match of_files {
                false => "use <runtime> to stop all at once",
                true => "lower <bs>, so that threads share the files out more evenly",
            },
            "check the placement with --dry-run",
        ]),
    ),
    /// The GPUs are gpuio's software GPU.
    SoftwareGpu: Invalid, ignore:
        "You test a setup, a script or the data, and compare no speed."
        => format!(
            "This run used gpuio's software GPU (host memory and CPU threads), so it shows that \
             the path works, not how fast hardware is. Never compare these numbers with those of a \
             real GPU.{}",
            advice(spell, "On a machine with a GPU, ", &["repeat with <gpu 0>"]),
        ),
    /// Faults were injected.
    FaultsInjected: Invalid, ignore:
        "You test how programs or reports take faults." {
        /// As given; `rate`, `iops` and `stall` are of each thread.
        inject: String = "short=5%,delay=20ms@10%".to_owned(),
        /// How many, by kind.
        #[serde(default, skip_serializing_if = "InjectedFaults::is_none")]
        made: InjectedFaults = InjectedFaults { short: 53, delay: 102, ..Default::default() },
        /// Those in the verification after the measurement.
        #[serde(default, skip_serializing_if = "InjectedFaults::is_none")]
        after: InjectedFaults = InjectedFaults { delay: 7, ..Default::default() },
        /// Kinds that were asked for and did not occur once.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        missing: Vec<String> = vec!["eio".to_owned()],
    } => format!(
        "Faults were injected ({inject}{}). Failures, retries and delays in this \
         result come from gpuio, not from the storage.{}{}",
        [made.words(), after.words()]
            .into_iter()
            .zip([": ", "; in the verification: "])
            .filter(|(all, _)| !all.is_empty())
            .map(|(all, before)| format!("{before}{all}"))
            .collect::<String>(),
        match missing.as_slice() {
            [] => String::new(),
            all => format!(
                " None occurred of: {}; this result says nothing about how \
                 they are taken.",
                all.join(", ")
            ),
        },
        advice(spell, "To measure, ", &["omit <inject>"]),
    ),
    /// Data was generated or checked between I/Os: the run time includes it.
    WorkBetweenIos: Mixed, ignore:
        "The share is smaller than the difference that you look for, or you only read latencies." {
        /// Time, summed over workers.
        between_ns: u64 = 3_000_000_000,
        /// Share of the time of the workers that did I/O, 0 to 1.
        share: f64 = 0.25,
        /// The data has fio's headers, which gpuio's verification after the run refuses.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        fio_headers: bool = false,
        /// Reads are verified between I/Os.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        reads: bool = true,
        /// Data of verified writes is generated, or read back, between I/Os.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        writes: bool = true,
        /// The buffer is filled anew before each write.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        refill: bool = true,
    } => format!(
        "Workers spent {} ({:.1} % of their time) generating or checking data between I/Os. \
         Latencies exclude it; throughput and IOPS are too low by at most that share.{}",
        time(*between_ns),
        share * 100.0,
        advice(spell, "To measure speed, ", &[
            &work_left_out(*fio_headers, (*reads, *writes), *refill),
        ]),
    ),
    /// Steps of a training feed computed longer than planned.
    ComputeOverran: Mixed, ignore:
        "The utilisation that was to be reached was reached all the same." {
        /// How much longer, per cent of the planned time.
        percent: f64 = 70.0,
    } => format!(
        "Steps computed {percent:.0} % longer than planned (compute_time): the CPU or the GPU was \
         busy. Utilisation counts the planned time, as in MLPerf Storage, so this part of what it \
         lacks is not the storage's.{}",
        advice(spell, "Repeat the run ", &["on an idle machine", "with a longer <compute_time>"]),
    ),
    /// Steps of a training feed computed shorter than planned.
    ComputeFellShort: Mixed, ignore:
        "The utilisation that was to be reached was reached all the same: storage kept up with \
         more than was asked." {
        /// How much shorter, per cent of the planned time.
        percent: f64 = 27.0,
    } => format!(
        "Steps computed {percent:.0} % shorter than planned (compute_time): the kernel was \
         calibrated beside other work. Utilisation counts the time that they took: it is that of \
         faster accelerators.{}",
        advice(spell, "Repeat the run ", &["on an idle machine", "with a longer <compute_time>"]),
    ),
    /// More threads than allowed CPUs.
    MoreThreadsThanCpus: Explained, ignore:
        "The CPUs were mostly idle (the column CPUs), so that the threads waited for storage." {
        /// Threads of the group.
        threads: u32 = 64,
        /// CPUs allowed.
        cpus: u32 = 8,
        /// Where their number comes from.
        #[serde(default, skip_serializing_if = "ThreadsOf::is_job")]
        of: ThreadsOf = ThreadsOf::Job,
    } => format!(
        "{threads} threads shared {cpus} CPUs. Threads may wait for a CPU; latencies include \
         that wait, which looks like a wait for the device.{}",
        match of {
            ThreadsOf::Job => advice(spell, "", &[
                &format!(
                    "use at most <threads {cpus}>, with a higher <depth> where the engine takes it \
                     (<engine io_uring>)"
                ),
                "allow more CPUs",
            ]),
            ThreadsOf::Feed => advice(spell, "", &[
                "use fewer <readers> or <accelerators>",
                "allow more CPUs",
            ]),
            ThreadsOf::Trace => " Allow more CPUs: the trace has so many threads.".to_owned(),
        }
    ),
    /// A worker ran on another NUMA node than its GPU.
    FarFromGpu: Explained, ignore:
        "The program runs on that node too, or the link between the nodes is much faster than \
         the rate." {
        /// GPU index.
        gpu: u32 = 3,
        /// Node of the worker.
        worker_node: u32 = 0,
        /// Node of the GPU.
        gpu_node: u32 = 1,
    } => format!(
        "A worker on NUMA node {worker_node} served GPU {gpu}, which is on node {gpu_node}. \
         Every byte crossed the link between the nodes, which lowers throughput and adds \
         latency.{}",
        advice(spell, "Use ", &[
            &format!("<numa {gpu_node}>"),
            &format!("a <gpu> on node {worker_node}"),
        ]),
    ),
    /// The kernel read more from storage than the job requested.
    ReadAhead: Explained, ignore:
        "The program reads through the page cache, and the device has rate to spare." {
        /// Bytes that the jobs of the group read.
        bytes: u64 = 1 << 30,
        /// Bytes that storage delivered to the process during the run.
        from_storage: u64 = 32 << 30,
        /// Whether blocks were read sequentially.
        sequential: bool = false,
    } => {
        let why = if *sequential {
            "the kernel's read-ahead fetched data that was not read"
        } else {
            "the kernel fetched more around each small read"
        };
        format!(
            "Storage delivered {} for the {} that were read: {why}. This extra work of the \
             device is in no figure here.{}",
            size(*from_storage),
            size(*bytes),
            advice(spell, "", &["use <direct> to bypass the page cache"]),
        )
    },
    /// A device moved more bytes than this process caused.
    OtherTraffic: Mixed, ignore:
        "The bytes of others are few beside those of gpuio, or the other traffic belongs to what \
         you measure." {
        /// The device, or devices joined by `+`.
        device: String = "nvme0n1".to_owned(),
        /// `read` or `write`.
        direction: String = "read".to_owned(),
        /// Bytes that this process moved or caused to be moved.
        ours_bytes: u64 = 1 << 30,
        /// Bytes that the device counted.
        device_bytes: u64 = 3 << 30,
    } => {
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
             and repeat.",
            size(*device_bytes),
        )
    },
    /// Others used the processors.
    OtherCpuTime: Mixed, ignore:
        "The other work belongs to what you measure." {
        /// Processors that this process may use.
        cpus: u32 = 8,
        /// Their time during the run, nanoseconds.
        all_ns: u64 = 80_000_000_000,
        /// The part of this process.
        ours_ns: u64 = 9_600_000_000,
        /// The part of other programs.
        programs_ns: u64 = 51_200_000_000,
        /// The part of the kernel that was not on behalf of this process: other programs' calls,
        /// and its own threads, such as those of encryption, network storage and write-back.
        kernel_ns: u64 = 4_000_000_000,
        /// The part that the hypervisor gave to other virtual machines.
        stolen_ns: u64 = 0,
    } => {
        let parts = cpu_takers(*all_ns, [*programs_ns, *kernel_ns, *stolen_ns]);
        let parts = parts.map(|(who, share)| format!("{who} {share} %")).collect::<Vec<_>>();
        format!(
            "gpuio had {} % of the time of its {cpus} CPUs during the run, {}. A thread that \
             waits for a CPU looks like one that waits for a device, so the results are those of \
             a shared machine. Stop the programs that top shows and repeat.",
            percent(float(*ours_ns) * 100.0 / float(*all_ns).max(1.0)),
            parts.join(", "),
        )
    },
    /// Members of an array carried unequal parts of its traffic.
    ArrayPartUsed: Explained, ignore:
        "The data lies on that part of the array in real use as well." {
        /// The array or volume.
        array: String = "md0".to_owned(),
        /// Its level or kind, where known: `raid0`, `LVM`.
        level: Option<String> = Some("raid0".to_owned()),
        /// Members that were counted.
        members: u32 = 4,
        /// The member that moved most.
        busiest: String = "nvme3n1".to_owned(),
        /// Its bytes, both directions.
        busiest_bytes: u64 = 9 << 30,
        /// The member that moved least.
        least: String = "nvme4n1".to_owned(),
        /// Its bytes, both directions.
        least_bytes: u64 = 0,
    } => {
        let level = level.as_ref().map(|level| format!(" ({level})")).unwrap_or_default();
        format!(
            "Only a part of {array}{level} did the work: of its {members} members, {busiest} \
             moved {} and {least} {}. Causes are blocks of one chunk, one stream on a mirror, \
             or files on one part of a volume.{}",
            size(*busiest_bytes),
            size(*least_bytes),
            advice(spell, "Use ", &[
                "a <bs> of a full stripe",
                "more <threads|readers>",
                "a larger <size|files>",
            ]),
        )
    },
    /// Several paths lead to a device, and some of them carried almost nothing.
    PathIdle: Explained, ignore:
        "The other paths are for failures only, and one path is enough for the rate." {
        /// The device.
        device: String = "nvme0n1".to_owned(),
        /// Paths that carried almost nothing.
        idle: Vec<String> = vec!["nvme0c1n1".to_owned()],
        /// The path that carried most.
        busiest: String = "nvme0c0n1".to_owned(),
        /// Its bytes, both directions.
        busiest_bytes: u64 = 5 << 30,
        /// How paths are chosen, where known.
        policy: Option<String> = Some("numa".to_owned()),
    } => {
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
    },
    /// A control group limits the I/O of this process.
    CgroupLimitsIo: Explained, ignore:
        "The program that you imitate runs below the same limit." {
        /// The limit.
        limit: IoLimit = example_limit(),
    } => format!(
        "This process's cgroup limits {}. No load of this process gets more there, whatever the \
         device can do. To measure the device, run outside this cgroup, or raise the limit in {}: \
         gpuio check --explain io-limit.",
        limit.words(),
        limit.path,
    ),
    /// A device had fewer requests in flight than requested.
    DepthNotReached: Explained, ignore:
        "The rate is at a known limit (CPU, link, --rate), so that more I/Os in flight would \
         change nothing." {
        /// The device.
        device: String = "sda".to_owned(),
        /// I/Os that the jobs could have in flight, on average: none of a feed's reader that is as
        /// far ahead as it may be.
        #[serde(alias = "asked")]
        requested: u64 = 256,
        /// I/Os in flight at the device on average: its requests in flight times the I/Os in each.
        #[serde(alias = "seen")]
        observed: f64 = 3.2,
        /// The limit of this process's control group on the device, where it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<String> = None,
    } => {
        let why = match limit {
            Some(limit) => format!(
                "This process's cgroup limits {limit}; the device may be able to do more. Run \
                 outside it or raise the limit: gpuio check --explain io-limit."
            ),
            None => format!(
                "The others waited for a CPU, for GPU copies or in the file system; the device may \
                 be able to do more.{}",
                advice(spell, "Compare with ", &[
                    "more <threads|readers>",
                    "<path host> and <engine io_uring> if the job used others",
                ]),
            ),
        };
        format!(
            "Queue depth not reached: {requested} I/Os were allowed in flight, {device} had \
             {observed:.1} of them on average. {why}"
        )
    },
    /// A GPU that was not requested carried traffic like that of the jobs.
    OtherGpu: NotAsRequested, ignore:
        "You know the program on the other GPU." {
        /// Requested GPUs, as NVML numbers them.
        #[serde(alias = "asked")]
        requested: Vec<u32> = vec![12],
        /// The other GPU.
        other: u32 = 0,
        /// The bytes on its PCIe link in the busier direction, per second.
        other_bytes_per_s: u64 = 5 << 30,
        /// The bytes that the jobs moved, per second.
        bytes_per_s: u64 = 4 << 30,
    } => {
        let requested: Vec<String> = requested.iter().map(|gpu| format!("GPU {gpu}")).collect();
        format!(
            "GPU {other} carried {} while {} were loaded on {}. A library may route data \
             through a GPU nearer to the storage, which costs throughput; or another program \
             uses that GPU.{}",
            rate(*other_bytes_per_s),
            rate(*bytes_per_s),
            requested.join(", "),
            advice(spell, "", &[
                &format!("repeat with <gpu {other}>"),
                "list the devices near each GPU: gpuio topo",
            ]),
        )
    },
    /// A link carried much less or much more than should have passed over it.
    LinkDisagrees: Mixed, ignore:
        "You know the other traffic on the link, or the path is one that does not use it." {
        /// The link: an interface with its RDMA ports, or a GPU's PCIe link.
        link: String = "ib0".to_owned(),
        /// `read` or `write`.
        direction: String = "read".to_owned(),
        /// Bytes per second that should have passed.
        bytes_per_s: u64 = 8 << 30,
        /// Bytes per second that the link counted.
        counted_bytes_per_s: u64 = 1 << 30,
    } => {
        let verb = if direction == "write" { "writes" } else { "reads" };
        let why = if counted_bytes_per_s < bytes_per_s {
            "The data took another route (a second card, a cache, another GPU), or the link's \
             counters do not include it"
        } else {
            "Other programs use the link too, or much data was sent again"
        };
        format!(
            "{link} counted {}, but {verb} of {} should have passed over it. {why}. Compare \
             with the evidence for the data path (gpuio show --evidence) and watch the links with \
             gpuio top.",
            rate(*counted_bytes_per_s),
            rate(*bytes_per_s),
        )
    },
    /// A setting that was accepted but has no effect.
    Note: Note, ignore:
        "You know that the setting does nothing here; it was accepted so that existing files \
         keep running." {
        /// The note.
        note: String = "skip_bufregister has no effect on path host".to_owned(),
    } => {
        let end = if note.ends_with(['.', '!', '?']) { "" } else { "." };
        format!(
            "{note}{end} To see the settings that a run uses, print the plan with \
             --dry-run."
        )
    },
}

fn of_holes((holes, unwritten, range): (u64, u64, u64), reads: bool, spell: Spell<'_>) -> String {
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
             rate is not that of storage.{}",
            advice(
                spell,
                "",
                &[
                    "write the files in full first (cp --sparse=never)",
                    "let gpuio create its own with <directory>",
                ]
            ),
        )
    } else {
        format!(
            "{what}. The first write there also allocates the block, which costs more than \
             overwriting data. To measure only overwrites, write the files in full first, for \
             example with gpuio bench --rw write."
        )
    }
}

/// How much of what was written to the page cache reached storage.
fn of_buffered_writes(bytes: u64, to_storage: Option<u64>, spell: Spell<'_>) -> String {
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
         copying into memory; the kernel writes the data to storage later.{}",
        size(bytes),
        advice(
            spell,
            "Use ",
            &["<direct> to measure the device", "<sync> to wait for stable storage",]
        ),
    )
}

/// Warns of O_DIRECT writes that may have stopped in the device's own write cache.
fn of_device_cache(device: &str, known: bool, spell: Spell<'_>) -> String {
    let lead = if known {
        format!(
            "{device} has a volatile write cache (queue/write_cache: write back), and O_DIRECT \
             does not bypass it. A"
        )
    } else {
        format!(
            "The kernel does not report whether {device} has a volatile write cache, which \
             O_DIRECT does not bypass. With one, a"
        )
    };
    format!(
        "{lead} write ends before its data is on the medium, and short runs look too fast.{}",
        advice(
            spell,
            "To include the medium, ",
            &["let writes wait for it with <sync>", "fill the cache with a long <runtime>",]
        ),
    )
}

/// How long a process did not run, and why.
fn stood_still(stopped_ns: u64, suspended_ns: u64) -> String {
    let stopped = format!(
        "{} stopped (SIGSTOP, Ctrl-Z, a frozen cgroup or a paused machine)",
        time(stopped_ns)
    );
    let suspended = format!("the machine slept for {}", time(suspended_ns));
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

/// The percentiles of the tables that so many I/Os are too few for.
fn lacking(ios: u64) -> impl Iterator<Item = Percentile> {
    Percentile::TABLE.into_iter().filter(move |at| !enough_for(at.quantile(), ios))
}

/// The figures that a short run lacks: I/Os for a percentile, by the rule of `base::stat`, or time
/// for a rate.
fn short_of(elapsed_ns: u64, ios: u64) -> String {
    let measured = many(ios, "I/O was measured|I/Os were measured");
    let short = time(elapsed_ns);
    let unknown: Vec<String> = lacking(ios).map(Percentile::label).collect();
    let distorts = " In such a short run, start-up distorts the rate.";
    let distorts = if elapsed_ns < SHORT_NS { distorts } else { "" };
    if unknown.is_empty() {
        return format!("{measured} in {short}.{distorts}");
    }
    let names = unknown.join(" and ");
    format!("Only {measured} in {short}. Too few I/Os for a reliable {names}.{distorts}")
}

/// Seconds in which enough I/Os complete for all percentiles of the tables, at the rate of the run:
/// at least half a minute.
fn long_enough(elapsed_ns: u64, ios: u64) -> u64 {
    let most = lacking(ios).map(|at| at.least_values()).max().unwrap_or(0);
    let ns = u128::from(most) * u128::from(elapsed_ns) / u128::from(ios.max(1));
    u64::try_from(ns.div_ceil(1_000_000_000)).unwrap_or(u64::MAX).next_multiple_of(5).max(30)
}

fn example_limit() -> IoLimit {
    IoLimit {
        version: 2,
        path: "/sys/fs/cgroup/user.slice/io.max".to_owned(),
        number: DeviceNumber { major: 8, minor: 0 },
        device: "sda".to_owned(),
        towards: Towards::Read,
        bytes_per_s: Some(30 << 20),
        ios_per_s: None,
    }
}

fn size(bytes: u64) -> String {
    human_bytes(float(bytes))
}

fn mean(bytes: u64, ios: u64) -> String {
    size(bytes / ios.max(1))
}

fn rate(bytes_per_s: u64) -> String {
    size(bytes_per_s) + "/s"
}

fn time(ns: u64) -> String {
    human_ns(float(ns))
}

fn count(number: u64) -> String {
    digits(number)
}

/// Where the number of a group's threads comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ThreadsOf {
    /// A job's own.
    #[default]
    Job,
    /// Readers of the accelerators of training feeds.
    Feed,
    /// Threads of a recorded program.
    Trace,
}

impl ThreadsOf {
    fn is_job(&self) -> bool {
        *self == ThreadsOf::Job
    }
}

/// How to leave out the work between I/Os.
fn work_left_out(fio_headers: bool, verified: (bool, bool), refill: bool) -> String {
    if fio_headers {
        let text = "leave verification out: fio's headers are made and checked between I/Os";
        return text.to_owned();
    }
    let mode = |writes| format!("<verify={}>", VerifyMode::after_the_run(writes).word());
    let verify = match verified {
        (true, true) => Some(format!(
            "use {} for reads and {} for writes, which work after the run",
            mode(false),
            mode(true)
        )),
        (false, false) => None,
        (_, writes) => Some(format!("use {}, which works after the run", mode(writes))),
    };
    let both = [verify, refill.then(|| "omit <refill>".to_owned())];
    both.into_iter().flatten().collect::<Vec<_>>().join(", and ")
}
