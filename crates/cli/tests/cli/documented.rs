//! The command lines of README and docs run, on gpuio's software GPU where they name a GPU, with
//! short times and small files. Lines that can't run here are listed with the reason.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use gpuio_testkit::repository;

use crate::example::built;
use crate::stats::{LOAD, Run};
use crate::tool::{Ran, command, finish, other, scratch, words};

#[path = "../../src/args/tests/pages.rs"]
mod pages;

/// Lines that begin like this don't run here. Each is of a page.
const LEFT_OUT: &[(&str, &str)] = &[
    ("gpuio prefetch ", "files of the user's: cli/tests/cli/prefetch.rs"),
    ("gpuio exec --prefetch ", "files of the user's: cli/tests/cli/prefetch.rs"),
    ("gpuio exec --record ", "makes a trace that others read: cli/tests/cli/replay.rs"),
    ("gpuio workload safetensors ", "a model of the user's: cli/tests/cli/workload.rs"),
    ("gpuio check --mount /data --gpu 0", "names a GPU of the machine"),
    ("gpuio why /data --gpu 0", "names a GPU of the machine"),
    ("gpuio plan --gpu 0,4 ", "names GPUs of the machine"),
    ("gpuio plan --drive ", "names drives of the machine"),
    ("gpuio topo GPU0 ", "names a GPU and a drive of the machine"),
    ("gpuio topo --from post.txt", "a text of the reader's: capture/tests"),
    ("gpuio topo --from topo.txt", "texts of the reader's: capture/tests"),
    ("gpuio topo --from DIR", "a copy of another machine's /sys and /proc: cli/tests/cli/topo.rs"),
    ("gpuio stats PID --interval", "until the process ends: cli/tests/cli/stats.rs"),
    ("gpuio stats --serve", "until it is ended: cli/tests/cli/live_metrics.rs"),
    ("gpuio network ", "needs a second machine: cli/tests/cli/network.rs"),
    ("gpuio compare baseline now --threshold", "its exit code is what it measured"),
    ("gpuio compare gpuio.json fio.json", "one load by three tools: cli/tests/cli/compare.rs"),
];

/// Lines that begin like this would take minutes: they run up to their plan.
const PLANNED: &[&str] = &[
    "gpuio workload unet3d-h100 --gpu 0 --directory /mnt/nvme/data --",
    "gpuio workload dali-inference ",
    "gpuio workload seismic ",
    "gpuio workload kv-cache ",
    "gpuio workload checkpoint-llama3-8b ",
    "gpuio workload vector-search ",
    "gpuio bench --rw randwrite --steady ",
    "gpuio sweep --preset paths ",
    "gpuio sweep job.ini --vary numa=0,1 --repeats 5..20 ",
];

/// Exit codes other than 0 that are answers: a fault of this machine; no driver of NVIDIA's; no
/// rings that a GPU fills.
const ANSWERS: &[(&str, &[i32])] = &[
    ("gpuio check", &[0, 1]),
    ("gpuio gdscheck", &[0, 3]),
    // Figures of this minute: passed, failed or undetermined.
    ("gpuio compare before/ after/ --threshold", &[0, 1, 2]),
    ("gpuio workload vector-search --chain", &[0, 3]),
];

/// Where the lines run: the files and directories that they name are there.
struct Stage {
    dir: crate::tool::Scratch,
    path: OsString,
}

impl Stage {
    fn new() -> Stage {
        let dir = scratch();
        let at = dir.path();
        let results = ["bin", "before", "after", "baseline", "now"];
        for folder in ["mnt/nvme/data", "mnt/nvme/gds_dir", "mnt/nvme0"].iter().chain(&results) {
            std::fs::create_dir_all(at.join(folder)).unwrap();
        }
        let job = "[a]\nrw=read\nbs=64k\nsize=1m\nruntime=30ms\n";
        ["A.ini", "B.ini", "job.ini", "jobs.ini"].iter().for_each(|name| write(at, name, job));
        let feed = "[mine]\nfiles=32\nsample_size=64k\nbatch_samples=2\ncompute_time=1ms\n";
        write(at, "mine.ini", feed);
        write(at, "net.ini", "[port eth0]\nread = 1GB/s\nsource = measured\n");
        let calls = "fio version 2 iolog\n/f add\n/f read 0 65536\n/f read 65536 65536\n";
        ["trace", "fio.iolog"].iter().for_each(|name| write(at, name, calls));
        let cufile = "{ \"logging\": {}, \"properties\": { \"allow_compat_mode\": true } }\n";
        write(at, "cufile.json", cufile);
        for (from, to) in [
            ("crates/capture/tests/fixtures/dgx-2.lspci-tv", "lspci.txt"),
            ("crates/capture/tests/fixtures/dgx-2.query.csv", "query.csv"),
            ("crates/capture/tests/fixtures/dgx-2.mount", "mount.txt"),
            ("crates/capture/tests/fixtures/dgx-2.by-path", "by-path.txt"),
            ("crates/capture/tests/fixtures/h100-1.13.gdscheck", "gdscheck.txt"),
            ("examples/gdsio/write.gdsio", "rw-sample.gdsio"),
        ] {
            std::fs::copy(repository(from), at.join(to)).unwrap();
        }
        let guide = "joe@dgx2:~$ lsblk\nNAME MAJ:MIN RM SIZE RO TYPE MOUNTPOINT\n\
                     nvme0n1 259:0 0 3.5T 0 disk /raid\n";
        write(at, "guide.txt", guide);
        let mut tar = other(at, "tar");
        tar.current_dir(at);
        assert!(tar.args(["-czf", "bundle.tar.gz", "guide.txt"]).status().unwrap().success());
        for host in ["n1", "n2"] {
            std::fs::create_dir_all(at.join("captures").join(host)).unwrap();
            for name in ["lspci.txt", "query.csv", "mount.txt", "by-path.txt"] {
                std::fs::copy(at.join(name), at.join("captures").join(host).join(name)).unwrap();
            }
        }
        let page = std::fs::read_to_string(repository("docs/expectation.md")).unwrap();
        for (section, name) in [("[drive ", "drives.ini"), ("[clients ", "cluster.ini")] {
            let blocks = page.split("```ini\n").skip(1).map(|block| block.split("```").next());
            let text = blocks.flatten().find(|block| block.contains(section)).unwrap();
            write(at, name, text);
        }
        // Programs that use cuFile are tested in `example.rs`; here these stand for them.
        for program in ["bin/python", "prog"] {
            write(at, program, "#!/bin/sh\nexit 0\n");
            let executable = PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(at.join(program), executable).unwrap();
        }
        let own = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(
            std::iter::once(at.join("bin")).chain(std::env::split_paths(&own)),
        );
        Stage { dir, path: path.unwrap() }.filled()
    }

    /// With results of earlier commands, which later ones read.
    fn filled(self) -> Stage {
        let small = "--bs 64k --size 1m --runtime 30ms";
        for line in [
            &format!("bench --path staged,gather --gpu 0 --depth 4 {small} -o r.json -q"),
            &format!("bench --rw write --filename mnt/nvme0/file {small} --keep -q"),
            &format!("sweep --vary bs=4k,64k {small} --repeats 1 -q -o sweep"),
            // Where the depth is left open, each path has its own.
            &format!(
                "sweep --vary path=gds,gather --gpu 0 {small} --repeats 1 -q -o gpuio-sweep-paths"
            ),
            "gdsio -D mnt/nvme/gds_dir -d 0 -w 8 -s 4M -i 1M -x 2 -I 1",
            "topo --capture machine.tar",
        ] {
            let words = words(line).into_iter().map(str::to_owned).collect::<Vec<_>>();
            self.run(&words).exits(0);
        }
        // Each a run of its own: a copy would count once, and a changed one is in no figure.
        for name in
            ["run", "a", "b", "before", "after", "before/1", "before/2", "after/1", "after/2"]
        {
            let line =
                format!("bench --path staged,gather --gpu 0 --depth 4 {small} -o {name}.json -q");
            let words = words(&line).into_iter().map(str::to_owned).collect::<Vec<_>>();
            self.run(&words).exits(0);
        }
        self
    }

    /// Runs it as on a machine with 16 GPUs, by the software driver.
    fn run(&self, words: &[String]) -> Ran {
        let mut command: Command = command(self.dir.path());
        command.env("GPUIO_LIBCUDA", built("libgpuio_softgpu.so")).env("GPUIO_SOFT_GPUS", "16");
        command.env("PATH", &self.path).env("DATA", "data").env("NFS", "nfs");
        finish(command.args(words))
    }
}

fn write(dir: &Path, name: &str, text: &str) {
    std::fs::write(dir.join(name), text).unwrap();
}

/// Puts a value in the place of a flag's, or adds the flag.
fn set(words: &mut Vec<String>, flag: &str, value: &str) {
    match words.iter().position(|word| word == flag) {
        Some(at) => words[at + 1] = value.to_owned(),
        None => words.extend([flag.to_owned(), value.to_owned()]),
    }
}

/// The words of a line after the program's name, for small files and short times.
fn made_small(line: &str, pid: u32, number: usize) -> Vec<String> {
    let mut words = pages::words(line);
    words.remove(0);
    for word in &mut words {
        if word.starts_with("/mnt/") {
            word.remove(0);
        } else if word == "PID" {
            *word = pid.to_string();
        } else if word.starts_with("--ceilings=") {
            "--ceilings=20ms".clone_into(word);
        }
    }
    let is_planned = PLANNED.iter().any(|start| line.starts_with(start));
    let has_file = words.iter().any(|word| word.ends_with(".ini") || word.ends_with(".gdsio"));
    match words[0].as_str() {
        _ if is_planned => words.push("--dry-run".to_owned()),
        "bench" | "sweep" if !has_file => {
            set(&mut words, "--runtime", "30ms");
            set(&mut words, "--size", "1m");
            if line.contains("--fan-out") {
                set(&mut words, "--gpu", "0,1");
                set(&mut words, "--threads", "2");
            }
        }
        "gdsio" if has_file => {
            let small = "--gpu software --set num_threads=2 --set size=4M --set numa=0 \
                         --set runtime=30ms --set directory=mnt/nvme/data";
            words.extend(small.split_whitespace().map(str::to_owned));
        }
        "gdsio" => {
            set(&mut words, "-s", "4M");
            set(&mut words, "-T", "1");
        }
        _ => {}
    }
    if words[0] == "sweep" && !is_planned {
        set(&mut words, "--repeats", "1");
        set(&mut words, "-o", &format!("sweep-{number}"));
        if line.contains("--preset routing") {
            set(&mut words, "--gpu", "software:0,1");
        }
    }
    words
}

/// Removes files of an earlier line that would be in this one's way.
fn remove_outputs(dir: &Path, words: &[String]) {
    for pair in words.windows(2) {
        if ["-o", "--write", "--capture"].contains(&pair[0].as_str()) {
            let _ = std::fs::remove_file(dir.join(&pair[1]));
            let _ = std::fs::remove_dir_all(dir.join(&pair[1]));
        }
    }
}

#[test]
fn documented_commands_run() {
    let stage = Stage::new();
    // Its page is where the stage's own commands look for pages.
    let at = stage.dir.path().join("living");
    std::fs::create_dir(&at).unwrap();
    let living = Run::start(&at, &format!("{LOAD} --rate-iops 100"));
    let mut seen = vec![false; LEFT_OUT.len() + PLANNED.len()];
    let (mut wrong, mut number) = (Vec::new(), 0);
    for page in pages::pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for line in pages::commands(&text) {
            let starts = LEFT_OUT.iter().map(|(start, _)| *start).chain(PLANNED.iter().copied());
            // In whole words: `gpuio top` is not `gpuio topo`.
            let begins = |start: &str| {
                let rest = line.strip_prefix(start);
                rest.is_some_and(|rest| {
                    start.ends_with(['-', ' ']) || !rest.starts_with(char::is_alphanumeric)
                })
            };
            let listed = starts.clone().position(begins);
            listed.into_iter().for_each(|at| seen[at] = true);
            if listed.is_some_and(|at| at < LEFT_OUT.len()) {
                continue;
            }
            number += 1;
            let words = made_small(&line, living.pid(), number);
            remove_outputs(stage.dir.path(), &words);
            let ran = stage.run(&words);
            let answers = ANSWERS.iter().find(|(start, _)| line.starts_with(start));
            if !answers.map_or(&[0][..], |(_, codes)| codes).contains(&ran.code) {
                wrong.push(format!("{}: {line}\n  {words:?}\n{}", page.display(), ran.err));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let starts = LEFT_OUT.iter().map(|(start, _)| start).chain(PLANNED);
    let stale: Vec<&&str> = starts.zip(&seen).filter(|(_, seen)| !**seen).map(|(s, _)| s).collect();
    assert!(stale.is_empty(), "no page has these: {stale:?}");
}
