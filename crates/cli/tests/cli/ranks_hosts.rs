//! Ranks on two hosts: namespaces give half of the ranks another host name and a clock that is
//! 1000 s ahead (unshare(1), time_namespaces(7), Linux 5.6), or a network of their own with one
//! cable between the two (ip-netns(8), veth(4)). They need root; without them the tests are
//! reported as SKIPPED.

use std::path::Path;
use std::process::{Child, Command};

use crate::layouts::bad_ranks;
use crate::ranks::{
    Mpi, Ran, first, has_own_results, installed, journals, process_of, record, runs,
};
use crate::tool::{GPUIO, command, plain, scratch, until, with_variables_of};

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
    let made = plain("unshare").args(probe).output();
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
        // The other host's second rank reads the bytes that rank 1 wrote.
        let path = dir.path().join("d/gpuio.shared");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[(256 << 10) + 5] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        on_two_hosts(mpi, dir.path(), &format!("{read} -o bad.json")).exits(1);
        assert_eq!(bad_ranks(&record(dir.path(), "bad.json")), [3]);
    }
}

/// Each rank of the other host mounts the directory for itself, by a file system in user space: the
/// same files with another device number at each mount, and a page cache of their own. Locks are
/// passed on, as by NFS.
const MOUNTS: &str = r#"rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}
    [ "$rank" -lt 2 ] && exec unshare -m sh -c 'mount --bind real seen && exec "$@"' sh "$@"
    exec unshare -u -m sh -c 'hostname other
        bindfs --multithreaded --enable-lock-forwarding real seen && "$@"
        code=$?
        umount seen
        exit $code' sh "$@""#;

#[test]
fn files_are_known_on_hosts_that_mount_them_by_themselves() {
    let probe = "mkdir -p real seen && unshare -m sh -c \
        'bindfs --multithreaded --enable-lock-forwarding real seen && umount seen'";
    for mpi in first() {
        let dir = scratch();
        let probe = plain("sh").current_dir(dir.path()).args(["-c", probe]).output();
        if !probe.is_ok_and(|output| output.status.success()) {
            println!("SKIPPED: bindfs mounts nothing here");
            return;
        }
        let run = |line: &str, code: i32| {
            let mut ranks = mpi.ranks(dir.path(), 4);
            ranks.args(["sh", "-c", MOUNTS, "sh", GPUIO, "bench", "-q", "--directory", "seen"]);
            let common = "--layout segmented --bs 64k --size 256k --wear-out --verify";
            ranks.args(common.split(' ')).args(line.split(' '));
            Ran::from(ranks.output().unwrap()).exits(code);
        };
        run("--rw write -o w.json", 0);
        run("--rw read --read-shift node -o r.json", 0);
        assert_eq!(record(dir.path(), "r.json")["jobs"][0]["read"]["bytes"], 1 << 20);
        // Mounted anew it is still gpuio's to write.
        run("--rw write -o again.json", 0);
        // One byte that a user changed: not any more.
        let path = dir.path().join("real/gpuio.shared");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[(512 << 10) + 5] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        run("--rw read --read-shift node -o bad.json", 1);
        assert_eq!(bad_ranks(&record(dir.path(), "bad.json")), [0], "who reads rank 2's part");
        run("--rw write -o no.json", 2);
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
    }
}

/// Two network namespaces as two hosts. `lo` has all addresses of its host, so that messages
/// between the processes of one host arrive without the cable.
struct TwoHosts {
    names: [String; 2],
}

const NETWORK: &str = r#"set -e
    ip netns add $A
    ip netns add $B
    ip link add v netns $A type veth peer name v netns $B
    host() {
        ip -n $1 link set lo up
        ip -n $1 addr add 10.77.1.$2/32 dev lo
        ip -n $1 addr add 10.77.0.$2/32 dev lo
        ip -n $1 addr add 10.77.0.$2/24 dev v
        ip -n $1 link set v up
        ip -n $1 route add 10.77.1.$3/32 via 10.77.0.$3 dev v src 10.77.1.$2
    }
    host $A 1 2
    host $B 2 1"#;

/// Starts a command on one of the hosts, as `ssh` does: for the launchers.
const AGENT: &str = r#"#!/bin/sh
[ "$1" = -x ] && shift
case $1 in 10.77.1.1) host=$A ;; *) host=$B ;; esac
shift
exec ip netns exec $host unshare -u sh -c 'hostname "$0" && eval "$@"' $host "$@"
"#;

impl TwoHosts {
    fn new(name: &str) -> Option<TwoHosts> {
        let names = ["a", "b"].map(|host| format!("gpuio-{name}-{}-{host}", std::process::id()));
        let hosts = TwoHosts { names };
        let made = hosts.command("sh").args(["-c", NETWORK]).output();
        let why = match made {
            Ok(output) if output.status.success() => return Some(hosts),
            Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            Err(error) => error.to_string(),
        };
        println!("SKIPPED: no network namespaces with a veth here: {why}");
        None
    }

    fn command(&self, program: &str) -> Command {
        let mut command = plain(program);
        command.env("A", &self.names[0]).env("B", &self.names[1]);
        command
    }

    /// Four ranks, two on each host, with the environment of [`command`].
    fn ranks(&self, mpi: &Mpi, dir: &Path) -> Command {
        let agent = dir.join("agent");
        std::fs::write(&agent, AGENT).unwrap();
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&agent, executable).unwrap();
        let agent = agent.to_str().unwrap();
        // By its own name, so that ranks 0 and 1 are its own children.
        let own_name = format!("{}:2,10.77.1.2:2", self.names[0]);
        let own: &[&str] = match mpi.mpirun {
            "mpirun.mpich" => &[
                "-disable-auto-cleanup",
                "-localhost",
                "10.77.1.1",
                "-launcher",
                "ssh",
                "-launcher-exec",
                agent,
                "-hosts",
                "10.77.1.1,10.77.1.2",
                "-ppn",
                "2",
            ],
            _ => &[
                "--mca",
                "plm_rsh_agent",
                agent,
                "--mca",
                "pml",
                "ob1",
                "--mca",
                "btl",
                "vader,tcp,self",
                "--mca",
                "btl_tcp_if_include",
                "v",
                "--host",
                &own_name,
            ],
        };
        let mut ranks = self.command("ip");
        ranks.current_dir(dir).args(["netns", "exec", &self.names[0], "unshare", "-u", "sh", "-c"]);
        ranks.args(["hostname \"$0\" && exec \"$@\"", &self.names[0]]);
        // The two hosts are one machine: MPICH would pass messages through its memory.
        ranks.env("UCX_TLS", "tcp,self").env("UCX_NET_DEVICES", "v").env("MPIR_CVAR_NOLOCAL", "1");
        with_variables_of(&mut ranks, &command(dir));
        // MPI's sockets lie there, whose paths must be short.
        ranks.env_remove("TMPDIR");
        // MPICH's launcher (4.0) writes to its half on the other host though that has ended: once
        // in 15 runs on a busy machine. This way it fails, and does not die.
        gpuio_testkit::programs::outlives_broken_pipes(&mut ranks);
        ranks.arg(mpi.mpirun).args(mpi.flags).args(own).args(["-n", "4", GPUIO]);
        ranks
    }

    /// Takes the cable away.
    fn cut(&self) {
        let cut = plain("ip").args(["-n", &self.names[0], "link", "del", "v"]).status();
        assert!(cut.unwrap().success());
    }

    /// Ends what still runs on the two hosts.
    fn clear(&self) {
        for name in &self.names {
            let Ok(found) = plain("ip").args(["netns", "pids", name]).output() else {
                return;
            };
            let pids = String::from_utf8_lossy(&found.stdout).into_owned();
            if !pids.trim().is_empty() {
                let _ = plain("kill").arg("-KILL").args(pids.split_whitespace()).output();
            }
        }
    }
}

impl Drop for TwoHosts {
    fn drop(&mut self) {
        self.clear();
        for name in &self.names {
            let _ = plain("ip").args(["netns", "del", name]).output();
        }
    }
}

#[test]
fn ranks_meet_over_a_network() {
    let Some(hosts) = TwoHosts::new("meet") else { return };
    for mpi in installed() {
        let dir = scratch();
        let line = "bench --gpu software --path staged --rw write --bs 64k --size 256k --wear-out \
                    --verify --directory d{rank} -q -o r.json";
        let run = || hosts.ranks(mpi, dir.path()).args(line.split_whitespace()).output().unwrap();
        // MPICH's launcher fails, or dies, where its half on the other host has ended before it
        // writes to that. The ranks have nothing to do with it, so another try is one of them.
        let by_launcher = |ran: &std::process::Output| {
            String::from_utf8_lossy(&ran.stderr).contains("HYDU_sock_write")
        };
        let ran = std::iter::repeat_with(run).take(5).find(|ran| !by_launcher(ran));
        Ran::from(ran.expect("the launcher fails each time")).exits(0);
        let record = record(dir.path(), "r.json");
        let found = record["ranks"]["hosts"].as_array().unwrap();
        for (nth, host) in found.iter().enumerate() {
            assert_eq!(host["name"], hosts.names[nth].as_str(), "{}", mpi.mpirun);
            assert_eq!(host["ranks"], serde_json::json!([2 * nth, 2 * nth + 1]));
            assert_eq!(host["bytes"], 2 * (256 << 10));
        }
        assert_eq!(found.len(), 2);
        assert_eq!(record["jobs"][0]["verify"]["bad_blocks"], 0);
    }
}

/// Without its network a rank is silent. Rank 0 names it and has the results of its own host; the
/// ranks of the other host miss rank 0, save what they have, and end, though their launcher can't
/// be reached.
#[test]
fn a_network_that_vanishes_ends_the_run() {
    for mpi in installed() {
        let Some(hosts) = TwoHosts::new("cut") else { return };
        let dir = scratch();
        let printed = dir.path().join("printed");
        let line = "bench --rw read --bs 64k --size 1m --runtime 600 --directory d -q -o r.json \
                    --rank-timeout 2";
        let mut ranks = hosts.ranks(mpi, dir.path());
        ranks.args(line.split_whitespace()).stdout(std::process::Stdio::null());
        let mut launcher: Child =
            ranks.stderr(std::fs::File::create(&printed).unwrap()).spawn().unwrap();
        until("no journals", || journals(dir.path()).len() == 4);
        let pids: Vec<String> = (0..4).map(|rank| process_of(dir.path(), rank)).collect();
        hosts.cut();
        until("ranks still run", || !pids.iter().any(|pid| runs(pid)));
        // The launcher itself may wait for its other half.
        hosts.clear();
        launcher.wait().unwrap();
        let printed = std::fs::read_to_string(printed).unwrap();
        let named = |rank: usize| {
            let name = format!("rank {rank} (host {}, process {})", hosts.names[1], pids[rank]);
            printed.contains(&format!("error: {name} hangs: nothing was heard of it for "))
        };
        assert!(named(2) || named(3), "{}: {printed}", mpi.mpirun);
        let record = record(dir.path(), "r.json");
        assert_eq!(record["ended"], "failed");
        let rows = record["ranks"]["rows"].as_array().unwrap();
        assert_eq!(rows[1]["ended"], "interrupted");
        assert!(rows[2]["ended"].is_null() && rows[3]["ended"].is_null(), "{rows:?}");
        (0..4).for_each(|rank| has_own_results(dir.path(), rank));
    }
}
