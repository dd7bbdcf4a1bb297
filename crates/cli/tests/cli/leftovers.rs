//! The files that a killed run leaves, and how the next one handles them.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::tool::{Ran, command, finish, scratch, tree, until, words};

/// `gpuio bench LINE` with a place of its own for temporary files.
fn bench(dir: &Path, line: &str) -> Ran {
    finish(command(dir).env("TMPDIR", temporary(dir)).arg("bench").args(words(line)))
}

fn temporary(dir: &Path) -> PathBuf {
    let place = crate::tool::state(dir).join("tmp");
    std::fs::create_dir_all(&place).unwrap();
    place
}

/// Starts it, and kills it when `ready`.
fn killed(dir: &Path, line: &str, ready: impl Fn() -> bool) {
    let mut run = command(dir);
    run.env("TMPDIR", temporary(dir)).arg("bench").args(words(line));
    run.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = run.spawn().unwrap();
    until("it never started", ready);
    child.kill().unwrap();
    child.wait().unwrap();
}

const LOAD: &str = "--bs 64k --size 1m";

/// The load writes: the data set is there and listed.
fn writes(dir: &Path, name: &str) -> bool {
    let whole = dir.join(name).metadata().is_ok_and(|found| found.len() >= 1 << 20);
    whole && dir.join(name).with_file_name(".gpuio-files.json").exists()
}

#[test]
fn scratch_and_an_output_of_a_killed_run_are_in_nobodys_way() {
    let dir = scratch();
    let line = format!("--rw write {LOAD} -o r.json");
    let ready = || writes(dir.path(), "gpuio-scratch/gpuio.0");
    killed(dir.path(), &format!("{line} --runtime 600"), ready);
    let left = tree(dir.path());
    assert!(left.iter().any(|name| name.starts_with("gpuio-scratch/.gpuio-scratch-")), "{left:?}");
    assert!(!left.contains(&"r.json".to_owned()), "{left:?}");
    bench(dir.path(), &format!("{line} --runtime 50ms")).exits(0);
    assert_eq!(tree(dir.path()), ["r.json"], "the scratch of both is gone");
}

#[test]
fn what_somebody_put_into_a_killed_runs_scratch_stays_and_is_named() {
    let dir = scratch();
    let line = format!("--rw write {LOAD} --threads 2");
    let ready = || writes(dir.path(), "gpuio-scratch/gpuio.1");
    killed(dir.path(), &format!("{line} --runtime 600"), ready);
    let folder = dir.path().join("gpuio-scratch");
    std::fs::write(dir.path().join("mine"), "mine").unwrap();
    std::fs::rename(dir.path().join("mine"), folder.join("gpuio.1")).unwrap();
    std::fs::write(folder.join("notes"), "notes").unwrap();
    let ran = bench(dir.path(), &format!("{line} --runtime 50ms")).exits(2);
    assert!(ran.err.contains("killed") && ran.err.contains("gpuio.1"), "{ran:?}");
    let named = folder.canonicalize().unwrap().join("gpuio.1");
    assert!(ran.err.contains(&format!("rm {}", named.display())), "{ran:?}");
    assert_eq!(std::fs::read_to_string(folder.join("gpuio.1")).unwrap(), "mine");
    assert_eq!(std::fs::read_to_string(folder.join("notes")).unwrap(), "notes");
    let left = tree(&folder);
    let stay = [".gpuio-files.json", ".gpuio-files.lock", "gpuio.1", "notes"];
    assert_eq!(left, stay, "what was proven gpuio's is gone");
}

#[test]
fn a_killed_runs_configuration_of_cufile_goes_with_the_next_run() {
    let dir = scratch();
    let line = format!("--rw write {LOAD} --path gds --gpu software");
    let ready = || writes(dir.path(), "gpuio-scratch/gpuio.0");
    killed(dir.path(), &format!("{line} --runtime 600"), ready);
    assert_eq!(std::fs::read_dir(temporary(dir.path())).unwrap().count(), 1);
    bench(dir.path(), &format!("{line} --runtime 50ms")).exits(0);
    assert_eq!(std::fs::read_dir(temporary(dir.path())).unwrap().count(), 0);
    assert_eq!(tree(dir.path()), Vec::<String>::new());
}

/// Another run beside it takes nothing of one that lives.
#[test]
fn the_scratch_of_a_living_run_stays() {
    let dir = scratch();
    let mut run = command(dir.path());
    run.arg("bench").args(words(&format!("--rw read {LOAD} --runtime 600")));
    run.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = run.spawn().unwrap();
    until("it never started", || writes(dir.path(), "gpuio-scratch/gpuio.0"));
    let beside = "--rw write --filename gpuio-scratch/other --size 1m --runtime 50ms --keep";
    bench(dir.path(), beside).exits(0);
    assert!(dir.path().join("gpuio-scratch/gpuio.0").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    bench(dir.path(), beside).exits(0);
    let left = tree(&dir.path().join("gpuio-scratch"));
    assert_eq!(left, [".gpuio-files.json", ".gpuio-files.lock", "other"]);
}
