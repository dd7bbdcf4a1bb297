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
    let half = GIB / 2;
    let both = |at| [(0, at, half), (1, at, half)];
    assert_eq!(regions(&job), [both(0), both(half)]);
    assert_eq!((job.size_bytes, job.targets[1].length_bytes), (GIB, GIB));
}

/// As in fio: files divide `size`, and without one each is used as long as it is.
#[test]
fn several_named_files_divide_the_size() {
    let lengths = |job: &JobPlan| -> Vec<u64> {
        job.workers[0].regions.iter().map(|region| region.length).collect()
    };
    let three = "rw=read\nioengine=psync\nfilename=/a/f:/b/f:/c/f\n";
    let job = self::job(&format!("{three}size=24m"));
    assert_eq!(lengths(&job), [8 * MIB; 3]);
    assert!(job.targets.iter().all(|target| target.length_bytes == 8 * MIB));
    assert_eq!(job.stop.bytes_per_thread, Some(24 * MIB), "one pass over all of them");
    assert!(job.files_in_turn, "fio's default");
    let each = self::job(&format!("{three}numjobs=2\nsize=24m"));
    assert_eq!(regions(&each)[1], regions(&each)[0], "threads of fio share nothing");
    let devices = self::job("filename=/device1:/device2\nsize=4g\nrw=read");
    assert_eq!(lengths(&devices), [2 * GIB; 2]);
    // A length that does not divide is rounded down to the alignment, and a pass is the rest.
    let odd = self::job(&format!("{three}size=25m\nbs=4k\ndirect=1"));
    assert_eq!(lengths(&odd), [25 * MIB / 3 / 512 * 512; 3]);
    assert_eq!(odd.stop.bytes_per_thread, Some(25 * MIB / 3 / 512 * 512 * 3));
    assert_eq!(odd.size_bytes, 25 * MIB);
    let few = Bench::default().refusal(&parsed(&format!("[a]\n{three}bs=1m\nsize=2m")));
    assert!(few.to_string().contains("which 3 files divide, holds no block"), "{few}");
    // Each file as it is, or a share of each.
    let whole = self::job("filename=/have9g:/have6g\nioengine=psync\nrw=read");
    assert_eq!((lengths(&whole), whole.size_bytes), (vec![9 * GIB, 6 * GIB], 15 * GIB));
    assert_eq!((whole.size_percent, whole.targets[1].length_bytes), (Some(100), 6 * GIB));
    let half = self::job("filename=/have8g:/have6g\nsize=50%\nthreads=2\nrw=read");
    assert_eq!(regions(&half)[1], [(0, 2 * GIB, 2 * GIB), (1, 3 * GIB / 2, 3 * GIB / 2)]);
    let made = self::job("filename=/a:/b\nfilesize=2g\nrw=read");
    assert_eq!((lengths(&made), made.size_bytes), (vec![2 * GIB; 2], 4 * GIB));
    let strided = self::job("filename=/a:/b\nthreads=2\nlayout=strided\nsize=10m\nbs=1m");
    assert_eq!(lengths(&strided), [5 * MIB; 2]);
    assert_eq!(strided.workers[1].regions[1].offset, MIB);
}

/// As in fio: rounded up to the smallest block.
#[test]
fn an_offset_may_be_a_share_of_the_file() {
    let at = |text: &str| {
        let job = job(&format!("rw=read\nioengine=psync\n{text}"));
        (job.offset_bytes, job.size_bytes)
    };
    assert_eq!(at("filename=/have10g\nbs=64k\noffset=0%"), (0, 10 * GIB));
    assert_eq!(at("filename=/have10g\nbs=64k\noffset=40%"), (4 * GIB, 6 * GIB));
    // So is what a thread moves, of its size, and it may be more than that.
    for (share, bytes) in [("50%", 2 * GIB), ("250%", 10 * GIB)] {
        let plan = job(&format!("filename=/have10g\nbs=64k\nsize=4g\nio_size={share}"));
        assert_eq!(plan.stop.bytes_per_thread, Some(bytes), "{share}");
    }
    let third = (10 * GIB * 33 / 100).next_multiple_of(64 * KIB);
    assert_eq!(at("filename=/have10g\nbs=64k\noffset=33%"), (third, 10 * GIB - third));
    assert_eq!(at("filename=/have10g\nsize=50%\noffset=20%"), (2 * GIB, 5 * GIB));
    assert_eq!(at("filename=/have10g\nsize=90%\noffset=20%"), (2 * GIB, 8 * GIB));
    assert_eq!(at("filename=/new\nfilesize=1g\nsize=1m\noffset=50%"), (GIB / 2, MIB));
    let said = |text: &str| Bench::default().refusal(&parsed(&format!("[a]\n{text}"))).to_string();
    assert!(said("filename=/new\nsize=1m\noffset=40%").contains("not there yet is no offset"));
    assert!(said("filename=/have8g:/have6g\noffset=40%").contains("different lengths"));
}

#[test]
fn a_directory_stands_before_names_that_are_not_absolute() {
    let job = job("directory=/d/\nfilename=one:/two\nsize=1g");
    assert_eq!(paths(&job), ["/d/one", "/two"]);
    assert_eq!(job.directory, None);
}

/// As fio places them: thread after thread, with all files of a thread in one directory.
#[test]
fn threads_take_directories_in_turn() {
    let of =
        |text: &str| job(&format!("ioengine=psync\nrw=write\nsize=1m\ndirectory=/d:/e\n{text}"));
    let three = of("numjobs=3\nnrfiles=2");
    let each = ["/d/a.0.0", "/d/a.0.1", "/e/a.1.0", "/e/a.1.1", "/d/a.2.0", "/d/a.2.1"];
    assert_eq!(paths(&three), each);
    assert_eq!(regions(&three)[1], [(2, 0, MIB / 2), (3, 0, MIB / 2)]);
    assert_eq!(paths(&of("numjobs=2\nfile_prefix=x")), ["/d/x.0", "/e/x.1"]);
    let within = |path: &str| three.directory_of(path).map(str::to_owned);
    assert_eq!(within("/e/a.1.0").as_deref(), Some("/e"));
    // One colon is a part of a name.
    assert_eq!(paths(&job("directory=/d\\:e\nsize=1g")), ["/d:e/gpuio.0"]);
    let named = of("filename=x\nnumjobs=2");
    assert_eq!(paths(&named), ["/d/x"]);
    assert!(named.notes.iter().any(|note| note.contains("first directory, /d,")), "{named:?}");
    for lines in ["filename_format=x.$filenum", "numjobs=2\nlayout=segmented"] {
        let text = format!("[a]\nrw=write\nsize=1g\ndirectory=/d:/e\n{lines}\n");
        let said = Bench::default().refusal(&parsed(&text)).to_string();
        assert!(said.contains("one directory"), "{said}");
    }
}

/// fio's section that is called as a file, and has no directory.
#[test]
fn a_name_that_begins_with_a_slash_says_the_directory() {
    let of = |name: &str, text: &str| -> JobPlan {
        let text = format!("[{name}]\nioengine=psync\nrw=write\nsize=1m\n{text}");
        Bench::default().jobs(&text).remove(0)
    };
    let one = of("/have/x", "");
    assert_eq!((paths(&one), one.directory.as_deref()), (vec!["/have/x.0.0"], Some("/have")));
    assert!(one.keep, "a file where the user wants it is no scratch");
    assert_eq!(of("/x", "").targets[0].path, "/x.0.0");
    assert_eq!(of("/have/x", "filename_format=/q/$jobnum/f").targets[0].path, "/q/0/f");
    assert!(!of("x/y", "").keep, "others are in gpuio's own directory");
}

/// Lengths are whole blocks in the range, drawn by the seed for all threads alike.
#[test]
fn each_file_has_a_length_from_a_range() {
    let of = |lines: &str| {
        job(&format!("ioengine=psync\nrw=write\ndirectory=/d\nfilesize=10k-64k\n{lines}"))
    };
    let lengths = |job: &JobPlan| job.targets.iter().map(|t| t.length_bytes).collect::<Vec<u64>>();
    let eight = of("nrfiles=8\nnumjobs=2");
    let all = lengths(&eight);
    assert_eq!(all[..8], all[8..], "threads move the same number of bytes");
    let fits =
        |length: &u64| (12 * KIB..=64 * KIB).contains(length) && length.is_multiple_of(4 * KIB);
    assert!(all.iter().all(fits) && all.iter().any(|length| *length != all[0]), "{all:?}");
    let whole: u64 = all[..8].iter().sum();
    assert_eq!((eight.size_bytes, eight.stop.bytes_per_thread), (whole, Some(whole)));
    assert_eq!(lengths(&of("nrfiles=8\nnumjobs=2")), all, "by the seed");
    assert_ne!(lengths(&of("nrfiles=8\nnumjobs=2\nrandseed=7")), all);
    // A size bounds what is moved, and leaves the files as they are.
    let part = of("nrfiles=8\nnumjobs=2\nsize=32k");
    assert_eq!((lengths(&part), part.stop.bytes_per_thread), (all, Some(32 * KIB)));
    let short = "[a]\nioengine=psync\nrw=write\ndirectory=/d\nfilesize=1k-5k\nbs=8k\n";
    let said = Bench::default().refusal(&parsed(short)).to_string();
    assert!(said.contains("from 1024 to 5120 bytes"), "{said}");
}

#[test]
fn a_file_that_is_there_is_shared_out_whole() {
    assert_eq!(job("filename=/have9g\nthreads=2").size_bytes, 9 * GIB / 2);
    assert_eq!(job("filename=/have9g\nthreads=2\noffset=1g").size_bytes, 4 * GIB);
    assert_eq!(job("filename=/have9g:/have6g").size_bytes, 15 * GIB, "each as long as it is");
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
