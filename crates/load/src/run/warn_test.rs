//! Each warning on a case that deserves it, and silence on one that does not.

use gpuio_record::facts::HostFacts;
use gpuio_record::{ActualEngine, HolesReading, StorageReading};

use super::*;
use crate::fixture_test::{host, job, result};

/// The warnings of one job as the machine of the fixture gives them.
fn warned(job: &JobPlan, result: &JobResult) -> Vec<WarningKind> {
    on(&host(), job, result)
}

fn on(host: &HostFacts, job: &JobPlan, result: &JobResult) -> Vec<WarningKind> {
    let all =
        group(std::slice::from_ref(job), std::slice::from_ref(result), host, &Counted::default());
    assert!(all.iter().all(|warning| warning.text == warning.kind.to_string()));
    all.into_iter().map(|warning| warning.kind).collect()
}

fn storage(requests: u64, bytes: u64) -> StorageReading {
    StorageReading {
        device: "nvme0n1".into(),
        reads: requests,
        read_bytes: bytes,
        writes: requests,
        write_bytes: bytes,
        volatile_cache: None,
    }
}

#[test]
fn a_plain_job_is_left_alone() {
    for lines in ["rw=randread", "rw=randwrite", "path=staged\nrw=randread", "runtime=10"] {
        let job = job(lines);
        assert_eq!(warned(&job, &result(&job, 100_000)), [], "{lines}");
    }
}

#[test]
fn reads_that_storage_never_saw() {
    let seen = |lines: &str, from_storage: Option<u64>| {
        let job = job(lines);
        let mut result = result(&job, 100_000);
        result.cache.process_read_bytes = from_storage;
        warned(&job, &result)
    };
    let bytes = 100_000 * 4096;
    let cached = WarningKind::DirectButCached { bytes, from_storage: 0 };
    assert_eq!(seen("rw=randread", Some(0)), [cached]);
    let served = WarningKind::PageCacheServedReads { bytes, from_storage: bytes / 2 - 1 };
    // 32 GiB do not fit into memory: that is another warning.
    let buffered = "rw=randread\ndirect=0\nsize=32g\nengine=psync";
    assert_eq!(seen(buffered, Some(bytes / 2 - 1)), [served]);
    assert_eq!(seen(buffered, Some(bytes / 2)), [], "half came from storage");
    assert_eq!(seen("rw=randread", None), [], "nobody knows");
    assert_eq!(seen("rw=randread\nengine=null", Some(0)), [], "it moves no byte");
    assert_eq!(seen("rw=randwrite", Some(0)), [], "it reads none");
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
        group(&[job.clone(), job.clone()], &results, &host(), &Counted::default()).len()
    };
    assert_eq!(both(bytes), 0);
    assert_eq!(both(bytes / 2 - 1), 2, "each job is told");
}

#[test]
fn what_devices_counted_is_about_a_job_that_ran_alone() {
    let job = job("rw=randread");
    let mut result = result(&job, 100_000);
    result.cache.storage = vec![storage(200_000, 3 * 100_000 * 4096)];
    let about = |jobs: &[JobPlan], results: &[JobResult]| {
        let all = group(jobs, results, &host(), &Counted::default());
        let others =
            all.into_iter().find(|one| matches!(one.kind, WarningKind::OtherTraffic { .. }));
        others.map(|one| one.job)
    };
    let alone = about(std::slice::from_ref(&job), std::slice::from_ref(&result));
    assert_eq!(alone, Some(Some(job.name.clone())));
    let both = about(&[job.clone(), job.clone()], &[result.clone(), result]);
    assert_eq!(both, Some(None), "which of them it is nobody can say");
}

#[test]
fn a_file_system_without_o_direct() {
    let job = job("directory=/refuses\nsize=32g");
    let refused = WarningKind::DirectRefused { filesystem: "tmpfs".into() };
    assert_eq!(warned(&job, &result(&job, 100_000)), [refused]);
}

#[test]
fn a_buffered_data_set_that_fits_into_memory() {
    let fits = |lines: &str| {
        let job = job(lines);
        warned(&job, &result(&job, 100_000))
    };
    let (data_bytes, memory_bytes) = (8 << 30, 16 << 30);
    let warning = WarningKind::DataSetFitsMemory { data_bytes, memory_bytes };
    assert_eq!(fits("size=4g\nthreads=2\ndirect=0"), [warning]);
    assert_eq!(fits("size=8g\nthreads=2\ndirect=0"), []);
    assert_eq!(fits("size=4g\nthreads=2\ndirect=1"), []);
    let job = job("size=4g\ndirect=0");
    assert_eq!(on(&HostFacts::default(), &job, &result(&job, 100_000)), [], "memory unknown");
}

#[test]
fn requests_of_another_size_at_the_device() {
    let seen = |lines: &str, requests, bytes| {
        let job = job(lines);
        let mut result = result(&job, 100_000);
        result.cache.storage =
            vec![StorageReading { writes: 0, write_bytes: 0, ..storage(requests, bytes) }];
        warned(&job, &result)
    };
    let bytes = 100_000 * 4096;
    let split = |mean_request_bytes| WarningKind::SplitByBlockLayer {
        mean_io_bytes: 4096,
        mean_request_bytes,
        device: "nvme0n1".into(),
    };
    assert_eq!(seen("rw=randread", 200_000, bytes), [split(2048)]);
    assert_eq!(seen("rw=randread", 50_000, bytes), [split(8192)], "merged");
    assert_eq!(seen("rw=randread", 100_000, bytes), []);
    let others = seen("rw=randread", 200_000, 2 * bytes);
    assert!(matches!(&others[..], [WarningKind::OtherTraffic { .. }]), "{others:?}");
    assert_eq!(seen("rw=randread\ndirect=0\nsize=32g", 200_000, bytes), [], "no I/O is that small");
    let ahead = seen("rw=read\ndirect=0\nsize=32g", 3_125, bytes);
    assert_eq!(ahead, [split(131_072)], "read-ahead, and the bytes are the tool's");
}

#[test]
fn writes_that_may_not_have_arrived() {
    let seen = |lines: &str, devices: usize| {
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
    assert_eq!(seen(buffered, 1), [known]);
    let unknown = WarningKind::BufferedWrites { bytes, to_storage: None };
    assert_eq!(seen(buffered, 0), std::slice::from_ref(&unknown));
    assert_eq!(seen(buffered, 2), [unknown], "which of them it was is not known");
    assert_eq!(seen("rw=randwrite\nsync=1", 1), [WarningKind::SyncWrites]);
    let (device, known) = ("nvme0n1".to_owned(), false);
    assert_eq!(seen("rw=randwrite", 1), [WarningKind::DirectWritesInDeviceCache { device, known }]);
    assert_eq!(seen("rw=randwrite", 0), []);
    assert_eq!(seen("rw=randwrite\nengine=null", 1), []);
}

/// The kernel knows of most drives whether they have a volatile cache.
#[test]
fn direct_writes_to_a_drive_without_a_volatile_cache_are_no_warning() {
    let job = job("rw=randwrite");
    let seen = |volatile_cache| {
        let mut result = result(&job, 100_000);
        let own = storage(0, 0);
        let own = StorageReading { writes: 100_000, write_bytes: 100_000 * 4096, ..own };
        result.cache.storage = vec![StorageReading { volatile_cache, ..own }];
        warned(&job, &result)
    };
    let told = |known| {
        let device = "nvme0n1".to_owned();
        WarningKind::DirectWritesInDeviceCache { device, known }
    };
    assert_eq!(seen(Some(false)), []);
    assert_eq!(seen(Some(true)), [told(true)]);
    assert_eq!(seen(None), [told(false)]);
}

/// A job that only writes reads nothing that the page cache could serve.
#[test]
fn a_job_that_only_writes_is_not_warned_of_reads() {
    let seen = |lines: &str| {
        let job = job(lines);
        warned(&job, &result(&job, 100_000))
    };
    let small = "direct=0\nsize=1g";
    assert_eq!(seen(&format!("rw=write\nsync=1\n{small}")), [WarningKind::SyncWrites]);
    let mixed = seen(&format!("rw=randrw\nsync=1\n{small}"));
    assert!(mixed.iter().any(|one| matches!(one, WarningKind::DataSetFitsMemory { .. })));
}

/// What lies in holes is no cache's doing, and is reported separately.
#[test]
fn holes_are_reported_and_not_taken_for_a_cache() {
    let job = job("rw=randread");
    let seen = |hole_bytes: u64, from_storage: u64| {
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
    assert_eq!(seen(0, bytes), []);
    assert_eq!(seen(100, 0), [holes(100)]);
    assert_eq!(seen(80, bytes / 5), [holes(80)], "storage gave what it holds");
    let cached = WarningKind::DirectButCached { bytes, from_storage: bytes / 20 };
    assert_eq!(seen(80, bytes / 20), [cached, holes(80)], "and here it did not");
}

#[test]
fn an_asynchronous_engine_on_the_page_cache() {
    let seen = |lines: &str| {
        let job = job(&format!("size=32g\n{lines}"));
        warned(&job, &result(&job, 100_000))
    };
    let engine = "libaio".to_owned();
    let warning = WarningKind::AsyncEngineOnBufferedFile { engine };
    assert_eq!(seen("engine=libaio\ndirect=0"), [warning]);
    assert_eq!(seen("engine=libaio\ndirect=1"), []);
    assert_eq!(seen("engine=pool\ndirect=0"), []);
}

#[test]
fn an_engine_that_stepped_down() {
    let job = job("engine=io_uring");
    let mut result = result(&job, 100_000);
    let got = |got: &str, why: &[&str]| ActualEngine {
        actual: got.into(),
        steps_down: why.iter().map(|why| (*why).to_owned()).collect(),
        workers: 1,
    };
    result.engine = vec![got("io_uring (fixed files)", &[])];
    assert_eq!(warned(&job, &result), []);
    result.engine.push(got("io_uring", &["memlock is 64 KiB"]));
    let stepped = WarningKind::EngineSteppedDown {
        requested: "io_uring".into(),
        actual: "io_uring".into(),
        why: vec!["memlock is 64 KiB".into()],
    };
    assert_eq!(warned(&job, &result), [stepped]);
}

#[test]
fn faults_on_purpose() {
    let job = job("inject=eio=1%");
    let inject = "eio=1%".to_owned();
    assert_eq!(warned(&job, &result(&job, 100_000)), [WarningKind::FaultsInjected { inject }]);
}

#[test]
fn a_run_too_short_for_its_figures() {
    let job = job("rw=randread");
    let seen = |ios, elapsed_ns| {
        let mut result = result(&job, ios);
        (result.first_done_ns, result.last_done_ns) = (elapsed_ns, elapsed_ns);
        warned(&job, &result)
    };
    const SECOND: u64 = 1_000_000_000;
    let short = |ios, elapsed_ns| WarningKind::RunTooShort { elapsed_ns, ios };
    assert_eq!(seen(100_000, SECOND - 1), [short(100_000, SECOND - 1)]);
    assert_eq!(seen(999, 10 * SECOND), [short(999, 10 * SECOND)]);
    assert_eq!(seen(1000, SECOND), []);
    assert_eq!(seen(0, 0), [], "nothing completed: other words say so");
}

#[test]
fn workers_that_finish_far_apart() {
    let job = job("rw=randread");
    let seen = |first_done_ns| {
        let mut result = result(&job, 100_000);
        result.first_done_ns = first_done_ns;
        warned(&job, &result)
    };
    let last_done_ns = 10_000_000_000;
    let (first_done_ns, edge) = (8_999_999_999, 9_000_000_000);
    assert_eq!(seen(first_done_ns), [WarningKind::UnevenFinish { first_done_ns, last_done_ns }]);
    assert_eq!(seen(edge), []);
}

#[test]
fn a_rate_that_was_not_reached() {
    let seen = |lines: &str, ios| {
        let job = job(&format!("rw=randread\n{lines}"));
        warned(&job, &result(&job, ios))
    };
    // 10 s, 4 KiB each.
    assert_eq!(seen("rate_iops=1000", 9_500), []);
    let reached = |share: f64| WarningKind::RateNotReached { reached: share };
    assert_eq!(seen("rate_iops=1000", 9_000), [reached(0.9)]);
    assert_eq!(seen("rate_iops=1000\nthreads=2", 9_000), [reached(0.45)], "a rate per thread");
    assert_eq!(seen("rate=4096000", 9_000), [reached(0.9)]);
    // The bytes' bound is the one that held it.
    assert_eq!(seen("rate=4096000\nrate_iops=100000", 10_000), []);
}

#[test]
fn work_between_i_os() {
    let seen = |lines: &str, between_ios_ns| {
        let job = job(&format!("rw=randwrite\nthreads=2\n{lines}"));
        let mut result = result(&job, 100_000);
        result.between_ios_ns = between_ios_ns;
        warned(&job, &result)
    };
    let between_ns = 5_000_000_000;
    let warning = WarningKind::WorkBetweenIos { between_ns, share: 0.25 };
    assert_eq!(seen("verify=pass", between_ns), std::slice::from_ref(&warning));
    assert_eq!(seen("refill=1", between_ns), [warning]);
    assert_eq!(seen("verify=pass", 0), []);
}

#[test]
fn more_threads_than_cpus_in_the_group() {
    let (two, three) = (job("threads=2"), job("threads=3"));
    let results = [result(&two, 100_000), result(&three, 100_000)];
    let all = group(&[two, three], &results, &host(), &Counted::default());
    let [only] = &all[..] else { panic!("{all:?}") };
    assert_eq!(only.kind, WarningKind::MoreThreadsThanCpus { threads: 5, cpus: 4 });
    assert_eq!(only.job, None);
    let four = job("threads=4");
    assert_eq!(warned(&four, &result(&four, 100_000)), []);
    let five = job("threads=5");
    assert_eq!(on(&HostFacts::default(), &five, &result(&five, 100_000)), [], "CPUs unknown");
}

#[test]
fn a_software_gpu() {
    let mut job = job("path=staged");
    job.gpus[0].software = true;
    assert_eq!(warned(&job, &result(&job, 100_000)), [WarningKind::SoftwareGpu]);
}

#[test]
fn a_worker_far_from_its_gpu() {
    let mut job = job("path=staged\nthreads=2");
    let assign_cpus = |job: &mut JobPlan, node| {
        job.workers.iter_mut().for_each(|worker| worker.numa_node = node);
    };
    assign_cpus(&mut job, Some(0));
    let far = WarningKind::FarFromGpu { gpu: 0, worker_node: 0, gpu_node: 1 };
    assert_eq!(warned(&job, &result(&job, 100_000)), [far], "once for the job");
    assign_cpus(&mut job, Some(1));
    assert_eq!(warned(&job, &result(&job, 100_000)), []);
    assign_cpus(&mut job, None);
    assert_eq!(warned(&job, &result(&job, 100_000)), []);
}

#[test]
fn notes_are_passed_on() {
    let job = job("path=host\ngpu=0");
    let [note] = &job.notes[..] else { panic!("{:?}", job.notes) };
    let warning = WarningKind::Note { note: note.clone() };
    assert_eq!(warned(&job, &result(&job, 100_000)), [warning]);
}
