//! The uses of gdsio in NVIDIA's guide: files created by writes and read afterwards, its table of
//! transfer types, and the samples in `examples/gdsio`.

use std::path::Path;

use crate::record::jobs;
use crate::tool::{Ran, command, file, finish, scratch, tree, words};

#[track_caller]
fn gdsio(dir: &Path, line: &str) -> Ran {
    let mut command = command(dir);
    command.env("GPUIO_SOFT_GPUS", "16").arg("gdsio").args(words(line));
    finish(&mut command)
}

/// Random writes create the files, random reads use them: with a time and without, past the page
/// cache and through it, whatever the size.
#[test]
fn files_made_by_random_writes_can_be_read() {
    for size in ["1M", "1000K", "1000003"] {
        for open in ["", "-O 1"] {
            for (write, read) in [("-I 3", "-I 2"), ("-I 3 -T 1", "-I 2 -T 1"), ("-I 1", "-I 0")] {
                if write.contains("-T") && (size != "1M" || open.is_empty()) {
                    continue;
                }
                let dir = scratch();
                let line = format!("-D . -w 2 -s {size} -i 64K -x 1 {open}");
                gdsio(dir.path(), &format!("{line} {write}")).exits(0);
                let record = gdsio(dir.path(), &format!("{line} {read} --format json")).exits(0);
                let holes = &record.json()["jobs"][0]["cache"]["holes"];
                assert_eq!(holes["hole_bytes"], 0, "{line} {write}: {holes}");
            }
        }
    }
}

/// Written and verified, then read and verified by a run of its own, by the guide's rule: the same
/// seed, threads, offset and size.
#[test]
fn verified_writes_can_be_verified_by_a_later_read() {
    for (write, read) in [("-I 1", "-I 0"), ("-I 3 -k 7", "-I 2 -k 7")] {
        let dir = scratch();
        let line = "-D . -w 2 -s 1000K -i 16K -x 2 -V --gpu software";
        let ran = gdsio(dir.path(), &format!("{line} {write}")).exits(0);
        assert!(ran.out.contains("Verifying data"), "{ran:?}");
        gdsio(dir.path(), &format!("{line} {read}")).exits(0);
        // A byte that changed behind our back makes the file another's: nothing vouches for it.
        let path = dir.path().join("gdsio.1");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[40_000] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let code = gdsio(dir.path(), &format!("{line} {read}")).code;
        assert!(code == 1 || code == 2, "{write}: {code}");
    }
}

/// A write that is lost on the way is found, and the exit code is 1.
#[test]
fn a_lost_write_is_found() {
    let dir = scratch();
    let line = "-D . -w 2 -s 1M -i 16K -x 1 -I 3 -V --set inject=lost=30%,seed=5";
    let ran = gdsio(dir.path(), line).exits(1);
    assert!(ran.err.contains("expected") && ran.err.contains("offset"), "{ran:?}");
}

/// `-O 0` is the default, for every type; 3 opens with O_DIRECT as the guide's table has it.
#[test]
fn opens_are_those_of_the_guides_table() {
    let dir = scratch();
    let base = "-D . -w 1 -s 1M -i 64K -d 0 --gpu software --format json";
    for x in 0..=7 {
        for open in ["", "-O 0"] {
            let line = format!("{base} -x {x} -I 1 {open}");
            let record = gdsio(dir.path(), &line).exits(0).json();
            let requested = if x == 4 { "buffered" } else { "direct" };
            assert_eq!(record["plan"]["jobs"][0]["direct"], requested, "{line}");
        }
    }
    let line = format!("{base} -x 3 -I 0 -O 1");
    let record = gdsio(dir.path(), &line).exits(0).json();
    assert_eq!(record["plan"]["jobs"][0]["direct"], "buffered");
}

/// Host memory with cuFile's types, as the guide says: 0, 5 and 7; batches are refused with why.
#[test]
fn host_memory_with_types_of_cufile() {
    let dir = scratch();
    let base = "-D . -w 1 -s 1M -i 64K -d 0 --gpu software";
    gdsio(dir.path(), &format!("{base} -x 0 -I 1 -V")).exits(0);
    for m in 0..=4 {
        for x in ["0", "5", "7 -B 4"] {
            gdsio(dir.path(), &format!("{base} -x {x} -m {m} -I 0 -V")).exits(0);
        }
        let batch = gdsio(dir.path(), &format!("{base} -x 6 -B 4 -m {m} -I 0"));
        match m {
            0 | 1 => drop(batch.exits(0)),
            _ => drop(batch.exits(2).prints(&["cuFile 1.15", "type 0, 5 or 7"])),
        }
    }
}

#[test]
fn nvlinks_are_refused_where_nothing_would_use_them() {
    let dir = scratch();
    let base = "-D . -w 1 -s 1M -i 64K -d 0 --gpu software -I 1";
    for x in [0, 1, 2, 4, 6] {
        gdsio(dir.path(), &format!("{base} -x {x} -p")).exits(2).prints(&["-p", "routed"]);
    }
    assert!(tree(dir.path()).is_empty());
    file(
        dir.path(),
        "off.gdsio",
        "[global]\nxfer_type=1\nrw=write\nbs=64K\nsize=1M\nenable_nvlinks=0\n[job1]\n\
         num_threads=1\ndirectory=.\n",
    );
    gdsio(dir.path(), "off.gdsio").exits(0);
}

/// An error of many threads alike is printed once, with how many.
#[test]
fn many_threads_say_an_error_once() {
    let dir = scratch();
    let line = "-D . -w 64 -s 64K -i 4K -x 1";
    let missing = gdsio(dir.path(), &format!("{line} -I 0")).exits(2);
    assert_eq!(missing.err.lines().count(), 1, "{missing:?}");
    assert!(missing.err.contains("63 more"), "{missing:?}");
    let failing = gdsio(dir.path(), &format!("{line} -I 1 --set inject=eio=100%")).exits(1);
    let errors = failing.err.lines().filter(|line| line.starts_with("error: ")).count();
    assert_eq!(errors, 1, "{failing:?}");
    assert!(failing.err.contains("on 64 files"), "{failing:?}");
}

/// Every sample runs: first as a write of tiny files, then as it stands, for a moment.
#[test]
fn the_samples_run() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/gdsio");
    let mut count = 0;
    for sample in std::fs::read_dir(samples).unwrap() {
        let sample = sample.unwrap().path();
        if sample.extension().is_none_or(|extension| extension != "gdsio") {
            continue;
        }
        count += 1;
        let text = std::fs::read_to_string(&sample).unwrap();
        let dir = scratch();
        for line in text.lines().filter_map(|line| line.strip_prefix("directory=")) {
            let place = line.replace("${NFS}", "nfs").replace("${DATA}", "data");
            std::fs::create_dir_all(dir.path().join(place)).unwrap();
        }
        let run = |more: &str| {
            let mut command = command(dir.path());
            command.env("GPUIO_SOFT_GPUS", "16").env("NFS", "nfs").env("DATA", "data");
            command.arg("gdsio").arg(&sample);
            // One node, which every machine has.
            let tiny = "--gpu software --set num_threads=2 --set size=4M --set numa=0";
            finish(command.args(words(&format!("{tiny} {more}"))))
        };
        let timed = text.contains("\nruntime=");
        if !text.contains("\nrw=write") {
            run("--format json --set rw=write --set runtime=100ms").exits(0);
        }
        run("--dry-run").exits(0);
        let ran =
            run(if timed { "--format json --set runtime=100ms" } else { "--format json" }).exits(0);
        let record = ran.json();
        let wanted = text.lines().filter(|line| line.starts_with("[job")).count();
        let verified = text.contains("do_verify=1");
        assert_eq!(jobs(&record).len(), if verified { 2 * wanted } else { wanted });
        for (plan, _) in jobs(&record) {
            let number = if text.contains("xfer_type=6") { 6 } else { 0 };
            assert_eq!(plan["path"]["gdsio"].as_u64(), Some(number));
        }
    }
    assert!(count > 0, "there are no samples");
}
