//! The contents of an installation besides the program: manual pages, completions, the module of
//! Python. `cargo xtask dist --check` tests the packages themselves.

use std::path::Path;

use gpuio_testkit::programs::python_with;

use crate::example::built;
use crate::tool::{Scratch, command, finish, other, plain, scratch};

/// The verbs that help lists.
fn verbs() -> Vec<String> {
    let dir = scratch();
    let help = finish(command(dir.path()).arg("--help")).exits(0).out;
    let verbs = help.lines().skip_while(|line| !line.starts_with("Usage:"));
    let verbs = verbs.skip(1).take_while(|line| !line.starts_with("Options:"));
    // A verb begins two columns in; its text goes on further right.
    let verbs = verbs.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    verbs.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// Makes files of a kind, and gives their directory.
fn made(what: &str) -> Scratch {
    let dir = scratch();
    finish(command(dir.path()).args(["generate", what, "."])).exits(0);
    dir
}

#[test]
fn every_verb_has_a_manual_page() {
    let verbs = verbs();
    assert!(verbs.len() > 10 && verbs.iter().any(|verb| verb == "why"), "{verbs:?}");
    let dir = made("man");
    let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
    for verb in verbs.iter().filter(|verb| *verb != "help") {
        let page = read(&format!("gpuio-{verb}.1"));
        assert!(page.contains(".SH NAME") && page.contains(".SH SYNOPSIS"), "{verb}: {page}");
        let usage = page.lines().skip_while(|line| *line != ".SH SYNOPSIS").nth(1);
        let begins = format!("gpuio {verb}");
        assert!(usage.is_some_and(|usage| usage.starts_with(&begins)), "{usage:?}");
        let title = page.lines().find(|line| line.starts_with(".TH "));
        assert!(title.is_some_and(|title| title.contains(&format!("gpuio-{verb}"))), "{title:?}");
    }
    let page = read("gpuio-bench.1");
    assert!(page.contains("gpuio bench [OPTIONS] [JOB_FILE]"), "{page}");
    let page = read("gpuio.1");
    assert!(page.contains("gpuio\\-bench(1)") && page.contains("gpuio\\-generate(1)"), "{page}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), verbs.len());
    // Nothing is written over.
    let again = finish(command(dir.path()).args(["generate", "man", "."])).exits(1);
    assert!(again.err.contains("File exists (os error 17); it is not replaced"), "{}", again.err);
    // A terminal is no place for many files.
    let nowhere = finish(command(dir.path()).args(["generate", "man"])).exits(2);
    assert!(nowhere.err.contains("name a directory for them"), "{}", nowhere.err);
}

#[test]
fn shells_read_the_completions() {
    for (what, file, shell, check) in [
        ("bash", "gpuio", "bash", "-n"),
        ("zsh", "_gpuio", "zsh", "-n"),
        ("fish", "gpuio.fish", "fish", "--no-execute"),
    ] {
        let dir = made(what);
        let path = dir.path().join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        let printed = finish(command(dir.path()).args(["generate", what])).exits(0).out;
        assert!(printed == text, "{what}");
        for word in verbs().iter().map(String::as_str).chain(["runtime", "mount"]) {
            assert!(text.contains(word), "{what}: no {word}");
        }
        match plain(shell).arg(check).arg(&path).output() {
            Ok(output) => assert!(output.status.success(), "{what}: {output:?}"),
            Err(_) => println!("SKIPPED: no {shell} here"),
        }
    }
}

#[test]
fn bash_proposes_words_of_tables() {
    let dir = made("bash");
    std::fs::write(dir.path().join("readme"), "").unwrap();
    for (line, expected) in [
        ("swe", "sweep"),
        ("bench --rw randr", "randread randrw"),
        ("bench --path stag", "staged"),
        ("bench --gpu so", "software"),
        ("sweep --preset r", "routing"),
        ("workload unet3d-a", "unet3d-a100"),
        ("workload show seis", "seismic"),
        ("explain numa-", "numa-balancing"),
        ("report --format ope", "openmetrics"),
        ("--units s", "si"),
        // No file: it is a number.
        ("bench --threads r", "r"),
    ] {
        let words: Vec<&str> = std::iter::once("gpuio").chain(line.split(' ')).collect();
        let [.., before, last] = words.as_slice() else { panic!("{line}") };
        let script = format!(
            ". ./gpuio; compopt() {{ :; }}; COMP_WORDS=({}); COMP_CWORD={}; \
             _gpuio gpuio {last} {before}; echo \"${{COMPREPLY[@]}}\"",
            words.join(" "),
            words.len() - 1
        );
        match plain("bash").current_dir(dir.path()).args(["-c", &script]).output() {
            Ok(output) => {
                assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), expected, "{line}");
            }
            Err(_) => return println!("SKIPPED: no bash here"),
        }
    }
}

#[test]
fn the_module_of_python_passes_its_tests() {
    let Some(python) = python_with("numpy") else { return };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let dir = scratch();
    let mut tests = other(dir.path(), python);
    tests.args(["-m", "unittest", "discover", "-s"]).arg(root.join("python/tests"));
    tests.env("PYTHONPATH", root.join("python")).env("PYTHONDONTWRITEBYTECODE", "1");
    tests.env("GPUIO_LIBGPUIO", built("libgpuio.so")).env("GPUIO_PROGRAM", crate::tool::GPUIO);
    tests.env("GPUIO_CUFILE_DRIVER", built("libgpuio_softgpu.so"));
    let output = tests.current_dir(dir.path()).output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && words.contains("OK"), "{words}");
}

#[test]
fn unit_and_dashboard_name_what_there_is() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging");
    let unit = std::fs::read_to_string(root.join("gpuio-exporter.service")).unwrap();
    let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/bin/")).unwrap();
    assert_eq!(start, "gpuio top --serve 127.0.0.1:9400");
    let text = std::fs::read_to_string(root.join("grafana-dashboard.json")).unwrap();
    let dashboard: serde_json::Value = serde_json::from_str(&text).unwrap();
    let queries = dashboard["panels"].as_array().unwrap().iter();
    let queries = queries.flat_map(|panel| panel["targets"].as_array().unwrap());
    let mut known = 0;
    for query in queries.map(|target| target["expr"].as_str().unwrap()) {
        for (at, _) in query.match_indices("gpuio_") {
            let end = query[at..].find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap();
            let family = query[at..at + end].trim_end_matches("_total");
            let is_known = gpuio_watch_families().iter().any(|one| one == family);
            assert!(is_known, "{family} is no metric of gpuio top --serve");
            known += 1;
        }
    }
    assert!(known > 10, "{known}");
}

/// `gpuio_PROBE_KEY` as the sources of the probes spell them.
fn gpuio_watch_families() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../watch/src/probe");
    let mut families = Vec::new();
    for probe in ["block", "gpu", "interface", "page_cache", "cpu"] {
        let source = std::fs::read_to_string(root.join(format!("{probe}.rs"))).unwrap();
        let keys = source.split("(\"").skip(1).filter_map(|rest| rest.split('"').next());
        families.extend(keys.map(|key| format!("gpuio_{probe}_{key}")));
    }
    families
}
