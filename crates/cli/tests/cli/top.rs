//! `gpuio top` as programs see it. The screen is drawn in the program's own tests.

use serde_json::Value;

use crate::tool::{command, finish, scratch, served, words};

#[test]
fn lines_of_json_are_one_object_each() {
    let dir = scratch();
    let line = "top --json --interval 100ms --count 3";
    let ran = finish(command(dir.path()).args(words(line))).exits(0);
    let objects: Vec<Value> =
        ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(objects.len(), 3);
    for object in &objects {
        assert_eq!(object["schema"], "gpuio-top/1");
        let seconds = object["seconds"].as_f64().unwrap();
        assert!((0.09..60.0).contains(&seconds), "{seconds}");
        let devices = object["devices"].as_array().unwrap();
        let memory = devices.iter().find(|one| one["kind"] == "page_cache").unwrap();
        assert!(memory["figures"]["free_bytes"].as_f64().unwrap() > 0.0, "{memory}");
        assert!(devices.iter().any(|one| one["kind"] == "cpu"), "{object}");
    }
}

#[test]
fn without_a_terminal_tables_follow_one_another() {
    let dir = scratch();
    let line = "top --interval 100ms --count 2";
    let ran = finish(command(dir.path()).args(words(line))).exits(0);
    assert_eq!(ran.out.matches("Page cache ").count(), 2, "{}", ran.out);
    assert!(ran.out.contains("%iowait"), "{}", ran.out);
}

#[test]
fn a_name_that_nothing_has_is_refused_with_those_there_are() {
    let dir = scratch();
    let ran = finish(command(dir.path()).args(["top", "nvme99n1"])).exits(2);
    assert!(ran.err.contains("'nvme99n1' is no file, mount"), "{}", ran.err);
    let ran = finish(command(dir.path()).args(words("top ./gone.bin"))).exits(2);
    assert!(ran.err.contains("./gone.bin: No such file"), "{}", ran.err);
    let ran = finish(command(dir.path()).args(words("top --interval 1ms"))).exits(2);
    assert!(ran.err.contains("100ms"), "{}", ran.err);
    let ran = finish(command(dir.path()).args(words("top --serve nowhere"))).exits(2);
    assert!(ran.err.contains("0.0.0.0:9400"), "{}", ran.err);
}

#[test]
fn the_page_for_prometheus_is_served_on_this_machine() {
    let dir = scratch();
    let (at, got) = served(dir.path());
    assert!(at.starts_with("127.0.0.1:"), "{at}");
    assert!(got.starts_with("HTTP/1.1 200 OK\r\n"), "{got}");
    assert!(got.contains("gpuio_page_cache_free_bytes{device=\"memory\"} "), "{got}");
    assert!(got.ends_with("# EOF\n"), "{got}");
}
