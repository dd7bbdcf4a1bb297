//! Input that makes no sense: an exit code, a message that names the place, and nothing on disk.

use std::os::unix::ffi::OsStringExt;

use crate::tool::{bench, bench_with, command, file, finish, gpuio, scratch, tree};

/// Runs each line in an empty directory and checks code, words and that nothing was made.
#[track_caller]
fn refused(code: i32, cases: &[(&str, &[&str])]) {
    for (line, says) in cases {
        let dir = scratch();
        let ran = bench(dir.path(), line).exits(code).prints(says);
        assert_eq!(ran.out, "", "{line}");
        assert!(ran.err.starts_with("error: "), "{line}: {}", ran.err);
        assert!(!ran.err.contains("panicked"), "{}", ran.err);
        let left = tree(dir.path());
        assert!(left.is_empty(), "{line}: {left:?}");
    }
}

#[test]
fn values() {
    refused(
        2,
        &[
            ("--size 0", &["--size", "'0'", "above 0"]),
            ("--size 1q", &["--size", "1q"]),
            ("--size=-1", &["--size", "-1"]),
            ("--size -1", &["--size", "'-1'"]),
            ("--offset -4096 --size 1m", &["--offset", "'-4096'"]),
            ("--size 99999999999g", &["--size"]),
            ("--bs 0", &["--bs", "above 0"]),
            ("--bs 2m --size 1m", &["--size", "1048576", "2097152"]),
            ("--bs 8k:4k --size 1m", &["--bs"]),
            ("--bs 4g --size 8g", &["--bs", "read(2)"]),
            ("--bssplit 4k/50:8k/40 --size 1m", &["--bssplit", "90"]),
            ("--bssplit 4k/100 --bs 4k", &["--bs"]),
            ("--threads 0 --size 1m", &["--threads", "1 or more"]),
            ("--threads 70000 --bs 4k --size 4k", &["--threads", "70000", "65536"]),
            ("--threads=-3", &["--threads", "-3"]),
            ("--threads -3", &["--threads", "'-3'"]),
            ("--depth 0 --size 1m", &["--depth"]),
            ("--depth 70000 --size 1m", &["--depth", "70000", "65535"]),
            ("--runtime 0 --size 1m", &["--runtime"]),
            ("--runtime 5x --size 1m", &["--runtime", "5x"]),
            ("--rwmixread 101 --size 1m", &["--rwmixread", "101"]),
            ("--rate 0 --size 1m", &["--rate"]),
            ("--rate-iops 0 --size 1m", &["--rate-iops"]),
            ("--rate 1m --rate-process sometimes", &["--rate-process", "sometimes"]),
            ("--random-distribution zipf:1 --rw randread", &["--random-distribution", "zipf"]),
            ("--offset 1x --size 1m", &["--offset"]),
            ("--loops 0 --size 1m", &["--loops"]),
            ("--cpus 3-1 --size 1m", &["--cpus"]),
            ("--seed x --size 1m", &["--seed"]),
        ],
    );
}

#[test]
fn words_with_a_nearest_one() {
    refused(
        2,
        &[
            ("--rw raed --size 1m", &["--rw", "raed", "nearest: read"]),
            ("--engine iouring --size 1m", &["--engine", "iouring", "nearest: io_uring"]),
            ("--path warp --size 1m", &["--path", "warp", "host, staged, cached"]),
            ("--path stagde --size 1m", &["--path", "stagde", "nearest: staged"]),
            ("--verify=maybe --size 1m", &["--verify", "maybe", "inline, rewrite"]),
            ("--memory devise --size 1m", &["--memory", "devise", "device"]),
            ("--fill randm --size 1m", &["--fill", "randm", "random"]),
            ("--gpu sofware --size 1m", &["--gpu", "sofware"]),
            ("--format jsn --size 1m", &["--format", "jsn", "json"]),
            ("--set blocksizes=4k", &["blocksizes", "nearest: blocksize"]),
            ("--set nothinglikeit=1", &["nothinglikeit", "docs/job-file.md"]),
            ("--set thinktime=soon --size 1m", &["thinktime", "soon"]),
        ],
    );
}

#[test]
fn contradictions() {
    refused(
        2,
        &[
            ("--direct --buffered --size 1m", &["--direct", "--buffered"]),
            ("--direct --path cached --gpu software --size 1m", &["--direct", "cached"]),
            ("--engine mmap --direct --size 1m", &["--direct", "mmap"]),
            ("--memory device --path host --size 1m", &["--memory", "host memory"]),
            ("--rw write --fill zero --verify --size 1m", &["--fill", "--verify"]),
            ("--path staged --gpu none --size 1m", &["--gpu", "staged"]),
            ("--filename . --size 1m", &["directory", "--directory"]),
            ("--filename /dev/null --rw write --size 1m", &["/dev/null", "character device"]),
            ("--filename missing --rw read --size 1m", &["missing", "never written"]),
            ("--filename /proc/nvme9n9 --rw read --size 1m", &["no file may be made there: it is"]),
        ],
    );
}

/// It could be done elsewhere: 3, so that a script can tell it from a typing error.
#[test]
fn not_on_this_machine() {
    refused(
        3,
        &[
            ("--gpu software:7", &["--gpu", "no GPU 7", "one GPU, and its number is 0"]),
            ("--gpu software:0,1 --size 1m", &["--gpu", "no GPU 1"]),
            ("--cpus 4000 --size 1m", &["--cpus", "only on CPUs 0", "not all of 4000"]),
            ("--numa 99 --size 1m", &["--numa", "no NUMA node 99", "this machine has "]),
        ],
    );
}

#[test]
fn job_file_places() {
    let dir = scratch();
    bench(dir.path(), "nofile.ini").exits(2).prints(&["nofile.ini", "No such file"]);
    bench(dir.path(), ".").exits(2).prints(&["can't be read"]);
    std::fs::write(dir.path().join("b.ini"), b"[j]\nbs=\xff\n").unwrap();
    bench(dir.path(), "b.ini").exits(2).prints(&["b.ini:2:4", "UTF-8"]);
    file(dir.path(), "e.ini", "[j]\nfilename=${GPUIO_TEST_UNSET}\n");
    bench(dir.path(), "e.ini").exits(2).prints(&["e.ini:2:10", "GPUIO_TEST_UNSET", "not set"]);
    file(dir.path(), "k.ini", "[j]\nblocksizes=4k\nrw=raed\nsize=1m\niodpeth=3\n");
    let all = [
        "k.ini:2:1",
        "nearest: blocksize",
        "k.ini:3:4",
        "nearest: read",
        "k.ini:5:1",
        "nearest: iodepth",
    ];
    bench(dir.path(), "k.ini").exits(2).prints(&all);
    file(dir.path(), "n.ini", "bs=4k\n");
    bench(dir.path(), "n.ini").exits(2).prints(&["n.ini:1:1"]);
    file(dir.path(), "empty.ini", "");
    bench(dir.path(), "empty.ini").exits(2).prints(&["job"]);
    file(dir.path(), "global.ini", "[global]\nbs=4k\n");
    bench(dir.path(), "global.ini").exits(2).prints(&["job"]);
    file(dir.path(), "late.ini", "[j]\nbs=64k\nsize=4k\n");
    bench(dir.path(), "late.ini").exits(2).prints(&["late.ini:3", "65536"]);
    file(dir.path(), "refused.ini", "[j]\nioengine=libaio\nexec_prerun=rm\n");
    bench(dir.path(), "refused.ini").exits(2).prints(&["refused.ini:3:1", "runs no commands"]);
}

/// A result must have a place before hours are spent on it.
#[test]
fn outputs() {
    let dir = scratch();
    let load = "--rw read --bs 64k --size 1m --runtime 100ms";
    file(dir.path(), "r.json", "an hour of work");
    let ran = bench(dir.path(), &format!("{load} -o r.json/dir.json")).exits(2);
    assert!(ran.err.contains("-o r.json/dir.json"), "{ran:?}");
    for (more, says) in [("", "exists"), ("--overwrite", "exists"), ("--force", "did not write")] {
        let ran = bench(dir.path(), &format!("{load} -o r.json {more}")).exits(2);
        assert!(ran.err.contains("r.json") && ran.err.contains(says), "{ran:?}");
    }
    let ran = bench(dir.path(), &format!("{load} --format csv -o x.json")).exits(2);
    ran.prints(&["--format csv -o x.json", "says json"]);
    assert_eq!(std::fs::read_to_string(dir.path().join("r.json")).unwrap(), "an hour of work");
    // A refused run leaves no empty record behind.
    bench(dir.path(), "--rw write --filename r.json --size 1m -o new.json").exits(2);
    assert_eq!(tree(dir.path()), ["r.json"]);
}

/// A reader that goes away, and an output that is full.
#[test]
fn standard_output() {
    let dir = scratch();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let line = "--rw read --bs 64k --size 1m --runtime 100ms --format json";
    let mut run = command(dir.path());
    let status = run.arg("bench").args(line.split(' ')).stdout(full).status().unwrap();
    assert_eq!(status.code(), Some(1));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut run = command(dir.path());
    let status = run.arg("bench").args(line.split(' ')).stdout(writer).status().unwrap();
    assert_eq!(status.code(), Some(0), "as head(1) leaves it");
}

#[test]
fn the_command_line_itself() {
    let dir = scratch();
    gpuio(dir.path(), "").exits(2);
    gpuio(dir.path(), "bnech").exits(2).prints(&["bnech", "bench"]);
    gpuio(dir.path(), "bench --threadz 3").exits(2).prints(&["--threadz", "--threads"]);
    gpuio(dir.path(), "bench a.ini b.ini").exits(2).prints(&["b.ini"]);
    gpuio(dir.path(), "bench --bs").exits(2).prints(&["--bs"]);
    for words in ["--version", "-V", "-v", "version"] {
        let version = gpuio(dir.path(), words).exits(0);
        assert_eq!(version.out.trim(), concat!("gpuio ", env!("CARGO_PKG_VERSION")), "{words}");
    }
    let version = gpuio(dir.path(), "version --format json").exits(0);
    let version: serde_json::Value = serde_json::from_str(&version.out).unwrap();
    assert_eq!(version["version"], env!("CARGO_PKG_VERSION"));
    gpuio(dir.path(), "version --json").exits(2).prints(&["--format json"]);
    // Words that are not UTF-8 are reported, not panicked over.
    let word = std::ffi::OsString::from_vec(b"--bs=\xff".to_vec());
    for verb in ["bench", "gdsio"] {
        let ran = finish(command(dir.path()).arg(verb).arg(&word)).exits(2);
        assert!(ran.err.contains("UTF-8"), "{ran:?}");
    }
}

/// A broken setting of the software GPU is named.
#[test]
fn soft_gpu_settings() {
    let dir = scratch();
    for (name, value) in [("GPUIO_SOFT_GPUS", "two"), ("GPUIO_SOFT_FAIL", "cuInit")] {
        let ran = bench_with(dir.path(), &[(name, value)], "--gpu software --size 1m");
        assert_eq!(ran.exits(3).out, "", "{name}");
    }
    let ran = bench_with(dir.path(), &[("GPUIO_SOFT_GPUS", "0")], "--gpu software --size 1m");
    ran.exits(3).prints(&["no GPU"]);
}

/// Faults to inject are judged with the plan, before a data set is made for it.
#[test]
fn faults_to_inject() {
    refused(
        2,
        &[
            ("--inject boom=1% --size 1m", &["inject", "boom", "eio"]),
            ("--inject eio=200% --size 1m", &["inject", "eio"]),
            ("--inject eio --size 1m", &["inject", "eio"]),
        ],
    );
    let dir = scratch();
    bench(dir.path(), "--inject boom=1% --size 1m --dry-run").exits(2).prints(&["boom"]);
}

/// Inputs that have no end, or are no files, are refused before a byte of them is read; and those
/// that are too long.
#[test]
fn inputs_without_an_end() {
    let dir = scratch();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        dir.path().join("fifo"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    std::os::unix::fs::symlink("/dev/zero", dir.path().join("endless.json")).unwrap();
    let huge = std::fs::File::create(dir.path().join("huge")).unwrap();
    huge.set_len(1 << 40).unwrap();
    for (name, words) in [
        ("endless.json", "a character device"),
        ("fifo", "a named pipe"),
        ("huge", "MiB, the most that is read"),
    ] {
        for verb in [
            "show NAME",
            "report NAME",
            "compare NAME NAME",
            "bench NAME",
            "bench NAME --dry-run",
            "bench --ab NAME NAME",
            "sweep NAME --vary bs=4k,8k",
            "gdsio NAME",
            "check --from NAME",
            "topo --from NAME",
            "plan --from NAME",
            "plan --system NAME",
            "plan --spec NAME",
            "bench --spec NAME",
        ] {
            gpuio(dir.path(), &verb.replace("NAME", name)).exits(2).prints(&[name, words]);
        }
        let mut command = command(dir.path());
        command.env("CUFILE_ENV_PATH_JSON", dir.path().join(name));
        let ran = finish(command.args(["gdscheck", "-p"]));
        assert!(ran.out.contains(words), "{ran:#?}");
    }
    std::fs::create_dir(dir.path().join("sweep")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", dir.path().join("sweep/sweep.json")).unwrap();
    for verb in ["report sweep/sweep.json", "compare sweep/sweep.json sweep/sweep.json"] {
        gpuio(dir.path(), verb).exits(2).prints(&["sweep.json", "a character device"]);
    }
}

/// A few bytes of a job file would otherwise make gigabytes of plan.
#[test]
fn threads_times_files() {
    let dir = scratch();
    let names: Vec<String> = (0..5000).map(|number| format!("f{number}")).collect();
    let text = format!("[j]\nthreads=65536\nfilename={}\nsize=4k\nbs=4k\n", names.join(":"));
    file(dir.path(), "many.ini", &text);
    let words = ["many.ini:3", "65536 threads with 5000 files", "327680000", "1048576", "numjobs"];
    bench(dir.path(), "many.ini --dry-run").exits(2).prints(&words);
    let text = "[global]\nthreads=65536\nsize=4k\nbs=4k\n".to_owned();
    let jobs: String = (0..17).map(|number| format!("[j{number}]\n")).collect();
    file(dir.path(), "jobs.ini", &(text + &jobs));
    bench(dir.path(), "jobs.ini --dry-run").exits(2).prints(&["j16", "1114112", "1048576"]);
}
