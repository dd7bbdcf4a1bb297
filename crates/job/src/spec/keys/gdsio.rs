//! Keys only gdsio has. A section that uses one of them is read with gdsio's meanings.
//!
//! `xfer_type`, `enable_nvlinks`, `numa_node`, `gpu_dev_id` and `num_threads` are in public
//! configuration files; the others are named after gdsio's command line flags.

use super::Dialect::Gdsio;
use super::Key;
use super::set::{self, key};
use gpuio_record::Fill;

pub(super) const KEYS: &[Key] = &[
    key(
        "xfer_type",
        Gdsio,
        set::XFER_TYPE,
        "0 `path=gds`, 1 `host`, 2 `staged`, 3 `managed`, 4 `cached`, 5 `gds-stream`, 6 \
         `gds-batch`, 7 `gds-batch-stream`",
    )
    .tried(["1", "2"]),
    key("gpu_dev_id", Gdsio, set::GPU_DEV_ID, "one GPU number").tried(["0", "1"]),
    key("numa_node", Gdsio, set::NUMA, "NUMA node of threads and host memory").tried(["0", "1"]),
    key("num_threads", Gdsio, set::THREADS, "threads of the job").tried(["2", "3"]),
    key("start_offset", Gdsio, set::OFFSET, "start of the first thread's region; bytes")
        .tried(["1m", "2m"]),
    key("random_seed", Gdsio, set::SEED, "seed of all random choices").tried(["7", "8"]),
    key(
        "enable_nvlinks",
        Gdsio,
        switch!(nvlinks),
        "let cuFile copy over NVLink; works with path=routed only",
    )
    .tried(["1", "0"]),
    key(
        "fill_random",
        Gdsio,
        switch!(fill, |on| if on { Fill::Random } else { Fill::Pattern }),
        "write random bytes",
    )
    .tried(["1", "0"]),
    key("refill_buffer", Gdsio, set::REFILL, "fill the buffer before every write")
        .tried(["1", "0"]),
    key("unaligned_random", Gdsio, set::UNALIGNED, "random offsets that are not 4 KiB aligned")
        .tried(["1", "0"]),
];
