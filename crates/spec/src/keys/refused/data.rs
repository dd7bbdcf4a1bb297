//! Refused keys about data: writes, contents, verification, logs.

use super::refused;
use crate::keys::{Dialect, Key};

/// Writes, caches and contents.
pub(super) const WRITES: &[Key] = &[
    refused("sync_file_range", &[], Dialect::Fio, "gpuio does not control write-back", "direct=1"),
    refused(
        "fsync_on_close",
        &[],
        Dialect::Fio,
        "no flush is added when a file is closed",
        "end_fsync=1, or sync=1 for durable writes",
    ),
    refused(
        "write_barrier",
        &[],
        Dialect::Fio,
        "gpuio sends no barriers between writes",
        "sync=1 for durable writes",
    ),
    refused("atomic", &[], Dialect::Fio, "RWF_ATOMIC is not supported", "leave it out"),
    refused(
        "readonly",
        &[],
        Dialect::Fio,
        "the key rw= decides whether a job writes",
        "rw=read or rw=randread",
    ),
    refused(
        "zero_buffers",
        &[],
        Dialect::Fio,
        "many storage systems compress blocks of zeros",
        "fill=pattern or fill=random",
    ),
    refused(
        "buffer_pattern",
        &[],
        Dialect::Fio,
        "user-defined patterns are not supported",
        "fill=pattern or fill=random",
    ),
    refused(
        "dedupe_percentage",
        &[],
        Dialect::Fio,
        "data of a given redundancy is not supported",
        "fill=random with refill=1 (nothing repeats)",
    ),
    refused(
        "dedupe_mode",
        &[],
        Dialect::Fio,
        "data of a given redundancy is not supported",
        "fill=random with refill=1",
    ),
    refused(
        "iomem_align",
        &["mem_align"],
        Dialect::Fio,
        "buffers always have the alignment that direct I/O needs",
        "unaligned=1 for unaligned offsets",
    ),
    refused(
        "hugepage_size",
        &[],
        Dialect::Fio,
        "huge pages can't be requested by job files",
        "leave it out",
    ),
    refused(
        "lockmem",
        &[],
        Dialect::Fio,
        "gpuio does not lock memory of the machine",
        "a memory limit from outside, such as a cgroup",
    ),
];

/// Verification.
pub(super) const CHECKS: &[Key] = &[
    refused(
        "verify_pattern",
        &[],
        Dialect::Fio,
        "gpuio verifies its own pattern, which depends on the position",
        "verify=pass or verify=inline",
    ),
    refused("verify_interval", &[], Dialect::Fio, "a block is verified as a whole", "leave it out"),
    refused("verify_offset", &[], Dialect::Fio, "blocks have no header", "leave it out"),
    refused(
        "verify_only",
        &[],
        Dialect::Fio,
        "use a read job to verify only",
        "rw=read with verify=pass",
    ),
    refused(
        "verify_state_load",
        &[],
        Dialect::Fio,
        "the pattern depends only on seed and position, so there is no state",
        "the same seed= for both runs",
    ),
];

/// Logs and replay.
pub(super) const LOGS: &[Key] = &[
    refused(
        "write_hist_log",
        &[],
        Dialect::Fio,
        "no log files are written by a job",
        "-o FILE with --format json, which includes the histograms",
    ),
    refused(
        "write_iolog",
        &[],
        Dialect::Fio,
        "single I/Os are not recorded",
        "seed=, which repeats the same I/Os",
    ),
    refused(
        "read_iolog",
        &[],
        Dialect::Fio,
        "traces are not replayed",
        "fio for replay; bssplit= and random_distribution= for a similar mix",
    ),
    refused("replay_redirect", &[], Dialect::Fio, "traces are not replayed", "fio for replay"),
    refused("replay_no_stall", &[], Dialect::Fio, "traces are not replayed", "fio for replay"),
    refused(
        "log_hist_msec",
        &[],
        Dialect::Fio,
        "no log files are written by a job",
        "--format json, which includes the histograms",
    ),
    refused(
        "status_interval",
        &[],
        Dialect::Fio,
        "it is not a setting of a job",
        "the progress line of the command",
    ),
];
