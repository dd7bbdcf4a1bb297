//! Several ranks, with each MPI of this machine; what is not installed is reported as SKIPPED. The
//! tests look at structure, never at times.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use serde_json::Value;

use crate::tool::{GPUIO, Scratch, command, exit_code, other, plain, scratch, until, wait};

/// A launcher with the flags that it needs here.
pub(crate) struct Mpi {
    pub(crate) mpirun: &'static str,
    pub(crate) flags: &'static [&'static str],
}

pub(crate) const ALL: [Mpi; 2] = [
    Mpi { mpirun: "mpirun.openmpi", flags: &["--oversubscribe", "--allow-run-as-root"] },
    Mpi { mpirun: "mpirun.mpich", flags: &[] },
];

impl Mpi {
    /// Ranks in `dir`, with the environment of [`command`].
    pub(crate) fn ranks(&self, dir: &Path, count: u32) -> Command {
        let mut mpirun = other(dir, self.mpirun);
        mpirun.current_dir(dir).args(self.flags).args(["-n", &count.to_string()]);
        // MPI's sockets lie there, whose paths must be short.
        mpirun.env_remove("TMPDIR");
        mpirun
    }
}

/// The launchers of this machine.
pub(crate) fn installed() -> Vec<&'static Mpi> {
    let is_there = |mpi: &&Mpi| {
        let version = plain(mpi.mpirun).arg("--version").output();
        if let Err(error) = &version {
            println!("SKIPPED: {}: {error}", mpi.mpirun);
        }
        version.is_ok()
    };
    ALL.iter().filter(is_there).collect()
}

/// The first of them: for what differs in work that gpuio does, not MPI. Each library starts ranks,
/// passes their messages and ends them in the tests that go over all.
pub(crate) fn first() -> Vec<&'static Mpi> {
    installed().into_iter().take(1).collect()
}

/// Each case with the first launcher, and the first case with each other one, by the same reason.
pub(crate) fn with_installed<T: Copy>(cases: &[T]) -> Vec<(&'static Mpi, T)> {
    let all = installed().into_iter().enumerate();
    let cases_of = |nth| if nth == 0 { cases } else { &cases[..1] };
    all.flat_map(|(nth, mpi)| cases_of(nth).iter().map(move |case| (mpi, *case))).collect()
}

pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl From<Output> for Ran {
    fn from(output: Output) -> Ran {
        let code = exit_code(output.status);
        Ran { code, out: text(&output.stdout), err: text(&output.stderr) }
    }
}

impl Ran {
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Ran {
        assert_eq!(self.code, code, "{}\n{}", self.out, self.err);
        self
    }
}

pub(crate) fn run(mpi: &Mpi, dir: &Path, words: &[&str]) -> Ran {
    let output = mpi.ranks(dir, 4).arg(GPUIO).args(words).output().unwrap();
    Ran::from(output)
}

pub(crate) const SMALL: [&str; 10] =
    ["bench", "--rw", "read", "--bs", "64k", "--size", "1M", "--io-size", "8M", "-q"];

pub(crate) fn small<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&SMALL[..], more].concat()
}

pub(crate) fn record(dir: &Path, name: &str) -> Value {
    let text = std::fs::read_to_string(dir.join(name)).unwrap();
    serde_json::from_str(&text).unwrap()
}

pub(crate) fn journals(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let is_journal = |path: &PathBuf| path.to_string_lossy().ends_with(".gpuio-journal.json");
    let mut found: Vec<PathBuf> = entries.filter(is_journal).collect();
    found.sort();
    found
}

#[test]
fn four_ranks_make_one_record() {
    for mpi in installed() {
        let dir = scratch();
        let words = small(&["--gpu", "software", "--verify", "--directory", "d", "-o", "r.json"]);
        run(mpi, dir.path(), &words).exits(0);
        let record = record(dir.path(), "r.json");
        let ranks = &record["ranks"];
        assert_eq!(ranks["ranks"], 4);
        assert_eq!(ranks["hosts"].as_array().unwrap().len(), 1);
        let rows = ranks["rows"].as_array().unwrap();
        let numbers: Vec<_> = rows.iter().map(|row| row["rank"].as_u64().unwrap()).collect();
        assert_eq!(numbers, [0, 1, 2, 3]);
        // Each rank moved what was requested, in the files of its own.
        let job = &record["jobs"][0];
        assert_eq!(job["read"]["bytes"], 4 * (8 << 20));
        assert_eq!(job["read"]["ios"], 4 * 128);
        let latency = &job["read"]["latency"]["total"];
        let counted: u64 =
            latency["buckets"].as_array().unwrap().iter().map(|b| b[1].as_u64().unwrap()).sum();
        assert_eq!(counted, 4 * 128, "histograms are added");
        assert_eq!(job["verify"]["bad_blocks"], 0);
        assert_eq!(job["verify"]["pass_bytes"], 4 << 20);
        for n in 0..4 {
            assert!(dir.path().join(format!("d/gpuio.{n}")).is_file(), "file {n}");
        }
        let group = &ranks["groups"][0]["jobs"][0];
        assert_eq!(group["until_last"]["bytes"], 4 * (8 << 20));
        let series = job["series"].as_array().unwrap();
        let sum: u64 = series.iter().map(|point| point["read_bytes"].as_u64().unwrap()).sum();
        assert_eq!(sum, 4 * (8 << 20), "the series has all bytes");
        // The expected rate of all ranks together, and of the host; a software GPU has no figures.
        let expected = [&record["expected"][0], &ranks["hosts"][0]["expected"][0]];
        for one in expected {
            assert_eq!(one["job"], "job");
            assert!(one["unknown"].as_str().unwrap().contains("software GPU"), "{one}");
        }
        assert_eq!(journals(dir.path()), [] as [PathBuf; 0], "the merged record has it all");
    }
}

#[test]
fn only_rank_0_prints_and_show_prints_it_again() {
    for mpi in first() {
        let dir = scratch();
        let mut words = small(&["--directory", "d", "-o", "r.json", "--per-rank", "-v"]);
        words.retain(|word| *word != "-q");
        let ran = run(mpi, dir.path(), &words).exits(0);
        assert_eq!(ran.out.matches("\nranks: ").count(), 1, "{}", ran.out);
        assert!(ran.out.contains("ranks:   4 on host "), "{}", ran.out);
        assert!(ran.out.contains("until first done"), "{}", ran.out);
        let show = |more: &[&str]| {
            let words = [&["show", "r.json"], more].concat();
            Ran::from(command(dir.path()).args(words).output().unwrap()).exits(0).out
        };
        let all = show(&["--per-rank", "-v"]);
        let record = ran.out.split("\nRecord: ").next().unwrap();
        assert_eq!(all.trim_end(), record.trim_end());
        let rows = |text: &str| text.lines().filter(|line| line.contains(" ± ")).count();
        assert_eq!(rows(&all), rows(&show(&["-v"])) + 4, "a row for each rank, on demand");
        let evidence = show(&["--evidence"]);
        assert!(evidence.contains("each rank judged by its own readings"), "{evidence}");
        assert!(evidence.contains(" (readings of rank "), "{evidence}");
        assert!(evidence.contains("counted of expected"), "the readings are there: {evidence}");
    }
}

#[test]
fn names_have_the_rank_and_the_table_comes_before_the_run() {
    for mpi in installed() {
        let dir = scratch();
        let words = small(&["--directory", "d{rank}-{local_rank}", "--dry-run"]);
        let ran = run(mpi, dir.path(), &words).exits(0);
        for n in 0..4 {
            assert!(ran.out.contains(&format!(" d{n}-{n} ")), "{}", ran.out);
        }
        assert_eq!(ran.out.matches("[job]").count(), 1, "the plan of rank 0");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is made");
        run(mpi, dir.path(), &small(&["--directory", "d{rank}", "--filename", "x"])).exits(2);
    }
}

/// A job file as `gpuio plan --hosts` writes it: each rank takes its own place.
#[test]
fn ranks_take_their_places() {
    for mpi in first() {
        let dir = scratch();
        let place = |rank: u32| {
            std::fs::create_dir(dir.path().join(format!("m{rank}"))).unwrap();
            format!("[place *,other/{rank}]\ngpu=software:{rank}\ndirectory=m{rank}\n")
        };
        let jobs = "[read]\nrw=read\nbs=64k\nsize=1m\nio_size=8m\nthreads=1\npath=staged\n";
        let file = jobs.to_owned() + &(0..4).map(place).collect::<String>();
        std::fs::write(dir.path().join("jobs.ini"), file).unwrap();
        let ranks = |words: &[&str]| {
            let mut mpirun = mpi.ranks(dir.path(), 4);
            let output = mpirun.env("GPUIO_SOFT_GPUS", "4").arg(GPUIO).args(words).output();
            Ran::from(output.unwrap())
        };
        let planned = ranks(&["bench", "jobs.ini", "--dry-run"]).exits(0);
        for rank in 0..4 {
            let words = [format!(" m{rank} "), format!(" {rank} ")];
            let line = planned.out.lines().find(|line| line.contains(&words[0]));
            assert!(line.is_some_and(|line| line.contains(&words[1])), "{}", planned.out);
        }
        ranks(&["bench", "jobs.ini", "-q", "-o", "r.json"]).exits(0);
        let rows = record(dir.path(), "r.json")["ranks"]["rows"].clone();
        let targets: Vec<_> = rows.as_array().unwrap().iter().map(|row| &row["target"]).collect();
        assert_eq!(targets, ["m0", "m1", "m2", "m3"]);
        // A fifth rank on this host has no place.
        let mut mpirun = mpi.ranks(dir.path(), 5);
        mpirun.env("GPUIO_SOFT_GPUS", "5").arg(GPUIO).args(["bench", "jobs.ini", "--dry-run"]);
        let ran = Ran::from(mpirun.output().unwrap()).exits(2);
        assert!(ran.err.contains("no [place] is for host"), "{}", ran.err);
    }
}

/// The first rank of each host reads its machine; rank 0 checks all and prints once.
#[test]
fn a_check_is_of_each_host_once() {
    for mpi in first() {
        let dir = scratch();
        let ran = run(mpi, dir.path(), &["check", "--only", "io-uring", "--format", "json"]);
        assert!([0, 1].contains(&ran.code), "{}\n{}", ran.out, ran.err);
        let page: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(page["schema"], "gpuio-check-hosts-v1");
        assert_eq!(page["hosts"].as_array().unwrap().len(), 1, "four ranks of one host");
        assert_eq!(page["differences"], serde_json::json!([]));
        assert_eq!(page["findings"][0]["rule"], "io-uring");
    }
}

#[test]
fn scratch_is_of_each_rank_and_goes() {
    for mpi in first() {
        let dir = scratch();
        run(mpi, dir.path(), &small(&["--verify"])).exits(0);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}

#[test]
fn a_file_that_two_ranks_would_write_is_refused() {
    for mpi in first() {
        let dir = scratch();
        let words = ["bench", "--rw", "write", "--bs", "64k", "--size", "1M", "--filename", "one"];
        let ran = run(mpi, dir.path(), &words).exits(2);
        assert!(ran.err.contains("would both use the same bytes of one, and write"), "{}", ran.err);
        assert_eq!(ran.err.matches("error: ").count(), 1, "{}", ran.err);
        assert!(!dir.path().join("one").exists());
    }
}

#[test]
fn one_file_is_read_by_all_ranks_only_if_that_is_meant() {
    for mpi in first() {
        let dir = scratch();
        std::fs::write(dir.path().join("one"), vec![7; 1 << 20]).unwrap();
        let words = small(&["--filename", "one", "-o", "r.json"]);
        let ran = run(mpi, dir.path(), &words).exits(2);
        assert!(ran.err.contains("would read the same bytes of one"), "{}", ran.err);
        run(mpi, dir.path(), &[&words[..], &["--share", "file"]].concat()).exits(0);
        assert_eq!(record(dir.path(), "r.json")["jobs"][0]["read"]["bytes"], 4 * (8 << 20));
        let ran = run(mpi, dir.path(), &small(&["--share", "all"])).exits(2);
        assert!(ran.err.contains("--share all: ranks may share gpu or file"), "{}", ran.err);
    }
}

#[test]
fn a_rank_that_can_not_open_sends_all_back_with_its_reason() {
    for mpi in installed() {
        let dir = scratch();
        // The name of rank 2's parent directory is taken by a file.
        std::fs::write(dir.path().join("p2"), "").unwrap();
        for rank in [0, 1, 3] {
            std::fs::create_dir(dir.path().join(format!("p{rank}"))).unwrap();
        }
        let words = small(&["--directory", "p{rank}/d", "-o", "r.json"]);
        let ran = run(mpi, dir.path(), &words);
        assert_ne!(ran.code, 0);
        assert!(ran.err.contains("error: rank 2 (host "), "{}", ran.err);
        assert!(ran.err.contains("p2/d/gpuio.2"), "{}", ran.err);
        assert!(!dir.path().join("r.json").exists());
        assert_eq!(journals(dir.path()), [] as [PathBuf; 0], "nothing ran");
    }
}

#[test]
fn what_ranks_can_not_do_together_is_refused() {
    for mpi in first() {
        let dir = scratch();
        let words = ["bench", "--rw", "read", "--size", "1M", "--ceilings"];
        let ran = run(mpi, dir.path(), &words).exits(2);
        assert!(ran.err.contains("--ceilings does not run on several ranks: "), "{}", ran.err);
    }
}

#[test]
fn different_plans_are_refused() {
    for mpi in first() {
        let dir = scratch();
        let words = small(&["--directory", "d", "--depth", "{rank}1"]);
        let ran = run(mpi, dir.path(), &words).exits(2);
        assert!(ran.err.contains("has another plan than rank 0"), "{}", ran.err);
        assert!(ran.err.contains("depth is 11 instead of 1"), "{}", ran.err);
    }
}

#[test]
fn without_a_library_the_error_names_what_was_looked_for() {
    let dir = scratch();
    let mut gpuio = command(dir.path());
    gpuio.args(small(&[])).env("OMPI_COMM_WORLD_RANK", "0").env("OMPI_COMM_WORLD_SIZE", "2");
    let ran = Ran::from(gpuio.env("GPUIO_MPI", "libgpuio-none.so.1").output().unwrap()).exits(3);
    assert!(ran.err.contains("looked for libgpuio-none.so.1"), "{}", ran.err);
    let ran = Ran::from(gpuio.env("GPUIO_MPI", "off").output().unwrap()).exits(0);
    assert_eq!(ran.err, "", "each process for itself");
}

#[test]
fn flags_of_ranks_need_ranks() {
    let dir = scratch();
    for flag in [&["--per-rank"][..], &["--share", "gpu"], &["--rank-timeout", "5"]] {
        let ran = Ran::from(command(dir.path()).args(small(flag)).output().unwrap()).exits(2);
        assert!(ran.err.contains("it has no effect here: one process runs"), "{}", ran.err);
    }
}

/// A run of minutes, once all its ranks have saved their first results: it is meant to end early.
fn begun(mpi: &Mpi, dir: &Path, more: &[&str]) -> std::process::Child {
    let mut ranks = mpi.ranks(dir, 4);
    ranks.arg(GPUIO).args(["bench", "--rw", "read", "--bs", "64k", "--size", "1M"]);
    ranks.args(["--runtime", "600", "--directory", "d", "-o", "r.json"]).args(more);
    let mut child = ranks.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("no journals", || {
        let ended = child.try_wait().unwrap();
        assert_eq!(
            ended,
            None,
            "{}",
            std::io::read_to_string(child.stderr.take().unwrap()).unwrap()
        );
        journals(dir).len() >= 4
    });
    child
}

/// The process of a rank, by its journal.
pub(crate) fn process_of(dir: &Path, rank: u32) -> String {
    let journals = journals(dir);
    let path =
        journals.iter().find(|path| path.to_string_lossy().contains(&format!("-rank{rank}-")));
    let record: Value = serde_json::from_slice(&std::fs::read(path.unwrap()).unwrap()).unwrap();
    assert_eq!(record["rank"]["rank"], rank);
    record["rank"]["pid"].to_string()
}

pub(crate) fn runs(pid: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:") && !line.contains('Z'))
}

/// Sends a signal to rank 2 and waits for the end of the run; the journals of the others can be
/// shown, and nothing runs any more.
fn end_by(mpi: &Mpi, signal: &str, more: &[&str]) -> (Ran, Scratch) {
    let dir = scratch();
    let child = begun(mpi, dir.path(), more);
    let pids: Vec<String> = (0..4).map(|rank| process_of(dir.path(), rank)).collect();
    let sent = plain("kill").args([signal, &pids[2]]).status().unwrap();
    assert!(sent.success());
    // Open MPI's launcher may wait for ever, though all its ranks have ended.
    let crate::tool::Ran { code, out, err, .. } = wait(child, Instant::now());
    let ran = Ran { code, out, err };
    assert_ne!(ran.code, 0, "{}", ran.err);
    until(&format!("{pids:?} still run"), || !pids.iter().any(|pid| runs(pid)));
    for rank in [0, 1, 3] {
        has_own_results(dir.path(), rank);
    }
    (ran, dir)
}

/// Checks that what a rank of four had done so far can be shown.
pub(crate) fn has_own_results(dir: &Path, rank: u32) {
    let names = journals(dir);
    let name = names.iter().find(|n| n.to_string_lossy().contains(&format!("-rank{rank}-")));
    let shown = command(dir).arg("show").arg(name.unwrap()).output().unwrap();
    let shown = Ran::from(shown).exits(0).out;
    assert!(shown.contains(&format!("rank {rank} of 4 alone")), "{shown}");
    assert!(shown.contains("(partial)"), "{shown}");
}

/// MPICH's launcher ends all ranks within milliseconds, before one can print, unless it is set
/// not to. Also then it does so now and then, where the processors are busy.
const KEPT_MPICH: Mpi = Mpi { mpirun: "mpirun.mpich", flags: &["-disable-auto-cleanup"] };

#[test]
fn a_rank_that_is_killed_ends_the_run_and_is_named() {
    for mpi in installed() {
        let is_mpich = mpi.mpirun == KEPT_MPICH.mpirun;
        if is_mpich {
            end_by(mpi, "-KILL", &[]);
        }
        let mpi = if is_mpich { &KEPT_MPICH } else { mpi };
        let is_named = || {
            let (ran, _dir) = end_by(mpi, "-KILL", &[]);
            let is_named = ran.err.contains("error: rank 2 (host ") && ran.err.contains(") died");
            assert!(is_named || is_mpich, "{}", ran.err);
            is_named
        };
        assert!((0..10).any(|_| is_named()), "{}", mpi.mpirun);
    }
}

#[test]
fn a_rank_that_hangs_ends_the_run_and_is_named() {
    for mpi in installed() {
        let (ran, dir) = end_by(mpi, "-STOP", &["--rank-timeout", "45"]);
        assert!(ran.err.contains("error: rank 2 (host "), "{}", ran.err);
        let (_, silence) = ran.err.split_once("hangs: nothing was heard of it for ").unwrap();
        let seconds: u32 = silence.split(' ').next().unwrap().parse().unwrap();
        assert!(seconds >= 10, "{}", ran.err);
        // Rank 0 had the time to merge what the others have.
        let record = record(dir.path(), "r.json");
        assert_eq!(record["ended"], "failed");
        let rows = record["ranks"]["rows"].as_array().unwrap();
        assert_eq!(rows[2]["ended"], Value::Null);
        assert_eq!(rows[3]["ended"], "interrupted");
        assert!(record["jobs"][0]["read"]["bytes"].as_u64().unwrap() > 0);
    }
}
