//! fio's keys that work here, and those that are accepted because they change nothing.

use super::Dialect::{All, Fio};
use super::set::{self, key};
use super::{Key, Status};
use crate::value;

/// A key that is accepted and has no effect.
const fn noted(name: &'static str, why: &'static str) -> Key {
    Key::new(name, Fio, Status::NoEffect { why })
}

pub(super) const KEYS: &[Key] = &[
    key(
        "ioengine",
        Fio,
        set::IOENGINE,
        "`sync` `psync` `vsync` `pvsync` `pvsync2` (all `psync`), `io_uring`, `libaio`, `mmap`, \
         `null`; `libcufile` is `path=gds`, with `cuda_io=posix` `path=staged`",
    )
    .tried(["libaio", "psync"]),
    key(
        "cuda_io",
        Fio,
        field!(cuda_posix, value::cuda_io),
        "with `ioengine=libcufile`: `cufile` or `posix`",
    )
    .tried(["posix", "cufile"]),
    key("gpu_dev_ids", Fio, set::GPU_DEV_IDS, "GPU numbers, separated by `:`").tried(["0", "1"]),
    key(
        "hipri",
        Fio,
        switch!(polled),
        "with `io_uring`: the kernel polls for completions (`engine=io_uring-iopoll`)",
    )
    .tried(["1", "0"]),
    key(
        "sqthread_poll",
        Fio,
        switch!(submit_thread),
        "with `io_uring`: a kernel thread submits (`engine=io_uring-sqpoll`)",
    )
    .tried(["1", "0"]),
    key(
        "nrfiles",
        Fio,
        field!(files_per_thread, value::at_least_one_u32),
        "files of each thread; `size` is all of them",
    )
    .or(&["nr_files"])
    .tried(["2", "3"]),
    key("filesize", Fio, field!(file_bytes, value::size), "length of each file")
        .tried(["2g", "3g"]),
    key(
        "file_service_type",
        Fio,
        field!(files_in_turn, value::file_service),
        "a thread with several files: `roundrobin` (a block of each in turn) or `sequential`",
    )
    .tried(["roundrobin", "sequential"]),
    key(
        "offset_increment",
        Fio,
        field!(offset_increment, value::bytes),
        "regions of threads start so far apart; bytes",
    )
    .tried(["1g", "2g"]),
    key(
        "number_ios",
        Fio,
        field!(number_ios, value::at_least_one),
        "stop each thread after so many I/Os",
    )
    .tried(["5", "6"]),
    key("wait_for", Fio, text!(wait_for), "start after the job of this name").tried(["b", "c"]),
    key("allow_file_create", Fio, switch!(create_files), "0: files must be there")
        .tried(["0", "1"]),
    key(
        "fsync",
        Fio,
        field!(fsync_ios, value::integer),
        "fsync(2) after so many writes of a thread",
    )
    .tried(["2", "3"]),
    key(
        "fdatasync",
        Fio,
        field!(fdatasync_ios, value::integer),
        "fdatasync(2) after so many writes of a thread",
    )
    .tried(["2", "3"]),
    key("end_fsync", Fio, switch!(end_fsync), "fsync(2) at the end, inside the measured time")
        .tried(["1", "0"]),
    key(
        "thinktime",
        Fio,
        set::THINK,
        "pause of each thread, its I/Os awaited; microseconds, or with a unit",
    )
    .tried(["5", "6"]),
    key(
        "thinktime_spin",
        Fio,
        field!(think_spin_ns, value::fio_microseconds),
        "part of the pause that computes",
    )
    .tried(["3us", "4us"]),
    key("thinktime_blocks", Fio, field!(think_ios, value::at_least_one), "I/Os between two pauses")
        .tried(["2", "3"]),
    key("write_bw_log", Fio, set::BW_LOG, "log of throughput, `NAME_bw.1.log`, as fio-plot reads")
        .tried(["x", "y"]),
    key("write_lat_log", Fio, set::LAT_LOG, "log of latencies, `NAME_lat.1.log`").tried(["x", "y"]),
    key("write_iops_log", Fio, set::IOPS_LOG, "log of I/Os per second, `NAME_iops.1.log`")
        .tried(["x", "y"]),
    key(
        "log_avg_msec",
        Fio,
        field!(log_ns, value::fio_milliseconds),
        "time that a line of the logs covers; milliseconds, or with a unit",
    )
    .tried(["200", "300"]),
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
    key("time_based", All, switch!(time_based), "repeat the load until `runtime` is up")
        .tried(["1", "0"]),
    key("ramp_time", Fio, set::RAMP, "run this long before measuring").tried(["1", "2"]),
    key(
        "steadystate_duration",
        All,
        field!(steady_window_ns, value::some_time),
        "for how long it must be steady",
    )
    .or(&["ss_dur"])
    .tried(["5", "6"]),
    key(
        "steadystate_ramp_time",
        All,
        field!(steady_ramp_ns, value::duration),
        "time after the ramp that is not checked",
    )
    .or(&["ss_ramp"])
    .tried(["1", "2"]),
    key(
        "steadystate_check_interval",
        All,
        field!(steady_check_ns, value::some_time),
        "time between two checked values; 100ms or more",
    )
    .or(&["ss_interval"])
    .tried(["1", "2"]),
    key("stonewall", All, switch!(stonewall), "start after the jobs above")
        .or(&["wait_for_previous"])
        .tried(["1", "0"]),
    key("rwmixwrite", Fio, set::WRITE_PERCENT, "percentage of writes in a mix").tried(["30", "70"]),
    key("randseed", Fio, set::SEED, "seed of all random choices").tried(["7", "8"]),
    key("cpus_allowed", Fio, set::CPUS, "CPUs the threads may use, such as `0-3,8`")
        .tried(["0", "1"]),
    key("numa_cpu_nodes", Fio, set::NUMA, "one NUMA node").tried(["0", "1"]),
    key("startdelay", Fio, set::START_DELAY, "wait before the first I/O").tried(["1", "2"]),
    key("blockalign", Fio, set::ALIGN, "random offsets are multiples of this; bytes")
        .or(&["ba"])
        .tried(["512k", "1m"]),
    key("mem", Fio, field!(memory, value::fio_memory), "`malloc` `mmap` `cudamalloc`")
        .or(&["iomem"])
        .tried(["malloc", "cudamalloc"]),
    key("refill_buffers", Fio, set::REFILL, "fill the buffer before every write").tried(["1", "0"]),
    key("unlink", Fio, switch!(keep, |on| !on), "remove the data files after the run")
        .tried(["1", "0"]),
    noted("create_serialize", "files are made with a few threads, before the clock"),
    noted("create_fsync", "files that are made are synced before the clock"),
    noted("new_group", "every job is reported by itself, and all together"),
    noted("fixedbufs", "buffers are registered wherever the engine can"),
    noted("registerfiles", "files are registered wherever the engine can"),
    noted("nonvectored", "I/Os are never vectored"),
    noted("force_async", "I/Os that would block are handed to the kernel's threads by itself"),
    noted("create_on_open", "files are made before the run in any case"),
    noted("openfiles", "files stay open for the whole run"),
    noted("verify_fatal", "a mismatch always fails the run"),
    noted("verify_dump", "a mismatch is reported with its offset, what was expected and found"),
    noted("verify_backlog", "the same blocks are verified, after the run and not during it"),
    noted("verify_backlog_batch", "the same blocks are verified, after the run"),
    noted("verify_async", "each thread verifies the blocks that it read"),
    noted("verify_async_cpus", "each thread verifies the blocks that it read"),
    noted("verifysort", "blocks are verified in the order of the file"),
    noted("experimental_verify", "which blocks were written is known exactly"),
    noted("verify_state_save", "the pattern follows from the position, so there is no state"),
    noted("iodepth_batch", "what is ready is submitted together, one call for all of it"),
    noted("iodepth_batch_submit", "what is ready is submitted together"),
    noted("iodepth_batch_complete", "completions are taken as they arrive, all at once"),
    noted("iodepth_batch_complete_min", "completions are taken as they arrive"),
    noted("iodepth_batch_complete_max", "completions are taken as they arrive"),
    noted("io_submit_mode", "latency counts from when an I/O is due, whoever submits it"),
    noted("rate_min", "a rate that is not reached is a warning, and the run goes on"),
    noted("ratemin", "a rate that is not reached is a warning, and the run goes on"),
    noted("rate_iops_min", "a rate that is not reached is a warning, and the run goes on"),
    noted("fallocate", "files are written in full before the run"),
    noted("fadvise_hint", "the kernel reads ahead as for any program"),
    noted("scramble_buffers", "no two blocks of the pattern are alike"),
    noted("softrandommap", "the map of accessed blocks always fits"),
    noted("unified_rw_reporting", "reads and writes are reported apart, and can be added up"),
    noted("significant_figures", "the record keeps exact numbers"),
    noted("per_job_logs", "each job has logs of its own"),
    noted("log_max_value", "each line of a log has the mean; the record has the maxima"),
    noted("log_unix_epoch", "times of a log count from the start of the job"),
    noted("log_offset", "lines of a log are of a time and not of one I/O"),
    noted("log_prio", "all I/Os have one priority"),
    noted("error_dump", "errors are always reported"),
    noted("exitall_on_error", "an error always fails the run"),
    noted("cpus_allowed_policy", "the threads of a job share all of its CPUs"),
    noted("overwrite", "files are written in full before the run"),
    noted("disk_util", "devices are sampled in any case; --no-watch leaves that out"),
    noted("clocksource", "there is one clock, CLOCK_MONOTONIC"),
    noted("gtod_cpu", "each thread reads the clock by itself"),
    noted("unique_filename", "files of a directory belong to one thread each"),
    noted("log_compression", "logs have a line per interval and stay small"),
    noted("log_store_compressed", "logs have a line per interval and stay small"),
    noted("log_entries", "logs are written after the run"),
    noted("log_alternate_epoch", "times of a log count from the start of the job"),
    noted("log_alternate_epoch_clock_id", "times of a log count from the start of the job"),
    noted("thread", "every job runs in threads, never in processes"),
    noted("group_reporting", "results are always given for each job and for the whole run"),
    noted(
        "randrepeat",
        "random choices repeat exactly for a given seed; give seed= to change them",
    ),
    noted("allrandrepeat", "random choices repeat exactly for a given seed"),
    noted("random_generator", "there is one generator; its period is far above any run"),
    noted("clat_percentiles", "percentiles are always computed"),
    noted("lat_percentiles", "percentiles are always computed"),
    noted("slat_percentiles", "percentiles are always computed"),
    noted("disable_lat", "latency is always measured"),
    noted("disable_clat", "latency is always measured"),
    noted("disable_slat", "latency is always measured"),
    noted("disable_bw_measurement", "bandwidth is always measured"),
    noted("gtod_reduce", "latency is always measured"),
    noted("description", "it is a remark; use a comment line instead"),
    noted("stats", "every job is reported"),
    noted("kb_base", "sizes always count in powers of 1024"),
    noted("unit_base", "results are always in bytes"),
];
