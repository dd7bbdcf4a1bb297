//! Refused keys about the process, and gdsio's.

use super::refused;
use crate::keys::{Dialect, Key};

/// The process and its files.
pub(super) const PROCESS: &[Key] = &[
    refused(
        "include",
        &[],
        Dialect::Fio,
        "one job file can't include another",
        "write its lines here",
    ),
    refused(
        "exitall",
        &[],
        Dialect::Fio,
        "a job ends by its own time or bytes, so that its result is of all of them; cut off by \
         another job, it would be of a part that differs from run to run",
        "the same runtime= in every job",
    ),
    refused(
        "exit_what",
        &[],
        Dialect::Fio,
        "a job ends by its own time or bytes, so that its result is of all of them; cut off by \
         another job, it would be of a part that differs from run to run",
        "the same runtime= in every job",
    ),
    refused(
        "continue_on_error",
        &[],
        Dialect::Fio,
        "an I/O error always fails its job",
        "leave it out",
    ),
    refused("ignore_error", &[], Dialect::Fio, "an I/O error always fails its job", "leave it out"),
    refused(
        "exec_prerun",
        &[],
        Dialect::Fio,
        "a job file runs no commands",
        "a shell script around gpuio",
    ),
    refused(
        "exec_postrun",
        &[],
        Dialect::Fio,
        "a job file runs no commands",
        "a shell script around gpuio",
    ),
    refused(
        "nice",
        &[],
        Dialect::Fio,
        "set the priority of the process yourself",
        "nice(1) with gpuio",
    ),
    refused("prio", &[], Dialect::Fio, "set the I/O priority yourself", "ionice(1) with gpuio"),
    refused(
        "prioclass",
        &[],
        Dialect::Fio,
        "set the I/O priority yourself",
        "ionice(1) with gpuio",
    ),
    refused(
        "cmdprio_percentage",
        &[],
        Dialect::Fio,
        "per-I/O priorities are not supported",
        "two jobs under different ionice(1) runs",
    ),
    refused("cpumask", &[], Dialect::Fio, "CPU bit masks are not supported", "cpus=0-3,8"),
    refused(
        "numa_mem_policy",
        &[],
        Dialect::Fio,
        "host memory is allocated on the node of the threads",
        "numa=",
    ),
    refused(
        "cgroup",
        &[],
        Dialect::Fio,
        "create a control group yourself",
        "systemd-run(1) with gpuio",
    ),
    refused(
        "cgroup_weight",
        &[],
        Dialect::Fio,
        "create a control group yourself",
        "systemd-run(1) with gpuio",
    ),
    refused("uid", &[], Dialect::Fio, "set the user yourself", "sudo(8) with gpuio"),
    refused("gid", &[], Dialect::Fio, "set the group yourself", "sudo(8) with gpuio"),
    refused(
        "ioscheduler",
        &[],
        Dialect::Fio,
        "gpuio does not change block device settings",
        "set the device's queue/scheduler yourself",
    ),
    refused(
        "profile",
        &[],
        Dialect::Fio,
        "fio's built-in profiles are not supported",
        "the keys of that load",
    ),
    refused(
        "clientname",
        &[],
        Dialect::Fio,
        "gpuio runs on one machine",
        "one run on each machine",
    ),
    refused("unlink_each_loop", &[], Dialect::Fio, "files are kept through all loops", "unlink=1"),
    refused(
        "allow_mounted_write",
        &[],
        Dialect::Fio,
        "a mounted device is never written",
        "a file on that file system",
    ),
    refused("create_only", &[], Dialect::Fio, "use a write job to create files", "rw=write"),
    refused("trim_percentage", &[], Dialect::Fio, "trim moves no bytes to measure", "fio for trim"),
    refused(
        "ignore_zone_limits",
        &[],
        Dialect::Fio,
        "zoned devices are not supported",
        "fio for zoned devices",
    ),
    refused(
        "fdp",
        &[],
        Dialect::Fio,
        "flexible data placement is not supported",
        "fio for placement",
    ),
];

/// Keys that users of gdsio's files may look for.
pub(super) const GDSIO: &[Key] = &[
    refused(
        "per_job_stats",
        &[],
        Dialect::Gdsio,
        "it is a flag of the command, not a key",
        "-J on the command line",
    ),
    refused(
        "mem_type",
        &[],
        Dialect::Gdsio,
        "gdsio's -m is a flag; job files use names",
        "memory=device, vmm, pinned, malloc or mmap",
    ),
    refused("batch_size", &[], Dialect::Gdsio, "gdsio's -B is a flag", "batch="),
];
