//! `gpuio top` as programs see it. The screen is drawn in the program's own tests.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::Value;

use crate::tool::{Serving, command, finish, scratch, served, words};

#[test]
fn lines_of_json_are_one_object_each() {
    let dir = scratch();
    let one = finish(command(dir.path()).args(words("top --format json --count 1"))).exits(0);
    assert_eq!(one.out.lines().count(), 1);
    let line = "top --json --interval 100ms --count 3";
    let ran = finish(command(dir.path()).args(words(line))).exits(0);
    let objects: Vec<Value> =
        ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(objects.len(), 3);
    for object in &objects {
        assert_eq!(object["schema"], "gpuio-top/1");
        // After a late line the next comes sooner: the times of lines are kept.
        let seconds = object["seconds"].as_f64().unwrap();
        assert!((0.001..60.0).contains(&seconds), "{seconds}");
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
    let (at, response) = served(dir.path());
    assert!(at.starts_with("127.0.0.1:"), "{at}");
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    assert!(response.contains("gpuio_page_cache_free_bytes{device=\"memory\"} "), "{response}");
    assert!(response.ends_with("# EOF\n"), "{response}");
}

/// That none of them holds the server up is tested with its clock, in `serve`.
#[test]
fn a_scrape_is_answered_while_500_connections_say_nothing() {
    let dir = scratch();
    let serving = Serving::start(dir.path(), "top --serve 0");
    let connect = |nth: u32| {
        let mut idle = TcpStream::connect(&serving.at).unwrap();
        match nth % 3 {
            0 => {}
            1 => idle.write_all(b"GET /metrics HTTP/1.1\r\nX-Slow: ").unwrap(),
            _ => idle.write_all(b"G").unwrap(),
        }
        idle
    };
    let idle: Vec<TcpStream> = (0..500).map(connect).collect();
    let mut scrape = TcpStream::connect(&serving.at).unwrap();
    scrape.write_all(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n").unwrap();
    let mut response = String::new();
    scrape.read_to_string(&mut response).unwrap();
    assert!(
        response.starts_with("HTTP/1.1 200 OK\r\n") && response.ends_with("# EOF\n"),
        "{response}"
    );
    assert_eq!(idle.len(), 500, "all of them were open until now");
}

/// More than it has room for: it lets go of those that have been silent for longest.
#[test]
fn a_load_of_processes_that_grows_does_not_end_it() {
    let dir = scratch();
    let serving = Serving::start(dir.path(), "top --serve 0");
    let mut idle = std::collections::VecDeque::new();
    for _ in 0..3000 {
        idle.push_back(TcpStream::connect(&serving.at).unwrap());
        // So many descriptors this test may have.
        if idle.len() > 600 {
            idle.pop_front();
        }
    }
    let response = serving.request("GET / HTTP/1.1\r\nHost: here\r\n\r\n");
    assert!(
        response.starts_with("HTTP/1.1 200 OK\r\n") && response.contains("/metrics"),
        "{response}"
    );
}

/// A library that stands in for DCGM, where the loader finds it: crate `drivers` has the source.
#[test]
fn profiling_fields_are_those_of_a_host_engine() {
    let dir = scratch();
    let library = dir.path().join("libdcgm.so.4");
    let source =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../drivers/tests/drivers/dcgm/stand_in/dcgm.rs");
    let rustc = std::path::PathBuf::from(env!("CARGO")).with_file_name("rustc");
    let made = crate::tool::plain(rustc)
        .args(["--edition=2024", "--crate-name=dcgm", "--crate-type=cdylib", "-o"])
        .arg(&library)
        .arg(source)
        .status();
    assert!(made.unwrap().success());
    let mut top = command(dir.path());
    let line = "top --interval 100ms --count 1 --format json";
    let ran = finish(top.env("LD_LIBRARY_PATH", dir.path()).args(words(line))).exits(0);
    let object: Value = serde_json::from_str(ran.out.lines().next().unwrap()).unwrap();
    let all = object["devices"].as_array().unwrap();
    let profiles: Vec<&Value> = all.iter().filter(|one| one["kind"] == "gpu_profile").collect();
    assert_eq!(profiles.len(), 2, "{object}");
    let figures = &profiles[0]["figures"];
    assert_eq!(figures["sm_percent"], 25.0, "{figures}");
    assert_eq!(figures["pcie_sent_bytes_per_second"], 7e9, "{figures}");
    assert_eq!(figures["tensor_percent"], Value::Null, "{figures}");
    // Without it one line says so.
    let ran = finish(command(dir.path()).args(words(line))).exits(0);
    let object: Value = serde_json::from_str(ran.out.lines().next().unwrap()).unwrap();
    let absent = object["absent"].to_string();
    assert_eq!(absent.matches("DCGM").count(), 1, "{absent}");
}
