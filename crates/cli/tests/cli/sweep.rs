//! `gpuio sweep`: grids, searches, and what a sweep that was stopped or killed goes on with.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::tool::{Ran, command, finish, gpuio, scratch, until, wait, words};

fn sweep_json(folder: &Path) -> Value {
    let text = std::fs::read_to_string(folder.join("sweep.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The values and the records of each point.
fn points(folder: &Path) -> Vec<(String, Vec<String>)> {
    let sweep = sweep_json(folder);
    let list = |value: &Value| -> Vec<String> {
        value.as_array().unwrap().iter().map(|v| v.as_str().unwrap().to_owned()).collect()
    };
    let points = sweep["points"].as_array().unwrap();
    points.iter().map(|point| (list(&point["at"]).join(" "), list(&point["records"]))).collect()
}

/// The records of a folder: name and text.
fn records(folder: &Path) -> BTreeMap<String, String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    entries
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_name().to_str().unwrap().starts_with("point-"))
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (name, std::fs::read_to_string(entry.path()).unwrap())
        })
        .collect()
}

/// By bytes: as many I/Os on a busy machine.
const COUNTED: &str = "sweep --size 64k --bs 4k --io-size 4m --engine psync";

const SMALL: &str = "--size 64k --bs 4k --runtime 30ms --engine psync";

fn small(dir: &Path, line: &str) -> Ran {
    gpuio(dir, &format!("sweep {SMALL} {line}"))
}

#[test]
fn a_grid_with_a_condition_is_run_in_rounds_and_reported() {
    let dir = scratch();
    let line = "--vary threads=1,2 --vary bs=4k..16k*2 --where bs*threads<=16k --repeats 2 -o s";
    let ran = small(dir.path(), line).exits(0);
    assert!(ran.out.contains("of best") && ran.out.contains("gpuio report s"), "{ran:#?}");
    let folder = dir.path().join("s");
    let found = points(&folder);
    let places: Vec<&str> = found.iter().map(|(place, _)| place.as_str()).collect();
    assert_eq!(places, ["1 4K", "1 8K", "1 16K", "2 4K", "2 8K"]);
    assert!(found.iter().all(|(_, records)| records.len() == 2), "{found:?}");
    let record: Value = serde_json::from_str(&records(&folder)["point-0005-run-002.json"]).unwrap();
    assert_eq!(record["plan"]["jobs"][0]["threads"], 2);
    assert_eq!(record["ended"], "complete");
    assert!(!folder.join("data").exists(), "the data set goes");
    gpuio(dir.path(), "report s --format csv").exits(0);
    // Again: nothing is left to do.
    let before = records(&folder);
    small(dir.path(), line).exits(0);
    assert_eq!(records(&folder), before);
    // More repeats go on; another load is refused.
    small(dir.path(), &line.replace("--repeats 2", "--repeats 3")).exits(0);
    assert_eq!(records(&folder).len(), 15);
    let other = line.replace("<=16k", "<=8k");
    small(dir.path(), &other)
        .exits(2)
        .prints(&["another sweep", "5 points in the directory, 3 points requested"]);
    small(dir.path(), &format!("{line} --rw randread")).exits(2).prints(&["--set rw=randread"]);
}

#[test]
fn one_load_is_repeated_and_a_target_that_is_not_there_is_refused_before_the_runs() {
    let dir = scratch();
    let ran = small(dir.path(), "--repeats 2 -o s").exits(0);
    assert!(ran.err.contains("1 point, 2 runs each"), "{ran:#?}");
    let found = points(&dir.path().join("s"));
    assert!(found.len() == 1 && found[0].1.len() == 2, "{found:?}");
    small(dir.path(), "--repeats 3 -o s").exits(0);
    let page = gpuio(dir.path(), "report s --format markdown").exits(0).out;
    assert!(page.contains("| host | 3 |"), "{page}");
    small(dir.path(), "--repeats 2 -o t").exits(0);
    gpuio(dir.path(), "compare s t").exits(0);
    gpuio(dir.path(), "bench --size 64k --repeats 3").exits(2).prints(&["gpuio sweep"]);
    std::fs::create_dir(dir.path().join("there")).unwrap();
    for (line, why) in [
        ("--vary target=a,b", "a is not there, and no size makes it a file"),
        (
            "--size 64k --vary target=a,b",
            "a is not there, and a load that only reads makes no file",
        ),
        ("--size 64k --rw write --vary target=there,a", "a is not there, and others are direct"),
        ("--size 64k --rw write --vary target=no/a", "no/a is not there, nor is the directory"),
    ] {
        let ran = gpuio(dir.path(), &format!("sweep --bs 4k {line} -o none")).exits(2);
        ran.prints(&[why, "; if a directory is meant, make it first: mkdir -p "]);
    }
    assert!(["none", "a", "no"].iter().all(|name| !dir.path().join(name).exists()));
    let line = "sweep --bs 4k --vary directory=there,no/where -o none";
    gpuio(dir.path(), line).exits(2).prints(&["neither this directory nor the one above it"]);
    let ran = small(dir.path(), "--rw write --vary target=a,b --repeats 1 -o files").exits(0);
    let files = "Data files: 2 files with 128 KiB stay in the working directory.";
    assert!(
        ran.out.contains(files)
            && ran.out.contains("\n  rm a b .gpuio-files.json .gpuio-files.lock\n"),
        "{}",
        ran.out
    );
    assert!(dir.path().join("a").is_file(), "a load that writes makes it");
}

/// Files before the clocks and verification after them belong to the time of a sweep.
#[test]
fn the_estimate_says_what_it_includes() {
    let dir = scratch();
    let estimate = |line: &str| {
        let line = format!("sweep --path host --runtime 1s --repeats 2 {line} --dry-run");
        let mut wide = command(dir.path());
        let ran = finish(wide.args(words(&line)).env("COLUMNS", "1000")).exits(0);
        ran.out.lines().next().unwrap().to_owned()
    };
    assert_eq!(
        estimate("--size 1g --vary threads=1,2 --verify=pass"),
        "2 points, 2 runs each: about 12s. Included: the clocks; before them 2.00 GiB are \
         written, 2.00 s at 1.00 GiB/s; after those of one run of each point 3.00 GiB at most are \
         verified, 3.00 s at 1.00 GiB/s. Not included: the start of each run, the page cache."
    );
    let search = estimate("--size 1g --latency-target p50=10s --over threads=1..4 --verify=pass");
    let words = "a search over about 5 loads, 2 runs each: about 54s. Included: the clocks; before \
                 them 4.00 GiB are written, 4.00 s at 1.00 GiB/s; after those of a run 4.00 GiB";
    assert!(search.starts_with(words), "{search}");
    // A file that is there is not written, and axes count.
    std::fs::write(dir.path().join("f"), [0; 4096]).unwrap();
    assert_eq!(
        estimate("--filename f --bs 4k --vary runtime=1s,5s --cool-down 1s"),
        "2 points, 2 runs each: about 16s. Included: clocks and pauses. Not included: the start of \
         each run, the page cache."
    );
    let auto = gpuio(dir.path(), "sweep --path auto --vary bs=4k,8k --dry-run").exits(0).out;
    let words = "files and verification of 2 points, which depend on";
    assert!(auto.replace('\n', " ").contains(words), "{auto}");
}

#[test]
fn what_makes_no_sense_is_reported_before_anything_is_made() {
    let dir = scratch();
    for (line, word) in [
        ("", "nothing is varied"),
        ("--vary threads=1,x", "threads"),
        ("--where bs=4k", "nothing is varied"),
        ("--vary thread=1", "has no effect"),
        ("--vary path=all", "several jobs"),
        ("--vary depth=1 --where pth!=gds", "neither side names a key"),
        ("--vary depth=1 --repeats 3..5", "--confidence"),
        ("--vary depth=1 --vary depth=2", "an axis already"),
        ("--preset nothing", "presets are"),
        ("--preset matrix", "--vary target="),
        ("--vary depth=1 --confidence 2% --repeats 3..5", "at least 5"),
        ("--vary depth=1 --over threads=1..4", "--latency-target"),
        ("--preset quick --over threads=1..4", "--latency-target"),
        ("--latency-target p99=1ms --order-seed 2", "--order-seed"),
        ("--latency-target p99=1ms --confidence 2%", "--confidence"),
        ("--latency-target slow=1ms", "p99="),
        ("--latency-target p99=1ms --over bs=1..2", "rate_iops"),
    ] {
        small(dir.path(), line).exits(2).prints(&[word]);
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    let plan = gpuio(dir.path(), "sweep --preset paths --dry-run").exits(0);
    assert!(
        plan.out.starts_with("28 points, 3 runs each: about 7m 43s. Included: "),
        "{}",
        plan.out
    );
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// A depth that does not run is not one to compare.
#[test]
fn a_depth_without_effect_is_that_which_ran_and_no_load_of_its_own() {
    let dir = scratch();
    let line = "sweep --size 64k --bs 4k --rw randread --io-size 64k --path host --repeats 1 \
                --vary engine=psync,io_uring --vary depth=1,8 -o s";
    let ran = gpuio(dir.path(), line).exits(0);
    assert!(ran.err.contains("engine=psync depth=1 (8 has no effect): "), "{ran:#?}");
    assert!(ran.out.contains("No share of best where a value has no effect"), "{ran:#?}");
    let row = |engine: &str, depth: &str| {
        let begins = |line: &&str| {
            line.split_once(' ').is_some_and(|(first, rest)| {
                first == engine && rest.trim_start().starts_with(depth)
            })
        };
        ran.out.lines().find(begins).unwrap().trim_end()
    };
    assert!(row("psync", "1 (8 has no effect)").ends_with(" -"), "{ran:#?}");
    for (engine, depth) in [("psync", "1  "), ("io_uring", "1 "), ("io_uring", "8 ")] {
        assert!(row(engine, depth).ends_with(" %"), "{ran:#?}");
    }
}

#[test]
fn a_value_without_effect_at_a_point_is_marked() {
    let dir = scratch();
    let line = "sweep --path host --vary engine=psync,io_uring --vary depth=1,8 --dry-run";
    let csv = gpuio(dir.path(), &format!("{line} --format csv")).exits(0).out;
    assert!(csv.contains("psync,1 (8 has no effect)") && csv.contains("psync,1\n"), "{csv}");
    assert!(csv.contains("io_uring,8\n"), "{csv}");
}

/// A row for each point, in the order of the runs.
#[test]
fn the_points_have_the_formats_of_results() {
    let dir = scratch();
    let line = "sweep --vary threads=1,2 --vary bs=4k,8k --order-seed 7 --dry-run --format";
    let csv = gpuio(dir.path(), &format!("{line} csv")).exits(0).out;
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!((lines[0], lines.len()), ("run,threads,bs", 5), "{csv}");
    let page = gpuio(dir.path(), &format!("{line} json")).exits(0).json();
    let table = page["sections"][0]["blocks"].as_array().unwrap();
    let rows = table.iter().find_map(|block| block["rows"].as_array()).unwrap();
    let row = |row: &Value| {
        let [threads, bs] = ["threads", "bs"].map(|key| row[key].as_str().unwrap().to_owned());
        format!("{},{threads},{bs}", row["run"])
    };
    assert_eq!(rows.iter().map(row).collect::<Vec<_>>(), lines[1..]);
    let mut points: Vec<&str> = lines[1..].iter().map(|line| &line[2..]).collect();
    points.sort_unstable();
    assert_eq!(points, ["1,4k", "1,8k", "2,4k", "2,8k"]);
}

/// 4 to 128 threads by cuFile, as in NVIDIA's guide; where that can't run, what can, and that is
/// said.
#[test]
fn the_preset_guide_is_the_guides() {
    let dir = scratch();
    let line = "sweep --preset guide --dry-run";
    let plan = gpuio(dir.path(), &format!("{line} --gpu software")).exits(0);
    assert!(plan.out.starts_with("18 points, 3 runs each"), "{}", plan.out);
    let most = |line: &str| line.split_whitespace().skip(1).any(|word| word == "128");
    assert!(plan.out.contains("threads") && plan.out.lines().any(most), "{}", plan.out);
    assert!(plan.out.contains("path=gds"), "{}", plan.out);
    assert!(!plan.out.contains("can't run here"), "{}", plan.out);
    let plan = gpuio(dir.path(), &format!("{line} --path staged --gpu software")).exits(0);
    assert!(plan.out.contains("path=staged") && !plan.out.contains("can't run"), "{}", plan.out);
    // No library, and none that is searched for.
    let nothing = "--cufile-lib ./none --gpu software";
    let plan = gpuio(dir.path(), &format!("{line} {nothing}")).exits(0);
    assert!(plan.out.contains("path gds can't run here, so path staged is used"), "{}", plan.out);
    assert!(plan.out.contains("path=staged"), "{}", plan.out);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// The five routes from a drive into a near and into a far GPU; with one GPU what is absent is
/// said, and without any it ends with 3.
#[test]
fn the_preset_routing_runs_each_route_and_says_what_is_absent() {
    let dir = scratch();
    let two = |line: &str| {
        let line = format!("sweep --preset routing {line}");
        finish(command(dir.path()).env("GPUIO_SOFT_GPUS", "2").args(words(&line)))
    };
    let small = "--size 64k --bs 16k --threads 2 --runtime 30ms --ramp 0 --repeats 1 -o s";
    let ran = two(&format!("--gpu software:0,1 {small}")).exits(0);
    let found = points(&dir.path().join("s"));
    let places: Vec<&str> = found.iter().map(|(place, _)| place.as_str()).collect();
    let (near, far) = ("software:0", "software:1");
    let routes = [(near, "gds"), (near, "staged"), (far, "gds"), (far, "staged"), (far, "routed")];
    assert_eq!(places, routes.map(|(gpu, path)| format!("{gpu} {path}")), "{ran:#?}");
    assert!(found.iter().all(|(_, records)| records.len() == 1), "{ran:#?}");
    let routed: Value =
        serde_json::from_str(&records(&dir.path().join("s"))["point-0005-run-001.json"]).unwrap();
    assert_eq!(routed["plan"]["jobs"][0]["via"]["gpu"]["index"], 0);
    assert!(ran.out.contains("software:0 counts as near"), "{}", ran.out);
    // As many I/Os under way on each: they compare without a word about depth.
    assert!(
        ran.out.contains("gpuio compare s --axis") && !ran.out.contains("--despite"),
        "{ran:#?}"
    );
    gpuio(dir.path(), "compare s --axis path=gds,staged").exits(0);
    assert!(ran.out.contains("it is not varied"), "a local drive: {}", ran.out);

    let one = two("--gpu software --dry-run").exits(0);
    assert!(one.out.starts_with("2 points, 3 runs each"), "{}", one.out);
    assert!(one.out.contains("No routes to a far GPU"), "{}", one.out);
    let settings = "--vary cufile.properties.use_poll_mode=false,true";
    let varied = two(&format!("--gpu software:0,1 --dry-run {settings}")).exits(0);
    assert!(varied.out.starts_with("7 points"), "cuFile's paths twice: {}", varied.out);
}

#[test]
fn the_help_names_every_preset() {
    let dir = scratch();
    let known = gpuio(dir.path(), "sweep --preset none-such").exits(2).err;
    let help = gpuio(dir.path(), "sweep --help").exits(0).out;
    let names: Vec<&str> =
        known.lines().skip(1).filter_map(|line| line.trim().split(':').next()).collect();
    assert!(names.len() >= 7, "{known}");
    for name in names {
        let word = |word: &str| word.trim_end_matches([',', ';']) == name;
        assert!(help.split_whitespace().any(word), "{name} is not in the help");
    }
}

#[test]
fn the_preset_gdsbench_has_each_direction_straight_and_by_host_memory() {
    let dir = scratch();
    let plan = gpuio(dir.path(), "sweep --preset gdsbench --dry-run --gpu software").exits(0);
    assert!(plan.out.starts_with("24 points, 1 run each"), "{}", plan.out);
    let line = "sweep --preset gdsbench --gpu software --size 64k --threads 1 --runtime 20ms \
                --ramp 0 --vary bs=16k -o s";
    gpuio(dir.path(), line).exits(0);
    let found = points(&dir.path().join("s"));
    assert!(found.len() == 8 && found.iter().all(|(_, records)| records.len() == 1), "{found:?}");
}

#[test]
fn a_point_that_can_not_run_here_is_a_row_with_its_reason() {
    let dir = scratch();
    let ran = small(dir.path(), "--vary path=host,routed --repeats 1 -o s").exits(0);
    assert!(ran.out.contains("path=routed: not available here"), "{ran:#?}");
    assert_eq!(points(&dir.path().join("s"))[0].1.len(), 1);
    // A reason that points share is there once.
    let line = "--vary path=host,routed --vary threads=1,2,3 --repeats 1 -o t";
    let ran = small(dir.path(), line).exits(0);
    assert_eq!(ran.out.matches("not available here").count(), 1, "{ran:#?}");
    assert!(ran.out.contains("path=routed threads=1 and 2 more points: not"), "{ran:#?}");
}

/// Whether a machine's throughput grows with its threads is not known here, and not by one run.
#[test]
fn a_sweep_over_threads_names_the_knee_and_its_rule() {
    let dir = scratch();
    let ran = small(dir.path(), "--vary threads=1,2,4 --vary bs=4k,8k --repeats 1 -o s").exits(0);
    let flat = ran.out.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    for bs in ["4k", "8k"] {
        assert!(flat.contains(&format!("bs={bs}: knee not decided: ")), "{flat}");
    }
    assert!(flat.contains("1 run of a load: too few for a spread; --repeats 5."), "{flat}");
    assert!(flat.contains("grew by more than 10 % for a doubling of threads"), "{flat}");
    let two = small(dir.path(), "--vary threads=1,2 --repeats 1 -o t").exits(0);
    assert!(!two.out.contains("knee"), "{}", two.out);
}

#[test]
fn a_run_with_errors_is_kept_and_ends_its_point() {
    let dir = scratch();
    let line = format!("{COUNTED} --vary threads=1,2 --repeats 2 --inject eio=5%,seed=1 -o s");
    for _ in 0..2 {
        let ran = gpuio(dir.path(), &line).exits(1);
        assert!(ran.out.contains("threads=1: failed: I/Os failed"), "{ran:#?}");
        assert_eq!(records(&dir.path().join("s")).len(), 2, "one of each point");
    }
}

#[test]
fn targets_are_directories_or_files() {
    let dir = scratch();
    for name in ["a", "b"] {
        std::fs::create_dir(dir.path().join(name)).unwrap();
    }
    std::fs::write(dir.path().join("c"), vec![1; 65536]).unwrap();
    let line = "sweep --size 64k --bs 4k --runtime 30ms --vary target=a,b,c --repeats 1 -q -o s";
    gpuio(dir.path(), line).exits(0);
    let all = records(&dir.path().join("s"));
    let target = |name: &str| {
        let record: Value = serde_json::from_str(&all[name]).unwrap();
        record["plan"]["jobs"][0]["targets"][0]["path"].as_str().unwrap().to_owned()
    };
    assert_eq!(target("point-0001-run-001.json"), "a/gpuio.0");
    assert_eq!(target("point-0003-run-001.json"), "c");
}

/// The part of a record about its one job.
fn job_of(folder: &Path, name: &str, part: &str) -> Value {
    let record: Value = serde_json::from_str(&records(folder)[name]).unwrap();
    match part {
        "plan" => record["plan"]["jobs"][0].clone(),
        _ => record["jobs"][0].clone(),
    }
}

#[test]
fn runs_find_the_page_cache_alike_unless_another_state_is_requested() {
    let dir = scratch();
    let axis = "--vary threads=1,2 --repeats 1 -q";
    small(dir.path(), &format!("{axis} --buffered -o warm")).exits(0);
    let folder = dir.path().join("warm");
    assert!(sweep_json(&folder)["cache"].as_str().unwrap().starts_with("the same"));
    for name in records(&folder).keys() {
        assert_eq!(job_of(&folder, name, "plan")["pre_read"], true);
        let resident = &job_of(&folder, name, "result")["cache"]["resident_before"];
        assert!(resident.is_null() || resident.as_f64() > Some(0.95), "{name}: {resident}");
    }
    for (flags, pre_read, invalidate, says) in [
        ("--rw write", false, true, "the same"),
        ("--buffered --no-pre-read", false, false, "as the previous run left it"),
        ("--buffered --invalidate", false, true, "cold"),
    ] {
        let name = flags.replace([' ', '-'], "");
        small(dir.path(), &format!("{axis} {flags} -o {name}")).exits(0);
        let folder = dir.path().join(&name);
        let plan = job_of(&folder, "point-0001-run-001.json", "plan");
        assert_eq!(
            (&plan["pre_read"], &plan["invalidate"]),
            (&pre_read.into(), &invalidate.into())
        );
        assert!(sweep_json(&folder)["cache"].as_str().unwrap().starts_with(says), "{flags}");
    }
}

#[test]
fn runs_that_settle_end_then_and_those_that_do_not_are_counted() {
    let dir = scratch();
    let steady = "--set ss_dur=300ms --set ss_interval=100ms --vary threads=1,2 --repeats 1 -q";
    let load = "sweep --size 64k --bs 4k --engine null --rate-iops 1000 --runtime 20s";
    let began = Instant::now();
    let ran = gpuio(dir.path(), &format!("{load} --steady iops:50% {steady} -o a")).exits(0);
    assert!(began.elapsed() < Duration::from_secs(20), "two runs of 20 s were cut short");
    assert!(!ran.out.contains("NOT STEADY"), "{}", ran.out);
    let folder = dir.path().join("a");
    let result = job_of(&folder, "point-0002-run-001.json", "result");
    assert!(result["steady"]["attained_at_ns"].as_u64() >= Some(300_000_000), "{result}");
    let load = load.replace("20s", "500ms");
    let ran = gpuio(dir.path(), &format!("{load} --steady lat:1ns {steady} -o b")).exits(0);
    assert!(ran.out.contains("NOT STEADY in 2 of 2 runs"), "{}", ran.out);
}

#[test]
fn the_preset_clients_says_that_it_is_of_one_host() {
    let dir = scratch();
    let plan = gpuio(dir.path(), "sweep --preset clients --directory . --dry-run").exits(0);
    assert!(plan.out.starts_with("28 points, 3 runs each"), "{}", plan.out);
    assert!(plan.out.contains("of this host"), "{}", plan.out);
    let line = "sweep --preset clients --directory d --size 64k --runtime 30ms --ramp 0 \
                --vary threads=1,2 --vary bs=4k --repeats 1 -q -o c";
    let ran = gpuio(dir.path(), line).exits(0);
    assert!(ran.out.contains("of this host"), "{}", ran.out);
    let found = points(&dir.path().join("c"));
    let places: Vec<&str> = found.iter().map(|(place, _)| place.as_str()).collect();
    assert_eq!(places, ["read 4k 1", "read 4k 2", "write 4k 1", "write 4k 2"]);
    assert!(found.iter().all(|(_, records)| records.len() == 1), "{}", ran.out);
}

#[test]
fn a_search_ends_at_the_bound() {
    let dir = scratch();
    let over = "--over threads=1..4";
    let line = format!("{COUNTED} --latency-target p50=10s {over} --repeats 1 -o a");
    let ran = gpuio(dir.path(), &line).exits(0);
    assert!(ran.out.contains("kept up to threads=4"), "{ran:#?}");
    assert!(ran.out.contains("the highest load tried; try higher"), "{ran:#?}");
    let found = points(&dir.path().join("a"));
    let places: Vec<&str> = found.iter().map(|(place, _)| place.as_str()).collect();
    assert_eq!(places, ["1", "2", "4"]);
    assert!(found.iter().all(|(_, records)| records.len() == 1), "as many as asked: {found:?}");
    let plan = gpuio(dir.path(), &format!("{COUNTED} --latency-target p50=10s {over} --dry-run"));
    let words = "a search, about 9 runs (unknown time) if runs of a load agree, up to 9 of each";
    assert!(plan.out.contains(words) || plan.err.contains(words), "{plan:#?}");
    let line = format!("{COUNTED} --latency-target p50=1ns {over} --format csv -o b");
    let csv = gpuio(dir.path(), &line).exits(1).out;
    let cells: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let cell = |key| cells[1][cells[0].iter().position(|head| *head == key).unwrap()];
    assert_eq!((cell("within_limit"), cell("of_best_percent")), ("no", ""), "{csv}");
    assert!(["bytes_per_s", "p50_ns", "p99_ns"].iter().all(|key| cells[0].contains(key)), "{csv}");
    let line = format!("{COUNTED} --latency-target p50=1ns {over} -o b");
    let ran = gpuio(dir.path(), &line).exits(1);
    assert!(ran.out.contains("not reached even at threads=1"), "{ran:#?}");
    for format in ["markdown", "html"] {
        let report = gpuio(dir.path(), &format!("report b --format {format} -o -")).exits(0);
        assert!(report.out.contains("not reached even at threads=1"), "{format}");
    }
    // The answer rests on three runs that agree.
    let [(_, records)] = &points(&dir.path().join("b"))[..] else { panic!("one point") };
    assert_eq!(records.len(), 3);
    // A load on the way runs once, and only the last is repeated.
    let line = format!("{COUNTED} --latency-target p50=10s {over} -o c");
    gpuio(dir.path(), &line).exits(0);
    let runs = points(&dir.path().join("c"));
    let runs: Vec<usize> = runs.iter().map(|(_, records)| records.len()).collect();
    assert_eq!(runs, [1, 1, 3]);
}

/// 16 I/Os are too few for p99, whatever the slowest of them took.
#[test]
fn a_percentile_of_too_few_ios_is_no_answer() {
    let dir = scratch();
    let line = "sweep --size 64k --bs 4k --io-size 64k --engine psync --repeats 1 \
                --latency-target p99=10s --over threads=1..2 -o s";
    let ran = gpuio(dir.path(), line).exits(0);
    assert!(ran.out.contains("over threads=1..2: unknown at every load"), "{ran:#?}");
    assert!(!ran.out.contains("reached at") && ran.out.contains("longer --runtime"), "{ran:#?}");
}

/// Each I/O takes 5 ms, one after another: no thread makes more than 200 a second. A limit of the
/// latency alone says nothing of that in a short run.
#[test]
fn a_rate_that_is_not_reached_ends_a_search() {
    let dir = scratch();
    let line = "sweep --size 64k --bs 4k --runtime 1s --engine psync --set inject=delay=5ms \
                --latency-target p50=10s --over rate_iops=100..400 --repeats 1 -o s";
    let ran = gpuio(dir.path(), line).exits(0);
    let found = ran.out.lines().find(|line| line.starts_with("p50=10s over")).unwrap();
    assert!(found.contains("not ") && found.contains(" % of the rate)"), "{ran:#?}");
    assert!(!found.contains("highest load tried"), "{ran:#?}");
}

/// Rows for programs have numbers alone, and what a table has no room for; people get one sentence
/// on bytes that took another path.
#[test]
fn rows_for_programs_have_ends_of_intervals_and_what_the_bytes_took() {
    let dir = scratch();
    let line = "sweep --size 64k --bs 4k --runtime 30ms --vary path=gds,host --vary threads=1,2 \
                --set rw=randread --gpu software -o s";
    let text = gpuio(dir.path(), line).exits(0).out;
    let words = "error: The bytes did not take the requested path at path=gds threads=1";
    assert!(text.contains(words) && !text.contains("mean_bytes_per_s"), "{text}");
    let csv = gpuio(dir.path(), &format!("{line} --format csv")).exits(0).out;
    let mut rows = csv.lines().map(|line| line.split(',').collect::<Vec<&str>>());
    let heads = rows.next().unwrap();
    let rows: Vec<Vec<&str>> = rows.collect();
    assert_eq!(rows.len(), 4, "{csv}");
    for row in &rows {
        let of = |key: &str| row[heads.iter().position(|head| *head == key).unwrap()];
        let number = |key: &str| of(key).parse::<f64>().unwrap_or_else(|_| panic!("{key}: {csv}"));
        let (low, mean, high) = (
            number("ci95_low_bytes_per_s"),
            number("mean_bytes_per_s"),
            number("ci95_high_bytes_per_s"),
        );
        assert!(low < mean && mean < high, "{csv}");
        let share = number("ci95_percent");
        assert!((share - (high - mean) / mean * 100.0).abs() < 1e-6 * share, "{csv}");
        assert!(number("disturbed_runs") <= 3.0 && !of("path_taken").is_empty(), "{csv}");
        let to_gpu = of("path") == "gds";
        assert_eq!(of("software_gpu"), if to_gpu { "true" } else { "false" }, "{csv}");
        assert!(of("as_requested") == "false" || !to_gpu, "{csv}");
    }
    let json = gpuio(dir.path(), &format!("{line} --format json")).exits(0).json();
    let row = &json["sections"][0]["blocks"][0]["rows"][0];
    assert_eq!((&row["path"], &row["as_requested"]), (&"gds".into(), &false.into()), "{row}");
    assert!(row["ci95_percent"].is_number() && row["software_gpu"] == true, "{row}");
    // A sweep is not a record, and what shows it is named.
    for line in ["show s", "show s/sweep.json"] {
        let said = ["this is a sweep", "gpuio report s --format markdown", "gpuio report s makes"];
        gpuio(dir.path(), line).exits(2).prints(&said);
    }
    std::fs::create_dir(dir.path().join("d")).unwrap();
    gpuio(dir.path(), "show d").exits(2).prints(&["a directory is no record", "gpuio report d"]);
    gpuio(dir.path(), "report s -o s.html").exits(0);
    let page = ["s.html: this is a page, and no record", "Save records"];
    gpuio(dir.path(), "show s.html --check").exits(2).prints(&page);
}

/// Paths bring their own depth with them, by which a comparison is refused unless it may differ.
#[test]
fn the_comparison_that_is_suggested_runs_as_printed() {
    let dir = scratch();
    let line = "--vary path=host,staged --gpu software --repeats 2 -o s";
    let ran = small(dir.path(), line).exits(0);
    let words = ran.out.split("gpuio compare ").nth(1).unwrap().split(')').next().unwrap();
    assert!(words.starts_with("s --axis path"), "{words}");
    let compared = gpuio(dir.path(), &format!("compare {words}")).exits(0);
    assert!(!compared.out.contains("0.00000 to"), "{}", compared.out);
    let fixed = small(dir.path(), "--vary threads=1 --repeats 1 -o one").exits(0);
    assert!(!fixed.out.contains("gpuio compare"), "nothing to compare: {}", fixed.out);
}

#[test]
fn a_gpu_that_is_not_here_ends_a_sweep_with_3() {
    let dir = scratch();
    let line = "--vary threads=1,2 --gpu software:7 --repeats 1 -o s";
    let ran = small(dir.path(), line).exits(3);
    assert!(ran.out.contains("there is no GPU 7"), "{ran:#?}");
}

#[test]
fn a_budget_ends_it_and_the_same_command_goes_on() {
    let dir = scratch();
    let line = "--vary threads=1,2 --repeats 1 -o t";
    let ran = small(dir.path(), &format!("{line} --budget 0s")).exits(1);
    assert!(ran.out.contains("budget of"), "{ran:#?}");
    // As an earlier version wrote them, which had another order.
    let base = dir.path().join("t/base.txt");
    let text = std::fs::read_to_string(&base).unwrap();
    let (mut keys, others): (Vec<&str>, Vec<&str>) =
        text.lines().filter(|line| *line != "--set").partition(|line| line.contains('='));
    keys.reverse();
    let set = keys.into_iter().flat_map(|key| ["--set", key]);
    let reversed = set.chain(others).collect::<Vec<_>>().join("\n") + "\n";
    assert_ne!(reversed, text);
    std::fs::write(&base, reversed).unwrap();
    small(dir.path(), line).exits(0);
    assert!(points(&dir.path().join("t")).iter().all(|(_, records)| records.len() == 1));
}

/// A list without the slow runs has a better median, and its records hold.
#[test]
fn a_run_that_was_taken_out_of_the_list_is_missed() {
    let dir = scratch();
    let line = "sweep --size 64k --bs 4k --runtime 30ms --vary path=host --repeats 2 -o s";
    gpuio(dir.path(), line).exits(0);
    gpuio(dir.path(), "show s --check").exits(0);
    let folder = dir.path().join("s");
    let mut sweep = sweep_json(&folder);
    sweep["points"][0]["records"].as_array_mut().unwrap().pop();
    std::fs::write(folder.join("sweep.json"), sweep.to_string()).unwrap();
    let words = ["point-0001-run-002.json", "that sweep.json does not list"];
    let checked = gpuio(dir.path(), "show s --check").exits(1).out;
    let shown = gpuio(dir.path(), "report s --format markdown").exits(0);
    for text in [checked, shown.out + &shown.err] {
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
        assert!(text.contains("sweep.json: the list was changed after gpuio wrote it"), "{text}");
    }
    let page = gpuio(dir.path(), "report s --format markdown").exits(0).out;
    let (top, table) = (page.find("Not all runs that were made"), page.find("\n| "));
    assert!(top.is_some() && top < table, "{page}");
    // Nor without the list: each record says which run it is.
    std::fs::remove_file(folder.join("sweep.json")).unwrap();
    std::fs::remove_file(folder.join("point-0001-run-001.json")).unwrap();
    gpuio(dir.path(), "bench --size 64k --bs 4k --runtime 30ms --directory d -q -o o.json")
        .exits(0);
    for verb in ["report s --format markdown", "compare o.json s --despite all", "show s --check"] {
        let shown = gpuio(dir.path(), verb).out;
        let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("1 record is not here of 2 runs"), "{verb}: {shown}");
    }
}

#[test]
fn a_record_that_sweep_json_does_not_name_yet_is_taken_in() {
    let dir = scratch();
    let line = "--vary threads=1,2 --repeats 1 -o s";
    small(dir.path(), line).exits(0);
    let folder = dir.path().join("s");
    let before = records(&folder);
    let mut sweep = sweep_json(&folder);
    sweep["points"][1]["records"] = serde_json::json!([]);
    sweep["points"][1]["ended"] = Value::Null;
    std::fs::write(folder.join("sweep.json"), sweep.to_string()).unwrap();
    small(dir.path(), line).exits(0);
    assert_eq!(records(&folder), before, "it is not made again");
    assert_eq!(points(&folder)[1].1, ["point-0002-run-001.json"]);
    // One that is named and gone is no sweep to go on with.
    std::fs::remove_file(folder.join("point-0001-run-001.json")).unwrap();
    small(dir.path(), line).exits(2).prints(&["point-0001-run-001.json", "missing"]);
}

#[test]
fn ctrl_c_drops_the_run_under_way_and_a_lock_keeps_others_out() {
    let dir = scratch();
    let line = "sweep --size 64k --bs 4k --vary threads=1,2 --repeats 1 -q -o s";
    let began = Instant::now();
    let child = command(dir.path())
        .args(words(line))
        .args(["--runtime", "600s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let folder = dir.path().join("s");
    until("it never came", || folder.join("data/gpuio.0").exists());
    gpuio(dir.path(), &format!("{line} --runtime 600s"))
        .exits(2)
        .prints(&["another sweep is running"]);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let ran = wait(child, began).exits(1);
    assert!(ran.out.contains("Not finished"), "{ran:#?}");
    assert_eq!(records(&folder).len(), 0);
    let names = crate::tool::tree(&folder);
    assert!(
        !names.iter().any(|name| name.contains("running") || name.contains("draft")),
        "{names:?}"
    );
}

/// Command lines of living processes that name this folder.
fn living(folder: &Path) -> usize {
    let name = folder.to_str().unwrap();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .filter(|line| String::from_utf8_lossy(line).contains(name))
        .count()
}

#[test]
fn killed_at_any_moment_no_run_is_lost_or_made_twice() {
    let dir = scratch();
    let folder = dir.path().join("s");
    let line = format!("sweep {SMALL} --vary threads=1,2 --vary bs=4k,8k --repeats 3 -q");
    let mut seen: BTreeMap<String, String> = BTreeMap::new();
    // Moments that are the same in every run of this test.
    let mut state = 7_u64;
    let mut kills = 0;
    loop {
        let mut child = command(dir.path())
            .args(words(&line))
            .arg("-o")
            .arg(&folder)
            .stdout(std::fs::File::create(dir.path().join("out")).unwrap())
            .stderr(std::fs::File::create(dir.path().join("said")).unwrap())
            .spawn()
            .unwrap();
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Longer from time to time, so that a slow machine comes to an end too.
        let life = Duration::from_millis(5 + (state >> 33) % (120 + 20 * kills));
        let began = Instant::now();
        let ended = loop {
            match child.try_wait().unwrap() {
                Some(status) => break Some(status),
                None if began.elapsed() > life => break None,
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        if let Some(status) = ended {
            let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
            assert!(status.success(), "{status}: {}{}", read("out"), read("said"));
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
        assert!(kills < 200, "it makes no progress");
        until("it never came", || living(&folder) == 0);
        let now = records(&folder);
        for (name, text) in &seen {
            assert_eq!(now.get(name), Some(text), "{name} was lost or made again");
        }
        if folder.join("sweep.json").exists() {
            for name in points(&folder).iter().flat_map(|(_, records)| records) {
                assert!(now.contains_key(name), "{name} is named and not there");
            }
        }
        seen = now;
    }
    assert!(kills >= 3, "{kills} kills test nothing");
    let found = points(&folder);
    assert!(found.len() == 4 && found.iter().all(|(_, records)| records.len() == 3), "{found:?}");
    let all = records(&folder);
    assert_eq!(all.len(), 12);
    for (name, text) in &seen {
        assert_eq!(all.get(name), Some(text), "{name} was lost or made again");
    }
}

/// Files of the user's in the folder of a sweep, and what is in them.
fn users(folder: &Path, names: &[&str]) -> Vec<(std::path::PathBuf, String)> {
    let put = |name: &&str| {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, format!("mine: {name}")).unwrap();
        (path, format!("mine: {name}"))
    };
    names.iter().map(put).collect()
}

#[test]
fn what_a_user_puts_into_the_folder_survives_going_on_and_the_end() {
    let dir = scratch();
    let folder = dir.path().join("s");
    let line = "--vary threads=1,2 --repeats 1 -o s";
    small(dir.path(), &format!("{line} --budget 0s")).exits(1);
    let names = ["data/notes", "data/deep/er", ".running.json", ".draft-sweep.json", "notes.txt"];
    let mine = users(&folder, &names);
    let ran = small(dir.path(), line).exits(0).prints(&["data", "not gpuio's"]);
    assert_eq!(records(&folder).len(), 2, "{ran:#?}");
    for (path, text) in &mine {
        assert_eq!(std::fs::read_to_string(path).unwrap(), *text, "{}", path.display());
    }
    let left: Vec<String> = crate::tool::tree(&folder.join("data"));
    assert_eq!(left, ["deep", "deep/er", "notes"], "the data set goes, and only that");
}

#[test]
fn a_record_or_a_lock_of_the_folder_that_is_somebody_elses_stays() {
    let dir = scratch();
    let folder = dir.path().join("s");
    std::fs::create_dir(&folder).unwrap();
    let victim = dir.path().join("victim");
    std::fs::write(&victim, "mine").unwrap();
    let untouched = || assert_eq!(std::fs::read_to_string(&victim).unwrap(), "mine");
    let line = "--vary threads=1,2 --repeats 1 -o s";
    // The lock as a link, and files that say what a sweep is.
    std::os::unix::fs::symlink(&victim, folder.join(".lock")).unwrap();
    small(dir.path(), line).exits(2).prints(&[".lock"]);
    untouched();
    std::fs::remove_file(folder.join(".lock")).unwrap();
    let mine = users(&folder, &["base.txt"]);
    small(dir.path(), line).exits(2).prints(&["base.txt", "name a new directory"]);
    assert_eq!(std::fs::read_to_string(&mine[0].0).unwrap(), mine[0].1);
    std::fs::remove_file(&mine[0].0).unwrap();
    // A run's record has a name that the user's file has.
    small(dir.path(), &format!("{line} --budget 0s")).exits(1);
    std::os::unix::fs::symlink(&victim, folder.join("point-0002-run-001.json")).unwrap();
    let ran = small(dir.path(), line);
    assert!(ran.code == 1 || ran.code == 2, "{ran:#?}");
    untouched();
    assert!(folder.join("point-0002-run-001.json").is_symlink());
}
