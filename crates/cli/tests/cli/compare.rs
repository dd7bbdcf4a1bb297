//! `gpuio compare` and `gpuio bench --ab`, on records of this machine and on changed ones.

use std::fs;
use std::path::Path;

use gpuio_base::units::human_ns;
use serde_json::Value;

use crate::record::n;
use crate::tool::{Ran, bench, command, file, finish, gpuio, scratch, tree, words};

const LOAD: &str = "--rw randread --bs 64k --size 4m --threads 1 --depth 4 --runtime 300ms \
                    --directory data --keep --buffered";

/// A record of a short load on path host.
fn record(dir: &Path, name: &str) -> Value {
    bench(dir, &format!("{LOAD} -q -o {name}")).exits(0);
    serde_json::from_str(&fs::read_to_string(dir.join(name)).unwrap()).unwrap()
}

/// Repeats of a record in a folder, whose rates are so many thousandths of its own, since they
/// took longer.
/// They are of a version without digests, and no figure contradicts another: else nothing is
/// concluded.
fn repeats(dir: &Path, folder: &str, record: &Value, per_mille: &[u64]) {
    fs::create_dir(dir.join(folder)).unwrap();
    for (nth, part) in per_mille.iter().enumerate() {
        let mut record = record.clone();
        undigested(&mut record);
        let took_ns = n(&record["jobs"][0]["last_done_ns"]);
        let takes_ns = took_ns * 1000 / part;
        let begin_ns = n(&record["jobs"][0]["measured"]["begin_ns"]);
        replace(&mut record, "last_done_ns", took_ns, takes_ns);
        replace(&mut record, "first_done_ns", took_ns, takes_ns);
        replace(&mut record, "done_ns", took_ns, takes_ns);
        replace(&mut record, "elapsed_ns", took_ns, takes_ns);
        replace(&mut record, "end_ns", begin_ns + took_ns, begin_ns + takes_ns);
        for parts in ["jobs", "totals"] {
            let part = &mut record[parts][0];
            let busy = part["cpu"]["cores_busy"].as_f64().unwrap();
            part["cpu"]["cores_busy"] = (busy * took_ns as f64 / takes_ns as f64).into();
            for (rate, count) in [("bytes_per_s", "bytes"), ("iops", "ios")] {
                let count = n(&part["read"][count]) as f64;
                part["read"][rate] = (count * 1e9 / takes_ns as f64).into();
            }
        }
        let [took, takes] = [took_ns, takes_ns].map(|time| format!(" {}.", human_ns(time as f64)));
        let warnings = record["warnings"].to_string().replace(&took, &takes);
        record["warnings"] = serde_json::from_str(&warnings).unwrap();
        let name = format!("{folder}/{nth}.json");
        file(dir, &name, &record.to_string());
        let checked = gpuio(dir, &format!("show --check {name}"));
        assert!(!checked.out.contains("wrong: "), "{}", checked.out);
    }
}

/// Another value wherever this field has this one.
fn replace(value: &mut Value, field: &str, old: u64, new: u64) {
    match value {
        Value::Array(all) => all.iter_mut().for_each(|one| replace(one, field, old, new)),
        Value::Object(all) => all.iter_mut().for_each(|(name, one)| match one.as_u64() {
            Some(number) if name == field && number == old => *one = new.into(),
            _ => replace(one, field, old, new),
        }),
        _ => {}
    }
}

/// Makes it a record of a version whose records have no digest.
fn undigested(record: &mut Value) {
    record["tool"]["version"] = "0.0.1".into();
    record.as_object_mut().unwrap().remove("content_sha256");
}

fn compare(dir: &Path, line: &str) -> Ran {
    gpuio(dir, &format!("compare {line}"))
}

#[test]
fn two_runs_of_one_load_compare() {
    let dir = scratch();
    // By a count and not by a time, so that a slow machine has as many I/Os for high percentiles.
    let load = LOAD.replace("--bs 64k", "--bs 4k").replace("--runtime 300ms", "--loops 20");
    for name in ["warm-up.json", "a.json", "b.json"] {
        bench(dir.path(), &format!("{load} -q -o {name}")).exits(0);
    }
    let ran = compare(dir.path(), "a.json b.json").exits(0);
    // So short, they may be of unknown disturbance, which would be said first.
    assert!(ran.out.contains("baseline: a.json\nother:    b.json\n"), "{}", ran.out);
    assert!(ran.out.contains("throughput") && ran.out.contains("one run each"), "{}", ran.out);
    let page = compare(dir.path(), "a.json b.json --format json").exits(0).json();
    assert_eq!(page["schema"], "gpuio-compare-v1");
    assert_eq!(page["pairs"][0]["rows"].as_array().unwrap().len(), 7, "{page:#}");
    let ran = compare(dir.path(), "a.json b.json --format markdown").exits(0);
    assert!(ran.out.contains("| --- |"), "{}", ran.out);
}

#[test]
fn a_regression_is_exit_code_1() {
    let dir = scratch();
    let mut record = record(dir.path(), "r.json");
    // Nothing is decided where others used the machine meanwhile, as other tests may have.
    let of_others =
        |one: &Value| one["warning"].as_str().is_some_and(|one| one.starts_with("other_"));
    record["warnings"].as_array_mut().unwrap().retain(|one| !of_others(one));
    record["jobs"][0]["others"] = Value::Null;
    repeats(dir.path(), "before", &record, &[980, 990, 1000]);
    repeats(dir.path(), "after", &record, &[780, 790, 800]);
    let ran = compare(dir.path(), "before after --threshold 5%").exits(1);
    assert!(ran.out.contains("BEYOND THRESHOLD") && ran.out.contains("regression:"), "{}", ran.out);
    compare(dir.path(), "before after").exits(0);
    compare(dir.path(), "before after --threshold 50%").exits(0);
    compare(dir.path(), "before after --threshold 5% --metric cpu").exits(0);
    compare(dir.path(), "after before --threshold 5%").exits(0);
    // A gate must not pass on what the runs do not decide, and can tell it from a regression.
    repeats(dir.path(), "scattered", &record, &[500, 700, 1000]);
    let ran = compare(dir.path(), "before scattered --threshold 5%").exits(2);
    assert!(ran.out.contains("threshold: undetermined in all"), "{}", ran.out);
    let json = compare(dir.path(), "before scattered --threshold 5% --format json").exits(2).json();
    assert_eq!(json["threshold"]["outcome"], "undetermined", "{json:#}");
    compare(dir.path(), "before scattered").exits(0);
}

/// A post with results of two tools: each beside its like, and none is lost.
#[test]
fn each_tool_of_a_text_is_compared() {
    let dir = scratch();
    let fio = |rate: &str| {
        format!(
            "$ fio --name=r --rw=read --bs=1M\nr: (g=0): rw=read, bs=(R) 1024KiB-1024KiB, (W) \
             1024KiB-1024KiB, (T) 1024KiB-1024KiB, ioengine=psync, iodepth=1\nfio-3.33\nStarting \
             1 process\nr: (groupid=0, jobs=1): err= 0: pid=7: Thu Jan  1 00:00:00 2026\n  read: \
             IOPS={rate}, BW={rate}MiB/s (1MB/s)({rate}0MiB/10000msec)\n"
        )
    };
    let gdsio = "IoType: READ XferType: GPUD Threads: 4 DataSetSize: 4194304/1048576(KiB) IOSize: \
                 1024(KiB) Throughput: 4.000000 GiB/sec, Avg_Latency: 976.562500 usecs ops: 4096 \
                 total_time 1.000000 secs\n";
    file(dir.path(), "a.txt", &format!("{gdsio}{}", fio("3000")));
    file(dir.path(), "b.txt", &format!("{}{gdsio}", fio("1500")));
    file(dir.path(), "fio.txt", &fio("3000"));
    let json = compare(dir.path(), "a.txt b.txt --format json").exits(0).json();
    let ratios = json["pairs"].as_array().unwrap().iter().map(|pair| {
        let ratio = pair["rows"][0]["ratio"].as_f64().unwrap();
        (pair["baseline"].as_str().unwrap().split(' ').next().unwrap().to_owned(), ratio)
    });
    assert_eq!(ratios.collect::<Vec<_>>(), [("gdsio".to_owned(), 1.0), ("fio".to_owned(), 0.5)]);
    let ran = compare(dir.path(), "a.txt fio.txt").exits(0);
    assert!(ran.out.contains("gdsio read 1M 4×1 gds: in a.txt, not in fio.txt"), "{}", ran.out);
    assert!(!ran.out.contains("differs: tool"), "{}", ran.out);
}

#[test]
fn a_software_gpu_is_refused_beside_real_results() {
    let dir = scratch();
    record(dir.path(), "real.json");
    bench(dir.path(), &format!("{LOAD} --gpu software --path staged -q -o soft.json")).exits(0);
    let refused = compare(dir.path(), "real.json soft.json").exits(2);
    assert_eq!(refused.out, "", "no figure is shown");
    refused.prints(&["not compared", "no GPU | software GPU", "--despite software-gpu"]);
    let ran = compare(dir.path(), "real.json soft.json --despite all").exits(0);
    assert!(ran.out.contains("software GPU (matters)"), "{}", ran.out);
}

#[test]
fn paths_of_one_record_compare_by_axis() {
    let dir = scratch();
    let load = format!("{LOAD} --gpu software --path staged,gather --no-ceilings -q -o both.json");
    bench(dir.path(), &load).exits(0);
    let ran = compare(dir.path(), "both.json --axis path=staged,gather --despite cache,direct");
    let ran = ran.exits(0);
    let begins = "Software GPU: path=staged and path=gather used no hardware GPU";
    assert!(ran.out.starts_with(begins), "{}", ran.out);
    assert!(ran.out.contains("\nbaseline: path=staged"), "{}", ran.out);
    assert!(ran.out.contains("requested path: staged | gather"), "{}", ran.out);
    assert!(ran.out.contains("staged software GPU"), "every head says so: {}", ran.out);
    compare(dir.path(), "both.json --axis path=staged,gds")
        .exits(2)
        .prints(&["path=gds", "gather"]);
}

#[test]
fn a_sweep_compares_by_its_axis() {
    let dir = scratch();
    fs::create_dir(dir.path().join("sweep")).unwrap();
    // The first run makes the files.
    record(dir.path(), "warm-up.json");
    for engine in ["psync", "io_uring"] {
        let load = LOAD.replace("--depth 4", "--depth 1");
        bench(dir.path(), &format!("{load} --engine {engine} -q -o sweep/{engine}.json")).exits(0);
    }
    let sweep = serde_json::json!({
        "gpuio_sweep": 1, "name": "engines", "tool": {"name": "gpuio", "version": "0.1.0"},
        "command": ["gpuio"], "started_at": "2026-01-01T00:00:00Z", "seed": 1,
        "axes": [{"key": "engine", "values": ["psync", "io_uring", "libaio"]}],
        "points": [
            {"at": ["psync"], "records": ["psync.json"], "ended": "enough"},
            {"at": ["io_uring"], "records": ["io_uring.json"], "ended": "enough"},
            {"at": ["libaio"], "records": [], "ended": "not here"},
        ],
    });
    file(dir.path(), "sweep/sweep.json", &sweep.to_string());
    let ran = compare(dir.path(), "sweep --axis engine").exits(0);
    assert!(ran.out.contains("other:    engine=io_uring"), "{}", ran.out);
    assert!(ran.out.contains("No record of engine=libaio: not here"), "{}", ran.out);
    let same = compare(dir.path(), "sweep/sweep.json --axis engine").exits(0);
    assert_eq!(same.out, ran.out);
}

#[test]
fn the_paths_of_a_sweep_that_was_run_compare_in_one_command() {
    let dir = scratch();
    let sweep = "sweep --rw randread --size 1m --threads 1 --depth 4 --runtime 150ms --buffered \
                 --gpu software --vary bs=16k,64k --vary path=staged,gather --repeats 2 -q -o s";
    let ran = gpuio(dir.path(), sweep).exits(0);
    assert!(ran.out.contains("gpuio compare s --axis path)"), "{}", ran.out);
    let page = compare(dir.path(), "s --axis path=staged,gather --format json").exits(0).json();
    let pairs = page["pairs"].as_array().unwrap();
    assert_eq!(pairs.len(), 2, "one for each block size: {page:#}");
    for pair in pairs {
        assert_eq!(pair["rows"][0]["metric"], "throughput", "{pair:#}");
        assert!(pair["rows"][0]["ratio"].as_f64().unwrap() > 0.0, "{pair:#}");
    }
    // The other way round the ratio is the inverse.
    let back = compare(dir.path(), "s --axis path=gather,staged --format json").exits(0).json();
    let ratio = |page: &Value| page["pairs"][0]["rows"][0]["ratio"].as_f64().unwrap();
    assert!((ratio(&page) * ratio(&back) - 1.0).abs() < 1e-6, "{back:#}");
}

#[test]
fn other_tools_stand_beside_a_record() {
    let dir = scratch();
    record(dir.path(), "r.json");
    let line = "IoType: RANDREAD XferType: CPUONLY Threads: 1 DataSetSize: 4096/4096(KiB) IOSize: \
                64(KiB) Throughput: 1.250000 GiB/sec, Avg_Latency: 48.8 usecs ops: 64 total_time \
                0.003125 secs\n";
    file(dir.path(), "gdsio.txt", line);
    compare(dir.path(), "r.json gdsio.txt").exits(2).prints(&["I/Os in flight", "--despite depth"]);
    let ran = compare(dir.path(), "r.json gdsio.txt --despite depth").exits(0);
    assert!(
        ran.out.contains("unknown for one side")
            && ran.out.contains("if NVIDIA's gdsio wrote it: its time"),
        "{}",
        ran.out
    );
}

#[test]
fn gpuio_s_own_gdsio_line_is_read_back() {
    let dir = scratch();
    record(dir.path(), "r.json");
    let line = gpuio(dir.path(), "show r.json --format gdsio").exits(0);
    file(dir.path(), "line.txt", &line.out);
    let page = compare(dir.path(), "r.json line.txt --format json").exits(0).json();
    let throughput = &page["pairs"][0]["rows"][0];
    let ratio = throughput["ratio"].as_f64().unwrap();
    assert!((ratio - 1.0).abs() < 1e-4, "six decimals of the same figure: {throughput:#}");
    assert_eq!(throughput["verdict"], "not_enough_runs", "{throughput:#}");
}

#[test]
fn what_makes_no_sense_is_refused_with_what_would() {
    let dir = scratch();
    record(dir.path(), "r.json");
    file(dir.path(), "other.txt", "nothing of the kind\n");
    fs::create_dir(dir.path().join("empty")).unwrap();
    let refused = |line: &str, says: &[&str]| {
        compare(dir.path(), line).exits(2).prints(says);
    };
    refused("r.json", &["--axis"]);
    let twice = compare(dir.path(), "r.json r.json r.json").exits(2).err;
    assert!(twice.trim_start().starts_with("error: a comparison needs two"), "{twice}");
    let lines: Vec<&str> = twice.lines().collect();
    assert!(lines.iter().all(|one| lines.iter().filter(|it| *it == one).count() == 1), "{twice}");
    refused("r.json nowhere.json", &["nowhere.json"]);
    refused("r.json other.txt", &["other.txt", "fio's text or JSON"]);
    refused("r.json empty", &["empty", ".json, .csv"]);
    let known = &["colour", "software-gpu", " rate,", " depth,", "fsync"];
    refused("r.json r.json --despite colour", known);
    // Each word of that list works.
    let ran = compare(dir.path(), "r.json r.json --despite colour").exits(2).err.replace('\n', " ");
    let list = ran.split("known are ").nth(1).unwrap().replace("part of the load: ", ",");
    let list =
        list.split(',').map(str::trim).filter(|word| !word.is_empty() && !word.contains(' '));
    let all: Vec<&str> = list.collect();
    assert!(all.len() > 25, "{all:?}");
    let ran = compare(dir.path(), &format!("r.json nowhere.json --despite {}", all.join(",")));
    assert!(!ran.exits(2).err.contains("unknown difference"), "{all:?}");
    refused("r.json r.json --threshold 5% --metric colour", &["colour", "p99.9"]);
    refused("r.json r.json --threshold many", &["--threshold"]);
    refused("r.json r.json --format yaml", &["text, json, markdown, html"]);
    refused("r.json --axis colour", &["colour"]);
}

const JOB: &str = "[one]\nrw=randread\nbs=64k\nsize=4m\nruntime=200ms\ndirectory=data\nbuffered=1\n\
                   keep=1\nthreads=1\n";

#[test]
fn two_job_files_run_in_turns() {
    let dir = scratch();
    file(dir.path(), "a.ini", JOB);
    file(dir.path(), "b.ini", &JOB.replace("64k", "16k"));
    let line = "bench --ab a.ini b.ini --rounds 2 -o records";
    let ran = finish(command(dir.path()).args(words(line))).exits(0);
    let turns: Vec<&str> = ran.err.lines().filter(|line| line.starts_with("round")).collect();
    let wanted = ["1 of 2: a.ini", "1 of 2: b.ini", "2 of 2: b.ini", "2 of 2: a.ini"];
    assert_eq!(turns, wanted.map(|turn| format!("round {turn}")));
    assert!(ran.out.contains("block size: 64K | 16K (matters)"), "{}", ran.out);
    assert!(ran.out.contains("2 runs each") && ran.out.contains("alternating"), "{}", ran.out);
    let kept = ["a-01.json", "a-02.json", "b-01.json", "b-02.json"];
    assert_eq!(tree(&dir.path().join("records")), kept);
    let again = finish(command(dir.path()).args(words(line))).exits(2);
    again.prints(&["records", "choose another name"]);
    // The folder's report keeps the sides apart, and misses a run of one.
    let report = || finish(command(dir.path()).args(words("report records --format csv"))).exits(0);
    let csv = report().out;
    let end = |side: &str| csv.lines().filter(|line| line.ends_with(side)).count();
    assert_eq!([end(",axis_side"), end(",a"), end(",b")], [1, 2, 2], "{csv}");
    std::fs::remove_file(dir.path().join("records/b-02.json")).unwrap();
    let page = finish(command(dir.path()).args(words("report records --format markdown"))).exits(0);
    assert!(page.out.contains(", b: 1 record is not here of 2 runs"), "{}", page.out);
}

/// A quarter of the rate is kept on any machine that keeps the whole.
#[test]
fn in_turns_a_threshold_is_exit_code_1() {
    let dir = scratch();
    let paced = |rate: &str| format!("{JOB}rate_iops={rate}\n");
    file(dir.path(), "a.ini", &paced("400"));
    file(dir.path(), "b.ini", &paced("100"));
    let line = "bench --ab a.ini b.ini --rounds 3 -q --threshold 20% --metric iops,throughput";
    let ran = finish(command(dir.path()).args(words(line))).exits(1);
    assert_eq!(ran.out.matches("BEYOND THRESHOLD").count(), 2, "{}", ran.out);
    assert!(ran.out.contains("worse by more than 20 %"), "{}", ran.out);
    let line = line.replace("20%", "90%");
    let ran = finish(command(dir.path()).args(words(&line))).exits(0);
    assert!(ran.out.contains("threshold: passed, no result is worse"), "{}", ran.out);
    // Too few I/Os for this percentile: nothing decides, as in gpuio compare.
    let ran = finish(command(dir.path()).args(words(&line.replace("iops,", "p99.9,")))).exits(2);
    assert!(ran.out.contains("threshold: undetermined, a side lacks p99.9"), "{}", ran.out);
    let alone = finish(command(dir.path()).args(words("bench a.ini --threshold 5%"))).exits(2);
    alone.prints(&["--threshold", "add --ab"]);
}

#[test]
fn in_turns_the_guard_comes_first() {
    let dir = scratch();
    file(dir.path(), "a.ini", JOB);
    file(dir.path(), "theirs", &"x".repeat(1 << 16));
    file(dir.path(), "b.ini", "[w]\nrw=write\nbs=4k\nfilename=theirs\nruntime=100ms\n");
    let ran = finish(command(dir.path()).args(words("bench --ab a.ini b.ini -o records"))).exits(2);
    assert!(!ran.err.contains("round 1"), "{}", ran.err);
    assert!(!dir.path().join("records").exists() && !dir.path().join("data").exists());
    assert_eq!(fs::read_to_string(dir.path().join("theirs")).unwrap(), "x".repeat(1 << 16));
    let both = finish(command(dir.path()).args(words("bench --ab a.ini a.ini --dry-run"))).exits(0);
    assert_eq!(both.out.matches("# a.ini").count(), 2, "{}", both.out);
}

/// A digest that was made anew does not help: nothing is concluded from figures that contradict
/// each other, and a script sees that by the exit code.
#[test]
fn a_record_that_contradicts_itself_fails_a_comparison() {
    let dir = scratch();
    let mut record = record(dir.path(), "r.json");
    undigested(&mut record);
    let rate = record["jobs"][0]["read"]["bytes_per_s"].as_f64().unwrap();
    record["jobs"][0]["read"]["bytes_per_s"] = (rate * 1.5).into();
    file(dir.path(), "better.json", &record.to_string());
    let ran = compare(dir.path(), "r.json better.json").exits(1);
    assert!(ran.out.contains("Figures do not follow"), "{}", ran.out);
    // So are those of another tool.
    for (name, rate) in [("a.txt", "2.000000"), ("b.txt", "9.000000")] {
        let line = format!(
            "IoType: READ XferType: CPUONLY Threads: 4 DataSetSize: 4194304/4194304(KiB) IOSize: \
             1024(KiB) Throughput: {rate} GiB/sec, Avg_Latency: 1953.125000 usecs ops: 4096 \
             total_time 2.000000 secs\n"
        );
        file(dir.path(), name, &line);
    }
    let ran = compare(dir.path(), "a.txt b.txt").exits(1);
    assert!(ran.out.contains("Not comparable: figures of b.txt contradict"), "{}", ran.out);
    assert!(!ran.out.contains(".."), "{}", ran.out);
}
