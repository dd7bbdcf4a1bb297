//! The help texts, word for word: they are what most users read first.

use crate::tool::{command, finish, scratch, words};

fn help(line: &str) -> String {
    let dir = scratch();
    let ran = finish(command(dir.path()).args(words(line))).exits(0);
    assert_eq!(ran.err, "", "{line}");
    assert!(ran.out.lines().all(|line| line.chars().count() <= 100), "a line is too long");
    ran.out
}

#[test]
fn gpuio() {
    insta::assert_snapshot!("gpuio", help("--help"));
}

#[test]
fn bench() {
    insta::assert_snapshot!("bench", help("bench --help"));
}

#[test]
fn check() {
    insta::assert_snapshot!("check", help("check --help"));
}

#[test]
fn collect() {
    insta::assert_snapshot!("collect", help("collect --help"));
}

#[test]
fn compare() {
    insta::assert_snapshot!("compare", help("compare --help"));
}

#[test]
fn exec() {
    insta::assert_snapshot!("exec", help("exec --help"));
}

#[test]
fn explain() {
    insta::assert_snapshot!("explain", help("explain --help"));
}

#[test]
fn list() {
    insta::assert_snapshot!("list", help("list --help"));
}

#[test]
fn network() {
    insta::assert_snapshot!("network", help("network --help"));
}

#[test]
fn plan() {
    insta::assert_snapshot!("plan", help("plan --help"));
}

#[test]
fn prefetch() {
    insta::assert_snapshot!("prefetch", help("prefetch --help"));
}

#[test]
fn report() {
    insta::assert_snapshot!("report", help("report --help"));
}

#[test]
fn show() {
    insta::assert_snapshot!("show", help("show --help"));
}

#[test]
fn topo() {
    insta::assert_snapshot!("topo", help("topo --help"));
}

#[test]
fn gdscheck() {
    let text = help("gdscheck -h");
    assert_eq!(text, help("gdscheck --help"));
    insta::assert_snapshot!("gdscheck", text);
}

#[test]
fn gdsio() {
    let text = help("gdsio -h");
    assert_eq!(text, help("gdsio --help"));
    insta::assert_snapshot!("gdsio", text);
}

#[test]
fn sweep() {
    insta::assert_snapshot!("sweep", help("sweep --help"));
}

#[test]
fn top() {
    insta::assert_snapshot!("top", help("top --help"));
}

#[test]
fn stats() {
    insta::assert_snapshot!("stats", help("stats --help"));
}

#[test]
fn why() {
    insta::assert_snapshot!("why", help("why --help"));
}

#[test]
fn workload() {
    insta::assert_snapshot!("workload", help("workload --help"));
}

#[test]
fn replay() {
    insta::assert_snapshot!("replay", help("replay --help"));
}
