//! Path `gds`: NVIDIA's cuFile library, here the stand-in that goes with the software GPU.

use std::path::Path;

use serde_json::Value;

use crate::record::{check_clean, jobs, n};
use crate::tool::{GPUIO, Ran, command, finish, scratch, words};

const LOAD: &str = "--path gds --gpu software --rw randrw --bs 32k --size 1m --loops 4 \
                    --directory d --keep";

fn run(dir: &Path, line: &str, environment: &[(&str, &str)]) -> Ran {
    let temporary = dir.join("tmp");
    std::fs::create_dir_all(&temporary).unwrap();
    let mut bench = command(dir);
    bench.envs(environment.iter().copied()).env("TMPDIR", &temporary);
    let ran = finish(bench.arg("bench").args(words(line)));
    // Nothing of a configuration or a log is left, however the run ended.
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0, "{ran:?}");
    ran
}

fn json(dir: &Path, line: &str, environment: &[(&str, &str)]) -> Value {
    run(dir, &format!("{LOAD} {line} --format json"), environment).exits(0).json()
}

fn verified(path: &str, streams: u64, memories: &[&str]) {
    for memory in memories {
        let dir = scratch();
        let load = LOAD.replace("--path gds", &format!("--path {path}"));
        let line = format!("{load} --memory {memory} --verify --format json");
        let record = run(dir.path(), &line, &[]).exits(0).json();
        check_clean(&record);
        let (plan, job) = jobs(&record)[0];
        assert_eq!(
            (&plan["engine"]["actual"], &plan["streams"]),
            (&"none (cuFile)".into(), &streams.into())
        );
        assert_eq!(plan["register_buffer"], true);
        let place = job["verify"]["checked_in"].as_str().unwrap();
        assert_eq!(place.contains("GPU memory"), matches!(*memory, "device" | "vmm"), "{place}");
        let latency = &job["read"]["latency"];
        assert!(latency["gpu"].is_null(), "{latency}");
        assert_eq!(n(&job["file_leg"]["faults"]), 0);
        assert!(n(&job["file_leg"]["read_ios"]) >= n(&job["read"]["ios"]));
        assert_eq!(record["cufile"]["stand_in"], true);
    }
}

/// fio's engine means the path: the library is opened, and the bytes are verified.
#[test]
fn fios_engine_libcufile_runs() {
    let dir = scratch();
    for (io, path) in [("", "gds"), ("cuda_io=cufile\n", "gds"), ("cuda_io=posix\n", "staged")] {
        let file = format!(
            "[t]\nioengine=libcufile\n{io}rw=read\nbs=64k\nsize=1m\ndirectory=d\nverify=pass\n"
        );
        std::fs::write(dir.path().join("t.fio"), file).unwrap();
        let record = run(dir.path(), "t.fio --gpu software --format json", &[]).exits(0).json();
        check_clean(&record);
        let (plan, _) = jobs(&record)[0];
        assert_eq!(plan["path"]["choice"]["actual"], path, "{io}");
    }
    let set = "t.fio --gpu software --cufile-set properties.use_poll_mode=false --format json";
    let file = "[t]\nioengine=libcufile\nrw=read\nbs=64k\nsize=1m\ndirectory=d\n";
    std::fs::write(dir.path().join("t.fio"), file).unwrap();
    run(dir.path(), set, &[]).exits(0);
}

const MEMORIES: &[&str] = &["device", "vmm", "pinned", "malloc", "mmap"];

#[test]
fn every_memory_is_verified_and_has_one_leg() {
    verified("gds", 0, MEMORIES);
}

#[test]
fn streams_are_verified_and_have_one_leg() {
    verified("gds-stream", 8, MEMORIES);
}

#[test]
fn batches_are_verified_and_have_one_leg() {
    // Batches of NVIDIA's library do not take host memory.
    verified("gds-batch", 0, &["device", "vmm"]);
    verified("gds-batch --depth 20 --gather-batch 3", 0, &["device"]);
}

#[test]
fn batches_in_streams_are_verified_and_have_one_leg() {
    verified("gds-batch-stream --depth 20 --gather-batch 4", 5, MEMORIES);
}

/// The stand-in takes poll mode by its function only, so what is in force came that way.
#[test]
fn poll_mode_in_force_is_in_the_record() {
    let dir = scratch();
    let mode = |record: &Value| {
        let used = &record["cufile"];
        (used["poll_mode"].as_bool(), used["poll_threshold_kib"].as_u64())
    };
    assert_eq!(mode(&json(dir.path(), "", &[])), (Some(false), Some(4)));
    let on = "--cufile-set properties.use_poll_mode=true";
    assert_eq!(mode(&json(dir.path(), on, &[])), (Some(true), Some(4)));
    let more = format!("{on} --cufile-set properties.poll_mode_max_size_kb=16");
    assert_eq!(mode(&json(dir.path(), &more, &[])), (Some(true), Some(16)));
}

#[test]
fn a_batch_that_can_not_be_set_up_is_reported_and_left_out_of_all_paths() {
    let dir = scratch();
    let fail = [("GPUIO_SOFT_CUFILE_FAIL", "cuFileBatchIOSetUp:5049")];
    let batch = LOAD.replace("--path gds", "--path gds-batch");
    let named = run(dir.path(), &batch, &fail).exits(1);
    for word in ["cuFileBatchIOSetUp", "5049", "compatibility mode"] {
        assert!(named.err.contains(word), "{word}: {named:?}");
    }
    let all = LOAD.replace("--path gds", "--path all --no-ceilings");
    let record = run(dir.path(), &format!("{all} --format json"), &fail).exits(0).json();
    let left = record["plan"]["left_out"].as_array().unwrap();
    let names: Vec<&str> = left.iter().map(|out| out["path"].as_str().unwrap()).collect();
    assert_eq!(names, ["routed", "fan-out", "gds-batch"]);
    assert!(left[2]["why"].as_str().unwrap().contains("5049"), "{left:?}");
}

#[test]
fn settings_lie_on_the_users_configuration_and_the_record_has_all() {
    let dir = scratch();
    let theirs = dir.path().join("cufile.json");
    let text = "{ // theirs\n \"properties\": { \"use_poll_mode\": false, }, }";
    std::fs::write(&theirs, text).unwrap();
    let line = "--cufile-set properties.allow_compat_mode=true --cufile-set logging.level=TRACE";
    let theirs = theirs.to_str().unwrap();
    let record = json(dir.path(), line, &[("CUFILE_ENV_PATH_JSON", theirs)]);
    let used = &record["cufile"];
    assert_eq!(used["config_from"], theirs);
    assert_eq!(used["config"]["properties.use_poll_mode"], "false");
    assert_eq!(used["config"]["properties.allow_compat_mode"], "true");
    assert_eq!(used["config"]["logging.level"], "\"TRACE\"");
    assert!(used["config"]["logging.dir"].as_str().unwrap().contains("gpuio-cufile-"));
    assert!(used["library"].as_str().unwrap().ends_with("libgpuio_softcufile.so"));
    assert_eq!(std::fs::read_to_string(theirs).unwrap(), text);
}

#[test]
fn codes_reach_the_report() {
    let dir = scratch();
    let fail = [("GPUIO_SOFT_CUFILE_FAIL", "cuFileRead:5011:1:1")];
    let ran = run(dir.path(), &format!("{LOAD} --format json"), &fail).exits(1);
    let record = ran.json();
    let failure = &jobs(&record)[0].1["failures"][0];
    assert_eq!((&failure["leg"], n(&failure["times"])), (&"unknown".into(), 1));
    let what = failure["what"].as_str().unwrap();
    assert!(what.contains("5011") && what.contains("CUDA_DRIVER_ERROR"), "{what}");
}

#[test]
fn a_file_that_cufile_refuses_is_reported_and_left_out_of_all_paths() {
    let dir = scratch();
    let fail = [("GPUIO_SOFT_CUFILE_FAIL", "cuFileHandleRegister:5030")];
    let named = run(dir.path(), LOAD, &fail).exits(1);
    for word in ["cuFileHandleRegister", "5030", "INTERNAL_ERROR", "gpuio.0"] {
        assert!(named.err.contains(word), "{word}: {named:?}");
    }
    let all = LOAD.replace("--path gds", "--path all --no-ceilings");
    let record = run(dir.path(), &format!("{all} --format json"), &fail).exits(0).json();
    let left = &record["plan"]["left_out"];
    let names = [0, 1, 2].map(|at| left[at]["path"].as_str().unwrap());
    assert_eq!(names, ["routed", "fan-out", "gds"]);
    assert!(left[2]["why"].as_str().unwrap().contains("5030"));
    assert!(record["cufile"].is_null());
}

#[test]
fn what_is_not_here_or_makes_no_sense() {
    let dir = scratch();
    let cases: [(&str, i32, &[&str]); 9] = [
        ("--cufile-lib /nowhere/libcufile.so.0", 3, &["/nowhere/libcufile.so.0", "--cufile-lib"]),
        ("--cufile-lib libc.so.6", 3, &["cuFileDriverOpen", "no cuFile library"]),
        ("--engine psync", 2, &["path gds has no engine"]),
        ("--inject eio=1%", 2, &["path gds has no engine"]),
        ("--cufile-set compat", 2, &["--cufile-set", "key=value"]),
        ("--cufile-set properties.nonsense=1", 2, &["no key 'properties.nonsense'"]),
        ("--cufile-set properties.alow_compat_mode=true", 2, &["allow_compat_mode"]),
        ("--cufile-set execution.max_io_threads=500", 2, &["max_io_threads", "from 0 to 128"]),
        ("--set cufile.properties.use_poll_mode=1", 2, &["use_poll_mode", "true or false"]),
    ];
    for (flags, code, says) in &cases {
        run(dir.path(), &format!("{LOAD} {flags}"), &[]).exits(*code).prints(says);
    }
    let without = "--path host --size 1m --directory d --cufile-set execution.max_io_threads=2";
    run(dir.path(), without, &[]).exits(2).prints(&["--path gds"]);
    let gone = [("CUFILE_ENV_PATH_JSON", "/nowhere/cufile.json")];
    run(dir.path(), LOAD, &gone).exits(3).prints(&["/nowhere/cufile.json"]);
}

#[test]
fn a_plan_repeats_itself() {
    let dir = scratch();
    let line = format!("{LOAD} --set skip_bufregister=1 --dry-run");
    let plan = run(dir.path(), &line, &[]).exits(0).out;
    assert!(plan.contains("skip_bufregister = 1") && !plan.contains("\nengine ="), "{plan}");
    std::fs::write(dir.path().join("plan.ini"), &plan).unwrap();
    let again = run(dir.path(), "plan.ini --dry-run", &[]).exits(0).out;
    // Reasons name the request; what will happen is the same.
    let settings = |text: &str| -> Vec<String> {
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    };
    assert_eq!(settings(&again), settings(&plan));
}

const GDS: &str = "path=gds\ngpu=software\nrw=randread\nbs=32k\nsize=1m\nruntime=100ms\n\
                   directory=d\nkeep=1\n";

/// Two configurations fail in one process, which reads cuFile's configuration once.
#[test]
fn two_configurations_of_cufile_run_in_turns() {
    let dir = scratch();
    let poll = "cufile.properties.use_poll_mode=true\n";
    std::fs::write(dir.path().join("a.ini"), format!("[one]\n{GDS}")).unwrap();
    std::fs::write(dir.path().join("b.ini"), format!("[one]\n{GDS}{poll}")).unwrap();
    for line in ["--ab a.ini b.ini --rounds 2 -o kept", "--ab a.ini b.ini --rounds 2"] {
        let ran = run(dir.path(), line, &[]).exits(0);
        assert!(ran.out.contains("settings of cuFile"), "{ran:?}");
        assert!(ran.out.contains("properties.use_poll_mode=true"), "{ran:?}");
        assert!(ran.out.contains("2 runs each"), "{ran:?}");
    }
    for (name, mode) in [("a-02", false), ("b-02", true)] {
        let text = std::fs::read_to_string(dir.path().join(format!("kept/{name}.json"))).unwrap();
        let record: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(record["cufile"]["poll_mode"], mode, "{name}");
    }
    let paths = run(dir.path(), "--ab a.ini a.ini --dry-run", &[]).exits(0);
    assert!(!paths.out.contains("cufile."), "{paths:?}");
}

#[test]
fn settings_of_a_job_file_are_in_plan_and_record() {
    let dir = scratch();
    let text = format!("[global]\ncufile.execution.max_io_threads=8\n[one]\n{GDS}");
    std::fs::write(dir.path().join("a.ini"), &text).unwrap();
    let record = run(dir.path(), "a.ini --format json", &[]).exits(0).json();
    assert_eq!(record["cufile"]["config"]["execution.max_io_threads"], "8");
    assert_eq!(record["plan"]["cufile"]["execution.max_io_threads"], "8");
    let plan = record["plan_text"].as_str().unwrap();
    assert!(plan.contains("cufile.execution.max_io_threads = 8\n"), "{plan}");
    std::fs::write(dir.path().join("again.ini"), plan).unwrap();
    let again = run(dir.path(), "again.ini --dry-run", &[]).exits(0).out;
    assert!(again.contains("cufile.execution.max_io_threads = 8\n"), "{again}");
    // A flag lies on top of the file.
    let line = "a.ini --format json --cufile-set execution.max_io_threads=2";
    let flag = run(dir.path(), line, &[]).exits(0).json();
    assert_eq!(flag["cufile"]["config"]["execution.max_io_threads"], "2");

    let wrong = text.replace("max_io_threads", "max_io_treads");
    std::fs::write(dir.path().join("wrong.ini"), wrong).unwrap();
    run(dir.path(), "wrong.ini", &[])
        .exits(2)
        .prints(&["wrong.ini:2:1:", "nearest: cufile.execution.max_io_threads"]);
    let two = format!("{text}[two]\n{GDS}cufile.execution.max_io_threads=4\n");
    std::fs::write(dir.path().join("two.ini"), two).unwrap();
    run(dir.path(), "two.ini", &[]).exits(2).prints(&["two.ini", "once in a process", "--ab"]);
}

#[test]
fn a_sweep_varies_settings_of_cufile() {
    let dir = scratch();
    let line = "--vary cufile.execution.max_io_threads=4,8 --path gds --gpu software --bs 32k \
                --size 1m --runtime 100ms --repeats 2 -o s --quiet";
    finish(command(dir.path()).arg("sweep").args(words(line))).exits(0);
    for (file, threads) in [("point-0001-run-001", "4"), ("point-0002-run-001", "8")] {
        let text = std::fs::read_to_string(dir.path().join(format!("s/{file}.json"))).unwrap();
        let record: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(record["cufile"]["config"]["execution.max_io_threads"], threads);
    }
    let compare = "compare s --axis cufile.execution.max_io_threads";
    let ran = finish(command(dir.path()).args(words(compare))).exits(0);
    assert!(ran.out.contains("max_io_threads=8"), "{ran:?}");
    let wrong = line.replace("=4,8", "=4,900");
    finish(command(dir.path()).arg("sweep").args(words(&wrong))).exits(2).prints(&["0 to 128"]);
}

/// The stand-in has no way but through host memory: forbidden that, it takes no file.
#[test]
fn compatibility_mode_that_is_off_is_off() {
    let dir = scratch();
    let off = "--cufile-set properties.allow_compat_mode=false";
    run(dir.path(), &format!("{LOAD} {off}"), &[]).exits(1).prints(&["5033", "compatibility mode"]);
    let announced = [("GPUIO_SOFT_CUFILE_NVFS", "2.25")];
    let record = json(dir.path(), off, &announced);
    assert_eq!(record["cufile"]["compat_allowed"], false);
    assert_eq!(json(dir.path(), "", &announced)["cufile"]["compat_allowed"], true);
}

/// Files of a data set that are not held, since the limit on descriptors leaves none, are opened so
/// that cuFile takes them.
#[test]
fn files_beyond_the_limit_on_descriptors_are_taken() {
    let dir = scratch();
    let load = format!("{LOAD} --threads 8 --verify --format json");
    let script = format!("ulimit -n 80 && exec \"$0\" bench {load}");
    let mut limited = crate::tool::other(dir.path(), "sh");
    limited.current_dir(dir.path()).arg("-c").arg(script).arg(crate::tool::GPUIO);
    limited.env("TMPDIR", dir.path());
    check_clean(&finish(&mut limited).exits(0).json());
}

/// gpuio's own libcufile, which cargo builds beside the program, is not reported to be NVIDIA's.
#[test]
fn our_own_library_is_distinguished_from_nvidias() {
    let dir = scratch();
    let object = Path::new(GPUIO).with_file_name("deps").join("libcufile.so");
    assert!(object.is_file(), "{}", object.display());
    let ran = run(dir.path(), &format!("{LOAD} --cufile-lib {}", object.display()), &[]).exits(3);
    assert!(ran.err.contains("is gpuio's own libcufile"), "{ran:?}");
    assert!(!ran.err.contains("NVIDIA's and"), "{ran:?}");
}
