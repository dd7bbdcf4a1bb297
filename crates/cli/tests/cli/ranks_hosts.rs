//! Ranks on two hosts: namespaces give half of the ranks another host name and a clock that is
//! 1000 s ahead (unshare(1), time_namespaces(7), Linux 5.6). They need root; without them the test
//! is reported as SKIPPED.

use std::path::Path;
use std::process::Command;

use crate::layouts::bad_ranks;
use crate::ranks::{Mpi, Ran, installed, record};
use crate::tool::{GPUIO, scratch};

const AHEAD_NS: u64 = 1_000_000_000_000;

/// Starts a program: ranks 2 and above on the other host.
const SCRIPT: &str = "rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}
    [ \"$rank\" -lt 2 ] && exec \"$@\"
    exec unshare -u -T --monotonic 1000 --fork sh -c 'hostname other && exec \"$@\"' sh \"$@\"";

fn on_two_hosts(mpi: &Mpi, dir: &Path, words: &str) -> Ran {
    let mut ranks = mpi.ranks(dir, 4);
    ranks.args(["sh", "-c", SCRIPT, "sh", GPUIO, "bench", "-q"]).args(words.split(' '));
    Ran::from(ranks.output().unwrap())
}

fn has_namespaces() -> bool {
    let probe = ["-u", "-T", "--monotonic", "1000", "--fork", "hostname", "other"];
    let made = Command::new("unshare").args(probe).output();
    let works = made.is_ok_and(|output| output.status.success());
    if !works {
        println!("SKIPPED: unshare(1) makes no host name and time namespaces here");
    }
    works
}

#[test]
fn clocks_differ_and_a_host_reads_what_the_other_wrote() {
    if !has_namespaces() {
        return;
    }
    for mpi in installed() {
        let dir = scratch();
        let line = "--layout segmented --bs 64k --size 256k --wear-out --directory d --verify";
        on_two_hosts(mpi, dir.path(), &format!("{line} --rw write -o w.json")).exits(0);
        let read = format!("{line} --rw read --read-shift node");
        on_two_hosts(mpi, dir.path(), &format!("{read} -o r.json")).exits(0);
        for name in ["w.json", "r.json"] {
            let record = record(dir.path(), name);
            let ranks = &record["ranks"];
            let hosts = ranks["hosts"].as_array().unwrap();
            assert_eq!(hosts.len(), 2, "{hosts:?}");
            assert_eq!(hosts[1]["name"], "other");
            for row in ranks["rows"].as_array().unwrap() {
                let ahead = if row["rank"].as_u64().unwrap() < 2 { 0 } else { AHEAD_NS };
                let offset = row["clock_offset_ns"].as_i64().unwrap();
                let bound = row["clock_bound_ns"].as_u64().unwrap();
                let wrong = offset.abs_diff(i64::try_from(ahead).unwrap());
                assert!(wrong <= bound, "{offset} ± {bound} of {ahead}, {}", mpi.mpirun);
            }
            let skew = ranks["groups"][0]["start_skew_ns"].as_u64().unwrap();
            assert!(skew < AHEAD_NS / 10, "all began at one time: {skew}");
        }
        // What rank 1 wrote is read by the other host's second rank.
        let path = dir.path().join("d/gpuio.shared");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[(256 << 10) + 5] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        on_two_hosts(mpi, dir.path(), &format!("{read} -o bad.json")).exits(1);
        assert_eq!(bad_ranks(&record(dir.path(), "bad.json")), [3]);
    }
}
