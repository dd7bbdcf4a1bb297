//! Real output of the tools. gdsio's is from NVIDIA's pages and public logs, as the first line of
//! each file says; fio's and elbencho's was made with the releases in the files' names.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests: a panic is their message")]

use gpuio_foreign::{Direction, Output, Reading, read};

fn sample(name: &str) -> (&'static str, Output) {
    let path = format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
    let (tool, output) = read(&std::fs::read_to_string(path).unwrap()).unwrap();
    (tool.name, output)
}

/// One line for each reading: enough to see every field.
fn lines(output: &Output) -> String {
    let one = |reading: &Reading| {
        let number = |number: Option<gpuio_foreign::Number>| {
            number.map_or("-".to_owned(), |n| format!("{:.6e}±{:.1e}", n.value, n.off))
        };
        let figures = [
            ("B/s", reading.bytes_per_s),
            ("iops", reading.iops),
            ("mean", reading.mean_ns),
            ("p50", reading.p50_ns),
            ("p99", reading.p99_ns),
            ("p99.9", reading.p99_9_ns),
            ("cpu", reading.cpu_us_per_mib),
        ];
        let figures = figures.map(|(name, value)| format!("{name} {}", number(value))).join(" ");
        format!(
            "{} {:?} {} random {:?} threads {:?} depth {:?} block {:?} path {:?} engine {:?} \
             direct {:?} size {:?} seconds {:?} target {:?}\n  {figures}\n  {:?}\n",
            reading.tool,
            reading.job,
            reading.direction.name(),
            reading.random,
            reading.threads,
            reading.depth,
            reading.block_bytes,
            reading.path,
            reading.engine,
            reading.direct,
            reading.size_bytes,
            reading.seconds,
            reading.target,
            reading.notes,
        )
    };
    let mut text: String = output.readings.iter().map(one).collect();
    for skipped in &output.skipped {
        text.push_str(&format!("skipped: {}: {}\n", skipped.place, skipped.why));
    }
    text
}

#[test]
fn gdsio_of_all_kinds() {
    let mut text = String::new();
    for name in [
        "gdsio_runs_batch_cuda11.7.txt",
        "gdsio_runs_dgx2_affinity_randread.txt",
        "gdsio_runs_dgx2_nvidia-config-guide.txt",
        "gdsio_runs_getting-started.txt",
        "gdsio_runs_verify_docs.nvidia.com_test-gds.txt",
    ] {
        let (tool, output) = sample(name);
        assert_eq!(tool, "gdsio");
        text.push_str(&format!("{name}\n{}\n", lines(&output)));
    }
    insta::assert_snapshot!(text);
}

#[test]
fn a_cut_line_of_gdsio_is_left_out_with_its_reason() {
    let (_, output) = sample("gdsio_runs_verify_docs.nvidia.com_test-gds.txt");
    assert_eq!(output.skipped.len(), 1, "{output:#?}");
    assert!(output.skipped[0].why.contains("cut"), "{output:#?}");
}

#[test]
fn fio_with_three_jobs() {
    let (tool, output) = sample("fio_3.33_three_jobs.json");
    assert_eq!(tool, "fio");
    insta::assert_snapshot!(lines(&output));
}

#[test]
fn fio_with_nothing_but_defaults() {
    insta::assert_snapshot!(lines(&sample("fio_3.33_defaults.json").1));
}

#[test]
fn elbencho_with_phases_of_all_kinds() {
    let (tool, output) = sample("elbencho_3.0-25.csv");
    assert_eq!(tool, "elbencho");
    insta::assert_snapshot!(lines(&output));
}

#[test]
fn gpuio_s_own_line_with_its_comments() {
    let text = "IoType: RANDRW XferType: GATHER Threads: 2 DataSetSize: 4096/131072(KiB) \
                IOSize: 4(KiB) Throughput: 0.500000 GiB/sec, Avg_Latency: 12.500000 usecs \
                ops: 1024 total_time 0.007813 secs\n\
                # software GPU: no hardware GPU was in this run; the line above is not a GPU \
                result\n\
                # path: job: the bytes took the requested path\n";
    let (_, output) = read(text).unwrap();
    let reading = &output.readings[0];
    assert!(reading.software_gpu);
    assert_eq!(reading.direction, Direction::Both);
    assert_eq!(reading.path.as_deref(), Some("gather"));
    assert_eq!(reading.notes, ["job: the bytes took the requested path"]);
}

#[test]
fn what_is_no_result_says_what_would_be() {
    let says = |text: &str, words: &str| {
        let error = read(text).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    };
    says("", "--output-format=json");
    says("IoType: READ XferType: GPUD Throughput: 1.0", "cut");
    says("{\"fio version\": \"fio-3.33\", \"jobs\": []}", "no job");
    says("{\"fio version\": \"fio-3.33\", \"jobs\": [", "can't be parsed");
    says("ISO date,operation,MiB/s [last]\n2026,MKDIRS,\n", "no row");
}

#[test]
fn cut_anywhere_it_never_panics() {
    for name in ["fio_3.33_defaults.json", "elbencho_3.0-25.csv", "gdsio_runs_getting-started.txt"]
    {
        let path = format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            if let Ok((_, output)) = read(&text[..end]) {
                assert!(!output.readings.is_empty(), "{name} up to {end}");
            }
        }
    }
}
