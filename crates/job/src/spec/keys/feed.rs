//! A training feed (docs/workload.md), and what workloads have besides.

use super::Dialect::Native;
use super::flag::workload;
use super::loads::{FEED, RANGES, REPLAY};
use super::printed::{self, REST};
use super::set::key;
use super::unused::{computes_nothing, when};
use super::{Flag, Key};
use crate::spec::value;
use crate::spec::value::words_of;
use gpuio_base::units::format_duration_ns;
use gpuio_record::ServiceLevel;

pub(super) const KEYS: &[Key] = &[
    key(
        "scale",
        Native,
        field!(scale, value::scale),
        "factor of `size`, or of a training feed's `files`: `0.01` uses a part, `2` twice as much; \
         every output says so",
    )
    .flags(&[workload(
        "FACTOR",
        "Part of the data to use, or how many times as much; every output says it [1]",
    )])
    .not_of(RANGES | REPLAY)
    .prints(REST + 6, printed::scale)
    .remark(printed::scaled)
    .tried(["0.5", "0.25"]),
    key(
        "files",
        Native,
        feed!("feed.files", files, value::at_least_one),
        "training feed: files of the whole data set",
    )
    .flags(&[Flag {
        aliases: &["snapshots", "users"],
        ..workload(
            "N",
            "Files of the whole data set: the snapshots of seismic, the users of kv-cache",
        )
    }])
    .not_of(REPLAY)
    .prints(REST + 3, |p| Some(p.feed.as_ref()?.full_files.to_string()))
    .tried(["40", "50"]),
    key(
        "slo",
        Native,
        feed!("feed.slo", slo, value::slo),
        "training feed: service level that 95 % and 99 % of the batches are held against: \
         `interactive` (50 and 100 ms), `responsive` (100 and 200 ms), `batch` (1 and 5 s), or two \
         times, `50ms/100ms`",
    )
    .flags(&[workload(
        "LEVEL",
        "Times in which 95 % and 99 % of the batches are to be read or written: interactive, \
         responsive, batch, or two times: 50ms/100ms",
    )])
    .not_of(REPLAY)
    .prints(REST + 22, |p| Some(p.feed.as_ref()?.slo?.times().map(format_duration_ns).join("/")))
    .with_words(|| words_of(&ServiceLevel::NAMED))
    .tried(["interactive", "1ms/2ms"]),
    key(
        "ratio",
        Native,
        feed!("feed.ratio", ratio, value::ratio),
        "training feed: samples are stored so many times smaller, as if the computation compressed \
         them",
    )
    .flags(&[workload("FACTOR", "How many times smaller samples are stored than they are")])
    .not_of(REPLAY)
    .prints(REST + 9, |p| {
        p.feed.as_ref().filter(|feed| feed.ratio > 1.0).map(|feed| feed.ratio.to_string())
    })
    .tried(["2", "4"]),
    key(
        "accelerators",
        Native,
        feed!("feed.accelerators", accelerators, value::at_least_one_u32),
        "training feed: accelerators that share the samples out, spread over the job's GPUs",
    )
    .flags(&[workload(
        "N",
        "Accelerators that share the samples out, spread evenly over the GPUs; or auto: runs the \
         workload again and again to find the most that keep the utilisation to reach [one for \
         each GPU]",
    )])
    .not_of(REPLAY)
    .prints(REST + 15, |p| Some(p.feed.as_ref()?.accelerators.to_string()))
    .tried(["2", "3"]),
    key(
        "epochs",
        Native,
        feed!("feed.epochs", epochs, value::at_least_one),
        "training feed: passes over the data set",
    )
    .flags(&[workload("N", "Passes over the data set")])
    .not_of(REPLAY)
    .prints(REST + 14, |p| Some(p.feed.as_ref()?.epochs.to_string()))
    .tried(["2", "3"]),
    key(
        "batch_samples",
        Native,
        feed!("feed.batch_samples", batch_samples, value::at_least_one),
        "training feed: samples of a step",
    )
    .flags(&[Flag { aliases: &["batch"], ..workload("N", "Samples of a step") }])
    .not_of(REPLAY)
    .prints(REST + 12, |p| Some(p.feed.as_ref()?.batch_samples.to_string()))
    .tried(["2", "3"]),
    key(
        "readers",
        Native,
        feed!("feed.readers", readers, value::at_least_one_u32),
        "training feed: reader threads of each accelerator",
    )
    .flags(&[workload("N", "Reader threads of each accelerator")])
    .not_of(REPLAY)
    .prints(REST + 16, |p| Some(p.feed.as_ref()?.readers.to_string()))
    .tried(["2", "3"]),
    key(
        "prefetch",
        Native,
        feed!("feed.prefetch", prefetch, value::at_least_one_u32),
        "training feed: batches that each reader may be ahead",
    )
    .flags(&[workload("N", "Batches that each reader may be ahead")])
    .not_of(REPLAY)
    .prints(REST + 17, |p| Some(p.feed.as_ref()?.prefetch.to_string()))
    .tried(["1", "3"]),
    key(
        "compute",
        Native,
        feed!("feed.compute", compute, value::compute),
        "training feed: what an accelerator does with a batch: `kernel`, `memory` (each with a \
         share: `kernel:50%`), `sleep` or `none`",
    )
    .flags(&[workload(
        "WORK",
        "Work of accelerators on a batch: kernel (arithmetic in registers) or memory (a stream \
         over GPU memory), on all multiprocessors or a share of them: kernel:50%; sleep, as MLPerf \
         Storage's do; or none [kernel; sleep on path host]",
    )])
    .not_of(REPLAY)
    .decides()
    .prints(REST + 19, |p| Some(p.feed.as_ref()?.compute.key()))
    .with_words(|| words_of(&value::COMPUTE))
    .tried(["memory", "sleep"]),
    key(
        "compute_time",
        Native,
        feed!("feed.compute_ns", compute_ns, value::some_time),
        "training feed: how long that takes",
    )
    .flags(&[workload("TIME", "How long that takes for a batch")])
    .unused(computes_nothing)
    .not_of(REPLAY)
    .prints(REST + 20, |p| {
        p.feed.as_ref().filter(|it| it.compute_ns > 0).map(|it| format_duration_ns(it.compute_ns))
    })
    .tried(["1ms", "2ms"]),
    key(
        "sample_compute_time",
        Native,
        feed!("feed.sample_compute_ns", sample_compute_ns, value::some_time),
        "training feed: how much longer it takes for each sample of a batch",
    )
    .flags(&[workload("TIME", "How much longer it takes for each sample of a batch")])
    .unused(computes_nothing)
    .not_of(REPLAY)
    .tried(["1ms", "2ms"]),
    key(
        "ranges",
        Native,
        field!(ranges, value::ranges),
        "read all of the named files, which threads divide: `files` (from begin to end), or \
         `tensors` (of the safetensors format, one by one in the order of the header)",
    )
    .not_of(FEED | REPLAY)
    .prints(REST + 1, |p| p.ranges.map(|ranges| ranges.kind.word().to_owned()))
    .tried(["files", "tensors"]),
    key(
        "full_threads",
        Native,
        field!(full_threads, value::at_least_one_u32),
        "threads of the whole load, of which `threads` run here; every output says so",
    )
    .not_of(FEED | RANGES | REPLAY)
    .prints(REST + 5, |p| Some(p.part.as_ref().filter(|_| p.has_size())?.full_threads.to_string()))
    .tried(["64", "128"]),
    key(
        "repeat",
        Native,
        field!(repeat, value::repeat),
        "run the job so often, one time after another and alone, with files of its own each time",
    )
    .not_of(REPLAY)
    .tried(["2", "3"]),
    key(
        "stage",
        Native,
        field!(stage, value::stage),
        "`memory`: two jobs, NAME-stall (GPU memory to staged pages, as gpuio.checkpoint does) \
         and NAME-drain (from such pages to the files, beside a computation)",
    )
    .flags(&[workload(
        "WHERE",
        "memory: writes go to staged pages first, and then to the files, as gpuio.checkpoint \
         does; both are measured [off]",
    )])
    .not_of(FEED | RANGES | REPLAY)
    .unused(|s| {
        let reads = "the job reads; use rw=write or randwrite, or leave it out";
        when(s.plan.read_percent > 0, reads)
    })
    .with_words(|| words_of(&value::STAGE))
    .tried(["memory", "off"]),
    key(
        "samples_per_file",
        Native,
        feed!("feed.samples_per_file", samples_per_file, value::at_least_one),
        "training feed: samples in each file",
    )
    .not_of(REPLAY)
    .prints(REST + 7, |p| Some(p.feed.as_ref()?.samples_per_file.to_string()))
    .tried(["8", "16"]),
    key(
        "sample_size",
        Native,
        feed!("feed.sample_size", sample_size, value::sample_size),
        "training feed: bytes of a sample, or mean and standard deviation: `140M+-65M`",
    )
    .not_of(REPLAY)
    .prints(REST + 8, printed::sample_size)
    .tried(["300k", "400k"]),
    key(
        "columns",
        Native,
        feed!("feed.columns", columns, value::columns),
        "training feed from files of columns: bytes of a sample in each, `+` behind those that are \
         read: `4+,8,2*3`",
    )
    .not_of(REPLAY)
    .prints(REST + 10, printed::columns)
    .tried(["4+,4", "8+"]),
    key(
        "sample_group",
        Native,
        feed!("feed.sample_group", sample_group, value::at_least_one),
        "training feed: samples that are read together, as in a row group",
    )
    .not_of(REPLAY)
    .prints(REST + 11, |p| Some(p.feed.as_ref()?.sample_group.to_string()))
    .tried(["2", "4"]),
    key(
        "sample_order",
        Native,
        feed!("feed.order", order, value::sample_order),
        "training feed: `shuffle`, `shuffle-files`, `in-order`, `reverse`, or `zipf:THETA`, which \
         draws samples one by one",
    )
    .not_of(REPLAY)
    .prints(REST + 13, |p| Some(p.feed.as_ref()?.order.key()))
    .tried(["shuffle-files", "zipf:1.2"]),
    key(
        "cache_memory",
        Native,
        feed!("feed.cache_memory", cache_memory, value::size),
        "training feed: page-locked host memory that keeps whole samples which were read, the \
         least recently used of which leave for others: `4g`",
    )
    .not_of(REPLAY)
    .prints(REST + 18, |p| Some(p.feed.as_ref()?.tier?.requested_bytes.to_string()))
    .remark(|p| {
        let tier = p.feed.as_ref()?.tier?;
        Some(format!("keeps {} x {} bytes of what is read, by LRU", tier.places, tier.place_bytes))
    })
    .tried(["1m", "2m"]),
    key(
        "utilisation",
        Native,
        feed!("feed.utilisation", utilisation, value::share),
        "training feed: accelerator utilisation to reach, in per cent",
    )
    .unused(computes_nothing)
    .not_of(REPLAY)
    .prints(REST + 21, |p| Some(p.feed.as_ref()?.least_utilisation_percent?.to_string()))
    .tried(["80", "90"]),
];
