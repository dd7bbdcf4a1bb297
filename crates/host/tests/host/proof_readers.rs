//! Readers of the counters that show which way bytes took, on dumps as drivers print them.

use std::path::Path;

use gpuio_host::{Root, nfs, nvidia_fs};
use gpuio_testkit::tree::put;
use proptest::prelude::*;

const OLD: &str = include_str!("../fixtures/nvidia_fs_stats_2.0.txt");
const NEW: &str = gpuio_testkit::machines::NVIDIA_FS_STATS;
const MOUNTS: &[u8] = include_bytes!("../fixtures/mountstats");

/// A tree with these files; a test's own panic says enough.
#[expect(clippy::unwrap_used, reason = "only tests call it")]
fn tree(stats: Option<&str>, parameter: Option<&str>, mountstats: &[u8]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let put = |path: &str, body: &[u8]| put(dir.path(), path, body);
    if let Some(stats) = stats {
        put("proc/driver/nvidia-fs/stats", stats.as_bytes());
    }
    if let Some(parameter) = parameter {
        put("sys/module/nvidia_fs/parameters/rw_stats_enabled", parameter.as_bytes());
    }
    put("proc/self/mountstats", mountstats);
    dir
}

#[test]
fn both_layouts_of_nvidia_fs_are_read_by_name() {
    let old = nvidia_fs::parse_stats(OLD).unwrap();
    assert_eq!(old.gds_version.as_deref(), Some("0.9.0.743"));
    assert_eq!(old.stats_version.as_deref(), Some("2.0"));
    assert_eq!(old.driver_version.as_deref(), Some("2:3:1"));
    assert_eq!((old.reads.begun, old.reads.ok, old.reads.failed), (424_436_862, 424_436_734, 0));
    assert_eq!(old.reads.bytes, 21_518_771 << 20);
    assert_eq!((old.writes.begun, old.writes.bytes), (309_770_912, 9_748_727 << 20));
    assert_eq!(old.gpus, ["0000:be:00.0", "0000:e7:00.0"]);
    let new = nvidia_fs::parse_stats(NEW).unwrap();
    assert_eq!(new.stats_version.as_deref(), Some("4.0"));
    assert_eq!(new.driver_version.as_deref(), Some("2:7:47"));
    assert_eq!((new.reads.begun, new.writes.bytes, new.counts), (0, 0, None));
    assert_eq!(new.gpus.len(), 2);
    let further = new.further;
    assert_eq!((further.sparse_reads, further.sparse_holes), (Some(6), Some(0)));
    assert_eq!((further.bar1_maps, further.bar1_map_errors), (Some(183), Some(0)));
    assert_eq!((further.bar1_active, further.dma_map_errors), (Some(0), Some(0)));
    let pinned: Vec<_> = new.of_gpus.iter().map(|gpu| gpu.most_pinned_bytes).collect();
    assert_eq!(pinned, [Some(1 << 20); 2]);
    let far = NEW.replacen("cross_root_port(%)=0", "cross_root_port(%)=37", 1);
    let far = nvidia_fs::parse_stats(&far).unwrap().of_gpus;
    assert_eq!(far[0].cross_root_port_percent, Some(37));
    assert_eq!(far[1].cross_root_port_percent, Some(0));
    let error = nvidia_fs::parse_stats("x\nReads : n=many ok=0\n").unwrap_err();
    assert_eq!(error.line, 2);
}

#[test]
fn operations_in_flight_are_no_counter() {
    let busy = OLD.replace("Read=128 Write=0", "Read=0 Write=77");
    assert_ne!(busy, OLD);
    let sample = |stats: &str| {
        let dir = tree(Some(stats), Some("1\n"), b"");
        nvidia_fs::sample(&Root::at(dir.path())).unwrap().unwrap()
    };
    assert_eq!(sample(OLD).delta(&sample(&busy)), Some((0, 0)));
}

#[test]
fn reads_and_writes_count_only_while_the_parameter_says_so() {
    let later = OLD.replace("readMiB=21518771", "readMiB=21518871");
    let sample = |stats: &str, parameter: Option<&str>| {
        let dir = tree(Some(stats), parameter, b"");
        nvidia_fs::sample(&Root::at(dir.path())).unwrap().unwrap()
    };
    let moved = |first: Option<&str>, second: Option<&str>| {
        sample(OLD, first).delta(&sample(&later, second))
    };
    assert_eq!(moved(Some("1\n"), Some("1\n")), Some((100 << 20, 0)));
    assert_eq!(moved(Some("Y\n"), Some("Y\n")), Some((100 << 20, 0)));
    assert_eq!(moved(Some("0\n"), Some("0\n")), None);
    assert_eq!(moved(Some("0\n"), Some("1\n")), None, "switched on half-way");
    assert_eq!(moved(None, None), None);
    let back = sample(&later, Some("1")).delta(&sample(OLD, Some("1")));
    assert_eq!(back, None, "the module was reset");
    let dir = tree(None, Some("1"), b"");
    assert_eq!(nvidia_fs::sample(&Root::at(dir.path())).unwrap(), None);
}

#[test]
fn modules_that_registered_with_nvidia_fs() {
    let dir = tree(Some(OLD), None, b"");
    let mut problems = Vec::new();
    let mut drivers = || nvidia_fs::drivers(&Root::at(dir.path()), &mut problems);
    assert_eq!(drivers().known(), None);
    let file = dir.path().join("proc/driver/nvidia-fs/modules");
    std::fs::write(file, "nvme: 1\nrpcrdma: 1\n").unwrap();
    assert_eq!(drivers().known().unwrap(), &["nvme", "rpcrdma"]);
    assert!(nvidia_fs::parse_drivers("\n \n").is_empty());
    assert!(problems.is_empty(), "{problems:?}");
}

#[test]
fn bytes_of_nfs_mounts() {
    let mounts = nfs::parse_mountstats(MOUNTS).unwrap();
    let of = |at: &str| mounts.iter().find(|mount| mount.mount_point == Path::new(at));
    let first = of("/mnt/a b").unwrap();
    assert_eq!((first.direct_read_bytes, first.direct_write_bytes), (300, 400));
    assert_eq!((first.server_read_bytes, first.server_write_bytes), (1 << 20, 2 << 20));
    assert_eq!(of("/mnt/other").unwrap().server_write_bytes, 9);
    assert_eq!(of("/srv"), None, "not NFS");
    let short = b"device a:/b mounted on /m with fstype nfs\n\tbytes:\t1 2 3\n";
    assert_eq!(nfs::parse_mountstats(short).unwrap_err().line, 2);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn no_parser_panics(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = nfs::parse_mountstats(&bytes);
        let _ = nvidia_fs::parse_stats(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn no_parser_panics_on_cut_dumps(at in 0usize..1200, middle in "[a-z=: 0-9\n]{0,20}") {
        let cut = |text: &str| format!("{}{middle}", text.get(..at).unwrap_or(text));
        let _ = nvidia_fs::parse_stats(&cut(OLD));
        let _ = nvidia_fs::parse_stats(&cut(NEW));
        let mounts = cut(&String::from_utf8_lossy(MOUNTS));
        let _ = nfs::parse_mountstats(mounts.as_bytes());
    }
}
