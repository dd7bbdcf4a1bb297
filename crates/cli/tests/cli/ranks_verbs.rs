//! The other verbs on several ranks, and what the formats say of ranks.

use serde_json::Value;

use crate::ranks::{Mpi, Ran, first, installed, record, run, small};
use crate::tool::{command, scratch_short, until, words};

/// The value of a field of gdsio's line.
fn field<'a>(line: &'a str, name: &str) -> &'a str {
    let after = line.split(&format!("{name}: ")).nth(1).unwrap_or_else(|| panic!("{line}"));
    after.split(' ').next().unwrap()
}

#[test]
fn gdsio_prints_one_line_over_all_clients() {
    for mpi in first() {
        let dir = scratch_short();
        std::fs::create_dir(dir.path().join("d")).unwrap();
        let file = "[global]\nxfer_type=1\nrw=write\nbs=64k\nsize=1M\ndo_verify=1\n[a]\n\
                    num_threads=2\ndirectory=d\n";
        std::fs::write(dir.path().join("rw.gdsio"), file).unwrap();
        let words = ["gdsio", "rw.gdsio", "--output", "r.json", "--quiet"];
        let ran = run(mpi, dir.path(), &words).exits(0);
        let lines: Vec<&str> = ran.out.lines().collect();
        assert!(lines[3..].iter().all(|line| line.starts_with("# ")), "{}", ran.out);
        assert_eq!(lines[1], "Verifying data");
        for (line, way) in [(lines[0], "WRITE"), (lines[2], "READ")] {
            assert_eq!(field(line, "IoType"), way);
            assert_eq!(field(line, "Threads"), "8");
            assert_eq!(field(line, "DataSetSize"), "8192/8192(KiB)");
            assert_eq!(field(line, "ops"), "128");
        }
        assert_eq!(ran.out.matches("# ranks: 4 on host ").count(), 1, "{}", ran.out);
        for n in 0..8 {
            assert!(dir.path().join(format!("d/gdsio.{n}")).is_file(), "file {n}");
        }
        assert_eq!(record(dir.path(), "r.json")["ranks"]["ranks"], 4);
    }
}

#[test]
fn gdsio_has_the_placement_and_the_refusals_of_bench() {
    for mpi in first() {
        let dir = scratch_short();
        let gdsio = |more: &[&str]| {
            let words = ["gdsio", "-w", "2", "-s", "1M", "-i", "64K", "-x", "1", "-I", "1"];
            run(mpi, dir.path(), &[&words[..], more].concat())
        };
        let ran = gdsio(&["-f", "one"]).exits(2);
        assert!(ran.err.contains("would both use the same bytes of one, and write"), "{}", ran.err);
        assert_eq!(ran.err.matches("error: ").count(), 1, "{}", ran.err);
        let ran = gdsio(&["-f", "one{rank}", "--dry-run"]).exits(0);
        for n in 0..4 {
            assert!(ran.out.contains(&format!(" one{n} ")), "{}", ran.out);
        }
        let ran = gdsio(&["-f", "one{rank}", "--per-rank"]).exits(2);
        assert!(ran.err.contains("gdsio's line is of all ranks"), "{}", ran.err);
        gdsio(&["-f", "one{rank}"]).exits(0);
        assert!(dir.path().join("one3").is_file());
    }
}

/// cuFile's configuration is in the environment before MPI starts threads, and each rank has its
/// own.
#[test]
fn ranks_use_cufile() {
    const COMPAT: &str = "properties.allow_compat_mode=true";
    const TYPES: [(&str, &str); 4] =
        [("0", "GPUD"), ("5", "ASYNC"), ("6", "GPU_BATCH"), ("7", "GPU_BATCH_STREAM")];
    for (nth, mpi) in installed().into_iter().enumerate() {
        let dir = scratch_short();
        let cufile = ["--gpu", "software", "--share", "gpu", "--cufile-set", COMPAT];
        for (x, name) in if nth == 0 { &TYPES[..] } else { &TYPES[..1] } {
            let batch: &[&str] = if *x < "6" { &[] } else { &["-B", "4"] };
            let words = ["gdsio", "-f", "f{rank}", "-w", "1", "-s", "1M", "-i", "64K", "-V"];
            let more = ["-d", "0", "-x", x, "-I", "1"];
            let all = [&words[..], batch, &more, &cufile].concat();
            let ran = run(mpi, dir.path(), &all).exits(0);
            let lines: Vec<&str> = ran.out.lines().collect();
            for (line, io_type) in [(lines[0], "WRITE"), (lines[2], "READ")] {
                assert_eq!([field(line, "IoType"), field(line, "XferType")], [io_type, *name]);
                assert_eq!(field(line, "ops"), "64", "{}", ran.out);
            }
        }
        let words = ["--path", "gds", "--directory", "d", "-o", "r.json"];
        run(mpi, dir.path(), &small(&[&words[..], &cufile].concat())).exits(0);
        let record = record(dir.path(), "r.json");
        assert_eq!(record["ranks"]["ranks"], 4);
        let config = &record["cufile"]["config"];
        assert_eq!(config["properties.allow_compat_mode"], "true", "{config:#}");
        let axes = ["--path", "gds", "--vary", "ranks=1,2"];
        let ran = sweep(mpi, dir.path(), &[&axes[..], &cufile].concat()).exits(0);
        assert!(ran.out.lines().nth(2).unwrap().starts_with('2'), "{}", ran.out);
    }
}

const SWEEP: [&str; 12] =
    ["sweep", "--rw", "read", "--size", "1M", "--io-size", "4M", "--repeats", "1", "-o", "s", "-q"];

fn sweep(mpi: &Mpi, dir: &std::path::Path, more: &[&str]) -> Ran {
    run(mpi, dir, &[&SWEEP[..], more].concat())
}

#[test]
fn a_sweep_varies_the_number_of_ranks() {
    for mpi in installed() {
        let dir = scratch_short();
        let axes = ["--vary", "ranks=1,2,4", "--vary", "bs=64k,256k"];
        let ran = sweep(mpi, dir.path(), &axes).exits(0);
        let rows: Vec<Vec<&str>> =
            ran.out.lines().map(|line| line.split_whitespace().take(2).collect()).collect();
        assert_eq!(rows[0], ["ranks", "bs"]);
        assert_eq!(rows[3], ["2", "64k"]);
        assert_eq!(rows[6], ["4", "256k"], "{}", ran.out);
        let of_point = |n: u32| record(dir.path(), &format!("s/point-000{n}-run-001.json"));
        for (point, ranks) in [(1, 1_usize), (3, 2), (5, 4)] {
            let record = of_point(point);
            assert_eq!(record["ranks"]["ranks"], ranks);
            assert_eq!(record["ranks"]["rows"].as_array().unwrap().len(), ranks);
            assert_eq!(record["jobs"][0]["read"]["bytes"], ranks * (4 << 20));
        }
        let rest: Vec<_> = std::fs::read_dir(dir.path()).unwrap().collect();
        assert_eq!(rest.len(), 1, "its data set went, and nothing else was made");
        assert!(!dir.path().join("s/data").exists());
        // The same command resumes it, and every format has the axis.
        let again = sweep(mpi, dir.path(), &axes).exits(0);
        assert_eq!(again.out.lines().nth(1), ran.out.lines().nth(1), "nothing ran again");
        let report = |words: &[&str]| {
            Ran::from(command(dir.path()).args(words).output().unwrap()).exits(0).out
        };
        let csv = report(&["report", "s", "--format", "csv"]);
        assert!(csv.lines().next().unwrap().ends_with(",axis_ranks,axis_bs"), "{csv}");
        let compared = report(&["compare", "s", "--axis", "ranks=1,4", "--despite", "cache"]);
        assert!(compared.contains("4×"), "{compared}");
    }
}

#[test]
fn a_sweep_of_ranks_needs_them() {
    let dir = scratch_short();
    let words = [&SWEEP[..], &["--vary", "ranks=1,2"]].concat();
    let ran = Ran::from(command(dir.path()).args(words).output().unwrap()).exits(2);
    assert!(ran.err.contains("a sweep starts no ranks by itself"), "{}", ran.err);
    for mpi in first() {
        let ran = sweep(mpi, dir.path(), &["--vary", "ranks=1,5"]).exits(2);
        assert!(ran.err.contains("values are 1 to 4"), "{}", ran.err);
        assert_eq!(ran.err.matches("error: ").count(), 1, "{}", ran.err);
        assert!(!dir.path().join("s").exists());
    }
}

/// Runs of `gpuio bench` below a directory, by their processes.
fn runs_of(dir: &std::path::Path) -> Vec<(u32, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        if !std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == dir) {
            continue;
        }
        let words = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let env = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        let env = String::from_utf8_lossy(&env).into_owned();
        let place = env.split('\0').find_map(|one| one.strip_prefix("GPUIO_RANK_OF="));
        if let (true, Some(place)) = (words.windows(6).any(|at| at == b"\0bench"), place) {
            found.push((pid, place.to_owned()));
        }
    }
    found
}

/// Whether the process has a thread of this name.
fn has_thread(pid: u32, name: &str) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let names = threads.flat_map(|thread| std::fs::read_to_string(thread.path().join("comm")));
    names.into_iter().any(|other| other.trim_end() == name)
}

#[test]
fn a_point_whose_rank_dies_fails_and_the_sweep_goes_on() {
    for mpi in first() {
        let dir = scratch_short();
        let at = dir.path().canonicalize().unwrap();
        let mut ranks = mpi.ranks(dir.path(), 3);
        ranks.arg(crate::tool::GPUIO).args(["sweep", "--rw", "read", "--size", "1M"]);
        ranks.args(["--runtime", "600", "--repeats", "1", "-o", "s", "--vary", "depth=1,2"]);
        ranks.args(["--rank-timeout", "10", "--rate-iops", "100"]);
        let ran = std::thread::spawn(move || Ran::from(ranks.output().unwrap()));
        // Each of the two points has its runs; one is killed, and one hangs.
        for signal in ["-KILL", "-STOP"] {
            let mut runs = Vec::new();
            until("the point has not three runs", || {
                runs = runs_of(&at);
                runs.len() == 3
            });
            let of_rank = |(_, place): &&(u32, String)| {
                serde_json::from_str::<Value>(place).unwrap()["rank"] == 2
            };
            let (pid, _) = runs.iter().find(of_rank).unwrap();
            // Before its first sign of life a rank has more time.
            until("the run has no worker", || has_thread(*pid, "gpuio-0"));
            let mut kill = crate::tool::plain("kill");
            assert!(kill.args([signal, &pid.to_string()]).status().unwrap().success());
            until("they still run", || !runs_of(&at).iter().any(|one| runs.contains(one)));
        }
        let ran = ran.join().unwrap();
        assert_ne!(ran.code, 0);
        assert_eq!(ran.out.matches(": failed: rank 2 ").count(), 2, "{}", ran.out);
        assert!(ran.out.contains(" died") && ran.out.contains(" hangs: "), "{}", ran.out);
        assert_eq!(runs_of(&at), []);
    }
}

#[test]
fn flags_of_ranks_reach_the_runs_of_a_sweep() {
    for mpi in first() {
        let dir = scratch_short();
        std::fs::write(dir.path().join("one"), vec![7; 1 << 20]).unwrap();
        let words = ["--vary", "bs=64k", "--filename", "one"];
        let ran = sweep(mpi, dir.path(), &words).exits(1);
        assert!(ran.out.contains("would read the same bytes of one"), "{}", ran.out);
        std::fs::remove_dir_all(dir.path().join("s")).unwrap();
        let ran = sweep(mpi, dir.path(), &[&words[..], &["--share", "file"]].concat()).exits(0);
        assert!(ran.out.contains("64k"), "{}", ran.out);
    }
    let dir = scratch_short();
    let words = [&SWEEP[..], &["--vary", "bs=64k", "--share", "file"]].concat();
    let ran = Ran::from(command(dir.path()).args(words).output().unwrap()).exits(2);
    assert!(ran.err.contains("--share: it has no effect here: one process runs"), "{}", ran.err);
}

#[test]
fn two_job_files_are_compared_on_all_ranks() {
    for mpi in first() {
        let dir = scratch_short();
        for (name, bs) in [("a.ini", "64k"), ("b.ini", "256k")] {
            let job =
                format!("[job]\nrw=read\nbs={bs}\nsize=1M\nio_size=4M\ndepth=4\ndirectory=d\n");
            std::fs::write(dir.path().join(name), job).unwrap();
        }
        let words = ["bench", "--ab", "a.ini", "b.ini", "--rounds", "1", "-o", "ab", "-q"];
        let ran = run(mpi, dir.path(), &words).exits(0);
        assert!(ran.out.contains("job read 64K 4×1×4"), "{}", ran.out);
        for name in ["a-01", "b-01"] {
            let record = record(dir.path(), &format!("ab/{name}.json"));
            assert_eq!(record["ranks"]["rows"].as_array().unwrap().len(), 4, "{name}");
        }
        let ran = run(mpi, dir.path(), &[&words[..6], &["--per-rank"]].concat()).exits(2);
        assert!(ran.err.contains("--ab prints a comparison"), "{}", ran.err);
    }
}

#[test]
fn every_path_and_the_quick_run_go_in_step() {
    for mpi in first() {
        let dir = scratch_short();
        let all = words(
            "bench --path all --gpu software --rw read --bs 64k --size 1M --io-size 1M \
                     --directory d -o r.json -q",
        );
        run(mpi, dir.path(), &all).exits(0);
        let all = record(dir.path(), "r.json");
        let jobs = all["jobs"].as_array().unwrap();
        assert!(jobs.len() > 5, "{}", jobs.len());
        let groups = all["ranks"]["groups"].as_array().unwrap();
        assert_eq!(groups.len(), jobs.len(), "each path has its rates over all ranks");
        assert!(jobs.iter().all(|job| job["read"]["bytes"] == 4 << 20));
        let quick = ["bench", "--directory", "q", "--runtime", "0.05", "--keep", "-o", "q.json"];
        let ran = run(mpi, dir.path(), &quick).exits(0);
        assert_eq!(ran.out.matches("No path to a GPU ran").count(), 1, "{}", ran.out);
        assert_eq!(record(dir.path(), "q.json")["ranks"]["rows"][3]["jobs"][0]["job"], "read-1M");
    }
}

#[test]
fn ranks_become_steady_together() {
    for mpi in first() {
        let dir = scratch_short();
        let words = words(
            "bench --rw read --bs 64k --size 1M --runtime 600 --directory d --steady \
                     iops:100% --set ss_dur=2s -o r.json -q",
        );
        run(mpi, dir.path(), &words).exits(0);
        let record = record(dir.path(), "r.json");
        let steady = &record["jobs"][0]["steady"];
        assert!(steady["attained_at_ns"].as_u64().unwrap() >= 2_000_000_000, "{steady}");
        assert_eq!(steady["checks"], 1);
    }
}

#[test]
fn a_computation_runs_on_the_gpu_of_each_rank() {
    for mpi in first() {
        let dir = scratch_short();
        let words = words(
            "bench --path staged --gpu software --rw read --bs 64k --size 1M --runtime 0.3 \
                     --directory d --beside compute:50% -o r.json -q",
        );
        run(mpi, dir.path(), &words).exits(0);
        let record = record(dir.path(), "r.json");
        let beside = &record["jobs"][0]["beside"];
        let ranks: Vec<_> =
            beside["gpus"].as_array().unwrap().iter().map(|gpu| gpu["rank"].as_u64()).collect();
        assert_eq!(ranks, [Some(0), Some(1), Some(2), Some(3)]);
        assert!(beside["alone"]["read"]["bytes"].as_u64().unwrap() > 0);
    }
}

#[test]
fn formats_have_ranks_and_hosts() {
    for mpi in first() {
        let dir = scratch_short();
        let words = words("bench --rw read --bs 64k --size 1M --io-size 4M --directory d -q");
        let one = [&words[..], &["-o", "r.csv", "--per-rank"]].concat();
        run(mpi, dir.path(), &one).exits(0);
        let csv = std::fs::read_to_string(dir.path().join("r.csv")).unwrap();
        assert_eq!(csv.lines().count(), 1 + 1 + 1 + 4, "{csv}");
        let columns = csv.lines().next().unwrap().rsplit(',');
        let place = columns.into_iter().position(|name| name == "rank").unwrap();
        let ranks: Vec<_> = csv.lines().map(|line| line.rsplit(',').nth(place).unwrap()).collect();
        assert_eq!(ranks, ["rank", "", "", "0", "1", "2", "3"], "all, the host, each rank");
        run(mpi, dir.path(), &[&words[..], &["-o", "r.json"]].concat()).exits(0);
        let gpuio = |words: &[&str]| Ran::from(command(dir.path()).args(words).output().unwrap());
        let shown = gpuio(&["show", "r.json", "--format", "csv", "--per-rank"]).exits(0).out;
        assert_eq!(shown.lines().count(), 7);
        let text = gpuio(&["report", "r.json", "--format", "openmetrics"]).exits(0).out;
        let of_rank = "gpuio_rank_throughput_bytes_per_second{record_number=\"0\",job=\"job\",\
                       rank=\"3\",host=\"";
        assert!(text.contains(of_rank), "{text}");
        assert!(text.contains("ranks=\"4\",hosts=\"1\""), "{text}");
        assert!(text.contains("window=\"until_last\""), "{text}");
        gpuio(&["report", "r.json", "-o", "page.html"]).exits(0);
        let page = std::fs::read_to_string(dir.path().join("page.html")).unwrap();
        assert!(page.contains("id=\"ranks\"") && page.contains("<h2>Hosts and ranks</h2>"));
        assert!(page.contains("r: 4 ranks on host "));
        // Another number of ranks is another load.
        let alone = [&words[..], &["-o", "one.json"]].concat();
        gpuio(&alone).exits(0);
        let words = ["compare", "one.json", "r.json", "--despite", "cache"];
        let ran = gpuio(&words);
        let all = format!("{}{}", ran.out, ran.err);
        assert!(all.contains("processes (ranks): 1 | 4"), "{all}");
        assert_eq!(ran.code, 2, "{all}");
        gpuio(&[&words[..], &["--despite", "ranks"]].concat()).exits(0);
    }
}
