//! Every kind of warning with figures that could be a run's, for the reference and the tests.

use crate::WarningKind;

/// One of each kind.
pub(super) fn all() -> Vec<WarningKind> {
    let mut all = first_half();
    all.extend(second_half());
    all.extend(of_devices());
    all
}

fn text(word: &str) -> String {
    word.to_owned()
}

fn first_half() -> Vec<WarningKind> {
    vec![
        WarningKind::PageCacheServedReads { bytes: 10 << 30, from_storage: 1 << 20 },
        WarningKind::DirectButCached { bytes: 10 << 30, from_storage: 2 << 20 },
        WarningKind::Holes {
            hole_bytes: 12 << 20,
            unwritten_bytes: 0,
            range_bytes: 64 << 20,
            reads: true,
        },
        WarningKind::MappedMemory { bytes: 11 << 30, set_up_ns: 104_000_000 },
        WarningKind::TierServedReads { from_memory: 3 << 30, from_storage: 5 << 30 },
        WarningKind::DirectRefused { filesystem: text("tmpfs") },
        WarningKind::DepthOnSynchronousEngine { depth: 32, engine: text("psync") },
        WarningKind::AsyncEngineOnBufferedFile { engine: text("libaio") },
        WarningKind::SplitByBlockLayer {
            mean_io_bytes: 1 << 20,
            mean_request_bytes: 250_000,
            device: text("nvme0n1"),
        },
        WarningKind::BufferedWrites { bytes: 4 << 30, to_storage: Some(1 << 30) },
        WarningKind::SyncWrites,
        WarningKind::DirectWritesInDeviceCache { device: text("nvme0n1"), known: false },
    ]
}

fn second_half() -> Vec<WarningKind> {
    vec![
        WarningKind::RunTooShort { elapsed_ns: 120_000_000, ios: 480, of_files: false },
        WarningKind::RunTooShort { elapsed_ns: 120_000_000, ios: 480, of_files: true },
        WarningKind::DataSetFitsMemory { data_bytes: 8 << 30, memory_bytes: 64 << 30 },
        WarningKind::EngineSteppedDown {
            requested: text("io_uring"),
            actual: text("psync"),
            why: vec![text("kernel.io_uring_disabled is 2")],
        },
        WarningKind::Stopped {
            stopped_ns: 6_000_000_000,
            suspended_ns: 0,
            times: 1,
            left_out_ios: 32,
        },
        WarningKind::RateNotReached { reached: 0.731 },
        WarningKind::NeverStarted { ios: 1_200, completed: 48_000, longest_wait_ns: 250_000_000 },
        WarningKind::NotSteady { requested: text("iops:2%"), observed: Some(3.21) },
        WarningKind::UnevenFinish {
            first_done_ns: 4_000_000_000,
            last_done_ns: 9_500_000_000,
            of_files: false,
        },
        WarningKind::UnevenFinish {
            first_done_ns: 4_000_000_000,
            last_done_ns: 9_500_000_000,
            of_files: true,
        },
        WarningKind::SoftwareGpu,
        WarningKind::FaultsInjected { inject: text("eio:offset=1M") },
        WarningKind::WorkBetweenIos { between_ns: 3_000_000_000, share: 0.25 },
        WarningKind::MoreThreadsThanCpus { threads: 64, cpus: 8 },
        WarningKind::FarFromGpu { gpu: 3, worker_node: 0, gpu_node: 1 },
        WarningKind::Note { note: text("skip_bufregister has no effect on path host") },
    ]
}

fn of_devices() -> Vec<WarningKind> {
    let link = |counted_bytes_per_s| WarningKind::LinkDisagrees {
        link: text("ib0"),
        direction: text("read"),
        bytes_per_s: 8 << 30,
        counted_bytes_per_s,
    };
    vec![
        WarningKind::ReadAhead { bytes: 1 << 30, from_storage: 32 << 30, sequential: false },
        WarningKind::OtherTraffic {
            device: text("nvme0n1"),
            direction: text("read"),
            ours_bytes: 1 << 30,
            device_bytes: 3 << 30,
        },
        WarningKind::ArrayPartUsed {
            array: text("md0"),
            level: Some(text("raid0")),
            members: 4,
            busiest: text("nvme3n1"),
            busiest_bytes: 9 << 30,
            least: text("nvme4n1"),
            least_bytes: 0,
        },
        WarningKind::PathIdle {
            device: text("nvme0n1"),
            idle: vec![text("nvme0c1n1")],
            busiest: text("nvme0c0n1"),
            busiest_bytes: 5 << 30,
            policy: Some(text("numa")),
        },
        WarningKind::DepthNotReached { device: text("sda"), requested: 256, observed: 3.2 },
        WarningKind::OtherGpu {
            requested: vec![12],
            other: 0,
            other_bytes_per_s: 5 << 30,
            bytes_per_s: 4 << 30,
        },
        link(1 << 30),
        link(20 << 30),
    ]
}
