//! Training feeds: the presets against their sources, and what is refused.

use gpuio_base::catalog::Op;
use gpuio_record::{FeedCompute, FeedPlan, SampleOrder, TierPlan};

use super::*;
use crate::workload::feed::{Next, Reader, Shape};
use crate::workload::preset::{self, PRESETS, Preset};

/// A preset by the configuration that it comes from.
struct Source {
    name: &'static str,
    files: u64,
    samples_per_file: u64,
    /// Mean and deviation in bytes.
    sample: (u64, u64),
    batch: u64,
    step_us: u64,
    readers: u32,
    utilisation: f64,
    epochs: u64,
    order: SampleOrder,
    /// For samples that are read together: their reads, their number, and their mean bytes.
    reads: (usize, u64, u64),
}

/// MLPerf Storage's configs/dlio/workload. Samples of one size begin at multiples of 4096 bytes, so
/// that their lengths are rounded up.
const SOURCES: [Source; 8] = [
    source("unet3d-a100", (168, 1, 5), (146_600_628, 68_341_808), (7, 636_000, 4, 90.0)),
    source("unet3d-h100", (168, 1, 5), (146_600_628, 68_341_808), (7, 323_000, 4, 90.0)),
    source("unet3d-b200", (7200, 1, 5), (146_600_628, 68_341_808), (7, 162_000, 4, 90.0)),
    Source {
        order: SampleOrder::ShuffleFiles,
        reads: (1, 1, 114_688),
        ..source("resnet50-h100", (1024, 1251, 5), (114_660, 0), (400, 224_000, 8, 90.0))
    },
    source("cosmoflow-h100", (524_288, 1, 5), (2_828_486, 71_311), (1, 3_500, 4, 70.0)),
    Source {
        reads: (1, 1, 323_584),
        ..source("retinanet-b200", (1_170_301, 1, 8), (322_957, 0), (24, 47_550, 8, 85.0))
    },
    Source {
        order: SampleOrder::ShuffleFiles,
        reads: (3, 1, 2_166_784),
        ..source("flux-b200", (4296, 288, 1), (2_164_832, 0), (48, 1_350_000, 8, 90.0))
    },
    Source {
        order: SampleOrder::ShuffleFiles,
        reads: (40, 6144, 160 * 6144),
        ..source("dlrm-b200", (1024, 4_718_592, 1), (761, 0), (16_384, 375, 4, 70.0))
    },
];

const fn source(
    name: &'static str,
    (files, samples_per_file, epochs): (u64, u64, u64),
    sample: (u64, u64),
    (batch, step_us, readers, utilisation): (u64, u64, u32, f64),
) -> Source {
    Source {
        name,
        files,
        samples_per_file,
        sample,
        batch,
        step_us,
        readers,
        utilisation,
        epochs,
        order: SampleOrder::Shuffle,
        reads: (0, 1, 0),
    }
}

fn feed_of(job: &JobPlan) -> FeedPlan {
    job.feed.clone().expect("a training feed")
}

/// The reads of the first unit that the first reader of a preset reads.
fn first_unit(job: &JobPlan) -> Vec<u64> {
    let block = job.blocks[0].max_bytes;
    let block = u32::try_from(block).unwrap();
    let mut reader = Reader::new(&feed_of(job), (0, 0), block, 1);
    let mut lengths = Vec::new();
    loop {
        match reader.next(u64::MAX) {
            Next::Range { block, ends_unit, .. } => {
                lengths.push(u64::from(block.len));
                if ends_unit {
                    return lengths;
                }
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn presets_are_what_their_sources_say() {
    let of_mlperf = |preset: &&Preset| preset.text.contains("configs/dlio/workload");
    let names: Vec<&str> = PRESETS.iter().filter(of_mlperf).map(|preset| preset.name).collect();
    assert_eq!(names, SOURCES.map(|source| source.name));
    for source in &SOURCES {
        let text = preset::find(source.name).unwrap().text;
        // All of the plan but the files themselves is that of the whole data set.
        let small = text.replace("gpu=all", "gpu=0\nscale=0.0005\ndirectory=/coarse");
        let job = Bench::default().jobs(&small).remove(0);
        let feed = feed_of(&job);
        let name = source.name;
        assert_eq!(
            (feed.full_files, feed.samples_per_file),
            (source.files, source.samples_per_file),
            "{name}"
        );
        let sample = (feed.sample.mean_bytes, feed.sample.deviation_bytes);
        assert_eq!(sample, source.sample, "{name}");
        assert_eq!((feed.batch_samples, feed.epochs), (source.batch, source.epochs), "{name}");
        assert_eq!(
            (feed.compute_ns, feed.readers),
            (source.step_us * 1000, source.readers),
            "{name}"
        );
        assert_eq!(feed.least_utilisation_percent, Some(source.utilisation), "{name}");
        assert_eq!((feed.order, feed.prefetch), (source.order, 2), "{name}");
        assert_eq!(job.verify, VerifyMode::Inline, "{name}");
        assert!(matches!(feed.compute, FeedCompute::Kernel { .. }), "{name}");
        let whole = Shape::new(&FeedPlan { files: feed.full_files, scale: 1.0, ..feed.clone() });
        let of_files = |files, epochs| FeedPlan { files, epochs, ..feed.clone() }.all_ahead();
        assert_eq!(of_files(feed.full_files, feed.epochs), None, "{name}");
        let ahead = u64::from(feed.readers * feed.prefetch);
        let few = ahead * feed.batch_samples / feed.samples_per_file;
        assert_eq!(of_files(few.max(1), 1).is_some(), few > 0, "{name}");
        let samples = source.files * source.samples_per_file;
        assert_eq!(whole.samples(), samples, "{name}");
        assert_eq!(whole.steps(), samples.div_ceil(source.batch), "{name}");
        let (reads, together, bytes) = source.reads;
        let lengths = first_unit(&job);
        if reads > 0 {
            assert_eq!((lengths.len(), lengths.iter().sum::<u64>()), (reads, bytes), "{name}");
            assert_eq!(feed.sample_group, together, "{name}");
            assert_eq!(whole.epoch_bytes(), samples / together * bytes, "{name}");
        }
    }
}

/// A whole file a sample, in order, each once; a step takes as long as its samples say.
#[test]
fn inference_reads_whole_files_in_order() {
    let text = preset::find("dali-inference").unwrap().text;
    for batch in [1, 2, 32, 256] {
        let with = format!("gpu=0\nscale=0.25\ndirectory=/coarse\nbatch_samples={batch}");
        let job = Bench::default().jobs(&text.replace("gpu=all", &with)).remove(0);
        let feed = feed_of(&job);
        assert_eq!((feed.full_files, feed.files, feed.order), (1024, 256, SampleOrder::InOrder));
        assert_eq!(feed.sample.mean_bytes, 16 * 768 * 1152 * 4 + 128);
        assert_eq!(feed.compute_ns, 5_000_000 + batch * 10_000_000);
        assert_eq!((feed.readers, feed.prefetch), (2, 1), "two batches are ready");
        let mut readers: Vec<Reader> =
            (0..2).map(|nth| Reader::new(&feed, (0, nth), 1 << 30, 1)).collect();
        let mut files = Vec::new();
        for step in 0..256_u64.div_ceil(batch) {
            loop {
                match readers[usize::try_from(step % 2).unwrap()].next(u64::MAX) {
                    Next::Range { block, step: of, ends_batch, .. } => {
                        assert_eq!((of, block.offset), (step, 0));
                        assert_eq!(u64::from(block.len), job.targets[0].length_bytes);
                        files.push(block.file);
                        if ends_batch {
                            break;
                        }
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
        assert_eq!(files, (0..256).collect::<Vec<u32>>());
    }
    let day = "[a]\nfiles=3\nsample_size=4k\nbatch_samples=99999\nsample_compute_time=1s\ngpu=0\n";
    let refused = Bench::default().refusal(&parsed(day)).to_string();
    assert!(refused.contains("more than a day"), "{refused}");
}

/// 4, 4, 27 and 5 columns of 1, 2, 4 and 8 bytes; O_DIRECT can read them only at multiples of 2048.
#[test]
fn a_recommender_reads_scattered_columns() {
    let text = preset::find("dlrm-b200").unwrap().text.replace("gpu=all", "gpu=0\nscale=0.001");
    let job = Bench::default().jobs(&text.replace("[dlrm-b200]", "[a]\ndirectory=/fine")).remove(0);
    assert_eq!(job.direct, DirectMode::Direct);
    let mut counts = std::collections::BTreeMap::new();
    for length in first_unit(&job) {
        *counts.entry(length).or_insert(0) += 1;
    }
    let wanted = [(6 * KIB, 4), (12 * KIB, 4), (24 * KIB, 27), (48 * KIB, 5)];
    assert_eq!(counts, wanted.into_iter().collect());
    assert_eq!(job.targets[0].length_bytes, 4_718_592 * 761);
    let coarse = text.replace("[dlrm-b200]", "[a]\ndirectory=/coarse");
    let job = Bench::default().jobs(&coarse).remove(0);
    assert_eq!(job.direct, DirectMode::Buffered);
    assert!(job.direct_why.unwrap().contains("multiples of 2048 bytes"));
    let refused = Bench::default().refusal(&parsed(&coarse.replace("[a]", "[a]\ndirect=1")));
    assert!(refused.to_string().contains("buffered=1"), "{refused}");
}

const FEED: &str = "files=10\nsample_size=100000+-20000\nbatch_samples=3\ncompute_time=1ms\n";

#[test]
fn files_are_shared_out_for_verification_and_each_thread_has_a_gpu() {
    let text = format!("{FEED}gpu=0,1\nreaders=3\ndirectory=/d\nfile_prefix=x\nscale=0.7\n");
    let job = job(&text);
    let feed = feed_of(&job);
    assert_eq!((feed.files, feed.accelerators, job.threads), (7, 2, 6));
    assert_eq!((job.depth, job.stop.runtime_ns, job.shared_fd), (32, None, true));
    let shape = Shape::new(&feed);
    for (file, target) in (0..).zip(&job.targets) {
        assert_eq!(target.path, format!("/d/x.{file}"));
        assert_eq!(target.length_bytes, shape.file_bytes(file));
    }
    let regions = job.workers.iter().flat_map(|worker| &worker.regions);
    let mut files: Vec<u32> = regions.map(|region| region.target).collect();
    files.sort_unstable();
    assert_eq!(files, (0..7).collect::<Vec<u32>>());
    let gpus: Vec<_> = job.workers.iter().map(|worker| worker.gpu).collect();
    assert_eq!(gpus, [0, 1, 0, 1, 0, 1].map(Some));
    let four = super::job(&format!("{text}accelerators=4\n"));
    assert_eq!((feed_of(&four).accelerators, four.threads, four.gpus.len()), (4, 12, 2));
    let one = super::job(&format!("{text}accelerators=1\n"));
    assert_eq!((one.threads, one.gpus.len()), (3, 1));
}

#[test]
fn without_a_gpu_accelerators_sleep() {
    let sleeps = feed_of(&job(&format!("{FEED}path=host\n")));
    assert_eq!((sleeps.compute, sleeps.accelerators), (FeedCompute::Sleep, 1));
    let nothing = FEED.replace("compute_time=1ms", "compute=none");
    assert_eq!(feed_of(&job(&nothing)).compute_ns, 0);
}

#[test]
fn what_does_not_fit_a_feed_is_refused_with_what_to_do() {
    let with = |more: &str| format!("[a]\n{FEED}gpu=0\n{more}\n");
    for (text, says) in [
        ("[a]\nfiles=3\n".to_owned(), "add sample_size"),
        ("[a]\nepochs=3\n".to_owned(), "add files"),
        (with("").replace("batch_samples=3\n", ""), "add batch_samples"),
        (with("").replace("compute_time=1ms\n", ""), "add compute_time, or compute=none"),
        (with("rw=randread"), "leave it out"),
        (with("threads=4"), "leave it out"),
        (with("ceilings=on"), "leave it out"),
        (with("beside=compute"), "leave it out"),
        (with("filename=/x"), "leave it out"),
        (with("bs=4k-64k"), "blocks of one size"),
        (with("path=fan-out"), "samples of its own"),
        (with("path=host\ncompute=kernel"), "compute=sleep"),
        (with("gpu=0,1\naccelerators=3"), "use 2 or 4"),
        (with("samples_per_file=4"), "leave out the deviation"),
        (with("sample_size=8\ncolumns=4+,2"), "the columns have 6 bytes, and a sample 8"),
        (with("sample_size=8\nsamples_per_file=10\nsample_group=4"), "that divides them"),
        (with("files=99999999"), "lower scale"),
        (with("epochs=99999999999"), "lower epochs"),
        (with("sample_size=1T\nsamples_per_file=99999999"), "lower files, samples or scale"),
        (with("readers=70000"), "lower readers"),
    ] {
        let refused = Bench::default().refusal(&parsed(&text));
        assert!(refused.to_string().contains(says), "{text}\n{refused}");
    }
    let mut spec = parsed(&with(""));
    let among = crate::spec::RankPlace { rank: 0, ranks: 2, on_next_host: Err("one host".into()) };
    spec.jobs[0].rank = Some(among);
    assert!(Bench::default().refusal(&spec).to_string().contains("without mpirun"));
}

#[test]
fn all_paths_but_those_of_several_gpus_take_a_feed() {
    let all = Bench::default().plan(&parsed(&format!("[a]\n{FEED}gpu=0\npath=all\n"))).unwrap();
    assert!(all.jobs.iter().all(|job| job.feed.is_some() && job.ceilings_ns.is_none()));
    assert!(all.ceilings.is_empty());
    let names: Vec<&str> = all.jobs.iter().map(|job| job.path.choice.actual.as_str()).collect();
    for name in ["host", "staged", "gather", "mapped", "library", "gds"] {
        assert!(names.contains(&name), "{names:?}");
    }
    assert!(all.left_out.iter().any(|out| out.path == "fan-out"));
}

/// 200 snapshots of a quarter of 512 MiB, written in order, and read from the last to the first.
#[test]
fn snapshots_are_read_in_reverse() {
    let text = preset::find("seismic").unwrap().text;
    let jobs = Bench::default().jobs(&text.replace("gpu=all", "gpu=0\ndirectory=/coarse"));
    let [forward, backward] = &jobs[..] else { panic!("{} jobs", jobs.len()) };
    assert_eq!((forward.group, backward.group), (0, 1), "one after the other");
    assert_eq!((forward.read_percent, backward.read_percent), (0, 100));
    assert_eq!(forward.targets, backward.targets);
    assert_eq!(forward.targets[199].length_bytes, 128 * MIB);
    for (job, op, order) in [
        (forward, Op::Write, (0..200).collect::<Vec<u32>>()),
        (backward, Op::Read, (0..200).rev().collect()),
    ] {
        let feed = feed_of(job);
        assert_eq!((feed.accelerators, feed.readers, feed.prefetch, feed.epochs), (1, 1, 2, 1));
        let mut reader = Reader::new(&feed, (0, 0), 1 << 30, 1);
        let mut files = Vec::new();
        while let Next::Range { block, .. } = reader.next(u64::MAX) {
            assert_eq!((block.op, u64::from(block.len), block.offset), (op, 128 * MIB, 0));
            files.push(block.file);
        }
        assert_eq!(files, order);
    }
    for (more, says) in [("rw=write\nepochs=2", "each once"), ("rw=randwrite", "leave it out")] {
        let refused = Bench::default().refusal(&parsed(&format!("[a]\n{FEED}gpu=0\n{more}\n")));
        assert!(refused.to_string().contains(says), "{refused}");
    }
    let inline = format!("[a]\n{FEED}gpu=0\nrw=write\nverify=inline\n");
    assert!(Bench::default().refusal(&parsed(&inline)).to_string().contains("verify"));
}

#[test]
fn a_tier_has_places_for_whole_samples_and_is_refused_where_it_can_do_nothing() {
    let tier = |more: &str| {
        let samples = "files=10\nsample_size=100000\nbatch_samples=3\ngpu=0\ncompute=none\n";
        let job = job(&format!("{samples}{more}\n"));
        let tier = feed_of(&job).tier.unwrap();
        (tier.places, tier.place_bytes)
    };
    assert_eq!(tier("cache_memory=102400"), (1, 102_400));
    assert_eq!(tier("cache_memory=511999\npath=cached"), (4, 102_400));
    assert_eq!(tier("cache_memory=1g"), (10, 102_400), "no more than there are");
    assert_eq!(tier("cache_memory=1m\nsamples_per_file=4\nsample_group=2"), (5, 204_800 - 4096));
    // Places are as long as the longest sample of all files.
    let drawn = job(&format!("{FEED}gpu=0\ncache_memory=1m\n"));
    let longest = drawn.targets.iter().map(|target| target.length_bytes).max();
    assert_eq!(feed_of(&drawn).tier.map(|tier| tier.place_bytes), longest);
    let with = |more: &str| format!("[a]\n{FEED}gpu=0\n{more}\ncache_memory=1m\n");
    for (text, says) in [
        (with("path=gds"), "path gds makes no copy of its own"),
        (with("path=mapped"), "use path=staged or cached"),
        (with("path=host"), "path host"),
        (with("path=gather"), "path gather"),
        (with("rw=write"), "nothing is written back"),
        (with("sample_size=8\ncolumns=4+,4"), "whole samples"),
        (with("").replace("cache_memory=1m", "cache_memory=4k"), "hold no whole sample"),
        (
            with("rw=write\nsample_order=zipf:1.2").replace("cache_memory=1m\n", ""),
            "each sample once",
        ),
        ("[a]\ncache_memory=1m\n".to_owned(), "add files"),
    ] {
        let refused = Bench::default().refusal(&parsed(&text)).to_string();
        assert!(refused.contains(says), "{text}\n{refused}");
        assert!(refused.contains("(f:"), "{refused}");
    }
    let all = Bench::default().plan(&parsed(&with("path=all"))).unwrap();
    let names: Vec<&str> = all.jobs.iter().map(|job| job.path.choice.actual.as_str()).collect();
    assert_eq!(names, ["staged", "cached"]);
}

/// Where the memory would not be there, nothing is begun.
#[test]
fn a_tier_counts_as_memory() {
    let text = "[a]\nfiles=100\nsample_size=1g\nbatch_samples=1\ncompute=none\ngpu=0\n\
                cache_memory=65g\n";
    let refused = Bench::default().refusal(&parsed(text)).to_string();
    assert!(refused.contains("the buffers take 65.0 GiB, more than 64.0 GiB"), "{refused}");
    assert!(refused.contains("lower cache_memory"), "{refused}");
    assert!(Bench::default().plan(&parsed(&text.replace("65g", "64g"))).is_ok());
}

/// Bytes a token by layers, heads and their size, blocks of 16 tokens, MLPerf's options 1 and 3.
#[test]
fn caches_are_what_their_sources_say() {
    // Layers, and values a layer: two for each of eight heads of 128, or DeepSeek's 512 + 64; fp16.
    for (name, token, users, at_once) in [
        ("kv-cache-llama3-8b", 32 * 2 * 8 * 128 * 2, 200, 16),
        ("kv-cache-llama3-8b-cpu", 32 * 2 * 8 * 128 * 2, 100, 8),
        ("kv-cache-llama3-70b", 80 * 2 * 8 * 128 * 2, 70, 4),
        ("kv-cache-deepseek-v3", 61 * (512 + 64) * 2, 200, 16),
    ] {
        let text = preset::find(name).unwrap().text;
        let jobs = Bench::default().jobs(&text.replace("gpu=all", "gpu=0\ndirectory=/fine"));
        let [decode, prefill] = &jobs[..] else { panic!("{} jobs", jobs.len()) };
        assert_eq!((decode.group, prefill.group), (0, 0), "{name}: at the same time");
        assert_eq!((decode.read_percent, prefill.read_percent), (100, 0), "{name}");
        assert_ne!(decode.targets[0].path, prefill.targets[0].path, "{name}");
        for job in &jobs {
            let feed = feed_of(job);
            assert_eq!((feed.files, feed.accelerators * feed.readers), (users, at_once), "{name}");
            assert_eq!(feed.sample.mean_bytes, 2048 * token, "{name}");
            assert_eq!(job.blocks, sizes(16 * token), "{name}");
            assert_eq!(job.seed, 42, "{name}");
            assert_eq!(feed.slo.unwrap().name(), Some("interactive"), "{name}");
            assert_eq!(job.stop.runtime_ns, Some(300_000_000_000), "{name}");
            assert_eq!(job.targets[0].length_bytes, 2048 * token, "{name}: no byte more");
        }
        let tiers = [decode, prefill].map(|job| feed_of(job).tier);
        let places = name.ends_with("-cpu").then_some(TierPlan {
            requested_bytes: 4 * GIB,
            places: 16,
            place_bytes: 256 * MIB,
        });
        assert_eq!(tiers, [places, None], "{name}");
    }
}

/// Flags that make another feed than its source's; readers, files and accelerators are free.
#[test]
fn settings_that_are_not_the_workloads_own_are_named() {
    use crate::spec::{Origin, apply};
    let changed = |settings: &[(&str, &str, &'static str)]| {
        let mut spec = parsed(&format!("[a]\n{FEED}gpu=0\n"));
        for (key, value, flag) in settings {
            apply(&mut spec.jobs[0], key, value, Origin::Flag(flag)).unwrap();
        }
        feed_of(&Bench::default().plan(&spec).unwrap().jobs[0]).changed
    };
    assert_eq!(changed(&[]), Vec::<String>::new());
    assert_eq!(changed(&[("readers", "3", "--readers")]), Vec::<String>::new());
    let tried =
        [("batch_samples", "2", "--batch"), ("readers", "3", "--try"), ("scale", "0.5", "--try")];
    assert_eq!(changed(&tried), ["batch_samples=2 (--batch)", "readers=3 (--try)"]);
}
