//! Each warning on a case that deserves it, and silence on one that does not.

use gpuio_record::facts::HostFacts;
use gpuio_record::{
    ActualEngine, BytesOf, DrawnSizes, InjectedFaults, NeverStarted, SHORT_NS, VerifyOutcome,
    WorkerResult,
};

use super::*;
use gpuio_testkit::jobs::{host, job, result};

fn keys() -> TakenKeys {
    TakenKeys::of(&[], &[])
}

/// The warnings of one job as the machine of the fixture gives them.
fn warned(job: &JobPlan, result: &JobResult) -> Vec<WarningKind> {
    on(&host(), job, result)
}

fn on(host: &HostFacts, job: &JobPlan, result: &JobResult) -> Vec<WarningKind> {
    let keys = TakenKeys::of(&[], std::slice::from_ref(job));
    let all =
        group(std::slice::from_ref(job), std::slice::from_ref(result), (host, &keys), Vec::new());
    let text = |kind: &WarningKind| kind.text(&|key: &str| keys.spelled(key));
    assert!(all.iter().all(|warning| warning.text == text(&warning.kind)));
    all.into_iter().map(|warning| warning.kind).collect()
}

/// Advice to switch on what all jobs have on already would change nothing.
#[test]
fn a_switch_that_is_on_is_no_advice() {
    let [on, off] = ["invalidate=1", ""].map(|line| job(&format!("rw=read\ndirect=0\n{line}")));
    let spelled = |jobs: &[JobPlan]| TakenKeys::of(&[], jobs).spelled("invalidate");
    assert_eq!(spelled(std::slice::from_ref(&on)), None);
    for jobs in [vec![], vec![off.clone()], vec![on, off]] {
        assert_eq!(spelled(&jobs).as_deref(), Some("--invalidate"));
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
fn what_devices_counted_is_about_a_job_that_ran_alone() {
    let job = job("rw=randread");
    let result = result(&job, 100_000);
    let other = WarningKind::OtherTraffic {
        device: "nvme0n1".into(),
        direction: "read".into(),
        ours_bytes: 1,
        device_bytes: 3 << 20,
    };
    let about = |jobs: &[JobPlan], results: &[JobResult]| {
        let all = group(jobs, results, (&host(), &keys()), vec![(None, other.clone())]);
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
    // A little more than all of it.
    let fits = |lines: &str| {
        let job = job(lines);
        warned(&job, &result(&job, 2_100_000))
    };
    let (data_bytes, memory_bytes) = (8 << 30, 16 << 30);
    let warning = WarningKind::DataSetFitsMemory { data_bytes, memory_bytes, of_files: false };
    assert_eq!(fits("rw=randread\nsize=4g\nthreads=2\ndirect=0"), [warning]);
    assert_eq!(fits("size=8g\nthreads=2\ndirect=0"), []);
    assert_eq!(fits("size=4g\nthreads=2\ndirect=1"), []);
    let job = job("size=4g\ndirect=0");
    assert_eq!(on(&HostFacts::default(), &job, &result(&job, 100_000)), [], "memory unknown");
}

/// The page cache can't serve what it was not given by a first pass.
#[test]
fn a_single_pass_over_a_data_set_is_not_warned_of_a_second() {
    let seen = |lines: &str, ios: u64| {
        let job = job(&format!("bs=4k\nsize=1g\ndirect=0\n{lines}"));
        let warned = warned(&job, &result(&job, ios));
        warned.iter().any(|one| matches!(one, WarningKind::DataSetFitsMemory { .. }))
    };
    let pass = (1 << 30) / 4096;
    for (lines, ios, expected) in [
        ("rw=read\nloops=1", pass, false),
        ("rw=read\nloops=2", 2 * pass, true),
        ("rw=read\nruntime=10\ntime_based=1", pass, false),
        ("rw=read\nruntime=10\ntime_based=1", pass + 1, true),
        ("rw=read\nloops=1\nthreads=2", 2 * pass, false),
        ("rw=read\nruntime=10\ntime_based=1\nramp_time=5", pass, true),
        ("rw=randread\nloops=1", pass, false),
        ("rw=randrw\nloops=1", pass / 2, true),
        ("rw=randread\nnorandommap=1\nloops=1", pass, true),
        ("rw=read\nloops=1\nioengine=psync\nnumjobs=2\nfilename=shared", 2 * pass, true),
    ] {
        assert_eq!(seen(lines, ios), expected, "{lines}, {ios} I/Os");
    }
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
    let engine = |name: &str, why: &[&str]| ActualEngine {
        actual: name.into(),
        steps_down: why.iter().map(|why| (*why).to_owned()).collect(),
        workers: 1,
    };
    result.engine = vec![engine("io_uring (fixed files)", &[])];
    assert_eq!(warned(&job, &result), []);
    result.engine.push(engine("io_uring", &["memlock is 64 KiB"]));
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
    let mut result = result(&job, 100_000);
    result.file_leg.injected.eio = 9;
    let made = result.file_leg.injected;
    let after = InjectedFaults { eio: 2, ..InjectedFaults::default() };
    result.verify = Some(VerifyOutcome { injected: after, ..VerifyOutcome::default() });
    let kinds = warned(&job, &result);
    assert_eq!(kinds, [WarningKind::FaultsInjected { inject, made, after, missing: Vec::new() }]);
    let counts = "(eio=1%: eio 9; in the verification: eio 2)";
    assert!(kinds[0].to_string().contains(counts), "{}", kinds[0]);
    result.verify = None;
    result.file_leg.injected = InjectedFaults::default();
    let never = warned(&job, &result)[0].to_string();
    assert!(never.contains("None occurred of: eio;"), "{never}");
}

#[test]
fn blocks_of_several_sizes_that_were_cut() {
    let job = job("rw=randread\nbs=4k-64k");
    let mut result = result(&job, 100_000);
    let mut drawn = DrawnSizes { ios: 100, cut_ios: 0, drawn_bytes: 3_481_600, bytes: 3_481_600 };
    result.drawn_sizes = Some(drawn);
    assert_eq!(warned(&job, &result), []);
    (drawn.cut_ios, drawn.bytes) = (40, 2 << 20);
    result.drawn_sizes = Some(drawn);
    let DrawnSizes { ios, cut_ios, drawn_bytes, bytes } = drawn;
    let cut = WarningKind::BlocksCut { ios, cut_ios, drawn_bytes, bytes, random: true };
    assert_eq!(warned(&job, &result), [cut]);
}

#[test]
fn a_run_too_short_for_its_figures() {
    let bytes = job("rw=randread\nio_size=1m");
    let of_bytes = warned(&bytes, &result(&bytes, 256));
    assert!(matches!(of_bytes[..], [WarningKind::RunTooShort { of_bytes: true, .. }, ..]));
    // The advice names the key that ended it: beside a time, bytes that were all moved.
    for (lines, ios, key) in [
        ("rw=randread\nbs=4k\nnumber_ios=256", 256, Some(BytesOf::NumberIos)),
        ("rw=randread\nbs=4k\nio_size=1m\nruntime=9s", 256, Some(BytesOf::IoSize)),
        ("rw=randread\nbs=4k\nio_size=1g\nruntime=9s", 256, None),
        ("rw=randread\nbs=4k\nsize=1m\nloops=1", 256, Some(BytesOf::Loops)),
    ] {
        let job = job(&format!("{lines}\nthreads=1"));
        let mut result = result(&job, ios);
        (result.read.bytes, result.last_done_ns) = (ios * 4096, 1_000_000);
        let found = warned(&job, &result).into_iter().find_map(|kind| match kind {
            WarningKind::RunTooShort { bytes_of, .. } => Some(bytes_of),
            _ => None,
        });
        assert_eq!(found, Some(key), "{lines}");
    }
    let job = job("rw=randread\nruntime=1s");
    let seen = |ios, elapsed_ns| {
        let mut result = result(&job, ios);
        (result.first_done_ns, result.last_done_ns) = (elapsed_ns, elapsed_ns);
        warned(&job, &result)
    };
    const SECOND: u64 = 1_000_000_000;
    let short = |ios, elapsed_ns| {
        let (of_files, of_bytes) = (false, false);
        WarningKind::RunTooShort { elapsed_ns, ios, of_files, of_bytes, bytes_of: None }
    };
    let below = SHORT_NS - 1;
    assert_eq!(seen(100_000, below), [short(100_000, below)]);
    assert_eq!(seen(999, 10 * SECOND), [short(999, 10 * SECOND)]);
    assert_eq!(seen(1000, SHORT_NS), [], "a run of a second may end a little before");
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
    let uneven = WarningKind::UnevenFinish { first_done_ns, last_done_ns, of_files: false };
    assert_eq!(seen(first_done_ns), [uneven]);
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
    // I/Os that failed are no queue, and no short run.
    let job = job("rw=randread\nrate_iops=1000");
    let failing = gpuio_record::JobResult { failed: 9_967, ..result(&job, 33) };
    assert_eq!(warned(&job, &failing), []);
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
    let warned_of = |fio_headers, [reads, writes, refill]: [bool; 3]| {
        let share = 0.25;
        WarningKind::WorkBetweenIos { between_ns, share, fio_headers, reads, writes, refill }
    };
    let writes = warned_of(false, [false, true, false]);
    assert_eq!(seen("verify=pass", between_ns), std::slice::from_ref(&writes));
    assert!(writes.to_string().ends_with("use --verify=rewrite, which works after the run."));
    let headers = [warned_of(true, [false, true, false])];
    assert_eq!(seen("path=host\nverify=crc32c", between_ns), headers);
    let both = warned_of(false, [false, true, true]);
    assert_eq!(seen("refill=1\nverify=pass", between_ns), [both]);
    let refill = warned_of(false, [false, false, true]);
    assert_eq!(seen("refill=1", between_ns), std::slice::from_ref(&refill));
    assert!(refill.to_string().ends_with("To measure speed, omit --refill."), "{refill}");
    assert_eq!(seen("verify=pass", 0), []);
    let job = job("rw=randread\nthreads=2\nverify=inline");
    let mut result = result(&job, 100_000);
    result.between_ios_ns = between_ns;
    let reads = warned(&job, &result);
    assert_eq!(reads, [warned_of(false, [true, false, false])]);
    assert!(reads[0].to_string().ends_with("use --verify=pass, which works after the run."));
    // A worker without a file does nothing, between I/Os neither.
    let worker = |thread, ios| WorkerResult { thread, bytes: 0, ios, done_ns: 0 };
    result.workers = vec![worker(0, 100_000), worker(1, 0)];
    let share = |warned: &[WarningKind]| match warned {
        [WarningKind::WorkBetweenIos { share, .. }] => *share,
        _ => panic!("{warned:?}"),
    };
    assert_eq!(share(&warned(&job, &result)), 0.5);
    result.workers[1].ios = 1;
    assert_eq!(share(&warned(&job, &result)), 0.25);
}

/// Verification that nobody requested is no fault of the load: it is noted with what it may cost.
#[test]
fn gpuios_own_verification_between_i_os_is_noted() {
    let mut job = job("rw=randwrite\nthreads=2\nverify=pass");
    job.own_verification = true;
    let seen = |between_ios_ns| {
        let mut result = result(&job, 100_000);
        result.between_ios_ns = between_ios_ns;
        warned(&job, &result)
    };
    let [WarningKind::Note { note }] = &seen(4_000_000_000)[..] else { panic!() };
    assert!(note.contains("up to 25 % higher without (--verify=off)"), "{note}");
    assert_eq!(seen(100_000_000), [], "half a per cent");
}

/// 300 I/Os are due on average; the draw has 274, and all of them were done in time.
#[test]
fn fewer_random_arrivals_than_on_average_are_no_queue() {
    let seen = |process: &str, ios: u64, never: u64| {
        let job = job(&format!("rate_iops=100\nrate_process={process}"));
        let mut result = result(&job, ios);
        result.never_started = Some(NeverStarted { ios: never, longest_wait_ns: 1 });
        warned(&job, &result).into_iter().find_map(|kind| match kind {
            WarningKind::RateNotReached { reached } => Some(reached),
            _ => None,
        })
    };
    // 10 s, as in the tests above.
    assert_eq!(seen("poisson", 910, 0), None);
    assert_eq!(seen("poisson", 910, 1), None);
    assert_eq!(seen("linear", 910, 0), Some(0.91), "steady arrivals are as many as the rate has");
    assert!(seen("poisson", 600, 400).is_some_and(|reached| (reached - 0.6).abs() < 1e-9));
}

#[test]
fn more_threads_than_cpus_in_the_group() {
    let (two, three) = (job("threads=2"), job("threads=3"));
    let results = [result(&two, 100_000), result(&three, 100_000)];
    let all = group(&[two, three], &results, (&host(), &keys()), Vec::new());
    let [only] = &all[..] else { panic!("{all:?}") };
    let of = ThreadsOf::Job;
    assert_eq!(only.kind, WarningKind::MoreThreadsThanCpus { threads: 5, cpus: 4, of });
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
fn a_software_gpu_is_no_matter_of_jobs_that_use_no_gpu() {
    let (host, mut soft) = (job("path=host"), job("path=staged"));
    soft.gpus[0].software = true;
    soft.name = "soft".to_owned();
    let results = [result(&host, 100_000), result(&soft, 100_000)];
    let all = group(&[host, soft], &results, (&self::host(), &keys()), Vec::new());
    let of: Vec<_> = all.iter().filter(|one| one.kind == WarningKind::SoftwareGpu).collect();
    let [only] = of[..] else { panic!("{all:?}") };
    assert_eq!(only.job.as_deref(), Some("soft"));
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

/// Not below five per cent longer or ten shorter, and of a feed that computes alone.
#[test]
fn a_computation_that_takes_longer_or_shorter_than_planned() {
    let job = job("path=host\nfiles=100\nsample_size=100000\nbatch_samples=10\ncompute=sleep\n\
                   compute_time=10ms\n");
    let seen = |compute_ns: u64| {
        let feed = serde_json::json!({
            "span_ns": 1, "samples": 1, "samples_per_s": 1.0, "steps": 1, "complete": true,
            "stall_ns": 0, "first_batch_ns": 0, "epochs": [], "rules": [],
            "accelerators": [{ "number": 0, "steps": 2, "samples": 2, "stall_ns": 0,
                               "compute_ns": compute_ns }],
        });
        let mut result = result(&job, 100_000);
        result.feed = Some(serde_json::from_value(feed).unwrap());
        let all = warned(&job, &result).into_iter();
        all.filter_map(|kind| match kind {
            WarningKind::ComputeOverran { percent } => Some(percent.round()),
            WarningKind::ComputeFellShort { percent } => Some(-percent.round()),
            _ => None,
        })
        .collect::<Vec<_>>()
    };
    assert!(seen(10_400_000).is_empty());
    assert_eq!(seen(17_000_000), [70.0]);
    assert!(seen(9_100_000).is_empty());
    assert_eq!(seen(7_300_000), [-27.0]);
}
