//! `--beside`: what I/O and a computation on the same GPU cost each other.

use serde_json::Value;

use crate::tool::{Ran, bench, command, finish, scratch, words};

/// Operations of a piece: 1024 threads, 64 trips of 52 multiply-adds. The software GPU takes 20
/// microseconds for it.
const FLOP_PER_S: f64 = 1024.0 * 64.0 * 52.0 * 2.0 / 20e-6;

fn run(line: &str, environment: &[(&str, &str)]) -> Ran {
    let dir = scratch();
    let mut gpuio = command(dir.path());
    gpuio.envs(environment.iter().copied()).arg("bench");
    gpuio.args(words("--gpu software --directory d --size 1m"));
    finish(gpuio.args(words(line)))
}

/// The only job's result, and the computation on its only GPU.
fn job(record: &Value) -> (&Value, &Value) {
    let job = &record["jobs"][0];
    (job, &job["beside"]["gpus"][0])
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

/// Each copy of the job takes a millisecond from the computation: how much that is in all follows
/// from the rate that the job had.
#[test]
fn what_copies_take_from_a_computation_is_what_it_loses() {
    let line = "--path staged --engine psync --rw randread --bs 4k --rate-iops 200 --runtime 2s \
                --beside compute --format json";
    let record = run(line, &[("GPUIO_SOFT_STEAL_US", "1000")]).exits(0).json();
    let (job, gpu) = job(&record);
    for when in ["before_per_s", "after_per_s"] {
        let off = number(&gpu[when]) / FLOP_PER_S - 1.0;
        assert!(off.abs() < 1e-3, "{when}: {gpu:#}");
    }
    let taken = number(&job["read"]["iops"]) * 1e-3;
    // On a busy machine the thread that enqueues launches is late, and what is taken in the
    // meantime is taken from the next one: from a shorter time.
    let most = taken / (number(&gpu["busy_percent"]) / 100.0);
    let ratio = number(&gpu["ratio"]);
    let left = 1.0 - most - 0.02..1.0 - taken + 0.02;
    assert!(left.contains(&ratio), "{ratio}, and {left:?} is what was left of it: {gpu:#}");
    assert!(ratio < 0.95, "{ratio}: the copies took nothing");
    assert_eq!((&gpu["failed"], &gpu["unknown"]), (&Value::Bool(false), &Value::Null));
    assert!(record["setup"]["alone_ns"].as_u64() > Some(3_000_000_000), "{}", record["setup"]);
    let plan = &record["plan"]["jobs"][0]["beside"];
    assert_eq!((&plan["with"], number(&plan["share_percent"])), (&"compute".into(), 100.0));
}

/// Each copy waits for five milliseconds while the computation runs: one thread with one I/O in
/// flight makes 200 of them in a second at most.
#[test]
fn what_a_computation_costs_the_job_is_held_against_the_job_alone() {
    let line = "--path staged --engine psync --depth 1 --rw randwrite --bs 4k --runtime 2s \
                --beside memory:50% --format json";
    let environment = [("GPUIO_SOFT_CROWD_US", "5000"), ("GPUIO_SOFT_SMS", "8")];
    let record = run(line, &environment).exits(0).json();
    let (job, gpu) = job(&record);
    let [beside, alone] =
        [&job["write"], &job["beside"]["alone"]["write"]].map(|side| number(&side["iops"]));
    // How many more depends on how long the computation's thread waits for a processor between two
    // launches.
    assert!(beside < alone, "{beside} IOPS beside the computation, {alone} alone");
    // That it was alone shows by what no I/O beside the computation can be.
    let p50 = |side: &Value| side["latency"]["total"]["p50_ns"].as_u64();
    assert!(p50(&job["write"]) >= Some(5_000_000), "{job:#}");
    assert!(p50(&job["beside"]["alone"]["write"]) < Some(5_000_000), "{job:#}");
    let rate = |side: &Value| number(&side["bytes_per_s"]);
    match job["beside"]["io_ratio"].as_f64() {
        Some(ratio) => {
            let expected = rate(&job["write"]) / rate(&job["beside"]["alone"]["write"]);
            assert!((ratio - expected).abs() < 1e-9, "{ratio}, {beside} and {alone} IOPS");
        }
        // A busy machine makes too few I/Os, or has no time for the thread of the computation.
        None => {
            let why = job["beside"]["io_unknown"].as_str().unwrap();
            assert!(why.contains("run it longer") || why.contains("no time for"), "{why}");
        }
    }
    let blocks = ["multiprocessors", "blocks", "occupied"].map(|key| gpu[key].as_u64());
    assert_eq!(blocks, [Some(8), Some(4), Some(4)]);
}

#[test]
fn every_path_to_the_gpu_has_both_losses_and_the_text_says_them() {
    let line = "--path host,staged,cached,managed,gather,resident --bs 64k --runtime 200ms \
                --beside compute:50%";
    let dir = scratch();
    let saved = format!("--gpu software --directory d --size 1m {line} -o r.json");
    bench(dir.path(), &saved).exits(0);
    let text = std::fs::read_to_string(dir.path().join("r.json")).unwrap();
    let record: Value = serde_json::from_str(&text).unwrap();
    let jobs = record["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), 6);
    assert_eq!(jobs[0].get("beside"), None, "the host path uses no GPU");
    for job in &jobs[1..] {
        let gpu = &job["beside"]["gpus"][0];
        assert_eq!(gpu["occupied"], 1, "{job:#}");
        assert!(gpu["launches"].as_u64() >= Some(20), "{job:#}");
        assert!(job["beside"]["alone"]["read"]["ios"].as_u64() > Some(0), "{job:#}");
    }
    let show = |format: &str| {
        let mut gpuio = command(dir.path());
        finish(gpuio.args(["show", "r.json", "--format", format])).exits(0).out
    };
    let shown = show("text");
    let part = shown
        .split("with a GPU computation running:\n")
        .nth(1)
        .unwrap_or_else(|| panic!("{shown}"));
    for words in [
        "compute on 1 of 1 multiprocessors of GPU 0 (50% requested)",
        "with the computation, ",
        " alone ",
    ] {
        let flat = part.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(words), "no {words:?} in {part}");
    }
    let csv = show("csv");
    let rows: Vec<&str> = csv.lines().collect();
    assert!(rows[0].contains(",beside,beside_compute_ratio,beside_io_ratio,"), "{csv}");
    let with = rows.iter().filter(|row| row.contains(",compute:50%,")).count();
    assert_eq!(with, 5, "{csv}");
}

/// The run without the computation is held to the same as the other.
#[test]
fn wrong_data_in_the_run_alone_is_reported_and_fails_the_run() {
    let line = "--path staged --engine psync --depth 1 --bs 64k --io-size 1m --verify=inline \
                --beside compute";
    // The first copy tries the kernel out. Then, in the run alone, copies of blocks and of the
    // checking kernel's report take turns: this is the fifth block.
    let corrupt = [("GPUIO_SOFT_CORRUPT", "cuMemcpyHtoDAsync_v2:9")];
    let record = run(&format!("{line} --format json"), &corrupt).exits(1).json();
    let (job, _) = job(&record);
    assert_eq!(job["verify"]["bad_blocks"], 0, "{job:#}");
    assert_eq!(job["beside"]["alone"]["verify"]["bad_blocks"], 1, "{job:#}");
    let text = run(line, &corrupt).exits(1).out;
    assert!(text.contains("WRONG DATA"), "{text}");
    let fine = run(&format!("{line} --format json"), &[]).exits(0).json();
    assert_eq!(fine["jobs"][0]["beside"]["alone"]["verify"]["bad_blocks"], 0);
}

#[test]
fn too_short_a_run_has_no_ratio_and_says_why() {
    let line = "--path staged --engine psync --depth 1 --bs 64k --io-size 128k --beside compute \
                --format json";
    let record = run(line, &[]).exits(0).json();
    let (job, gpu) = job(&record);
    assert_eq!(job["beside"]["io_ratio"], Value::Null);
    // A drive that stands still makes two I/Os long enough for the computation.
    if gpu["ratio"].is_null() {
        let why = gpu["unknown"].as_str().unwrap();
        // On a busy machine the thread gets too little time before the job, too.
        let spans = ["before the job: ", "beside the job: "];
        assert!(spans.iter().any(|span| why.starts_with(span)), "{why}");
    } else {
        assert!(job["last_done_ns"].as_u64() > Some(5_000_000), "{job:#}");
    }
    let why = job["beside"]["io_unknown"].as_str().unwrap();
    assert!(why.starts_with("alone there were 2 I/Os"), "{why}");
}

#[test]
fn a_computation_that_fails_is_no_result() {
    // The launches that try its size go well; some of those beside the job do not.
    let line =
        "--path staged --engine psync --bs 64k --runtime 200ms --beside compute --format json";
    let record = run(line, &[("GPUIO_SOFT_FAIL", "cuLaunchKernel:1:40:1")]).exits(1).json();
    let (job, gpu) = job(&record);
    assert_eq!((&gpu["failed"], &gpu["ratio"]), (&Value::Bool(true), &Value::Null));
    assert!(gpu["unknown"].as_str().unwrap().starts_with("the computation failed: "), "{gpu}");
    assert_eq!(job["beside"]["io_ratio"], Value::Null);
}

#[test]
fn what_can_not_be_is_refused_before_anything_is_made() {
    let dir = scratch();
    let prints = |line: &str, code: i32, words: &[&str]| {
        bench(dir.path(), &format!("--directory d --size 1m {line}")).exits(code).prints(words);
    };
    prints("--beside compute", 2, &["--beside", "path host uses no GPU"]);
    prints(
        "--gpu software --path staged --beside gemm",
        2,
        &["--beside", "compute, memory or off"],
    );
    prints("--gpu software --path staged --beside compute:0%", 2, &["a share above 0, or off"]);
    // No driver here, or none that is found.
    let mut none = command(dir.path());
    none.env("GPUIO_LIBCUDA", "/nowhere/libcuda.so.1");
    let line = "bench --directory d --path staged --beside compute";
    finish(none.args(words(line))).exits(3).prints(&["path staged needs a GPU"]);
    let mut old = command(dir.path());
    old.env("GPUIO_SOFT_FAIL", "cuModuleLoadData:209");
    let line = "bench --gpu software --directory d --path staged --size 1m --beside compute";
    let old = finish(old.args(words(line))).exits(3);
    assert_eq!(old.err.lines().filter(|line| !line.starts_with("note: ")).count(), 1, "{old:#?}");
    let old = old.prints(&["GPU 0 can't run the computation", "compute capability 7.0 or later"]);
    drop(old);
    assert!(!dir.path().join("d").exists());
}

#[test]
fn jobs_that_run_together_have_the_same_beside_them() {
    let dir = scratch();
    let job = |lines: &str| {
        let text = format!("[global]\ngpu=software\npath=staged\ndirectory=d\nsize=1m\n{lines}");
        std::fs::write(dir.path().join("j.ini"), text).unwrap();
        bench(dir.path(), "j.ini --dry-run")
    };
    let refused = job("[a]\nbeside=compute\n[b]\n").exits(2);
    refused.prints(&["job 'b'", "job 'a'", "beside=compute:100% (here: off)", "put a stonewall"]);
    let apart = job("[a]\nbeside=compute\n[b]\nstonewall\nbeside=off\n").exits(0);
    assert_eq!(apart.out.matches("beside = compute:100%").count(), 1, "{}", apart.out);
    assert!(apart.out.contains("# the job runs twice, first without"), "{}", apart.out);
}
