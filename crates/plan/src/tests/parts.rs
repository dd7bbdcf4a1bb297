//! Parts of larger loads and repeated jobs: the presets against their sources, and what is refused.

use gpuio_workload::preset;

use super::*;

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
            #[expect(clippy::cast_precision_loss, reason = "GB")]
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
        ("size=1g\nthreads=9\nfull_threads=8", "lower threads"),
        ("size=1g\nscale=0.00001", "holds no block"),
        ("gpu=0\nfiles=9\nsample_size=4k\nbatch_samples=2\ncompute_time=1ms\nrepeat=2", "epochs"),
    ] {
        let refused = Bench::default().refusal(&parsed(&format!("[a]\n{text}\n")));
        assert!(refused.to_string().contains(says), "{text}\n{refused}");
    }
    let many = "[a]\nrepeat=1000\n".repeat(11);
    assert!(Bench::default().refusal(&parsed(&many)).to_string().contains("10000 jobs"));
}
