//! Keys of a training feed (docs/workload.md).

use super::Dialect::Native;
use super::Key;
use super::set::{self, key};

pub(super) const KEYS: &[Key] = &[
    key("files", &[], Native, set::FILES, "training feed: files of the whole data set"),
    key(
        "scale",
        &[],
        Native,
        set::SCALE,
        "share of `size`, or of a training feed's `files`, that is used, such as `0.01`; every \
         output says so",
    ),
    key(
        "ranges",
        &[],
        Native,
        set::RANGES,
        "read all of the named files, which threads divide: `files` (from begin to end), or \
         `tensors` (of the safetensors format, one by one in the order of the header)",
    ),
    key(
        "full_threads",
        &[],
        Native,
        set::FULL_THREADS,
        "threads of the whole load, of which `threads` run here; every output says so",
    ),
    key(
        "repeat",
        &[],
        Native,
        set::REPEAT,
        "run the job so often, one time after another and alone, with files of its own each time",
    ),
    key(
        "samples_per_file",
        &[],
        Native,
        set::SAMPLES_PER_FILE,
        "training feed: samples in each file",
    ),
    key(
        "sample_size",
        &[],
        Native,
        set::SAMPLE_SIZE,
        "training feed: bytes of a sample, or mean and standard deviation: `140M+-65M`",
    ),
    key(
        "ratio",
        &[],
        Native,
        set::RATIO,
        "training feed: samples are stored so many times smaller, as if the computation \
         compressed them",
    ),
    key(
        "columns",
        &[],
        Native,
        set::COLUMNS,
        "training feed from files of columns: bytes of a sample in each, `+` behind those that are \
         read: `4+,8,2*3`",
    ),
    key(
        "sample_group",
        &[],
        Native,
        set::SAMPLE_GROUP,
        "training feed: samples that are read together, as in a row group",
    ),
    key("batch_samples", &[], Native, set::BATCH_SAMPLES, "training feed: samples of a step"),
    key(
        "sample_order",
        &[],
        Native,
        set::SAMPLE_ORDER,
        "training feed: `shuffle`, `shuffle-files`, `in-order`, `reverse`, or `zipf:THETA`, which \
         draws samples one by one",
    ),
    key(
        "cache_memory",
        &[],
        Native,
        set::CACHE_MEMORY,
        "training feed: page-locked host memory that keeps whole samples which were read, the \
         least recently used of which leave for others: `4g`",
    ),
    key("epochs", &[], Native, set::EPOCHS, "training feed: passes over the data set"),
    key(
        "accelerators",
        &[],
        Native,
        set::ACCELERATORS,
        "training feed: accelerators that share the samples out, spread over the job's GPUs",
    ),
    key("readers", &[], Native, set::READERS, "training feed: reader threads of each accelerator"),
    key(
        "prefetch",
        &[],
        Native,
        set::PREFETCH,
        "training feed: batches that each reader may be ahead",
    ),
    key(
        "compute",
        &[],
        Native,
        set::COMPUTE,
        "training feed: what an accelerator does with a batch: `kernel`, `memory` (each with a \
         share: `kernel:50%`), `sleep` or `none`",
    ),
    key("compute_time", &[], Native, set::COMPUTE_TIME, "training feed: how long that takes"),
    key(
        "sample_compute_time",
        &[],
        Native,
        set::SAMPLE_COMPUTE_TIME,
        "training feed: how much longer it takes for each sample of a batch",
    ),
    key(
        "utilisation",
        &[],
        Native,
        set::UTILISATION,
        "training feed: accelerator utilisation to reach, in per cent",
    ),
    key(
        "slo",
        &[],
        Native,
        set::SLO,
        "training feed: service level that 95 % and 99 % of the batches are held against: \
         `interactive` (50 and 100 ms), `responsive` (100 and 200 ms), `batch` (1 and 5 s), or two \
         times, `50ms/100ms`",
    ),
];
