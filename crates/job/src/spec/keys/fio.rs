//! fio's keys that work here.

use super::Dialect::{All, Fio};
use super::Key;
use super::loads::{FEED, RANGES, REPLAY};
use super::printed::{self, FILES, LOAD, REST, WHERE, of_blocks, switch};
use super::set::{self, key};
use super::unused::{self, IN_ORDER, NO_PAUSE, NO_RING, NO_WRITES, NOT_STEADY, OWN_FILES, when};
use crate::spec::value;
use crate::spec::value::words_of;
use gpuio_base::units::{format_bytes, format_cpu_list, format_duration_ns};
use gpuio_record::{DirectMode, Fill, Follow, VerifyMode};

pub(super) const KEYS: &[Key] = &[
    key(
        "ioengine",
        Fio,
        set::IOENGINE,
        "`sync` `psync` `vsync` `pvsync` `pvsync2` (all `psync`), `io_uring`, `libaio`, `posixaio` \
         (`pool`), `mmap`, `null`; `libcufile` is `path=gds`, with `cuda_io=posix` `path=staged`",
    )
    .tried(["libaio", "psync"]),
    key(
        "cuda_io",
        Fio,
        field!(cuda_posix, value::cuda_io),
        "with `ioengine=libcufile`: `cufile` or `posix`",
    )
    .unused(|s| {
        when(
            s.requested.fio_cufile != Some(true) || s.requested.paths.is_some(),
            "it says which way fio's libcufile takes; add ioengine=libcufile, or use path=gds",
        )
    })
    .tried(["posix", "cufile"]),
    key("gpu_dev_ids", Fio, set::GPU_DEV_IDS, "GPU numbers, separated by `:`").tried(["0", "1"]),
    key(
        "hipri",
        Fio,
        switch!(polled),
        "with `io_uring`: the kernel polls for completions (`engine=io_uring-iopoll`)",
    )
    .unused(|s| when(s.requested.polled == Some(true) && !s.polls("iopoll"), NO_RING))
    .tried(["1", "0"]),
    key(
        "sqthread_poll",
        Fio,
        switch!(submit_thread),
        "with `io_uring`: a kernel thread submits (`engine=io_uring-sqpoll`)",
    )
    .unused(|s| when(s.requested.submit_thread == Some(true) && !s.polls("sqpoll"), NO_RING))
    .tried(["1", "0"]),
    key(
        "nrfiles",
        Fio,
        field!(files_per_thread, value::at_least_one_u32),
        "files of each thread; `size` is all of them",
    )
    .or(&["nr_files"])
    .not_of(FEED | RANGES | REPLAY)
    .unused(|s| {
        when(
            s.plan.files_per_thread.is_none() && s.requested.files_per_thread != Some(1),
            "the files are named, or all threads share one; use directory, or leave it out",
        )
    })
    .prints(REST + 24, |p| {
        p.files_per_thread.filter(|_| p.has_size()).map(|files| files.to_string())
    })
    .tried(["2", "3"]),
    key(
        "filesize",
        Fio,
        set::FILE_SIZE,
        "length of each file; `16k-64k` draws those of a thread's files, alike for all threads",
    )
    .not_of(FEED | RANGES | REPLAY)
    .prints(REST + 23, |p| {
        let most = p.file_bytes_most.map(|most| format!("-{}", format_bytes(most)));
        let least = format_bytes(p.file_bytes.filter(|_| p.has_size())?);
        Some(least + &most.unwrap_or_default())
    })
    .tried(["2g", "2g-3g"]),
    key(
        "file_service_type",
        Fio,
        set::FILE_SERVICE,
        "a thread with several files: `roundrobin` (a block of each in turn) or `sequential`; \
         `random` of random loads",
    )
    .not_of(FEED | RANGES | REPLAY)
    .unused(|s| {
        let one_each = s.plan.workers.iter().all(|worker| worker.regions.len() < 2);
        when(one_each, "each thread has one file; add nrfiles, or leave it out").or_else(|| {
            let in_turn = !s.sequential() && !s.requested.files_by_chance;
            when(in_turn, "a random load draws its blocks from all of its files; leave it out")
        })
    })
    .prints(REST + 25, |p| (p.has_size() && p.files_in_turn).then(|| "roundrobin".to_owned()))
    .tried(["roundrobin", "sequential"]),
    key(
        "offset_increment",
        Fio,
        field!(offset_increment, value::bytes),
        "regions of threads start so far apart; bytes",
    )
    .not_of(FEED | RANGES | REPLAY)
    .unused(|s| {
        when(s.plan.directory.is_some() && !s.plan.shared_files, OWN_FILES).or_else(|| {
            when(s.plan.threads == 1, "one thread has nothing to be apart from; leave it out")
        })
    })
    .prints(REST + 26, |p| p.offset_increment.filter(|_| p.has_size()).map(format_bytes))
    .tried(["1g", "2g"]),
    key(
        "number_ios",
        Fio,
        field!(number_ios, value::at_least_one),
        "stop each thread after so many I/Os",
    )
    .not_of(FEED | RANGES | REPLAY)
    .tried(["5", "6"]),
    key(
        "verify_only",
        Fio,
        set::VERIFY_ONLY,
        "1: nothing is written; what the job wrote in an earlier run is read and verified",
    )
    .not_of(FEED | RANGES | REPLAY)
    .unused(|s| {
        when(
            s.requested.verify_only == Some(true) && s.plan.verify == VerifyMode::Off,
            "nothing is verified; add the verify that the data were written with",
        )
    })
    .tried(["1", "0"]),
    key("wait_for", Fio, text!(wait_for), "start after the job of this name")
        .not_of(REPLAY)
        .tried(["b", "c"]),
    key("allow_file_create", Fio, switch!(create_files), "0: files must be there")
        .not_of(FEED | REPLAY)
        .tried(["0", "1"]),
    key("readonly", Fio, switch!(read_only), "1: the job may not write, and files must be there")
        .not_of(FEED | REPLAY)
        .tried(["1", "0"]),
    key(
        "fsync",
        Fio,
        field!(fsync_ios, value::integer),
        "fsync(2) after so many writes of a thread",
    )
    .not_of(FEED | REPLAY)
    .unused(|s| when(s.only_reads(), NO_WRITES))
    .prints(REST + 45, |p| printed::flushes(p, false))
    .tried(["2", "3"]),
    key(
        "fdatasync",
        Fio,
        field!(fdatasync_ios, value::integer),
        "fdatasync(2) after so many writes of a thread",
    )
    .not_of(FEED | REPLAY)
    .unused(|s| {
        when(s.only_reads(), NO_WRITES).or_else(|| {
            when(
                s.requested.fsync_ios.is_some_and(|count| count > 0),
                "fsync flushes the same files; leave one out",
            )
        })
    })
    .prints(REST + 46, |p| printed::flushes(p, true))
    .tried(["2", "3"]),
    key("end_fsync", Fio, switch!(end_fsync), "fsync(2) at the end, inside the measured time")
        .not_of(FEED | REPLAY)
        .unused(|s| when(s.only_reads(), NO_WRITES))
        .prints(REST + 47, |p| p.flush.as_ref().map(|flush| switch(flush.at_end)))
        .tried(["1", "0"]),
    key(
        "fsync_on_close",
        Fio,
        switch!(fsync_on_close),
        "fsync(2) at the end, after the measured time",
    )
    .not_of(FEED | REPLAY)
    .unused(|s| when(s.requested.fsync_on_close == Some(true) && s.only_reads(), NO_WRITES))
    .prints(REST + 47, |p| p.flush.filter(|flush| flush.at_close).map(|_| switch(true)))
    .tried(["1", "0"]),
    key(
        "max_latency",
        Fio,
        field!(max_latency_ns, value::fio_microseconds),
        "an I/O that takes longer is a failure and ends its job; microseconds, or with a unit",
    )
    .not_of(FEED | REPLAY)
    .prints(REST + 47, |p| p.max_latency_ns.map(format_duration_ns))
    .tried(["8s", "9s"]),
    key(
        "lockmem",
        Fio,
        field!(lock_bytes, value::bytes),
        "memory that is not for the page cache: refused through it, without effect past it",
    )
    .unused(|s| {
        let direct = s.plan.direct == DirectMode::Direct;
        when(
            direct && s.requested.lock_bytes.is_some_and(|bytes| bytes > 0),
            "it takes memory from the page cache, which direct I/O passes by; leave it out",
        )
    })
    .tried(["1g", "0"]),
    key(
        "latency_target",
        Fio,
        field!(latency_target_ns, value::fio_microseconds),
        "`gpuio sweep FILE` searches the highest load whose latency stays within this; \
         microseconds, or with a unit; 0 is no limit",
    )
    .not_of(FEED | REPLAY)
    .decides()
    .tried(["5ms", "6ms"]),
    key(
        "latency_percentile",
        Fio,
        set::LATENCY_PERCENTILE,
        "with `latency_target`: the share of the I/Os in per cent",
    )
    .not_of(FEED | REPLAY)
    .tried(["99", "99.9"]),
    key(
        "fadvise_hint",
        Fio,
        field!(fadvise_hint, value::fadvise_hint),
        "what the kernel is told of the accesses to buffered files, for its reading ahead: `0` \
         nothing, `1` the order of the load, `sequential`, `random`, `noreuse`; nothing by \
         default, in fio `1`",
    )
    .not_of(FEED | RANGES | REPLAY)
    .unused(unused::fadvise_hint)
    .with_words(|| words_of(&value::FADVISE_HINTS))
    .prints(REST + 73, |p| p.fadvise_hint.map(|hint| hint.word().to_owned()))
    .tried(["random", "sequential"]),
    key("exitall", Fio, switch!(ends_others), "the jobs that run with it end when it does")
        .not_of(FEED | RANGES | REPLAY)
        .unused(|s| {
            when(
                s.requested.ends_others == Some(true) && s.alone,
                "there is no other job that could end with it; leave it out",
            )
        })
        .prints(REST + 38, |p| p.ends_others.then(|| switch(true)))
        .tried(["1", "0"]),
    key(
        "rw_sequencer",
        Fio,
        field!(run_same, value::sequencer),
        "with `rw=randread:8`: the 8 are in a row (`sequential`), or at one offset (`identical`)",
    )
    .not_of(FEED | RANGES | REPLAY)
    .unused(|s| {
        when(
            !matches!(s.plan.follow, Some(Follow::Run { .. })),
            "it says how I/Os follow a random one; use rw=randread:8, or leave it out",
        )
    })
    .prints(LOAD + 2, |p| match p.follow? {
        Follow::Run { same: true, .. } => Some("identical".to_owned()),
        _ => None,
    })
    .tried(["sequential", "identical"]),
    key(
        "percentage_random",
        Fio,
        field!(random_percent, value::random_percent),
        "share of the I/Os whose offset is drawn, others follow the last one: `80`, or for reads \
         and writes `100,0`",
    )
    .not_of(FEED | RANGES | REPLAY)
    .unused(|s| when(s.sequential(), IN_ORDER))
    .prints(LOAD + 2, |p| match p.follow? {
        Follow::Share { reads, writes } => Some(format!("{reads},{writes}")),
        _ => None,
    })
    .tried(["80", "70"]),
    key(
        "bs_is_seq_rand",
        Fio,
        switch!(blocks_by_order),
        "with `bs=4k,64k`: the first is for loads in order, the second for random ones",
    )
    .not_of(FEED | REPLAY)
    .unused(|s| {
        let list = s.requested.requested.get("blocks").is_some_and(|set| set.value.contains(','));
        when(
            s.requested.blocks_by_order == Some(true) && !list,
            "it chooses one of two block sizes; use bs=4k,64k, or leave it out",
        )
    })
    .tried(["1", "0"]),
    key(
        "bs_unaligned",
        Fio,
        switch!(blocks_unaligned),
        "sizes of a range are any number of bytes; without `direct`",
    )
    .or(&["blocksize_unaligned"])
    .not_of(FEED | REPLAY)
    .unused(|s| {
        when(
            s.requested.blocks_unaligned == Some(true)
                && s.plan.sizes().all(|one| one.min_bytes == one.max_bytes),
            "the blocks have one size; use bs=4k-64k, or leave it out",
        )
    })
    .tried(["1", "0"]),
    key(
        "filename_format",
        Fio,
        field!(filename_format, value::filename_format),
        "names of files in `directory`, with `$jobname`, `$jobnum` (the thread) and `$filenum`",
    )
    .not_of(FEED | RANGES | REPLAY)
    .unused(|s| {
        when(
            s.plan.filename_format.is_none(),
            "the files have names of their own; use directory, or leave it out",
        )
    })
    .prints(FILES + 3, |p| p.filename_format.clone())
    .tried(["f.$jobnum.$filenum", "g.$filenum"]),
    key(
        "zero_buffers",
        Fio,
        switch!(fill, |on| if on { Fill::Zero } else { Fill::Pattern }),
        "write zeros, as `fill=zero`",
    )
    .tried(["1", "0"]),
    key(
        "thinktime",
        Fio,
        set::THINK,
        "pause of each thread, its I/Os awaited; microseconds, or with a unit",
    )
    .not_of(FEED | REPLAY)
    .prints(REST + 42, |p| p.think.as_ref().map(|think| format_duration_ns(think.pause_ns)))
    .tried(["5", "6"]),
    key(
        "thinktime_spin",
        Fio,
        field!(think_spin_ns, value::fio_microseconds),
        "part of the pause that computes",
    )
    .not_of(FEED | REPLAY)
    .unused(|s| when(s.plan.think.is_none(), NO_PAUSE))
    .prints(REST + 43, |p| p.think.as_ref().map(|think| format_duration_ns(think.spin_ns)))
    .tried(["3us", "4us"]),
    key("thinktime_blocks", Fio, field!(think_ios, value::at_least_one), "I/Os between two pauses")
        .not_of(FEED | REPLAY)
        .unused(|s| when(s.plan.think.is_none(), NO_PAUSE))
        .prints(REST + 44, |p| p.think.as_ref().map(|think| think.every_ios.to_string()))
        .tried(["2", "3"]),
    key("write_bw_log", Fio, set::BW_LOG, "log of throughput, `NAME_bw.1.log`, as fio-plot reads")
        .not_of(FEED | REPLAY)
        .prints(REST + 48, |p| p.logs.as_ref()?.bw.clone())
        .tried(["x", "y"]),
    key("write_lat_log", Fio, set::LAT_LOG, "logs of latencies, `NAME_lat.1.log` and `_clat`")
        .not_of(FEED | REPLAY)
        .prints(REST + 49, |p| p.logs.as_ref()?.lat.clone())
        .tried(["x", "y"]),
    key("write_iops_log", Fio, set::IOPS_LOG, "log of I/Os per second, `NAME_iops.1.log`")
        .not_of(FEED | REPLAY)
        .prints(REST + 50, |p| p.logs.as_ref()?.iops.clone())
        .tried(["x", "y"]),
    key(
        "log_avg_msec",
        Fio,
        field!(log_ns, value::fio_milliseconds),
        "time that a line of the logs covers; milliseconds, or with a unit; 0: one I/O",
    )
    .not_of(FEED | REPLAY)
    .unused(|s| {
        when(s.plan.logs.is_none(), "no log is written; add write_bw_log, or drop log_avg_msec")
    })
    .prints(REST + 51, |p| p.logs.as_ref()?.line_ns.map(format_duration_ns))
    .tried(["200", "300"]),
    key("per_job_logs", Fio, switch!(per_job_logs), "0: logs of one name are one file")
        .not_of(FEED | REPLAY)
        .unused(|s| when(s.plan.logs.is_none(), "no log is written; add write_lat_log"))
        .prints(REST + 51, |p| p.logs.as_ref().map(|logs| switch(!logs.joined)))
        .tried(["0", "1"]),
    key("log_offset", Fio, switch!(log_offset), "lines of logs have the offset of their I/O")
        .not_of(FEED | REPLAY)
        .unused(|s| when(s.plan.logs.is_none(), "no log is written; add write_lat_log"))
        .prints(REST + 51, |p| p.logs.as_ref().map(|logs| switch(logs.offset)))
        .tried(["1", "0"]),
    key(
        "bsrange",
        Fio,
        by_direction!(blocks, value::block_range),
        "range of block sizes, `4k-64k`",
    )
    .or(&["blocksize_range"])
    .tried(["64k-128k", "64k-256k"]),
    key("numjobs", Fio, set::THREADS, "threads of the job").tried(["2", "3"]),
    key("iodepth", Fio, set::DEPTH, "I/Os in flight per thread").tried(["2", "3"]),
    key("time_based", All, set::TIME_BASED, "repeat the load until `runtime` is up")
        .not_of(FEED | RANGES | REPLAY)
        .unused(|s| {
            when(s.requested.runtime_ns.is_none(), "it needs a runtime; add one, or leave it out")
        })
        .prints(REST + 34, |p| {
            (of_blocks(p) && p.stop.runtime_ns.is_some())
                .then(|| switch(p.stop.bytes_per_thread.is_none()))
        })
        .tried(["1", "0"]),
    key("ramp_time", Fio, set::RAMP, "run this long before measuring")
        .prints(REST + 40, |p| of_blocks(p).then(|| format_duration_ns(p.ramp_ns)))
        .tried(["1", "2"]),
    key(
        "steadystate_duration",
        All,
        field!(steady_window_ns, value::some_time),
        "for how long it must be steady",
    )
    .or(&["ss_dur"])
    .not_of(FEED | REPLAY)
    .unused(|s| when(s.requested.steady.is_none(), NOT_STEADY))
    .prints(REST + 37, |p| p.steady.as_ref().map(|steady| format_duration_ns(steady.window_ns)))
    .tried(["5", "6"]),
    key(
        "steadystate_ramp_time",
        All,
        field!(steady_ramp_ns, value::duration),
        "time after the ramp that is not checked",
    )
    .or(&["ss_ramp"])
    .not_of(FEED | REPLAY)
    .unused(|s| when(s.requested.steady.is_none(), NOT_STEADY))
    .prints(REST + 38, |p| p.steady.as_ref().map(|steady| format_duration_ns(steady.ramp_ns)))
    .tried(["1", "2"]),
    key(
        "steadystate_check_interval",
        All,
        field!(steady_check_ns, value::some_time),
        "time between two checked values; 100ms or more",
    )
    .or(&["ss_interval"])
    .not_of(FEED | REPLAY)
    .unused(|s| when(s.requested.steady.is_none(), NOT_STEADY))
    .prints(REST + 39, |p| p.steady.as_ref().map(|steady| format_duration_ns(steady.check_ns)))
    .tried(["1", "2"]),
    key("stonewall", All, switch!(stonewall), "start after the jobs above")
        .or(&["wait_for_previous"])
        .not_of(REPLAY)
        .unused(|s| {
            when(
                s.requested.stonewall == Some(true) && s.alone,
                "there is no job before this one; leave it out",
            )
        })
        .tried(["1", "0"]),
    key("rwmixwrite", Fio, set::WRITE_PERCENT, "percentage of writes in a mix").tried(["30", "70"]),
    key("randseed", Fio, set::SEED, "seed of all random choices").tried(["7", "8"]),
    key("cpus_allowed", Fio, set::CPUS, "CPUs the threads may use, such as `0-3,8`")
        .prints(WHERE + 12, |p| {
            let cpus = printed::pinned(p)?.cpus;
            (!cpus.is_empty()).then(|| format_cpu_list(&cpus))
        })
        .tried(["0", "1"]),
    key(
        "cpus_allowed_policy",
        Fio,
        field!(split_cpus, value::cpu_policy),
        "`shared`: a thread may use all of the CPUs; `split`: one of them, thread after thread the \
         next one, and after the last one the first again",
    )
    .unused(unused::split_cpus)
    .prints(WHERE + 12, |p| printed::pinned(p)?.split.then(|| "split".to_owned()))
    .with_words(|| words_of(&value::CPU_POLICIES))
    .tried(["split", "shared"]),
    key(
        "cpumask",
        Fio,
        field!(cpus, value::cpu_mask),
        "CPUs the threads may use, as bits of a number: 5 is `0,2`",
    )
    .tried(["1", "0x6"]),
    key("numa_cpu_nodes", Fio, set::NUMA, "one NUMA node").tried(["0", "1"]),
    key("startdelay", Fio, set::START_DELAY, "wait before the first I/O")
        .prints(REST + 41, |p| of_blocks(p).then(|| format_duration_ns(p.start_delay_ns)))
        .tried(["1", "2"]),
    key("blockalign", Fio, set::ALIGN, "random offsets are multiples of this; bytes")
        .or(&["ba"])
        .prints(LOAD + 5, |p| of_blocks(p).then(|| format_bytes(p.align_bytes)))
        .tried(["512k", "1m"]),
    key("mem", Fio, field!(memory, value::fio_memory), "`malloc` `mmap` `cudamalloc`")
        .or(&["iomem"])
        .tried(["malloc", "cudamalloc"]),
    key("refill_buffers", Fio, set::REFILL, "fill the buffer before every write").tried(["1", "0"]),
    key("unlink", Fio, switch!(keep, |on| !on), "remove the data files after the run")
        .tried(["1", "0"]),
];
