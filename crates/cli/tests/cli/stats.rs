//! `gpuio stats` and its gds_stats face, on real runs.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::tool::{GPUIO, command, counts, finish, gpuio, other, page_of, scratch, until, words};

/// A run that goes on until it is killed or taken down.
pub(crate) struct Run {
    child: Child,
    file: PathBuf,
}

impl Run {
    /// Starts it and waits until it has counted something.
    pub(crate) fn start(dir: &Path, line: &str) -> Run {
        let mut command = command(dir);
        let command = command.arg("bench").args(words(line)).stdin(Stdio::null());
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let run = Run::of(dir, child);
        until("it counts nothing", || counts(dir, run.pid()));
        run
    }

    fn of(dir: &Path, child: Child) -> Run {
        let file = page_of(dir, child.id());
        Run { child, file }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) const LOAD: &str = "--path host --engine psync --rw randread --bs 4k --size 4m \
                               --directory data --runtime 600 -q";

#[test]
fn a_killed_run_is_recognised_and_its_page_removed() {
    let dir = scratch();
    let mut run = Run::start(dir.path(), LOAD);
    let file = run.file.clone();
    assert!(file.exists());
    run.kill();
    assert!(file.exists(), "nobody took it away");
    let line = format!("stats {} --json", run.pid());
    let ran = gpuio(dir.path(), &line).exits(0).prints(&["was killed", "removed now"]);
    let page = ran.json();
    assert_eq!(page["state"], "killed");
    assert!(page["read"]["ios"].as_u64() > Some(0), "its last counters");
    assert!(!file.exists());
    gpuio(dir.path(), &line).exits(3).prints(&["publishes no statistics", "has ended"]);
}

#[test]
fn two_runs_are_distinguished_and_every_level_says_more() {
    // One scratch, whose runs see each other's pages.
    let one = scratch();
    let two = one.path().join("two");
    std::fs::create_dir(&two).unwrap();
    let first = Run::start(one.path(), LOAD);
    let mut load = LOAD.replace("--path host", "--path staged --gpu software");
    load.push_str(" --threads 2");
    let second = Run::start(&two, &load);
    let dir = one.path();

    let list = gpuio(dir, "stats --format json").exits(0).json();
    let of = |pid: u32| -> Value {
        let all = list["processes"].as_array().unwrap();
        all.iter().find(|page| page["pid"] == pid).cloned().unwrap()
    };
    assert_eq!((of(first.pid())["threads"].as_u64(), of(second.pid())["threads"].as_u64()), {
        (Some(1), Some(2))
    });
    assert!(of(second.pid())["last"]["read"]["ios"].as_u64().is_some(), "a rate of now");
    let table = gpuio(dir, "stats").exits(0).out;
    assert!(table.starts_with("PID "), "{table}");
    assert!(table.contains(&first.pid().to_string()) && table.contains("staged"), "{table}");

    let level = |n: u8| gpuio(dir, &format!("stats {} -l {n}", second.pid())).exits(0).out;
    let (totals, sizes, ways) = (level(1), level(2), level(3));
    assert!(totals.contains("p99.9") && !totals.contains("4-8(KiB)"), "{totals}");
    assert!(sizes.contains("4-8(KiB)") && !sizes.contains("registered"), "{sizes}");
    assert!(ways.contains("staged") && ways.contains("software 0"), "{ways}");
    assert!(totals.contains("the GPU is gpuio's software GPU"), "{totals}");

    let csv = gpuio(dir, "stats --format csv").exits(0).out;
    assert!(csv.starts_with("pid,user,program,since,gpus,path,throughput,"), "{csv}");
    assert!(csv.lines().any(|line| line.starts_with(&format!("{},", second.pid()))), "{csv}");
    let page = |format: &str| {
        gpuio(dir, &format!("stats {} --format {format}", second.pid())).exits(0).out
    };
    assert!(page("csv").starts_with("counter,read,write\nI/Os,"), "{}", page("csv"));
    assert!(page("markdown").contains("\n| throughput | "), "{}", page("markdown"));
    assert!(page("html").contains("<th scope=\"row\">throughput</th>"), "{}", page("html"));

    let page = gpuio(dir, &format!("stats {} --json -l 3", second.pid())).json();
    assert_eq!(page["ways"][0]["gpu"], 0);
    assert_eq!(page["ways"][0]["path"], "staged");
    let of = |name: &str| page["read"]["latency_ns"][name].as_u64();
    assert!(of("p99").is_none_or(|p99| of("p50") <= Some(p99)), "{page}");

    let line = format!("gds_stats -p {} -l 3", second.pid());
    let sections = gpuio(dir, &line).exits(0).out;
    assert!(sections.contains("GLOBAL STATS:\nTotal Files: 2\n"), "{sections}");
    assert!(sections.contains("PER_GPU STATS:\nGPU 0 Read: bw="), "{sections}");
    assert!(sections.contains("\nn/a: the GPU is gpuio's software GPU"), "{sections}");
}

#[test]
fn a_watch_ends_with_its_process() {
    let dir = scratch();
    let mut run = Run::start(dir.path(), LOAD);
    let two = format!("stats {} --interval 10ms --count 2 --format json", run.pid());
    assert_eq!(gpuio(dir.path(), &two).exits(0).out.lines().count(), 2);
    let line = format!("stats {} --watch=100ms --json", run.pid());
    let file = dir.path().join("looks");
    let mut watch = command(dir.path());
    watch.args(words(&line)).stdout(std::fs::File::create(&file).unwrap());
    let mut watch = watch.spawn().unwrap();
    let written = || std::fs::read_to_string(&file).unwrap();
    until("it never came", || written().lines().count() > 3);
    kill_process(Pid::from_child(&run.child), Signal::INT).unwrap();
    run.child.wait().unwrap();
    until("it never came", || watch.try_wait().unwrap().is_some());
    assert!(watch.wait().unwrap().success());
    let looks: Vec<Value> =
        written().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ios: Vec<u64> = looks.iter().map(|look| look["read"]["ios"].as_u64().unwrap()).collect();
    assert!(ios.is_sorted(), "{ios:?}");
    assert!(looks[1]["last"]["seconds"].as_f64() > Some(0.09), "{:?}", looks[1]);
    assert!(!run.file.exists(), "it took its page away");
}

#[test]
fn no_page_is_made_where_none_is_wanted() {
    // A run makes its page before it starts workers, so a worker that lives shows whether it will.
    for (flag, makes) in [("", true), ("--no-stats-page", false)] {
        let dir = scratch();
        let line = format!("bench {LOAD} {flag}");
        let child = command(dir.path()).args(words(&line)).stdout(Stdio::null()).spawn().unwrap();
        let run = Run::of(dir.path(), child);
        until("it never came", || has_worker(run.pid()));
        assert_eq!(run.file.exists(), makes, "{flag}");
        if !makes {
            let ran = gpuio(dir.path(), &format!("stats {}", run.pid()));
            ran.exits(3).prints(&["--no-stats-page"]);
        }
    }
}

/// Whether the process has a thread that moves blocks.
fn has_worker(pid: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let mut names = threads.map(|thread| std::fs::read_to_string(thread.path().join("comm")));
    names.any(|name| name.is_ok_and(|name| name == "gpuio-0\n"))
}

#[test]
fn what_makes_no_sense_is_refused() {
    let dir = scratch();
    gpuio(dir.path(), "stats 0").exits(2);
    gpuio(dir.path(), "stats 1 -l 4").exits(2);
    let none = |format: &str| gpuio(dir.path(), &format!("stats --format {format}")).exits(0).out;
    assert_eq!(none("json"), gpuio(dir.path(), "stats --json").exits(0).out);
    assert_eq!(none("csv").lines().count(), 1, "heads alone");
    assert!(none("text").starts_with("no gpuio process") && none("html").contains("no gpuio"));
    gpuio(dir.path(), "stats 1 --watch=soon").exits(2).prints(&["--watch soon"]);
    gpuio(dir.path(), "gds_stats -l 3").exits(2).prints(&["-p PID"]);
    let link = dir.path().join("gds_stats");
    std::os::unix::fs::symlink(GPUIO, &link).unwrap();
    let ran = finish(other(dir.path(), link).arg("-h")).exits(0);
    insta::assert_snapshot!("gds_stats_help", ran.out);
}
