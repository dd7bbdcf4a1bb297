//! Parts of larger loads and repeated jobs: the presets against their sources, and what is refused.

use super::*;
use crate::workload::preset;

/// Name, GB of model and optimiser, and ranks, by MLPerf Storage's table of checkpoints.
const CHECKPOINTS: [(&str, f64, u32); 4] = [
    ("checkpoint-llama3-8b", 15.0 + 90.0, 8),
    ("checkpoint-llama3-70b", 130.0 + 781.0, 64),
    ("checkpoint-llama3-405b", 755.0 + 4533.0, 512),
    ("checkpoint-llama3-1t", 2571.0 + 15426.0, 1024),
];

/// A preset's jobs on the first GPU, with these lines in its first section.
fn of(name: &str, lines: &str) -> Vec<JobPlan> {
    let text = preset::find(name).unwrap().text;
    let first = text.find("]\n").unwrap() + 2;
    let text = format!("{}directory=/d\n{lines}\n{}", &text[..first], &text[first..]);
    Bench::default().jobs(&text.replace("gpu=all", "gpu=0,1"))
}

/// Ten saves and then ten restores, one after another, each restore of the files of its save.
#[test]
fn checkpoints_are_what_their_sources_say() {
    for (name, whole_gb, ranks) in CHECKPOINTS {
        let jobs = of(name, "");
        assert_eq!(jobs.len(), 20, "{name}");
        for (nth, job) in (0_u32..).zip(&jobs) {
            assert_eq!(job.group, nth, "{name}: barriers between all");
            let part = job.part.unwrap();
            assert_eq!((job.threads, part.full_threads, part.scale), (8, ranks, 1.0));
            assert_eq!((part.full_size_bytes, job.size_bytes), (job.size_bytes, job.size_bytes));
            let gb = job.size_bytes as f64 * f64::from(ranks) / 1e9;
            assert!((gb - whole_gb).abs() < 0.001 * whole_gb, "{name}: {gb} of {whole_gb} GB");
            assert_eq!(job.stop.bytes_per_thread, Some(job.size_bytes), "{name}: each byte once");
            assert_eq!(job.start_delay_ns, 5_000_000_000, "{name}");
            assert_eq!((job.path.choice.actual.as_str(), job.gpus.len()), ("staged", 2));
            let saves = nth < 10;
            assert_eq!(job.read_percent, if saves { 0 } else { 100 }, "{name}");
            assert_eq!(job.flush.is_some_and(|flush| flush.at_end), saves, "{name}: fsync");
            assert_eq!((job.invalidate, job.verify != VerifyMode::Off), (!saves, true), "{name}");
            let repeat = job.repeat.clone().unwrap();
            assert_eq!((repeat.nth, repeat.times), (nth % 10 + 1, 10));
            assert_eq!(repeat.of, if saves { "save" } else { "restore" });
            let file = format!("/d/checkpoint-{}.7", nth % 10 + 1);
            assert_eq!((job.targets.len(), &job.targets[7].path), (8, &file), "{name}");
        }
    }
}

/// Each save is the stall, into pages that are the same each time, and the drain into its files.
#[test]
fn a_staged_checkpoint_is_a_stall_and_a_drain() {
    let jobs = of("checkpoint-llama3-8b", "stage=memory\nscale=0.001");
    assert_eq!(jobs.len(), 30);
    for (nth, pair) in (1_u32..).zip(jobs[..20].chunks(2)) {
        let [stall, drain] = pair else { panic!("a stall and a drain") };
        assert_eq!((stall.group + 1, drain.size_bytes), (drain.group, stall.size_bytes));
        assert_eq!((stall.path.choice.actual.as_str(), stall.gpus.len()), ("mapped", 2));
        assert_eq!((stall.keep, stall.beside, stall.flush), (false, None, None));
        assert_eq!(stall.targets[7].path, "/dev/shm/gpuio-stage-d/gpuio.7");
        assert_eq!((drain.path.choice.actual.as_str(), drain.gpus.len()), ("host", 2));
        assert_eq!(drain.memory, MemoryKind::Pinned);
        assert!(drain.beside.is_some() && drain.flush.unwrap().at_end && drain.keep);
        assert_eq!(drain.targets[7].path, format!("/d/checkpoint-{nth}.7"));
        let delays = (stall.start_delay_ns, drain.start_delay_ns);
        assert_eq!(delays, (5_000_000_000, 0));
    }
    assert_eq!((jobs[0].name.as_str(), jobs[3].name.as_str()), ("save-stall", "save-drain#2"));
    assert_eq!(jobs[29].targets[7].path, "/d/checkpoint-10.7");
    let jobs = Bench::default().jobs("[a]\nfilename=have8g\nsize=1g\nrw=write\nstage=memory\n");
    assert_eq!(
        jobs[0].targets[0].path, "/dev/shm/gpuio-stage-scratch/gpuio.0",
        "not the user's file"
    );
    assert!(jobs[1].targets[0].path.ends_with("have8g"));
    let refused = |text: &str| Bench::default().refusal(&parsed(&format!("[a]\n{text}\n")));
    for (text, says) in [
        ("rw=write\nstage=memory\npath=gather", "has paths of its own"),
        ("rw=read\nstage=memory", "it has no effect here"),
    ] {
        let said = refused(text).to_string();
        assert!(said.contains(says), "{text}\n{said}");
    }
}

#[test]
fn a_part_says_of_what() {
    let jobs = of("checkpoint-llama3-405b", "");
    let small = of("checkpoint-llama3-405b", "scale=0.001\nthreads=2");
    // The later line of the file wins: only the scale is smaller.
    assert_eq!(small[0].threads, 8);
    let part = small[0].part.unwrap();
    assert_eq!((part.full_size_bytes, part.scale), (jobs[0].size_bytes, 0.001));
    assert_eq!(small[0].size_bytes, jobs[0].size_bytes / 1000 / 4096 * 4096);
    assert_eq!(small[0].stop.bytes_per_thread, Some(small[0].size_bytes));
    assert_eq!(job("rw=read\nsize=1g").part, None);
    assert_eq!(job("rw=read\nsize=1g\nscale=0.5").size_bytes, GIB / 2);
}

/// Vectors of 1536 float32 in one file, which 16 threads divide: 15,000,000 blocks.
#[test]
fn a_search_reads_all_of_its_vectors() {
    let job = of("vector-search", "").remove(0);
    assert_eq!((job.threads, job.targets.len()), (16, 1));
    assert_eq!(job.targets[0].length_bytes, 10_000_000 * 1536 * 4);
    let regions = job.workers.iter().flat_map(|worker| &worker.regions);
    assert_eq!(regions.map(|region| region.length / 4096).sum::<u64>(), 15_000_000);
    assert_eq!((job.blocks, job.verify), (sizes(4096), VerifyMode::Inline));
    assert!(matches!(job.order, Order::Random { .. }));
}

/// The same blocks as walks on path `initiated`: one for each ring of a thread.
#[test]
fn a_search_can_go_from_each_block_to_the_next() {
    let job = of("vector-search", "chain=1").remove(0);
    assert_eq!(
        (job.path.choice.actual.as_str(), job.chain, job.rings),
        ("initiated", true, Some(1))
    );
    assert_eq!(job.path.choice.why.as_deref(), Some("a chain was requested and no path"));
    let free = of("vector-search", "").remove(0);
    assert_eq!((&job.targets[0].path, job.part), (&free.targets[0].path, free.part));
    assert_eq!((job.blocks, job.verify), (free.blocks, free.verify));
    let text = preset::find("vector-search").unwrap().text;
    let refused = |more: &str| Bench::default().refusal(&parsed(&format!("{text}{more}\n")));
    for (more, says) in [
        ("chain=1\npath=gather", "use path=initiated, or leave it out"),
        ("chain=1\nrw=read", "use rw=randread alone"),
        ("chain=1\ngpu=none", "path initiated"),
    ] {
        let said = refused(more).to_string();
        assert!(said.contains(says) && said.lines().count() == 1, "{more}\n{said}");
    }
}

#[test]
fn a_repeated_job_runs_alone() {
    let text = "[a]\nsize=1g\n[b]\nsize=1g\nrepeat=2\n[c]\nsize=1g\n[d]\nsize=1g\n";
    let jobs = Bench::default().jobs(text);
    let found: Vec<(&str, u32)> = jobs.iter().map(|job| (job.name.as_str(), job.group)).collect();
    assert_eq!(found, [("a", 0), ("b", 1), ("b#2", 2), ("c", 3), ("d", 3)]);
    assert_eq!(jobs[2].file_prefix, "gpuio-2");
}

#[test]
fn parts_and_repeats_that_make_no_sense_are_refused() {
    for (text, says) in [
        ("scale=0.1", "add size"),
        ("full_threads=9", "add size"),
        ("size=1g\nthreads=9\nfull_threads=8", "run fewer"),
        ("size=1g\nscale=0.00001", "raise scale"),
        ("gpu=0\nfiles=9\nsample_size=4k\nbatch_samples=2\ncompute_time=1ms\nrepeat=2", "epochs"),
    ] {
        let refused = Bench::default().refusal(&parsed(&format!("[a]\n{text}\n")));
        assert!(refused.to_string().contains(says), "{text}\n{refused}");
    }
    let many = "[a]\nrepeat=1000\n".repeat(11);
    assert!(Bench::default().refusal(&parsed(&many)).to_string().contains("10000 jobs"));
}

/// Whole files: 16 threads divide all blocks, so that each byte is read once, by one thread.
/// Tensors: one after another, in the order of the header, to threads in turn.
#[test]
fn files_and_tensors_are_divided_among_threads() {
    let text = "filename=/x/have1k:/x/have7k\nranges=files\nbs=1k\nthreads=3\ndirect=0\ngpu=0,1\n";
    let plan = job(text);
    let mut regions: Vec<(u32, u64, u64)> = plan
        .workers
        .iter()
        .flat_map(|worker| &worker.regions)
        .map(|region| (region.target, region.offset, region.length))
        .collect();
    assert_eq!(plan.ranges.map(|ranges| (ranges.count, ranges.bytes)), Some((2, 8 * KIB)));
    assert_eq!((plan.stop, plan.shared_files), (Stop::default(), true));
    regions.sort_unstable();
    let wanted = [(0, 0, KIB), (1, 0, KIB), (1, KIB, 3 * KIB), (1, 4 * KIB, 3 * KIB)];
    assert_eq!(regions, wanted);
    let tensors = job("filename=/x/have8g\nranges=tensors\ngpu=0,1\npath=staged\n");
    assert_eq!((tensors.threads, tensors.direct), (2, DirectMode::Buffered));
    assert!(tensors.direct_why.unwrap().contains("at any byte, and O_DIRECT here needs"));
    let of = |worker: usize| -> Vec<(u64, u64)> {
        let regions = tensors.workers[worker].regions.iter();
        regions.map(|region| (region.offset, region.length)).collect()
    };
    assert_eq!((of(0), of(1)), (vec![(100, 5000), (5103, 2897)], vec![(5100, 3)]));
}

/// Threads by default: 16 for whole files, one for each GPU otherwise, and none that has nothing to
/// read. The file has three tensors.
#[test]
fn a_small_model_has_no_more_threads_than_parts() {
    for (more, threads) in [
        ("8g\nbs=1m\nranges=files", 16),
        ("8g\nbs=1g\nranges=files", 8),
        ("8g:/x/have3g\nbs=1g\nranges=files\ndepth=1", 11),
        ("1k\nbs=1m\nranges=files\ndirect=0", 1),
        ("8g\nbs=1m\nranges=files\nthreads=2", 2),
        ("1k\nbs=1m\nranges=files\ngpu=0,1\npath=staged\ndirect=0", 1),
        ("8g\nranges=tensors", 1),
        ("8g\nranges=tensors\ngpu=0,1\npath=staged", 2),
    ] {
        assert_eq!(job(&format!("filename=/x/have{more}\n")).threads, threads, "{more}");
    }
}

#[test]
fn ranges_that_make_no_sense_are_refused() {
    for (more, says) in [
        ("ranges=tensors\nfilename=/broken-have1g", "broken-have1g: offset 13: the header"),
        ("ranges=files\nfilename=/absent", "there is no such file"),
        ("ranges=files", "name them in filename"),
        ("ranges=files\nfilename=/have1g\nrw=write", "use rw=read"),
        ("ranges=files\nfilename=/have1g\nsize=1m", "leave it out"),
        ("ranges=files\nfilename=/have1g\nruntime=9", "leave it out"),
        ("ranges=files\nfilename=/have1k\nthreads=2\ndirect=0", "nothing to read"),
        ("ranges=tensors\nfilename=/have1g\ndirect=1", "use buffered=1"),
        ("rw=write\nverify=file", "only read"),
        ("path=fan-out\nsize=1g\nverify=file", "only read"),
    ] {
        let refused = Bench::default().refusal(&parsed(&format!("[a]\n{more}\n")));
        assert!(refused.to_string().contains(says), "{more}\n{refused}");
    }
    let directory = crate::spec::parse_job_file("f", "[a]\nranges=all\n", &|_| None).unwrap_err();
    assert!(directory[0].to_string().contains("files or tensors"), "{}", directory[0]);
}
