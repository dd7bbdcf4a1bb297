//! Real output of the tools. gdsio's is from NVIDIA's pages and public logs, as the first line of
//! each file says; fio's and elbencho's was made with the releases in the files' names.

use gpuio_report::foreign::{Direction, Output, Reading, read};

fn sample(name: &str) -> (&'static str, Output) {
    let path = format!("{}/tests/report/fixtures/foreign/{name}", env!("CARGO_MANIFEST_DIR"));
    let (tools, output) = read(&std::fs::read_to_string(path).unwrap()).unwrap();
    (tools[0].name, output)
}

/// One line for each reading: enough to see every field.
fn lines(output: &Output) -> String {
    let one = |reading: &Reading| {
        let number = |number: Option<gpuio_report::foreign::Number>| {
            number.map_or("-".to_owned(), |n| format!("{:.6e}±{:.1e}", n.value, n.off))
        };
        let names = ["throughput", "iops", "mean", "p50", "p99", "p99.9", "cpu"];
        let figures = names.map(|name| (name, reading.figures.get(name).copied()));
        let figures = figures.map(|(name, value)| format!("{name} {}", number(value))).join(" ");
        let mix = reading.mix.map_or_else(String::new, |share| format!(" mix {share:?}"));
        format!(
            "{} {:?} {} random {:?} threads {:?} depth {:?} block {:?} path {:?} engine {:?} \
             direct {:?} size {:?} seconds {:?} target {:?}\n  {figures}\n  {:?}{mix}\n",
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

/// gpuio prints the same line, and its own time has no set-up in it.
#[test]
fn the_caution_about_gdsio_s_time_is_for_nvidia_s_alone() {
    let text = include_str!("fixtures/foreign/gdsio_runs_getting-started.txt");
    let (tools, _) = read(text).unwrap();
    let time = tools[0].measures.iter().find(|words| words.contains("set-up")).unwrap();
    assert!(time.starts_with("if NVIDIA's gdsio wrote it"), "{time}");
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
    says("", "fio's text or JSON");
    says("IoType: READ XferType: GPUD Throughput: 1.0", "cut");
    says("{\"fio version\": \"fio-3.33\", \"jobs\": []}", "no job");
    says("{\"fio version\": \"fio-3.33\", \"jobs\": [", "can't be parsed");
    says("ISO date,operation,MiB/s [last]\n2026,MKDIRS,\n", "no row");
}

#[test]
fn cut_anywhere_it_never_panics() {
    for name in ["fio_3.33_defaults.json", "elbencho_3.0-25.csv", "gdsio_runs_getting-started.txt"]
    {
        let path = format!("{}/tests/report/fixtures/foreign/{name}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        let ends = (0..text.len()).filter(|end| text.is_char_boundary(*end));
        for end in ends.step_by(3) {
            if let Ok((_, output)) = read(&text[..end]) {
                assert!(!output.readings.is_empty(), "{name} up to {end}");
            }
        }
    }
}

/// A document of fio's with one job: seconds so far, I/Os and bytes of reads.
fn document(timestamp: u64, elapsed: u64, ios: u64) -> String {
    format!(
        r#"{{"fio version": "fio-3.33", "timestamp": {timestamp}, "jobs": [{{"jobname": "a",
        "groupid": 0, "error": 0, "elapsed": {elapsed}, "job options": {{"rw": "read", "bs": "4k"}},
        "read": {{"io_bytes": {0}, "io_kbytes": {1}, "bw_bytes": {2}, "iops": {3}.0,
        "runtime": {4}, "total_ios": {ios}}}}}]}}"#,
        ios * 4096,
        ios * 4,
        ios * 4096 / elapsed,
        ios / elapsed,
        elapsed * 1000,
    )
}

fn iops(text: &str) -> (Vec<f64>, Vec<String>) {
    let (_, output) = read(text).unwrap();
    let skipped = output.skipped.iter().map(|one| format!("{}: {}", one.place, one.why));
    let iops = output.readings.iter().map(|reading| reading.figures["iops"].value);
    (iops.collect(), skipped.collect())
}

#[test]
fn of_several_states_of_a_run_the_last_is_read() {
    let states = [document(101, 1, 50), document(103, 3, 600), document(104, 4, 1600)];
    let (found, skipped) = iops(&states.join("\n"));
    assert_eq!(found, [400.0]);
    assert_eq!(skipped.len(), 1);
    assert!(skipped[0].starts_with("documents 1 to 2: states of the run"), "{skipped:?}");
    assert!(skipped[0].contains("document 3, the last"), "{skipped:?}");
    // Messages around them, with braces of their own, and one that a kill has cut.
    let cut = &document(105, 5, 9000)[..80];
    let text = format!("fio: {{note}} a {{\n{}\nfio: x{{\n{cut}", states.join("\nbw: {\n"));
    let (found, skipped) = iops(&text);
    assert_eq!(found, [400.0]);
    assert!(skipped.iter().any(|one| one == "document 4: it is cut"), "{skipped:?}");
}

/// Runs that were appended to one file are repeats.
#[test]
fn of_several_runs_each_is_read() {
    let runs = [document(110, 10, 1000), document(121, 10, 1010), document(150, 10, 990)];
    let (found, skipped) = iops(&runs.join("\n"));
    assert_eq!((found, skipped.len()), (vec![100.0, 101.0, 99.0], 0));
}

#[test]
fn results_of_clients_are_their_sum_and_options_are_unknown() {
    let side = |ios: u64| {
        format!(
            r#""read": {{"io_bytes": {0}, "io_kbytes": {1}, "bw_bytes": {0}, "iops": {ios}.0,
            "runtime": 1000, "total_ios": {ios}, "lat_ns": {{"mean": 1000.0}}}}"#,
            ios * 1024,
            ios
        )
    };
    let text = format!(
        r#"{{"fio version": "fio-3.28", "client_stats": [
        {{"jobname": "s", "groupid": 0, "error": 0, "hostname": "a", {}}},
        {{"jobname": "s", "groupid": 0, "error": 0, "hostname": "b", {}}},
        {{"jobname": "All clients", "groupid": 0, "error": 0, {}}}]}}"#,
        side(100),
        side(300),
        side(400)
    );
    let (_, output) = read(&text).unwrap();
    let [reading] = output.readings.as_slice() else { panic!("{output:#?}") };
    assert_eq!(reading.figures["iops"].value, 400.0);
    assert_eq!((reading.random, reading.block_bytes, reading.depth), (None, None, None));
    assert!(reading.notes[0].contains("2 clients (a, b)"), "{:?}", reading.notes);
}

#[test]
fn reads_and_writes_in_one_figure_are_a_reading() {
    let text = document(110, 10, 1000).replace("\"read\": {", "\"mixed\": {");
    let (_, output) = read(&text).unwrap();
    assert_eq!(output.readings[0].direction, Direction::Both);
    assert_eq!(output.readings[0].figures["iops"].value, 100.0);
}

/// fio 2 prints KiB and microseconds.
#[test]
fn figures_of_fio_2_have_their_units() {
    let text = r#"{"fio version": "fio-2.2.10", "jobs": [{"jobname": "a", "groupid": 0, "error": 0,
        "read": {"io_bytes": 1024, "bw": 512, "iops": 128.0, "runtime": 2000, "total_ios": 256,
        "lat": {"mean": 7.5}, "clat": {"percentile": {"50.000000": 7, "99.000000": 20}}}}]}"#;
    let (_, output) = read(text).unwrap();
    let reading = &output.readings[0];
    let value = |metric: &str| reading.figures[metric].value;
    assert_eq!(value("throughput"), 524_288.0);
    assert_eq!((value("mean"), value("p99")), (7500.0, 20_000.0));
    assert!(reading.figures["p50"].off >= 500.0, "whole microseconds: {:?}", reading.figures);
}

#[test]
fn wrapped_lines_of_gdsio_are_joined() {
    let text = "$ gdsio -x 0\n\
        IoType: READ XferType: GPUD Threads: 8 DataSetSize: 8388608(KiB) IOSize: 1024(KiB)\n\
        Throughput: 2.500 GiB/sec, Avg_Latency: 619.42 usecs ops: 8192\n  total_time 0.6 secs\n\n\
        IoType: READ XferType: CPUONLY Threads: 8 DataSetSize: 8388608/8388608(KiB) IOSize:\n\
        1024(KiB) Throughput: 6.201 GiB/sec, Avg_Latency: 1.0 usecs ops: 1 total_time 1.2 secs\n";
    let (_, output) = read(text).unwrap();
    let of = |one: &Reading| (one.path.clone().unwrap(), one.figures["throughput"].value);
    let found: Vec<_> = output.readings.iter().map(of).collect();
    assert_eq!(found.len(), 2, "{output:#?}");
    assert_eq!(found[0].0, "gds");
    assert!((found[0].1 / (2.5 * 1024.0 * 1024.0 * 1024.0) - 1.0).abs() < 1e-9, "{found:?}");
    // A line that is cut is none, whatever follows.
    let cut = "IoType: READ XferType: GPUD Threads: 8 Throughput: 1\n$ gdsio\n";
    assert!(read(&format!("{cut}{text}")).unwrap().1.skipped.len() == 1);
}
