//! Whatever is printed or saved, and by whatever verb a load runs: what went wrong is said on
//! standard error, and the exit code says the same.

use std::path::Path;

use crate::ranks;
use crate::tool::{Ran, command, file, finish, scratch, words};

/// Where results go.
const OUTPUTS: [&str; 7] = [
    "",
    "-q",
    "-o r.json",
    "-q -o r.json",
    "-q --format json",
    "--format csv",
    "-q --format csv -o r.csv",
];

/// A way for a load to go wrong, and the words for it.
struct Way {
    load: &'static str,
    says: &'static str,
}

const WAYS: [Way; 3] = [
    Way { load: "loops=4\ninject=eio=20%,seed=1\n", says: "I/Os failed" },
    Way {
        load: "loops=1\nverify=pass\ninject=eio=30%,seed=4\n",
        says: "I/Os of the verification itself failed",
    },
    // The first copy is of a block that the load reads.
    Way { load: "loops=2\nverify=inline\npath=staged\ngpu=software\n", says: "BAD BLOCK" },
];

fn run(dir: &Path, line: &str) -> Ran {
    let mut command = command(dir);
    finish(command.env("GPUIO_SOFT_CORRUPT", "cuMemcpyHtoDAsync_v2:3").args(words(line)))
}

#[track_caller]
fn says(ran: &Ran, what: &str, line: &str) {
    assert_eq!(ran.code, 1, "{line}: {ran:#?}");
    let lines: Vec<&str> = ran.err.lines().filter(|line| line.starts_with("error: ")).collect();
    assert!(lines.iter().any(|line| line.contains(what)), "{line}: no {what:?} in {ran:#?}");
}

fn job_file(dir: &Path, way: &Way) {
    let text = format!("[job]\nrw=read\nbs=64k\nsize=1m\nengine=psync\n{}", way.load);
    file(dir, "job.ini", &text);
}

#[test]
fn what_went_wrong_is_said_with_every_output() {
    // With the first output each way, and with the first way each output: the words are of the way.
    for (nth, way) in WAYS.iter().enumerate() {
        for output in if nth == 0 { &OUTPUTS[..] } else { &OUTPUTS[..1] } {
            for verb in ["bench", "workload"] {
                let dir = scratch();
                job_file(dir.path(), way);
                let line = format!("{verb} job.ini {output}");
                says(&run(dir.path(), &line), way.says, &line);
            }
        }
    }
}

#[test]
fn nothing_is_said_of_a_run_that_went_well() {
    for output in OUTPUTS {
        let dir = scratch();
        job_file(dir.path(), &Way { load: "loops=2\nverify=pass\n", says: "" });
        let ran = run(dir.path(), &format!("bench job.ini {output}")).exits(0);
        assert_eq!(ran.err, "", "{output}");
    }
}

#[test]
fn other_verbs_say_it_too() {
    for (line, what) in [
        ("gdsio -D . -w 1 -s 1M -i 64K -x 1 -I 1 --set inject=eio=20%,seed=1", "Input/output"),
        (
            "gdsio -D . -w 1 -s 1M -i 64K -x 1 -I 1 --set inject=eio=20%,seed=1 --quiet \
             --output r.json",
            "Input/output",
        ),
        ("bench --ab job.ini other.ini --rounds 1 -q", "I/Os failed"),
    ] {
        let dir = scratch();
        job_file(dir.path(), &WAYS[0]);
        std::fs::copy(dir.path().join("job.ini"), dir.path().join("other.ini")).unwrap();
        says(&run(dir.path(), line), what, line);
    }
    let dir = scratch();
    let line = "gdsio -D . -w 1 -s 1M -i 64K -x 1 -V";
    run(dir.path(), &format!("{line} -I 1")).exits(0);
    let data = std::fs::File::options().write(true).open(dir.path().join("gdsio.0")).unwrap();
    let time = data.metadata().unwrap().modified().unwrap();
    std::os::unix::fs::FileExt::write_all_at(&data, b"XXXX", 500_000).unwrap();
    data.set_modified(time).unwrap();
    says(&run(dir.path(), &format!("{line} -I 0")), "expected", line);
    // A sweep says it of the point that it is true of.
    let dir = scratch();
    job_file(dir.path(), &WAYS[0]);
    let ran = run(dir.path(), "sweep job.ini --vary bs=64k --repeats 1 -q -o s").exits(1);
    assert!(ran.out.contains("I/Os failed"), "{ran:#?}");
}

/// Rank 0 says it of all.
#[test]
fn ranks_say_it_too() {
    for mpi in ranks::first() {
        for output in ["-q -o r.json", "-q --format json"] {
            let dir = scratch();
            job_file(dir.path(), &WAYS[0]);
            let line = format!("bench job.ini --directory d{{rank}} {output}");
            let mut launched = mpi.ranks(dir.path(), 2);
            let launched = launched.arg(crate::tool::GPUIO).args(words(&line));
            let ran = ranks::Ran::from(launched.output().unwrap()).exits(1);
            let said = ran.err.matches("I/Os failed").count();
            assert_eq!(said, 1, "{}: {output}: {}", mpi.mpirun, ran.err);
        }
    }
}
