//! What a load does in itself: sizes, laps, times, regions, memory of its own choices.

use serde_json::Value;

use crate::in_time::{holds, in_time};
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

#[test]
fn a_time_is_kept() {
    in_time(|| {
        let line = "--rw randrw --bs 4k --size 1m --runtime 300ms --threads 2 --directory d";
        let (_, job, _) = one(line);
        let (first, last) = (n(&job["first_done_ns"]), n(&job["last_done_ns"]));
        holds(first > 200_000_000, first)?;
        holds((250_000_000..600_000_000).contains(&last), last)?;
        // A point every 100 ms.
        holds(list(&job["series"]).len() >= 2, &job["series"])
    });
}

/// A ramp moves bytes and counts none.
#[test]
fn a_ramp_does_not_count() {
    in_time(|| {
        let line = "--rw randread --bs 4k --size 1m --ramp 200ms --runtime 200ms --engine psync \
                    --directory d";
        let (plan, job, _) = one(line);
        assert_eq!(n(&plan["ramp_ns"]), 200_000_000);
        let (leg, tally) = (n(&job["file_leg"]["read_bytes"]), n(&job["read"]["bytes"]));
        holds(leg > tally + tally / 4, ("at the door", leg, "counted", tally))?;
        // Time begins with the ramp's end.
        holds(n(&job["last_done_ns"]) < 380_000_000, &job["last_done_ns"])?;
        let ends = list(&job["series"]).iter().filter_map(|point| point["at_ns"].as_i64());
        holds(ends.clone().any(|end| end < 0), "no point of the ramp in the series")
    });
}

#[test]
fn a_start_delay_waits() {
    in_time(|| {
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
        assert!(ran.took.as_millis() >= 450, "{:?}", ran.took);
        // The delay is not in the result.
        let last = n(&jobs(&record)[1].1["last_done_ns"]);
        holds((100_000_000..280_000_000).contains(&last), last)
    });
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
            "{more} --rw randrw --bs 16k --size 1m --runtime 100ms --verify=inline --directory d"
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
    assert_eq!(job["direct_got"], "buffered");
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
        assert!(warnings(&record).contains(&"faults_injected"));
    }
}
