//! fio's keys that work here, and those that are accepted because they change nothing.

use super::Dialect::{All, Fio};
use super::set::{self, key};
use super::{Key, Status};

/// A key that is accepted and has no effect.
const fn noted(name: &'static str, why: &'static str) -> Key {
    Key { name, aliases: &[], dialect: Fio, summary: "", status: Status::NoEffect { why } }
}

pub(super) const KEYS: &[Key] = &[
    key(
        "ioengine",
        &[],
        Fio,
        set::IOENGINE,
        "`sync` `psync` `vsync` `pvsync` `pvsync2` (all `psync`), `io_uring`, `libaio`, `mmap`, \
         `null`",
    ),
    key("bsrange", &["blocksize_range"], Fio, set::BSRANGE, "range of block sizes, `4k-64k`"),
    key("bssplit", &[], Fio, set::BSSPLIT, "block sizes with percentages, `4k/60:64k/40`"),
    key("io_size", &["io_limit"], Fio, set::IO_SIZE, "stop each thread after this many bytes"),
    key("offset", &["fileoffset"], Fio, set::OFFSET, "start of the region; bytes"),
    key("numjobs", &[], Fio, set::THREADS, "threads of the job"),
    key("iodepth", &[], Fio, set::DEPTH, "I/Os in flight per thread"),
    key("direct", &[], All, set::DIRECT, "`O_DIRECT` (1) or the page cache (0)"),
    key("buffered", &[], All, set::BUFFERED, "the opposite of `direct`"),
    key("pre_read", &[], All, set::PRE_READ, "read the files into the page cache first"),
    key("invalidate", &[], All, set::INVALIDATE, "drop the files from the page cache first"),
    key("time_based", &[], All, set::TIME_BASED, "repeat the load until `runtime` is up"),
    key("ramp_time", &[], Fio, set::RAMP, "run this long before measuring"),
    key(
        "steadystate",
        &["ss", "steady"],
        All,
        set::STEADY,
        "end once this is steady: `iops`, `bw`, `lat` or one of them with `_slope`, `:LIMIT` or \
         `:PERCENT%`",
    ),
    key(
        "steadystate_duration",
        &["ss_dur"],
        All,
        set::STEADY_WINDOW,
        "for how long it must be steady",
    ),
    key(
        "steadystate_ramp_time",
        &["ss_ramp"],
        All,
        set::STEADY_RAMP,
        "time after the ramp that is not checked",
    ),
    key(
        "steadystate_check_interval",
        &["ss_interval"],
        All,
        set::STEADY_CHECK,
        "time between two checked values; 100ms or more",
    ),
    key("stonewall", &["wait_for_previous"], All, set::STONEWALL, "start after the jobs above"),
    key("rwmixread", &[], Fio, set::READ_PERCENT, "percentage of reads in a mix"),
    key("rwmixwrite", &[], Fio, set::WRITE_PERCENT, "percentage of writes in a mix"),
    key("randseed", &[], Fio, set::SEED, "seed of all random choices"),
    key("norandommap", &[], Fio, set::NO_COVERAGE, "blocks may repeat before all were accessed"),
    key(
        "random_distribution",
        &[],
        Fio,
        set::DISTRIBUTION,
        "`random`, `zipf:THETA`, `pareto:POWER`, `normal:PERCENT`",
    ),
    key("rate", &[], All, set::RATE, "limit per thread; bytes per second"),
    key("rate_iops", &[], All, set::RATE_IOPS, "limit per thread; I/Os per second"),
    key("rate_process", &[], Fio, set::ARRIVALS, "`linear` or `poisson`"),
    key("cpus_allowed", &[], Fio, set::CPUS, "CPUs the threads may use, such as `0-3,8`"),
    key("numa_cpu_nodes", &[], Fio, set::NUMA, "one NUMA node"),
    key("loops", &[], All, set::LOOPS, "number of passes over the region"),
    key("startdelay", &[], Fio, set::START_DELAY, "wait before the first I/O"),
    key("sync", &[], All, set::SYNC, "durable writes (`O_DSYNC`)"),
    key("blockalign", &["ba"], Fio, set::ALIGN, "random offsets are multiples of this; bytes"),
    key("mem", &["iomem"], Fio, set::FIO_MEMORY, "`malloc` `mmap` `cudamalloc`"),
    key("refill_buffers", &[], Fio, set::REFILL, "fill the buffer before every write"),
    key("unlink", &[], Fio, set::UNLINK, "remove the data files after the run"),
    noted("thread", "every job runs in threads, never in processes"),
    noted("group_reporting", "results are always given for each job and for the whole run"),
    noted(
        "randrepeat",
        "random choices repeat exactly for a given seed; give seed= to change them",
    ),
    noted("allrandrepeat", "random choices repeat exactly for a given seed"),
    noted("random_generator", "there is one generator; its period is far above any run"),
    noted(
        "percentile_list",
        "whole histograms are kept, so any percentile can be read from the record",
    ),
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
