//! Runs to which something happens: an interrupt, a full disk, broken storage, a broken GPU.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::record::{check, jobs, list, n};
use crate::tool::{
    Ran, TIMEOUT, bench, bench_with, command, counts, finish, gpuio, is_root, other, plain,
    scratch, skip, tree, until, wait, words,
};

/// Starts `gpuio bench LINE` and waits until it is ready.
fn start(dir: &Path, line: &str, ready: impl Fn() -> bool) -> (Child, Instant) {
    let began = Instant::now();
    let mut run = command(dir);
    run.arg("bench").args(words(line)).stdin(Stdio::null());
    let child = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("it never started", ready);
    (child, began)
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Starts a load and sends it a signal when it runs.
fn interrupt(dir: &Path, line: &str, which: Signal) -> Ran {
    let (child, began) = start(dir, line, || true);
    until(&format!("it counts nothing: {line}"), || counts(dir, child.id()));
    signal(&child, which);
    wait(child, began).exits(1)
}

#[test]
fn an_interrupt() {
    for (which, more) in [
        (Signal::INT, "--engine psync"),
        (Signal::TERM, "--engine io_uring --threads 2"),
        (Signal::HUP, "--path staged --gpu software"),
        (Signal::INT, "--rate-iops 2"),
    ] {
        let dir = scratch();
        let line = format!("--rw randread --bs 16k --size 1m --runtime 600 --format json {more}");
        interrupted(dir.path(), &line, which, 1);
        assert_eq!(
            tree(dir.path()),
            Vec::<String>::new(),
            "{which:?} {more}: scratch stays behind"
        );
    }
    // One job has begun, and one of the same group waits for its time.
    let dir = scratch();
    let text = "[global]\nrw=randread\nbs=16k\nsize=1m\nruntime=600\n[a]\n[b]\nstart_delay=600\n";
    crate::tool::file(dir.path(), "delay.ini", text);
    interrupted(dir.path(), "delay.ini --format json", Signal::INT, 2);
    assert_eq!(tree(dir.path()), ["delay.ini"]);
}

/// One interrupted run, which `wait` would not wait out; results until then stand.
fn interrupted(dir: &Path, line: &str, which: Signal, many: usize) {
    let record = interrupt(dir, line, which).json();
    check(&record);
    assert_eq!(record["ended"], "interrupted", "{line}");
    let done = list(&record["jobs"]);
    assert_eq!(done.len(), many, "{line}");
    assert!(done.iter().all(|job| job["ended"] == "interrupted"), "{line}");
    assert!(n(&done[0]["read"]["ios"]) > 0, "{line}");
}

/// The text says that it is not the whole run, and jobs behind walls never begin.
#[test]
fn an_interrupt_in_words() {
    let dir = scratch();
    let text = "[global]\nrw=randread\nbs=16k\nsize=1m\nruntime=600\nverify=pass\n\
                [a]\n[b]\nstonewall\n";
    crate::tool::file(dir.path(), "two.ini", text);
    let ran = interrupt(dir.path(), "two.ini", Signal::INT);
    assert_eq!(tree(dir.path()), ["two.ini"]);
    assert!(ran.out.to_lowercase().contains("interrupted"), "{}", ran.out);
}

/// While the data set is made there is no result, and nothing stays.
#[test]
fn an_interrupt_before_the_load() {
    let dir = scratch();
    let line = "--rw read --size 3g --runtime 1";
    let ready = || dir.path().join("gpuio-scratch/gpuio.0").exists();
    let (child, began) = start(dir.path(), line, ready);
    signal(&child, Signal::INT);
    wait(child, began).exits(1);
    assert_eq!(tree(dir.path()), Vec::<String>::new());
}

/// The second one does not wait for anything.
#[test]
fn two_interrupts() {
    let dir = scratch();
    // The first leaves I/Os to be waited for, each of which takes longer than `wait` waits.
    let line = "--rw read --bs 64k --size 1m --runtime 600 --engine psync --inject delay=500s";
    let (mut child, began) = start(dir.path(), line, || true);
    until("it opens no file", || has_opened(dir.path(), child.id()));
    // Its first I/O is begun at once now, which is no event that can be seen from here.
    assert!(!ends_within(&mut child, Duration::from_millis(500)), "it ends by itself");
    signal(&child, Signal::INT);
    assert!(!ends_within(&mut child, Duration::from_secs(1)), "one signal ended it");
    // A signal that comes while an earlier one is being handled is one with it, and how long that
    // takes depends on the machine.
    while !ends_within(&mut child, Duration::from_secs(1)) {
        assert!(began.elapsed() < TIMEOUT, "further signals do not end it");
        signal(&child, Signal::INT);
    }
    wait(child, began).exits(1);
}

/// Whether the process has opened a file for its load, by its live page.
fn has_opened(dir: &Path, child: u32) -> bool {
    let ran = gpuio(dir, &format!("stats {child} --json"));
    ran.code == 0 && ran.json()["files_opened"].as_u64() > Some(0)
}

/// Whether the process ends within this time.
fn ends_within(child: &mut Child, time: Duration) -> bool {
    let began = Instant::now();
    while began.elapsed() < time && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
    child.try_wait().unwrap().is_some()
}

/// Failures of the first job, checked for what each must have.
#[track_caller]
fn failures<'a>(record: &'a Value, leg: &str) -> Vec<&'a Value> {
    check(record);
    let (plan, job) = jobs(record)[0];
    assert!(n(&job["failed"]) > 0, "{job}");
    let all: Vec<&Value> = list(&job["failures"]).iter().collect();
    assert!(!all.is_empty());
    let counted: u64 = all.iter().map(|failure| n(&failure["times"])).sum();
    assert_eq!(counted, n(&job["failed"]));
    for failure in &all {
        assert_eq!(failure["leg"], leg, "{failure}");
        let path = &failure["path"];
        assert!(list(&plan["targets"]).iter().any(|target| target["path"] == *path), "{failure}");
        assert!(n(&failure["offset"]) < n(&plan["size_bytes"]), "{failure}");
        assert!(n(&failure["length"]) > 0, "{failure}");
        assert!(failure["what"].as_str().unwrap().len() > 10, "{failure}");
    }
    all
}

#[test]
fn io_errors() {
    for (engine, more) in [
        ("psync", ""),
        ("io_uring", ""),
        ("libaio", ""),
        ("pool", ""),
        ("io_uring", "--path staged --gpu software"),
        ("psync", "--path cached --gpu software"),
    ] {
        let dir = scratch();
        let line = format!(
            "--rw randrw --bs 16k --size 1m --loops 8 --engine {engine} {more} \
             --inject eio=5%,seed=1 --threads 2"
        );
        let ran = bench(dir.path(), &format!("{line} --format json")).exits(1);
        let record = ran.json();
        for failure in failures(&record, "file") {
            let what = failure["what"].as_str().unwrap();
            assert!(
                what.contains("Input/output error") && what.contains("gpuio injects"),
                "{failure}"
            );
        }
        assert!(n(&record["jobs"][0]["read"]["ios"]) > 0, "{engine}: the others go on");
        assert_eq!(tree(dir.path()), Vec::<String>::new(), "{engine}");
        let text = bench(dir.path(), &line).exits(1).out;
        assert!(text.contains("I/Os failed") && text.contains("gpuio.0"), "{text}");
    }
}

/// Storage that only fails is not tried for ever.
#[test]
fn nothing_but_errors() {
    let dir = scratch();
    let line = "--rw randread --bs 4k --size 1m --runtime 600 --inject eio=100% --format json";
    let ran = bench(dir.path(), line).exits(1);
    let record = ran.json();
    assert_eq!(record["jobs"][0]["ended"], "failed");
    assert_eq!(failures(&record, "file").len(), 1, "a thousand alike are one line");
}

#[test]
fn no_space_injected() {
    let dir = scratch();
    let line = "--rw write --bs 64k --size 1m --loops 20 --inject enospc=10%,seed=2 --format json";
    let record = bench(dir.path(), line).exits(1).json();
    assert!(failures(&record, "file")[0]["what"].as_str().unwrap().contains("No space left"));
    assert_eq!(tree(dir.path()), Vec::<String>::new());
}

/// The verification pass counts its own failed I/Os, and they fail the run.
#[test]
fn errors_during_verification() {
    let dir = scratch();
    let line = "--rw read --bs 64k --size 1m --loops 1 --threads 2 --verify --format json \
                --inject eio=30%,seed=4";
    let record = bench(dir.path(), line).exits(1).json();
    assert!(n(&record["jobs"][0]["verify"]["failed"]) > 0, "{record}");
}

/// Somebody cuts or removes the file while it is read.
fn while_it_runs(engine: &str, more: &str, act: impl Fn(&Path)) -> Ran {
    let dir = scratch();
    let data = "--bs 64k --size 4m --directory d --keep";
    bench(dir.path(), &format!("--rw write {data} --loops 1")).exits(0);
    let path = dir.path().join("d/gpuio.0");
    // Paced: the question is not how many I/Os it makes in its time.
    let line = format!("--rw read {data} --engine {engine} --runtime 2s --rate-iops 500 {more}");
    let line = format!("{line} --format json");
    let (child, began) = start(dir.path(), &line, || true);
    // Before that the file would be made anew.
    until(&format!("it counts nothing: {line}"), || counts(dir.path(), child.id()));
    act(&path);
    wait(child, began)
}

#[test]
fn a_file_cut_short() {
    for (engine, more) in [
        ("psync", "--buffered"),
        ("psync", "--direct"),
        ("io_uring", "--direct"),
        ("libaio", "--direct"),
        ("mmap", "--buffered"),
        ("mmap", "--path cached --gpu software"),
    ] {
        let ran = while_it_runs(engine, more, |path| {
            let file = std::fs::File::options().write(true).open(path).unwrap();
            file.set_len(1 << 20).unwrap();
        });
        let record = ran.exits(1).json();
        let what = failures(&record, "file")[0]["what"].as_str().unwrap();
        assert!(what.contains("shorter") || what.contains("truncated"), "{engine}: {what}");
    }
}

/// An open file outlives its name.
#[test]
fn a_file_removed() {
    for engine in ["psync", "io_uring", "mmap"] {
        let ran = while_it_runs(engine, "--buffered", |path| std::fs::remove_file(path).unwrap());
        let record = ran.exits(0).json();
        check(&record);
        assert!(n(&record["jobs"][0]["read"]["ios"]) > 0, "{engine}");
    }
}

const GPU: &str = "--path staged --gpu software --bs 64k --size 1m --loops 16";

#[test]
fn a_driver_that_fails_at_once() {
    let dir = scratch();
    let set = [("GPUIO_SOFT_FAIL", "cuInit:100")];
    let ran = bench_with(dir.path(), &set, &format!("--rw read {GPU}")).exits(3);
    assert!(ran.err.contains("cuInit") && ran.err.contains("100"), "{ran:?}");
    assert_eq!(tree(dir.path()), Vec::<String>::new());
}

#[test]
fn calls_that_fail_while_opening() {
    for call in [
        "cuDevicePrimaryCtxRetain:2",
        "cuStreamCreate:2",
        "cuMemAlloc_v2:2",
        "cuMemHostAlloc:2",
        "cuModuleLoadData:209",
        "cuEventCreate:2",
    ] {
        let dir = scratch();
        let set = [("GPUIO_SOFT_FAIL", call)];
        let ran = bench_with(dir.path(), &set, &format!("--rw read {GPU} --format json"));
        let name = call.split(':').next().unwrap().trim_end_matches("_v2");
        assert!(ran.code == 1 || ran.code == 3, "{call}: {ran:?}");
        assert!(ran.err.contains(name), "{call}: {ran:?}");
        assert!(ran.err.starts_with("error: "), "{call}: {ran:?}");
        assert_eq!(tree(dir.path()), Vec::<String>::new(), "{call}");
    }
}

#[test]
fn too_little_gpu_memory() {
    let dir = scratch();
    let set = [("GPUIO_SOFT_MEM", "1000000")];
    let line = format!("--rw read {GPU} --depth 64 --threads 4");
    let ran = bench_with(dir.path(), &set, &line).exits(1);
    assert!(ran.err.to_lowercase().contains("memory"), "{ran:?}");
    assert!(ran.err.contains("cuMemAlloc"), "{ran:?}");
    assert_eq!(tree(dir.path()), Vec::<String>::new());
}

#[test]
fn a_copy_that_fails_in_mid_run() {
    for (rw, call) in [("read", "cuMemcpyHtoDAsync_v2"), ("write", "cuMemcpyDtoHAsync_v2")] {
        let dir = scratch();
        let fault = format!("{call}:700:20");
        let line = format!("--rw {rw} {GPU} --format json");
        let ran = bench_with(dir.path(), &[("GPUIO_SOFT_FAIL", &fault)], &line).exits(1);
        let record = ran.json();
        let all = failures(&record, "gpu");
        assert!(all[0]["what"].as_str().unwrap().contains("700"), "{all:?}");
        assert_eq!(tree(dir.path()), Vec::<String>::new());
    }
}

/// A place that is mistyped becomes no directory of another file system.
#[test]
fn a_directory_that_is_not_there() {
    let dir = scratch();
    let typo = dir.path().join("typo");
    for name in [typo.join("d"), "typo/d".into()] {
        let name = name.display();
        crate::tool::file(
            dir.path(),
            "a.fio",
            &format!("[a]\nrw=read\nsize=64k\ndirectory={name}\n"),
        );
        for line in [format!("--rw read --size 64k --directory {name}"), "a.fio".to_owned()] {
            let ran = bench(dir.path(), &line).exits(2);
            assert!(ran.err.contains(&format!("{name}: neither this directory nor")), "{ran:?}");
            assert!(ran.err.contains(&format!("mkdir -p {name}")), "{ran:?}");
        }
        assert!(!typo.exists());
    }
    // Its last part may be mistyped too: the run says that it makes it, once.
    let line = "--rw read --bs 4k --size 64k --runtime 20ms --directory nwe --no-watch -o";
    let note = "nwe was not there: the run makes this directory, and removes it at the end";
    let first = bench(dir.path(), &format!("{line} a.json")).exits(0);
    assert_eq!(first.err.matches(note).count(), 1, "{first:?}");
    assert!(std::fs::read_to_string(dir.path().join("a.json")).unwrap().contains(note));
    let second = bench(dir.path(), &format!("{line} b.json")).exits(0);
    assert!(!second.err.contains("was not there"), "{second:?}");
    // A sweep's runs print nothing, so it says so itself.
    let line = "sweep --bs 4k --size 64k --runtime 10ms --vary depth=1,2 --repeats 1 --directory";
    for (place, times) in [("nwe2 -o s", 1), ("nwe2 -o t", 0)] {
        let ran = crate::tool::gpuio(dir.path(), &format!("{line} {place}")).exits(0);
        assert_eq!(ran.err.matches("nwe2 was not there: the run makes").count(), times, "{ran:?}");
    }
    let line = "sweep --bs 4k --size 64k --runtime 10ms --vary depth=1,2 --repeats 1 -o u";
    let own = crate::tool::gpuio(dir.path(), line).exits(0);
    assert!(!own.err.contains("was not there"), "{own:?}");
}

/// A directory that this user may not look into: one line that names it. Root without the
/// capabilities that pass permissions is such a user.
#[test]
fn a_place_without_permission() {
    let dir = scratch();
    let closed = dir.path().join("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o0)).unwrap();
    let mut gpuio = match is_root() {
        false => command(dir.path()),
        true => {
            let mut program = other(dir.path(), "setpriv");
            program.args(["--bounding-set=-dac_override,-dac_read_search", crate::tool::GPUIO]);
            program
        }
    };
    let load = "bench --rw read --bs 64k --size 1m --threads 4 --loops 1 --directory closed/x -q";
    gpuio.current_dir(dir.path()).args(words(load));
    if is_root() && plain("setpriv").arg("--version").output().is_err() {
        return skip("no setpriv here");
    }
    let ran = finish(&mut gpuio).exits(1);
    assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
    assert!(ran.err.contains("closed/x: permission denied; name another"), "{}", ran.err);
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o700)).unwrap();
}
