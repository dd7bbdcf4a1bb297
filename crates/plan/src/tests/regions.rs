use super::*;

/// Target, offset and length of every region, thread by thread.
fn regions(job: &JobPlan) -> Vec<Vec<(u32, u64, u64)>> {
    let of = |worker: &gpuio_record::WorkerPlan| {
        worker.regions.iter().map(|region| (region.target, region.offset, region.length)).collect()
    };
    job.workers.iter().map(of).collect()
}

fn paths(job: &JobPlan) -> Vec<&str> {
    job.targets.iter().map(|target| target.path.as_str()).collect()
}

#[test]
fn each_thread_has_its_own_file_of_a_directory() {
    let job = job("directory=/d/\nthreads=2\nsize=1g\noffset=4k");
    assert_eq!(paths(&job), ["/d/gpuio.0", "/d/gpuio.1"]);
    assert_eq!(regions(&job), [[(0, 4 * KIB, GIB)], [(1, 4 * KIB, GIB)]]);
    for target in &job.targets {
        assert_eq!((target.length_bytes, target.guard), (GIB + 4 * KIB, GuardNote::Make));
        assert_eq!(target.kind, TargetKind::File);
    }
    assert_eq!(paths(&self::job("directory=/")), ["/gpuio.0"]);
    assert_eq!(paths(&self::job("directory=/d\nfile_prefix=x")), ["/d/x.0"]);
}

#[test]
fn threads_share_a_named_file_region_after_region() {
    let job = job("filename=/have8g\nthreads=3\nsize=1g\noffset=1m");
    assert!(job.shared_files);
    let at = |n: u64| MIB + n * GIB;
    assert_eq!(regions(&job), [[(0, at(0), GIB)], [(0, at(1), GIB)], [(0, at(2), GIB)]]);
    assert_eq!(job.targets[0].length_bytes, at(3));
    assert_eq!(job.targets[0].guard, GuardNote::ForeignReadOnly);
    assert_eq!(job.directory, None);
}

#[test]
fn threads_that_do_not_share_all_work_on_the_same_bytes() {
    let unshared = "filename=/have8g\nthreads=2\nsize=1g\nshared_files=0";
    for text in [unshared, "ioengine=sync\nfilename=/have8g\nnumjobs=2\nsize=1g"] {
        let job = job(text);
        assert!(!job.shared_files, "{text}");
        assert_eq!(regions(&job), [[(0, 0, GIB)], [(0, 0, GIB)]]);
        assert_eq!(job.targets[0].length_bytes, GIB);
    }
    assert!(!job("filename=/have8g\nsize=1g").shared_files, "one thread shares with nobody");
}

#[test]
fn every_thread_works_on_all_of_several_files() {
    let job = job("filename=/have8g:/have9g\nthreads=2\nsize=1g");
    assert_eq!(paths(&job), ["/have8g", "/have9g"]);
    let both = |at| [(0, at, GIB), (1, at, GIB)];
    assert_eq!(regions(&job), [both(0), both(GIB)]);
}

#[test]
fn a_directory_stands_before_names_that_are_not_absolute() {
    let job = job("directory=/d/\nfilename=one:/two\nsize=1g");
    assert_eq!(paths(&job), ["/d/one", "/two"]);
    assert_eq!(job.directory, None);
}

#[test]
fn a_file_that_is_there_is_shared_out_whole() {
    assert_eq!(job("filename=/have9g\nthreads=2").size_bytes, 9 * GIB / 2);
    assert_eq!(job("filename=/have9g\nthreads=2\noffset=1g").size_bytes, 4 * GIB);
    assert_eq!(job("filename=/have9g:/have6g").size_bytes, 6 * GIB, "the shortest decides");
    let device = job("filename=/device\nthreads=4");
    assert_eq!((device.size_bytes, device.targets[0].kind), (4 * GIB, TargetKind::BlockDevice));
}

#[test]
fn a_share_of_a_file_is_rounded_down_to_the_alignment() {
    assert_eq!(job("filename=/have100k\nthreads=3\nbs=4k").size_bytes, 33 * KIB + 512 - 512);
    assert_eq!(job("filename=/coarse/have100k\nthreads=3\nbs=4k").size_bytes, 32 * KIB);
    let buffered = job("filename=/have100k\nthreads=3\nbs=4k\ndirect=0");
    assert_eq!(buffered.size_bytes, 100 * KIB / 3);
    assert_eq!(buffered.workers[2].regions[0].offset, 2 * (100 * KIB / 3));
}

#[test]
fn a_new_data_set_suits_disk_and_memory() {
    assert_eq!(job("directory=/d").size_bytes, GIB);
    assert_eq!(job("directory=/small").size_bytes, 16 * MIB, "a quarter of what is free");
    assert_eq!(job("directory=/small\nthreads=3").size_bytes, 5 * MIB, "in whole MiB");
    assert_eq!(job("directory=/small\nbs=32m").size_bytes, 32 * MIB, "room for one block");
    let mut tight = Bench::default();
    tight.host.memory.usable_bytes = Some(100 * MIB);
    assert_eq!(tight.job("directory=/d").size_bytes, 50 * MIB, "half of memory");
    tight.host.memory.usable_bytes = None;
    assert_eq!(tight.job("directory=/d").size_bytes, GIB);
}

#[test]
fn a_files_number_is_of_its_name_alone() {
    let number = |text: &str, at: usize| job(text).targets[at].file_number;
    // FNV-1a of "a", from its published test vectors: data sets written today must verify later.
    assert_eq!(super::super::regions::file_number("a"), 0xaf63_dc4c_8601_ec8c);
    assert_eq!(number("filename=/x/a\nsize=1g", 0), 0xaf63_dc4c_8601_ec8c);
    assert_eq!(number("filename=/b:/a\nsize=1g", 1), number("filename=/a\nsize=2g", 0));
    assert_eq!(number("directory=/d\nthreads=2", 1), number("filename=/e/gpuio.1\nsize=1g", 0));
    assert_ne!(number("directory=/d\nthreads=2", 0), number("directory=/d\nthreads=2", 1));
}

#[test]
fn workers_have_seeds_of_their_own_that_follow_from_the_jobs() {
    let seeds = |text: &str| -> Vec<u64> { job(text).workers.iter().map(|w| w.seed).collect() };
    let one = seeds("rw=randread\nthreads=4\nseed=7");
    assert_eq!(one, seeds("rw=randread\nthreads=4\nseed=7"));
    assert_eq!(
        one[..2],
        seeds("rw=randread\nthreads=2\nseed=7")[..],
        "more threads move no other's"
    );
    let all: BTreeSet<u64> =
        one.iter().copied().chain(seeds("rw=randread\nthreads=4\nseed=8")).collect();
    assert_eq!(all.len(), 8);
}
