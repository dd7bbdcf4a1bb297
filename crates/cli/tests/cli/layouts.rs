//! The data of all threads and ranks in files: one file for all, and reads of what another rank
//! wrote. With each MPI of this machine, as in `ranks`.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::ranks::{Mpi, Ran, first, with_installed};
use crate::tool::{GPUIO, bench, command, scratch, tree};

fn ranks(mpi: &Mpi, dir: &Path, count: u32, line: &str) -> Ran {
    // The record of a run before.
    let _ = std::fs::remove_file(dir.join("r.json"));
    let mut ranks: Command = mpi.ranks(dir, count);
    let words = line.split_whitespace();
    Ran::from(ranks.arg(GPUIO).arg("bench").args(words).arg("-q").output().unwrap())
}

fn record(dir: &Path, name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(dir.join(name)).unwrap()).unwrap()
}

fn bytes(dir: &Path, name: &str) -> Vec<u8> {
    std::fs::read(dir.join(name)).unwrap()
}

/// Which ranks found something wrong.
pub(crate) fn bad_ranks(record: &Value) -> Vec<u64> {
    let rows = record["ranks"]["rows"].as_array().unwrap();
    let bad = |row: &&Value| row["jobs"][0]["verified"] == false;
    rows.iter().filter(bad).map(|row| row["rank"].as_u64().unwrap()).collect()
}

const LOADS: [&str; 4] = [
    "--layout segmented --rw write --bs 64k --size 256k",
    "--layout segmented --rw randwrite --bs 16k --size 256k",
    "--layout strided --rw write --bs 64k --size 256k",
    // The transfers of IO500's ior-hard.
    "--layout strided --rw write --bs 47008 --size 470080 --buffered",
];

#[test]
fn ranks_leave_the_file_that_threads_of_one_process_leave() {
    for (mpi, load) in with_installed(&LOADS) {
        let dir = scratch();
        // Which rank a thread is of has nothing to do with the load.
        let shares = if load == LOADS[0] { &[(4, 1), (2, 2)][..] } else { &[(4, 1)] };
        let load = format!("{load} --wear-out --verify --path staged --gpu software");
        bench(dir.path(), &format!("{load} --threads 4 --directory one")).exits(0);
        let expected = bytes(dir.path(), "one/gpuio.shared");
        for &(count, threads) in shares {
            let line = format!("{load} --threads {threads} --directory r{count} -o r{count}.json");
            ranks(mpi, dir.path(), count, &line).exits(0);
            let found = bytes(dir.path(), &format!("r{count}/gpuio.shared"));
            assert!(found == expected, "{load}, {count} ranks: other bytes");
            let record = record(dir.path(), &format!("r{count}.json"));
            let job = &record["jobs"][0];
            assert_eq!(job["write"]["bytes"], expected.len());
            assert_eq!(job["verify"]["bad_blocks"], 0);
            assert_eq!(record["ranks"]["groups"][0]["jobs"][0]["ends_by"], "wear_out");
        }
        // The file is known to be gpuio's, with its pattern, by one process too.
        let name = "--filename r4/gpuio.shared --rw read --verify --io-size 256k";
        let again = bench(dir.path(), &format!("{name} --format json --buffered")).exits(0);
        assert_eq!(again.json()["jobs"][0]["verify"]["bad_blocks"], 0);
        let again = bench(dir.path(), &format!("{name} --dry-run --buffered")).exits(0);
        assert!(again.out.contains("created by gpuio, used as it is"), "{}", again.out);
    }
}

#[test]
fn a_file_for_a_load_with_a_time_is_laid_out_by_all_ranks() {
    for mpi in first() {
        let dir = scratch();
        let line = "--layout segmented --rw randrw --bs 16k --size 1m --runtime 0.2 --verify \
                    --directory d -o r.json";
        ranks(mpi, dir.path(), 4, line).exits(0);
        let record = record(dir.path(), "r.json");
        assert_eq!(record["setup"]["laid_out_bytes"], 4 << 20);
        assert_eq!(record["jobs"][0]["verify"]["bad_blocks"], 0);
        assert_eq!(record["ranks"]["groups"][0]["jobs"][0]["ends_by"], "stonewall");
        // A file laid out before is used again if it is long enough.
        let read = line.replace("randrw", "randread");
        ranks(mpi, dir.path(), 2, &read.replace("--size 1m", "--size 2m")).exits(0);
        let again = self::record(dir.path(), "r.json");
        assert_eq!(again["setup"]["laid_out_bytes"], 0);
        ranks(mpi, dir.path(), 4, &read.replace("--size 1m", "--size 2m")).exits(0);
        let longer = self::record(dir.path(), "r.json");
        assert_eq!(longer["setup"]["laid_out_bytes"], 4 << 20, "only what was missing");
    }
}

/// As IOR's stonewall with wear-out: after the time each thread goes on to what the fastest had
/// begun by then.
#[test]
fn after_a_stonewall_all_ranks_wear_out() {
    let check = |record: &Value| {
        let job = &record["jobs"][0];
        let (wall, read) = (&job["stonewall"], &job["read"]["bytes"]);
        assert!(wall["time_ns"].as_u64().unwrap() >= 300_000_000, "{wall}");
        let goal = wall["bytes_per_thread"].as_u64().unwrap();
        let (at_wall, all) = (wall["bytes"].as_u64().unwrap(), read.as_u64().unwrap());
        assert!(at_wall <= all && all >= 4 * goal, "{wall}, {all} in all");
        let workers = job["workers"].as_array().unwrap();
        assert_eq!(workers.len(), 4);
        for worker in workers {
            assert!(worker["bytes"].as_u64().unwrap() >= goal, "{worker} of {goal}");
        }
    };
    let dir = scratch();
    // One block of the four is 15 times as large as the others.
    let line = "--rw read --bssplit 4k/75:60k/25 --buffered --runtime 0.3 --wear-out --size 1m \
                --directory d -o r.json";
    let ran = bench(dir.path(), &format!("{line} --threads 4")).exits(0);
    assert!(ran.out.contains("stonewall and wear-out:"), "{}", ran.out);
    check(&record(dir.path(), "r.json"));
    for mpi in first() {
        ranks(mpi, dir.path(), 4, line).exits(0);
        let record = record(dir.path(), "r.json");
        check(&record);
        let job = &record["ranks"]["groups"][0]["jobs"][0];
        assert_eq!(job["ends_by"], "stonewall_wear_out");
    }
}

#[test]
fn a_shift_reads_and_verifies_what_another_rank_wrote() {
    let layouts = [("segmented", 300_000), ("strided", 70_000), ("file-per-thread", 5000)];
    let cases = first().into_iter().flat_map(|mpi| layouts.map(|layout| (mpi, layout)));
    for (mpi, (layout, second)) in cases {
        let dir = scratch();
        let line = format!(
            "--layout {layout} --bs 64k --size 256k --wear-out --directory d --verify -o r.json"
        );
        ranks(mpi, dir.path(), 4, &format!("{line} --rw write")).exits(0);
        let read = format!("{line} --rw read --read-shift");
        // One byte that rank 1 wrote is wrong: the rank that reads it is to see that.
        let name = if layout == "file-per-thread" { "d/gpuio.1" } else { "d/gpuio.shared" };
        let mut all = bytes(dir.path(), name);
        all[second] ^= 1;
        std::fs::write(dir.path().join(name), all).unwrap();
        let bad = |read: &str| {
            ranks(mpi, dir.path(), 4, read).exits(1);
            bad_ranks(&record(dir.path(), "r.json"))
        };
        assert_eq!(bad(&format!("{read} 2")), [3], "{layout}");
        // How far the shift is, and what is where in a file, have nothing to do with each other.
        if layout == "segmented" {
            assert_eq!(bad(&format!("{read} rank")), [0]);
            assert_eq!(bad(&format!("{read} 3")), [2]);
            assert_eq!(bad(&format!("{line} --rw read")), [1], "no shift");
        }
    }
}

#[test]
fn a_job_file_writes_and_reads_back_shifted() {
    for (mpi, layout) in with_installed(&["segmented", "strided", "file-per-thread"]) {
        let dir = scratch();
        let text = format!(
            "[global]\nlayout={layout}\ndirectory=d\nbs=64k\nsize=256k\nverify\n\
                 read_shift=rank\nunlink=1\n[w]\nrw=write\nwear_out\n[r]\nstonewall\nrw=read\n\
                 wear_out\n"
        );
        std::fs::write(dir.path().join("wr.ini"), text).unwrap();
        ranks(mpi, dir.path(), 3, "wr.ini -o r.json").exits(0);
        let record = record(dir.path(), "r.json");
        assert_eq!(record["jobs"][1]["read"]["bytes"], 3 << 18);
        assert_eq!(record["jobs"][1]["verify"]["bad_blocks"], 0);
        // The rank that made the directory may end before others have removed their files.
        let names = tree(dir.path());
        assert!(!names.iter().any(|name| name.contains("gpuio.")), "all go: {names:?}");
    }
}

#[test]
fn layouts_that_ranks_can_not_have_are_refused() {
    for mpi in first() {
        let dir = scratch();
        let refused = |line: &str, part: &str| {
            let ran = ranks(mpi, dir.path(), 2, &format!("{line} --bs 64k --size 256k")).exits(2);
            assert!(ran.err.contains(part), "{line}: {}", ran.err);
        };
        refused("--rw read --directory d --read-shift node", "all ranks run on host ");
        refused("--rw read --directory d --read-shift 2", "it would read its own data");
        refused("--rw write --layout segmented", "name a location that all of them see");
        refused("--rw write --layout strided --directory d{rank}", "all ranks must share");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is made");
    }
}

#[test]
fn a_users_file_is_never_written_by_several_ranks() {
    for mpi in first() {
        let dir = scratch();
        let users = vec![7; 1 << 20];
        std::fs::write(dir.path().join("one"), &users).unwrap();
        let line = "--rw write --layout segmented --filename one --bs 64k --size 512k --wear-out";
        let ran = ranks(mpi, dir.path(), 2, line);
        assert_ne!(ran.code, 0);
        assert!(ran.err.contains("one") && ran.err.contains("--overwrite"), "{}", ran.err);
        let ran = ranks(mpi, dir.path(), 2, &format!("{line} --overwrite"));
        assert_ne!(ran.code, 0);
        assert!(ran.err.contains("several ranks write one file only if gpuio made it"));
        assert_eq!(bytes(dir.path(), "one"), users);
        // Reading it does no harm.
        let read = line.replace("write", "read");
        ranks(mpi, dir.path(), 2, &read).exits(0);
        assert_eq!(bytes(dir.path(), "one"), users);
    }
}

#[test]
fn one_process_has_layouts_too() {
    let dir = scratch();
    let line = "--layout strided --rw write --bs 4k --size 64k --threads 3 --wear-out --verify";
    bench(dir.path(), &format!("{line} --directory d")).exits(0);
    assert_eq!(bytes(dir.path(), "d/gpuio.shared").len(), 3 << 16);
    // Scratch goes.
    bench(dir.path(), line).exits(0);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    let dry = bench(dir.path(), &format!("{line} --directory d --dry-run")).exits(0);
    assert!(dry.out.contains("layout = strided"), "{}", dry.out);
    assert!(dry.out.contains("at 4K in blocks of 4K every 12K of d/gpuio.shared"), "{}", dry.out);
    let alone =
        bench(dir.path(), "--rw read --bs 4k --directory d --size 64k --read-shift rank").exits(2);
    assert!(alone.err.contains("there is no other rank whose data it could read"), "{}", alone.err);
    let both = Ran::from(
        command(dir.path())
            .args(["bench", "--rw", "read", "--wear-out", "--runtime", "3"])
            .output()
            .unwrap(),
    );
    both.exits(2);
}
