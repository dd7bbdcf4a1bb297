use super::*;

fn timed(runtime_ns: u64) -> Stop {
    Stop { runtime_ns: Some(runtime_ns), bytes_per_thread: None, wear_out: false }
}

fn bytes(bytes: u64) -> Stop {
    Stop { runtime_ns: None, bytes_per_thread: Some(bytes), wear_out: false }
}

const SECOND: u64 = 1_000_000_000;

#[test]
fn a_native_job_that_says_nothing_reads_large_blocks_from_storage_for_ten_seconds() {
    let job = job("");
    assert_eq!((job.name.as_str(), job.group), ("a", 0));
    assert_eq!(
        (job.path.choice.requested.as_str(), job.path.choice.actual.as_str()),
        ("default", "host")
    );
    assert_eq!(job.path.choice.why.as_deref(), Some("no GPU and no path was requested"));
    assert_eq!((job.path.gdsio, job.path.gdsio_name.as_str()), (Some(1), "CPUONLY"));
    assert_eq!((job.engine.requested.as_str(), job.engine.actual.as_str()), ("auto", "io_uring"));
    assert_eq!(job.engine.why.as_deref(), Some("O_DIRECT I/O gains from depth"));
    assert_eq!((job.threads, job.depth, job.read_percent), (1, 8, 100));
    assert_eq!((job.order, job.blocks), (Order::Sequential, sizes(MIB)));
    assert_eq!((job.align_bytes, job.skew_bytes), (512, 0));
    assert_eq!(job.stop, timed(10 * SECOND));
    assert_eq!((job.ramp_ns, job.start_delay_ns, job.pacing, job.seed), (0, 0, None, 1));
    assert_eq!(job.direct, DirectMode::Direct);
    assert_eq!(job.direct_why.as_deref(), Some("storage itself is to be measured"));
    assert_eq!((job.sync, job.verify, job.fill), (false, VerifyMode::Off, Fill::Pattern));
    assert_eq!((job.refill, job.memory, job.streams), (false, MemoryKind::Malloc, 0));
    assert_eq!((job.shared_fd, job.inject, job.offset_bytes), (false, None, 0));
    assert_eq!((job.size_bytes, job.shared_files), (GIB, false));
    assert_eq!((job.gpus, job.notes), (vec![], vec![]));
}

#[test]
fn the_scratch_directory_is_removed_and_a_named_one_is_kept() {
    let scratch = job("");
    assert_eq!(scratch.directory.as_deref(), Some("gpuio-scratch"));
    assert_eq!((scratch.file_prefix.as_str(), scratch.keep), ("gpuio", false));
    assert_eq!(scratch.targets[0].path, "gpuio-scratch/gpuio.0");
    assert!(job("directory=/d").keep);
    assert!(!job("directory=/d\nkeep=0").keep);
    assert!(job("keep=1").keep);
}

#[test]
fn random_i_o_is_small_deep_and_covers_everything() {
    let job = job("rw=randread");
    let order = Order::Random { distribution: Distribution::Uniform, coverage: true };
    assert_eq!((job.order, job.blocks, job.depth), (order, sizes(4 * KIB), 32));
    assert_eq!(job.align_bytes, 4 * KIB);
}

#[test]
fn directions_follow_from_rw_and_the_mix() {
    let percent = |text: &str| job(text).read_percent;
    assert_eq!(percent("rw=write"), 0);
    assert_eq!(percent("rw=randwrite"), 0);
    assert_eq!(percent("rw=rw"), 50);
    assert_eq!(percent("rw=randrw\nrwmixread=70"), 70);
}

#[test]
fn distributions_with_hot_blocks_do_not_cover() {
    let order = |text: &str| job(text).order;
    let random = |distribution| Order::Random { distribution, coverage: false };
    let zipf = "rw=randread\nrandom_distribution=zipf:1.2\nnorandommap";
    assert_eq!(order(zipf), random(Distribution::Zipf { theta: 1.2 }));
    let pareto = "rw=randread\nrandom_distribution=pareto:0.2";
    assert_eq!(order(pareto), random(Distribution::Pareto { h: 0.2 }));
    let normal = "rw=randread\nrandom_distribution=normal:10";
    assert_eq!(order(normal), random(Distribution::Normal { deviation_percent: 10.0 }));
    assert_eq!(order("rw=randread\nnorandommap"), random(Distribution::Uniform));
    assert_eq!(order("rw=randread\nunaligned\nbs=64k"), random(Distribution::Uniform));
}

#[test]
fn depth_follows_block_size_engine_and_path() {
    let depth = |text: &str| job(text).depth;
    assert_eq!(depth("bs=128k"), 32);
    assert_eq!(depth("bs=132k"), 8);
    assert_eq!(depth("bs=4k\nengine=psync"), 1);
    assert_eq!(depth("bs=4k\nengine=psync\npath=staged"), 4, "one is filled, others are copied");
    assert_eq!(depth("bs=4k\npath=staged"), 32);
    assert_eq!(depth("bs=4k\nengine=psync\npath=staged\ndepth=3"), 3);
    assert_eq!(depth("bssplit=4k/90:256k/10"), 8, "the largest block decides");
    assert_eq!(depth("ioengine=io_uring"), 1, "fio's default");
    assert_eq!(depth("gpu_dev_id=0\nrw=write"), 1, "gdsio has none");
}

#[test]
fn o_direct_is_the_default_where_it_works() {
    let direct = |text: &str| {
        let job = job(text);
        (job.direct, job.direct_why.unwrap_or_default(), job.engine.actual)
    };
    let (mode, why, engine) = direct("directory=/refuses");
    assert_eq!((mode, why.as_str()), (DirectMode::Buffered, "tmpfs refuses O_DIRECT"));
    assert_eq!(engine, "psync", "depth gains nothing from the page cache");
    let (mode, why, _) = direct("engine=mmap");
    assert_eq!((mode, why.as_str()), (DirectMode::Buffered, "a mapping is always the page cache"));
    let (mode, why, _) = direct("path=cached");
    let cached = "this path is the one through the page cache";
    assert_eq!((mode, why.as_str()), (DirectMode::Buffered, cached));
    let (mode, why, _) = direct("direct=0");
    assert_eq!((mode, why.as_str()), (DirectMode::Buffered, ""));
    let (mode, why, _) = direct("ioengine=psync");
    assert_eq!((mode, why.as_str()), (DirectMode::Buffered, "fio's default is direct=0"));
    let (mode, ..) = direct("directory=/unknown");
    assert_eq!(mode, DirectMode::Direct, "what could not be tried is tried at open");
}

#[test]
fn the_alignment_of_the_coarsest_file_counts() {
    assert_eq!(job("filename=/fine\nsize=1g").align_bytes, 512);
    assert_eq!(job("filename=/fine:/coarse\nsize=1g").align_bytes, 4096);
    assert_eq!(job("filename=/unknown\nsize=1g").align_bytes, 4096);
    assert_eq!(job("filename=/fine\nsize=1g\ndirect=0").align_bytes, 1);
    assert_eq!(job("rw=randread\nbs=64k").align_bytes, 64 * KIB);
    assert_eq!(job("rw=randread\nbssplit=8k/50:64k/50").align_bytes, 8 * KIB);
    assert_eq!(job("rw=randread\nbs=64k\nblockalign=4k\nnorandommap").align_bytes, 4 * KIB);
    assert_eq!(job("rw=randread\nbs=64k\nunaligned").skew_bytes, 512);
}

#[test]
fn the_engine_steps_down_with_a_reason() {
    let engine = |missing| {
        let job = Bench { missing, ..Bench::default() }.job("");
        (job.engine.actual, job.engine.why.unwrap_or_default(), job.depth)
    };
    let (actual, why, depth) = engine(&["io_uring"]);
    assert_eq!((actual.as_str(), depth), ("libaio", 8));
    assert_eq!(why, "io_uring can't run here: io_uring is switched off");
    let (actual, why, depth) = engine(&["io_uring", "libaio"]);
    assert_eq!((actual.as_str(), depth), ("psync", 1));
    assert_eq!(why, "neither io_uring nor libaio can run here");
    let named = job("engine=io_uring");
    assert_eq!((named.engine.requested.as_str(), named.engine.why), ("io_uring", None));
}

#[test]
fn a_native_job_stops_by_time_unless_bytes_were_requested() {
    let stop = |text: &str| job(text).stop;
    assert_eq!(stop("runtime=3"), timed(3 * SECOND));
    assert_eq!(stop("io_size=5m"), bytes(5 * MIB));
    assert_eq!(stop("size=1g\nloops=3"), bytes(3 * GIB));
    let both =
        Stop { runtime_ns: Some(3 * SECOND), bytes_per_thread: Some(5 * MIB), wear_out: false };
    assert_eq!(stop("runtime=3\nio_size=5m"), both);
    let one_pass =
        Stop { runtime_ns: Some(3 * SECOND), bytes_per_thread: Some(GIB), wear_out: false };
    assert_eq!(stop("runtime=3\nsize=1g\ntime_based=0"), one_pass);
}

/// fio's HOWTO: the run takes the whole runtime, even if all bytes were read or written.
#[test]
fn a_time_based_job_runs_for_all_of_its_time() {
    for bound in ["loops=3", "io_size=5m", "loops=3\nio_size=5m"] {
        let text = format!("ioengine=sync\nsize=1g\nruntime=2\ntime_based\n{bound}");
        let planned = job(&text);
        assert_eq!(planned.stop, timed(2 * SECOND), "{text}");
        for key in bound.lines().filter_map(|line| line.split('=').next()) {
            let of = |note: &&String| note.starts_with(&format!("'{key}'"));
            let note = planned.notes.iter().find(of);
            assert!(
                note.is_some_and(|note| note.contains("fio's time_based")),
                "{:?}",
                planned.notes
            );
        }
        assert!(!planned.notes.iter().any(|note| note.starts_with("'time_based'")), "{text}");
        let capped = job(&text.replace("\ntime_based", "\ntime_based=0")).stop;
        assert!(capped.bytes_per_thread.is_some(), "{text}");
    }
}

#[test]
fn gdsio_does_one_blocking_i_o_per_thread_and_one_pass() {
    let text = "xfer_type=2\nrw=randread\ndirectory=/d\nsize=1g\ngpu_dev_id=1\nnum_threads=2";
    let planned = job(text);
    assert_eq!((planned.path.choice.actual.as_str(), planned.depth), ("staged", 1));
    assert_eq!(planned.engine.actual, "psync");
    assert_eq!(planned.engine.why.as_deref(), Some("gdsio does one blocking I/O per thread"));
    let order = Order::Random { distribution: Distribution::Uniform, coverage: false };
    assert_eq!((planned.order, planned.blocks), (order, sizes(4 * KIB)));
    assert_eq!((planned.stop, planned.direct), (bytes(GIB), DirectMode::Direct));
    assert_eq!((planned.file_prefix.as_str(), planned.streams), ("gdsio", 1));
    assert_eq!(planned.memory, MemoryKind::Device);
    assert_eq!(planned.gpus.iter().map(|gpu| gpu.index).collect::<Vec<_>>(), [1]);
    assert_eq!(job(&format!("{text}\nruntime=5")).stop, timed(5 * SECOND));
}

#[test]
fn fio_reads_four_kib_through_the_page_cache_once() {
    let planned = job("ioengine=sync\nsize=1g\ndirectory=/d");
    assert_eq!((planned.engine.actual.as_str(), planned.depth), ("psync", 1));
    assert_eq!((planned.blocks, planned.direct), (sizes(4 * KIB), DirectMode::Buffered));
    assert_eq!((planned.stop, planned.file_prefix.as_str()), (bytes(GIB), "gpuio"));
    let capped =
        Stop { runtime_ns: Some(5 * SECOND), bytes_per_thread: Some(GIB), wear_out: false };
    assert_eq!(job("ioengine=sync\nsize=1g\nruntime=5").stop, capped);
    assert_eq!(job("ioengine=sync\nsize=1g\nruntime=5\ntime_based").stop, timed(5 * SECOND));
    let order = Order::Random { distribution: Distribution::Uniform, coverage: true };
    assert_eq!(job("ioengine=sync\nsize=1g\nrw=randread").order, order);
    // Files leave the page cache first, unless the job says otherwise; gpuio's own jobs leave it.
    for (more, dropped) in [("", true), ("\npre_read=1", false), ("\ninvalidate=0", false)] {
        assert_eq!(job(&format!("ioengine=sync\nsize=1g{more}")).invalidate, dropped, "{more}");
    }
    assert!(!job("engine=psync\ndirect=0\nsize=1g").invalidate);
}

#[test]
fn a_gpu_path_has_a_ring_in_device_memory() {
    let ring = |text: &str| {
        let job = job(text);
        (job.memory, job.streams, job.gpus.len())
    };
    assert_eq!(ring("path=staged"), (MemoryKind::Device, 1, 1));
    assert_eq!(ring("path=staged\nengine=psync\ndepth=1"), (MemoryKind::Device, 1, 1));
    assert_eq!(ring("path=staged\nstreams=3\ndepth=3"), (MemoryKind::Device, 3, 1));
    assert_eq!(ring("path=resident"), (MemoryKind::Device, 0, 1), "its kernel has none of ours");
    assert_eq!(ring("path=staged\nmemory=vmm\ngpu=all"), (MemoryKind::Vmm, 1, 3));
    assert_eq!(ring("path=host\nmemory=pinned"), (MemoryKind::Pinned, 0, 1), "the driver pins");
    assert_eq!(ring("path=host\nmemory=mmap"), (MemoryKind::Mmap, 0, 0));
}

#[test]
fn a_gpu_that_was_requested_for_brings_its_path() {
    let job = job("gpu=1");
    assert_eq!(job.path.choice.actual, "staged");
    assert_eq!(job.path.choice.why.as_deref(), Some("a GPU was requested and no path"));
}

#[test]
fn what_changes_little_is_noted() {
    let notes = |text: &str| job(text).notes;
    let [cached] = &notes("xfer_type=4\nsize=1g\nrw=write\ndirect=1")[..] else { panic!() };
    assert!(cached.starts_with("direct: "), "{cached}");
    let far = "gpu: the host path ends in host memory; the GPU decides only where threads run";
    assert_eq!(notes("path=host\ngpu=0"), [far]);
    assert_eq!(notes("path=host\ngpu=none"), [""; 0]);
    let linked = "/linkhave1g is /real/linkhave1g behind a symbolic link (xfs on /real)";
    assert_eq!(notes("path=host\nfilename=/linkhave1g"), [linked]);
    assert_eq!(notes("xfer_type=1\ngpu_dev_id=0\nsize=1g\nrw=write"), [""; 0], "gdsio's way");
}

#[test]
fn the_series_has_ten_points_of_a_short_run() {
    let interval = |text: &str| Bench::default().plan(&parsed(text)).unwrap().interval_ns;
    assert_eq!(interval("[a]\nruntime=30"), SECOND);
    assert_eq!(interval("[a]\nruntime=3"), SECOND * 3 / 10);
    assert_eq!(interval("[a]\nruntime=100ms"), SECOND / 10);
    assert_eq!(interval("[a]\nruntime=30\n[b]\nruntime=2"), SECOND / 5);
    assert_eq!(interval("[a]\nio_size=1g"), SECOND / 5);
}

#[test]
fn the_quick_run_does_everything_one_after_another_and_verifies() {
    let size = QuickSize { threads: 2, size_bytes: 64 * MIB };
    let quick = |bench: Bench, runtime: bool| {
        let mut plan = bench.plan(&quick_spec(size)).unwrap();
        fit_quick(&mut plan, runtime);
        plan
    };
    let plan = quick(Bench { gpus: no_gpus(), ..Bench::default() }, false);
    let names: Vec<&str> = plan.jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["read-1M", "randread-4K", "write-1M", "randwrite-4K"]);
    for (group, job) in (0..).zip(&plan.jobs) {
        assert_eq!((job.group, job.threads, job.size_bytes), (group, 2, 64 * MIB));
        assert_eq!((job.stop, job.verify), (timed(2 * SECOND), VerifyMode::Pass));
        assert_eq!(job.verify_ns, Some(SECOND));
        assert!(!job.keep, "the scratch directory goes");
    }
    assert_eq!(plan.jobs[0].blocks, sizes(MIB));
    assert_eq!(plan.jobs[3].blocks, sizes(4 * KIB));
    assert_eq!(plan.left_out.len(), 16, "each path once, those that were named too");
    let all = quick(Bench::default(), false);
    assert_eq!(all.jobs.len(), 2 * 15 + 2 * 2, "reads on all paths, writes on two");
    let measured: u64 = all.jobs.iter().filter_map(|job| job.stop.runtime_ns).sum();
    let verified: u64 = all.jobs.iter().filter_map(|job| job.verify_ns).sum();
    assert!(measured + verified <= 46 * SECOND, "{measured} {verified}");
    assert_eq!(all.interval_ns, SECOND * 11 / 100);
    let longer = quick(Bench::default(), true);
    assert_eq!(longer.jobs[0].stop, timed(2 * SECOND), "a time that was requested stays");
}

#[test]
fn gather_has_batches_by_block_size_that_stay_in_cache() {
    let gather = |text: &str| {
        let job = job(&format!("path=gather\n{text}"));
        (job.depth, job.gather_batch.unwrap(), job.streams, job.gather_scatter.unwrap())
    };
    assert_eq!(gather("rw=randread\nbs=4k"), (384, 128, 3, true));
    assert_eq!(gather("rw=read\nbs=512"), (384, 128, 3, false));
    assert_eq!(gather("rw=read\nbs=64k\nengine=psync"), (96, 32, 3, false));
    assert_eq!(gather("rw=randread\nbs=16k"), (384, 128, 3, true));
    assert_eq!(gather("rw=read\nbs=1m"), (8, 4, 1, false));
    assert_eq!(gather("rw=randwrite\nbs=16m"), (2, 1, 1, true));
    // A given depth is kept, and cut into batches.
    assert_eq!(gather("rw=randread\nbs=4k\ndepth=32"), (32, 11, 3, true));
    assert_eq!(gather("rw=randread\nbs=4k\ndepth=1"), (1, 1, 1, true));
    assert_eq!(gather("rw=randread\nbs=4k\ngather_batch=16"), (48, 16, 3, true));
    assert_eq!(gather("rw=read\ngather_scatter"), (8, 4, 1, true));
    assert_eq!(gather("ioengine=sync\nrw=read\nbs=4k"), (1, 1, 1, false));
    let other = job("path=staged");
    assert_eq!((other.gather_batch, other.gather_scatter), (None, None));
}

#[test]
fn cufiles_batches_and_streams() {
    let shape = |text: &str| {
        let job = job(text);
        (job.depth, job.gather_batch, job.streams, job.gather_scatter)
    };
    assert_eq!(shape("path=gds-stream"), (8, None, 8, None));
    assert_eq!(shape("path=gds-stream\ndepth=40"), (40, None, 16, None));
    assert_eq!(shape("path=gds-stream\ndepth=40\nstreams=3"), (40, None, 3, None));
    assert_eq!(shape("path=gds-batch"), (16, Some(16), 0, None));
    assert_eq!(shape("path=gds-batch\nthreads=8"), (8, Some(8), 0, None));
    assert_eq!(shape("path=gds-batch\nthreads=100"), (1, Some(1), 0, None));
    assert_eq!(shape("path=gds-batch\nthreads=4\nbs=4m"), (8, Some(8), 0, None));
    assert_eq!(shape("path=gds-batch\ndepth=40"), (40, Some(16), 0, None));
    assert_eq!(shape("path=gds-batch-stream\ndepth=40"), (40, Some(16), 3, None));
    // The core has no pool of buffers that batches wait for.
    assert_eq!(shape("path=library"), (1, None, 0, None));
    assert_eq!(shape("path=library-batch\nthreads=100"), (16, Some(16), 0, None));
    assert_eq!(shape("path=library-batch\ndepth=40"), (40, Some(16), 0, None));
    assert_eq!(shape("path=library-stream\ndepth=40"), (40, None, 16, None));
    // gdsio's -B is batch and depth in one, and its default one I/O at a time.
    let gdsio = |text: &str| shape(&format!("size=1g\nrw=read\n{text}"));
    assert_eq!(gdsio("xfer_type=5"), (1, None, 1, None));
    assert_eq!(gdsio("xfer_type=6"), (1, Some(1), 0, None));
    assert_eq!(gdsio("xfer_type=6\nbatch=8"), (8, Some(8), 0, None));
    assert_eq!(gdsio("xfer_type=7\nbatch=8\ndepth=32"), (32, Some(8), 4, None));
    let names = [5, 6, 7].map(|x| job(&format!("xfer_type={x}\nsize=1g\nrw=read")).path.gdsio_name);
    assert_eq!(names, ["ASYNC", "GPU_BATCH", "GPU_BATCH_STREAM"]);
    let mixed = job("xfer_type=6\nsize=1g\nrw=randread\nbatch=8\nmix_percent=70");
    assert_eq!(mixed.read_percent, 70);
    assert!(matches!(mixed.order, Order::Random { .. }));
    assert!(mixed.notes[0].contains("percentage of reads"), "{:?}", mixed.notes);
}

#[test]
fn cufile_moves_the_bytes_without_an_engine() {
    let plain = job("path=gds\nrw=randread");
    assert_eq!((plain.path.gdsio, plain.path.gdsio_name.as_str()), (Some(0), "GPUD"));
    assert_eq!(plain.engine.actual, "none (cuFile)");
    assert_eq!((plain.depth, plain.streams, plain.gpus.len()), (1, 0, 1));
    assert_eq!((plain.memory, plain.register_buffer), (MemoryKind::Device, Some(true)));
    assert_eq!(plain.notes, [""; 0]);
    let skipped = job("xfer_type=0\nskip_bufregister=1\nsize=1g\nrw=read");
    assert_eq!(skipped.register_buffer, Some(false));
    assert_eq!(skipped.notes, [""; 0]);
    assert_eq!(job("path=host").register_buffer, None);
}

#[test]
fn all_paths_side_by_side_find_the_cache_alike() {
    let every = |text: &str| {
        let jobs = Bench::default().jobs(&format!("[a]\n{text}"));
        jobs.iter().map(|job| job.pre_read).collect::<Vec<_>>()
    };
    assert!(every("path=all\ndirect=0\nsize=1m").iter().all(|&read| read));
    assert!(every("path=all\ndirect=0\nsize=1m\npre_read=0").iter().all(|&read| !read));
    assert!(every("path=all\ndirect=0\nsize=1m\nrw=write").iter().all(|&read| !read));
    // More than half of memory.
    assert!(every("path=all\ndirect=0\nsize=1t\nfilename=have9999").iter().all(|&read| !read));
    assert!(!job("direct=0\nsize=1m").pre_read);
    assert!(job("direct=0\nsize=1m\npre_read").pre_read);
    // Runs of a sweep: warm where reads go through the cache and it holds the files, else dropped.
    let cache = |lines: &str| {
        let job = job(&format!("cache_alike\nsize=1m\n{lines}"));
        (job.pre_read, job.invalidate)
    };
    assert_eq!(cache("direct=0"), (true, false));
    assert_eq!(cache("direct=1"), (false, true));
    assert_eq!(cache("direct=0\nrw=write"), (false, true));
    assert_eq!(cache("direct=0\nsize=1t\nfilename=have9999"), (false, true));
    assert_eq!(cache("direct=0\ninvalidate=0"), (true, false));
    let both = Bench::default().refusal(&parsed("[a]\ndirect=0\npre_read\ninvalidate"));
    assert!(both.to_string().contains("leave one out"), "{both}");
    let refused = Bench::default().refusal(&parsed("[a]\ndirect=1\npre_read")).to_string();
    assert!(refused.contains("buffered=1"), "{refused}");
}

#[test]
fn steady_state_has_fios_check_and_time_for_ten_windows() {
    let steady = |lines: &str| {
        let job = job(lines);
        let plan = job.steady.clone().unwrap();
        (job.stop.runtime_ns.unwrap() / SECOND, plan.window_ns / SECOND, plan.check_ns / SECOND)
    };
    assert_eq!(steady("ss=iops:2%"), (100, 10, 1));
    assert_eq!(steady("ss=iops:2%\nss_dur=4\nss_ramp=3"), (43, 4, 1));
    assert_eq!(steady("ss=iops:2%\nss_dur=4\nruntime=7"), (7, 4, 1));
    assert_eq!(steady("ss=lat:1ms\nss_interval=2\nruntime=90"), (90, 20, 2));
    let refused =
        |lines: &str| Bench::default().refusal(&parsed(&format!("[a]\n{lines}"))).to_string();
    assert!(refused("ss=iops:2%\nruntime=10").contains("the first window is full after 10s"));
    assert!(refused("ss=iops:2%\nss_dur=1").contains("holds 1 checks"));
    assert!(refused("ss=iops:2%\nss_interval=50ms").contains("100ms"));
    let plan = Bench::default().plan(&parsed("[a]\nss=bw:2%\nss_interval=1500ms\n")).unwrap();
    assert_eq!(plan.interval_ns, 750_000_000, "checks fall on points of the series");
}
