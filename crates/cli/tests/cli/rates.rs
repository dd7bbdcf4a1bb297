//! Rates: reached, spread by chance, or missed and said so.

use serde_json::Value;

use crate::in_time::{holds, in_time};
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

fn near(got: f64, wanted: f64, share: f64) -> Result<(), String> {
    holds((got - wanted).abs() <= wanted * share, (got, wanted))
}

#[test]
fn an_io_rate_is_reached() {
    for more in ["--engine psync", "--engine io_uring", "--path staged --gpu software"] {
        in_time(|| {
            let line = format!("--bs 4k --rate-iops 200 --threads 2 --runtime 500ms {more}");
            let record = run(&line);
            let job = jobs(&record)[0].1;
            let queue = &job["read"]["latency"]["queue"];
            assert_eq!(n(&queue["count"]), n(&job["read"]["ios"]));
            // Two threads, 200 each.
            near(job["read"]["iops"].as_f64().unwrap(), 400.0, 0.1)?;
            holds(!warnings(&record).contains(&"rate_not_reached"), warnings(&record))
        });
    }
}

#[test]
fn a_byte_rate_is_reached() {
    in_time(|| {
        let record = run("--bs 16k --rate 8m --runtime 500ms");
        let rate = jobs(&record)[0].1["read"]["bytes_per_s"].as_f64();
        near(rate.unwrap(), f64::from(8 << 20), 0.1)
    });
}

#[test]
fn arrivals_by_chance() {
    in_time(|| {
        let record = run("--bs 4k --rate-iops 1000 --rate-process poisson --runtime 600ms");
        // About 600 arrivals: their number varies by one in 24.
        near(jobs(&record)[0].1["read"]["iops"].as_f64().unwrap(), 1000.0, 0.15)
    });
}

/// Storage that can't keep up: the queue grows, its time counts, and a warning says so.
#[test]
fn a_rate_that_is_missed() {
    let record = run("--bs 4k --rate-iops 2000 --engine psync --inject iops=200 --runtime 400ms");
    assert!(warnings(&record).contains(&"rate_not_reached"), "{:?}", warnings(&record));
    let latency = &jobs(&record)[0].1["read"]["latency"];
    let (queue, file) = (n(&latency["queue"]["p50_ns"]), n(&latency["file"]["p50_ns"]));
    assert!(queue > 50_000_000, "{queue} ns in the queue, half way through 400 ms at a tenth");
    assert!(file < queue, "{file}");
    assert!(n(&latency["total"]["p50_ns"]) >= queue);
}
