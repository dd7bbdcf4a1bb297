//! gpuio's own keys, and those with the same spelling in several tools.

use super::Dialect::{All, Native};
use super::Key;
use super::set::{self, key};

pub(super) const KEYS: &[Key] = &[
    key("name", &[], All, set::NAME, "name of the job; in `[global]`, of the run"),
    key(
        "directory",
        &[],
        All,
        set::DIRECTORY,
        "location of the data files; `\\:` is a colon of its name",
    ),
    key(
        "filename",
        &["file"],
        All,
        set::FILENAME,
        "data files, separated by `:`; `\\:` is a colon of a name",
    ),
    key("rw", &["readwrite"], All, set::RW, "`read` `write` `randread` `randwrite` `rw` `randrw`"),
    key(
        "bs",
        &["blocksize", "block_size"],
        All,
        set::BS,
        "block size in bytes: `4k`, a range `4k-64k`, or `min:max:step`",
    ),
    key(
        "size",
        &[],
        All,
        set::SIZE,
        "bytes of each thread in all of its files together, or a share of each file: `50%`",
    ),
    key(
        "runtime",
        &["timeout"],
        All,
        set::RUNTIME,
        "how long to run; seconds, or with `ns` `us` `ms` `s` `m` `h`",
    ),
    key("do_verify", &[], All, set::DO_VERIFY, "verify the data in a separate pass"),
    key(
        "path",
        &["paths"],
        Native,
        set::PATH,
        "data paths by name, separated by commas, `all`, or `auto`",
    ),
    key(
        "cache_alike",
        &[],
        Native,
        set::CACHE_ALIKE,
        "every run finds the page cache in the same state: `pre_read` or `invalidate`, whichever \
         fits it",
    ),
    key("engine", &[], Native, set::ENGINE, "I/O engine by name"),
    key("threads", &[], Native, set::THREADS, "threads of the job"),
    key("depth", &[], Native, set::DEPTH, "I/Os in flight per thread"),
    key("ramp", &[], Native, set::RAMP, "run this long before measuring"),
    key(
        "gpu",
        &["gpus"],
        Native,
        set::GPU,
        "GPU numbers, `all`, `none`, `software`, or `software:0,1`",
    ),
    key("numa", &[], Native, set::NUMA, "NUMA node of threads and host memory"),
    key("cpus", &[], Native, set::CPUS, "CPUs the threads may use, such as `0-3,8`"),
    key(
        "verify",
        &[],
        Native,
        set::VERIFY,
        "`off`, `pass` or `full` (data is read back after the run), `rewrite`, `inline` (each \
         block on arrival), `file` (files are read again after the run and compared with what the \
         CPU reads), or `crc32c` (with the headers of fio's blocks)",
    ),
    key(
        "verify_time",
        &[],
        Native,
        set::VERIFY_TIME,
        "longest time for the verification after the run; a random sample of what fits into it is \
         checked, and the report says how much that was",
    ),
    key(
        "ceilings",
        &["ceiling"],
        Native,
        set::CEILINGS,
        "measure the highest reachable rates: `off`, `on`, or how long for each",
    ),
    key(
        "percentiles",
        &["percentile_list"],
        All,
        set::PERCENTILES,
        "percentiles of latencies in tables, in place of the usual ones: `50,95,99.99`",
    ),
    key(
        "beside",
        &[],
        Native,
        set::BESIDE,
        "keep the GPUs busy during the job: `compute`, `memory` or `off`, with a share: \
         `compute:50%`",
    ),
    key("seed", &[], Native, set::SEED, "seed of all random choices"),
    key(
        "arrivals",
        &[],
        Native,
        set::ARRIVALS,
        "spacing under a rate limit: `steady` or `poisson`",
    ),
    key("poisson", &[], Native, set::POISSON, "the same as `arrivals=poisson`"),
    key("read_percent", &[], Native, set::READ_PERCENT, "percentage of reads in a mix"),
    key(
        "coverage",
        &[],
        Native,
        set::COVERAGE,
        "access every block once before any block \
        twice",
    ),
    key(
        "distribution",
        &[],
        Native,
        set::DISTRIBUTION,
        "random offsets: `random`, `zipf:THETA`, `pareto:POWER`, `normal:PERCENT`",
    ),
    key("align", &[], Native, set::ALIGN, "random offsets are multiples of this; bytes"),
    key("unaligned", &[], Native, set::UNALIGNED, "random offsets that are not 4 KiB aligned"),
    key("start_delay", &[], Native, set::START_DELAY, "wait before the first I/O"),
    key(
        "shared",
        &["shared_files"],
        Native,
        set::SHARED,
        "all threads use the same files, thread i from `offset + i * size`",
    ),
    key(
        "layout",
        &[],
        Native,
        set::LAYOUT,
        "data of all threads, and of all ranks: `file-per-thread`, or one file `segmented` or \
         `strided`",
    ),
    key(
        "read_shift",
        &[],
        Native,
        set::READ_SHIFT,
        "several ranks: read what another wrote: `rank` (the next), `node` (of the next host), or \
         how many ranks further on",
    ),
    key(
        "wear_out",
        &[],
        Native,
        set::WEAR_OUT,
        "end when each thread has moved its whole size; with `runtime`, go on after it until each \
         has moved what the fastest had begun by then",
    ),
    key(
        "file_prefix",
        &[],
        Native,
        set::FILE_PREFIX,
        "prefix of the names of files in `directory`: `PREFIX.0`, `PREFIX.1`, …",
    ),
    key("shared_fd", &[], Native, set::SHARED_FD, "all threads use one descriptor per file"),
    key(
        "memory",
        &[],
        Native,
        set::MEMORY,
        "destination memory: `device` `vmm` `pinned` `malloc` `mmap`; path `managed` uses \
         `managed`",
    ),
    key("fill", &[], Native, set::FILL, "content of writes: `pattern` or `random`"),
    key("refill", &[], Native, set::REFILL, "fill the buffer before every write"),
    key(
        "inject",
        &[],
        Native,
        set::INJECT,
        "faults to inject, in each thread by itself: `rate`, `iops` and `stall` are of one thread",
    ),
    key("streams", &[], Native, set::STREAMS, "GPU streams per thread"),
    key(
        "gather_batch",
        &[],
        Native,
        set::GATHER_BATCH,
        "paths with batches: blocks per launch or submit",
    ),
    key(
        "gather_scatter",
        &[],
        Native,
        set::GATHER_SCATTER,
        "path `gather`: blocks get separate, non-adjacent locations in GPU memory, as random ones \
         do",
    ),
    key("via_gpu", &[], Native, set::VIA_GPU, "path `routed`: number of the GPU near the drive"),
    key(
        "via_peer",
        &[],
        Native,
        set::VIA_PEER,
        "paths `routed` and `fan-out`: `peer` for direct copies between GPUs only, or `any` route \
         of the driver",
    ),
    key(
        "skip_bufregister",
        &[],
        Native,
        set::SKIP_BUFREGISTER,
        "paths of cuFile: do not register GPU memory with it (gdsio's `-b`)",
    ),
    key("keep", &[], Native, set::KEEP, "keep the data files after the run"),
    key(
        "batch",
        &[],
        Native,
        set::BATCH,
        "cuFile's batch paths: I/Os per batch (gdsio's `-B`), as `gather_batch`",
    ),
    key("rdma_url", &[], Native, set::RDMA_URL, "gdsio's `-P`: always refused"),
    key(
        "mix_percent",
        &[],
        Native,
        set::MIX_PERCENT,
        "cuFile's batch paths: percentage of reads (gdsio's `-M`)",
    ),
];
