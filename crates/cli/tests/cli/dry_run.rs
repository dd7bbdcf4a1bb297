//! `--dry-run` shows the whole plan, touches nothing, and its text is a job file for the same plan.

use std::path::Path;

use crate::record::check_clean;
use crate::tool::{GPUIO, bench, bench_with, command, file, finish, other, scratch, tree, words};

const TWO: [(&str, &str); 1] = [("GPUIO_SOFT_GPUS", "2")];

/// Settings without comments: these say why a choice was made, which a second reading can't know.
fn settings(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.starts_with('#')).collect()
}

/// Plans `line`, then plans what was printed, until nothing may change any more.
#[track_caller]
fn round_trip(dir: &Path, line: &str) -> String {
    let before = tree(dir);
    let first = bench_with(dir, &TWO, &format!("{line} --dry-run")).exits(0).out;
    assert_eq!(tree(dir), before, "{line}: a dry run made something");
    file(dir, "first.ini", &first);
    let second = bench_with(dir, &TWO, "first.ini --dry-run").exits(0).out;
    assert_eq!(settings(&first), settings(&second), "{line}");
    file(dir, "second.ini", &second);
    let third = bench_with(dir, &TWO, "second.ini --dry-run").exits(0).out;
    assert_eq!(second, third, "{line}: not even comments may change now");
    std::fs::remove_file(dir.join("first.ini")).unwrap();
    std::fs::remove_file(dir.join("second.ini")).unwrap();
    first
}

#[test]
fn many_flags() {
    for line in [
        "",
        "--rw randrw --rwmixread 70 --bs 4k --size 1m --threads 3",
        "--rw randread --random-distribution zipf:1.1 --size 2m --seed 42",
        "--rw randwrite --random-distribution pareto:0.3 --size 2m --directory d",
        "--rw randrw --random-distribution normal:12.5 --size 2m --norandommap",
        "--rw randread --bssplit 4k/60:64k/40 --size 2m --depth 9 --engine pool",
        "--rw read --bs 16k:64k:16k --size 4m --buffered",
        "--rw write --bs 512k --io-size 3m --size 1m --sync --refill",
        "--rw write --fill random --loops 3 --size 1m --runtime 5",
        "--rw read --offset 64k --size 2m --filename d1 --filename d2 --set shared_files=0",
        "--rw write --filename with:colon --size 1m --threads 4 --shared-fd",
        "--rw read --rate 10m --size 1m --rate-process poisson",
        "--rw read --rate-iops 100 --size 1m --ramp 200ms --start-delay 1500us",
        "--gpu software --size 1m --streams 3 --depth 7 --memory vmm",
        "--gpu software:0,1 --path staged,cached --size 1m --threads 2 --verify",
        "--gpu software --path all --rw rw --size 1m --verify=inline",
        "--path cached --gpu software:1 --size 1m --keep",
        "--rw randread --align 8k --bs 4k --size 1m --numa 0",
        "--rw randread --unaligned --buffered --bs 4k --size 1m --cpus 0",
        "--inject eio=1%,delay=2ms@10% --size 1m --rw read",
        "--engine mmap --size 1m --file-prefix p",
    ] {
        let dir = scratch();
        let names = line.contains("--filename d1");
        if names {
            file(dir.path(), "d1", &"x".repeat(2 << 20));
            file(dir.path(), "d2", &"x".repeat(2 << 20));
        }
        round_trip(dir.path(), line);
    }
}

#[test]
fn job_files() {
    let dir = scratch();
    file(
        dir.path(),
        "fio.ini",
        "[global]\nioengine=libaio\ndirect=1\nthread\nsize=1m\ndirectory=d\n\
         [a]\nrw=randread\nnumjobs=2\niodepth=4\n[b]\nstonewall\nrw=write\nbs=64k\nruntime=5\n",
    );
    let text = round_trip(dir.path(), "fio.ini");
    assert!(text.contains("stonewall = 1"), "{text}");
    file(
        dir.path(),
        "gds.ini",
        "[global]\nxfer_type=2\nrw=randread\nbs=64k\nsize=1m\nruntime=5\ngpu=software\n\
         [job1]\ngpu_dev_id=0\nnum_threads=2\ndirectory=d\n\
         [job2]\ngpu_dev_id=1\nnum_threads=1\ndirectory=e\n",
    );
    round_trip(dir.path(), "gds.ini");
}

/// The plan of a gdsio line is a job file for `gpuio bench`.
#[test]
fn gdsio_lines() {
    let dir = scratch();
    for line in [
        "gdsio -D . -w 2 -s 1M -i 64K -x 1 -I 1",
        "gdsio -D . -w 2 -s 1M -i 64K -x 2 -I 3 -T 2 -k 7 --gpu software",
        "gdsio -f shared -w 3 -s 1M -o 1M -i 16K:64K:16K -x 4 -I 1 --gpu software",
    ] {
        let first = finish(command(dir.path()).args(words(line)).arg("--dry-run")).exits(0).out;
        assert!(tree(dir.path()).is_empty(), "{line}");
        file(dir.path(), "plan.ini", &first);
        let second = bench(dir.path(), "plan.ini --dry-run").exits(0).out;
        assert_eq!(settings(&first), settings(&second), "{line}");
        std::fs::remove_file(dir.path().join("plan.ini")).unwrap();
    }
}

/// The printed plan is the one that runs, and the record's plan is that text again.
#[test]
fn the_printed_plan_runs() {
    let dir = scratch();
    let line = "--gpu software --path host,staged --rw randrw --bs 16k --size 1m --threads 2 \
                --runtime 60ms --verify --directory d";
    let text = round_trip(dir.path(), line);
    file(dir.path(), "plan.ini", &text);
    let record = bench(dir.path(), "plan.ini --format json").exits(0).json();
    check_clean(&record);
    let ran = record["plan_text"].as_str().unwrap();
    assert_eq!(settings(ran), settings(&text));
    let again = bench(dir.path(), &format!("{line} --format plan")).exits(0).out;
    assert_eq!(settings(&again), settings(&text));
}

/// The guard speaks in a dry run as it does in a run.
#[test]
fn refusals_are_the_same() {
    let dir = scratch();
    file(dir.path(), "precious", "mine");
    let line = "--rw write --filename precious --size 1m";
    let dry = bench(dir.path(), &format!("{line} --dry-run")).exits(2);
    let wet = bench(dir.path(), line).exits(2);
    assert_eq!(dry.err, wet.err);
    assert_eq!(std::fs::read_to_string(dir.path().join("precious")).unwrap(), "mine");
}

/// The time before and after the clocks belongs to the run, and so does the room for its files.
#[test]
fn layout_verification_and_room_are_in_it() {
    let dir = scratch();
    let dry = |line: &str| bench(dir.path(), &format!("--rw read {line} --dry-run")).exits(0);
    let small = dry("--size 1m --threads 1 --runtime 1s --verify");
    for line in [
        "; 1.00 MiB are written before the clock starts, 977 µs at 1.00 GiB/s\n",
        "# after the clocks: 1.00 MiB at most are verified, 977 µs at 1.00 GiB/s\n",
    ] {
        assert!(small.out.contains(line), "{small:#?}");
    }
    assert!(!small.err.contains("Does not fit"), "{small:#?}");
    // A load that writes all of its new file needs nothing written before it.
    for (by, before) in
        [("--loops 1", "; none is written"), ("--runtime 1s", "; 1.00 MiB are written")]
    {
        let line = format!("--rw write --size 1m --threads 1 {by} --dry-run");
        let writes = bench(dir.path(), &line).exits(0).out;
        assert!(writes.contains(&format!("{before} before the clock starts")), "{writes}");
    }
    // Neither does what reads in a later group what such a load has written.
    let saves = "workload checkpoint-llama3-8b --gpu software --scale 0.0001 --dry-run";
    let saves = finish(command(dir.path()).args(words(saves))).exits(0).out;
    assert!(saves.contains("; none is written before the clock starts"), "{saves}");
    let large = dry("--size 4E --threads 1 --runtime 1s");
    assert!(large.err.contains("Does not fit: Not enough space on "), "{large:#?}");
}

/// A plan of 200,000 files fits into memory, less than 1 KiB for each, and its text into a screen
/// or two.
#[test]
fn many_files() {
    let dir = scratch();
    let mut shell = other(dir.path(), "bash");
    shell.current_dir(dir.path()).args(["-c", "ulimit -v 240000 && exec \"$0\" \"$@\"", GPUIO]);
    let line = "workload retinanet-b200 --gpu software --set files=200000 --dry-run";
    let plan = finish(shell.args(words(line))).exits(0).out;
    assert!(plan.len() < 10_000, "{} bytes", plan.len());
    let files: Vec<&str> = plan.lines().filter(|line| line.starts_with("# file ")).collect();
    assert_eq!(files.len(), 4, "{files:?}");
    let rest = plan.lines().find(|line| line.starts_with("# and ")).unwrap();
    let rest = rest.strip_prefix("# and 199996 more, the last file ").unwrap();
    assert!(rest.starts_with("gpuio-scratch/retinanet.199999: ") && rest.ends_with("created"));
    let threads: Vec<&str> = plan.lines().filter(|line| line.starts_with("# thread ")).collect();
    assert!(threads.len() == 8 && threads[0].contains("and 24996 more, the "), "{threads:?}");
    assert_eq!(tree(dir.path()), Vec::<String>::new());
}
