//! The help texts, word for word: they are what most users read first.

use crate::tool::{command, finish, scratch, words};

fn help(line: &str) -> String {
    let dir = scratch();
    let ran = finish(command(dir.path()).args(words(line))).exits(0);
    assert_eq!(ran.err, "", "{line}");
    assert!(ran.out.lines().all(|line| line.chars().count() <= 100), "a line is too long");
    ran.out
}

/// Those of gdscheck and gdsio are below.
#[test]
fn of_the_program_and_each_verb() {
    insta::assert_snapshot!("gpuio", help("--help"));
    for verb in [
        "bench", "check", "collect", "compare", "exec", "explain", "list", "network", "plan",
        "prefetch", "replay", "report", "show", "stats", "sweep", "top", "topo", "why", "workload",
    ] {
        insta::assert_snapshot!(verb, help(&format!("{verb} --help")));
    }
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
