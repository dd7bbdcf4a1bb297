//! Measured beside expected: `--spec` and `--server`.

use std::fs;

use crate::tool::{bench, scratch};

const READS: &str = "--bs 64k --size 1m --runtime 60ms --directory d";

#[test]
fn a_user_s_figures_stand_beside_what_was_measured() {
    let dir = scratch();
    let figures = "[drive *]\nread = 3GB/s\nwrite = 1GB/s\nread-iops = 10M\nwrite-iops = 10M\n";
    fs::write(dir.path().join("mine.spec"), figures).unwrap();
    let line = format!("{READS} --spec mine.spec --format json");
    let record = bench(dir.path(), &line).exits(0).json();
    let expected = record["expected"].as_array().unwrap();
    assert_eq!(expected.len(), 1, "{expected:?}");
    let one = &expected[0];
    assert_eq!((one["job"].as_str(), one["direction"].as_str()), (Some("job"), Some("read")));
    // Where this test runs there may be no drive below the directory: then the reason is printed.
    match one["bytes_per_s"].as_f64() {
        Some(rate) => {
            let measured = record["jobs"][0]["read"]["bytes_per_s"].as_f64().unwrap();
            let percent = one["percent"].as_f64().unwrap();
            assert!((percent / (measured / rate * 100.0) - 1.0).abs() < 1e-9, "{one}");
            assert!(one["bottleneck"].as_str().is_some(), "{one}");
        }
        None => assert!(!one["unknown"].as_str().unwrap().is_empty(), "{one}"),
    }
}

#[test]
fn buffered_reads_are_not_held_against_a_drive() {
    let dir = scratch();
    let line = format!("{READS} --buffered --format json");
    let record = bench(dir.path(), &line).exits(0).json();
    let why = record["expected"][0]["unknown"].as_str().unwrap();
    assert!(why.contains("page cache"), "{why}");
}

#[test]
fn mistakes_in_figures_are_reported_before_anything_runs() {
    let dir = scratch();
    fs::write(dir.path().join("bad.spec"), "[drive x]\nread = 2GBs\n").unwrap();
    let refused = |flags: &str, words: &[&str]| {
        bench(dir.path(), &format!("{READS} {flags}")).exits(2).prints(words);
    };
    refused("--spec bad.spec", &["bad.spec:2:9", "3.5GB/s"]);
    refused("--spec absent.spec", &["absent.spec", "can't be read"]);
    refused("--server reed=1GB/s", &["--server:1:1", "reed"]);
    assert!(!dir.path().join("d").exists());
}
