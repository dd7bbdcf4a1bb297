//! The table of keys, and the door.

use std::collections::BTreeSet;

use gpuio_io::CATALOG;
use gpuio_job::spec::{
    Ceilings, ComputationRequest, GpuWhich, JobSpec, KeyError, Origin, Rw, Status, apply, find,
    keys, markdown_table, parse_job_file,
};
use gpuio_record::{Distribution, Fill, MemoryKind, SteadyFigure, VerifyMode};

const FLAG: Origin = Origin::Flag("--x");

/// The reference has the tables (`gpuio generate reference`).
#[test]
fn each_key_has_one_row_in_the_tables() {
    let tables = markdown_table();
    let rows = |name: &str| {
        let spelled = format!("`{name}`");
        let mut lines = tables.lines().filter(|line| line.starts_with("| `"));
        lines.by_ref().filter(|line| line.split(" | ").next().unwrap().contains(&spelled)).count()
    };
    for key in keys() {
        for name in std::iter::once(&key.name).chain(key.aliases) {
            assert_eq!(rows(name), 1, "{name}");
        }
    }
    let heads: Vec<&str> = tables.lines().filter(|line| line.starts_with("### ")).collect();
    assert_eq!(
        heads,
        ["### Keys that work", "### Keys without effect", "### Keys that are refused"]
    );
}

fn set(key: &str, value: &str) -> Result<JobSpec, KeyError> {
    let mut job = JobSpec::new("j");
    apply(&mut job, key, value, FLAG)?;
    Ok(job)
}

#[test]
fn no_spelling_is_in_the_table_twice() {
    let mut seen = BTreeSet::new();
    for key in keys() {
        for name in std::iter::once(&key.name).chain(key.aliases) {
            assert!(seen.insert(*name), "{name} is in the table twice");
            assert_eq!(find(name).map(|found| found.name), Some(key.name));
        }
    }
}

/// The options that job files of fio hold most often are known, one way or the other (fio's HOWTO,
/// "Job file parameters").
#[test]
fn common_keys_of_fio_are_known() {
    let common = "filename directory size filesize nrfiles offset rw bs bsrange bssplit ioengine \
        iodepth iodepth_batch direct sync fsync numjobs thread group_reporting runtime time_based \
        ramp_time loops rate rate_iops thinktime verify do_verify verify_pattern randrepeat \
        randseed norandommap random_distribution rwmixread percentage_random invalidate \
        fallocate create_on_open unlink stonewall startdelay cpus_allowed numa_cpu_nodes \
        zonemode latency_target log_avg_msec write_bw_log buffer_compress_percentage \
        refill_buffers gpu_dev_ids cuda_io";
    let unknown: Vec<&str> =
        common.split_whitespace().filter(|name| find(name).is_none()).collect();
    assert_eq!(unknown, [""; 0]);
}

#[test]
fn a_job_that_only_verifies_reads_in_the_order_of_its_writes() {
    let order = |text: &str| {
        let job = parse_job_file("a.fio", text, &|_| None).unwrap().jobs.remove(0);
        (job.rw, job.verify)
    };
    for (rw, reads) in [("write", Rw::Read), ("randwrite", Rw::RandRead), ("rw", Rw::Read)] {
        let expected = (Some(reads), Some(VerifyMode::Pass));
        assert_eq!(order(&format!("[a]\nrw={rw}\nverify=pass\nverify_only\n")), expected);
        assert_eq!(order(&format!("[a]\nverify_only=1\nverify=pass\nrw={rw}\n")), expected);
    }
    let (written, _) = order("[a]\nverify_only=0\nrw=randwrite\n");
    assert_eq!(written, Some(Rw::RandWrite));
}

/// Words that completion proposes are accepted, at least as the begin of a value; a flag whose
/// value is one of a table's words proposes them.
#[test]
fn words_of_values_are_those_that_are_read() {
    for key in keys().filter(|key| matches!(key.status, Status::Supported(_))) {
        for word in key.words() {
            match set(key.name, word) {
                Ok(_) => {}
                Err(KeyError::Value { at, .. }) if at == word.len() => {}
                Err(error) => panic!("{}={word}: {error}", key.name),
            }
        }
        let takes_value = key.flags.iter().any(|flag| !flag.value.is_empty());
        let fixed = set(key.name, "nonsense").is_err_and(|it| it.to_string().contains("one of "));
        // The table of engines is the load's.
        if takes_value && fixed && key.name != "engine" {
            assert!(!key.words().is_empty(), "{}", key.name);
        }
    }
}

/// Every supported key sets exactly the fields it names, with a value that it accepts.
#[test]
fn every_supported_key_records_its_origin() {
    for key in keys() {
        let Status::Supported(setter) = key.status else {
            continue;
        };
        let [job, other] = key.tried.map(|value| set(key.name, value).unwrap());
        assert_ne!(job, other, "{}", key.name);
        let fields: BTreeSet<_> = setter.fields().iter().copied().collect();
        let requested: BTreeSet<_> = job.requested.keys().copied().collect();
        assert_eq!(requested, fields, "{}", key.name);
        let mut bare = job.clone();
        bare.requested.clear();
        assert_ne!(bare, JobSpec::new("j"), "{} sets nothing", key.name);
    }
}

#[test]
fn one_flag_adds_up_and_two_origins_replace() {
    let mut job = set("path", "host").unwrap();
    apply(&mut job, "path", "staged,cached", FLAG).unwrap();
    assert_eq!(job.paths.as_deref().map(<[_]>::len), Some(3));
    apply(&mut job, "path", "all", Origin::Flag("--y")).unwrap();
    assert_eq!(job.paths, Some(vec!["all".to_owned()]));
    apply(&mut job, "depth", "1", FLAG).unwrap();
    apply(&mut job, "depth", "2", FLAG).unwrap();
    assert_eq!(job.depth, Some(2));
    apply(&mut job, "filename", "a", FLAG).unwrap();
    apply(&mut job, "filename", "b:c", FLAG).unwrap();
    assert_eq!(job.filenames.as_deref().map(<[_]>::len), Some(3));
}

#[test]
fn an_error_leaves_the_job_alone() {
    let mut job = set("gpu", "software:1").unwrap();
    let before = job.clone();
    for (key, value) in [
        ("gpu", "system:x"),
        ("gpu", "none:"),
        ("filename", "a::b"),
        ("path", "a,,b"),
        ("thinktime", "soon"),
        ("nonsense", "1"),
        ("bs", ""),
    ] {
        assert!(apply(&mut job, key, value, FLAG).is_err(), "{key}={value}");
        assert_eq!(job, before);
    }
}

#[test]
fn transfer_types_name_paths() {
    let types: Vec<_> = CATALOG.paths.iter().filter(|path| path.gdsio.is_some()).collect();
    assert_eq!(types.len(), 8);
    for path in types {
        let job = set("xfer_type", &path.gdsio.unwrap().to_string()).unwrap();
        assert_eq!(job.paths, Some(vec![path.name.to_owned()]));
    }
    assert!(set("xfer_type", "8").is_err());
}

#[test]
fn engines_are_translated() {
    for fio in ["sync", "psync", "vsync", "pvsync", "pvsync2"] {
        assert_eq!(set("ioengine", fio).unwrap().engine.as_deref(), Some("psync"));
    }
    let engine = set("engine", "of-tomorrow").unwrap().engine;
    assert_eq!(engine.as_deref(), Some("of-tomorrow"));
    assert!(set("ioengine", "of-tomorrow").is_err());
    assert!(set("engine", "libcufile").is_err());
}

#[test]
fn values_of_every_shape() {
    let blocks = |value| {
        let blocks = set("bs", value).unwrap().blocks.unwrap();
        (blocks[0].min_bytes, blocks[0].max_bytes, blocks[0].step_bytes)
    };
    assert_eq!(blocks("4k"), (4096, 4096, 0));
    assert_eq!(blocks("4k:4k:1k"), (4096, 4096, 0));
    assert_eq!(blocks("4k-64k"), (4096, 65536, 4096));
    assert_eq!(blocks("1M:4M:512k"), (1 << 20, 4 << 20, 512 << 10));
    assert_eq!(set("gpu", "0,3").unwrap().gpu.unwrap().which, GpuWhich::List(vec![0, 3]));
    assert_eq!(set("gpu", "system:all").unwrap().gpu.unwrap().which, GpuWhich::All);
    assert_eq!(set("gpu", "none").unwrap().gpu.unwrap().which, GpuWhich::None);
    assert_eq!(set("rate", "10M/s").unwrap().rate_bytes, Some(10 << 20));
    assert_eq!(set("rate-iops", "100").unwrap().rate_iops, Some(100));
    assert_eq!(set("rwmixwrite", "30").unwrap().read_percent, Some(70));
    assert_eq!(set("buffered", "").unwrap().direct, Some(false));
    assert_eq!(set("verify", "").unwrap().verify, Some(VerifyMode::Pass));
    assert_eq!(set("verify", "inline").unwrap().verify, Some(VerifyMode::Inline));
    let beside = |value| set("beside", value).map(|job| job.beside.unwrap());
    assert_eq!(beside("off").unwrap(), ComputationRequest::Off);
    assert_eq!(beside("compute").unwrap(), ComputationRequest::Compute(100.0));
    assert_eq!(beside("compute:50%").unwrap(), ComputationRequest::Compute(50.0));
    assert_eq!(beside("memory:0.5").unwrap(), ComputationRequest::Memory(0.5));
    for (value, word) in [
        ("gemm", "compute, memory or off"),
        ("compute:0%", "above 0"),
        ("compute:101%", "from 0 to 100"),
        ("memory:", "percentage"),
        ("1", "compute, memory or off"),
    ] {
        let error = beside(value).unwrap_err().to_string();
        assert!(error.contains(word), "{value}: {error}");
    }
    let ceilings = |value| set("ceilings", value).unwrap().ceilings;
    assert_eq!(ceilings(""), Some(Ceilings::On));
    assert_eq!(ceilings("on"), Some(Ceilings::On));
    assert_eq!(ceilings("0"), Some(Ceilings::Off));
    assert_eq!(ceilings("0ms"), Some(Ceilings::Off));
    assert_eq!(ceilings("off"), Some(Ceilings::Off));
    assert_eq!(ceilings("1"), Some(Ceilings::For(1_000_000_000)));
    assert_eq!(ceilings("500ms"), Some(Ceilings::For(500_000_000)));
    assert!(set("ceilings", "high").unwrap_err().to_string().contains("or on or off"));
    assert_eq!(set("norandommap", "0").unwrap().coverage, Some(true));
    assert_eq!(set("fill_random", "1").unwrap().fill, Some(Fill::Random));
    assert_eq!(set("unlink", "1").unwrap().keep, Some(false));
    assert_eq!(set("mem", "cudamalloc").unwrap().memory, Some(MemoryKind::Device));
    assert_eq!(set("sync", "dsync").unwrap().sync, Some(true));
    assert_eq!(set("rw", "readwrite").unwrap().rw, Some(Rw::ReadWrite));
    let drawn = |value| set("random_distribution", value).map(|job| job.distribution);
    assert_eq!(drawn("random").unwrap(), Some(Distribution::Uniform));
    assert_eq!(drawn("pareto:0.9").unwrap(), Some(Distribution::Pareto { h: 0.9 }));
    assert_eq!(
        drawn("normal:12.5").unwrap(),
        Some(Distribution::Normal { deviation_percent: 12.5 })
    );
    // fio's defaults.
    assert_eq!(drawn("zipf").unwrap(), Some(Distribution::Zipf { theta: 1.1 }));
    assert_eq!(drawn("pareto").unwrap(), Some(Distribution::Pareto { h: 0.2 }));
    for wrong in ["zipf:1", "zipf:0", "zipf:1e9", "pareto:1", "normal:0", "zipf:1.1:0.5"] {
        assert!(drawn(wrong).is_err(), "{wrong}");
    }
    assert_eq!(
        set("filename", "/a\\:b:/c").unwrap().filenames,
        Some(vec!["/a:b".to_owned(), "/c".to_owned()])
    );
}

#[test]
fn a_split_sums_to_a_hundred() {
    let shares = |value| {
        let blocks = set("bssplit", value).map(|job| job.blocks.unwrap());
        blocks.map(|blocks| blocks.iter().map(|b| b.percent).collect::<Vec<_>>())
    };
    assert_eq!(shares("4k/60:64k/40").unwrap(), [60, 40]);
    assert_eq!(shares("4k/10:64k:32k/").unwrap(), [10, 45, 45]);
    assert_eq!(shares("1k:2k:3k").unwrap(), [34, 33, 33]);
    assert_eq!(shares("4k").unwrap(), [100]);
    for wrong in ["4k/60", "4k/60:8k/50", "4k/100:8k", "4k/0:8k/100", "4k/50,8k/50", ""] {
        assert!(shares(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn steady_state_is_requested_in_fios_words() {
    let steady = |value: &str| set("ss", value).unwrap().steady.unwrap();
    let slope = steady("iops_slope:0.5%");
    assert_eq!((slope.of, slope.slope, slope.percent), (SteadyFigure::Iops, true, true));
    assert_eq!((slope.limit, slope.words.as_str()), (0.5, "iops_slope:0.5%"));
    assert_eq!(steady("bw:10m").limit, 10_485_760.0);
    assert_eq!(steady("lat:50us").limit, 50_000.0);
    assert_eq!(steady("iops:250.5").limit, 250.5);
    for (value, word) in [
        ("iops", "give the limit"),
        ("cpu:2%", "expected one of"),
        ("bw:0", "above"),
        ("lat:50", "unit"),
        ("iops:-3", "I/Os per second"),
        ("bw_slope:101%", "100"),
    ] {
        let error = set("steadystate", value).unwrap_err().to_string();
        assert!(error.contains(word), "{value}: {error}");
    }
    let job = set("ss_dur", "30").unwrap();
    assert_eq!(job.steady_window_ns, Some(30_000_000_000));
    assert!(set("ss_dur", "0").is_err() && set("ss_interval", "0").is_err());
}

/// Threads take several directories in turn; a colon of a name is marked.
#[test]
fn colons_part_directories() {
    let two = set("directory", "/a:/b\\:c").unwrap();
    assert_eq!((two.directory.as_deref(), two.more_directories), (Some("/a"), vec!["/b:c".into()]));
    assert_eq!(set("directory", "/a\\:b").unwrap().directory.as_deref(), Some("/a:b"));
    let literal = gpuio_job::spec::one_name("/a:b");
    assert_eq!(set("directory", &literal).unwrap().directory.as_deref(), Some("/a:b"));
    let words: Vec<String> =
        "-D /a:b -w 1 -s 1M -i 64K -x 1 -I 1".split(' ').map(str::to_owned).collect();
    let request = gpuio_job::spec::parse_gdsio(&words, &|_| false).unwrap();
    let gpuio_job::spec::GdsioRun::Flags(spec) = request.run else { panic!() };
    assert_eq!(spec.jobs[0].directory.as_deref(), Some("/a:b"), "gdsio has one");
}

/// fio's words for numbers of the machine.
#[test]
fn numbers_of_the_machine_stand_in_values() {
    let env = |name: &str| match name {
        "$ncpus" => Some("16".to_owned()),
        "$pagesize" => Some("4096".to_owned()),
        _ => None,
    };
    let parse = |text: &str| gpuio_job::spec::parse_job_file("a.fio", text, &env);
    let text = "[a]\nioengine=psync\nnumjobs=$ncpus\nbs=2*$pagesize\ndirectory=/$ncpusx\n";
    let job = parse(text).unwrap().jobs.remove(0);
    assert_eq!((job.threads, job.blocks.unwrap()[0].max_bytes), (Some(16), 8192));
    assert_eq!(job.directory.as_deref(), Some("/$ncpusx"), "another word");
    let unknown = parse("[a]\nsize=8*$mb_memory\n").unwrap_err()[0].to_string();
    assert_eq!(unknown, "a.fio:2:8: $mb_memory is not known here; write the number itself");
}

#[test]
fn a_file_of_fios_without_its_mark_says_whose_defaults_it_has() {
    let notes = |file: &str, text: &str| {
        gpuio_job::spec::parse_job_file(file, text, &|_| None).unwrap().jobs.remove(0).notes
    };
    let of_fio = notes("a.ini", "[a]\nrw=read\nnumjobs=2\nsize=1g\n");
    assert!(of_fio[0].contains("without ioengine") && of_fio[0].contains("direct=1"), "{of_fio:?}");
    let named = gpuio_job::spec::parse_job_file("a.fio", "[a]\nrw=read\nsize=1g\n", &|_| None);
    assert!(named.unwrap().jobs[0].is_fio(), "by its name");
    let undone = notes("a.fio", "[a]\ninject=eio=1%\nrw=read\nnumjobs=2\n");
    assert!(undone[0].contains("without ioengine has gpuio's defaults"), "{undone:?}");
    for (file, text) in [
        ("a.fio", "[a]\nrw=read\nsize=1g\n"),
        ("a.fio", "[a]\nioengine=psync\nrw=read\nnumjobs=2\n"),
        ("a.ini", "[a]\nrw=read\nsize=1g\n"),
        ("a.ini", "[a]\nxfer_type=1\nrw=read\nsize=1g\n"),
    ] {
        assert_eq!(notes(file, text), [""; 0], "{text}");
    }
}
