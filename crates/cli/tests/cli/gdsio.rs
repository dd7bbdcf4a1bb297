//! gdsio's face: its flags, its files and its one line.

use std::os::unix::fs::symlink;
use std::path::Path;

use crate::record::{check_clean, jobs};
use crate::tool::{GPUIO, Ran, command, file, finish, other, scratch, tree, words};

/// `gpuio gdsio LINE` with two software GPUs to choose from.
#[track_caller]
fn gdsio(dir: &Path, line: &str) -> Ran {
    let mut command = command(dir);
    command.env("GPUIO_SOFT_GPUS", "2").arg("gdsio").args(words(line));
    finish(&mut command)
}

/// The fields of a result line by name, checked for their form.
#[track_caller]
fn fields(line: &str) -> Vec<(&str, &str)> {
    let names = [
        "IoType: ",
        " XferType: ",
        " Threads: ",
        " DataSetSize: ",
        "/",
        "(KiB) IOSize: ",
        "(KiB) Throughput: ",
        " GiB/sec, Avg_Latency: ",
        " usecs ops: ",
        " total_time ",
    ];
    let mut rest = line;
    let mut all: Vec<(&str, &str)> = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let (before, after) = rest.split_once(name).unwrap_or_else(|| panic!("{name:?}: {line}"));
        match at.checked_sub(1) {
            None => assert_eq!(before, "", "{line}"),
            Some(last) => all.push((names[last].trim(), before)),
        }
        rest = after;
    }
    let seconds = rest.strip_suffix(" secs").unwrap_or_else(|| panic!("{line}"));
    all.push(("total_time", seconds));
    for (name, value) in &all[2..] {
        let decimals = value.split_once('.').map(|(_, decimals)| decimals.len());
        let real = name.contains("Throughput") || name.contains("Latency") || *name == "total_time";
        assert_eq!(decimals, real.then_some(6), "{name} {value}: {line}");
        assert!(value.parse::<f64>().is_ok(), "{name} {value}: {line}");
    }
    all
}

/// The result lines of an output, each with its fields checked.
#[track_caller]
fn lines(ran: &Ran) -> Vec<Vec<(&str, &str)>> {
    ran.out.lines().filter(|line| line.starts_with("IoType:")).map(fields).collect()
}

#[test]
fn every_type_and_direction() {
    for (x, name) in [("1", "CPUONLY"), ("2", "CPU_GPU"), ("4", "CPU_CACHED_GPU")] {
        let dir = scratch();
        for (op, word) in [("1", "WRITE"), ("0", "READ"), ("3", "RANDWRITE"), ("2", "RANDREAD")] {
            let line = format!("-D . -w 4 -s 1M -i 64K -x {x} -I {op} --gpu software");
            let ran = gdsio(dir.path(), &line).exits(0);
            let all = lines(&ran);
            assert_eq!(all.len(), 1, "{ran:?}");
            assert_eq!(all[0][0].1, word, "{ran:?}");
            assert_eq!(all[0][1].1, name, "{ran:?}");
            assert_eq!(all[0][2].1, "4", "{ran:?}");
            assert_eq!((all[0][3].1, all[0][4].1, all[0][5].1), ("4096", "4096", "64"), "{ran:?}");
            assert_eq!(all[0][8].1, "64", "ops: {ran:?}");
            let own = ran.out.lines().filter(|line| !line.starts_with("# "));
            assert_eq!(own.count(), 1, "nothing beside the line: {ran:?}");
        }
        let names = tree(dir.path());
        for n in 0..4 {
            assert!(names.contains(&format!("gdsio.{n}")), "{names:?}");
        }
    }
}

#[test]
fn options() {
    let dir = scratch();
    let base = "-D . -w 2 -s 1M -i 64K --gpu software";
    gdsio(dir.path(), &format!("{base} -x 1 -I 1 -V")).exits(0);
    for more in [
        "-x 2 -I 0 -V",
        "-x 1 -I 2 -k 7",
        "-x 2 -I 2 -T 1 -k 7",
        "-x 1 -I 2 -U -O 1",
        "-x 1 -I 0 -U -O 1",
        "-x 2 -I 2 -a 128K",
        "-x 2 -I 0 -d 1",
        "-x 0 -I 0 -d 1 -b",
        "-x 1 -I 0 -m 2",
        "-x 1 -I 0 -m 3",
        "-x 1 -I 0 -m 4",
        "-x 2 -I 0 -m 0 -V",
        "-x 2 -I 0 -m 1 -V",
        "-x 2 -I 0 -m 2 -V",
        "-x 2 -I 0 -m 3 -V",
        "-x 2 -I 0 -m 4 -V",
        "-x 4 -I 0 -V",
        "-x 1 -I 3 -R -F",
        "-x 1 -I 0 -n 0 --depth 4 --engine io_uring",
    ] {
        let ran = gdsio(dir.path(), &format!("{base} {more}")).exits(0);
        assert_eq!(lines(&ran).len(), 1, "{more}: {ran:?}");
        if more.contains("-U") {
            assert_eq!(lines(&ran)[0][8].1, "32", "each block once: {ran:?}");
        }
        if more.contains("-T 1") {
            let time: f64 = lines(&ran)[0][9].1.parse().unwrap();
            assert!((0.9..60.0).contains(&time), "{time}");
        }
    }
}

/// A write that is verified is followed by a read of its own.
#[test]
fn a_verified_write() {
    let dir = scratch();
    for (x, op, words) in [
        ("1", "1", ["WRITE", "READ"]),
        ("2", "3", ["RANDWRITE", "RANDREAD"]),
        ("0", "1", ["WRITE", "READ"]),
        ("0 -b", "3", ["RANDWRITE", "RANDREAD"]),
    ] {
        let line = format!("-D . -w 2 -s 1M -i 64K -x {x} -I {op} -V --gpu software");
        let ran = gdsio(dir.path(), &line).exits(0);
        let out = ran.out.lines().filter(|line| !line.starts_with("# "));
        let out: Vec<&str> = out.collect();
        assert_eq!(out.len(), 3, "{ran:?}");
        assert_eq!(fields(out[0])[0].1, words[0], "{ran:?}");
        assert_eq!(out[1], "Verifying data", "{ran:?}");
        assert_eq!(fields(out[2])[0].1, words[1], "{ran:?}");
    }
    let shared = "-f one -w 2 -s 1M -i 64K -x 1 -I 1 -V";
    let ran = gdsio(dir.path(), shared).exits(0);
    assert_eq!(lines(&ran).len(), 2, "{ran:?}");
    assert_eq!(dir.path().join("one").metadata().unwrap().len(), 2 << 20);
}

#[test]
fn a_verified_write_over_a_file_of_others() {
    let dir = scratch();
    file(dir.path(), "theirs", &"x".repeat(3 << 20));
    let line = "-f theirs -w 2 -s 1M -i 64K -x 1 -I 1 -V";
    gdsio(dir.path(), line).exits(2).prints(&["theirs", "--overwrite"]);
    let ran = gdsio(dir.path(), &format!("{line} --overwrite")).exits(0);
    assert_eq!(lines(&ran).len(), 2, "{ran:?}");
    let bytes = std::fs::read(dir.path().join("theirs")).unwrap();
    assert_eq!(bytes.len(), 3 << 20);
    assert!(bytes[2 << 20..].iter().all(|byte| *byte == b'x'), "past the end of the job");
    assert!(bytes[..2 << 20].iter().any(|byte| *byte != b'x'));
}

/// `-o` above 0: the bytes before are no thread's. Whatever the file held, what was written is
/// read back and verified.
#[test]
fn a_verified_write_of_a_part() {
    let dir = scratch();
    let part = "-f F -o 1M -s 1M -i 64K -w 2 -x 1 -I 1 -V";
    let rounds = [
        ("a new file", None),
        ("one of ours", None),
        ("one of ours that holds no pattern", Some("-f F -s 2M -i 64K -w 2 -x 1 -I 1")),
        ("one of ours that is longer", Some("-f F -s 4M -i 64K -w 2 -x 1 -I 1")),
    ];
    for (what, before) in rounds {
        if let Some(line) = before {
            gdsio(dir.path(), line).exits(0);
        }
        let ran = gdsio(dir.path(), part).exits(0);
        assert_eq!(lines(&ran).len(), 2, "{what}: {ran:?}");
        let read = part.replace("-I 1", "-I 0");
        gdsio(dir.path(), &read).exits(0);
        gdsio(dir.path(), "-f F -s 3M -i 64K -w 1 -x 1 -I 0 -V").exits(0);
    }
    let mine = vec![b'm'; 4 << 20];
    std::fs::write(dir.path().join("G"), &mine).unwrap();
    let ran = gdsio(dir.path(), &format!("--overwrite {}", part.replace("-f F", "-f G"))).exits(0);
    assert_eq!(lines(&ran).len(), 2, "{ran:?}");
    let after = std::fs::read(dir.path().join("G")).unwrap();
    assert!(after[..1 << 20] == mine[..1 << 20] && after[3 << 20..] == mine[3 << 20..]);
    // In a run of its own nothing is listed of G, and the part that is read says what it is.
    let read = part.replace("-f F", "-f G").replace("-I 1", "-I 0");
    gdsio(dir.path(), &read).exits(0);
    let whole = read.replace("-o 1M", "-o 0").replace("-s 1M", "-s 768K");
    gdsio(dir.path(), &whole).exits(2).prints(&["G", "not made by gpuio"]);
}

/// Messages name gdsio's options, and a rate over a short time is noted in one line.
#[test]
fn messages_are_in_gdsios_words() {
    let dir = scratch();
    let line = "-D . -w 1 -i 16K -x 1";
    let ran = gdsio(dir.path(), &format!("{line} -s 64K -I 1")).exits(0);
    let notes = ran.out.lines().filter(|line| line.ends_with(", too little to judge a rate"));
    assert_eq!(notes.filter(|line| line.starts_with("# too short: ")).count(), 1, "{ran:?}");
    // Doubts go where the line goes, and --quiet is of progress and notes.
    let quiet = gdsio(dir.path(), &format!("{line} -s 64K -I 0 --quiet")).exits(0);
    assert!(quiet.out.contains("\n# too short: ") && quiet.err.is_empty(), "{quiet:?}");
    for flag in ["-v", "--version"] {
        assert!(gdsio(dir.path(), flag).exits(0).out.starts_with("gdsio (gpuio "));
    }
    let line = "-D . -w 1 -i 16K -x 2 -s 64K -I 1 -d 63 --gpu software";
    let ran = gdsio(dir.path(), line).exits(3);
    assert!(ran.err.contains("-d 63: there is no GPU 63"), "{ran:?}");
}

#[test]
fn read_before_write() {
    let dir = scratch();
    let ran = gdsio(dir.path(), "-D . -w 2 -s 1M -i 64K -x 1 -I 0").exits(2);
    assert!(ran.err.contains("never written"), "{ran:?}");
    assert!(ran.err.contains("write"), "{ran:?}");
    assert!(tree(dir.path()).is_empty(), "{:?}", tree(dir.path()));
    // Without a size the advice is the same.
    let ran = gdsio(dir.path(), "-D . -w 2 -i 64K -x 1 -I 0").exits(2);
    assert!(ran.err.contains("-I 1"), "{ran:?}");
}

/// gdsio's four types of cuFile, written and read back verified, each by its name.
#[test]
fn types_of_cufile() {
    for (x, name) in [
        ("0", "GPUD Threads: 2 DataSetSize"),
        ("5", "ASYNC Threads: 2 DataSetSize"),
        ("6 -B 4", "GPU_BATCH Threads: 2 IoDepth: 4 DataSetSize"),
        ("7 -B 4", "GPU_BATCH_STREAM Threads: 2 IoDepth: 4 DataSetSize"),
    ] {
        let dir = scratch();
        let line = format!("-D . -w 2 -s 1M -i 64K -d 0 -x {x} -I 1 -V --gpu software");
        let out = gdsio(dir.path(), &line).exits(0).out;
        for (way, ops) in [("WRITE", 32), ("READ", 32)] {
            let found = out.lines().find(|line| line.starts_with(&format!("IoType: {way}")));
            let found = found.unwrap_or_else(|| panic!("{x}: {out}"));
            assert!(found.contains(&format!("XferType: {name}")), "{found}");
            assert!(found.contains(&format!("ops: {ops} ")), "{found}");
        }
    }
}

/// A mix of `-M` percent reads, whatever `-I` says.
#[test]
fn mixes_of_batches() {
    let dir = scratch();
    let write = "-D . -w 1 -s 4M -i 16K -d 0 -x 6 -B 8 -I 1 --gpu software";
    gdsio(dir.path(), write).exits(0);
    let mixed = format!("{} -M 25 -T 1 --format json", write.replace("-I 1", "-I 2"));
    let record = gdsio(dir.path(), &mixed).exits(0).json();
    let job = &record["jobs"][0];
    let (reads, writes) = (&job["read"]["ios"], &job["write"]["ios"]);
    let (reads, writes) = (reads.as_u64().unwrap(), writes.as_u64().unwrap());
    let share = 100 * reads / (reads + writes);
    assert!((15..35).contains(&share), "{reads} reads, {writes} writes");
    assert_eq!(record["plan"]["jobs"][0]["read_percent"], 25);
}

#[test]
fn refusals() {
    let dir = scratch();
    let base = "-w 1 -s 1M -i 64K -I 1";
    for (line, code, says) in [
        ("-D . -f x -x 1", 2, &["-f and -D exclude each other"][..]),
        ("-x 1", 2, &["-D"]),
        ("-D . -x 8", 2, &["-x"]),
        ("-D . -x 1 -B 4", 2, &["batch"]),
        ("-D . -x 1 -P rdma://1.2.3.4", 3, &["RDMA"]),
        ("-D . -x 1 -M 50", 2, &["-M", "types 6 and 7"]),
        ("-D . -x 1 -m 1", 2, &["host memory"]),
        ("-D . -x 1 -m 9", 2, &["-m"]),
        ("-D . -x 1 -Q", 2, &["-Q"]),
        ("-D . -x 1 --gpus software", 2, &["--gpus"]),
        ("-D . -x 1 --overwrite=yes", 2, &["--overwrite"]),
        ("-D . -x 1 --format", 2, &["--format"]),
        ("-D . -x 1 --format jsn", 2, &["jsn"]),
        ("-D . -x 1 -w 2", 2, &["-w", "twice"]),
        ("-D . -x 2 -d 5 --gpu software", 3, &["no GPU 5"]),
    ] {
        let ran = gdsio(dir.path(), &format!("{base} {line}")).exits(code).prints(says);
        assert_eq!(ran.out, "", "{line}");
        assert!(tree(dir.path()).is_empty(), "{line}: {:?}", tree(dir.path()));
    }
}

/// `-U` off the 4 KiB grid can't be had with O_DIRECT; the message says what to do.
#[test]
fn unaligned_needs_buffered() {
    let dir = scratch();
    gdsio(dir.path(), "-D . -w 1 -s 1M -i 64K -x 1 -I 1").exits(0);
    let ran = gdsio(dir.path(), "-D . -w 1 -s 1M -i 64K -x 1 -I 2 -U");
    match ran.code {
        // A disk with 512-byte sectors takes offsets off the 4 KiB grid.
        0 => assert_eq!(lines(&ran).len(), 1),
        _ => drop(ran.exits(2).prints(&["-O 1"])),
    }
}

/// A configuration file as NVIDIA's examples have them, with two GPUs and a directory from the
/// environment.
#[test]
fn a_configuration_file() {
    let dir = scratch();
    let config = "[global]\nname=two_gpus\n#0,1,2,3,4,5\nxfer_type=2\nrw=randread\nbs=4k\n\
                  size=1M\nruntime=1\ndo_verify=1\n[job1]\n#gpu device index\ngpu_dev_id=0\n\
                  num_threads=2\ndirectory=${DATA}/a\n[job2]\ngpu_dev_id=1\nnum_threads=2\n\
                  directory=${DATA}/b\n";
    file(dir.path(), "read.gdsio", config);
    file(
        dir.path(),
        "write.gdsio",
        &config.replace("randread", "write").replace("runtime=1\n", ""),
    );
    std::fs::create_dir_all(dir.path().join("data/a")).unwrap();
    std::fs::create_dir_all(dir.path().join("data/b")).unwrap();
    let run = |line: &str| {
        let mut command = command(dir.path());
        command.env("GPUIO_SOFT_GPUS", "2").env("DATA", "data").arg("gdsio").args(words(line));
        finish(&mut command)
    };
    let wrote = run("write.gdsio --gpu software").exits(0);
    assert_eq!(lines(&wrote).len(), 2, "{wrote:?}");
    assert_eq!(lines(&wrote)[0][2].1, "4", "one line for all jobs: {wrote:?}");
    let read = run("-J read.gdsio --gpu software").exits(0);
    let per_job: Vec<&str> = read.out.lines().filter(|l| l.starts_with("Job: ")).collect();
    assert_eq!(per_job.len(), 2, "{read:?}");
    for (line, name) in per_job.iter().zip(["job1", "job2"]) {
        let line = line.strip_prefix(&format!("Job: {name} ")).unwrap();
        assert_eq!(fields(line)[2].1, "2");
    }
    assert_eq!(lines(&read).len(), 1, "{read:?}");
    let json = run("read.gdsio --gpu software --format json").exits(0).json();
    check_clean(&json);
    assert_eq!(jobs(&json)[1].0["gpus"][0]["index"], 1);
    run("read.gdsio -x 1").exits(2).prints(&["read.gdsio", "-x"]);
    let unset = finish(command(dir.path()).args(["gdsio", "read.gdsio"])).exits(2);
    assert!(unset.err.contains("read.gdsio:14:11:") && unset.err.contains("DATA"), "{unset:?}");
}

/// The record can be had beside the line.
#[test]
fn json_beside_the_line() {
    let dir = scratch();
    let line = "-D . -w 1 -s 1M -i 64K -x 2 -I 1 --gpu software --output r.json";
    let ran = gdsio(dir.path(), line).exits(0);
    assert_eq!(lines(&ran).len(), 1);
    assert!(ran.out.contains("\n# software GPU: this run"), "{ran:?}");
    let saved = std::fs::read_to_string(dir.path().join("r.json")).unwrap();
    check_clean(&serde_json::from_str(&saved).unwrap());
    gdsio(dir.path(), line).exits(2).prints(&["r.json", "exists"]);
    // Each error names flags that gdsio has.
    let plain = "-f gdsio.0 -w 1 -s 2M -i 64K -x 0 --gpu software";
    gdsio(dir.path(), &format!("{plain} -I 0 --verify")).exits(2).prints(&["--verify: ", "-V"]);
    let absent = gdsio(dir.path(), "-D none -w 1 -s 1M -i 64K -x 0 -I 0 --gpu software").exits(2);
    assert!(!absent.err.contains("was not there"), "{absent:?}");
    let short = gdsio(dir.path(), &format!("{plain} -I 0")).exits(2);
    assert!(!short.err.contains("--size") && !short.err.contains("--directory"), "{short:?}");
}

/// Scripts call `gdsio`; a link of that name speaks it.
#[test]
fn a_link_named_gdsio() {
    let dir = scratch();
    let link = dir.path().join("gdsio");
    symlink(GPUIO, &link).unwrap();
    let data = dir.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let mut gdsio = other(dir.path(), &link);
    gdsio.args(["-D", data.to_str().unwrap()]).args(words("-w 1 -s 1M -i 64K -x 1 -I 1"));
    let ran = finish(&mut gdsio).exits(0);
    assert_eq!(lines(&ran).len(), 1, "{ran:?}");
    let version = finish(other(dir.path(), &link).arg("--version")).exits(0);
    assert!(version.out.contains(env!("CARGO_PKG_VERSION")), "{version:?}");
}

/// Poll mode by the user's file, by a flag or by a key: what is in force counts.
#[test]
fn polled_streams_are_calls() {
    let dir = scratch();
    file(dir.path(), "polls.json", "{\"properties\": {\"use_poll_mode\": true}}");
    for (config, more, polls) in [
        ("polls.json", "", true),
        ("polls.json", "--cufile-set properties.use_poll_mode=false", false),
        ("", "--cufile-set properties.use_poll_mode=true", true),
        ("", "--set cufile.properties.use_poll_mode=true", true),
        ("", "", false),
    ] {
        let mut command = command(dir.path());
        if !config.is_empty() {
            command.env("CUFILE_ENV_PATH_JSON", dir.path().join(config));
        }
        let line = "-f f -d 0 -w 1 -s 1M -i 64K -x 5 -I 1 --gpu software --dry-run";
        command.arg("gdsio").args(words(line)).args(words(more));
        let ran = finish(&mut command).exits(0);
        assert_eq!(ran.err.contains("makes polled calls"), polls, "{config} {more}: {}", ran.err);
        let path = if polls { "path = gds\n" } else { "path = gds-stream\n" };
        assert!(ran.out.contains(path), "{config} {more}: {}", ran.out);
    }
}
