//! Rates: reached, spread by chance, or missed and said so.

use serde_json::Value;

use crate::record::{check_clean, jobs, n, warnings};
use crate::tool::{bench, scratch};

#[track_caller]
fn run(line: &str) -> Value {
    let dir = scratch();
    let line = format!("--rw randread --size 1m --directory d --format json {line}");
    let record = bench(dir.path(), &line).exits(0).json();
    check_clean(&record);
    record
}

/// I/Os that were due in the time of the first job: done, or never started since the machine was
/// busy with something else.
fn due(record: &Value) -> u64 {
    let job = jobs(record)[0].1;
    let (ios, last) = (n(&job["read"]["ios"]), n(&job["last_done_ns"]));
    // The rate is that of what was done.
    let rate = job["read"]["iops"].as_f64().unwrap();
    assert!((rate * last as f64 / 1e9 - ios as f64).abs() < 0.01, "{rate} a second, {ios}");
    let never = n(&job["never_started"]["ios"]);
    // Ends that come late on a busy machine are the other reason.
    let is_late = last > n(&record["plan"]["jobs"][0]["stop"]["runtime_ns"]);
    assert!(never > 0 || is_late || !warnings(record).contains(&"rate_not_reached"), "{job}");
    ios + never
}

#[test]
fn an_io_rate_is_reached() {
    for more in ["--engine psync", "--engine io_uring", "--path staged --gpu software"] {
        let record = run(&format!("--bs 4k --rate-iops 200 --threads 2 --runtime 500ms {more}"));
        let job = jobs(&record)[0].1;
        let queue = &job["read"]["latency"]["queue"];
        assert_eq!(n(&queue["count"]), n(&job["read"]["ios"]));
        // Two threads, 200 a second each.
        assert_eq!(due(&record), 200, "{more}");
    }
}

#[test]
fn a_byte_rate_is_reached() {
    // 512 a second.
    assert_eq!(due(&run("--bs 16k --rate 8m --runtime 500ms")), 256);
}

#[test]
fn arrivals_by_chance() {
    let line = "--bs 4k --rate-iops 1000 --rate-process poisson --runtime 600ms --seed 5";
    let first = due(&run(line));
    // About 600 arrivals: their number varies by one in 24, and is the seed's alone.
    assert!((510..690).contains(&first), "{first}");
    assert_eq!(due(&run(line)), first);
    assert_ne!(due(&run(&line.replace("--seed 5", "--seed 6"))), first, "another seed");
}

/// Storage that can't keep up: the queue grows, its time counts, and a warning says so.
#[test]
fn a_rate_that_is_missed() {
    // 80 I/Os at a tenth of the rate: however busy the machine is, half of them wait 180 ms.
    let line = "--bs 4k --rate-iops 2000 --engine psync --inject iops=200 --runtime 1h";
    let record = run(&format!("{line} --io-size 320k"));
    assert!(warnings(&record).contains(&"rate_not_reached"), "{:?}", warnings(&record));
    let latency = &jobs(&record)[0].1["read"]["latency"];
    let (queue, file) = (n(&latency["queue"]["p50_ns"]), n(&latency["file"]["p50_ns"]));
    assert!(queue > 150_000_000, "{queue} ns in the queue, half way through 400 ms at a tenth");
    assert!(file < queue, "{file}");
    assert!(n(&latency["total"]["p50_ns"]) >= queue);
}
