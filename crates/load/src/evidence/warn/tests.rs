//! The meaning of counters for a job's numbers, on cases that deserve a warning and on some that
//! don't.

use gpuio_record::{HolesReading, MappedResult, RangeKind, RangesPlan, StorageReading};

use super::*;
use crate::evidence::reconcile::Counted;
use gpuio_testkit::jobs::{job, result};

/// The warnings of one job of which no device was sampled.
fn warned(job: &JobPlan, result: &JobResult) -> Vec<WarningKind> {
    let (jobs, results) = (std::slice::from_ref(job), std::slice::from_ref(result));
    let found = reconcile::find(&GroupContext { jobs, results, counted: &Counted::default() });
    found.into_iter().map(|(_, kind)| kind).chain(of_storage(job, result)).collect()
}

fn storage(requests: u64, bytes: u64) -> StorageReading {
    StorageReading {
        device: "nvme0n1".into(),
        reads: requests,
        read_bytes: bytes,
        writes: requests,
        write_bytes: bytes,
        volatile_cache: None,
        flushes: None,
    }
}

#[test]
fn reads_that_storage_did_not_deliver() {
    let found = |lines: &str, from_storage: Option<u64>| {
        let job = job(lines);
        let mut result = result(&job, 100_000);
        result.cache.process_read_bytes = from_storage;
        warned(&job, &result)
    };
    let bytes = 100_000 * 4096;
    let cached = WarningKind::DirectButCached { bytes, from_storage: 0 };
    assert_eq!(found("rw=randread", Some(0)), [cached]);
    let from_storage = bytes / 2 - 1;
    let served = |of_files| WarningKind::PageCacheServedReads { bytes, from_storage, of_files };
    let buffered = "rw=randread\ndirect=0\nsize=32g\nengine=psync";
    assert_eq!(found(buffered, Some(from_storage)), [served(false)]);
    // Recorded calls begin at any byte: O_DIRECT is no way out, a cold cache is.
    let words = served(true).to_string();
    assert!(!words.contains("--direct") && words.contains("--invalidate"), "{words}");
    let mut replay = job(buffered);
    replay.ranges =
        Some(RangesPlan { kind: RangeKind::Files, count: 1, empty: 0, bytes, passes: 1 });
    let mut result = result(&replay, 100_000);
    result.cache.process_read_bytes = Some(from_storage);
    assert_eq!(warned(&replay, &result)[0], served(true));
    assert_eq!(found(buffered, Some(bytes / 2)), [], "half came from storage");
    assert_eq!(found("rw=randread", None), [], "it is unknown");
    assert_eq!(found("rw=randread\nengine=null", Some(0)), [], "it moves no byte");
    assert_eq!(found("rw=randwrite", Some(0)), [], "it reads none");
}

#[test]
fn the_processs_reads_are_compared_with_the_whole_groups() {
    let job = job("rw=randread");
    let mut results = [result(&job, 100_000), result(&job, 300_000)];
    let bytes = 400_000 * 4096;
    let mut both = |from_storage: u64| {
        for result in &mut results {
            result.cache.process_read_bytes = Some(from_storage);
        }
        let jobs = [job.clone(), job.clone()];
        let counted = &Counted::default();
        reconcile::find(&GroupContext { jobs: &jobs, results: &results, counted }).len()
    };
    assert_eq!(both(bytes), 0);
    assert_eq!(both(bytes / 2 - 1), 2, "each job has one");
}

#[test]
fn requests_of_another_size_at_the_device() {
    let found = |lines: &str, requests, bytes| {
        let job = job(lines);
        let mut result = result(&job, 100_000);
        result.cache.storage =
            vec![StorageReading { writes: 0, write_bytes: 0, ..storage(requests, bytes) }];
        warned(&job, &result)
    };
    let bytes = 100_000 * 4096;
    let split = |mean_request_bytes, ahead| WarningKind::SplitByBlockLayer {
        mean_io_bytes: 4096,
        mean_request_bytes,
        device: "nvme0n1".into(),
        ahead,
    };
    assert_eq!(found("rw=randread", 200_000, bytes), [split(2048, false)]);
    assert_eq!(found("rw=randread", 50_000, bytes), [split(8192, false)], "merged");
    assert_eq!(found("rw=randread", 100_000, bytes), []);
    let others = found("rw=randread", 200_000, 2 * bytes);
    assert!(matches!(&others[..], [WarningKind::OtherTraffic { .. }]), "{others:?}");
    assert_eq!(
        found("rw=randread\ndirect=0\nsize=32g", 200_000, bytes),
        [],
        "no I/O is that small"
    );
    let ahead = found("rw=read\ndirect=0\nsize=32g", 3_125, bytes);
    assert_eq!(ahead, [split(131_072, true)], "read-ahead, and the bytes are the tool's");
}

/// A result of so many writes of this size.
fn writes(job: &JobPlan, ios: u64, block: u64) -> JobResult {
    let mut result = result(job, ios);
    let bytes = ios * block;
    (result.write.bytes, result.file_leg.write_bytes) = (bytes, bytes);
    result.cache.process_write_bytes = Some(bytes);
    result
}

/// Another process that flushes makes requests without bytes: they are no parts of our writes.
#[test]
fn flushes_of_others_split_no_write() {
    let found = |block: u64, requests, flushes| {
        let job = job(&format!("rw=randwrite\nbs={block}"));
        let mut result = writes(&job, 1_000, block);
        let device = storage(requests, 1_000 * block);
        let (reads, read_bytes) = (0, 0);
        result.cache.storage = vec![StorageReading { reads, read_bytes, flushes, ..device }];
        let split = |kind: &WarningKind| matches!(kind, WarningKind::SplitByBlockLayer { .. });
        warned(&job, &result).iter().any(split)
    };
    assert!(found(65_536, 4_000, Some(0)));
    assert!(found(65_536, 4_000, Some(100)));
    assert!(!found(65_536, 4_000, Some(3_000)));
    assert!(!found(65_536, 4_000, None), "any of them may be one");
    assert!(!found(4096, 8_000, Some(0)), "no part is smaller than a page");
}

/// 300 writes a second with O_DSYNC, one thread: QEMU's NVMe drive, Linux 6.1, counted twice as
/// many writes, of half the size on average. Every other one was a flush.
#[test]
fn flushes_are_no_split_writes() {
    let found = |lines: &str, volatile_cache| {
        let job = job(lines);
        let result = &mut writes(&job, 1_500, 65_536);
        let device = StorageReading { volatile_cache, ..storage(3_000, 1_500 * 65_536) };
        let (reads, read_bytes, flushes) = (0, 0, Some(0));
        result.cache.storage = vec![StorageReading { reads, read_bytes, flushes, ..device }];
        let split = |kind: &WarningKind| matches!(kind, WarningKind::SplitByBlockLayer { .. });
        warned(&job, result).iter().any(split)
    };
    assert!(!found("rw=write\nbs=64k\nsync=1", Some(true)));
    assert!(!found("rw=write\nbs=64k\nfsync=1", Some(true)));
    assert!(found("rw=write\nbs=64k\nsync=1", Some(false)), "nothing is flushed there");
    assert!(found("rw=write\nbs=64k", Some(true)), "these are split");
}

#[test]
fn writes_that_may_not_have_arrived() {
    let found = |lines: &str, devices: usize| {
        let job = job(lines);
        let mut result = result(&job, 100_000);
        let (reads, read_bytes) = (result.read.ios, result.read.bytes);
        let device = StorageReading { reads, read_bytes, ..storage(100_000, 100_000 * 4096) };
        result.cache.storage = vec![device; devices];
        warned(&job, &result)
    };
    let bytes = 100_000 * 4096;
    let buffered = "rw=randwrite\ndirect=0\nsize=32g";
    let known = WarningKind::BufferedWrites { bytes, to_storage: Some(bytes) };
    assert_eq!(found(buffered, 1), [known]);
    let unknown = WarningKind::BufferedWrites { bytes, to_storage: None };
    assert_eq!(found(buffered, 0), std::slice::from_ref(&unknown));
    assert_eq!(found(buffered, 2), std::slice::from_ref(&unknown), "of which is not known");
    for flushed in ["end_fsync=1", "fsync=1", "fdatasync=8"] {
        assert_eq!(found(&format!("{buffered}\n{flushed}"), 1), [], "{flushed}");
    }
    assert_eq!(found(&format!("{buffered}\nfsync=50000"), 0), std::slice::from_ref(&unknown));
    assert_eq!(found(&format!("{buffered}\nfsync_on_close=1"), 0).len(), 1, "after the time");
    assert_eq!(found("rw=randwrite\nsync=1", 1), [WarningKind::SyncWrites]);
    let (device, known) = ("nvme0n1".to_owned(), false);
    assert_eq!(
        found("rw=randwrite", 1),
        [WarningKind::DirectWritesInDeviceCache { device, known }]
    );
    assert_eq!(found("rw=randwrite", 0), []);
    assert_eq!(found("rw=randwrite\nengine=null", 1), []);
}

/// The kernel knows of most drives whether they have a volatile cache.
#[test]
fn direct_writes_to_a_drive_without_a_volatile_cache_are_no_warning() {
    let job = job("rw=randwrite");
    let found = |volatile_cache| {
        let mut result = result(&job, 100_000);
        let own = storage(0, 0);
        let own = StorageReading { writes: 100_000, write_bytes: 100_000 * 4096, ..own };
        result.cache.storage = vec![StorageReading { volatile_cache, ..own }];
        warned(&job, &result)
    };
    let warning = |known| {
        let device = "nvme0n1".to_owned();
        WarningKind::DirectWritesInDeviceCache { device, known }
    };
    assert_eq!(found(Some(false)), []);
    assert_eq!(found(Some(true)), [warning(true)]);
    assert_eq!(found(None), [warning(false)]);
}

/// fsync(2) and fdatasync(2) send the device a flush of its cache (Linux,
/// Documentation/block/writeback_cache_control.rst).
#[test]
fn direct_writes_that_are_flushed_in_the_measured_time_are_no_warning() {
    let found = |flush: &str| {
        let job = job(&format!("rw=randwrite\n{flush}"));
        let mut result = result(&job, 100_000);
        let volatile_cache = Some(true);
        let (writes, write_bytes) = (100_000, 100_000 * 4096);
        let own = StorageReading { writes, write_bytes, volatile_cache, ..storage(0, 0) };
        result.cache.storage = vec![own];
        warned(&job, &result)
    };
    for flush in ["end_fsync=1", "fsync=1", "fdatasync=8"] {
        assert_eq!(found(flush), [], "{flush}");
    }
    for late in ["fsync=50000", "fsync_on_close=1"] {
        let (device, known) = ("nvme0n1".to_owned(), true);
        let warning = WarningKind::DirectWritesInDeviceCache { device, known };
        assert_eq!(found(late), [warning], "{late}");
    }
}

/// Reads in holes are no cache's doing, and are reported separately.
#[test]
fn holes_are_reported_and_not_taken_for_a_cache() {
    let job = job("rw=randread");
    let found = |hole_bytes: u64, from_storage: u64| {
        let mut result = result(&job, 100_000);
        result.cache.process_read_bytes = Some(from_storage);
        result.cache.holes = Some(HolesReading {
            range_bytes: 100,
            hole_bytes: Some(hole_bytes),
            unwritten_bytes: Some(0),
        });
        warned(&job, &result)
    };
    let holes = |hole_bytes| WarningKind::Holes {
        hole_bytes,
        unwritten_bytes: 0,
        range_bytes: 100,
        reads: true,
    };
    let bytes = 100_000 * 4096;
    assert_eq!(found(0, bytes), []);
    assert_eq!(found(100, 0), [holes(100)]);
    assert_eq!(found(80, bytes / 5), [holes(80)], "storage gave what it holds");
    let cached = WarningKind::DirectButCached { bytes, from_storage: bytes / 20 };
    assert_eq!(found(80, bytes / 20), [cached, holes(80)], "and here it did not");
}

#[test]
fn storage_delivers_nothing_while_new_files_in_memory_are_mapped() {
    let found = |lines: &str, resident_before: Option<f64>| {
        let job = job(lines);
        let mut result = result(&job, 100);
        let (map_ns, register_ns) = (200, 3);
        let mapped = MappedResult { map_ns, register_ns, resident_before, ..Default::default() };
        result.mapped = Some(mapped);
        let all = of_storage(&job, &result);
        let mut texts = all.iter().map(ToString::to_string).filter(|text| text.contains("pinned"));
        texts.next().unwrap().contains("which worked in the 203 ns before")
    };
    assert!(found("rw=read", Some(0.5)) && found("rw=read", None));
    assert!(!found("rw=read", Some(1.0)) && !found("rw=write", Some(0.0)));
}
