//! Every path with every engine in every direction, verified, on the software GPU.

use std::path::Path;

use crate::record::{check_clean, jobs, n};
use crate::tool::{bench, bench_with, command, file, finish, scratch, words};

const DIRECTIONS: [&str; 6] = ["read", "write", "randread", "randwrite", "rw", "randrw"];

/// The engine as it came up, such as `io_uring (fixed buffers, fixed files)`.
fn actual_engine(job: &serde_json::Value) -> &str {
    job["engine"][0]["actual"].as_str().unwrap()
}

/// All directions of one path and engine in one run, one after another.
fn all_directions(path: &str, engine: &str, verify: bool) {
    let dir = scratch();
    let buffered = path == "cached" || engine == "mmap";
    let host = path == "host";
    let gpu = if host { "" } else { "gpu=software\n" };
    let depth = if host && matches!(engine, "psync" | "mmap") { "" } else { "depth=4\n" };
    let mut text = format!(
        "[global]\npath={path}\nengine={engine}\n{gpu}{depth}bs=64k\nsize=1m\nthreads=2\n\
         loops=2\nverify={}\ndirectory=data\ndirect={}\n",
        if verify { "pass" } else { "off" },
        u8::from(!buffered),
    );
    for rw in DIRECTIONS {
        text.push_str(&format!("[{rw}]\nstonewall\nrw={rw}\n"));
    }
    file(dir.path(), "job.ini", &text);
    let record = bench(dir.path(), "job.ini --format json").exits(0).json();
    check_clean(&record);
    assert_eq!(jobs(&record).len(), DIRECTIONS.len());
    for (plan, job) in jobs(&record) {
        assert!(actual_engine(job).starts_with(engine), "{job}");
        assert_eq!(plan["path"]["choice"]["actual"], path);
        assert_eq!(job["direct_actual"], if buffered { "buffered" } else { "direct" });
        let name = job["name"].as_str().unwrap();
        assert_eq!(n(&job["read"]["ios"]) > 0, name != "write" && name != "randwrite", "{name}");
        assert_eq!(n(&job["write"]["ios"]) > 0, !name.ends_with("read"), "{name}");
        if verify {
            let place = job["verify"]["checked_in"].as_str().unwrap();
            assert_eq!(place.contains("GPU memory"), path != "host", "{place}");
        }
    }
    assert_eq!(record["plan"]["software_gpu"], path != "host");
}

macro_rules! matrix {
    ($($name:ident: $path:literal $engine:literal $verify:literal;)*) => {
        $(#[test] fn $name() { all_directions($path, $engine, $verify); })*
    };
}

matrix! {
    host_psync: "host" "psync" true;
    host_io_uring: "host" "io_uring" true;
    host_io_uring_sqpoll: "host" "io_uring-sqpoll" true;
    host_libaio: "host" "libaio" true;
    host_mmap: "host" "mmap" true;
    host_pool: "host" "pool" true;
    host_null: "host" "null" false;
    staged_psync: "staged" "psync" true;
    staged_io_uring: "staged" "io_uring" true;
    staged_libaio: "staged" "libaio" true;
    staged_mmap: "staged" "mmap" true;
    staged_pool: "staged" "pool" true;
    staged_null: "staged" "null" false;
    cached_psync: "cached" "psync" true;
    cached_io_uring: "cached" "io_uring" true;
    cached_libaio: "cached" "libaio" true;
    cached_mmap: "cached" "mmap" true;
    cached_pool: "cached" "pool" true;
    managed_psync: "managed" "psync" true;
    managed_io_uring: "managed" "io_uring" true;
    managed_pool: "managed" "pool" true;
    gather_psync: "gather" "psync" true;
    gather_io_uring: "gather" "io_uring" true;
    gather_libaio: "gather" "libaio" true;
    gather_mmap: "gather" "mmap" true;
    gather_pool: "gather" "pool" true;
}

/// A GPU near the drive, through which the bytes go to two others.
#[test]
fn routed_through_a_gpu() {
    let dir = scratch();
    let line = "bench --path routed --gpu software:0,2 --via-gpu 1 --rw randrw --bs 64k --size 1m \
                --threads 2 --runtime 100ms --verify --directory d --keep";
    let run = |more: &str| {
        let mut gpuio = command(dir.path());
        gpuio.env("GPUIO_SOFT_GPUS", "3");
        finish(gpuio.args(crate::tool::words(&format!("{line} {more}"))))
    };
    let record = run("--format json").exits(0).json();
    check_clean(&record);
    let (plan, job) = jobs(&record)[0];
    assert_eq!(plan["via"]["gpu"]["index"], 1);
    let (gpus, via) = (&job["gpus"], &job["via"]);
    assert_eq!((&gpus[0]["index"], &gpus[1]["index"]), (&0.into(), &2.into()));
    let completed = n(&job["read"]["bytes"]) + n(&job["write"]["bytes"]);
    assert_eq!(n(&gpus[0]["bytes"]) + n(&gpus[1]["bytes"]), completed);
    assert_eq!((&via["gpu"], &via["through_host"]), (&1.into(), &false.into()));
    assert_eq!(via["read"]["host_near_bytes"], via["read"]["near_far_bytes"]);
    assert_eq!(n(&via["write"]["near_far_bytes"]), n(&job["write"]["bytes"]));
    let text = run("").exits(0).out;
    for part in ["by GPU:", "through another GPU", "on the route to the others"] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
}

/// The GPU starts the I/O, by page cache and past it, in every direction; and what stands for that.
/// Past it or not has nothing to do with the direction.
#[test]
fn started_by_the_gpu() {
    if let Err(why) = gpuio_io::path::rings_available() {
        return eprintln!("skipped: {why}");
    }
    for (open, directions) in [("--buffered", &["randrw"][..]), ("--direct", &DIRECTIONS)] {
        let dir = scratch();
        for rw in directions {
            let line = format!(
                "--path initiated --gpu software --rw {rw} --bs 64k --size 1m --depth 8 \
                 --threads 2 --rings 3 --loops 2 --verify --directory d --keep {open}"
            );
            let shown = bench(dir.path(), &format!("{line} --evidence -o {rw}.json")).exits(0).out;
            let record = std::fs::read(dir.path().join(format!("{rw}.json"))).unwrap();
            let record = serde_json::from_slice(&record).unwrap();
            check_clean(&record);
            let (plan, job) = jobs(&record)[0];
            let initiated = &job["initiated"];
            let blocks = n(&job["read"]["ios"]) + n(&job["write"]["ios"]);
            assert_eq!((&plan["rings"], &initiated["rings"]), (&3.into(), &6.into()));
            assert_eq!((n(&initiated["entries"]), n(&initiated["commands"])), (blocks, blocks));
            let place = job["verify"]["checked_in"].as_str().unwrap();
            assert!(place.contains("GPU memory"), "{place}");
            let own = &job["proof"]["evidence"][0];
            let said = format!("the GPU started {blocks} of {blocks} I/Os");
            assert!(own["why"].as_str().unwrap().starts_with(&said), "{own}");
            assert_eq!(own["assessment"], "supports", "{own}");
            let words = format!("{blocks} of {blocks} I/Os through 6 rings of io_uring");
            let out = shown.split_whitespace().collect::<Vec<_>>().join(" ");
            for words in ["started by the GPU", &words, &said] {
                assert!(out.contains(words), "no {words:?} in {out}");
            }
        }
    }
    let dir = scratch();
    let line = "--path initiated --gpu software --rw randread --bs 4k --size 256k --depth 6 \
                --rings 2 --chain --loops 2 --verify=inline --directory d --format json";
    let record = bench(dir.path(), line).exits(0).json();
    check_clean(&record);
    let (plan, job) = jobs(&record)[0];
    assert_eq!((&plan["chain"], n(&job["read"]["ios"])), (&true.into(), 128));
    assert_eq!(n(&job["verify"]["timed_blocks"]), 128, "{}", job["verify"]);
    for (more, words) in [
        ("--chain --rw read", "use rw=randread alone"),
        ("--chain --rw randrw", "use rw=randread alone"),
        ("--chain --rw randread --bs 4k:8k:4k", "have one size"),
        ("--rings 2 --depth 200", "200 I/Os in flight on 2 rings"),
        ("--rings 9 --depth 8", "fill 8"),
        ("--engine psync", "the GPU itself starts the I/O"),
        ("--memory malloc", "ends in device, vmm or pinned memory"),
    ] {
        let ran = bench(dir.path(), &format!("--path initiated --gpu software {more}"));
        assert!(ran.exits(2).err.contains(words), "{more}");
    }
}

/// Each block is read once and placed in all GPUs.
#[test]
fn read_once_placed_in_all_gpus() {
    let dir = scratch();
    let run = |peer: &str, more: &str| {
        let line = format!(
            "bench --fan-out --gpu software --bs 64k --size 1m --runtime 100ms --verify \
             --directory d {more}"
        );
        let mut gpuio = command(dir.path());
        gpuio.env("GPUIO_SOFT_GPUS", "3").env("GPUIO_SOFT_PEER", peer);
        finish(gpuio.args(crate::tool::words(&line)))
    };
    let record = run("1", "--format json").exits(0).json();
    check_clean(&record);
    let (plan, job) = jobs(&record)[0];
    assert_eq!(plan["path"]["choice"]["actual"], "fan-out");
    assert_eq!((n(&plan["threads"]), plan["gpus"].as_array().unwrap().len()), (3, 3));
    let placed = n(&job["fan_out"]["placed_bytes"]);
    assert_eq!((n(&job["fan_out"]["gpus"]), placed), (3, 3 * n(&job["read"]["bytes"])));
    let text = run("1", "").exits(0).out;
    assert!(text.contains("read once, placed in several GPUs:"), "{text}");
    let refused = run("0", "").exits(1).err;
    assert!(refused.contains("can't reach the memory of GPU"), "{refused}");
    let text = run("0", "--set via_peer=any").exits(0).out;
    assert!(text.contains("copies between the GPUs went through host memory"), "{text}");
    run("1", "--path staged").exits(2).prints(&["--fan-out", "--path"]);
    run("1", "--rw write").exits(2).prints(&["path fan-out only reads"]);
}

/// Every kind of memory that bytes can end in.
#[test]
fn memories() {
    for (path, memories) in [
        ("host", &["malloc", "mmap"][..]),
        ("staged", &["device", "vmm", "pinned", "malloc", "mmap"]),
        ("gather", &["device", "vmm", "pinned", "malloc", "mmap"]),
    ] {
        for memory in memories {
            let dir = scratch();
            let gpu = if path == "host" { "" } else { "--gpu software" };
            let line = format!(
                "--path {path} {gpu} --memory {memory} --rw randrw --bs 32k --size 1m \
                 --runtime 100ms --verify --directory d --format json"
            );
            let record = bench(dir.path(), &line).exits(0).json();
            check_clean(&record);
            let (plan, job) = jobs(&record)[0];
            assert_eq!(plan["memory"], *memory);
            let place = job["verify"]["checked_in"].as_str().unwrap();
            let on_gpu = matches!(*memory, "device" | "vmm");
            assert_eq!(place.contains("GPU memory"), on_gpu, "{memory}: {place}");
        }
    }
}

/// Pinned memory on the host path comes from the driver, and no byte goes through a GPU.
#[test]
fn pinned_memory_on_the_host_path() {
    let dir = scratch();
    let line = "--path host --gpu software --memory pinned --rw randread --bs 32k --size 1m \
                --runtime 100ms --verify --directory d --format json";
    let record = bench(dir.path(), line).exits(0).json();
    check_clean(&record);
    assert_eq!(record["plan"]["software_gpu"], true);
}

/// A run whose bytes did not take the required path, or whose path is not proven, fails with one
/// line that says why, whatever the format.
#[test]
fn a_required_path_that_is_not_proven_is_exit_code_1() {
    let dir = scratch();
    let load = "--rw read --bs 64k --size 1m --runtime 100ms --directory d --keep --format json";
    let gds = "--path gds --gpu software";
    let plain = bench(dir.path(), &format!("{load} {gds}")).exits(0).json();
    assert_eq!(plain["jobs"][0]["proof"]["as_requested"], false, "{plain}");
    let ran = bench(dir.path(), &format!("{load} {gds} --require-path")).exits(1);
    let line = "error: job 'job' requires path gds (require_path): ";
    assert_eq!(ran.err.matches(line).count(), 1, "{}", ran.err);
    let sentence = ran.json()["jobs"][0]["proof"]["sentence"].as_str().unwrap().to_owned();
    assert!(ran.err.contains(&sentence), "{}", ran.err);
    // Job files have it as a key.
    file(dir.path(), "a.ini", "[a]\nengine=null\nsize=1m\ndirectory=d\nruntime=1\nrequire_path\n");
    let null = bench(dir.path(), "a.ini -q").exits(1);
    assert!(null.err.contains("job 'a' requires path host (require_path): "), "{}", null.err);
    // Buffered reads of cached files are what was requested.
    let host = "--path host --buffered --pre-read --require-path";
    bench(dir.path(), &format!("{load} {host}")).exits(0);
}

/// Each format says that no hardware was in the run, where nobody can miss it.
#[test]
fn software_gpu_in_every_format() {
    let dir = scratch();
    let load = "--rw read --bs 64k --size 1m --runtime 100ms --directory d --keep";
    for format in ["text", "csv", "json", "gdsio", "plan"] {
        let ran = bench(dir.path(), &format!("{load} --gpu software --format {format}")).exits(0);
        let low = ran.out.to_lowercase().replace('_', " ");
        assert!(low.contains("software gpu"), "{format}: {}", ran.out);
    }
    let ran = bench(dir.path(), &format!("{load} --path host --gpu none --format text")).exits(0);
    assert!(!ran.out.to_lowercase().contains("software gpu"), "{}", ran.out);
}

/// `-o` saves by the file's extension, prints the table too, and says where the record is.
#[test]
fn output_by_extension() {
    let dir = scratch();
    let load = "--rw read --bs 64k --size 1m --runtime 100ms --directory d --keep";
    for (name, begins) in [("r.json", "{"), ("r.csv", "job,"), ("r.txt", "gpuio "), ("r.ini", "# ")]
    {
        let ran = bench(dir.path(), &format!("{load} -o {name}")).exits(0);
        let saved = std::fs::read_to_string(dir.path().join(name)).unwrap();
        assert!(saved.contains(begins), "{name}: {saved}");
        assert!(ran.out.contains(&format!("Record: {name}")), "{}", ran.out);
        assert!(ran.out.contains("read"), "{}", ran.out);
    }
    let quiet = bench(dir.path(), &format!("{load} -q -o q.json")).exits(0);
    assert_eq!(quiet.out, "");
    let saved = std::fs::read_to_string(dir.path().join("q.json")).unwrap();
    check_clean(&serde_json::from_str(&saved).unwrap());
}

/// Two jobs on two GPUs in one run, together, threads dealt out to the GPUs in turn.
#[test]
fn two_gpus() {
    let dir = scratch();
    file(
        dir.path(),
        "two.ini",
        "[global]\nrw=randread\nbs=16k\nsize=1m\nthreads=2\nruntime=150ms\nverify=pass\n\
         directory=d\n[one]\ngpu=software:0\nfile_prefix=one\n[two]\ngpu=software:1\n\
         file_prefix=two\nengine=psync\n[both]\nstonewall\ngpu=software:0,1\nfile_prefix=one\n",
    );
    let ran = bench_with(dir.path(), &[("GPUIO_SOFT_GPUS", "2")], "two.ini --format json");
    let record = ran.exits(0).json();
    check_clean(&record);
    let jobs = jobs(&record);
    let groups: Vec<u64> = jobs.iter().map(|(_, job)| n(&job["group"])).collect();
    assert_eq!(groups, [0, 0, 1]);
    assert_eq!(jobs[0].0["gpus"][0]["index"], 0);
    assert_eq!(jobs[1].0["gpus"][0]["index"], 1);
    let engine = jobs[0].0["engine"]["actual"].as_str().unwrap();
    assert!(
        actual_engine(jobs[0].1).starts_with(engine) && engine != "psync",
        "{}",
        actual_engine(jobs[0].1)
    );
    assert_eq!(actual_engine(jobs[1].1), "psync", "the other job's engine is not this one's");
    let dealt: Vec<&serde_json::Value> =
        jobs[2].0["workers"].as_array().unwrap().iter().map(|w| &w["gpu"]).collect();
    assert_eq!(dealt, [0, 1]);
}

/// Without any GPU `all` runs what there is and says what it left out and why.
#[test]
fn all_paths_without_a_gpu() {
    let dir = scratch();
    let load =
        "--path all --no-ceilings --rw read --bs 64k --size 1m --runtime 100ms --directory d";
    let record = no_driver(dir.path(), &format!("{load} --format json")).exits(0).json();
    check_clean(&record);
    assert_eq!(jobs(&record).len(), 1);
    assert_eq!(record["plan"]["jobs"][0]["path"]["choice"]["actual"], "host");
    let out = record["plan"]["left_out"].as_array().unwrap();
    let names: Vec<&str> = out.iter().map(|out| out["path"].as_str().unwrap()).collect();
    let cufile = ["gds", "gds-stream", "gds-batch", "gds-batch-stream"];
    let ours = [
        "staged",
        "cached",
        "managed",
        "gather",
        "mapped",
        "resident",
        "initiated",
        "routed",
        "fan-out",
    ];
    let core = ["library", "library-stream", "library-batch"];
    assert_eq!(names, [ours.as_slice(), &core, &cufile].concat());
    assert!(out.iter().all(|out| out["why"].as_str().unwrap().len() > 10), "{out:?}");
    let ran = no_driver(dir.path(), load).exits(0);
    let line = "not here: staged, cached, managed, gather, mapped, resident, initiated, routed, \
                fan-out, ";
    assert_eq!(ran.out.matches(line).count(), 1, "{}", ran.out);
    assert!(ran.out.contains("/nonexistent/libcuda.so.1"), "{}", ran.out);
    // Once is enough.
    assert_eq!(ran.err, "");
}

/// A path that was named never falls back.
#[test]
fn a_named_path_without_a_gpu() {
    let dir = scratch();
    let all = words(
        "staged cached managed gather mapped resident routed fan-out library library-stream \
                 library-batch gds gds-batch host,staged",
    );
    for path in all {
        let line = format!("--path {path} --rw read --bs 64k --size 1m --directory d");
        let ran = no_driver(dir.path(), &line).exits(3).prints(&["needs a GPU", "--gpu software"]);
        assert_eq!(ran.out, "");
        assert!(!dir.path().join("d").exists());
    }
}

/// `auto` alone chooses: by the size of blocks, and without a GPU the host path, with its reason
/// in the record and in the text.
#[test]
fn auto_says_why() {
    let dir = scratch();
    // Time for a block of 4 MiB on a busy machine.
    let load = "--path auto --size 4m --runtime 1s --directory d";
    for (bs, want, reason) in [
        ("4k", "gather", "4K blocks, one launch carries 128"),
        ("1m", "gather", "1M blocks, one launch carries 4"),
        ("4m", "gather", "4M blocks: few large copies"),
    ] {
        let line = format!("{load} --gpu software --bs {bs}");
        let record = bench(dir.path(), &format!("{line} --format json")).exits(0).json();
        check_clean(&record);
        let choice = &record["plan"]["jobs"][0]["path"]["choice"];
        assert_eq!((&choice["requested"], &choice["actual"]), (&"auto".into(), &want.into()));
        assert!(choice["why"].as_str().unwrap().starts_with(reason), "{choice}");
        let text = bench(dir.path(), &line).exits(0).out;
        assert!(text.contains(&format!("auto → {want}: {reason}")), "{text}");
        assert!(record["cufile"].is_null(), "it may not stay open");
    }
    let ran = no_driver(dir.path(), load).exits(0);
    assert!(ran.out.contains("auto → host: no GPU memory to end in: "), "{}", ran.out);
    let none = ["there is no GPU 0: this machine has none"];
    no_driver(dir.path(), &format!("{load} --gpu 0")).exits(3).prints(&none);
    // The quick run, and the host path, are no way out.
    no_driver(dir.path(), "--gpu 0").exits(3).prints(&none);
    no_driver(dir.path(), "--gpu 0 --path host --size 1m --directory d").exits(3).prints(&none);
    let plain = "--size 4m --runtime 100ms --directory d";
    let plain = bench(dir.path(), plain).exits(0).out;
    assert!(!plain.contains("auto →"), "nothing was left to gpuio: {plain}");
}

/// A run where the system's driver is a library that is not there.
fn no_driver(dir: &Path, line: &str) -> crate::tool::Ran {
    let mut bench = command(dir);
    bench.env("GPUIO_LIBCUDA", "/nonexistent/libcuda.so.1");
    finish(bench.arg("bench").args(crate::tool::words(line)))
}

/// `list` names everything that can be requested.
#[test]
fn list_names_all() {
    let dir = scratch();
    let ran = crate::tool::gpuio(dir.path(), "list").exits(0);
    for name in words(
        "host staged cached managed gather routed fan-out gds gds-stream gds-batch \
         gds-batch-stream auto all nvidia-fs libcufile psync io_uring libaio mmap null pool \
         text json csv gdsio plan software",
    ) {
        assert!(ran.out.lines().any(|line| line.trim_start().starts_with(name)), "{name}");
    }
    assert!(crate::tool::tree(dir.path()).is_empty());
}
