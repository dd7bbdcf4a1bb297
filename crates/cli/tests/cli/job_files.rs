//! Job files: fio's keys, several jobs together and one after another.

use std::collections::BTreeMap;
use std::path::Path;

use gpuio_base::units::parse_cpu_list;

use crate::record::{check, check_clean, jobs, n, warnings};
use crate::stats::Run;
use crate::tool::{bench, bench_with, file, gpuio, scratch, tree};

/// The kernel says where each thread may run: one CPU of the list for each, in turn.
#[test]
fn threads_of_split_cpus_have_one_each() {
    let of = |status: &str| {
        let status = std::fs::read_to_string(status).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        parse_cpu_list(line.unwrap_or_default().trim()).unwrap_or_default()
    };
    // One CPU is enough for the test.
    let mut cpus = of("/proc/self/status");
    cpus.truncate(2);
    let list = cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let dir = scratch();
    let text = format!(
        "[global]\nrw=randread\nbs=4k\nsize=1m\ndirectory=data\ntime_based\nruntime=600\n\
         [a]\nnumjobs=3\ncpus_allowed={list}\ncpus_allowed_policy=split\n"
    );
    file(dir.path(), "split.ini", &text);
    let run = Run::start(dir.path(), "split.ini");
    let all = std::fs::read_dir(format!("/proc/{}/task", run.pid())).unwrap();
    let threads = all.map(|entry| entry.unwrap().path()).filter_map(|task| {
        let name = std::fs::read_to_string(task.join("comm")).ok()?;
        let number = name.trim().strip_prefix("gpuio-")?.parse::<usize>().ok()?;
        Some((number, of(task.join("status").to_str()?)))
    });
    let threads: BTreeMap<usize, Vec<u32>> = threads.collect();
    let expected = (0..3).map(|nth| (nth, vec![cpus[nth % cpus.len()]])).collect();
    assert_eq!(threads, expected);
}

#[test]
fn fio_keys_with_fio_meanings() {
    let dir = scratch();
    file(
        dir.path(),
        "fio.ini",
        "; as many fio jobs look\n[global]\nioengine=libaio\ndirect=1\nthread\ngroup_reporting\n\
         size=2m\ndirectory=${DATA_DIR}\n\n[seq]\nrw=write\nbs=128k\nnumjobs=2\niodepth=4\n\n\
         [rand]\nstonewall\nrw=randread\niodepth=8\nnorandommap\nloops=2\n\n\
         [mix]\nstonewall\nrw=randrw\nrwmixread=70\nbssplit=4k/60:64k/40   # two sizes\n\
         time_based\nruntime=150ms\nramp_time=50ms\nrandom_distribution=zipf:1.2\n",
    );
    let set = [("DATA_DIR", "data")];
    let record = bench_with(dir.path(), &set, "fio.ini --format json").exits(0).json();
    check_clean(&record);
    let jobs = jobs(&record);
    let (seq, rand, mix) = (jobs[0], jobs[1], jobs[2]);
    // One pass over the region, by every thread.
    assert_eq!(n(&seq.1["write"]["bytes"]), 2 * (2 << 20));
    assert_eq!(n(&rand.1["read"]["bytes"]), 2 * (2 << 20), "two loops");
    assert_eq!(rand.0["blocks"][0]["min_bytes"], 4096, "fio's default");
    let (reads, writes) = (n(&mix.1["read"]["ios"]), n(&mix.1["write"]["ios"]));
    let share = reads as f64 / (reads + writes) as f64;
    assert!((0.6..0.8).contains(&share), "{reads} reads, {writes} writes");
    assert_eq!(jobs.iter().map(|job| n(&job.1["group"])).collect::<Vec<_>>(), [0, 1, 2]);
    let left = tree(dir.path());
    assert!(left.contains(&"data/seq.1.0".into()), "a directory that was named is kept: {left:?}");
}

/// A flag holds for all sections, and says of which it replaces which lines.
#[test]
fn a_flag_names_the_lines_that_it_replaces() {
    let dir = scratch();
    let jobs = "[global]\nsize=1m\ndirectory=d\nrw=read\n[a]\nbs=4k\n[b]\nbs=256k\n[c]\nbs=8k\n";
    file(dir.path(), "m.ini", jobs);
    let ran = bench(dir.path(), "m.ini --bs 8k --size 1m --rw randread --dry-run").exits(0);
    let notes: Vec<&str> = ran.err.lines().filter(|line| line.contains("replaces")).collect();
    let wanted = [
        "note: --bs 8k replaces bs=4k (m.ini:6:1) of [a]; bs=256k (m.ini:8:1) of [b]",
        "note: --rw randread replaces rw=read (m.ini:4:1) of [a], [b], [c]",
    ];
    assert_eq!(notes, wanted, "{}", ran.err);
    let set = bench(dir.path(), "m.ini --set size=2m --dry-run").exits(0);
    let note = "note: --set size=2m replaces size=1m (m.ini:2:1) of [a], [b], [c]";
    assert!(set.err.lines().any(|line| line == note), "{}", set.err);
}

/// Without ioengine fio's default is psync through the page cache; fio's dialect is that of a
/// section with `ioengine`.
#[test]
fn fio_defaults() {
    let dir = scratch();
    let job = "[j]\nioengine=psync\nrw=read\nsize=1m\nbs=64k\nloops=2\ndirectory=d\n";
    file(dir.path(), "f.ini", job);
    let record = bench(dir.path(), "f.ini --format json").exits(0).json();
    check_clean(&record);
    let (plan, job) = jobs(&record)[0];
    assert_eq!((plan["direct"].as_str(), plan["depth"].as_u64()), (Some("buffered"), Some(1)));
    assert_eq!(job["direct_actual"], "buffered");
    assert_eq!(n(&job["read"]["bytes"]), 2 << 20);
    assert!(
        warnings(&record).contains(&"page_cache_served_reads")
            || warnings(&record).contains(&"data_set_fits_memory"),
        "{:?}",
        warnings(&record)
    );
}

/// A user's file in one of them is neither written nor removed.
#[test]
fn fio_spreads_threads_over_directories() {
    let dir = scratch();
    let lines = "ioengine=psync\nrw=write\nbs=4k\nsize=64k\nnumjobs=3\nnrfiles=2\ndirectory=a:b\n";
    file(dir.path(), "f.fio", &format!("[j]\n{lines}"));
    let record = bench(dir.path(), "f.fio --format json").exits(0).json();
    check_clean(&record);
    assert_eq!(n(&jobs(&record)[0].1["write"]["ios"]), 3 * 16);
    let left = tree(dir.path());
    for made in ["a/j.0.0", "a/j.0.1", "b/j.1.0", "b/j.1.1", "a/j.2.0", "a/j.2.1"] {
        assert!(left.contains(&made.into()), "{made}: {left:?}");
    }
    std::fs::write(dir.path().join("b/j.1.1"), "mine").unwrap();
    bench(dir.path(), "f.fio").exits(2).prints(&["b/j.1.1"]);
    assert_eq!(std::fs::read_to_string(dir.path().join("b/j.1.1")).unwrap(), "mine");
    // A section that is called as a file, as fio makes it; the name ends in its two numbers.
    let name = dir.path().join("x");
    let lines = "ioengine=psync\nrw=write\nbs=4k\nsize=64k\n";
    file(dir.path(), "x.fio", &format!("[{}]\n{lines}", name.display()));
    bench(dir.path(), "x.fio").exits(0);
    assert_eq!(std::fs::metadata(dir.path().join("x.0.0")).unwrap().len(), 64 << 10);
}

/// Jobs of a group run at the same time; a stonewall parts them.
#[test]
fn together_and_apart() {
    let dir = scratch();
    let job = |name: &str, more: &str| {
        format!("[{name}]\n{more}rw=randread\nbs=16k\nsize=1m\nruntime=250ms\nfile_prefix={name}\n")
    };
    let text = format!(
        "[global]\ndirectory=d\n{}{}{}",
        job("a", ""),
        job("b", "engine=psync\n"),
        job("c", "stonewall\n")
    );
    file(dir.path(), "three.ini", &text);
    let ran = bench(dir.path(), "three.ini --format json").exits(0);
    let record = ran.json();
    check_clean(&record);
    let totals = record["totals"].as_array().unwrap();
    assert_eq!(totals.len(), 2);
    let of = |name: &str| {
        let job = jobs(&record).into_iter().find(|job| job.1["name"] == name).unwrap();
        n(&job.1["read"]["bytes"])
    };
    assert_eq!(n(&totals[0]["read"]["bytes"]), of("a") + of("b"));
    assert_eq!(n(&totals[1]["read"]["bytes"]), of("c"));
    assert!(ran.took.as_millis() > 500, "c did not wait: {:?}", ran.took);
    // The two began at one moment, on one clock, and the third when both had ended.
    let span = |name: &str, end: &str| {
        let of = jobs(&record).into_iter().find(|job| job.1["name"] == name).unwrap();
        n(&of.1["measured"][end])
    };
    assert_eq!(span("a", "begin_ns"), span("b", "begin_ns"));
    assert!(span("c", "begin_ns") >= span("a", "end_ns").max(span("b", "end_ns")), "{record}");
}

/// Jobs of one group that use the same files need them as long as the longest of them.
#[test]
fn sharing_files_of_different_sizes() {
    let dir = scratch();
    file(
        dir.path(),
        "sizes.ini",
        "[global]\nrw=read\nbs=64k\ndirectory=d\nloops=1\nverify=pass\n\
         [short]\nsize=1m\n[long]\nsize=4m\nthreads=2\n",
    );
    let record = bench(dir.path(), "sizes.ini --format json").exits(0).json();
    check_clean(&record);
    assert_eq!(n(&jobs(&record)[1].1["read"]["bytes"]), 8 << 20);
}

/// A job that writes makes a file for a later one that reads it, wherever it lies.
#[test]
fn one_job_writes_what_the_next_reads() {
    let dir = scratch();
    file(
        dir.path(),
        "chain.ini",
        "[global]\nbs=64k\nsize=1m\nloops=1\nverify=pass\nfilename=there\n\
         [w]\nrw=write\n[r]\nstonewall\nrw=randread\n",
    );
    let record = bench(dir.path(), "chain.ini --format json").exits(0).json();
    check_clean(&record);
    assert_eq!(n(&jobs(&record)[1].1["read"]["bytes"]), 1 << 20);
    // The other way round there is nothing to read, and nothing is made.
    let dir = scratch();
    file(
        dir.path(),
        "chain.ini",
        "[global]\nbs=64k\nsize=1m\nloops=1\nfilename=there\n\
         [r]\nrw=read\n[w]\nstonewall\nrw=write\n",
    );
    bench(dir.path(), "chain.ini").exits(2).prints(&["there", "never written"]);
    assert_eq!(tree(dir.path()), ["chain.ini"]);
}

/// Flags beside a job file apply to all of its jobs; names that repeat are parted.
#[test]
fn flags_over_a_file() {
    let dir = scratch();
    file(
        dir.path(),
        "two.ini",
        "[global]\nrw=randread\nsize=64m\nruntime=99\ndirectory=d\n[same]\n[same]\nstonewall\n",
    );
    let line = "two.ini --size 1m --runtime 60ms --bs 32k --set seed=9 --format json";
    let record = bench(dir.path(), line).exits(0).json();
    check_clean(&record);
    for (plan, _) in jobs(&record) {
        assert_eq!((n(&plan["size_bytes"]), n(&plan["seed"])), (1 << 20, 9));
        assert_eq!(n(&plan["stop"]["runtime_ns"]), 60_000_000);
    }
    let names: Vec<&str> =
        jobs(&record).iter().map(|job| job.1["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["same", "same#2"]);
}

/// As fio's `--section`: other jobs are not run and their files not made.
#[test]
fn only_a_section() {
    let dir = scratch();
    let text =
        "[global]\nrw=read\nsize=1m\nbs=64k\nloops=1\ndirectory=d\n[a]\n[b]\nstonewall\n[c]\n";
    file(dir.path(), "three.fio", text);
    let names = |line: &str| {
        let record = bench(dir.path(), &format!("three.fio {line} --format json")).exits(0).json();
        let jobs = jobs(&record);
        jobs.iter().map(|job| job.1["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names("--section=b --eta=never"), ["b"]);
    assert!(!dir.path().join("d/a.0.0").exists());
    assert_eq!(names("--section c --section a --eta newline"), ["a", "c"]);
    let wrong = bench(dir.path(), "three.fio --section d").exits(2).err;
    assert!(wrong.contains("--section d") && wrong.contains("'a', 'b', 'c'"), "{wrong}");
    let fio = bench(dir.path(), "three.fio --section=a --output-format=json").exits(0);
    assert!(
        fio.out.contains("\"fio version\"") && fio.out.contains("\"jobname\": \"a\""),
        "{fio:#?}"
    );
    assert!(fio.err.contains("--format json is gpuio's record"), "{}", fio.err);
}

/// CRLF, a byte order mark, comments, hyphens in keys, a name with a colon.
#[test]
fn forms() {
    let dir = scratch();
    file(
        dir.path(),
        "forms.ini",
        "\u{feff}; remark\r\n[ j ]\r\nrw = write ; a trailing one\r\nio-size=1m\r\nsize = 1MiB\r\n\
         bs=64KB\r\nfilename=a\\:b:c#d\r\n# end\r\n",
    );
    let record = bench(dir.path(), "forms.ini --format json --keep").exits(0).json();
    check_clean(&record);
    assert!(dir.path().join("a:b").exists() && dir.path().join("c#d").exists());
}

/// A first job's result does not vanish when the next can't run.
#[test]
fn an_error_after_a_result() {
    let dir = scratch();
    file(
        dir.path(),
        "late.ini",
        "[global]\nbs=64k\nsize=1m\nruntime=60ms\nrw=read\n\
         [good]\n[bad]\nstonewall\npath=staged\ngpu=software\n",
    );
    let set = [("GPUIO_SOFT_FAIL", "cuStreamCreate:2")];
    let ran = bench_with(dir.path(), &set, "late.ini --format json").exits(1);
    let record = ran.json();
    check(&record);
    assert_eq!(record["ended"], "failed");
    assert_eq!(record["jobs"].as_array().unwrap().len(), 1, "{ran:?}");
    assert!(n(&record["jobs"][0]["read"]["bytes"]) > 0);
    let error = record["error"].as_str().unwrap();
    assert!(error.contains("bad") && error.contains("cuStreamCreate"), "{error}");
    assert!(ran.err.contains(error), "{ran:?}");
    assert_eq!(tree(dir.path()), ["late.ini"], "the scratch files stay behind");
}

/// The lines of a log, field by field.
fn log_lines(dir: &Path, name: &str) -> Vec<Vec<u64>> {
    let text = std::fs::read_to_string(dir.join(name)).unwrap();
    let fields = |line: &str| line.split(", ").map(|field| field.parse().unwrap()).collect();
    text.lines().map(fields).collect()
}

/// Each thread has logs by its number in fio, with a line for each I/O.
#[test]
fn fios_logs_are_of_each_thread_and_io() {
    let dir = scratch();
    file(
        dir.path(),
        "two.fio",
        "[global]\nioengine=psync\nrw=read\nbs=4k\nsize=64k\ndirectory=d\n\
         [a]\nnumjobs=2\nwrite_bw_log\n[b]\nwrite_lat_log=b\nlog_offset=1\n\
         [c]\nnumjobs=2\nwrite_iops_log=c\nper_job_logs=0\n",
    );
    let ran = bench(dir.path(), "two.fio").exits(0);
    ran.prints(&["Logs as of fio: 5 files, a_bw.1.log to c_iops.log\n"]);
    let logs = ["a_bw.1.log", "a_bw.2.log", "b_clat.3.log", "b_lat.3.log", "c_iops.log"];
    let names = tree(dir.path());
    assert!(names.iter().filter(|name| name.ends_with(".log")).eq(&logs));
    for name in logs {
        let lines = log_lines(dir.path(), name);
        let joined = name == "c_iops.log";
        assert_eq!(lines.len(), if joined { 32 } else { 16 }, "{name}");
        let times = lines.windows(2).all(|two| two[0][0] <= two[1][0]);
        assert!(
            (times || joined) && lines.iter().all(|line| line[2..4] == [0, 4096]),
            "{name}: {lines:?}"
        );
    }
    let offsets = log_lines(dir.path(), "b_lat.3.log").into_iter().map(|line| line[4]);
    assert!(offsets.eq((0..16).map(|block| block * 4096)));
    assert!(log_lines(dir.path(), "c_iops.log").iter().all(|line| line[1] == 1));
    let data: Vec<&String> = names.iter().filter(|name| name.ends_with(".0")).collect();
    assert_eq!(
        data,
        ["d/a.0.0", "d/a.1.0", "d/b.0.0", "d/c.0.0", "d/c.1.0"],
        "a section has its own files"
    );
}

/// Windows begin with the end of the ramp, whatever the sampler's interval is, and hold all I/Os
/// that the results count.
#[test]
fn fios_logs_of_a_mix_in_windows() {
    let dir = scratch();
    file(
        dir.path(),
        "m.fio",
        "[m]\nioengine=psync\nrw=randrw\nrwmixread=70\nbs=4k\nsize=1m\ndirectory=d\ntime_based\n\
         ramp_time=250ms\nruntime=1200ms\nlog_avg_msec=400\nwrite_bw_log=m\nwrite_lat_log=m\n\
         write_iops_log=m\n",
    );
    let record = bench(dir.path(), "m.fio --format json").exits(0).json();
    let (_, job) = jobs(&record)[0];
    for kind in ["bw", "iops", "lat", "clat"] {
        let lines = log_lines(dir.path(), &format!("m_{kind}.1.log"));
        for direction in [0, 1] {
            let own: Vec<_> = lines.iter().filter(|line| line[2] == direction).collect();
            let ends: Vec<u64> = own.iter().map(|line| line[0]).collect();
            // The I/O in flight at the end may be back in a window of its own.
            assert_eq!(ends[..2], [400, 800], "{kind}: {lines:?}");
            assert!(own.iter().all(|line| line[1] > 0 && line[3..] == [0, 0]), "{lines:?}");
        }
    }
    let of_windows = |direction: u64| -> f64 {
        let mut began = 0;
        let lines = log_lines(dir.path(), "m_iops.1.log");
        let own = lines.iter().filter(|line| line[2] == direction);
        own.map(|line| {
            let span = line[0] - std::mem::replace(&mut began, line[0]);
            line[1] as f64 * span as f64 / 1000.0
        })
        .sum()
    };
    for (direction, side) in [(0, "read"), (1, "write")] {
        let (logged, counted) = (of_windows(direction), n(&job[side]["ios"]) as f64);
        assert!((logged / counted - 1.0).abs() < 0.02, "{side}: {logged} {counted}");
    }
}

/// Whatever path the bytes take, a log has a line for each I/O that counts.
#[test]
fn fios_logs_hold_the_ios_of_every_path() {
    let dir = scratch();
    let line = "--path all --gpu software --rw randrw --bs 64k --size 1m --threads 2 \
                --runtime 50ms --directory d --no-ceilings --set write_lat_log=x --format json -q";
    let record = bench(dir.path(), line).exits(0).json();
    let mut threads = 0;
    for (plan, job) in jobs(&record) {
        let own = threads + 1..=threads + n(&plan["threads"]);
        threads = *own.end();
        let lines: usize =
            own.map(|number| log_lines(dir.path(), &format!("x_lat.{number}.log")).len()).sum();
        let counted = n(&job["read"]["ios"]) + n(&job["write"]["ios"]);
        assert_eq!(lines as u64, counted, "{}", plan["name"]);
    }
    assert!(threads > 20, "{threads}");
}

/// Each run of a sweep would replace the logs of the last.
#[test]
fn a_sweep_writes_no_logs_and_says_so() {
    let dir = scratch();
    file(
        dir.path(),
        "a.fio",
        "[a]\nrw=read\nsize=64k\ntime_based\nruntime=100ms\nwrite_lat_log=m\n",
    );
    let ran = gpuio(dir.path(), "sweep a.fio --vary bs=4k,8k --repeats 1 -o s").exits(0);
    ran.prints(&["runs of a sweep write no logs as of fio"]);
    assert!(!tree(dir.path()).iter().any(|name| name.ends_with(".log")));
}
