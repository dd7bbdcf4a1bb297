//! Refused keys that shape the load: pacing, order, queues.

use super::refused;
use crate::keys::{Dialect, Key};

/// Time, pacing and ends of runs.
pub(super) const PACE: &[Key] = &[
    refused("thinktime_iotime", &[], Dialect::Fio, "it only shapes thinktime", "leave it out"),
    refused("thinktime_blocks_type", &[], Dialect::Fio, "it only shapes thinktime", "leave it out"),
    refused(
        "thinkcycles",
        &[],
        Dialect::Fio,
        "CPU work between I/Os is not simulated",
        "rate_iops=",
    ),
    refused(
        "rate_cycle",
        &[],
        Dialect::Fio,
        "a rate limit always applies from one I/O to the next",
        "leave it out",
    ),
    refused("rate_ignore_thinktime", &[], Dialect::Fio, "it only shapes thinktime", "leave it out"),
    refused(
        "latency_target",
        &[],
        Dialect::Fio,
        "queue depth is not searched within a run",
        "gpuio sweep FILE --latency-target p99=5ms --over depth=1..64, which finds the highest \
         load below it",
    ),
    refused(
        "latency_window",
        &[],
        Dialect::Fio,
        "it belongs to latency_target",
        "runs at several depth= values",
    ),
    refused(
        "latency_percentile",
        &[],
        Dialect::Fio,
        "it belongs to latency_target",
        "runs at several depth= values",
    ),
    refused(
        "latency_run",
        &[],
        Dialect::Fio,
        "it belongs to latency_target",
        "runs at several depth= values",
    ),
    refused(
        "max_latency",
        &[],
        Dialect::Fio,
        "a run does not stop because of one slow I/O",
        "check the maximum in the report",
    ),
];

/// Order and region of I/O.
pub(super) const REGION: &[Key] = &[
    refused(
        "zonemode",
        &[],
        Dialect::Fio,
        "a job's blocks lie in one region, so that coverage and verification are of all of it; \
         commands of zoned devices are not sent",
        "offset= and size= with one job for each region, or fio for zoned devices",
    ),
    refused("zonesize", &[], Dialect::Fio, "it belongs to zonemode", "offset= and size="),
    refused("zonerange", &[], Dialect::Fio, "it belongs to zonemode", "offset= and size="),
    refused("zoneskip", &[], Dialect::Fio, "it belongs to zonemode", "offset= and size="),
    refused(
        "max_open_zones",
        &[],
        Dialect::Fio,
        "zoned devices are not supported",
        "fio for zoned devices",
    ),
    refused(
        "offset_align",
        &[],
        Dialect::Fio,
        "offsets are used exactly as requested",
        "an offset= that is a multiple of bs=",
    ),
    refused(
        "percentage_random",
        &[],
        Dialect::Fio,
        "random and sequential I/O are not mixed in one job",
        "two jobs, one with rw=read and one with rw=randread",
    ),
    refused(
        "rw_sequencer",
        &[],
        Dialect::Fio,
        "it belongs to the offset modifiers of rw=, which are refused: a step leaves blocks out, \
         so a pass would not cover its region",
        "leave it out",
    ),
    refused(
        "bs_unaligned",
        &["blocksize_unaligned"],
        Dialect::Fio,
        "block sizes of a range are multiples of the smallest",
        "bs=min:max:step, which gives the step",
    ),
    refused("bs_is_seq_rand", &[], Dialect::Fio, "one block size is for both orders", "two jobs"),
    refused(
        "flow",
        &[],
        Dialect::Fio,
        "jobs have no weights: while the clock runs, no thread waits for another",
        "rate_iops= in each job",
    ),
    refused(
        "filename_format",
        &[],
        Dialect::Fio,
        "file names can't be built from a pattern",
        "directory=, or filename= with the names",
    ),
    refused(
        "opendir",
        &[],
        Dialect::Fio,
        "directories are not searched for files",
        "filename= with the names",
    ),
    refused(
        "file_append",
        &[],
        Dialect::Fio,
        "data files do not grow during a run",
        "rw=write over a file of size=",
    ),
    refused(
        "fill_device",
        &[],
        Dialect::Fio,
        "a run does not stop because a device is full",
        "size=",
    ),
    refused(
        "fill_fs",
        &[],
        Dialect::Fio,
        "a run does not stop because a file system is full",
        "size=",
    ),
    refused(
        "filesize_range",
        &[],
        Dialect::Fio,
        "all files of a job have the same size",
        "one job for each size",
    ),
];

/// Queues and engines.
pub(super) const QUEUE: &[Key] = &[
    refused(
        "iodepth_low",
        &[],
        Dialect::Fio,
        "the queue is always refilled to its depth",
        "depth=",
    ),
    refused(
        "serialize_overlap",
        &[],
        Dialect::Fio,
        "overlapping writes are not serialised",
        "regions that do not overlap: size= without shared files",
    ),
    refused("uncached", &[], Dialect::Fio, "RWF_DONTCACHE is not supported", "direct=1"),
];
