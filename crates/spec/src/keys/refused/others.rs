//! Real options of fio that gpuio does not have, by the reason that they share.

use super::refused;
use crate::keys::{Dialect, Key};

/// One refused key for each name, with the same reason and the same alternative.
macro_rules! family {
    ($name:ident, $why:expr, $instead:expr, [$($key:literal),+ $(,)?]) => {
        pub(super) const $name: &[Key] = &[
            $(refused($key, &[], Dialect::Fio, $why, $instead)),+
        ];
    };
}

family!(
    ZONES,
    "zoned devices need commands of their own, which gpuio does not send",
    "fio for zoned devices",
    [
        "read_beyond_wp",
        "zonecapacity",
        "zone_reset_threshold",
        "zone_reset_frequency",
        "job_max_open_zones",
    ]
);
family!(
    TRIM,
    "trim moves no bytes to measure",
    "fio for trim",
    ["trim_verify_zero", "trim_backlog", "trim_backlog_batch", "num_range"]
);
family!(
    FLOWS,
    "jobs have no weights: while the clock runs, no thread waits for another",
    "rate_iops= in each job",
    ["flow_id", "flow_watermark", "flow_sleep"]
);
family!(
    REPLAY,
    "traces are not replayed",
    "fio for replay",
    [
        "replay_time_scale",
        "replay_align",
        "replay_scale",
        "replay_skip",
        "merge_blktrace_file",
        "merge_blktrace_iters",
        "merge_blktrace_scalars",
        "read_iolog_chunked",
    ]
);
family!(
    PRIORITIES,
    "single I/Os have no priority of their own, and results are not split by it",
    "two jobs under different ionice(1) runs",
    ["cmdprio", "cmdprio_class", "cmdprio_split", "cmdprio_bssplit", "cmdprio_hint", "priohint"]
);
family!(
    NETWORK,
    "it belongs to an engine for networks, which moves no files",
    "fio for networks",
    [
        "port",
        "hostname",
        "listen",
        "protocol",
        "proto",
        "interface",
        "ttl",
        "pingpong",
        "nodelay",
        "window_size",
        "mss",
        "verb",
        "bindname",
        "serverip",
        "direct_write_to_pmem",
        "busy_wait_polling",
    ]
);
family!(
    HTTP,
    "it belongs to fio's engine for object stores over HTTP",
    "fio for object stores",
    [
        "https",
        "http_host",
        "http_user",
        "http_pass",
        "http_mode",
        "http_verbose",
        "http_s3_key",
        "http_s3_keyid",
        "http_s3_region",
        "http_s3_storage_class",
        "http_s3_sse_customer_key",
        "http_s3_sse_customer_algorithm",
        "http_swift_auth_token",
    ]
);
family!(
    CLIENTS,
    "it belongs to an engine for a storage system's own client library",
    "a mount of that system, with directory=",
    [
        "pool",
        "cont",
        "svc",
        "object_class",
        "chunk_size",
        "rbdname",
        "clustername",
        "conf",
        "busy_poll",
        "touch_objects",
        "volume",
        "brick",
        "nfs_url",
        "uri",
        "namenode",
        "hdfsdirectory",
        "single_instance",
    ]
);
family!(
    PASSTHROUGH,
    "it belongs to an engine that sends commands to a device around its file system",
    "engine=io_uring on the block device",
    [
        "cmd_type",
        "sg_write_mode",
        "stream_id",
        "readfua",
        "writefua",
        "skip_bad",
        "md_per_io_size",
        "pi_act",
        "pi_chk",
        "apptag",
        "apptag_mask",
        "write_mode",
        "verify_mode",
        "deac",
        "block_error_percentiles",
    ]
);
family!(
    NO_DATA,
    "it belongs to an engine that moves no data",
    "a shell script around gpuio",
    [
        "cpuload",
        "cpumode",
        "cpuchunks",
        "exit_on_io_done",
        "donorname",
        "inplace",
        "program",
        "arguments",
        "grace_time",
        "std_redirect",
        "stat_type",
    ]
);
family!(
    CONTENTS,
    "data of a given redundancy or compressibility is not made",
    "fill=random with refill=1 (nothing repeats)",
    ["dedupe_global", "dedupe_working_set_percentage", "buffer_pattern_offset"]
);
family!(
    MACHINE,
    "gpuio does not set that for a job",
    "leave it out",
    [
        "sqthread_poll_cpu",
        "write_hint",
        "fdp_pli",
        "plids",
        "dataplacement",
        "mmap_hugepage",
        "nowait"
    ]
);
