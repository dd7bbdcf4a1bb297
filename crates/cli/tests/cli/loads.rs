//! The properties of a load by itself: sizes, laps, times, regions, memory of its own choices.

use serde_json::Value;

use crate::record::{check, check_clean, jobs, list, n, warnings};
use crate::tool::{bench, file, scratch};

/// Runs one job and gives plan and result back after the checks that hold for all.
#[track_caller]
fn one(line: &str) -> (Value, Value, Value) {
    let dir = scratch();
    let record = bench(dir.path(), &format!("{line} --format json")).exits(0).json();
    check_clean(&record);
    let (plan, job) = jobs(&record)[0];
    (plan.clone(), job.clone(), record.clone())
}

#[test]
fn block_ranges_and_splits() {
    let (_, job, _) = one("--rw read --bs 16k:64k:16k --size 4m --loops 4 --directory d");
    let (ios, bytes) = (n(&job["read"]["ios"]), n(&job["read"]["bytes"]));
    let mean = bytes / ios;
    assert!((30_000..52_000).contains(&mean), "a mean of {mean} bytes from 16k to 64k");
    let line = "--rw randread --bssplit 4k/80:64k/20 --size 2m --loops 4 --directory d --verify";
    let (plan, job, _) = one(line);
    assert_eq!(plan["blocks"].as_array().unwrap().len(), 2);
    let mean = n(&job["read"]["bytes"]) / n(&job["read"]["ios"]);
    // Large blocks are cut before what was read; fio's mean is 8.6 KiB.
    assert!((6_000..12_000).contains(&mean), "a mean of {mean} bytes, 8 KiB expected");
    assert_eq!(n(&job["read"]["bytes"]), 8 << 20, "each byte once in each of 4 passes");
    let (_, job, _) = one(&format!("{line} --norandommap"));
    let mean = n(&job["read"]["bytes"]) / n(&job["read"]["ios"]);
    assert!((12_000..21_000).contains(&mean), "a mean of {mean} bytes, 16 KiB expected");
}

#[test]
fn laps_and_bytes() {
    let (_, job, _) = one("--rw write --bs 64k --size 1m --loops 3 --threads 2 --directory d");
    assert_eq!(n(&job["write"]["bytes"]), 6 << 20);
    let (_, job, _) = one("--rw randread --bs 4k --size 1m --io-size 256k --directory d");
    assert_eq!(n(&job["read"]["bytes"]), 256 << 10);
    // Whichever comes first.
    let (_, job, _) = one("--rw read --bs 4k --size 1m --loops 2 --runtime 60 --directory d");
    assert_eq!(n(&job["read"]["bytes"]), 2 << 20);
}

/// As many I/Os as were due in that time, started or not.
#[test]
fn a_time_is_kept() {
    // Thread 0 has I/Os at 0, 100, 200 and 300 ms, thread 1 at 50, 150 and 250 ms.
    let line = "--rw randrw --bs 4k --size 1m --runtime 320ms --threads 2 --rate-iops 10 \
                --directory d";
    let (_, job, _) = one(line);
    let ios = n(&job["read"]["ios"]) + n(&job["write"]["ios"]);
    assert_eq!(ios + n(&job["never_started"]["ios"]), 7, "{job}");
    // An I/O that was started ended after it was due.
    let last = n(&job["last_done_ns"]);
    assert!(ios < 7 || last >= 300_000_000, "{last}");
    let points = list(&job["series"]).iter();
    let reported = points.map(|point| n(&point["read_ios"]) + n(&point["write_ios"])).sum::<u64>();
    assert_eq!(reported, ios, "{}", job["series"]);
}

/// A ramp moves bytes and counts none.
#[test]
fn a_ramp_does_not_count() {
    let dir = scratch();
    let text = "[global]\nrw=randread\nbs=4k\nsize=1m\nruntime=200ms\ndirectory=d\nengine=psync\n\
                rate_iops=100\n[ramped]\nramp_time=400ms\n[plain]\n";
    file(dir.path(), "ramp.ini", text);
    let record = bench(dir.path(), "ramp.ini --format json").exits(0).json();
    check(&record);
    let [(plan, ramped), (_, plain)] = jobs(&record)[..] else { panic!("{record}") };
    assert_eq!(n(&plan["ramp_ns"]), 400_000_000);
    // Time begins with the ramp's end, to the nanosecond on the clock of both.
    let begin = |job: &Value| n(&job["measured"]["begin_ns"]);
    assert_eq!(begin(ramped) - begin(plain), 400_000_000);
    let (measured, last) = (&ramped["measured"], n(&ramped["last_done_ns"]));
    assert_eq!(n(&measured["end_ns"]) - n(&measured["begin_ns"]), last);
    // I/Os that the engine moved and the job did not count completed in the ramp, where the series
    // has them.
    let (moved, counted) = (n(&ramped["file_leg"]["read_ios"]), n(&ramped["read"]["ios"]));
    let in_ramp = |point: &&Value| point["at_ns"].as_i64().unwrap() <= 0;
    let points = list(&ramped["series"]).iter().filter(in_ramp);
    let seen: u64 = points.map(|point| n(&point["read_ios"])).sum();
    assert!(moved - counted >= seen, "{moved} moved, {counted} counted, {seen} in the ramp");
    assert!(seen > 0, "of 40 I/Os in 400 ms none was in the ramp: {}", ramped["series"]);
}

#[test]
fn a_start_delay_waits() {
    let dir = scratch();
    file(
        dir.path(),
        "delay.ini",
        "[global]\nrw=randread\nbs=16k\nsize=1m\nruntime=150ms\ndirectory=d\n\
         [now]\n[later]\nstart_delay=300ms\n",
    );
    let ran = bench(dir.path(), "delay.ini --format json").exits(0);
    let record = ran.json();
    check(&record);
    assert!(ran.took.as_millis() >= 300, "{:?}", ran.took);
    let [(_, now), (_, later)] = jobs(&record)[..] else { panic!("{record}") };
    let at = |job: &Value, end: &str| n(&job["measured"][end]);
    assert_eq!(at(later, "begin_ns") - at(now, "begin_ns"), 300_000_000);
    // The delay is not in the result.
    assert_eq!(at(later, "end_ns") - at(later, "begin_ns"), n(&later["last_done_ns"]));
}

/// Threads of one named file have regions of their own, unless told otherwise.
#[test]
fn shared_files() {
    let dir = scratch();
    let line = "--rw write --bs 64k --size 1m --threads 4 --loops 1 --filename f --verify --keep";
    let record = bench(dir.path(), &format!("{line} --format json")).exits(0).json();
    check_clean(&record);
    assert_eq!(dir.path().join("f").metadata().unwrap().len(), 4 << 20);
    let (plan, _) = jobs(&record)[0];
    let starts: Vec<u64> = plan["workers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|worker| n(&worker["regions"][0]["offset"]))
        .collect();
    assert_eq!(starts, [0, 1 << 20, 2 << 20, 3 << 20]);
    let line = "--rw randread --bs 64k --threads 4 --loops 1 --filename f --verify --shared-fd";
    let record = bench(dir.path(), &format!("{line} --format json")).exits(0).json();
    check_clean(&record);
    let one = "--rw read --bs 64k --threads 4 --loops 1 --filename f --verify \
               --set shared_files=0 --format json";
    let record = bench(dir.path(), one).exits(0).json();
    check_clean(&record);
    assert_eq!(n(&jobs(&record)[0].1["read"]["bytes"]), 16 << 20);
}

#[test]
fn offsets() {
    let dir = scratch();
    let line = "--rw write --bs 64k --size 1m --offset 1m --loops 1 --keep --format json";
    let record = bench(dir.path(), &format!("{line} --filename f")).exits(0).json();
    check_clean(&record);
    let bytes = std::fs::read(dir.path().join("f")).unwrap();
    assert_eq!(bytes.len(), 2 << 20);
    assert!(bytes[..1 << 20].iter().any(|byte| *byte != 0), "a hole before the offset");
    assert!(bytes[1 << 20..].iter().any(|byte| *byte != 0));
    // After a verified write all of a file of ours can be verified.
    let record = bench(dir.path(), &format!("{line} --filename g --verify")).exits(0).json();
    check_clean(&record);
    let read = "--rw read --bs 64k --size 2m --loops 1 --filename g --verify --format json";
    check_clean(&bench(dir.path(), read).exits(0).json());
}

/// Verification between I/Os: the wall clock has it, latencies do not, and a warning says so.
#[test]
fn inline_verification() {
    for more in ["--path host", "--path staged --gpu software", "--path cached --gpu software"] {
        let line = format!(
            "{more} --rw randrw --bs 16k --size 1m --runtime 400ms --verify=inline --directory d"
        );
        let (_, job, record) = one(&line);
        assert!(n(&job["between_ios_ns"]) > 0, "{more}");
        assert!(warnings(&record).contains(&"work_between_ios"), "{:?}", warnings(&record));
        assert_eq!(n(&job["verify"]["pass_blocks"]), 0);
        assert!(n(&job["verify"]["timed_blocks"]) > 0);
    }
}

/// The same seed asks for the same offsets.
#[test]
fn unaligned_offsets_and_buffered_files() {
    let (plan, _, _) =
        one("--rw randread --unaligned --buffered --bs 4k --size 1m --runtime 100ms --verify \
         --directory d");
    assert_eq!(n(&plan["skew_bytes"]) % 4096, 512);
    let (_, job, record) = one("--rw write --buffered --bs 64k --size 1m --loops 1 --directory d");
    assert_eq!(job["direct_actual"], "buffered");
    assert!(warnings(&record).contains(&"buffered_writes"), "{:?}", warnings(&record));
    let (_, _, record) = one("--rw write --sync --bs 64k --size 1m --loops 1 --directory d");
    assert!(warnings(&record).contains(&"sync_writes"), "{:?}", warnings(&record));
}

/// Transfers cut short are continued: every byte arrives, and the record counts them.
#[test]
fn short_transfers() {
    for engine in ["psync", "io_uring", "libaio", "pool"] {
        let line = format!(
            "--rw randrw --bs 64k --size 1m --runtime 60ms --engine {engine} --verify \
             --inject short=30%,seed=3 --directory d"
        );
        let (_, job, record) = one(&line);
        assert!(n(&job["file_leg"]["short_ios"]) > 0, "{engine}");
        assert!(n(&job["file_leg"]["injected"]["short"]) > 0, "{engine}");
        assert!(warnings(&record).contains(&"faults_injected"));
    }
}

/// Faults that strike the verification are counted, and named by path and offset, as those of the
/// load are.
#[test]
fn faults_in_the_verification() {
    let dir = scratch();
    let line = "--rw randwrite --bs 64k --size 8m --loops 1 --directory d --verify \
                --inject eio=30%,seed=3 --format json";
    let run = bench(dir.path(), line).exits(1);
    let record = run.json();
    let (_, job) = jobs(&record)[0];
    let found = &job["verify"];
    let failed = n(&found["failed"]);
    assert!(failed > 0 && n(&found["injected"]["eio"]) == failed, "{found}");
    assert_eq!(n(&job["file_leg"]["injected"]["eio"]), n(&job["failed"]));
    let kinds = found["failures"].as_array().unwrap();
    assert_eq!(kinds.iter().map(|kind| n(&kind["times"])).sum::<u64>(), failed);
    assert!(kinds.iter().all(|kind| kind["what"].as_str().unwrap().contains("gpuio injects")));
    let warned = record["warnings"].as_array().unwrap();
    let injected = warned.iter().find(|one| one["warning"] == "faults_injected").unwrap();
    assert_eq!(injected["after"]["eio"], failed);
    let place = format!("{} at {}", kinds[0]["path"].as_str().unwrap(), kinds[0]["offset"]);
    assert!(run.err.contains(&place), "{run:#?}");
}

/// A lost write is found where no other reached its place; elsewhere the result says that it would
/// not be.
#[test]
fn lost_writes_are_found_or_said_to_be_hidden() {
    let run = |loops: u32, code| {
        let dir = scratch();
        let line = format!(
            "--rw randwrite --bs 64k --size 4m --loops {loops} --directory d --verify \
             --inject lost=5%,seed=3"
        );
        let text = bench(dir.path(), &line).exits(code).out;
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert!(run(1, 1).contains("BAD BLOCKS"), "found");
    let hidden = "8.00 MiB more were written over the same bytes: one of these writes that was \
                  lost is not seen";
    let text = run(3, 0);
    assert!(text.contains(hidden), "{text}");
}

/// A fault that was asked for and never came is said.
#[test]
fn faults_that_did_not_occur() {
    let (_, job, record) = one("--rw read --bs 64k --size 1m --loops 1 --directory d \
         --inject eio=0.000001%,short=0.000001%,stall=1s@1h,delay=1us");
    let found = record["warnings"].as_array().unwrap();
    let injected = found.iter().find(|one| one["warning"] == "faults_injected").unwrap();
    assert_eq!(injected["missing"], serde_json::json!(["eio", "short", "stall"]), "{injected}");
    assert!(n(&job["file_leg"]["injected"]["delay"]) > 0);
}
